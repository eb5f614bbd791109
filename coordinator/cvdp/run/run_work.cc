#include "coordinator/cvdp/run/run_work.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>

#include "common/base/json_fields.h"
#include "common/base/text.h"
#include "coordinator/cli/campaign_run.h"
#include "coordinator/cli/report_files.h"
#include "coordinator/cvdp/cli/commands.h"
#include "coordinator/cvdp/dataset/import.h"
#include "coordinator/cvdp/dataset/prepare.h"
#include "coordinator/cvdp/run/answers.h"
#include "coordinator/cvdp/run/compose_harness.h"

namespace proctor::cli {
Result<std::unique_ptr<RunLog>> RunLog::open(const fs::path& file) {
  PROCTOR_CHECK_OK(make_private_dirs(file.parent_path()));
  std::unique_ptr<RunLog> out(new RunLog);
  out->log_ = std::fopen(file.c_str(), "ae");
  if (out->log_ == nullptr) return errno_error("write " + file.string(), errno);
  put(out->out_, stdout, out->log_);
  put(out->err_, stderr, out->log_);
  if (out->out_.front == nullptr || out->err_.front == nullptr)
    return errno_error("write " + file.string(), errno);
  std::fflush(stdout);
  stdout = out->out_.front;
  stderr = out->err_.front;
  return out;
}

RunLog::~RunLog() {
  for (Stream* s : {&out_, &err_}) {
    if (s->front == nullptr) continue;
    std::fflush(s->front);
    if (stdout == s->front) stdout = s->behind;
    if (stderr == s->front) stderr = s->behind;
    std::fclose(s->front);
    if (!s->line.empty()) std::fprintf(log_, "%s\n", s->line.c_str());
  }
  if (log_ != nullptr) std::fclose(log_);
}

void RunLog::put(Stream& stream, std::FILE* behind, std::FILE* log) {
  stream.behind = behind;
  stream.log = log;
  stream.front = ::fopencookie(&stream, "w", {nullptr, &RunLog::write, nullptr, nullptr});
  if (stream.front != nullptr) std::setvbuf(stream.front, nullptr, _IOLBF, BUFSIZ);
}

// A line that is drawn again and again counts as it was at last.
ssize_t RunLog::write(void* stream, const char* bytes, std::size_t size) {
  Stream& s = *static_cast<Stream*>(stream);
  const std::size_t written = std::fwrite(bytes, 1, size, s.behind);
  std::fflush(s.behind);
  constexpr std::string_view kClear = "\x1b[K";
  for (std::size_t i = 0; i < size; ++i) {
    if (bytes[i] == '\r') {
      s.line.clear();
    } else if (bytes[i] == '\n') {
      std::fprintf(s.log, "%s\n", s.line.c_str());
      s.line.clear();
    } else {
      s.line += bytes[i];
      if (s.line.ends_with(kClear)) s.line.resize(s.line.size() - kClear.size());
    }
  }
  std::fflush(s.log);
  return static_cast<ssize_t>(written);
}

namespace {
Result<std::string> digest_of_file(const std::string& file) {
  Sha256 sum;
  PROCTOR_CHECK_OK(read_pieces(file, [&](std::string_view piece) {
    sum.update(piece);
    return ok_status();
  }));
  return sum.finish().hex();
}

std::vector<std::string> worker_arguments(CvdpEngine engine) {
  if (engine == CvdpEngine::kApi) return {"--images", "docker"};
  if (engine == CvdpEngine::kOci) return {"--images", "oci"};
  return {};
}

std::string question_of(const CvdpMode& mode) {
  if (mode.single_shot) return mode.single_shot->question;
  if (mode.own_method) return mode.name + " by method " + mode.own_method->digest.hex();
  if (mode.agent.empty()) return mode.name;
  const Json given = to_json(mode.given);
  return mode.name + " " + mode.agent + (given.empty() ? "" : " " + given.dump());
}

// What decides each result.  How many run at a time does not, nor which problems and how many
// samples are asked for: a prefix grows by those.
Result<Json> question_of(const CvdpPlan& plan) {
  const ImportOptions& d = plan.dataset;
  const cvdp::ImageNames& names = d.settings.names;
  PROCTOR_TRY(const std::string digest, digest_of_file(d.file));
  std::vector<std::string> modes;
  for (const CvdpMode& mode : plan.modes) modes.push_back(question_of(mode));
  std::string prices;
  if (!plan.prices.empty()) {
    PROCTOR_TRY(prices, digest_of_file(plan.prices));
  }
  JsonWriter v;
  v("dataset", digest);
  v("modes", modes);
  v("images", std::vector<std::string>{names.oss_sim, names.oss_pnr, names.verif_eda});
  v("network", d.settings.network);
  v("harness_seconds", d.settings.harness_limit);
  v("agent_seconds", d.settings.agent_limit);
  v("disk_mebibytes", d.settings.disk_mebibytes);
  v("license_network", d.settings.licensed ? names.license_network : "", kOptional);
  v("repo_url", d.settings.repo_url, kOptional);
  v("commit_hash", d.settings.commit_hash, kOptional);
  v("include_golden", d.include_golden, kOptional);
  v("include_harness", d.include_harness, kOptional);
  v("judge", plan.judge_method, kOptional);
  v("prices", prices, kOptional);
  v("engine", plan.engine, kOptional);
  return v.take();
}

// A part as it is read for a report.
struct PartResults {
  PartResults(const CvdpPart& of, ImportOptions from) : part(of), dataset(std::move(from)) {}
  const CvdpPart& part;
  ImportOptions dataset;
  std::optional<FrozenCampaign> frozen;
  std::optional<CampaignReport> runs;
  std::optional<ResultGatherer> gatherer;
};

class CvdpWork {
 public:
  explicit CvdpWork(CvdpPlan& plan) : plan_(plan) {}

