#pragma once
// How the renderers write numbers and names: of this room, and of coordinator/page.
#include <optional>
#include <string>
#include <string_view>

#include "coordinator/aggregate/report.h"

namespace proctor::aggregate {

// Words in lines of at most 100 columns, the first after `first`, the others after as many spaces;
// four more after a `first` of spaces alone, so that no agent's words look like an entry.
void append_wrapped(std::string& out, const std::string& first, std::string_view words);
// "53.1" of 0.53125.
std::string percent(double rate);
// "95 %" of alpha 0.05.
std::string confidence(double alpha);
// "53.1 % [36.4, 69.1]", or "-" when there is no rate.
std::string percent_with_interval(const std::optional<double>& rate,
                                  const std::optional<Interval>& interval);
// "[36.4, 69.1]", or "-".
std::string percent_interval(const std::optional<Interval>& interval);
std::string points(double difference);  // "+64.3"
// "[-100.0, +35.2]" points of a difference of rates: as with those, what is shown is clamped.
std::string points_between(const Interval& difference);
// The same interval, in no more than all points.
Interval shown_difference(const Interval& difference);
// "12.3" seconds, or "-".
std::string seconds(const std::optional<double>& ms);
// "0.0117", or "<0.0001".
std::string p_words(double p);
// "all" or "language=go".
std::string stratum_name(const ReportRow& row);
// A group of a text table: the rows of a stratum, and apart from them those of its controls.
std::string row_group(const ReportRow& row);
// Is there anything that agents said of themselves, or should have?  Else no table has a column of
// it.
bool shows_self_reported(const CampaignReport& report);
// "0.10", or "unmetered".
std::string self_reported_cell(const ReportRow& row);
std::string number_or_empty(const std::optional<double>& value);  // for CSV
// Columns a terminal needs: code points of UTF-8.
std::size_t display_width(std::string_view text);

// a * b / c, rounded down, in 128 bits; at most 2^63 - 1.  Requires: none is negative, 0 < c.
std::int64_t scaled(std::int64_t a, std::int64_t b, std::int64_t c);

}  // namespace proctor::aggregate
