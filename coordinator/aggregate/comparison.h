#pragma once
// Projection beside what was observed, for the report (R109): two columns that are never added.
// Made by comparison() of projection.h.  Plain data.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/money.h"

namespace proctor {

struct ComparisonRow {
  std::string by;     // "total", "category", "envelope"
  std::string name;   // "all", "model", "task:json-lib"
  MicroUsd expected;  // of the whole plan
  MicroUsd of_paid;   // of the runs that were paid for at least once
  MicroUsd actual;    // metered and booked; of an envelope: charged
  // actual / of_paid in thousandths, rounded to the nearest; nothing where nothing was expected.
  std::optional<std::int64_t> ratio_thousandths;
};

struct Comparison {
  bool registered = false;  // the inputs were, before the first run
  bool abstract = false;    // in units of the built-in prices, not dollars
  std::string inputs;       // digest of the inputs, short
  std::uint64_t runs = 0, paid = 0;
  std::vector<ComparisonRow> rows;
};

}  // namespace proctor
