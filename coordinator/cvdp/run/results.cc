#include "coordinator/cvdp/run/results.h"

#include <fmt/chrono.h>
#include <algorithm>
#include <cstdio>
#include <ctime>

#include "coordinator/cvdp/cli/commands.h"
#include "coordinator/cvdp/dataset/prepare.h"
#include "coordinator/cvdp/report/composite.h"
#include "coordinator/cvdp/run/agent.h"
#include "coordinator/cvdp/run/dataset_file.h"

namespace proctor::cli {
namespace {
Status put(const fs::path& folder, const char* name, std::string_view bytes) {
  const fs::path path = folder / name;
  PROCTOR_CHECK_OK(write_file(path, bytes));
  std::printf("%s\n", path.c_str());
  return ok_status();
}
}  // namespace

std::string local_time() {
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(std::time(nullptr)));
}

Status write_single_report(const cvdp::Value& report, const fs::path& folder, bool is_there) {
  PROCTOR_TRY(const std::string text, cvdp::render_report(report));
  if (!is_there) PROCTOR_CHECK_OK(put(folder, "report.json", cvdp::write_json(report)));
  return put(folder, "report.txt", text);
}

Status write_composite(const std::vector<cvdp::Value>& reports,
                       const cvdp::CompositeMetadata& metadata, const fs::path& folder) {
  PROCTOR_TRY(const cvdp::Value composite, cvdp::make_composite(reports, metadata));
  PROCTOR_CHECK_OK(put(folder, "composite_report.json", cvdp::write_json(composite, 2)));
  return write_composite_texts(composite, folder, 0);
}

Status write_composite_texts(const cvdp::Value& composite, const fs::path& folder, std::int64_t k) {
  PROCTOR_TRY(const std::string text, cvdp::render_composite(composite, k));
  PROCTOR_TRY(const cvdp::PassTable table, cvdp::pass_table(composite, k));
  PROCTOR_CHECK_OK(put(folder, "composite_report.txt", text));
  PROCTOR_CHECK_OK(put(folder, "pass_at_k.txt", table.text));
  return put(folder, "pass_at_k.json", cvdp::write_json(table.json, 2) + "\n");
}

namespace {
using cvdp::TestResult;

constexpr std::size_t kLogBytes = std::size_t{16} << 20;
constexpr std::size_t kAnswerBytes = std::size_t{128} << 20;  // escaped

std::vector<std::string> services_of(const cvdp::Record& record, const cvdp::ImageNames& names) {
  std::vector<std::string> out;
  const std::string* compose = cvdp::compose_of(record);
  if (compose == nullptr) return out;
  const auto file = cvdp::normalise_compose(*compose, {.names = names});
  if (!file.ok()) return out;
  const auto plans = cvdp::plan_services(file->value);
  if (!plans.ok()) return out;
  for (const cvdp::ServicePlan& plan : *plans) out.push_back(plan.name);
  return out;
}
}  // namespace

std::string service_log_name(std::uint64_t issue, const std::string& service,
                             std::size_t services) {
  return std::to_string(issue) + (services == 1 ? "" : "_" + file_part(service));
}

void SampleResults::take(SampleResults more) {
  if (raw.object() == nullptr) raw = cvdp::Value(cvdp::Object());
  for (cvdp::Member& m : more.raw.object()->members()) raw.object()->set(m.key, std::move(m.value));
  passed.merge(more.passed);
  no_verdict.merge(more.no_verdict);
  responses += more.responses;
}

Status SampleResults::write(const fs::path& folder, bool with_responses, int indent) const {
  PROCTOR_CHECK_OK(make_dirs(folder));
  if (with_responses) PROCTOR_CHECK_OK(write_file(folder / "prompt_response.jsonl", responses));
  return write_file(folder / "raw_result.json", cvdp::write_json(raw, indent));
}

// One sample while it is put together.
class ResultGatherer::Sample {
 public:
  Sample(const ResultGatherer& all, const SampleRequest& request) : all_(all), r_(request) {}

  // Nothing: a judge has nothing to say about it.
  Result<std::optional<cvdp::JudgeCase>> judge_case(const cvdp::Record& record) const {
    std::optional<cvdp::JudgeCase> out;
    if (!cvdp::needs_judge(record)) return out;
    PROCTOR_TRY(const std::optional<std::string> text, candidate_of(record));
    if (text && !text->empty())
      out = cvdp::JudgeCase{judge_name(record),
                            record.category,
                            record.difficulty,
                            std::string(cvdp::to_string(record.shape)),
                            std::string(cvdp::problem_of(record)),
                            std::string(cvdp::reference_of(record)),
                            *text};
    return out;
  }

