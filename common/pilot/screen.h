#pragma once
// How often the checks of a state that does not change come out otherwise: the reference and the
// snapshot itself, each judged so many times alone on the machine and so many times under load.
// Verdicts have the rate that is still not excluded: a clean screen of 20 repeats allows 13.9 %.
// Pure.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/digest.h"
#include "common/base/fields.h"
#include "common/base/result.h"
#include "common/base/words.h"

namespace proctor {
struct Contract;

inline constexpr std::uint32_t kScreenRepeatsMax = 10'000;

// Shares are decimal text, as they are typed and kept.
struct ScreenSettings {
  std::uint32_t repeats = 60, load_repeats = 60;  // of each state
  std::string tolerance = "0";  // of the suite: share of discrepant repeats of the reference
  std::string snapshot_tolerance = "0";  // of the organisation: of the untouched snapshot
  std::string bound = "0.05";            // flake rate that has to be excluded
  friend bool operator==(const ScreenSettings&, const ScreenSettings&) = default;
};
void fields(auto& v, Is<ScreenSettings> auto& s) {
  v("bound", s.bound);
  v("tolerance", s.tolerance);
  v("snapshot_tolerance", s.snapshot_tolerance);
  v("repeats", s.repeats);
  v("load_repeats", s.load_repeats);
}

inline constexpr const char* kStateReference = "reference";
inline constexpr const char* kStateSnapshot = "snapshot";
inline constexpr const char* kArmAlone = "serial";
inline constexpr const char* kArmLoad = "load";

// Outcomes of one repeat, by name: "" is the run, "c" check c, "c\nt" test t of check c.
using Outcomes = std::map<std::string, std::string>;

// The repeats of one state in one arm, as they are counted.  Not thread-safe.
class ScreenTally {
 public:
  // `torn`: acceptance passed and then, repeated, did not: it agrees with no other, nor with
  // itself.
  void add(Outcomes outcomes, bool torn = false);
  // One that has no outcome: no money, a stop, a host that failed.
  void lose(std::string why) { why_lost_ = lost_++ == 0 ? std::move(why) : why_lost_; }

  std::uint64_t repeats() const { return repeats_; }
  std::uint64_t lost() const { return lost_; }
  const std::string& why_lost() const { return why_lost_; }
  // The outcome of most repeats, of equal ones the first that was seen.  Requires: 0 < repeats().
  const Outcomes& usual() const { return mode().outcomes; }
  bool has_usual() const { return !kinds_.empty() && 0 < mode().times; }
  std::uint64_t discrepant() const { return kinds_.empty() ? 0 : repeats_ - mode().times; }
  std::uint64_t torn() const { return torn_; }
  // Tests whose outcome was not always the usual one; checks no test of which was; else "outcome".
  std::vector<std::string> unstable() const;

