#pragma once
// What a lifecycle was told, as JSON, so that a later life of the worker can bring another
// RunLifecycle to the same place.  Pure.  Events that only ever end an attempt, or come after its
// patch, have no form here.
#include <optional>

#include "common/base/json.h"
#include "worker/core/run_lifecycle.h"

namespace proctor {

std::optional<Json> event_json(const LifecycleEvent& event);
// kInvalid names the field.
Result<LifecycleEvent> event_from(const Json& json);

}  // namespace proctor
