#pragma once
// Tables of the reports on a terminal.  Private to the room.
#include <algorithm>
#include <string>
#include <vector>

#include "coordinator/aggregate/format.h"

namespace proctor::aggregate {

// Cells by column: the first are names and stand left, numbers stand right.
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