  Result<CvdpOutcome> run() {
    PROCTOR_CHECK_OK(make_private_dirs(plan_.prefix));
    PROCTOR_CHECK_OK(recall());
    if (plan_.reports_only && plan_.engine == CvdpEngine::kCompose)
      return cvdp::invalid("reports alone: what docker compose runs leaves no evidence but them");
    if (asked_.parts.empty() && plan_.reports_only)
      return Error{Errc::kNotFound, plan_.prefix.string() + ": nothing has run here yet"};
    PROCTOR_TRY(CvdpDemand demand, demand_of(plan_.dataset.file, asked_.parts,
                                             plan_.dataset.selection, plan_.samples));
    touched_ = std::move(demand.touched);
    if (!plan_.reports_only)
      for (CvdpPart& part : demand.missing) PROCTOR_CHECK_OK(import(std::move(part)));
    PROCTOR_CHECK_OK(lay_out());
    if (!plan_.models_text.empty()) {
      plan_.models_file = (plan_.prefix / "models.json").string();
      PROCTOR_CHECK_OK(write_file(plan_.models_file, plan_.models_text));
    }
    CvdpOutcome out;
    for (std::size_t i = 0; i < asked_.parts.size(); ++i)
      if (touched_[i] && !run_part(asked_.parts[i], out)) return out;
    PROCTOR_CHECK_OK(report(out));
    tell_broken(demand.broken, out);
    return out;
  }

 private:
  // Their problems are in none of the counts, so that what was counted is not the dataset.
  void tell_broken(std::uint64_t records, CvdpOutcome& out) const {
    if (records == 0) return;
    tell(stderr, "{} of {}, in no count of this run: proctor cvdp check {}\n",
         records == 1 ? "1 record is wrong" : fmt::format("{} records are wrong", records),
         plan_.dataset.file, plan_.dataset.file);
    if (out.exit_code == kOk) out.exit_code = kBadInput;
  }

  RunOptions how_to_run() const {
    return {.folder = {},
            .workers = plan_.workers,
            .slots = plan_.slots,
            .listen = {},
            .begin = RunOptions::Begin::kEither,
            .worker_arguments = worker_arguments(plan_.engine),
            .models = plan_.models_file,
            .show_report = false};
  }

  // False: it did not come to its end, so there is nothing to report.
  bool run_part(const CvdpPart& part, CvdpOutcome& out) const {
    if (part.contracts == 0 || plan_.reports_only) return true;
    RunOptions run = how_to_run();
    run.folder = dataset_of(part).campaign;
    const int code = run_campaign(run);
    out.exit_code = std::max(out.exit_code, code);
    out.stopped = code == kJobFailed;
    if (out.stopped)
      std::fprintf(stderr, "(or the same proctor cvdp command again, which reports too)\n");
    return !out.stopped && code != kBadInput;
  }

  ImportOptions dataset_of(const CvdpPart& part) const {
    ImportOptions out = plan_.dataset;
    out.campaign = (plan_.prefix / part.campaign).string();
    out.selection = part.selection;
    out.replicates = part.to - part.from + 1;
    return out;
  }

