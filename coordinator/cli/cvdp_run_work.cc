#include "coordinator/cli/cvdp_run_work.h"

#include <cstdio>
#include <set>

#include "common/base/json.h"
#include "common/base/text.h"
#include "common/cvdp/heavy.h"
#include "coordinator/cli/campaign_run.h"
#include "coordinator/cli/cvdp_compose.h"
#include "coordinator/cli/cvdp_images.h"
#include "coordinator/cli/cvdp_judge.h"
#include "coordinator/cli/cvdp_prepare.h"
#include "coordinator/cli/cvdp_report_files.h"
#include "coordinator/cli/report_files.h"

namespace proctor::cli {
namespace {

constexpr const char* kMarker = "cvdp.json";

Result<std::string> digest_of_file(const std::string& file) {
  Sha256 sum;
  PROCTOR_CHECK_OK(read_pieces(file, [&](std::string_view piece) {
    sum.update(piece);
    return ok_status();
  }));
  return sum.finish().hex();
}

std::string word_of(CvdpEngine engine) {
  switch (engine) {
    case CvdpEngine::kAuto:
      return "auto";
    case CvdpEngine::kApi:
      return "api";
    case CvdpEngine::kOci:
      return "oci";
    case CvdpEngine::kCompose:
      return "compose";
  }
  return "";
}

std::vector<std::string> worker_arguments(CvdpEngine engine) {
  if (engine == CvdpEngine::kApi) return {"--images", "docker"};
  if (engine == CvdpEngine::kOci) return {"--images", "oci"};
  return {};
}

// What decides the results; how many run at a time does not.
Result<Json> question_of(const CvdpPlan& plan) {
  const ImportOptions& d = plan.dataset;
  PROCTOR_TRY(const std::string digest, digest_of_file(d.file));
  Json modes = Json::array();
  for (const CvdpMode& mode : plan.modes)
    modes.push_back(mode.single_shot     ? mode.single_shot->question
                    : mode.agent.empty() ? mode.name
                                         : mode.name + " " + mode.agent);
  Json question = {
      {"dataset", digest},
      {"modes", std::move(modes)},
      {"samples", plan.samples},
      {"filter", d.selection.filter},
      {"ids", d.selection.ids},
      {"images", {d.settings.names.oss_sim, d.settings.names.oss_pnr, d.settings.names.verif_eda}},
      {"network", d.settings.network},
      {"harness_seconds", d.settings.harness_limit.count()},
      {"agent_seconds", d.settings.agent_limit.count()},
      {"disk_mebibytes", d.settings.disk_mebibytes}};
  const auto also = [&question](const char* key, const std::string& value) {
    if (!value.empty()) question[key] = value;
  };
  also("repo_url", d.settings.repo_url);
  also("commit_hash", d.settings.commit_hash);
  if (d.include_golden) question["include_golden"] = true;
  if (d.include_harness) question["include_harness"] = true;
  if (!plan.judge.empty()) question["judge"] = plan.judge_method;
  if (!plan.prices.empty()) {
    PROCTOR_TRY(question["prices"], digest_of_file(plan.prices));
  }
  if (plan.engine != CvdpEngine::kAuto) question["engine"] = word_of(plan.engine);
  return question;
}

Json json_of(const std::vector<Imported::LeftOut>& left_out) {
  Json out = Json::array();
  for (const Imported::LeftOut& l : left_out)
    out.push_back({{"id", l.id},
                   {"category", l.category},
                   {"difficulty", l.difficulty},
                   {"why", printable(l.why, 2000)}});
  return out;
}

class CvdpWork {
 public:
  explicit CvdpWork(CvdpPlan& plan) : plan_(plan) {
    plan_.dataset.campaign = (plan_.prefix / "campaign").string();
  }

  Result<CvdpOutcome> run() {
    PROCTOR_CHECK_OK(make_private_dirs(plan_.prefix));
    PROCTOR_TRY(const bool known, is_known());
    if (plan_.reports_only && plan_.engine == CvdpEngine::kCompose)
      return Error{Errc::kInvalid,
                   "reports alone: what docker compose runs leaves no evidence but them"};
    if (!known && plan_.reports_only)
      return Error{Errc::kNotFound, plan_.prefix.string() + ": nothing has run here yet"};
    if (!known) PROCTOR_CHECK_OK(import());
    if (!plan_.models_text.empty()) {
      plan_.models_file = (plan_.prefix / "models.json").string();
      PROCTOR_CHECK_OK(write_file(plan_.models_file, plan_.models_text));
    }
    CvdpOutcome out;
    if (0 < contracts_ && !plan_.reports_only) {
      RunOptions run = how_to_run();
      run.folder = plan_.dataset.campaign;
      out.exit_code = run_campaign(run);
      out.stopped = out.exit_code == kJobFailed;
      if (out.stopped)
        std::fprintf(stderr, "(or the same proctor cvdp command again, which reports too)\n");
      if (out.stopped || out.exit_code == kBadInput) return out;
    }
    PROCTOR_CHECK_OK(report(out));
    return out;
  }

