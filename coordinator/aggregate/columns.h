#pragma once
// Every column of a report is one row of a table here: its names, its unit, what it means and how
// it reads a record.  Text, CSV, JSON, the page, the words of a filter and the table of
// docs/file-formats.md come from these rows.  Pure; a table is safe to read from several threads.
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "coordinator/aggregate/format.h"
#include "coordinator/aggregate/leaderboard.h"
#include "coordinator/aggregate/money.h"
#include "coordinator/aggregate/ordered_json.h"
#include "coordinator/aggregate/report.h"
#include "coordinator/aggregate/rubric.h"

namespace proctor::aggregate {
// The content of a column of a record.  Texts are views of the record where they are members of it.
class Cell {
 public:
  using Value = std::variant<std::monostate, bool, std::int64_t, double, MicroUsd, std::string_view,
                             std::string, Share, Interval, Json>;
  Cell() = default;  // it has nothing there
  // NOLINTBEGIN(google-explicit-constructor): a reader returns what the record has
  template <std::integral T>
  Cell(T v) : value(std::in_place_type<std::int64_t>, static_cast<std::int64_t>(v)) {}
  Cell(bool v) : value(v) {}
  Cell(double v) : value(v) {}
  Cell(MicroUsd v) : value(v) {}
  Cell(const char* v) : value(std::string_view(v)) {}
  Cell(std::string_view v) : value(v) {}
  Cell(const std::string& v) : value(std::string_view(v)) {}
  Cell(std::string&& v) : value(std::move(v)) {}
  Cell(const Share& v) : value(v) {}
  Cell(const Interval& v) : value(v) {}
  Cell(Json v) : value(std::move(v)) {}
  template <class T>
  Cell(const std::optional<T>& v) {
    if (v) *this = Cell(*v);
  }
  // NOLINTEND(google-explicit-constructor)
  bool empty() const { return value.index() == 0; }
  // Nothing: it is of another type.
  template <class T>
  const T* get() const {
    return std::get_if<T>(&value);
  }
  Value value;
};

enum class Type : std::uint8_t {
  kText,
  kName,  // a text that some run has: a filter refuses others
  kYesNo,
  kCount,
  kUsd,
  kMs,
  kRate,
  kShare,     // a rate with its interval, in CSV three columns; in JSON also x of n
  kInterval,  // in CSV two
  kObject,
  kPoints,  // a difference of rates in points, its interval, or why it has none
  kP,       // a p value
  kList,    // words with commas between: a filter asks whether one is among them
};

template <class R>
struct Column {
  // `names`: one for all, or "JSON|CSV|WORD", each empty (it is not there), "=" (the first) or
  // another.  In JSON "cost.model" is a member of `cost`, and "?" at the end leaves out what is
  // empty; CSV names are as many as its type has, from one or with commas; WORD is what people
  // call it.
  Column(const std::string& names, Type type, std::function<Cell(const R&)> read,
         std::string_view meaning = {}, std::vector<std::string_view> values = {});
  std::string json, csv, word;
  Type type;
  std::function<Cell(const R&)> read;
  std::string_view meaning;
  std::vector<std::string_view> values;  // all that a text may be; empty: there is no list
};

template <HasWords E>
std::vector<std::string_view> all_words() {
  std::vector<std::string_view> out;
  for (const auto& [word, value] : kWordsOf<E>) out.push_back(word);
  return out;
}

template <class R>
class Columns {
 public:
  // One, or several that other records have too.
  struct Entry {
    Entry(const char* names, Type type, std::function<Cell(const R&)> read,
          std::string_view meaning = {}, std::vector<std::string_view> values = {})
        : columns{{names, type, std::move(read), meaning, std::move(values)}} {}
    Entry(std::vector<Column<R>> several)  // NOLINT(google-explicit-constructor)
        : columns(std::move(several)) {}
    std::vector<Column<R>> columns;
  };
  // `all`: in the order of CSV, which only grows at its end, as people's scripts count columns.
  // `json`: the order of members, "a|b"; others follow.  `digits` of numbers in CSV; 0: as many
  // as read back as the same.
  Columns(std::initializer_list<Entry> all, std::string_view json, int digits = 0);
  const std::vector<Column<R>>& all() const { return all_; }
  const Column<R>* find(std::string_view word) const;
  // Those of these words, "a|b|TITLE=c", in this order, for a table that people read.
  std::vector<Column<R>> named(std::string_view words) const;