  Status add(const cvdp::Record& record) {
    const fs::path reports = fs::absolute(r_.folder) / record.id.repository / "reports";
    if (cvdp::is_comprehension(cvdp::category_number(record.category)))
      return answer(record, reports);
    if (r_.harness != nullptr)
      if (const auto it = r_.harness->find(record.id.text); it != r_.harness->end())
        return outside(record, it->second);
    if (const std::string why = no_run(record); !why.empty()) return no_verdict(record, why);
    return run(record, *run_of(record), reports);
  }

  Result<SampleResults> finish() {
    cvdp::Object raw = std::move(first_);
    for (cvdp::Member& m : then_.members()) raw.append(std::move(m.key), std::move(m.value));
    out_.raw = cvdp::Value(std::move(raw));
    return std::move(out_);
  }

 private:
  // Those that could not be prepared come first, as upstream has them.
  Status no_verdict(const cvdp::Record& record, const std::string& why) {
    out_.no_verdict[record.id.text] = why;
    first_.append(record.id.text,
                  cvdp::item_json(record.category, record.difficulty, {cvdp::failed(why)}));
    return ok_status();
  }

  // A test without a log never ran.
  Status outside(const cvdp::Record& record, const std::vector<TestResult>& tests) {
    for (const TestResult& test : tests)
      if (!test.log && test.error) return no_verdict(record, *test.error);
    put(record, tests);
    return ok_status();
  }

  void put(const cvdp::Record& record, const std::vector<TestResult>& tests) {
    out_.passed[record.id.text] = cvdp::passes(tests);
    then_.append(record.id.text, cvdp::item_json(record.category, record.difficulty, tests));
  }

  std::string judge_name(const cvdp::Record& record) const {
    return fmt::format("{}-{}-s{}", cvdp::contract_id(record), r_.method, r_.sample);
  }

  const RunRecord* run_of(const cvdp::Record& record) const {
    const auto it = all_.runs_.find(
        fmt::format("{}/{}/r{}", cvdp::contract_id(record), r_.method, r_.replicate));
    return it == all_.runs_.end() ? nullptr : it->second;
  }

  // What a single-shot method wrote; nothing: it has not answered.
  Result<std::optional<cvdp::AnsweredFiles>> answer_of(const cvdp::Record& record) const {
    std::optional<cvdp::AnsweredFiles> out;
    const RunRecord* run = run_of(record);
    if (run == nullptr || run->state != RunRecord::State::kEnded) return out;
    const Result<fs::path> evidence = evidence_of(*all_.frozen_, *run);
    if (!evidence.ok()) return out;
    const Result<std::string> text = read_file(*evidence / kAnswerFile, kAnswerBytes);
    if (!text.ok()) return out;
    PROCTOR_TRY(out, cvdp::read_answer(*text));
    return out;
  }

  Result<std::optional<std::string>> candidate_of(const cvdp::Record& record) const {
    std::optional<std::string> text;
    if (r_.golden) text = std::string(cvdp::reference_of(record));
    if (!r_.single_shot) return text;
    PROCTOR_TRY(const std::optional<cvdp::AnsweredFiles> answer, answer_of(record));
    if (!answer) return text;
    for (const char* path : {"docs/subjective.txt", "subjective.txt"})
      for (const cvdp::AnsweredFile& f : answer->files)
        if (f.path == path) text = f.text;
    return text;
  }

  // The folders as upstream leaves them after a model has answered.
  Status show_answer(const cvdp::Record& record) {
    if (!r_.single_shot) return ok_status();
    PROCTOR_TRY(const std::optional<cvdp::AnsweredFiles> answer, answer_of(record));
    out_.responses += cvdp::prompt_response_line(record, answer ? &answer->files : nullptr) + "\n";
    const std::string number = std::to_string(record.id.issue);
    const fs::path harness = r_.folder / record.id.repository / "harness" / number;
    if (answer)
      for (const cvdp::AnsweredFile& f : answer->files)
        // A name that no file can have here is the answer's fault, not the report's.
        if (const Status shown = write_below(harness, f.path, f.text); !shown.ok())
          tell_of(record, "an answered file is not shown", shown.error());
    const auto prompt = cvdp::prompt_for(record);
    if (!prompt.ok()) return ok_status();
    return write_below(r_.folder, record.id.repository + "/prompts/" + number + ".md",
                       fmt::format("{}\n\n{:-<40}\n{}", prompt->system, "", prompt->user));
  }