  // Below the prefix.
  std::string place_of(const CvdpMode& mode, std::uint32_t sample) const {
    fs::path place = mode.folder;
    if (1 < plan_.samples) place /= fmt::format("sample_{}", sample);
    return place.string();
  }

  std::string folder_of(const CvdpMode& mode, std::uint32_t sample) const {
    const std::string place = place_of(mode, sample);
    return (place.empty() ? plan_.prefix : plan_.prefix / place).string();
  }

  // What was asked of the prefix so far; refused, if this is another question.
  Status recall() {
    PROCTOR_TRY(const Json question, question_of(plan_));
    Result<CvdpAsked> asked = read_asked(plan_.prefix);
    if (!asked.ok() && asked.error().code == Errc::kNotFound) {
      asked_.question = question;
      return ok_status();
    }
    if (!asked.ok()) return asked.error();
    asked_ = *std::move(asked);
    if (asked_.question == question) return ok_status();
    std::string differ;
    for (const auto& [key, value] : question.items())
      if (!asked_.question.contains(key) || asked_.question[key] != value)
        differ += (differ.empty() ? "" : ", ") + key;
    return Error{Errc::kConflict, fmt::format("{} holds the results of another question ({}): give "
                                              "another --prefix, or remove it",
                                              plan_.prefix.string(), differ)};
  }

  // What upstream shows an agent: CVDP 6.2.
  // Heavy records show a whole tree, the others five places: one method cannot do both.
  Result<bool> is_heavy() const {
    const ImportOptions& d = plan_.dataset;
    std::size_t heavy = 0, plain = 0;
    const auto count = [&](const cvdp::Record& record) {
      if (!d.selection.holds(record)) return ok_status();
      const auto source = cvdp::heavy_source(record, d.settings.repo_url, d.settings.commit_hash);
      ++(source.ok() && !*source ? plain : heavy);
      return ok_status();
    };
    PROCTOR_CHECK_OK(read_dataset(d.file, count, Findings::kKnown));
    if (0 < heavy && 0 < plain)
      return cvdp::invalid(
          "an agent's image runs heavy records or others, not both at once: --filter or --id "
          "selects");
    return 0 < heavy;
  }

  Result<std::string> method_of(const CvdpMode& mode) const {
    if (mode.single_shot) return mode.single_shot->method;
    if (mode.own_method) return method_text(*mode.own_method);
    if (mode.agent.empty()) return mode.method;
    HostImages images(plan_.dataset.settings.network);
    PROCTOR_TRY(const std::string id, images.id_of(mode.agent));
    Json mounts = Json::array();
    PROCTOR_TRY(const bool heavy, is_heavy());
    const auto show = [&mounts](const std::string& path) {
      mounts.push_back({{"from", path}, {"at", "/code/" + path}});
    };
    if (heavy) {
      mounts.push_back({{"from", "."}, {"at", "/code"}});
    } else {
      for (const char* path : {"docs", "rtl", "verif", "rundir", "prompt.json"}) show(path);
      if (plan_.dataset.include_golden) show(cvdp::kGoldenPatchFile);
      if (plan_.dataset.include_harness)
        for (const char* path : {"src", "docker-compose.yml"}) show(path);
    }
    Json method = {{"name", mode.method},
                   {"container", {{"image", id}, {"working_dir", "/code"}, {"mounts", mounts}}}};
    if (Json given = to_json(mode.given); !given.empty()) method["environment"] = std::move(given);
    return method.dump();
  }

  Status import(CvdpPart part) {
    ImportOptions d = dataset_of(part);
    // Whatever is there was not finished: the marker comes last.
    PROCTOR_CHECK_OK(remove_tree(d.campaign));
    d.methods = "[";
    for (const CvdpMode& mode : plan_.modes) {
      PROCTOR_TRY(const std::string method, method_of(mode));
      if (mode.single_shot)
        d.settings.single_shot = [&part,
                                  task = mode.single_shot->task](const cvdp::Record& record) {
          return task(record, part.from, part.to);
        };
      d.methods += (d.methods.size() == 1 ? "" : ", ") + method;
    }
    d.methods += "]";
    if (!plan_.prices.empty()) PROCTOR_CHECK_OK(take_prices(plan_.prices, d.campaign));
    if (plan_.engine != CvdpEngine::kCompose) {
      PROCTOR_TRY(Imported imported, import_problems(d));
      part.contracts = imported.written;
      part.left_out = std::move(imported.left_out);
      for (const CvdpMode& mode : plan_.modes)
        if (mode.own_method) PROCTOR_CHECK_OK(place_method_files(*mode.own_method, d.campaign));
    }
    asked_.parts.push_back(std::move(part));
    touched_.push_back(true);
    return write_asked(plan_.prefix, asked_);
  }

