// A badge: one method's rate in twenty pixels.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "coordinator/aggregate/format.h"
#include "coordinator/forms/forms.h"

namespace proctor {
namespace {

constexpr std::size_t kBadgeNameBytes = 60;
constexpr double kPixelsPerColumn = 6.6;
constexpr int kBadgePadding = 12;

int width_of(std::string_view text) {
  return static_cast<int>(
      std::lround(kPixelsPerColumn * static_cast<double>(aggregate::display_width(text))) +
      kBadgePadding);
}

int whole_percent(double rate) {
  return static_cast<int>(std::lround(std::clamp(rate, 0.0, 1.0) * 100));
}

std::string rate_words(const MethodRate* r) {
  if (r == nullptr || !r->rate.value) return "no rate yet";
  std::string out = fmt::format("{} %", whole_percent(*r->rate.value));
  if (r->rate.interval)
    out += fmt::format(" [{}-{}]", whole_percent(r->rate.interval->low),
                       whole_percent(r->rate.interval->high));
  return out + fmt::format(" of {} {}", r->tasks, r->tasks == 1 ? "task" : "tasks");
}

// `textLength` holds the words inside their box whatever font the reader has.
std::string boxed_words(int x, int width, std::string_view escaped) {
  return fmt::format("<text x=\"{}\" y=\"14\" textLength=\"{}\">{}</text>", x + kBadgePadding / 2,
                     width - kBadgePadding, escaped);
}

}  // namespace

std::string badge_method(const CampaignReport& report) {
  const Analysis& a = *report.analysis;
  for (const Contrast& c : a.contrasts)
    if (!is_control(report, c.a)) return c.a;
  for (const auto& [first, second] : a.plan.contrasts)
    if (!is_control(report, first)) return first;
  std::string out;  // the baseline, where there is no other
  for (const MethodRate& r : a.rates)
    if (!r.is_control && (out.empty() || out == a.plan.baseline)) out = r.method;
  return out;
}

std::string render_badge(const CampaignReport& report, std::string_view method) {
  const std::vector<MethodRate>& rates = report.analysis->rates;
  const auto found = std::ranges::find(rates, method, &MethodRate::method);
  const MethodRate* rate = found == rates.end() ? nullptr : &*found;
  const std::string name = aggregate::escaped(method.empty() ? "proctor" : method, kBadgeNameBytes);
  const bool interim = 0 < report.analysis->open;
  const std::string says = (interim ? "interim " : "") + rate_words(rate);
  const bool known = rate != nullptr && rate->rate.value && !interim;
  // Of the name as it is shown: an entity is one column.
  const int left = width_of(
                std::string_view(method.empty() ? "proctor" : method).substr(0, kBadgeNameBytes)),
            right = width_of(says);
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"20\" viewBox=\"0 0 {0} "
      "20\" "
      "role=\"img\" aria-label=\"{1} {2}\">\n<title>{1} {2}</title>\n"
      "<rect width=\"{3}\" height=\"20\" fill=\"#24292f\"/>"
      "<rect x=\"{3}\" width=\"{4}\" height=\"20\" fill=\"{5}\"/>\n"
      "<g fill=\"#ffffff\" font-family=\"Verdana,DejaVu Sans,sans-serif\" "
      "font-size=\"11\">{6}{7}</g>\n</svg>\n",
      left + right, name, says, left, right, known ? "#0059a3" : "#57606a",
      boxed_words(0, left, name), boxed_words(left, right, says));
}

}  // namespace proctor