  static void tell_of(const cvdp::Record& record, const char* what, const Error& why) {
    tell(stderr, "{}: {}: {}\n", record.id.text, what, printable(why.detail, 500));
  }

  // Why there is no run to look at; empty: it has ended.
  std::string no_run(const cvdp::Record& record) const {
    if (const auto it = all_.left_out_.find(record.id.text); it != all_.left_out_.end())
      return "th_prepare: " + it->second->why;
    const RunRecord* run = run_of(record);
    if (run == nullptr) return "th_run: it is not in the campaign";
    return run->state == RunRecord::State::kEnded ? "" : "th_run: the run has not ended";
  }

  Status answer(const cvdp::Record& record, const fs::path& reports) {
    PROCTOR_CHECK_OK(show_answer(record));
    if (const std::string why = r_.single_shot ? no_run(record) : ""; !why.empty())
      return no_verdict(record, why);
    PROCTOR_TRY(const std::optional<std::string> text, candidate_of(record));
    const bool judged =
        r_.judgements != nullptr && cvdp::needs_judge(record) && text && !text->empty();
    Result<cvdp::Judgement> judgement = Error{Errc::kUnavailable, "no judge has answered"};
    if (judged)
      if (const auto it = r_.judgements->find(judge_name(record)); it != r_.judgements->end())
        judgement = it->second;
    cvdp::ScoredAnswer scored =
        judged ? cvdp::judged_answer(record, *text, judgement) : cvdp::score_answer(record, text);
    constexpr const char* kNames[] = {"_rouge.txt", "_bleu.txt"};
    for (std::size_t i = 0; i < scored.tests.size(); ++i) {
      if (scored.logs[i].empty()) continue;
      const fs::path log =
          reports / fmt::format("{}{}", record.id.issue, judged ? "_llm_score.txt" : kNames[i]);
      PROCTOR_CHECK_OK(make_dirs(reports));
      PROCTOR_CHECK_OK(write_file(log, scored.logs[i], Durability::kLazy));
      scored.tests[i].log = log.string();
    }
    put(record, scored.tests);
    const bool unjudged = !judged && cvdp::needs_judge(record) && r_.judgements == nullptr;
    if (!unjudged && (!judged || judgement.ok())) return ok_status();
    out_.passed.erase(record.id.text);
    out_.no_verdict[record.id.text] =
        unjudged ? "its answers are judged by a model" : judgement.error().detail;
    return ok_status();
  }

  Status run(const cvdp::Record& record, const RunRecord& run, const fs::path& reports) {
    constexpr const char* kFault = "Failed to execute objective harness: ";
    const Result<fs::path> evidence = evidence_of(*all_.frozen_, run);
    if (!evidence.ok()) return no_verdict(record, kFault + evidence.error().detail);
    PROCTOR_TRY(const std::string bytes, read_file(*evidence / kReportFile, kReportBytes));
    PROCTOR_TRY(const RunReport report, parse_report(bytes));
    if (r_.agent) PROCTOR_CHECK_OK(show_agent(record, *evidence, reports));
    PROCTOR_CHECK_OK(show_answer(record));
    if (report.outcome == RunOutcome::kInvalid)
      return no_verdict(record, kFault + report.rationale);
    const std::vector<std::string> services = services_of(record, all_.dataset_.settings.names);
    std::vector<TestResult> tests;
    for (std::size_t i = 0; i < services.size(); ++i) {
      const std::string id = fmt::format("service-{}", i + 1);
      auto check = std::ranges::find(report.checks, id, &CheckReport::id);
      const auto others = std::ranges::find(report.checks, services_check(id), &CheckReport::id);
      if (others != report.checks.end()) check = others;  // it never ran, and failed by them
      if (check == report.checks.end() || !check->outcome) {
        const bool why = check != report.checks.end() && !check->why.empty();
        tests.push_back(cvdp::failed(kFault + (why ? check->why : report.rationale)));
        continue;
      }
      tests.push_back(cvdp::test_result(
          {check->ended, check->exit_code, check->wall_ms, check->timeout_ms, check->why}));
      const std::string name = service_log_name(record.id.issue, services[i], services.size());
      PROCTOR_TRY(tests.back().log,
                  copy_logs(*evidence / kAcceptanceDir / check_dir_name(id), reports / name));
    }
    if (tests.empty()) tests.push_back(cvdp::failed(kFault + report.rationale));
    put(record, tests);
    return ok_status();
  }

