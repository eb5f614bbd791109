#pragma once
// The sections and figures of one page, and what they share.  Private to the room.
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/text.h"
#include "coordinator/aggregate/analysis.h"
#include "coordinator/aggregate/canvas.h"
#include "coordinator/aggregate/columns.h"
#include "coordinator/aggregate/details.h"
#include "coordinator/aggregate/format.h"
#include "coordinator/aggregate/markup.h"
#include "coordinator/page/page.h"

namespace proctor::page {
using aggregate::attribute_text, aggregate::Canvas, aggregate::classed, aggregate::DataTable,
    aggregate::element, aggregate::empty_element, aggregate::full, aggregate::kFigureWidth,
    aggregate::kPercent, aggregate::line_end, aggregate::Literal, aggregate::Markup,
    aggregate::number, aggregate::numbered, aggregate::Point, aggregate::round_ticks,
    aggregate::Scale, aggregate::scrolling, aggregate::style_sheet, aggregate::tenths,
    aggregate::text;

// Shared by the sections of one page: the report, numbers for tables and figures, links to sets.
class Context {
 public:
  explicit Context(const PageInput& input);
  const CampaignReport& report;
  const Analysis& analysis;
  const PageFacts& facts;
  const MoneyInput* money;
  TaskCells cells;
  std::vector<std::uint32_t> methods;  // rows of all tasks, in the report's order

  // `heads`: of its first columns (DataTable::heads).
  DataTable table(Markup caption, std::string_view heads) {
    DataTable out(++tables_, std::move(caption));
    out.heads(heads);
    return out;
  }
  // The figure with its caption, in a region that scrolls.
  Markup figure(const Canvas& canvas, const Markup& title, const Markup& desc,
                const Markup& caption);
  // The number, linked to the set of its runs where there is one.
  Markup linked(std::size_t row, std::uint16_t classes, const Markup& shown) const;
  Markup count(std::size_t row, std::uint16_t classes, std::uint64_t n) const {
    return linked(row, classes, number(n));
  }
  // As the page has it everywhere: cut after so many bytes, behind it critical_mark().
  std::string name(std::string_view method, std::size_t bytes_max = 380) const {
    return printable(method, bytes_max) + std::string(critical_mark(report, method));
  }
  // Position of a method among `methods`, for its shape in figures.
  std::size_t shape(const std::string& method) const;
  // Requires: it has runs.
  const MethodRate& rate_of(const std::string& method) const;
  const MethodPrice& price_of(const std::string& method) const;
  bool is_interim() const { return 0 < analysis.open; }

 private:
  std::uint64_t tables_ = 0, figures_ = 0;
};

// What was registered, as a table; empty: there is nothing.
Markup facts_table(Context& c, const Markup& caption, const std::vector<PageFacts::Fact>& facts,
                   std::string_view heads = "what|value");

inline Markup paragraph(const Markup& words) {
  return element("p", words);
}
// The command with the name of the campaign's folder, ready for a shell.
Markup command(const Context& c, std::string_view verb, std::string_view rest = {});
// 'a"b' for a shell, where it needs marks.
std::string shell_word(std::string_view words);

inline Markup banner(const Markup& words) {
  return classed("p", "banner", words);
}
// A warning beside rates that count successes with a critical violation; empty: none does.
Markup critical_banner(const Context& c);

// The name of a row, small where it is of controls.
Markup small_if(bool is_control, const Markup& name);
Markup name_of(const Context& c, const auto& method) {
  return small_if(method.is_control, text(c.name(method.method)));
}
Markup name_of(const Context& c, const Contrast& contrast);  // "a less b"

// Columns of a report (columns.h) as those of a table here, and what a record has in them.
Markup markup_of(const aggregate::Cell& cell, aggregate::Type type);
template <class R>
void add_columns(DataTable& table, const std::vector<aggregate::Column<R>>& columns) {
  using enum aggregate::Type;
  for (const auto& c : columns)
    c.type == kText || c.type == kYesNo ? table.words(text(c.word)) : table.numbers(text(c.word));
}
template <class R>
std::vector<Markup> with_cells(std::vector<Markup> first,
                               const std::vector<aggregate::Column<R>>& columns, const R& record) {
  for (const auto& c : columns) first.push_back(markup_of(c.read(record), c.type));
  return first;
}
// All of a table: a row for each contrast in these columns, behind its name.
void add_contrasts(const Context& c, DataTable& table, const std::vector<Contrast>& contrasts,
                   std::string_view words);

// Items of a list; empty: it has none.
class Items {
 public:
  void add(const Markup& item) { all_ << element("li", item) << line_end(); }
  void add(const std::vector<std::string>& sentences, std::size_t bytes_max,
           std::size_t most = SIZE_MAX) {
    for (std::size_t i = 0; i < std::min(most, sentences.size()); ++i)
      add(text(sentences[i], bytes_max));
  }
  bool empty() const { return all_.empty(); }
  Markup list() const { return all_.empty() ? Markup() : element("ul", all_); }