 private:
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

  std::string folder_of(const CvdpMode& mode, std::uint32_t sample) const {
    fs::path folder = mode.folder.empty() ? plan_.prefix : plan_.prefix / mode.folder;
    if (1 < plan_.samples) folder /= "sample_" + std::to_string(sample);
    return folder.string();
  }

  // Is this the same question as the prefix was made for?
  Result<bool> is_known() {
    PROCTOR_TRY(question_, question_of(plan_));
    constexpr std::size_t kMarkerBytes = std::size_t{64} << 20;
    const Result<std::string> text = read_file(plan_.prefix / kMarker, kMarkerBytes);
    if (!text.ok() && text.error().code == Errc::kNotFound) return false;
    if (!text.ok()) return text.error();
    PROCTOR_TRY(const Json marker, parse_json(*text));
    try {
      if (marker.at("question") != question_) {
        std::string differ;
        for (const auto& [key, value] : question_.items())
          if (!marker.at("question").contains(key) || marker.at("question")[key] != value)
            differ += (differ.empty() ? "" : ", ") + key;
        return Error{Errc::kConflict, plan_.prefix.string() +
                                          " holds the results of another question (" + differ +
                                          "): give another --prefix, or remove it"};
      }
      marker.at("contracts").get_to(contracts_);
      for (const Json& l : marker.at("left_out"))
        left_out_.push_back({l.at("id"), l.at("category"), l.at("difficulty"), l.at("why")});
    } catch (const Json::exception& e) {
      return Error{Errc::kCorrupt, (plan_.prefix / kMarker).string() + ": " + e.what()};
    }
    return true;
  }

  // What upstream shows an agent: CVDP 6.2.
  // Heavy records show a whole tree, the others five places: one method cannot do both.
  Result<bool> is_heavy() const {
    const ImportOptions& d = plan_.dataset;
    std::size_t heavy = 0, plain = 0;
    PROCTOR_TRY([[maybe_unused]] const auto summary,
                read_dataset(
                    d.file,
                    [&](const cvdp::Record& record) {
                      if (!d.selection.holds(record)) return ok_status();
                      const auto source =
                          cvdp::heavy_source(record, d.settings.repo_url, d.settings.commit_hash);
                      ++(source.ok() && !*source ? plain : heavy);
                      return ok_status();
                    },
                    Findings::kKnown));
    if (0 < heavy && 0 < plain)
      return Error{Errc::kInvalid,
                   "an agent's image runs heavy records or others, not both at once: --filter or "
                   "--id selects"};
    return 0 < heavy;
  }

  Result<std::string> method_of(const CvdpMode& mode) const {
    if (mode.single_shot) return mode.single_shot->method;
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
    return Json{{"name", mode.method},
                {"container", {{"image", id}, {"working_dir", "/code"}, {"mounts", mounts}}}}
        .dump();
  }

  Status import() {
    // Whatever is there was not finished: the marker comes last.
    PROCTOR_CHECK_OK(remove_tree(plan_.dataset.campaign));
    ImportOptions& d = plan_.dataset;
    d.methods = "[";
    for (const CvdpMode& mode : plan_.modes) {
      PROCTOR_TRY(const std::string method, method_of(mode));
      if (mode.single_shot) d.settings.single_shot = mode.single_shot->task;
      d.methods += (d.methods.size() == 1 ? "" : ", ") + method;
    }
    d.methods += "]";
    d.replicates = plan_.samples;
    if (!plan_.prices.empty()) PROCTOR_CHECK_OK(take_prices(plan_.prices, d.campaign));
    if (plan_.engine != CvdpEngine::kCompose) {
      PROCTOR_TRY(Imported imported, import_problems(d));
      contracts_ = imported.written;
      left_out_ = std::move(imported.left_out);
    }
    for (const CvdpMode& mode : plan_.modes)
      for (std::uint32_t sample = 1; sample <= plan_.samples; ++sample)
        PROCTOR_CHECK_OK(prepare(mode, folder_of(mode, sample)));
    const Json marker = {
        {"question", question_}, {"contracts", contracts_}, {"left_out", json_of(left_out_)}};
    return write_file(plan_.prefix / kMarker, marker.dump(1) + "\n");
  }

  Status prepare(const CvdpMode& mode, const std::string& folder) const {
    PrepareOptions prepare;
    prepare.file = plan_.dataset.file;
    prepare.prefix = folder;
    prepare.no_patch = !mode.golden;
    prepare.selection = plan_.dataset.selection;
    prepare.names = plan_.dataset.settings.names;
    prepare.quiet = true;  // the import has told it
    PROCTOR_TRY([[maybe_unused]] const PreparedCount count, prepare_problems(prepare));
    return ok_status();
  }