  // Upstream's folders of every part, where this demand's reports look for them.
  Status lay_out() {
    for (CvdpPart& part : asked_.parts) {
      bool more = false;
      for (const CvdpMode& mode : plan_.modes)
        for (std::uint32_t n = part.from; n <= std::min(part.to, plan_.samples); ++n) {
          const std::string place = place_of(mode, n);
          if (std::ranges::find(part.prepared, place) != part.prepared.end()) continue;
          PROCTOR_CHECK_OK(prepare(part.selection, mode, folder_of(mode, n)));
          part.prepared.push_back(place);
          more = true;
        }
      if (more) PROCTOR_CHECK_OK(write_asked(plan_.prefix, asked_));
    }
    return ok_status();
  }

  Status prepare(const Selection& selection, const CvdpMode& mode,
                 const std::string& folder) const {
    PrepareOptions prepare;
    prepare.file = plan_.dataset.file;
    prepare.prefix = folder;
    prepare.settings.no_patch = !mode.golden;
    prepare.selection = selection;
    prepare.settings.names = plan_.dataset.settings.names;
    prepare.quiet = true;  // the import has told it
    prepare.keep_responses = true;
    PROCTOR_CHECK_OK(prepare_problems(prepare));
    return ok_status();
  }

  Status report(CvdpOutcome& out) {
    std::vector<std::unique_ptr<PartResults>> parts;
    for (std::size_t i = 0; i < asked_.parts.size(); ++i) {
      PROCTOR_TRY(auto one, results_of(asked_.parts[i], touched_[i]));
      parts.push_back(std::move(one));
      if (plan_.judge.empty()) continue;
      PROCTOR_CHECK_OK(judge(*parts.back(), touched_[i], out));
      if (out.stopped || out.exit_code == kBadInput) return ok_status();
    }
    for (const CvdpMode& mode : plan_.modes) {
      PROCTOR_TRY(std::vector<SampleResults> samples, report_mode(parts, mode));
      out.samples.push_back(std::move(samples));
    }
    return ok_status();
  }

  Result<std::unique_ptr<PartResults>> results_of(const CvdpPart& part, bool touched) const {
    auto out = std::make_unique<PartResults>(part, dataset_of(part));
    if (0 < part.contracts) {
      Result<FrozenCampaign> frozen = load_registered(out->dataset.campaign);
      // One of an earlier command that did not come so far: its problems have no runs.
      if (!frozen.ok() && touched) return frozen.error();
      if (frozen.ok()) {
        out->frozen = *std::move(frozen);
        PROCTOR_TRY(out->runs, read_report(*out->frozen));
      }
    }
    out->gatherer.emplace(out->dataset, part.left_out, out->frozen ? &*out->frozen : nullptr,
                          out->runs ? &*out->runs : nullptr);
    return out;
  }

  // What compose alone can run, or all of it where that is asked for.
  Result<HarnessResults> run_outside(const PartResults& results, const CvdpMode& mode,
                                     const std::string& folder) const {
    const bool all = plan_.engine == CvdpEngine::kCompose;
    std::set<std::string> beyond;
    for (const Imported::LeftOut& l : results.part.left_out)
      if (needs_compose(l)) beyond.insert(l.id);
    const bool fall_back = !plan_.reports_only && plan_.engine == CvdpEngine::kAuto &&
                           mode.agent.empty() && !mode.single_shot && !beyond.empty() &&
                           find_compose().ok();
    if (!all && !fall_back) return HarnessResults{};
    // Nothing an earlier run left decides this one.
    PROCTOR_CHECK_OK(prepare(results.part.selection, mode, folder));
    return run_by_compose({results.dataset, folder, plan_.slots, [&](const cvdp::Record& record) {
                             return all || beyond.contains(record.id.text);
                           }});
  }

  SampleRequest request_of(const CvdpPart& part, const CvdpMode& mode, std::uint32_t sample) const {
    SampleRequest out;
    out.method = mode.method;
    out.replicate = sample - part.from + 1;
    out.sample = sample;
    out.golden = mode.golden;
    out.folder = folder_of(mode, sample);
    out.agent = !mode.agent.empty();
    out.single_shot = mode.single_shot.has_value();
    if (!plan_.judge.empty()) out.judgements = &judgements_;
    return out;
  }

