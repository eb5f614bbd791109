#pragma once
// The same as an object of the exports.  Private to the room.
#include "coordinator/aggregate/model_use.h"
#include "coordinator/aggregate/ordered_json.h"

namespace proctor::aggregate {

Ordered model_use_json(const ModelUse& use);

}  // namespace proctor::aggregate