  Status show_agent(const cvdp::Record& record, const fs::path& evidence,
                    const fs::path& reports) const {
    const std::string number = std::to_string(record.id.issue);
    std::string said;
    for (const std::string_view stream : {kStdoutFile, kStderrFile}) {
      const Result<std::string> bytes = read_file(evidence / "agent" / stream, kLogBytes);
      if (bytes.ok()) said += *bytes;
    }
    PROCTOR_CHECK_OK(make_dirs(reports));
    PROCTOR_CHECK_OK(write_file(reports / (number + "_agent.txt"), said, Durability::kLazy));
    const Result<std::string> patch = patch_of(evidence);
    if (!patch.ok() && patch.error().code != Errc::kNotFound)
      tell_of(record, "there is no agent_changes.patch", patch.error());
    if (!patch.ok() || patch->empty()) return ok_status();
    const std::string text = as_upstream(record, *patch);
    if (text.empty()) return ok_status();
    return write_below(r_.folder,
                       record.id.repository + "/harness/" + number + "/agent_changes.patch", text);
  }

  // Upstream's form where it has one that can be read: a heavy record's is git's, and so is what
  // does not come back as files.
  std::string as_upstream(const cvdp::Record& record, const std::string& patch) const {
    if (all_.is_heavy(record)) return patch;
    const auto changes = changes_of(fs::path(all_.dataset_.campaign) / "repos/cvdp.git",
                                    cvdp::contract_id(record), patch);
    Result<std::string> text =
        changes.ok() ? cvdp::agent_changes(*changes) : Result<std::string>(changes.error());
    if (text.ok()) return *std::move(text);
    tell_of(record, "agent_changes.patch is as git has it", text.error());
    return patch;
  }

  // What went to standard output, as upstream; the rest beside it, which upstream loses.
  static Result<std::string> copy_logs(const fs::path& from, const fs::path& to) {
    PROCTOR_CHECK_OK(make_dirs(to.parent_path()));
    const std::string log = to.string() + ".txt";
    const Result<std::string> out = read_file(from / kStdoutFile, kLogBytes);
    PROCTOR_CHECK_OK(write_file(log, out.ok() ? *out : "", Durability::kLazy));
    const Result<std::string> err = read_file(from / kStderrFile, kLogBytes);
    if (err.ok() && !err->empty())
      PROCTOR_CHECK_OK(write_file(to.string() + "_stderr.txt", *err, Durability::kLazy));
    return log;
  }

  const ResultGatherer& all_;
  const SampleRequest& r_;
  cvdp::Object first_, then_;
  SampleResults out_;
};

ResultGatherer::ResultGatherer(const ImportOptions& dataset,
                               const std::vector<Imported::LeftOut>& left_out,
                               const FrozenCampaign* frozen, const CampaignReport* report)
    : dataset_(dataset), frozen_(frozen) {
  for (const Imported::LeftOut& l : left_out) left_out_[l.id] = &l;
  if (report == nullptr) return;
  for (const RunRecord& run : report->runs) runs_[run.name] = &run;
}

bool ResultGatherer::is_heavy(const cvdp::Record& record) const {
  const cvdp::ImportSettings& s = dataset_.settings;
  const auto source = cvdp::heavy_source(record, s.repo_url, s.commit_hash);
  return !source.ok() || source->has_value();
}

Result<SampleResults> ResultGatherer::gather(const SampleRequest& request) const {
  Sample sample(*this, request);
  PROCTOR_CHECK_OK(read_selected(
      dataset_.file, dataset_.selection,
      [&](const cvdp::Record& record) { return sample.add(record); }, Findings::kKnown));
  return sample.finish();
}

Result<std::vector<cvdp::JudgeCase>> ResultGatherer::judge_cases(
    const SampleRequest& request) const {
  const Sample sample(*this, request);
  std::vector<cvdp::JudgeCase> out;
  const auto add = [&](const cvdp::Record& record) -> Status {
    PROCTOR_TRY(std::optional<cvdp::JudgeCase> one, sample.judge_case(record));
    if (one) out.push_back(*std::move(one));
    return ok_status();
  };
  PROCTOR_CHECK_OK(read_selected(dataset_.file, dataset_.selection, add, Findings::kKnown));
  return out;
}
}  // namespace proctor::cli
