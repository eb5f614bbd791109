#pragma once
// What a filter can ask of a run.  Private to the room.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "coordinator/aggregate/report.h"
#include "coordinator/aggregate/run_filter.h"

namespace proctor::aggregate {

struct FilterField {
  std::size_t word = 0;              // position in filter_words()
  std::optional<std::size_t> key{};  // a stratum instead: position of its key
};

// kInvalid: there is none of that name; the nearest is named.
Result<FilterField> field_named(std::string_view name, const FilterNames& names);
bool is_number_field(const FilterField& field);
std::string_view text_of(const FilterField& field, const RunRecord& run);
// Money in micro-dollars, time in milliseconds, else a count; nothing: the run has none.
std::optional<std::int64_t> number_of(const FilterField& field, const RunRecord& run);
// "0.50" of money, "90", "90s" or "2m" of time.
Result<std::int64_t> amount_of(const FilterField& field, const std::string& value);
// A value that no run can have is a typing mistake: kInvalid with the nearest one.
Status check_value(const FilterField& field, const std::string& value, const FilterNames& names);

}  // namespace proctor::aggregate
