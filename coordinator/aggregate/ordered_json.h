#pragma once
// JSON of the room's exports: members in the order of the tables, money with its micro-units exact.
// Private to the room.
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/json.h"
#include "common/base/money.h"
#include "common/stats/interval.h"

namespace proctor::aggregate {
using Ordered = Json;

inline std::string dumped(const Ordered& value) {
  return value.dump_as_built(-1, Json::Utf8::kReplace);
}
// JSON text of this shape: each '$' of it is the next value, each '#' one that is a number, as a
// text of twelve digits, and each '@' one that is JSON text itself and is taken unescaped.  For
// what is written alone, and once.  Requires: as many of both; a '$' between quotes is an integer.
std::string filled(std::string_view shape, std::initializer_list<Ordered> values);
// A list of the items' JSON texts.
template <class Text = std::identity>
std::string listed(const auto& items, const Text& text = {}) {
  std::string out;
  for (const auto& item : items) out += (out.empty() ? "[" : ",") + text(item);
  return out.empty() ? "[]" : out + "]";
}
// Of rows, by a table of columns (columns.h).
std::string listed_rows(const auto& columns, const auto& rows) {
  return listed(rows, [&](const auto& row) { return dumped(columns.json(row)); });
}
template <class T>
Ordered or_null(const std::optional<T>& value) {
  return value ? Ordered(*value) : Ordered(nullptr);
}
// null where it is empty
inline Ordered or_null(const std::string& text) {
  return text.empty() ? Ordered(nullptr) : Ordered(text);
}
inline Ordered interval_json(const std::optional<Interval>& interval) {
  return interval ? Ordered::array({interval->low, interval->high}) : Ordered(nullptr);
}
inline Ordered why_json(Why why) {
  return why == Why::kOk ? Ordered(nullptr) : Ordered(word_of(why));
}
inline Ordered money_json(MicroUsd amount) {
  return {{"usd", format_usd_exact(amount)}, {"micro_usd", amount.micros()}};
}

}  // namespace proctor::aggregate

namespace proctor {
struct Analysis;
struct Drift;
struct PriceContrast;
struct ReportDetails;
struct RubricTables;
struct Weighted;
enum class JsonForm : std::uint8_t;
}  // namespace proctor

namespace proctor::aggregate {
// The comparisons and details of a report for programs.

std::string analysis_json(const Analysis& analysis);
Ordered estimate_json(const Estimate& estimate);
Ordered weighted_json(const std::optional<Weighted>& weighted);
std::string details_json(const ReportDetails& details, JsonForm form);
std::string drift_json(const Drift& drift);
std::string rubric_json(const RubricTables& tables);
std::string price_contrast_json(const PriceContrast& contrast);
}  // namespace proctor::aggregate
