#pragma once
// Markup of pages and pictures.  It comes from the functions here and nowhere else: its tags, names
// and classes are texts of our own sources, and whatever a campaign, a method or an agent wrote
// gets in through text(), escaped.  A std::string beside markup does not compile.  Pure.
//
// What is made is well-formed XML and HTML at once (polyglot): every element is closed, no named
// entity but XML's own five is used.
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace proctor::aggregate {
// What stands for < > & " ' in an element or in an attribute, whichever quotes that has.
std::string escaped(std::string_view text);
// Printable, cut after `bytes_max`, and escaped.
std::string escaped(std::string_view outside, std::size_t bytes_max);

// A text of our own sources: the compiler knows it, so nobody else can choose it.
class Literal {
 public:
  // Implicit: a quoted name in our code is one.
  template <std::size_t N>
  consteval Literal(const char (&text)[N]) : text_(text, N - 1) {}  // NOLINT
  constexpr std::string_view text() const { return text_; }

 private:
  std::string_view text_;
};

class Markup {
 public:
  Markup() = default;
  // Our own words, escaped too.
  Markup(Literal words) : bytes_(aggregate::escaped(words.text())) {}  // NOLINT
  template <std::size_t N>
  Markup(const char (&words)[N])  // NOLINT
      : bytes_(escaped({words, N - 1})) {}
  const std::string& bytes() const { return bytes_; }
  bool empty() const { return bytes_.empty(); }
  Markup& operator<<(const Markup& more) {
    bytes_ += more.bytes_;
    return *this;
  }
  friend Markup operator+(Markup a, const Markup& b) {
    a << b;
    return a;
  }

 private:
  struct Made {};
  Markup(Made, std::string bytes) : bytes_(std::move(bytes)) {}
  friend class Maker;
  std::string bytes_;
};

// Value of an attribute: ours, a number, or somebody's text escaped by attribute_text().
class Value {
 public:
  Value(Literal ours) : escaped_(aggregate::escaped(ours.text())) {}  // NOLINT
  template <std::size_t N>
  Value(const char (&ours)[N]) : escaped_(aggregate::escaped({ours, N - 1})) {}  // NOLINT
  template <std::integral Number>
  Value(Number number) : escaped_(std::to_string(number)) {}  // NOLINT(google-explicit-constructor)
  const std::string& escaped() const { return escaped_; }

 private:
  struct Escaped {};
  Value(Escaped, std::string escaped) : escaped_(std::move(escaped)) {}
  friend Value attribute_text(std::string_view outside);
  friend Value numbered(Literal prefix, std::uint64_t number, Literal suffix);
  friend Value tenths(double value);
  friend Value points_of(const std::string& path);
  friend Value full(double value);
  std::string escaped_;
};
// Requires: not the value of an attribute that is an address; those are numbered().
Value attribute_text(std::string_view outside);
// "#set-17"
Value numbered(Literal prefix, std::uint64_t number, Literal suffix = "");
// 12.3
Value tenths(double value);
// Twelve significant digits.
Value full(double value);
// Of SVG's `points` and `d`: digits, commas, points, blanks and H, L, M, V, Z only, else an
// assertion ends the process.
Value points_of(const std::string& path);

struct Attribute {
  Attribute(Literal of, Value is) : name(of), value(std::move(is)) {}
  Literal name;
  Value value;
};
using Attributes = std::initializer_list<Attribute>;

// Somebody's text: escaped; controls, broken UTF-8 and marks that turn or hide text are shown as
// \xNN; cut after `bytes_max`.
Markup text(std::string_view outside, std::size_t bytes_max = 400);
Markup number(std::uint64_t n);
Markup element(Literal tag, Attributes attributes, const Markup& content);
Markup element(Literal tag, const Markup& content);
// In a class of the sheet.
Markup classed(Literal tag, Literal style, const Markup& content);
// It scrolls by itself where it is wide.  `label`: what it is called, to whom does not see it.
Markup scrolling(const Attribute& label, const Markup& content);
Markup empty_element(Literal tag, Attributes attributes);
// The attributes of all `parts` in their order.  `content` null: the element is empty.
Markup element(Literal tag, std::initializer_list<Attributes> parts, const Markup* content);
// <style>: our own sheet, as it is.  Requires: it has neither '<' nor '&'.
Markup style_sheet(Literal css);
// A line feed, for whoever reads the source.
Markup line_end();

// Tables of a page: a caption, a name for each row, and a region that scrolls where a screen is
// narrow.
class DataTable {
 public:
  enum class Column : std::uint8_t { kWords, kNumber };
  // `id`: of this table among those of the page.
  DataTable(std::uint64_t id, Markup caption) : id_(id), caption_(std::move(caption)) {}
  void words(Markup name) { column(std::move(name), Column::kWords); }
  void numbers(Markup name) { column(std::move(name), Column::kNumber); }
  // "a|#b": our own names, '#' before those of numbers.
  void heads(std::string_view names);
  // The first cell names the row; `says` is false where the others have no value.  Requires: a cell
  // for each column.
  void row(const std::vector<Markup>& cells, bool says = true);
  // Another name leaves a line above the next row.
  void group(const std::string& name) {
    apart_ = 0 < rows_ && name != group_;
    group_ = name;
  }
  bool empty() const { return rows_ == 0; }
  // The table, or the sentence `why` in its place where no row says anything.
  Markup finish_or(const Markup& why) const { return says_ ? finish() : element("p", why); }
  Markup finish() const;

 private:
  void column(Markup name, Column kind) {
    head_.push_back(std::move(name));
    kinds_.push_back(kind);
  }
  std::uint64_t id_;
  Markup caption_;
  std::vector<Markup> head_;
  std::vector<Column> kinds_;
  Markup body_;
  std::size_t rows_ = 0;
  bool apart_ = false, says_ = false;
  std::string group_;
};
}  // namespace proctor::aggregate
