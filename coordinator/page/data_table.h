#pragma once
// Tables of a page: a caption, a name for each row, and a region that scrolls where a screen is
// narrow.
#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/page/markup.h"

namespace proctor::page {

class DataTable {
 public:
  enum class Column : std::uint8_t { kWords, kNumber };
  // `id`: of this table among those of the page.
  DataTable(std::uint64_t id, Markup caption) : id_(id), caption_(std::move(caption)) {}
  DataTable& words(Markup name) { return column(std::move(name), Column::kWords); }
  DataTable& numbers(Markup name) { return column(std::move(name), Column::kNumber); }
  // The first cell names the row.  Requires: a cell for each column.
  void row(const std::vector<Markup>& cells);
  // Another name leaves a line above the next row.
  void group(const std::string& name) {
    apart_ = 0 < rows_ && name != group_;
    group_ = name;
  }
  bool empty() const { return rows_ == 0; }
  Markup finish() const;

 private:
  DataTable& column(Markup name, Column kind) {
    head_.push_back(std::move(name));
    kinds_.push_back(kind);
    return *this;
  }
  std::uint64_t id_;
  Markup caption_;
  std::vector<Markup> head_;
  std::vector<Column> kinds_;
  Markup body_;
  std::size_t rows_ = 0;
  bool apart_ = false;
  std::string group_;
};

}  // namespace proctor::page
