// What the comparisons rest on, on a terminal: chance alone, repositories, outcomes nobody knows.
#include <fmt/format.h>

#include "common/base/text.h"
#include "coordinator/aggregate/analysis.h"
#include "coordinator/aggregate/text_table.h"

namespace proctor {
namespace {

using namespace aggregate;

std::string over_repositories(const ByRepository& by) {
  const Estimate& e = by.mean.estimate;
  if (by.mean.groups < 2) return "one repository";
  if (!e.interval) return std::string(words(e.why));
  return points_between(*e.interval);
}

}  // namespace

std::string turned_words(const Contrast& c) {
  if (!c.tipping || c.tipping->unknown == 0) return "-";
  const Tipping& t = *c.tipping;
  if (!t.tried) return "not tried: it would take minutes";
  if (!t.turned) return fmt::format("none of {}", t.unknown);
  return fmt::format("{} of {} for {}: {}", *t.turned, t.unknown, printable(t.for_a ? c.a : c.b),
                     words(t.becomes));
}

void append_footing(std::string& out, const Analysis& analysis) {
  if (analysis.contrasts.empty()) return;
  Table table({"comparison", "difference", "chance alone (95 %)", "tie", "repositories",
               "interval over them", "p", "verdict is turned by unknown outcomes"},
              1);
  for (const Contrast& c : analysis.contrasts) {
    const auto& d = c.difference.estimate.value;
    std::string groups = "-", interval = "-", p = "-";
    if (c.by_repository) {
      groups = std::to_string(c.by_repository->mean.groups);
      interval = over_repositories(*c.by_repository);
      p = p_words(c.by_repository->flips.p);
    }
    table.group(c.is_control ? "controls" : "");
    table.add({printable(c.a) + " - " + printable(c.b), d ? points(*d) : "-",
               c.equals ? fmt::format("{:.1f}", c.equals->gap95 * 100) : "-",
               c.equals ? (c.is_tie() ? "yes" : "no") : "-", std::move(groups), std::move(interval),
               std::move(p), turned_words(c)});
  }
  out +=
      "\nWhat the comparisons rest on (points; what two equal methods differ by; repositories as "
      "units;\nhow many acceptance errors and invalid runs would turn the verdict)\n\n";
  table.append_to(out);
}

}  // namespace proctor
