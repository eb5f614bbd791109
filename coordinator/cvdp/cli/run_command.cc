// proctor cvdp run FILE: import, freeze, run and report in one go.
#include <cstdio>
#include <memory>

#include "coordinator/cvdp/cli/commands.h"
#include "coordinator/cvdp/run/run_flags.h"
#include "coordinator/cvdp/run/run_log.h"

namespace proctor::cli {
namespace {

void tell_sample(const SampleResults& sample, const std::string& name) {
  std::size_t passed = 0;
  for (const auto& [id, pass] : sample.passed) passed += pass ? 1U : 0U;
  std::printf("%s: %zu of %zu problems passed\n", name.c_str(), passed,
              sample.passed.size() + sample.no_verdict.size());
  for (const auto& [id, why] : sample.no_verdict)
    std::printf("  %s: no verdict: %s\n", id.c_str(), why.c_str());
}

Result<int> run_plan(const CvdpFlags& flags, CvdpPlan plan) {
  if (flags.model.model == kLocalExport) {
    PROCTOR_TRY([[maybe_unused]] const auto asked, model_mode(flags.model, plan));
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
                  samples.size() == 1 ? name : name + ", sample " + std::to_string(i + 1));
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
  auto flags = std::make_shared<CvdpFlags>();
  add_cvdp_common_flags(command, *flags);
  add_cvdp_upstream_flags(command, *flags);
  add_model_flags(command, flags->model);
  command.callback([=, &exit_code] { exit_code = code_of(run_problems(*flags)); });
}

}  // namespace proctor::cli