  // After the runs, because it is their answers that are judged.  All samples of a part, whatever
  // was asked for: what a campaign judges cannot change.
  Status judge(const PartResults& results, bool touched, CvdpOutcome& out) {
    std::vector<cvdp::JudgeCase> cases;
    for (const CvdpMode& mode : plan_.modes)
      for (std::uint32_t sample = results.part.from; sample <= results.part.to; ++sample) {
        PROCTOR_TRY(const std::vector<cvdp::JudgeCase> some,
                    results.gatherer->judge_cases(request_of(results.part, mode, sample)));
        cases.insert(cases.end(), some.begin(), some.end());
      }
    JudgeOptions options;
    options.folder = plan_.prefix / results.part.judging();
    options.method = plan_.judge_method;
    options.run_usd = plan_.dataset.run_usd;
    options.global_usd = plan_.dataset.global_usd;
    options.prices = plan_.prices;
    options.run = how_to_run();
    options.reports_only = plan_.reports_only || !touched;
    Result<Judged> judged = judge_answers(options, cases);
    if (!judged.ok()) return touched ? Status(judged.error()) : ok_status();
    out.exit_code = std::max(out.exit_code, judged->exit_code);
    out.stopped = judged->stopped;
    judgements_.merge(judged->judgements);
    return ok_status();
  }

  // One sample of all parts that have it.
  Result<SampleResults> gather(const std::vector<std::unique_ptr<PartResults>>& parts,
                               const CvdpMode& mode, std::uint32_t sample) const {
    const std::string folder = folder_of(mode, sample);
    SampleResults all;
    all.raw = cvdp::Value(cvdp::Object());  // a dataset without a problem has no part
    for (const auto& results : parts) {
      if (sample < results->part.from || results->part.to < sample) continue;
      PROCTOR_TRY(const HarnessResults by_compose, run_outside(*results, mode, folder));
      SampleRequest request = request_of(results->part, mode, sample);
      request.harness = &by_compose;
      PROCTOR_TRY(SampleResults some, results->gatherer->gather(request));
      all.take(std::move(some));
    }
    // As upstream leaves it after one problem, and after all.
    const int indent = plan_.dataset.selection.ids.empty() ? cvdp::kOneLine : 2;
    PROCTOR_CHECK_OK(all.write(folder, mode.single_shot.has_value(), indent));
    return all;
  }

  Result<std::vector<SampleResults>> report_mode(
      const std::vector<std::unique_ptr<PartResults>>& parts, const CvdpMode& mode) {
    cvdp::ReportMetadata metadata = plan_.metadata;
    metadata.dataset_path = plan_.dataset.file;
    metadata.timestamp = local_time();
    const bool plain = mode.agent.empty() && !mode.single_shot;
    metadata.golden_mode = plain;  // upstream's word for all without a model
    metadata.disable_patch = plain && !mode.golden;
    if (mode.single_shot) metadata.model_agent = mode.name;
    if ((mode.single_shot && mode.single_shot->asks) || !plan_.judge.empty())
      metadata.prompts = cvdp::kPromptsName;
    if (!mode.agent.empty()) metadata.model_agent = mode.agent;
    std::vector<SampleResults> all;
    std::vector<cvdp::Value> reports;
    cvdp::CompositeMetadata composite;
    composite.timestamp = metadata.timestamp;
    composite.k = plan_.k;
    for (std::uint32_t sample = 1; sample <= plan_.samples; ++sample) {
      const std::string folder = folder_of(mode, sample);
      PROCTOR_TRY(SampleResults results, gather(parts, mode, sample));
      PROCTOR_TRY(cvdp::Report report, cvdp::make_report(results.raw, metadata));
      for (const std::string& left : report.left_out)
        tell(stderr, "left out of the report: {}\n", left);
      PROCTOR_CHECK_OK(write_single_report(report.json, folder, false));
      reports.push_back(std::move(report.json));
      composite.prefixes.push_back(folder);
      all.push_back(std::move(results));
    }
    if (1 < plan_.samples) {
      const fs::path folder = mode.folder.empty() ? plan_.prefix : plan_.prefix / mode.folder;
      PROCTOR_CHECK_OK(write_composite(reports, composite, folder));
    }
    return all;
  }

  CvdpPlan& plan_;
  CvdpAsked asked_;
  std::vector<bool> touched_;  // of its parts: does this command speak of it?
  std::map<std::string, Result<cvdp::Judgement>> judgements_;
};
}  // namespace

Result<CvdpOutcome> run_cvdp(CvdpPlan plan) {
  return CvdpWork(plan).run();
}
}  // namespace proctor::cli
