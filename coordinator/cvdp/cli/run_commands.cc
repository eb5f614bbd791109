#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>

#include "common/base/text.h"
#include "coordinator/cvdp/cli/commands.h"
#include "coordinator/cvdp/report/report.h"
#include "coordinator/cvdp/report/results.h"
#include "coordinator/cvdp/run/results.h"
#include "coordinator/cvdp/run/run_flags.h"
#include "coordinator/cvdp/run/run_work.h"

namespace proctor::cli {
// proctor cvdp run FILE: import, freeze, run and report in one go.

namespace {
void tell_sample(const SampleResults& sample, const std::string& name) {
  std::size_t passed = 0;
  for (const auto& [id, pass] : sample.passed) passed += pass ? 1U : 0U;
  tell(stdout, "{}: {} of {} problems passed\n", name, passed,
       sample.passed.size() + sample.no_verdict.size());
  for (const auto& [id, why] : sample.no_verdict) tell(stdout, "  {}: no verdict: {}\n", id, why);
}

Result<int> run_plan(const CvdpFlags& flags, CvdpPlan plan) {
  if (flags.model.model == kLocalExport) {
    PROCTOR_CHECK_OK(model_mode(flags.model, plan));
    return export_prompts(plan, flags.model.responses_file);
  }
  PROCTOR_TRY(CvdpMode mode, mode_of(flags, plan));
  plan.modes.push_back(std::move(mode));
  const std::string name = plan.modes.front().name;
  PROCTOR_TRY(const CvdpOutcome outcome, run_cvdp(std::move(plan)));
  std::size_t judged = 0, unjudged = 0;
  for (const auto& samples : outcome.samples)
    for (std::size_t i = 0; i < samples.size(); ++i) {
      tell_sample(samples[i],
                  samples.size() == 1 ? name : fmt::format("{}, sample {}", name, i + 1));
      judged += samples[i].passed.size();
      unjudged += samples[i].no_verdict.size();
    }
  if (outcome.exit_code != kOk || 0 < judged || unjudged == 0) return outcome.exit_code;
  std::fputs("No problem came to a verdict, so nothing was measured: exit code 1.\n", stderr);
  return kJobFailed;
}

Result<int> run_problems(const CvdpFlags& flags) {
  PROCTOR_TRY(CvdpPlan plan, plan_of(flags));
  PROCTOR_TRY([[maybe_unused]] const auto log, RunLog::open(plan.prefix / "run.log"));
  return code_of(run_plan(flags, std::move(plan)));  // while the log still hears it
}
}  // namespace

void add_cvdp_run(Command cvdp, int& exit_code) {
  const Command command = cvdp.add_subcommand(
      "run", "import, freeze, run and report in one go, in upstream's layout",
      "Example:\n  proctor images build proctor-cvdp-sim --by ops/images/cvdp-sim/build\n"
      "  proctor cvdp run problems.jsonl --golden --image-sim proctor-cvdp-sim --prefix work\n"
      "  proctor cvdp run problems.jsonl --model gpt-4o --judge gpt-4o --prefix model\n"
      "  proctor cvdp run problems.jsonl --agent my-agent:1 -n 5 -k 1 --workers 2 --prefix agent\n"
      "Writes raw_result.json, report.json and report.txt into the prefix, with several samples "
      "into its sample_1,\nsample_2, ... and the composite report. Interrupted, the same command "
      "goes on; so does proctor resume\nPREFIX/campaign. Exit code 0 when every run ended, "
      "whatever its verdict; 1 stopped, or no problem\ncame to a verdict; 2 bad input, also some "
      "records of FILE; 4 infrastructure.");
  const auto flags = arguments<CvdpFlags>(command, exit_code, run_problems);
  add_cvdp_common_flags(command, *flags);
  add_cvdp_upstream_flags(command, *flags);
  add_model_flags(command, flags->model);
}

// proctor cvdp report: the reports of one run or of several samples.

namespace {
struct ReportOptions {
  std::vector<std::string> files;
  std::string out;
  std::int64_t k = 0;
  std::string model;
  std::string refine;
  cvdp::ReportMetadata metadata;
};

Result<cvdp::Value> read_report(const std::string& file) {
  constexpr std::size_t kReportBytes = std::size_t{256} << 20;
  PROCTOR_TRY(const std::string text, read_file(file, kReportBytes));
  Result<cvdp::Value> value = cvdp::read_json(text);
  if (!value.ok()) return in_context(file, value.error());
  return value;
}

bool is_report(const cvdp::Value& value) {
  return cvdp::object_at(value, "test_details") != nullptr;
}

// Of a raw result, or the report that it is already.
Result<cvdp::Value> report_of(const cvdp::Value& value, const std::string& file,
                              const ReportOptions& options) {
  if (is_report(value)) return value;
  Result<cvdp::Report> made = cvdp::make_report(value, options.metadata);
  if (!made.ok()) return in_context(file, made.error());
  for (const std::string& left : made->left_out) tell(stderr, "{}: left out: {}\n", file, left);
  return std::move(made->json);
}

Status several(const ReportOptions& options, const fs::path& folder) {
  std::vector<cvdp::Value> reports;
  cvdp::CompositeMetadata metadata;
  metadata.timestamp = options.metadata.timestamp;
  metadata.k = options.k == 0 ? 1 : options.k;
  for (const std::string& file : options.files) {
    PROCTOR_TRY(const cvdp::Value value, read_report(file));
    PROCTOR_TRY(cvdp::Value report, report_of(value, file, options));
    reports.push_back(std::move(report));
    metadata.prefixes.push_back(fs::path(file).parent_path().string());
  }
  return write_composite(reports, metadata, folder);
}

Status run_report(ReportOptions options) {
  if (!options.model.empty()) options.metadata.model_agent = options.model;
  if (!options.refine.empty()) options.metadata.copilot_refine = options.refine;
  if (options.metadata.timestamp.empty()) options.metadata.timestamp = local_time();
  const std::string& first = options.files.front();
  const fs::path folder =
      !options.out.empty() ? fs::path(options.out) : fs::absolute(first).parent_path();
  PROCTOR_CHECK_OK(make_dirs(folder));
  if (1 < options.files.size()) return several(options, folder);
  PROCTOR_TRY(const cvdp::Value value, read_report(first));
  if (cvdp::is_composite(value)) return write_composite_texts(value, folder, options.k);
  PROCTOR_TRY(const cvdp::Value report, report_of(value, first, options));
  return write_single_report(report, folder, is_report(value));
}

void add_metadata_options(Command command, ReportOptions& o) {
  cvdp::ReportMetadata& m = o.metadata;
  command.add_option("--dataset", m.dataset_path, "the dataset's path, as the report says it");
  command.add_option("--timestamp", m.timestamp, "instead of now: \"2026-01-31 12:00:00\"");
  command.add_flag("--golden", m.golden_mode, "the run applied the reference solutions");
  command.add_flag("-d,--no-patch", m.disable_patch, "the run applied nothing");
  command.add_option("-m,--model,-g,--agent", o.model, "the model's or agent's name");
  command.add_flag("--force-agentic", m.force_agentic);
  command.add_flag("--force-agentic-include-golden", m.force_agentic_include_golden);
  command.add_flag("--force-agentic-include-harness", m.force_agentic_include_harness);
  command.add_flag("--force-copilot", m.force_copilot);
  command.add_option("--copilot-refine", o.refine);
}
}  // namespace

void add_cvdp_report(Command cvdp, int& exit_code) {
  const Command command = cvdp.add_subcommand(
      "report", "upstream's reports out of its results",
      "Example:\n  proctor cvdp report work/raw_result.json -o out --dataset problems.jsonl -m "
      "gpt\n"
      "A raw_result.json gives report.json and report.txt, a report.json its report.txt, a "
      "composite "
      "report\nor several files (one per sample) the composite report, and pass_at_k.txt and .json "
      "with "
      "unbiased\nestimates beside upstream's.");
  const auto options = arguments<ReportOptions>(command, exit_code, run_report);
  command
      .add_option("FILE", options->files, "raw_result.json, report.json or composite_report.json")
      .required();
  command.add_option("-o,--output", options->out, "the folder to write into (the file's own)");
  command.add_option("-k,--k-threshold", options->k, "k of pass@k (the file's own, else 1)")
      .positive();
  add_metadata_options(command, *options);
}

// proctor cvdp selfcheck FILE: do the problems tell a right answer from none?

namespace {
using cvdp::Verdicts;

Verdicts tally(const std::vector<SampleResults>& samples, const std::string& id) {
  Verdicts out;
  for (const SampleResults& sample : samples) {
    if (const auto it = sample.passed.find(id); it != sample.passed.end()) {
      ++out.verdicts;
      out.passed += it->second ? 1U : 0U;
    } else if (const auto none = sample.no_verdict.find(id); none != sample.no_verdict.end()) {
      out.why = none->second;
    }
  }
  return out;
}

Result<int> selfcheck(const CvdpFlags& flags) {
  PROCTOR_TRY(CvdpPlan plan, plan_of(flags));
  plan.modes = {{"golden", "reference", "golden", true}, {"no-patch", "noop", "no_patch", false}};
  const std::size_t samples = plan.samples;
  PROCTOR_TRY(const CvdpOutcome outcome, run_cvdp(std::move(plan)));
  if (outcome.samples.size() != 2) return outcome.exit_code;
  std::set<std::string> ids;
  for (const auto& mode : outcome.samples)
    for (const SampleResults& sample : mode) {
      for (const auto& [id, pass] : sample.passed) ids.insert(id);
      for (const auto& [id, why] : sample.no_verdict) ids.insert(id);
    }
  std::size_t unsound = 0;
  for (const std::string& id : ids) {
    const std::string what =
        cvdp::unsound(tally(outcome.samples[0], id), tally(outcome.samples[1], id), samples);
    if (what.empty()) continue;
    ++unsound;
    tell(stdout, "{}: {}\n", id, what);
  }
  tell(stdout,
       "{} of {} problems are sound: their reference passes and nothing else does, {} times each\n",
       ids.size() - unsound, ids.size(), samples);
  if (outcome.exit_code != kOk) return outcome.exit_code;
  return unsound == 0 && !ids.empty() ? kOk : kJobFailed;
}
}  // namespace

void add_cvdp_selfcheck(Command cvdp, int& exit_code) {
  const Command command = cvdp.add_subcommand(
      "selfcheck", "is every problem passed by its reference and failed without a change?",
      "Example:\n  proctor cvdp selfcheck problems.jsonl --image-sim proctor-cvdp-sim -n 5 "
      "--prefix check\n"
      "Each problem runs with its reference and without any change, three times unless -n says "
      "otherwise, all in\nparallel. What fails, passes or does so only sometimes is named. The "
      "reports of both lie in PREFIX/golden and\nPREFIX/no_patch. Exit code 1 when a problem is "
      "not sound.");
  const auto flags = arguments<CvdpFlags>(command, exit_code, selfcheck);
  flags->plan.samples = 3;
  flags->prefix = "selfcheck";
  add_cvdp_common_flags(command, *flags);
}

// proctor cvdp sweep: datasets by models and agents, one run after another, as upstream's
// model_sweep.

namespace {
struct SweepFlags {
  CvdpFlags run;  // what all have in common
  std::vector<std::string> files, models, agents;
};

// As a folder is named: a model's or an image's name may be anything.
std::string folder_name(const std::string& name) {
  const std::string out = file_part(name);
  return out == "." || out == ".." ? "_" : out;
}

std::string variant_of(const std::string& file) {
  std::string out;
  const auto read = read_dataset(
      file,
      [&out](const cvdp::Record& record) {
        if (out.empty()) out = record.shape == cvdp::Shape::kAgentic ? "agentic" : "nonagentic";
        return ok_status();
      },
      Findings::kKnown);
  return read.ok() ? out : "";
}

// Problems of its report: those that are scored count by their score.
struct Passed {
  double passed = 0, total = 0;
};
Result<Passed> passed_of(const fs::path& report) {
  PROCTOR_TRY(const std::string text, read_file(report, std::size_t{256} << 20));
  PROCTOR_TRY(const cvdp::Value value, cvdp::read_json(text));
  Passed out;
  if (value.object() == nullptr) return out;
  for (const cvdp::Member& category : *value.object())
    for (const auto& difficulty : cvdp::kDifficulties) {
      if (category.value.object() == nullptr) continue;
      const cvdp::Tally t = cvdp::tally_of(*category.value.object(), difficulty.key, "Problems");
      out.passed += t.passed.value;
      out.total += t.total.value;
    }
  return out;
}

class Sweep {
 public:
  explicit Sweep(const SweepFlags& flags) : flags_(flags), prefix_(flags.run.prefix) {}

