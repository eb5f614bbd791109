#include "coordinator/cli/cvdp_results.h"

#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/cvdp/json_writer.h"
#include "common/cvdp/results.h"
#include "common/trace/evidence.h"
#include "common/trace/run_report.h"
#include "coordinator/cli/cvdp.h"

namespace proctor::cli {
namespace {

using cvdp::TestResult;

constexpr std::size_t kLogBytes = std::size_t{16} << 20;

TestResult failed(const std::string& why) {
  TestResult out;
  out.error = why;
  return out;
}

// Names of services as file names: theirs may be anything.
std::string file_part(const std::string& name) {
  std::string out;
  for (const char c : name) {
    const bool fits = ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') ||
                      c == '-' || c == '_' || c == '.';
    out += fits ? c : '_';
  }
  return out;
}

std::vector<std::string> services_of(const cvdp::Record& record, const cvdp::ImageNames& names) {
  std::vector<std::string> out;
  const cvdp::Object* harness = cvdp::harness_files(record);
  const std::string* compose =
      harness == nullptr ? nullptr : cvdp::text_at(*harness, "docker-compose.yml");
  if (compose == nullptr) return out;
  cvdp::ComposeSettings settings;
  settings.names = names;
  const auto file = cvdp::normalise_compose(*compose, settings);
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

// One sample while it is put together.
class ResultGatherer::Sample {
 public:
  Sample(const ResultGatherer& all, const SampleRequest& request) : all_(all), r_(request) {}

  Status add(const cvdp::Record& record) {
    const fs::path reports = fs::absolute(r_.folder) / record.id.repository / "reports";
    if (cvdp::is_comprehension(cvdp::category_number(record.category)))
      return answer(record, reports);
    if (r_.harness != nullptr)
      if (const auto it = r_.harness->find(record.id.text); it != r_.harness->end())
        return outside(record, it->second);
    if (const auto it = all_.left_out_.find(record.id.text); it != all_.left_out_.end())
      return no_verdict(record, "th_prepare: " + it->second->why);
    const std::string name =
        cvdp::contract_id(record) + "/" + r_.method + "/r" + std::to_string(r_.replicate);
    const auto it = all_.runs_.find(name);
    if (it == all_.runs_.end()) return no_verdict(record, "th_run: it is not in the campaign");
    return run(record, *it->second, reports);
  }

  Result<SampleResults> finish() {
    cvdp::Object raw = std::move(first_);
    for (cvdp::Member& m : then_.members()) raw.append(std::move(m.key), std::move(m.value));
    out_.raw = cvdp::Value(std::move(raw));
    PROCTOR_CHECK_OK(make_dirs(r_.folder));
    PROCTOR_CHECK_OK(write_file(r_.folder / "raw_result.json", cvdp::write_json(out_.raw)));
    return std::move(out_);
  }

 private:
  // Those that could not be prepared come first, as upstream has them.
  Status no_verdict(const cvdp::Record& record, const std::string& why) {
    out_.no_verdict[record.id.text] = why;
    first_.append(record.id.text,
                  cvdp::item_json(record.category, record.difficulty, {failed(why)}));
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

  Status answer(const cvdp::Record& record, const fs::path& reports) {
    std::optional<std::string> text;
    if (r_.golden) text = std::string(cvdp::reference_of(record));
    cvdp::ScoredAnswer scored = cvdp::score_answer(record, text);
    constexpr const char* kNames[] = {"_rouge.txt", "_bleu.txt"};
    for (std::size_t i = 0; i < scored.tests.size() && 1 < scored.tests.size(); ++i) {
      const fs::path log = reports / (std::to_string(record.id.issue) + kNames[i]);
      PROCTOR_CHECK_OK(make_dirs(reports));
      PROCTOR_CHECK_OK(write_file(log, scored.logs[i], Durability::kLazy));
      scored.tests[i].log = log.string();
    }
    put(record, scored.tests);
    if (cvdp::needs_judge(record)) {
      out_.passed.erase(record.id.text);
      out_.no_verdict[record.id.text] = "its answers are judged by a model";
    }
    return ok_status();
  }

  Status run(const cvdp::Record& record, const RunRecord& run, const fs::path& reports) {
    if (run.state != RunRecord::State::kEnded)
      return no_verdict(record, "th_run: the run has not ended");
    constexpr const char* kFault = "Failed to execute objective harness: ";
    const Result<fs::path> evidence = evidence_of(run);
    if (!evidence.ok()) return no_verdict(record, kFault + evidence.error().detail);
    PROCTOR_TRY(const std::string bytes, read_file(*evidence / kReportFile, kReportBytes));
    PROCTOR_TRY(const RunReport report, parse_report(bytes));
    if (r_.agent) PROCTOR_CHECK_OK(show_agent(record, *evidence, reports));
    if (report.outcome == RunOutcome::kInvalid)
      return no_verdict(record, kFault + report.rationale);
    const std::vector<std::string> services = services_of(record, all_.dataset_.settings.names);
    std::vector<TestResult> tests;
    for (std::size_t i = 0; i < services.size(); ++i) {
      const std::string id = "service-" + std::to_string(i + 1);
      const auto check = std::ranges::find(report.checks, id, &CheckReport::id);
      if (check == report.checks.end() || !check->outcome) {
        tests.push_back(failed(kFault + report.rationale));
        continue;
      }
      tests.push_back(cvdp::test_result(
          {check->ended, check->exit_code, check->wall_ms, check->timeout_ms, check->why}));
      const std::string name = service_log_name(record.id.issue, services[i], services.size());
      PROCTOR_TRY(tests.back().log,
                  copy_logs(*evidence / kAcceptanceDir / check_dir_name(id), reports / name));
    }
    if (tests.empty()) tests.push_back(failed(kFault + report.rationale));
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
    const Result<std::string> patch = read_file(evidence / kPatchFile, limits::kPatchBytes);
    if (!patch.ok() || patch->empty()) return ok_status();
    const fs::path harness = r_.folder / record.id.repository / "harness" / number;
    PROCTOR_CHECK_OK(make_dirs(harness));
    return write_file(harness / "agent_changes.patch", *patch, Durability::kLazy);
  }

  // The attempt whose report the journal names.
  Result<fs::path> evidence_of(const RunRecord& run) const {
    for (std::uint32_t n = run.attempts; 0 < n; --n) {
      const fs::path folder = all_.frozen_->folder.attempt(run.name, AttemptNo(n));
      const Result<std::string> bytes = read_file(folder / kReportFile, kReportBytes);
      if (bytes.ok() && sha256(*bytes) == run.report) return folder;
    }
    return Error{Errc::kNotFound, "no attempt left evidence (proctor explain " + run.name + ")"};
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

Result<SampleResults> ResultGatherer::gather(const SampleRequest& request) const {
  PROCTOR_TRY(const LastLines last, last_lines(dataset_.file));
  Sample sample(*this, request);
  PROCTOR_TRY([[maybe_unused]] const cvdp::DatasetSummary summary,
              read_dataset(
                  dataset_.file,
                  [&](const cvdp::Record& record) {
                    return last.holds(record) && dataset_.selection.holds(record)
                               ? sample.add(record)
                               : ok_status();
                  },
                  Findings::kKnown));
  return sample.finish();
}

}  // namespace proctor::cli
