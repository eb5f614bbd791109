#include "coordinator/page/sections.h"

#include "common/base/result.h"

namespace proctor::page {
namespace {
std::vector<std::uint32_t> rows_of_methods(const CampaignReport& report) {
  std::vector<std::uint32_t> out;
  for (std::size_t i = 0; i < report.rows.size(); ++i)
    if (report.rows[i].key.empty()) out.push_back(static_cast<std::uint32_t>(i));
  return out;
}

std::string clamped(double rate, double low, double high) {
  const double shown = std::clamp(rate, low, high);
  return (rate < low || high < rate ? "\xE2\x89\xA4 " : "") + aggregate::percent(shown);
}

std::string signed_points(double difference) {
  const std::string shown = fmt::format("{:+.1f}", difference * kPercent);
  return shown == "-0.0" || shown == "+0.0" ? "0.0" : shown;
}
}  // namespace

Context::Context(const PageInput& input)
    : report(input.report),
      analysis(*input.report.analysis),
      facts(input.facts),
      money(input.money),
      cells(task_cells(input.report.runs)),
      methods(rows_of_methods(input.report)) {
  PROCTOR_ASSERT(input.report.details != nullptr);
}

Markup Context::figure(const Canvas& canvas, const Markup& title, const Markup& desc,
                       const Markup& caption) {
  const std::uint64_t id = ++figures_;
  return element("figure", {{"id", numbered("figure-", id)}},
                 scrolling({"aria-labelledby", numbered("fig-", id, "-title")},
                           canvas.finish(id, title, desc)) +
                     element("figcaption", element("strong", title) + ". " + caption)) +
         line_end();
}

Markup Context::linked(std::size_t row, std::uint16_t classes, const Markup& shown) const {
  const auto set = report.details->sets.find(row, classes);
  if (!set) return shown;
  return element("a", {{"href", numbered("#set-", *set + 1)}}, shown);
}

std::size_t Context::shape(const std::string& method) const {
  const auto it = std::ranges::find_if(
      methods, [&](std::uint32_t row) { return report.rows[row].method == method; });
  return static_cast<std::size_t>(it - methods.begin());
}

const MethodRate& Context::rate_of(const std::string& method) const {
  const MethodRate* rate = proctor::rate_of(analysis, method);
  PROCTOR_ASSERT(rate != nullptr);
  return *rate;
}

const MethodPrice& Context::price_of(const std::string& method) const {
  const auto it = std::ranges::find(report.details->prices, method, &MethodPrice::method);
  PROCTOR_ASSERT(it != report.details->prices.end());
  return *it;
}

Markup facts_table(Context& c, const Markup& caption, const std::vector<PageFacts::Fact>& facts,
                   std::string_view heads) {
  constexpr std::size_t kValueBytes = 2'000;
  DataTable table = c.table(caption, heads);
  for (const PageFacts::Fact& f : facts) table.row({text(f.what), text(f.value, kValueBytes)});
  return table.empty() ? Markup() : table.finish();
}

Markup critical_banner(const Context& c) {
  const std::string warning = critical_warning(c.report.details->rubric);
  if (warning.empty()) return {};
  return banner(text(kCriticalMark.substr(1)) + " " + text(warning, 1'000) + " See section 10.");
}

std::string shell_word(std::string_view words) {
  const bool plain = words.find_first_of(" \t\n'\"\\$`&|;<>()[]{}*?!#~=") == std::string_view::npos;
  return plain ? std::string(words) : shell_quoted(words);
}

Markup command(const Context& c, std::string_view verb, std::string_view rest) {
  return element("code", text(fmt::format("proctor {} {}{}{}", verb, shell_word(c.facts.folder),
                                          rest.empty() ? "" : " ", rest),
                              1'000));
}

Markup small_if(bool is_control, const Markup& name) {
  return is_control ? element("small", name) : name;
}

Markup name_of(const Context& c, const Contrast& contrast) {
  return small_if(contrast.is_control,
                  text(c.name(contrast.a)) + " less " + text(c.name(contrast.b)));
}

void add_contrasts(const Context& c, DataTable& table, const std::vector<Contrast>& contrasts,
                   std::string_view words) {
  const auto columns = aggregate::contrast_columns().named(words);
  add_columns(table, columns);
  for (const Contrast& contrast : contrasts) {
    table.group(aggregate::controls_apart(contrast));
    table.row(with_cells({name_of(c, contrast)}, columns, contrast));
  }
}

Markup and_more(std::size_t all, std::size_t shown, const Markup& where) {
  if (all <= shown) return {};
  return paragraph(Markup("and ") + number(all - shown) + " more" + where);
}

Markup data(double value, std::string_view shown) {
  return element("data", {{"value", full(value)}}, text(shown));
}

Markup none() {
  return "-";
}

Markup rate(const std::optional<double>& value) {
  return value ? data(*value, aggregate::percent(*value) + " %") : none();
}

Markup rate_interval(const std::optional<Interval>& interval, Why why) {
  return between(interval, why, [](double end) { return data(end, clamped(end, 0, 1)); });
}

Markup points(const std::optional<double>& value) {
  return value ? data(*value, signed_points(*value)) : none();
}

Markup points_interval(const std::optional<Interval>& interval, Why why) {
  if (!interval) return why == Why::kOk ? none() : text(word_of(why));
  const Interval shown = aggregate::shown_difference(*interval);
  return Markup("[") + data(interval->low, signed_points(shown.low)) + ", " +
         data(interval->high, signed_points(shown.high)) + "]";
}

Markup p_value(const std::optional<double>& p) {
  if (!p) return none();
  return data(*p, aggregate::p_words(*p));
}

Markup money_of(MicroUsd amount) {
  return text(format_usd(amount));
}

Markup money_of(const std::optional<MicroUsd>& amount) {
  return amount ? money_of(*amount) : none();
}

Markup markup_of(const aggregate::Cell& cell, aggregate::Type type) {
  using enum aggregate::Type;
  if (const auto* words = cell.get<std::string_view>())
    return type == kPoints && words->empty() ? none() : text(*words);
  if (const auto* ends = cell.get<Interval>(); ends != nullptr && type == kPoints)
    return points_interval(*ends);
  if (const auto* value = cell.get<double>(); value != nullptr && (type == kPoints || type == kP))
    return type == kP ? p_value(*value) : points(*value);
  const auto* n = cell.get<std::int64_t>();
  if (n != nullptr && *n == 0 && type == kMs) return none();
  return text(aggregate::shown(cell, type));
}

Markup usd(double dollars) {
  constexpr double kSmall = 0.1;
  return data(dollars, 0 < dollars && dollars < kSmall ? fmt::format("{:.4f}", dollars)
                                                       : fmt::format("{:.2f}", dollars));
}

Markup seconds_of(const std::optional<double>& ms) {
  return ms ? data(*ms, aggregate::seconds(ms)) : none();
}

Markup per_success(const CostPerSuccess& cost) {
  const Estimate& e = cost.estimate;
  if (!e.value) return text(word_of(e.why));
  Markup out = usd(*e.value);
  if (e.interval) return out + " " + between(e.interval, Why::kOk, usd);
  if (e.why == Why::kUnbounded && cost.low) return out + " [at least " + usd(*cost.low) + "]";
  return out + " (" + text(word_of(e.why)) + ")";
}
}  // namespace proctor::page
