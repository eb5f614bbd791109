#include "coordinator/page/data_table.h"

#include "common/base/result.h"

namespace proctor::page {

void DataTable::row(const std::vector<Markup>& cells) {
  PROCTOR_ASSERT(cells.size() == head_.size());
  Markup line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const bool is_number = kinds_[i] == Column::kNumber;
    if (i == 0)
      line << element("th", {{"scope", "row"}}, cells[i]);
    else if (is_number)
      line << element("td", {{"class", "n"}}, cells[i]);
    else
      line << element("td", cells[i]);
  }
  body_ << (apart_ ? element("tr", {{"class", "apart"}}, line) : element("tr", line)) << line_end();
  apart_ = false;
  ++rows_;
}

Markup DataTable::finish() const {
  Markup head;
  for (std::size_t i = 0; i < head_.size(); ++i)
    head << (kinds_[i] == Column::kNumber
                 ? element("th", {{"scope", "col"}, {"class", "n"}}, head_[i])
                 : element("th", {{"scope", "col"}}, head_[i]));
  const Markup table =
      element("table", element("caption", {{"id", numbered("table-", id_)}}, caption_) +
                           element("thead", element("tr", head)) + line_end() +
                           element("tbody", line_end() + body_));
  return element("div",
                 {{"class", "scroll"},
                  {"role", "region"},
                  {"tabindex", 0},
                  {"aria-labelledby", numbered("table-", id_)}},
                 table) +
         line_end();
}

}  // namespace proctor::page
