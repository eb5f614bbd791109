#include "coordinator/cli/cvdp_run_work.h"

#include <cstdio>
#include <set>

#include "common/base/json.h"
#include "common/base/text.h"
#include "coordinator/cli/campaign_run.h"
#include "coordinator/cli/cvdp_compose.h"
#include "coordinator/cli/cvdp_images.h"
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
    modes.push_back(mode.agent.empty() ? mode.name : mode.name + " " + mode.agent);
  Json out = {
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
  if (plan.engine != CvdpEngine::kAuto) out["engine"] = word_of(plan.engine);
  return out;
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
    PROCTOR_CHECK_OK(make_dirs(plan_.prefix));
    PROCTOR_TRY(const bool known, is_known());
    if (plan_.reports_only && plan_.engine == CvdpEngine::kCompose)
      return Error{Errc::kInvalid,
                   "reports alone: what docker compose runs leaves no evidence but them"};
    if (!known && plan_.reports_only)
      return Error{Errc::kNotFound, plan_.prefix.string() + ": nothing has run here yet"};
    if (!known) PROCTOR_CHECK_OK(import());
    CvdpOutcome out;
    if (0 < contracts_ && !plan_.reports_only) {
      out.exit_code = run_campaign({.folder = plan_.dataset.campaign,
                                    .workers = plan_.workers,
                                    .slots = plan_.slots,
                                    .listen = {},
                                    .begin = RunOptions::Begin::kEither,
                                    .worker_arguments = worker_arguments(plan_.engine),
                                    .show_report = false});
      out.stopped = out.exit_code == kJobFailed;
      if (out.stopped)
        std::fprintf(stderr, "(or the same proctor cvdp command again, which reports too)\n");
      if (out.stopped || out.exit_code == kBadInput) return out;
    }
    PROCTOR_CHECK_OK(report(out));
    return out;
  }

 private:
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

  // What upstream shows an agent: CVDP.md 6.2.
  Result<std::string> method_of(const CvdpMode& mode) const {
    if (mode.agent.empty()) return mode.method;
    HostImages images(plan_.dataset.settings.network);
    PROCTOR_TRY(const std::string id, images.id_of(mode.agent));
    Json mounts = Json::array();
    for (const char* path : {"docs", "rtl", "verif", "rundir", "prompt.json"})
      mounts.push_back({{"from", path}, {"at", std::string("/code/") + path}});
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
      d.methods += (d.methods.size() == 1 ? "" : ", ") + method;
    }
    d.methods += "]";
    d.replicates = plan_.samples;
    constexpr std::uint64_t kMost = 1'000'000;  // no run is parked for the price of time
    d.global_usd = kMost;
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
                           mode.agent.empty() && !beyond.empty() && find_compose().ok();
    if (!all && !fall_back) return HarnessResults{};
    PROCTOR_CHECK_OK(prepare(mode, folder));  // nothing an earlier run left decides this one
    return run_by_compose({plan_.dataset, folder, plan_.slots, [&](const cvdp::Record& record) {
                             return all || beyond.contains(record.id.text);
                           }});
  }

  Result<std::vector<SampleResults>> report_mode(const ResultGatherer& gatherer,
                                                 const CvdpMode& mode) {
    cvdp::ReportMetadata metadata = plan_.metadata;
    metadata.dataset_path = plan_.dataset.file;
    metadata.timestamp = local_time();
    metadata.golden_mode = mode.agent.empty();  // upstream's word for all without a model
    metadata.disable_patch = mode.agent.empty() && !mode.golden;
    if (!mode.agent.empty()) metadata.model_agent = mode.agent;
    std::vector<SampleResults> all;
    std::vector<cvdp::Value> reports;
    cvdp::CompositeMetadata composite;
    composite.timestamp = metadata.timestamp;
    composite.k = plan_.k;
    for (std::uint32_t sample = 1; sample <= plan_.samples; ++sample) {
      const std::string folder = folder_of(mode, sample);
      PROCTOR_TRY(const HarnessResults by_compose, run_outside(mode, folder));
      PROCTOR_TRY(SampleResults results, gatherer.gather({mode.method, sample, mode.golden, folder,
                                                          !mode.agent.empty(), &by_compose}));
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
};

}  // namespace

Result<CvdpOutcome> run_cvdp(CvdpPlan plan) {
  return CvdpWork(plan).run();
}

}  // namespace proctor::cli
