#pragma once
// How the renderers of reports write, in this room and in those above: numbers, names and tables.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
// "a, b, c", each printable.
std::string listed_names(const std::vector<std::string>& names);
// "7 runs planned, 6 ended, 1 parked, 0 open", and who else there is.
std::string runs_line(const ReportRow& row);
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
// Columns a terminal needs: code points of UTF-8.
std::size_t display_width(std::string_view text);

// a * b / c, rounded down, in 128 bits; at most 2^63 - 1.  Requires: none is negative, 0 < c.
std::int64_t scaled(std::int64_t a, std::int64_t b, std::int64_t c);

// A table of the reports on a terminal, private to the room.  Cells by column: the first are names
// and stand left, numbers stand right.
class Table {
 public:
  enum class Rule { kNone, kUnderHeader };
  explicit Table(std::vector<std::string> header, std::size_t names = 2,
                 Rule rule = Rule::kUnderHeader)
      : names_(names), rule_(rule) {
    add(std::move(header));
  }
  void add(std::vector<std::string> cells) {
    widths_.resize(std::max(widths_.size(), cells.size()));
    for (std::size_t i = 0; i < cells.size(); ++i)
      widths_[i] = std::max(widths_[i], display_width(cells[i]));
    lines_.push_back(std::move(cells));
  }
  // Rows of one stratum stand together: another name leaves a blank line before the next row.
  void group(const std::string& name) {
    if (1 < lines_.size() && name != group_) gaps_.push_back(lines_.size());
    group_ = name;
  }
  void append_to(std::string& out) const {
    for (std::size_t n = 0; n < lines_.size(); ++n) {
      if (std::ranges::binary_search(gaps_, n)) out += "\n";
      append_line(out, lines_[n]);
      if (n == 0 && rule_ == Rule::kUnderHeader) append_rule(out);
    }
  }

 private:
  void append_line(std::string& out, const std::vector<std::string>& cells) const {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string padding(widths_[i] - display_width(cells[i]), ' ');
      line += i < names_ ? cells[i] + padding : padding + cells[i];
      line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  void append_rule(std::string& out) const {
    std::size_t width = 0;
    for (const std::size_t w : widths_) width += w + 2;
    out += std::string(width - 2, '-') + "\n";
  }
  std::size_t names_;
  Rule rule_;
  std::vector<std::vector<std::string>> lines_;
  std::vector<std::size_t> widths_;
  std::vector<std::size_t> gaps_;  // ascending: lines with a blank one before them
  std::string group_;
};
}  // namespace proctor::aggregate
