#include "coordinator/cvdp/report/grid.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "coordinator/cvdp/pycompat/decimal.h"
#include "coordinator/cvdp/pycompat/python_text.h"

namespace proctor::cvdp {
namespace {

enum class ColumnKind { kWhole, kReal, kText };

std::size_t width_of(std::string_view line) {
  std::size_t n = 0;
  for (std::size_t at = 0; at < line.size(); ++n) next_code_point(line, at);
  return n;
}
std::size_t width_of_lines(const std::string& cell) {
  std::size_t n = 0;
  for (const std::string_view line : split_lines(cell)) n = std::max(n, width_of(line));
  return n;
}

ColumnKind kind_of(const std::string& cell) {
  const std::string_view s = strip_text(cell);
  std::size_t at = !s.empty() && (s[0] == '-' || s[0] == '+') ? 1 : 0;
  std::size_t digits = 0;
  bool point = false;
  for (; at < s.size(); ++at) {
    if (s[at] == '.' && !point) {
      point = true;
    } else if ('0' <= s[at] && s[at] <= '9') {
      ++digits;
    } else {
      break;
    }
  }
  if (digits == 0) return ColumnKind::kText;
  if (at == s.size()) return point ? ColumnKind::kReal : ColumnKind::kWhole;
  if (s[at] != 'e' && s[at] != 'E') return ColumnKind::kText;
  if (++at < s.size() && (s[at] == '-' || s[at] == '+')) ++at;
  const bool exponent =
      at < s.size() && std::all_of(s.begin() + static_cast<std::ptrdiff_t>(at), s.end(),
                                   [](char c) { return '0' <= c && c <= '9'; });
  return exponent ? ColumnKind::kReal : ColumnKind::kText;
}

// Digits behind the point, counting the point; 0: there is none.
std::size_t tail_of(const std::string& number) {
  std::size_t at = number.rfind('.');
  if (at == std::string::npos) at = number.find_first_of("eE");
  return at == std::string::npos ? 0 : number.size() - at;
}

void align_numbers(std::vector<std::string*>& cells, ColumnKind kind) {
  std::size_t tail = 0;
  for (std::string* cell : cells) {
    if (kind == ColumnKind::kReal) *cell = six_digits(std::strtod(cell->c_str(), nullptr));
    tail = std::max(tail, tail_of(*cell));
  }
  for (std::string* cell : cells) cell->append(tail - tail_of(*cell), ' ');
}

std::string padded(std::string_view line, std::size_t width, bool left) {
  const std::string space(width - std::min(width, width_of(line)), ' ');
  return left ? std::string(line) + space : space + std::string(line);
}

class GridText {
 public:
  explicit GridText(Grid grid) : g_(std::move(grid)) {
    const std::size_t columns =
        g_.header.empty() ? (g_.rows.empty() ? 0 : g_.rows[0].size()) : g_.header.size();
    for (std::size_t c = 0; c < columns; ++c) column(c);
  }
  std::string text() const {
    std::string out = rule('-');
    if (!g_.header.empty()) out += row(g_.header) + rule('=');
    for (const auto& r : g_.rows) out += row(r) + rule('-');
    out.pop_back();
    return out;
  }

 private:
  void column(std::size_t c) {
    std::vector<std::string*> cells;
    ColumnKind kind = ColumnKind::kWhole;
    for (auto& row : g_.rows) {
      cells.push_back(&row[c]);
      kind = std::max(kind, kind_of(row[c]));
    }
    constexpr std::size_t kHeaderRoom = 2;
    std::size_t width = g_.header.empty() ? 0 : width_of_lines(g_.header[c]) + kHeaderRoom;
    if (kind == ColumnKind::kText)
      for (std::string* cell : cells) *cell = std::string(strip_text(*cell));
    else
      align_numbers(cells, kind);
    for (const std::string* cell : cells) width = std::max(width, width_of_lines(*cell));
    widths_.push_back(width);
    left_.push_back(kind == ColumnKind::kText || cells.empty());
  }
  std::string rule(char mark) const {
    std::string out = "+";
    for (const std::size_t w : widths_) out += std::string(w + 2, mark) + "+";
    return out + "\n";
  }
  std::string row(const std::vector<std::string>& cells) const {
    std::vector<std::vector<std::string_view>> lines;
    std::size_t height = 1;
    for (const std::string& cell : cells) {
      lines.push_back(split_lines(cell));
      height = std::max(height, lines.back().size());
    }
    std::string out;
    for (std::size_t i = 0; i < height; ++i) {
      out += "|";
      for (std::size_t c = 0; c < cells.size(); ++c)
        out +=
            " " +
            padded(i < lines[c].size() ? lines[c][i] : std::string_view(), widths_[c], left_[c]) +
            " |";
      out += "\n";
    }
    return out;
  }
  Grid g_;
  std::vector<std::size_t> widths_;
  std::vector<bool> left_;
};

}  // namespace

std::string render_grid(const Grid& grid) {
  return GridText(grid).text();
}

}  // namespace proctor::cvdp
