#include "coordinator/aggregate/model_use.h"

namespace proctor {
ModelUse operator+(const ModelUse& a, const ModelUse& b) {
  ModelUse out = a;
  for (const ModelCount& m : kModelCounts) out.*m.count += b.*m.count;
  out.at_ceiling = a.at_ceiling + b.at_ceiling;
  return out;
}

ModelUse model_use_of(const Usage& usage) {
  ModelUse out;
  for (const ModelCount& m : kModelCounts) out.*m.count = usage.*m.counter;
  out.at_ceiling = MicroUsd::from_micros(static_cast<std::int64_t>(usage.ceiling_micros));
  return out;
}
}  // namespace proctor