 private:
  struct Kind {
    Outcomes outcomes;
    std::uint64_t times = 0;  // but for torn ones
  };
  const Kind& mode() const;
  std::vector<Kind> kinds_;  // in the order in which they were seen
  std::uint64_t repeats_ = 0, lost_ = 0, torn_ = 0;
  std::string why_lost_;
};

struct ScreenState {
  std::string state;  // kStateReference, kStateSnapshot
  ScreenTally alone, load;
};

struct ScreenArm {
  std::string arm, state;
  std::uint64_t repeats = 0, lost = 0;
  std::uint64_t discrepant = 0;
  std::uint64_t torn = 0;  // among these: acceptance passed and then did not
  double upper95 = 0.5;    // of the flake rate; 1/2 excludes nothing
  std::string usual{};     // outcome of the run
};
void fields(auto& v, Is<ScreenArm> auto& a) {
  v("arm", a.arm);
  v("state", a.state);
  v("repeats", a.repeats, {.most = kScreenRepeatsMax});
  v("lost", a.lost, {.most = kScreenRepeatsMax});
  v("discrepant", a.discrepant, {.most = a.repeats});
  v("torn", a.torn, {.most = a.discrepant, .optional = true});
  v("upper95", a.upper95, {.digits = true});
  v("usual", a.usual);
  v.require(a.arm == kArmAlone || a.arm == kArmLoad, "arm", "expected serial or load");
  v.require(a.state == kStateReference || a.state == kStateSnapshot, "state",
            "expected reference or snapshot");
}

enum class ScreenVerdict { kStable, kUndecided, kFlaky, kUnjudged };
constexpr auto words(ScreenVerdict) {
  using enum ScreenVerdict;
  return std::to_array<Word<ScreenVerdict>>(
      {{"stable", kStable}, {"undecided", kUndecided}, {"flaky", kFlaky}, {"unjudged", kUnjudged}});
}

struct ScreenTask {
  std::string id;
  Digest contract;
  std::string image;
  std::uint64_t rerun = 0;  // Contract::rerun_in() its campaign
  // Facts.
  std::vector<ScreenArm> arms;
  std::optional<double>
      fisher;  // one-sided: of the states the smallest; nothing: an arm is missing
  std::vector<std::string> moved;     // states that usually come out otherwise under load
  std::vector<std::string> unstable;  // at most kUnstableMax
  std::string lack;                   // why there is no more to judge by; empty: nothing lacks
  // Conclusions from them (decide).
  bool load_sensitive = false;
  ScreenVerdict verdict = ScreenVerdict::kUnjudged;
  std::string why;  // empty where it is stable
};
void fields(auto& v, Is<ScreenTask> auto& t) {
  v("id", t.id);
  v("contract", t.contract);
  v("image", t.image);
  v("rerun", t.rerun, kOptional);
  v("arms", t.arms);
  v("fisher_one_sided", t.fisher, {.digits = true});
  v("moved", t.moved);
  v("unstable", t.unstable);
  v("lack", t.lack);
  v("load_sensitive", t.load_sensitive);
  v("verdict", t.verdict);
  v("why", t.why);
}

inline constexpr std::size_t kUnstableMax = 100;

// Requires: no more than one of each state.
ScreenTask judge_screen(const Contract& contract, const std::vector<ScreenState>& states,
                        const ScreenSettings& settings);
// The same facts by other settings.
void decide(ScreenTask& task, const ScreenSettings& settings);
// The entry of a contract that was not run: its host lacks something.
ScreenTask not_screened_here(const Contract& contract, const std::string& why);

// "13.9 %"
std::string share_text(double share);
// The smallest number of clean repeats that excludes this flake rate.  Requires: 0 < bound < 1/2.
std::uint64_t clean_repeats_for(double bound);
// The chance that a flake of this rate spoils at least one of so many verdicts: 1 - (1-f)^n.
double chance_to_spoil(double rate, std::uint64_t verdicts);

// Flaky tasks of those that were judged, with Clopper and Pearson's interval; 0 to 1 of none.
struct FlakyShare {
  std::uint64_t flaky = 0, judged = 0;
  double low = 0, high = 1;
};
FlakyShare flaky_share(const std::vector<ScreenTask>& tasks);

// The tasks that must not be measured with, and why; empty: none.
std::string quarantine_text(const std::vector<ScreenTask>& tasks);

// reports/flakiness.json: what the screen counted of each contract, so that a task whose contract
// is still the same is not run again.  Numbers with a fraction are text.

inline constexpr std::size_t kScreenBytes = std::size_t{64} << 20;

struct ScreenResults {
  std::string campaign;  // its name
  ScreenSettings settings;
  std::vector<ScreenTask> tasks;
  std::int64_t usd_micros = 0;  // of the last time that something was run
};
void fields(auto& v, Is<ScreenResults> auto& r) {
  v.follows("format", "proctor-flakiness-1");
  v("campaign", r.campaign);
  v("settings", r.settings);
  v("tasks", r.tasks);
  v("usd_micros", r.usd_micros);
}

std::string to_json_text(const ScreenResults& results);
// kInvalid: not such a file.
Result<ScreenResults> parse_screen(std::string_view text);

// The counts of `earlier` for a contract, judged by `settings`; nullopt: it has to be run.
// Tolerances and bound may be others than they were; how often each state was judged may not.
// `rerun`: the campaign's.
std::optional<ScreenTask> still_holds(const ScreenResults& earlier, const Contract& contract,
                                      const ScreenSettings& settings, std::uint32_t rerun = 0);
}  // namespace proctor
