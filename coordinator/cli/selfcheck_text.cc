#include "coordinator/cli/selfcheck_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace proctor::cli {
namespace {

struct Words {
  std::string kind, why;
};
// "unsound: noop passed"
Words words_of(const std::string& verdict) {
  const std::size_t colon = verdict.find(": ");
  if (colon == std::string::npos) return {verdict, ""};
  return {verdict.substr(0, colon), verdict.substr(colon + 2)};
}

std::string passed(const SelfcheckTask& task, const char* variant) {
  const auto it = std::ranges::find(task.variants, variant, &VariantOutcomes::variant);
  if (it == task.variants.end()) return "";
  return fmt::format("{} {}/{}, ", variant, std::ranges::count(it->outcomes, "success"),
                     it->outcomes.size());
}

std::string of_survivors(const SelfcheckTask& task) {
  constexpr std::size_t kShown = 3;
  const std::vector<std::string>& names = task.mutants.survivors;
  if (names.empty()) return "";
  std::string out = names.size() == 1 ? "; survivor" : "; survivors";
  for (std::size_t i = 0; i < std::min(kShown, names.size()); ++i) {
    const auto it = std::ranges::find(task.variants, names[i], &VariantOutcomes::variant);
    out += (i == 0 ? " " : ", ") + names[i];
    if (it != task.variants.end() && !it->what.empty()) out += " (" + it->what + ")";
  }
  if (kShown < names.size()) out += fmt::format(" and {} more", names.size() - kShown);
  return out;
}

std::string of_mutants(const SelfcheckTask& task) {
  const MutantTally& m = task.mutants;
  if (m.decided + m.undecided == 0) return "no mutants";
  std::string out = fmt::format("{} of {} mutants die", m.killed, m.decided);
  if (m.lower95) out += fmt::format(" (at least {:.0f} %)", *m.lower95 * 100);
  if (0 < m.undecided) out += fmt::format(", {} undecided", m.undecided);
  return out + of_survivors(task);
}

std::string advice(const SelfcheckTask& task, const std::string& campaign,
                   const fs::path& evidence) {
  const std::string of_task = campaign + " " + task.id;
  const auto runs = [&](const char* variant) {
    return (evidence / (task.id + "--" + variant)).string();
  };
  switch (task.cause) {
    case SelfcheckCause::kNone:
      return "";
    case SelfcheckCause::kFewMutants:
      return "fewer than 5 mistakes in its reference could be tried: how closely it is checked is "
             "not known";
    case SelfcheckCause::kCannotRun:
      return "put what is missing on this host or into the contract's environment, then: proctor "
             "try " +
             of_task + " reference";
    case SelfcheckCause::kNoReference:
      return "give the contract a reference_patch that solves it";
    case SelfcheckCause::kReference:
      return "see what fails: proctor try " + of_task + " reference";
    case SelfcheckCause::kNoop:
      return "see what is checked without any change: proctor try " + of_task + " noop";
    case SelfcheckCause::kNoTouch:
      return "a change of nothing must not count: what the checks said is in " +
             runs(kVariantEmpty) + " and " + runs(kVariantJunk);
    case SelfcheckCause::kTestsOnly:
      return "its tests are in the patch and not protected: name them in policy.protected, or "
             "place them by acceptance_files; evidence: " +
             runs(kVariantTestsOnly);
    case SelfcheckCause::kSourceOnly:
      return "the repair needs what counts as a test, so that a right answer without it fails; "
             "evidence: " +
             runs(kVariantSourceOnly);
    case SelfcheckCause::kForged:
      return "whatever ends its check with 0 passes: let the check write a result file, name its "
             "tests in fail_to_pass, and keep its runner apart from the workspace (python3 -I); "
             "evidence: " +
             runs(kVariantEarlyExit) + " and " + runs(kVariantShadowedRunner);
    case SelfcheckCause::kMutants:
      return "its checks do not see such mistakes: look at each survivor's patch.diff below " +
             runs("mutant-N") + ", and add a test that fails with it";
    case SelfcheckCause::kFlaky:
      return "it measures chance: find what it waits for or shares; how often: proctor screen " +
             of_task;
    case SelfcheckCause::kUnjudged:
      return "go on with: proctor selfcheck " + of_task;
  }
  return "";
}

constexpr std::array kKinds{"sound", "weak", "unsound", "flaky", "unjudged"};

}  // namespace

std::string selfcheck_text(const std::vector<SelfcheckTask>& tasks, const std::string& campaign,
                           const fs::path& evidence) {
  std::size_t width = 4;
  for (const SelfcheckTask& task : tasks) width = std::max(width, task.id.size());
  std::string out;
  std::array<std::size_t, kKinds.size()> counts{};
  for (const SelfcheckTask& task : tasks) {
    const Words words = words_of(task.verdict);
    for (std::size_t k = 0; k < kKinds.size(); ++k) counts.at(k) += words.kind == kKinds.at(k);
    const std::string facts =
        is_good(task)
            ? passed(task, kVariantReference) + passed(task, kVariantNoop) + of_mutants(task)
        : task.cause == SelfcheckCause::kMutants ? words.why + of_survivors(task)
                                                 : words.why;
    out += fmt::format("{:<{}}  {:<8}  {}\n", task.id, width, words.kind, facts);
    if (const std::string next = advice(task, campaign, evidence); !next.empty())
      out += fmt::format("{:<{}}  {:<8}  {}\n", "", width, "", next);
  }
  std::string summary;
  for (std::size_t k = 0; k < kKinds.size(); ++k)
    if (0 < counts.at(k))
      summary += fmt::format("{}{} {}", summary.empty() ? "" : ", ", counts.at(k), kKinds.at(k));
  return out + summary + "\n";
}

}  // namespace proctor::cli
