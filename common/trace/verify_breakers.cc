#include "common/trace/verify_breakers.h"

#include <algorithm>

#include "common/base/text.h"
#include "common/trace/evidence.h"
#include "common/trace/model_calls.h"

namespace proctor {

void BreakerAudit::nothing_due(std::uint64_t line) {
  if (due_.empty() && !told_) return;
  const std::string& code = told_ ? told_->first.code : due_.front().code;
  problem_(kEventsFile,
           "the breaker " + code + " trips before this event, and " +
               (told_ ? "nothing says what was done" : "the trace has no alert of it") + " (R104)",
           line);
  due_.clear();
  told_.reset();
}

void BreakerAudit::on(const Event& event, std::uint64_t line) {
  if (event.type == "gateway.open") {
    // A worker that was killed between an event and its alert has told neither.
    due_.clear();
    told_.reset();
    fold_.emplace(breakers_in(event.payload));
    return;
  }
  if (event.type == "monitor.alert") return alert(event, line);
  if (event.type == "monitor.intervention") return intervention(event, line);
  if (event.type == "gateway.closed") return nothing_due(line);
  if (!fold_ || !BreakerFold::hears(event.type)) return;
  nothing_due(line);
  for (BreakerTrip& trip : fold_->on(event.type, event.payload)) due_.push_back(std::move(trip));
  stage_ = fold_->stage();
}

void BreakerAudit::alert(const Event& event, std::uint64_t line) {
  const std::string code = text_in(event.payload, "code");
  const bool ours = std::ranges::any_of(kBreakerKinds,
                                        [&](const BreakerKind& kind) { return kind.code == code; });
  if (!ours) return;  // another monitor's
  if (due_.empty() || told_)
    return problem_(kEventsFile, "an alert of the breaker " + code + " where none trips (R104)",
                    line);
  BreakerTrip trip = std::move(due_.front());
  due_.pop_front();
  if (event.payload != alert_json(trip, stage_))
    problem_(kEventsFile,
             "the alert is not that of the breaker " + trip.code + " as it trips here (R104)",
             line);
  told_.emplace(std::move(trip), event.seq);
}

void BreakerAudit::intervention(const Event& event, std::uint64_t line) {
  if (!event.payload.contains("breaker")) return;
  if (!told_ || event.payload != intervention_json(told_->first, told_->second))
    problem_(kEventsFile, "an intervention that no breaker's alert before it asks for (R104)",
             line);
  stopped_ = stopped_ || (told_ && told_->first.action == BreakerAction::kStop);
  told_.reset();
}

}  // namespace proctor
