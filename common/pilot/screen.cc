#include "common/pilot/screen.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "common/base/json_fields.h"
#include "common/base/text.h"
#include "common/pilot/variants.h"
#include "common/stats/interval.h"

namespace proctor {
namespace {
// A share typed as decimal text times a whole number may miss the whole number that it is.
constexpr double kRounding = 1e-9;
// What one test has to say before load is blamed (Fisher, one-sided).
constexpr double kLoadLevel = 0.05;

double number(const std::string& share) {
  return std::strtod(share.c_str(), nullptr);
}

const ScreenArm* find(const ScreenTask& task, std::string_view state, std::string_view arm) {
  const auto it = std::ranges::find_if(
      task.arms, [&](const ScreenArm& a) { return a.state == state && a.arm == arm; });
  return it == task.arms.end() ? nullptr : &*it;
}

bool passes_tolerance(const ScreenArm& arm, const ScreenSettings& settings) {
  const double tolerance =
      number(arm.state == kStateReference ? settings.tolerance : settings.snapshot_tolerance);
  // Of all that were asked for: what was lost may have been as most were.
  const auto of = static_cast<double>(arm.repeats + arm.lost);
  return tolerance * of + kRounding < static_cast<double>(arm.discrepant);
}

std::string place_of(const ScreenArm& arm) {
  return fmt::format("{} {}", arm.state, arm.arm == kArmLoad ? "under load" : "alone");
}

std::optional<double> fisher_of(const ScreenTask& task, std::string_view state) {
  const ScreenArm* alone = find(task, state, kArmAlone);
  const ScreenArm* load = find(task, state, kArmLoad);
  if (alone == nullptr || load == nullptr || alone->repeats == 0 || load->repeats == 0)
    return std::nullopt;
  return fisher_greater(alone->discrepant, alone->repeats, load->discrepant, load->repeats);
}

bool is_worse_under_load(const ScreenTask& task, std::string_view state) {
  const ScreenArm* alone = find(task, state, kArmAlone);
  const ScreenArm* load = find(task, state, kArmLoad);
  const std::optional<double> p = fisher_of(task, state);
  return p && alone->discrepant * load->repeats < load->discrepant * alone->repeats &&
         *p <= kLoadLevel;
}

void add_arm(ScreenTask& task, const std::string& state, const char* arm,
             const ScreenTally& tally) {
  ScreenArm out{arm, state, tally.repeats(), tally.lost()};
  if (0 < tally.repeats()) {
    out.discrepant = tally.discrepant();
    out.torn = tally.torn();
    out.upper95 = flake_upper_limit(tally.repeats() - out.discrepant, tally.repeats());
    const auto run = tally.usual().find("");
    out.usual = run == tally.usual().end() ? "" : run->second;
  }
  task.arms.push_back(std::move(out));
  if (0 < tally.lost() && task.lack.empty())
    task.lack = place_of(task.arms.back()) + " has no outcome (" +
                (tally.why_lost().empty() ? "nothing says why" : printable(tally.why_lost())) + ")";
}

std::string why_flaky(const ScreenTask& task, const ScreenSettings& settings) {
  for (const ScreenArm& arm : task.arms)
    if (passes_tolerance(arm, settings))
      return fmt::format(
          "{} of {} repeats of {} came out otherwise{}", arm.discrepant, arm.repeats, place_of(arm),
          arm.torn == 0 ? ""
                        : fmt::format(" (in {} acceptance passed and then did not)", arm.torn));
  if (!task.moved.empty())
    return fmt::format("{} usually comes out otherwise under load than alone", task.moved.front());
  for (const char* state : {kStateReference, kStateSnapshot})
    if (is_worse_under_load(task, state))
      return fmt::format("{} comes out otherwise more often under load (p {:.3f})", state,
                         *fisher_of(task, state));
  return "";
}

// Empty where each state was judged as often as was asked for.
std::string why_unjudged(const ScreenTask& task, const ScreenSettings& settings) {
  if (!task.lack.empty()) return task.lack;
  if (task.arms.empty()) return "no repeat of it was judged";
  for (const ScreenArm& arm : task.arms)
    if (const std::uint64_t asked = arm.arm == kArmAlone ? settings.repeats : settings.load_repeats;
        arm.repeats < asked)
      return fmt::format("{} has {} of {} repeats", place_of(arm), arm.repeats, asked);
  return "";
}

std::string why_undecided(const ScreenTask& task, const ScreenSettings& settings) {
  const double bound = number(settings.bound);
  for (const ScreenArm& arm : task.arms)
    if (bound < arm.upper95)
      return fmt::format("{} may still come out otherwise in up to {}", place_of(arm),
                         share_text(arm.upper95));
  if (find(task, kStateReference, kArmAlone) == nullptr)
    return "it has no reference_patch: what flickers only in a solved state was not seen";
  return "";
}
}  // namespace

std::string share_text(double share) {
  return fmt::format("{:.1f} %", share * 100);
}

void ScreenTally::add(Outcomes outcomes, bool torn) {
  ++repeats_;
  torn_ += torn ? 1U : 0U;
  auto known = std::ranges::find(kinds_, outcomes, &Kind::outcomes);
  if (known == kinds_.end()) known = kinds_.insert(known, Kind{std::move(outcomes)});
  known->times += torn ? 0U : 1U;
}

const ScreenTally::Kind& ScreenTally::mode() const {
  PROCTOR_ASSERT(!kinds_.empty());
  return *std::ranges::max_element(kinds_, {}, &Kind::times);  // the first of the largest
}

std::vector<std::string> ScreenTally::unstable() const {
  if (kinds_.size() < 2)
    return torn_ == 0 ? std::vector<std::string>() : std::vector{std::string("outcome")};
  const Outcomes& right = usual();
  std::set<std::string> differ;
  const auto compare = [&](const Outcomes& one, const Outcomes& other) {
    for (const auto& [name, outcome] : one) {
      const auto it = other.find(name);
      if (it == other.end() || it->second != outcome) differ.insert(name);
    }
  };
  for (const Kind& kind : kinds_) {
    compare(kind.outcomes, right);
    compare(right, kind.outcomes);
  }
  std::set<std::string> tests, checks_of_tests, checks;
  for (const std::string& name : differ) {
    const std::size_t cut = name.find('\n');
    if (cut == std::string::npos) continue;
    tests.insert(name.substr(cut + 1));
    checks_of_tests.insert(name.substr(0, cut));
  }
  for (const std::string& name : differ)
    if (!name.empty() && name.find('\n') == std::string::npos && !checks_of_tests.contains(name))
      checks.insert("check " + name);
  std::vector<std::string> out(tests.begin(), tests.end());
  out.insert(out.end(), checks.begin(), checks.end());
  if (out.empty()) out.emplace_back("outcome");
  return out;
}

void decide(ScreenTask& task, const ScreenSettings& settings) {
  task.load_sensitive = !task.moved.empty() || is_worse_under_load(task, kStateReference) ||
                        is_worse_under_load(task, kStateSnapshot);
  // What flickered did so whatever the repeats that were lost would have shown.
  task.why = why_flaky(task, settings);
  task.verdict = ScreenVerdict::kFlaky;
  if (!task.why.empty()) return;
  task.why = why_unjudged(task, settings);
  task.verdict = ScreenVerdict::kUnjudged;
  if (!task.why.empty()) return;
  task.why = why_undecided(task, settings);
  task.verdict = task.why.empty() ? ScreenVerdict::kStable : ScreenVerdict::kUndecided;
}

ScreenTask judge_screen(const Contract& contract, const std::vector<ScreenState>& states,
                        const ScreenSettings& settings) {
  auto out = named<ScreenTask>(contract);
  std::set<std::string> unstable;
  for (const ScreenState& s : states) {
    add_arm(out, s.state, kArmAlone, s.alone);
    add_arm(out, s.state, kArmLoad, s.load);
    for (const ScreenTally* tally : {&s.alone, &s.load})
      for (std::string& name : tally->unstable())
        if (unstable.size() < kUnstableMax) unstable.insert(std::move(name));
    if (const std::optional<double> p = fisher_of(out, s.state))
      out.fisher = std::min(*p, out.fisher.value_or(1));
    if (s.alone.has_usual() && s.load.has_usual() && s.alone.usual() != s.load.usual())
      out.moved.push_back(s.state);
  }
  out.unstable.assign(unstable.begin(), unstable.end());
  decide(out, settings);
  return out;
}

ScreenTask not_screened_here(const Contract& contract, const std::string& why) {
  auto out = named<ScreenTask>(contract);
  out.lack = out.why = "it cannot run here (" + printable(why, 400) + ")";
  return out;
}

std::uint64_t clean_repeats_for(double bound) {
  PROCTOR_ASSERT(0 < bound && bound < 0.5);
  // Where all agree the limit falls with n, and both tails are known: no search for the rate.
  constexpr double kAlpha = 0.05;
  std::uint64_t n = 1;
  const auto excluded = [&] {
    const auto times = static_cast<double>(n);
    return std::pow(1 - bound, times) + std::pow(bound, times) <= kAlpha;
  };
  while (!excluded()) ++n;
  return n;
}

double chance_to_spoil(double rate, std::uint64_t verdicts) {
  PROCTOR_ASSERT(0 <= rate && rate < 1);
  return -std::expm1(static_cast<double>(verdicts) * std::log1p(-rate));
}

FlakyShare flaky_share(const std::vector<ScreenTask>& tasks) {
  FlakyShare out;
  for (const ScreenTask& task : tasks) {
    out.judged += task.verdict == ScreenVerdict::kUnjudged ? 0U : 1U;
    out.flaky += task.verdict == ScreenVerdict::kFlaky ? 1U : 0U;
  }
  if (const auto interval = clopper_pearson(out.flaky, out.judged)) {
    out.low = interval->low;
    out.high = interval->high;
  }
  return out;
}

std::string quarantine_text(const std::vector<ScreenTask>& tasks) {
  std::string out;
  for (const ScreenTask& task : tasks)
    if (task.verdict == ScreenVerdict::kFlaky || task.verdict == ScreenVerdict::kUndecided)
      out += fmt::format("{}  {}: {}\n", task.id, to_string(task.verdict), task.why);
  return out;
}

// reports/flakiness.json.

std::string to_json_text(const ScreenResults& results) {
  return to_json(results).dump(1, Json::Utf8::kReplace) + "\n";
}

Result<ScreenResults> parse_screen(std::string_view text) {
  PROCTOR_TRY(const Json json, parse_json(text, {.bytes_max = kScreenBytes}));
  PROCTOR_TRY(ScreenResults out, from_json<ScreenResults>(json));
  // Of the counts beside it, whatever the file says.
  for (ScreenTask& task : out.tasks)
    for (ScreenArm& a : task.arms)
      a.upper95 = a.repeats == 0 ? ScreenArm().upper95
                                 : flake_upper_limit(a.repeats - a.discrepant, a.repeats);
  return out;
}

std::optional<ScreenTask> still_holds(const ScreenResults& earlier, const Contract& contract,
                                      const ScreenSettings& settings, std::uint32_t rerun) {
  if (earlier.settings.repeats != settings.repeats ||
      earlier.settings.load_repeats != settings.load_repeats)
    return std::nullopt;
  const auto it = std::ranges::find(earlier.tasks, contract.id, &ScreenTask::id);
  if (it == earlier.tasks.end() || it->contract != contract.digest ||
      it->image != contract.environment.image || it->rerun != contract.rerun_in(rerun))
    return std::nullopt;
  ScreenTask out = *it;
  decide(out, settings);
  // What could not be judged may be judged now, though nothing in the contract changed.
  if (out.verdict == ScreenVerdict::kUnjudged) return std::nullopt;
  return out;
}
}  // namespace proctor
