#include "common/pilot/selfcheck.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <tuple>

#include "common/base/json_fields.h"
#include "common/base/text.h"
#include "common/score/result_reader.h"
#include "common/stats/interval.h"

namespace proctor {
namespace {
// Below this many decided mutants their share says too little to refuse a task for it.
constexpr std::uint64_t kEnoughMutants = 5;

struct Finding {
  SelfcheckCause cause = SelfcheckCause::kNone;
  std::string verdict;  // empty: nothing
};

bool is_error(const Repeat& r) {
  return r.outcome == RunOutcome::kAcceptanceError || r.outcome == RunOutcome::kInvalid;
}
std::size_t count(const VariantRuns& v, RunOutcome outcome) {
  return static_cast<std::size_t>(
      std::ranges::count_if(v.repeats, [&](const Repeat& r) { return r.outcome == outcome; }));
}
bool all_are(const VariantRuns& v, RunOutcome outcome) {
  return !v.repeats.empty() && count(v, outcome) == v.repeats.size();
}

std::string of_all(const VariantRuns& v, std::size_t n) {
  return std::to_string(n) + " of " + std::to_string(v.repeats.size());
}

// "check tests: 2 required tests did not pass, first: a b", of the first check that is no pass.
std::string why_of(const Repeat& r) {
  for (const CheckSeen& check : r.checks)
    if (check.outcome && *check.outcome != CheckOutcome::kPass)
      return "check " + printable(check.id) +
             (check.why.empty() ? "" : ": " + printable(check.why));
  return r.why.empty() ? "no check says why" : printable(r.why);
}
std::string why_not(const VariantRuns& v, RunOutcome right) {
  const auto it =
      std::ranges::find_if(v.repeats, [&](const Repeat& r) { return r.outcome != right; });
  return it == v.repeats.end() ? "" : why_of(*it);
}

using Vector =
    std::vector<std::tuple<std::string, std::optional<CheckOutcome>, std::set<std::string>>>;
Vector vector_of(const Repeat& r) {
  Vector out;
  for (const CheckSeen& check : r.checks)
    out.emplace_back(check.id, check.outcome,
                     std::set<std::string>(check.failing.begin(), check.failing.end()));
  return out;
}

Finding unsound(SelfcheckCause cause, const std::string& why) {
  return {cause, "unsound: " + why};
}
Finding flaky(const std::string& why) {
  return {SelfcheckCause::kFlaky, "flaky: " + why};
}

Finding must_pass(const VariantRuns& v, SelfcheckCause cause) {
  if (all_are(v, RunOutcome::kSuccess)) return {};
  const std::size_t passed = count(v, RunOutcome::kSuccess);
  if (0 < passed) return flaky(v.variant + " " + of_all(v, passed));
  const bool cannot_run =
      cause == SelfcheckCause::kReference && std::ranges::all_of(v.repeats, is_error);
  if (cannot_run)
    return unsound(SelfcheckCause::kCannotRun,
                   v.variant + " cannot run here (" + why_not(v, RunOutcome::kSuccess) + ")");
  return unsound(cause, v.variant + " failed (" + why_not(v, RunOutcome::kSuccess) + ")");
}

Finding must_fail(const VariantRuns& v, SelfcheckCause cause, const std::string& beside) {
  const std::size_t passed = count(v, RunOutcome::kSuccess);
  if (passed == v.repeats.size()) return unsound(cause, v.variant + " passed" + beside);
  if (0 < passed) return flaky(v.variant + " " + of_all(v, passed));
  if (all_are(v, RunOutcome::kFailure)) return {};
  if (0 < count(v, RunOutcome::kFailure))
    return flaky(v.variant + " cannot always be judged (" + why_not(v, RunOutcome::kFailure) + ")");
  return unsound(cause, v.variant + " cannot be judged (" + why_not(v, RunOutcome::kFailure) + ")");
}

// The tests that a check promises: what has to be repaired fails without the repair, the rest
// passes.
Finding promises(const Contract& contract, const Repeat& noop) {
  for (const Check& check : contract.checks) {
    const auto seen = std::ranges::find(noop.checks, check.id, &CheckSeen::id);
    if (seen == noop.checks.end() || !seen->outcome) continue;
    if (*seen->outcome == CheckOutcome::kError)
      return unsound(SelfcheckCause::kNoop, "noop cannot be judged (" + why_of(noop) + ")");
    const auto fails = [&](const std::string& id) {
      return std::ranges::find(seen->failing, id) != seen->failing.end();
    };
    if (const auto it = std::ranges::find_if(check.pass_to_pass, fails);
        it != check.pass_to_pass.end())
      return unsound(SelfcheckCause::kNoop, "noop fails " + printable(*it) + " of pass_to_pass");
    if (kFailingIdsMax <= seen->failing.size()) continue;  // there may be more
    const auto it = std::ranges::find_if_not(check.fail_to_pass, fails);
    if (it != check.fail_to_pass.end())
      return unsound(SelfcheckCause::kNoop, "noop passes " + printable(*it) + " of fail_to_pass");
  }
  return {};
}

// `noop` has been found to fail every time.
Finding same_as(const VariantRuns& v, const VariantRuns& noop, SelfcheckCause cause) {
  const Vector usual = vector_of(noop.repeats.front());
  const auto otherwise = [&](const Repeat& r) { return vector_of(r) != usual; };
  const auto n = static_cast<std::size_t>(std::ranges::count_if(v.repeats, otherwise));
  if (n == 0) return {};
  const Repeat& first = *std::ranges::find_if(v.repeats, otherwise);
  if (n < v.repeats.size() || v.variant == noop.variant)
    return flaky(v.variant + " fails otherwise in " + of_all(v, n) + " (" + why_of(first) + ")");
  return unsound(cause, v.variant + " fails otherwise than noop (" + why_of(first) + ")");
}

const VariantRuns* find(const std::vector<VariantRuns>& runs, std::string_view name) {
  const auto it = std::ranges::find(runs, name, &VariantRuns::variant);
  return it == runs.end() ? nullptr : &*it;
}

bool is_mutant(const VariantRuns& v) {
  return v.variant.starts_with("mutant-");
}

// A mistake may make the outcome a matter of chance, as it may make it an error: both say nothing.
MutantTally tally(const std::vector<VariantRuns>& runs) {
  MutantTally out;
  for (const VariantRuns& v : runs) {
    if (!is_mutant(v)) continue;
    const bool killed = all_are(v, RunOutcome::kFailure);
    const bool survives = all_are(v, RunOutcome::kSuccess);
    out.killed += killed ? 1U : 0U;
    out.decided += killed || survives ? 1U : 0U;
    out.undecided += killed || survives ? 0U : 1U;
    if (survives) out.survivors.push_back(v.variant);
  }
  if (0 < out.decided) out.lower95 = lower_limit(out.killed, out.decided);
  return out;
}

Finding of_mutants(const MutantTally& m, const SelfcheckSettings& settings) {
  if (m.decided < kEnoughMutants) return {SelfcheckCause::kFewMutants, "weak"};
  const double wanted = std::strtod(settings.killed.c_str(), nullptr);
  constexpr double kRounding = 1e-9;
  const bool enough = 0 < m.killed && wanted * static_cast<double>(m.decided) - kRounding <=
                                          static_cast<double>(m.killed);
  if (enough) return {};
  return unsound(SelfcheckCause::kMutants, "only " + std::to_string(m.killed) + " of " +
                                               std::to_string(m.decided) + " mutants die, " +
                                               settings.killed + " of them have to");
}

// An invalid run among others is the host's failure and no flicker of the task.
Finding unjudged(const std::vector<VariantRuns>& runs, std::uint32_t repeats) {
  if (find(runs, kVariantNoop) == nullptr)
    return {SelfcheckCause::kUnjudged, "unjudged: noop has no outcome"};
  for (const VariantRuns& v : runs) {
    if (v.repeats.size() < repeats)
      return {SelfcheckCause::kUnjudged, "unjudged: " + v.variant + " has " +
                                             std::to_string(v.repeats.size()) + " of " +
                                             std::to_string(repeats) + " repeats"};
    const bool all_invalid = all_are(v, RunOutcome::kInvalid);
    for (const Repeat& r : v.repeats) {
      const bool spoiled = r.outcome == RunOutcome::kInvalid && !all_invalid && !is_mutant(v);
      if (!r.outcome || spoiled)
        return {SelfcheckCause::kUnjudged,
                "unjudged: " + v.variant + " has no outcome (" + why_of(r) + ")"};
    }
  }
  return {};
}

Finding find_what_is_wrong(const Contract& contract, const std::vector<VariantRuns>& runs,
                           const MutantTally& mutants, const SelfcheckSettings& settings) {
  std::vector<Finding> found{unjudged(runs, settings.repeats)};
  const VariantRuns* reference = find(runs, kVariantReference);
  const VariantRuns* noop = find(runs, kVariantNoop);
  if (!found.front().verdict.empty()) return found.front();
  const std::string tests = " (" + first_few(tests_in_reference(contract)) + ")";
  const auto say = [&](Finding finding) {
    if (!finding.verdict.empty()) found.push_back(std::move(finding));
  };
  for (const VariantRuns& v : runs)
    for (const Repeat& r : v.repeats)
      if (0 < r.passes && !is_mutant(v))
        say(flaky(v.variant + " passed acceptance " + counted(r.passes, "time") +
                  " and then did not (" + why_of(r) + ")"));
  if (reference != nullptr) say(must_pass(*reference, SelfcheckCause::kReference));
  Finding of_noop = must_fail(*noop, SelfcheckCause::kNoop, "");
  if (of_noop.verdict.empty()) of_noop = promises(contract, noop->repeats.front());
  if (of_noop.verdict.empty()) of_noop = same_as(*noop, *noop, SelfcheckCause::kNoop);
  const bool noop_is_right = of_noop.verdict.empty();
  say(std::move(of_noop));
  // What the others are compared with has to be right itself.
  for (const char* name : {kVariantEmpty, kVariantJunk})
    if (const VariantRuns* v = find(runs, name); v != nullptr && noop_is_right)
      say(same_as(*v, *noop, SelfcheckCause::kNoTouch));
  if (const VariantRuns* v = find(runs, kVariantTestsOnly); v != nullptr && noop_is_right) {
    Finding finding = must_fail(*v, SelfcheckCause::kTestsOnly, tests);
    if (finding.verdict.empty()) finding = same_as(*v, *noop, SelfcheckCause::kTestsOnly);
    say(std::move(finding));
  }
  for (const char* name : {kVariantEarlyExit, kVariantShadowedRunner})
    if (const VariantRuns* v = find(runs, name);
        v != nullptr && noop_is_right && 0 < count(*v, RunOutcome::kSuccess))
      say(unsound(SelfcheckCause::kForged, v->variant + " passed"));
  if (const VariantRuns* v = find(runs, kVariantSourceOnly))
    say(must_pass(*v, SelfcheckCause::kSourceOnly));
  if (reference == nullptr)
    say(unsound(SelfcheckCause::kNoReference,
                "it has no reference_patch, so nothing shows that it can be solved"));
  if (1 < found.size()) return found[1];
  return of_mutants(mutants, settings);
}

std::string outcome_word(const Repeat& r) {
  return r.outcome ? std::string(to_string(*r.outcome)) : "none";
}
}  // namespace

bool is_good(const SelfcheckTask& task) {
  return task.verdict == "sound" || task.verdict == "weak";
}

SelfcheckTask judge_selfcheck(const Contract& contract, const std::vector<VariantRuns>& runs,
                              const SelfcheckSettings& settings) {
  auto out = named<SelfcheckTask>(contract);
  for (const VariantRuns& v : runs) {
    out.variants.push_back({v.variant, v.what, {}});
    for (const Repeat& r : v.repeats) out.variants.back().outcomes.push_back(outcome_word(r));
  }
  out.mutants = tally(runs);
  Finding finding = find_what_is_wrong(contract, runs, out.mutants, settings);
  out.cause = finding.cause;
  out.verdict = finding.verdict.empty() ? "sound" : std::move(finding.verdict);
  return out;
}

SelfcheckTask cannot_run_here(const Contract& contract, const std::string& why) {
  auto out = named<SelfcheckTask>(contract);
  out.cause = SelfcheckCause::kCannotRun;
  out.verdict = "unsound: reference cannot run here (" + printable(why, 400) + ")";
  return out;
}

// reports/selfcheck.json.

std::string to_json_text(const SelfcheckResults& results) {
  return to_json(results).dump(1, Json::Utf8::kReplace) + "\n";
}

Result<SelfcheckResults> parse_selfcheck(std::string_view text) {
  PROCTOR_TRY(const Json json, parse_json(text, {.bytes_max = kSelfcheckBytes}));
  return from_json<SelfcheckResults>(json);
}

const SelfcheckTask* still_holds(const SelfcheckResults& earlier, const Contract& contract,
                                 const SelfcheckSettings& settings, std::uint32_t rerun) {
  if (earlier.settings != settings) return nullptr;
  const auto it = std::ranges::find(earlier.tasks, contract.id, &SelfcheckTask::id);
  if (it == earlier.tasks.end() || it->contract != contract.digest ||
      it->image != contract.environment.image || it->rerun != contract.rerun_in(rerun))
    return nullptr;
  // An earlier version knew fewer variants, or judged over fewer repeats than were asked for.
  for (const Variant& v : variants_of(contract, {.mutants = 0}))
    if (std::ranges::find(it->variants, v.name, &VariantOutcomes::variant) == it->variants.end())
      return nullptr;
  for (const VariantOutcomes& v : it->variants)
    if (v.outcomes.size() < settings.repeats) return nullptr;
  const bool may_be_otherwise =
      it->cause == SelfcheckCause::kCannotRun || it->cause == SelfcheckCause::kUnjudged;
  return may_be_otherwise ? nullptr : &*it;
}
}  // namespace proctor
