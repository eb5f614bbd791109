#pragma once
// Circuit breakers: deterministic folds over the events of a run's trace, in their order (R104).
// The same fold runs in the worker while the agent works and in `proctor verify` afterwards, which
// must find the same trips behind the same events (docs/breakers.md).  Pure; not thread-safe.
//
// It hears: workspace.state, model.request, model.response, model.refused, tool.call,
// tool.result, dependency.install, stage.changed.  Times are the `at_ms` of payloads.  A fact that
// is not known trips nothing: before the first workspace.state no breaker asks whether the state
// changed.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/json.h"
#include "common/base/words.h"
#include "common/contract/call_limits.h"

namespace proctor {
enum class BreakerAction { kNote, kThrottle, kSuspendWrites, kStop };
constexpr auto words(BreakerAction) {
  using enum BreakerAction;
  return std::to_array<Word<BreakerAction>>({{"note", kNote},
                                             {"throttle", kThrottle},
                                             {"suspend_writes", kSuspendWrites},
                                             {"stop", kStop}});
}

inline bool is_breaker(std::string_view code) {
  return std::ranges::find(kBreakerKinds, code, &BreakerKind::code) != kBreakerKinds.end();
}

struct BreakerTrip {
  std::string code;
  BreakerAction action = BreakerAction::kNote;
  Json signals;     // what it counted
  std::string why;  // for people
};

// Payloads of the two events of a trip: monitor.alert, and monitor.intervention behind it.
Json alert_json(const BreakerTrip& trip, const std::string& stage);
Json intervention_json(const BreakerTrip& trip, std::uint64_t alert);

// As gateway.open has them: those of kBreakerKinds, with 0 for a parameter that is no count.
Breakers breakers_in(const Json& payload);

class BreakerFold {
 public:
  explicit BreakerFold(Breakers breakers) : breakers_(std::move(breakers)) {}

  static bool hears(std::string_view type);
  // The breakers that trip at this event.  After one has stopped the run it is empty.
  std::vector<BreakerTrip> on(std::string_view type, const Json& payload);

  // How long the next answer waits: to a request of this key, or to any call.  Asked before the
  // event of that call is heard.
  std::uint64_t wait_seconds(const std::string& key) const;
  // Was a request of this key answered in this state of the workspace?
  bool was_answered(const std::string& key) const {
    return 0 < count_of(in_state("request " + key));
  }
  bool writes_suspended() const { return suspended_; }
  bool stopped() const { return stopped_; }
  const std::string& stage() const { return stage_; }

 private:
  struct Tool {
    std::string name, arguments;  // the second by digest
  };
  std::optional<std::uint64_t> limit(std::string_view code, std::string_view parameter) const;
  std::uint64_t counted(const std::string& what);
  std::uint64_t count_of(const std::string& what) const;
  std::string in_state(std::string_view what) const;

  void new_state(std::string state);
  void answered(const Json& payload);
  void refused(const Json& payload);
  void tool_call(const Json& payload);
  void tool_result(const Json& payload);
  void installed(const Json& payload);
  void identical(std::uint64_t times, std::string_view what, Json signals);
  void progress();
  void ceiling();
  void stepped(std::string_view code, std::uint64_t times, Json signals, const std::string& why);
  void trip(std::string_view code, BreakerAction action, Json signals, std::string why);
  void test_ended(const Tool& tool, bool failed);
  void write_ended(bool failed);

  const Breakers breakers_;
  std::vector<BreakerTrip> trips_;  // at the present event
  bool stopped_ = false, suspended_ = false;
  std::string stage_ = "test";  // an agent without stages may do everything
  std::string state_;           // of the workspace; empty: not known
  std::set<std::string> states_;
  std::uint64_t now_ms_ = 0, progress_ms_ = 0;
  std::uint64_t model_calls_ = 0, tool_calls_ = 0;              // of the whole run
  std::uint64_t model_calls_since_ = 0, tool_calls_since_ = 0;  // the last new state
  int progress_told_ = 0;
  std::uint64_t refused_ = 0;                      // in a row
  std::uint64_t failed_writes_ = 0, reads_ = 0;    // in a row; since the suspension
  std::map<std::uint64_t, std::string> requests_;  // open ones: their keys
  std::map<std::string, Tool> tools_;              // open calls, by id
  std::map<std::string, std::uint64_t> counts_;    // of what was done in which state
  std::deque<std::string> counts_order_;           // oldest first
  std::deque<std::uint64_t> recent_tools_;         // times
  std::vector<std::string> failed_in_;             // states in which a suite failed
  std::uint64_t oscillations_ = 0;
  std::uint64_t next_wait_ = 0;
};
}  // namespace proctor
