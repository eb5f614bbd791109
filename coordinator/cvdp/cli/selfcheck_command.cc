// proctor cvdp selfcheck FILE: do the problems tell a right answer from none?
#include <cstdio>
#include <memory>
#include <set>

#include "coordinator/cvdp/cli/commands.h"
#include "coordinator/cvdp/report/soundness.h"
#include "coordinator/cvdp/run/run_flags.h"

namespace proctor::cli {
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
    std::printf("%s: %s\n", id.c_str(), what.c_str());
  }
  std::printf(
      "%zu of %zu problems are sound: their reference passes and nothing else does, %zu "
      "times each\n",
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
  auto flags = std::make_shared<CvdpFlags>();
  flags->plan.samples = 3;
  flags->prefix = "selfcheck";
  add_cvdp_common_flags(command, *flags);
  command.callback([=, &exit_code] { exit_code = code_of(selfcheck(*flags)); });
}

}  // namespace proctor::cli
