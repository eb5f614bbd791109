#include "coordinator/cli/analysis_notes.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/text.h"
#include "common/plan/registration.h"
#include "common/stats/power.h"

namespace proctor::cli {
namespace {

constexpr std::size_t kMostNamed = 8;

std::string short_number(double p) {
  return fmt::format("{:.3g}", std::min(1.0, p));
}

// Methods that the campaign is about: neither noop nor reference.
std::vector<std::string> agents_of(const Campaign& campaign) {
  std::vector<std::string> out;
  for (const Method& m : campaign.methods)
    if (m.kind != Method::Kind::kNoop && m.kind != Method::Kind::kReference) out.push_back(m.name);
  return out;
}

std::ptrdiff_t agents_in(const std::pair<std::string, std::string>& pair,
                         const std::vector<std::string>& agents) {
  return std::ranges::count(agents, pair.first) + std::ranges::count(agents, pair.second);
}

// Two agents or more, and no comparison is between any two: the default of a campaign with a noop.
std::string uncompared_agents(const Campaign& campaign) {
  const std::vector<std::string> agents = agents_of(campaign);
  if (agents.size() < 2) return "";
  for (const auto& pair : comparisons_of(campaign))
    if (agents_in(pair, agents) == 2) return "";
  std::string names, pairs;
  for (std::size_t i = 0; i < agents.size(); ++i) {
    names += (i == 0 ? "" : i + 1 == agents.size() ? " and " : ", ") + printable(agents[i]);
    for (std::size_t k = i + 1; k < agents.size(); ++k)
      pairs +=
          (pairs.empty() ? "[" : ", [") + printable(agents[i]) + ", " + printable(agents[k]) + "]";
  }
  return fmt::format(
      "{} are compared with others, and with each other not at all: for that, write "
      "analysis.contrasts: [{}] into campaign.yaml before the freeze, for after it no comparison "
      "is added",
      names, pairs);
}

std::string hopeless_comparisons(const Campaign& campaign) {
  const std::size_t pairs = comparisons_of(campaign).size();
  if (pairs == 0) return "";
  const AnalysisPlan plan = registered_plan(campaign);
  const double alpha = plan.alpha.real();
  const auto unit = plan.unit.value_or(AnalysisPlan::Unit::kTask);
  const std::uint64_t units = units_of(campaign);
  const std::uint64_t fewest = fewest_flip_tasks(alpha / static_cast<double>(pairs));
  if (fewest <= units) return "";
  const double least = least_flip_p(units);
  const std::string adjusted =
      pairs == 1 ? ""
                 : fmt::format(", {} adjusted for {} comparisons",
                               short_number(least * static_cast<double>(pairs)), pairs);
  return fmt::format(
      "with {} no comparison can come out as better or worse, whatever the runs do: the smallest "
      "exact p is {}{}, and alpha is {}. {} are the fewest; proctor power says how many show "
      "what{}",
      counted_units(unit, units), short_number(least), adjusted, short_number(alpha),
      counted_units(unit, fewest),
      !plan.is_over_repositories()
          ? ""
          : ". \"analysis: {unit: task}\" in campaign.yaml, before the freeze, takes tasks for the "
            "units: say so where those of one repository tell as much as those of many");
}

// "compared will be: strong - noop, weak - noop (...)"; those of agents first; empty:
// there is one method.
std::string compared(const Campaign& campaign) {
  auto pairs = comparisons_of(campaign);
  const std::vector<std::string> agents = agents_of(campaign);
  std::ranges::stable_partition(pairs, [&](const auto& p) { return 0 < agents_in(p, agents); });
  if (pairs.empty()) return "";
  std::string out;
  for (std::size_t i = 0; i < std::min(kMostNamed, pairs.size()); ++i)
    out +=
        (out.empty() ? "" : ", ") + printable(pairs[i].first) + " - " + printable(pairs[i].second);
  if (kMostNamed < pairs.size()) out += fmt::format(" and {} more", pairs.size() - kMostNamed);
  const AnalysisPlan plan = registered_plan(campaign);
  return "compared will be: " + out +
         (plan.contrasts.empty()
              ? " (the default: each less one baseline; analysis.contrasts names other pairs)"
              : " (analysis.contrasts)") +
         (plan.is_over_repositories()
              ? ", over " + counted_units(*plan.unit, units_of(campaign)) + " (analysis.unit)"
              : "");
}

std::string as_note(const std::string& text) {
  return text.empty() ? "" : "note: " + text;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> comparisons_of(const Campaign& campaign) {
  std::vector<std::string> methods;
  std::vector<bool> is_noop;
  for (const Method& m : campaign.methods) {
    methods.push_back(m.name);
    is_noop.push_back(m.kind == Method::Kind::kNoop);
  }
  return contrasts_of(registered_plan(campaign), methods, is_noop);
}

std::uint64_t units_of(const Campaign& campaign) {
  const std::vector<std::uint32_t> of = repositories_of(campaign);
  if (of.empty() || !registered_plan(campaign).is_over_repositories()) return of.size();
  return *std::ranges::max_element(of);
}

std::string analysis_text(const Campaign& campaign) {
  std::string out;
  for (const std::string& line : {compared(campaign), as_note(uncompared_agents(campaign)),
                                  as_note(hopeless_comparisons(campaign))})
    if (!line.empty()) out += line + "\n";
  return out;
}

}  // namespace proctor::cli
