#pragma once
// What a result becomes once nobody can check it: its evidence was lost, damaged, refused, or never
// came.  Pure; any thread.
#include <string>
#include <utility>

#include "common/wire/messages.h"

namespace proctor::wire {

// No outcome may stand on it, it names no evidence, and a new attempt may be made.  Usage, times
// and identity stay.
inline void lose_evidence(ResultMessage& result, std::string why) {
  result.outcome = RunOutcome::kInvalid;
  result.termination = Termination::kInfrastructure;
  result.infrastructure = true;
  result.overload = false;
  result.fault = Fault::kHost;
  result.cause.clear();
  result.rationale = std::move(why);
  result.report = result.archive = Digest();
  result.archive_bytes = 0;
}

}  // namespace proctor::wire