  Result<int> run() {
    if (flags_.models.empty() && flags_.agents.empty())
      return Error{Errc::kInvalid, "a sweep needs --model or --agent, each once or more"};
    PROCTOR_TRY([[maybe_unused]] const auto log, RunLog::open(prefix_ / "run.log"));
    std::vector<std::pair<std::string, bool>> contenders;  // name, is it an agent?
    for (const std::string& model : flags_.models) contenders.emplace_back(model, false);
    for (const std::string& agent : flags_.agents) contenders.emplace_back(agent, true);
    int code = kOk;
    for (const std::string& file : flags_.files)
      for (const auto& [name, is_agent] : contenders) {
        const int one_code = code_of(one(file, name, is_agent));
        code = std::max(code, one_code);
        if (one_code == kJobFailed) return code;  // stopped by hand: the rest is not begun
      }
    return code;
  }

 private:
  Result<int> one(const std::string& file, const std::string& name, bool is_agent) {
    CvdpFlags flags = flags_.run;
    flags.file = file;
    flags.prefix =
        (prefix_ / folder_name(fs::path(file).stem().string()) / folder_name(name)).string();
    if (!is_agent) flags.agent = {};
    (is_agent ? flags.agent.image : flags.model.model) = name;
    tell(stdout, "{}, {}: in {}\n", file, printable(name), flags.prefix);
    PROCTOR_TRY(CvdpPlan plan, plan_of(flags));
    PROCTOR_TRY(CvdpMode mode, mode_of(flags, plan));
    plan.modes.push_back(std::move(mode));
    const fs::path first = 1 < plan.samples ? plan.prefix / "sample_1" : plan.prefix;
    PROCTOR_TRY(const CvdpOutcome outcome, run_cvdp(std::move(plan)));
    if (outcome.samples.empty()) return outcome.exit_code;
    PROCTOR_TRY(const Passed passed, passed_of(first / "report.json"));
    const double percent = passed.total == 0 ? 0 : 100 * passed.passed / passed.total;
    tell(stdout, "{}, {}: {:g} of {:g} problems passed, {:.1f} %\n", file, printable(name),
         passed.passed, passed.total, percent);
    rows_.emplace_back(
        cvdp::object_of("dataset_file", file, "variant", variant_of(file), "model_or_agent", name,
                        "work_dir", flags.prefix, "passed", cvdp::real(passed.passed), "total",
                        static_cast<std::int64_t>(passed.total), "pass_pct", cvdp::real(percent)));
    PROCTOR_CHECK_OK(write_file(prefix_ / "sweep_report.json",
                                cvdp::write_json(cvdp::object_of("sweep", rows_), 2) + "\n"));
    return outcome.exit_code;
  }

