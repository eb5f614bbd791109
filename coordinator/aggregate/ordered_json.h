#pragma once
// JSON of the room's exports: members in the order of the tables, money with its micro-units exact.
// Private to the room.
#include <optional>
#include <string>

#include "common/base/json.h"
#include "common/base/money.h"
#include "common/stats/interval.h"

namespace proctor::aggregate {

using Ordered = Json;

inline std::string dumped(const Ordered& value) {
  return value.dump_as_built(-1, Json::Utf8::kReplace);
}
template <class T>
Ordered or_null(const std::optional<T>& value) {
  return value ? Ordered(*value) : Ordered(nullptr);
}
inline Ordered interval_json(const std::optional<Interval>& interval) {
  return interval ? Ordered::array({interval->low, interval->high}) : Ordered(nullptr);
}
inline Ordered money_json(MicroUsd amount) {
  return {{"usd", format_usd_exact(amount)}, {"micro_usd", amount.micros()}};
}
inline Ordered money_or_null(const std::optional<MicroUsd>& amount) {
  return amount ? money_json(*amount) : Ordered(nullptr);
}

}  // namespace proctor::aggregate
