#pragma once
// Folds a run's trace once more through its circuit breakers: each must have tripped behind the
// event that trips it, with the same signals, and none elsewhere (R104).  Pure; one thread.
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "common/trace/breakers.h"
#include "common/trace/event.h"

namespace proctor {

class BreakerAudit {
 public:
  using Problem = std::function<void(std::string_view file, std::string what, std::uint64_t line)>;
  explicit BreakerAudit(Problem problem) : problem_(std::move(problem)) {}
  void on(const Event& event, std::uint64_t line);
  // Has one of them ended the run?
  bool stopped() const { return stopped_; }

 private:
  void alert(const Event& event, std::uint64_t line);
  void intervention(const Event& event, std::uint64_t line);
  void nothing_due(std::uint64_t line);

  Problem problem_;
  std::optional<BreakerFold> fold_;  // of the present session of the gateway
  std::deque<BreakerTrip> due_;      // tripped, and not told yet
  std::string stage_;                // when they did
  std::optional<std::pair<BreakerTrip, std::uint64_t>> told_;  // whose intervention is next
  bool stopped_ = false;
};

}  // namespace proctor