  const SweepFlags& flags_;
  fs::path prefix_;
  cvdp::Array rows_;
};
}  // namespace

void add_cvdp_sweep(Command cvdp, int& exit_code) {
  const Command command = cvdp.add_subcommand(
      "sweep", "several datasets by several models and agents",
      "Example:\n  proctor cvdp sweep a.jsonl b.jsonl -m gpt-4o -m o4-mini -g my-agent:1 --prefix "
      "sweep\n"
      "Each pair is a run of its own in PREFIX/DATASET/NAME, one after the other; "
      "PREFIX/sweep_report.json has what\npassed, of the first sample. The same command goes on "
      "where it stopped. The other options are those of run.");
  auto flags = std::make_shared<SweepFlags>();
  flags->run.prefix = "sweep";
  add_cvdp_common_flags(command, flags->run);
  add_cvdp_upstream_flags(command, flags->run);
  add_model_flags(command, flags->run.model);
  // These come several times here, or are what a sweep does not do.
  for (const char* option :
       {"FILE", "--filename", "--model", "--agent", "--agent-method", "--golden", "--no-patch",
        "--answers", "--prompts-responses-file", "--llm"})
    command.remove_option(option);
  command.add_option("FILE", flags->files, "datasets").required();
  command.add_option("-m,--model", flags->models, "a model; may be given again");
  command.add_option("-g,--agent", flags->agents, "an agent's image; may be given again");
  command.callback([=, &exit_code] { exit_code = code_of(Sweep(*flags).run()); });
}
}  // namespace proctor::cli