 private:
  Markup all_;
};
// "and 3 more in report.json", where there are more than so many.
Markup and_more(std::size_t all, std::size_t shown, const Markup& where);

// Marks by RunOutcome: their class in the sheet, their letter and its class.
inline constexpr std::array<Literal, 4> kOutcomeStyles{"success", "failure", "error", "invalid"};
inline constexpr std::array<Literal, 4> kOutcomeLetters{"S", "F", "E", "V"};
inline constexpr std::array<Literal, 4> kOutcomeInks{"cell", "cell", "cell", "cell-invalid"};

// Numbers as they are shown.

// The number for programs beside what people read.
Markup data(double value, std::string_view shown);
Markup none();                                    // "-"
Markup rate(const std::optional<double>& value);  // "53.1 %"
// "[19.1, 85.1]", "≤" where a bound was beyond 0 or 100; or why there is none.
Markup rate_interval(const std::optional<Interval>& interval, Why why = Why::kOk);
// "[LOW, HIGH]", each end as `shown` has it; or why there is none.
Markup between(const std::optional<Interval>& interval, Why why, const auto& shown) {
  if (!interval) return why == Why::kOk ? none() : text(word_of(why));
  return Markup("[") + shown(interval->low) + ", " + shown(interval->high) + "]";
}
Markup points(const std::optional<double>& value);  // "+17.5"
Markup points_interval(const std::optional<Interval>& interval, Why why = Why::kOk);
Markup p_value(const std::optional<double>& p);  // "0.0117", "<0.0001"
Markup money_of(MicroUsd amount);                // "0.80"
Markup money_of(const std::optional<MicroUsd>& amount);
// Estimators give fractions of a micro-dollar.
Markup usd(double dollars);
Markup seconds_of(const std::optional<double>& ms);

// "1.70 [0.79, 5.92]", "1.70 [at least 0.79]": dollars of a success.
Markup per_success(const CostPerSuccess& cost);

// The sections of a page in their order, one function each: what stands below its heading.

Markup answer(Context& c);           // in the head: who, by how much, how sure, at what price
Markup asked(Context& c);            // 1
Markup runs_flow(Context& c);        // 2
Markup endpoint(Context& c);         // 3
Markup comparisons(Context& c);      // 4
Markup unknowns(Context& c);         // 5
Markup strata(Context& c);           // 6
Markup stability(Context& c);        // 7
Markup money_section(Context& c);    // 8
Markup time_section(Context& c);     // 9
Markup gates(Context& c);            // 10
Markup graders(Context& c);          // 11
Markup rules(Context& c);            // 12
Markup reproducibility(Context& c);  // 13
Markup limits_section(Context& c);   // 14
Markup appendix(Context& c);         // 15

// Parts of figures.

// Lines across at 0 to 100 %, with their labels at the left.
void rate_axis(Canvas& canvas, const Scale& y, double left, double right);
// Names at the ends of curves, from above; where two would lie on each other, they are `apart`.
void name_ends(Canvas& canvas, std::vector<std::pair<double, Markup>> names, double x,
               double apart);

// Figures; empty where there is nothing to show.

enum class ForestRows : std::uint8_t { kAllTasks, kWithStrata };
Markup forest_figure(Context& c, ForestRows which);
Markup contrast_figure(Context& c);
Markup differences_figure(Context& c, const Contrast& contrast);
Markup mosaic_figure(Context& c);
Markup frontier_figure(Context& c);
Markup burndown_figure(Context& c);
Markup histogram_figures(Context& c);
Markup until_success_figure(Context& c);
Markup workers_figure(Context& c);
Markup pass_figure(Context& c);
}  // namespace proctor::page
