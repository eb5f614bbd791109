#pragma once
// Whether a provider is worth asking: after so many calls in a row that it failed, calls wait, then
// one of them tries, and its end decides for all.  Of the provider, not of a run: it ends none and
// stands in no campaign (docs/breakers.md).  A run can make a provider fail by what it asks, so a
// row of one run's calls holds back that run alone, and who tried last tries after the others.
// Pure; one thread.
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/contract/call_limits.h"

namespace proctor {

struct StreakRule {
  std::uint64_t failures = 10;  // in a row
  // Of waiting, at first and at most: it doubles with each try that fails.
  std::chrono::milliseconds first{10'000}, most{300'000};
  std::chrono::milliseconds look_again{250};  // while one of them tries
};

class ProviderStreak {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Millis = std::chrono::milliseconds;
  using Rule = StreakRule;
  // Whose call it is: calls of one run have the same, of two that are there together never.
  using Run = const void*;
  explicit ProviderStreak(Rule rule = {}) : rule_(rule) {}

  // Zero: the call may be made.  `probe`: it is the one that tries, and must say how it ended.
  struct May {
    Millis wait{0};
    bool probe = false;
  };
  May may_begin(Run run, Time now);
  enum class End { kAnswered, kFailed, kUnknown };  // the last: it was not asked, or we cut it off
  void ended(Run run, End end, bool probe, Time now);

 private:
  static constexpr std::size_t kRunsKnown = 10'000;
  // Do calls of this run wait?  Not those of one that has not failed yet: others may have asked for
  // what fails, and at a real failure of the provider it costs one call of each run.
  bool holds(Run run) const {
    return open_ && (failed_.contains(run) || kRunsKnown <= failed_.size());
  }
  bool several() const { return 1 < failed_.size(); }
  const Rule rule_;
  std::uint64_t failures_ = 0;
  std::set<Run> failed_;  // whose calls failed in this row, as many as kRunsKnown
  bool open_ = false, probing_ = false;
  Run tried_ = nullptr;  // the last, in vain
  Millis pause_{0};
  Time until_{};
};

// Models whose provider had no room, and until when no call of this worker asks for them: by the
// provider's own word, or longer each time.  All workers of a campaign keep what one of them heard
// (Sync.holds); they name a model by a digest, so that no address leaves its host.  `model` is its
// URL and its name there.  Pure; one thread.
class ProviderHolds {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Millis = std::chrono::milliseconds;

  // Its provider had no room, and named a time or none.
  void no_room(const std::string& model, std::optional<Millis> asked, Time now);
  // A call was answered: the next want of room is a first one.
  void answered(const std::string& model) { providers_[model].unasked = Millis(0); }
  // How long a call waits yet.  `place` in the order of the waiting calls is 0 at first and kept
  // here: they begin one after the other, within a second.
  Millis left(const std::string& model, std::uint32_t& place, Time now);

  // The holds that this worker's calls heard of; and those that others did.
  std::vector<ProviderHold> own(Time now) const;
  void take(const std::vector<ProviderHold>& of_others, Time now);
  static std::string name_of(const std::string& model);

 private:
  struct Provider {
    Millis unasked{0};         // the latest hold without a time of the provider's
    std::uint32_t places = 0;  // given since the hold began
    Time own{};                // until when, by what was heard here
    Time until{};              // ... or by others
  };
  std::map<std::string, Provider> providers_;
};

}  // namespace proctor
