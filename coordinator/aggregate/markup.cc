#include "coordinator/aggregate/markup.h"

#include <fmt/format.h>
#include <array>
#include <cmath>

#include "common/base/parse.h"
#include "common/base/result.h"
#include "common/base/text.h"

namespace proctor::aggregate {
class Maker {
 public:
  static Markup of(std::string bytes) { return {Markup::Made{}, std::move(bytes)}; }
};

std::string escaped(std::string_view text) {
  constexpr std::string_view kMarks = "<>&\"'";
  constexpr std::array kNames{"&lt;", "&gt;", "&amp;", "&quot;", "&#39;"};
  std::string out;
  for (const char c : text)
    if (const std::size_t at = kMarks.find(c); at != kMarks.npos)
      out += kNames.at(at);
    else
      out += c;
  return out;
}

std::string escaped(std::string_view outside, std::size_t bytes_max) {
  return escaped(printable(outside, bytes_max));
}

Value attribute_text(std::string_view outside) {
  constexpr std::size_t kBytes = 200;
  return {Value::Escaped{}, escaped(outside, kBytes)};
}

Value numbered(Literal prefix, std::uint64_t number, Literal suffix) {
  return {Value::Escaped{}, escaped(fmt::format("{}{}{}", prefix.text(), number, suffix.text()))};
}

Value tenths(double value) {
  PROCTOR_ASSERT(std::isfinite(value));
  const long long n = std::llround(value * 10);
  const long long size = n < 0 ? -n : n;
  return {Value::Escaped{}, size % 10 == 0
                                ? fmt::format("{}{}", n < 0 ? "-" : "", size / 10)
                                : fmt::format("{}{}.{}", n < 0 ? "-" : "", size / 10, size % 10)};
}

Value full(double value) {
  PROCTOR_ASSERT(std::isfinite(value));
  return {Value::Escaped{}, fmt::format("{:.12g}", value)};
}

Value points_of(const std::string& path) {
  PROCTOR_ASSERT(path.find_first_not_of("0123456789.,- HLMVZ") == std::string::npos);
  return {Value::Escaped{}, path};
}

Markup text(std::string_view outside, std::size_t bytes_max) {
  return Maker::of(escaped(outside, bytes_max));
}

Markup number(std::uint64_t n) {
  return Maker::of(std::to_string(n));
}

Markup element(Literal tag, std::initializer_list<Attributes> parts, const Markup* content) {
  std::string out = "<";
  if (content != nullptr) out.reserve(content->bytes().size() + 64);
  out += tag.text();
  for (const Attributes& part : parts)
    for (const Attribute& a : part) {
      out += ' ';
      out += a.name.text();
      out += "=\"";
      out += a.value.escaped();
      out += '"';
    }
  if (content == nullptr) return Maker::of(out + "/>");
  out += '>';
  out += content->bytes();
  out += "</";
  out += tag.text();
  out += '>';
  return Maker::of(std::move(out));
}

Markup element(Literal tag, Attributes attributes, const Markup& content) {
  return element(tag, {attributes}, &content);
}

Markup element(Literal tag, const Markup& content) {
  return element(tag, {}, &content);
}

Markup classed(Literal tag, Literal style, const Markup& content) {
  return element(tag, {{"class", style}}, content);
}

Markup scrolling(const Attribute& label, const Markup& content) {
  return element("div", {{"class", "scroll"}, {"role", "region"}, {"tabindex", 0}, label}, content);
}

Markup empty_element(Literal tag, Attributes attributes) {
  return element(tag, {attributes}, nullptr);
}

Markup style_sheet(Literal css) {
  PROCTOR_ASSERT(css.text().find_first_of("<&") == std::string_view::npos);
  std::string out = "<style>";
  out += css.text();
  out += "</style>\n";
  return Maker::of(std::move(out));
}

Markup line_end() {
  return Maker::of("\n");
}

void DataTable::heads(std::string_view names) {
  for (std::string_view name : split(names, '|')) {
    const Column kind = take_word(name, "#") ? Column::kNumber : Column::kWords;
    column(text(name), kind);
  }
}

void DataTable::row(const std::vector<Markup>& cells, bool says) {
  PROCTOR_ASSERT(cells.size() == head_.size());
  Markup line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const bool is_number = kinds_[i] == Column::kNumber;
    if (i == 0)
      line << element("th", {{"scope", "row"}}, cells[i]);
    else if (is_number)
      line << classed("td", "n", cells[i]);
    else
      line << element("td", cells[i]);
  }
  body_ << (apart_ ? classed("tr", "apart", line) : element("tr", line)) << line_end();
  apart_ = false;
  ++rows_;
  says_ = says_ || says;
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
  return scrolling({"aria-labelledby", numbered("table-", id_)}, table) + line_end();
}
}  // namespace proctor::aggregate