  Status report(CvdpOutcome& out) {
    std::optional<FrozenCampaign> frozen;
    std::optional<CampaignReport> runs;
    if (0 < contracts_) {
      PROCTOR_TRY(frozen, load_registered(plan_.dataset.campaign));
      PROCTOR_TRY(runs, read_report(*frozen));
    }
    const ResultGatherer gatherer(plan_.dataset, left_out_, frozen ? &*frozen : nullptr,
                                  runs ? &*runs : nullptr);
    if (!plan_.judge.empty()) {
      PROCTOR_TRY(judged_, judge(gatherer));
      out.exit_code = std::max(out.exit_code, judged_->exit_code);
      out.stopped = judged_->stopped;
      if (out.stopped || judged_->exit_code == kBadInput) return ok_status();
    }
    for (const CvdpMode& mode : plan_.modes) {
      PROCTOR_TRY(std::vector<SampleResults> samples, report_mode(gatherer, mode));
      out.samples.push_back(std::move(samples));
    }
    return ok_status();
  }

  // What compose alone can run, or all of it where that is asked for.
  Result<HarnessResults> run_outside(const CvdpMode& mode, const std::string& folder) const {
    const bool all = plan_.engine == CvdpEngine::kCompose;
    std::set<std::string> beyond;
    for (const Imported::LeftOut& l : left_out_)
      if (l.why.find(cvdp::kNeedsCompose) != std::string::npos) beyond.insert(l.id);
    const bool fall_back = !plan_.reports_only && plan_.engine == CvdpEngine::kAuto &&
                           mode.agent.empty() && !mode.single_shot && !beyond.empty() &&
                           find_compose().ok();
    if (!all && !fall_back) return HarnessResults{};
    PROCTOR_CHECK_OK(prepare(mode, folder));  // nothing an earlier run left decides this one
    return run_by_compose({plan_.dataset, folder, plan_.slots, [&](const cvdp::Record& record) {
                             return all || beyond.contains(record.id.text);
                           }});
  }

  SampleRequest request_of(const CvdpMode& mode, std::uint32_t sample) const {
    SampleRequest out;
    out.method = mode.method;
    out.replicate = sample;
    out.golden = mode.golden;
    out.folder = folder_of(mode, sample);
    out.agent = !mode.agent.empty();
    out.single_shot = mode.single_shot.has_value();
    if (judged_) out.judgements = &judged_->judgements;
    return out;
  }

  // After the runs, because it is their answers that are judged.
  Result<Judged> judge(const ResultGatherer& gatherer) const {
    std::vector<cvdp::JudgeCase> cases;
    for (const CvdpMode& mode : plan_.modes)
      for (std::uint32_t sample = 1; sample <= plan_.samples; ++sample) {
        PROCTOR_TRY(const std::vector<cvdp::JudgeCase> some,
                    gatherer.judge_cases(request_of(mode, sample)));
        cases.insert(cases.end(), some.begin(), some.end());
      }
    JudgeOptions options;
    options.folder = plan_.prefix / "judging";
    options.method = plan_.judge_method;
    options.run_usd = plan_.dataset.run_usd;
    options.global_usd = plan_.dataset.global_usd;
    options.prices = plan_.prices;
    options.run = how_to_run();
    options.reports_only = plan_.reports_only;
    return judge_answers(options, cases);
  }

  Result<std::vector<SampleResults>> report_mode(const ResultGatherer& gatherer,
                                                 const CvdpMode& mode) {
    cvdp::ReportMetadata metadata = plan_.metadata;
    metadata.dataset_path = plan_.dataset.file;
    metadata.timestamp = local_time();
    const bool plain = mode.agent.empty() && !mode.single_shot;
    metadata.golden_mode = plain;  // upstream's word for all without a model
    metadata.disable_patch = plain && !mode.golden;
    if (mode.single_shot) metadata.model_agent = mode.name;
    if (!mode.agent.empty()) metadata.model_agent = mode.agent;
    std::vector<SampleResults> all;
    std::vector<cvdp::Value> reports;
    cvdp::CompositeMetadata composite;
    composite.timestamp = metadata.timestamp;
    composite.k = plan_.k;
    for (std::uint32_t sample = 1; sample <= plan_.samples; ++sample) {
      const std::string folder = folder_of(mode, sample);
      PROCTOR_TRY(const HarnessResults by_compose, run_outside(mode, folder));
      SampleRequest request = request_of(mode, sample);
      request.harness = &by_compose;
      PROCTOR_TRY(SampleResults results, gatherer.gather(request));
      PROCTOR_TRY(cvdp::Report report, cvdp::make_report(results.raw, metadata));
      for (const std::string& left : report.left_out)
        std::fprintf(stderr, "left out of the report: %s\n", left.c_str());
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
  Json question_;
  std::size_t contracts_ = 0;
  std::vector<Imported::LeftOut> left_out_;
  std::optional<Judged> judged_;
};

}  // namespace

Result<CvdpOutcome> run_cvdp(CvdpPlan plan) {
  return CvdpWork(plan).run();
}

}  // namespace proctor::cli