  std::string csv_header() const;  // with its line feed
  void append_csv(std::string& out, const R& record) const;
  Json json(const R& record) const;

 private:
  std::vector<Column<R>> all_;
  std::vector<std::size_t> json_;
  int digits_;
};

const Columns<ReportRow>& row_columns();
const Columns<CostRow>& cost_columns();
const Columns<ComparisonRow>& comparison_columns();
const Columns<Transition>& transition_columns();
const Columns<BoardRow>& board_columns();
const Columns<Contrast>& contrast_columns();
Columns<MethodRate> rate_columns(const AnalysisPlan& plan);
const Columns<EnvelopeMoney>& envelope_columns();
const Columns<MoneyGroup>& group_columns();
const Columns<EnvelopeProjection>& projection_columns();
const Columns<ProjectionRecord>& projection_record_columns();
// Gates and failure modes by method and stratum, and the score under other weights.
const Columns<GateRow>& gate_columns();
const Columns<TagRow>& tag_columns();
const Columns<SensitivityRow>& sensitivity_columns();
// Columns of a run's gates (in JSON members of `gates`), score and failure modes.
std::vector<Column<RunRecord>> judged_columns();
// Those of runs with these keys of strata, each a column of its own, whose word is "stratum.KEY".
inline constexpr std::string_view kStratum = "stratum.";
Columns<RunRecord> run_columns(std::span<const std::string> strata_keys);

// The tables that people read, as named() takes them: on a terminal those of rows, of costs, of a
// projection and of a leaderboard, then those of the page.  The last two are of contrasts, on both.
extern const std::string_view kProgressWords, kOutcomeWords, kRateWords, kPriceWords, kTimeWords,
    kModelWords, kCostWords, kComparisonWords, kBoardWords;
extern const std::string_view kPageFlowWords, kPageCostWords, kPageComparisonWords, kPageRunWords;
extern const std::string_view kRemovedWords, kGateTableWords, kTagTableWords;
std::string contrast_words(const Analysis& analysis);

template <class R>
std::string csv_of(const Columns<R>& columns, const std::vector<R>& records) {
  std::string out = columns.csv_header();
  for (const R& r : records) columns.append_csv(out, r);
  return out;
}

// For people: as text tables have it, "-" where there is nothing.
std::string shown(const Cell& cell, Type type);
template <class R>
std::vector<std::string> titles_of(const std::vector<Column<R>>& columns) {
  std::vector<std::string> out;
  for (const Column<R>& c : columns) out.push_back(c.word);
  return out;
}
template <class R>
std::vector<std::string> cells_of(const std::vector<Column<R>>& columns, const R& record) {
  std::vector<std::string> out;
  for (const Column<R>& c : columns) out.push_back(shown(c.read(record), c.type));
  return out;
}

// The records in these columns; those of another group() have a blank line before them.  A record
// without a group is left out.
template <class R, class Group>
Table table_of(const Columns<R>& all, std::string_view words, const auto& records,
               const Group& group, std::size_t names = 2,
               Table::Rule rule = Table::Rule::kUnderHeader) {
  const std::vector<Column<R>> columns = all.named(words);
  Table out(titles_of(columns), names, rule);
  for (const R& record : records)
    if (const std::optional<std::string> name = group(record)) {
      out.group(*name);
      out.add(cells_of(columns, record));
    }
  return out;
}
inline std::string ungrouped(const auto&) {
  return "";
}
inline std::string controls_apart(const auto& record) {
  return record.is_control ? "controls" : "";
}

// "b" and "a" of "a|b|c" are at 1 and 0; what is not in it is behind the last.
std::size_t place_in(std::string_view list, std::string_view word);
}  // namespace proctor::aggregate
