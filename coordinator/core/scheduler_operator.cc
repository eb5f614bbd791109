// The scheduler's half that deals with the operator's acts (operator.h).
#include <utility>

#include "coordinator/core/scheduler.h"

namespace proctor {

void Scheduler::handle(const OperatorAsked& e) {
  out_.push_back(
      Answer{e.ticket, {OperatorAnswer::Verdict::kRefused, "this coordinator cannot do that yet"}});
}

}  // namespace proctor
