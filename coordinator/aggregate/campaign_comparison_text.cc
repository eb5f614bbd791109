// What `proctor compare` prints: for people, and as JSON.
#include <fmt/format.h>

#include <algorithm>

#include "common/base/text.h"
#include "coordinator/aggregate/analysis_json.h"
#include "coordinator/aggregate/campaign_comparison.h"
#include "coordinator/aggregate/text_table.h"

namespace proctor {
namespace {

using namespace aggregate;

constexpr std::size_t kNamesShown = 8;

void names(std::string& out, const char* what, const std::vector<std::string>& all) {
  if (all.empty()) return;
  out += fmt::format("  {} {}:", all.size(), what);
  for (std::size_t i = 0; i < std::min(kNamesShown, all.size()); ++i)
    out += " " + printable(all[i]);
  out += kNamesShown < all.size() ? " ...\n" : "\n";
}

// Methods that no row tells of, by the side that has them.
void one_sided_methods(std::string& out, const CampaignComparison& c) {
  if (c.methods_only_older.empty() && c.methods_only_newer.empty()) return;
  out += "\nMethods that are not compared\n";
  names(out, "only in the older", c.methods_only_older);
  names(out, "only in the newer", c.methods_only_newer);
}

// Why no exit code says that nothing is worse; empty: nothing is missing.
std::string lost_words(const CampaignComparison& c) {
  if (c.lost_agents.empty()) return "";
  std::string all;
  for (const std::string& name : c.lost_agents) all += (all.empty() ? "" : ", ") + printable(name);
  return fmt::format(
      "  * {} of the older {} not in the newer, so nothing says that {} not worse: --map OLD=NEW "
      "names one that is called otherwise, --method one that is asked about alone\n",
      all, c.lost_agents.size() == 1 ? "is" : "are",
      c.lost_agents.size() == 1 ? "it is" : "they are");
}

std::string times(const std::optional<double>& ratio) {
  return ratio ? fmt::format("x{:.2f}", *ratio) : "-";
}

std::string shown(const std::optional<double>& p) {
  return p ? p_words(*p) : "-";
}

}  // namespace

std::string render_comparison_text(const CampaignComparison& c) {
  std::string out =
      fmt::format("{} (newer) less {} (older)\n", printable(c.newer), printable(c.older));
  if (!c.one_campaign.empty()) out = "Note: " + c.one_campaign + "\n" + out;
  if (!c.differences.empty()) {
    out += "\nProvisional, because\n";
    for (const std::string& d : c.differences) out += "  * " + d + "\n";
  }
  out += fmt::format("\nTasks\n  {} in common, with equal contracts\n", c.common.size());
  names(out, "of the same name with other contracts, not compared", c.changed);
  names(out, "only in the older", c.only_older);
  names(out, "only in the newer", c.only_newer);
  one_sided_methods(out, c);
  if (c.methods.empty()) {
    out += "\nNo method of the older campaign is in the newer: name them with --map OLD=NEW\n";
    return out;
  }
  out += fmt::format("\nSuccess rate over tasks, newer less older, in points (margin {:.1f})\n\n",
                     c.margin * 100);
  Table table({"method", "decision", "difference", "interval", "p", "tasks", "better", "worse",
               "p turned", "cost", "time"},
              2);
  for (const MethodComparison& m : c.methods) {
    const Estimate& d = m.contrast.difference.estimate;
    const std::string name =
        m.old_name == m.new_name ? m.new_name : m.old_name + " -> " + m.new_name;
    table.group(m.is_control ? "controls" : "");
    table.add({printable(name),
               m.is_control ? "control" : std::string(words(decision_of(m, c.margin, c.alpha))),
               d.value ? points(*d.value) : "-",
               d.interval ? points_between(*d.interval) : std::string(words(d.why)),
               shown(m.contrast.flips ? std::optional(m.contrast.flips->p) : std::nullopt),
               std::to_string(m.contrast.tasks), std::to_string(m.contrast.a_better),
               std::to_string(m.contrast.b_better), shown(m.p_turned), times(m.cost_ratio),
               times(m.time_ratio)});
  }
  table.append_to(out);
  for (const MethodComparison& m : c.methods)
    if (!m.is_control && m.contrast.equivalence &&
        decision_of(m, c.margin, c.alpha) == Decision::kNotWorse)
      out += fmt::format("  * {}: {}\n", printable(m.new_name),
                         one_sided_words(m.contrast, c.alpha, c.margin));
  for (const MethodComparison& m : c.methods)
    for (const auto& [why, n] : m.new_invalid)
      out += fmt::format(
          "  * {}: {} runs ended invalid by {}, which the older campaign does not know\n",
          printable(m.new_name), n, why);
  const auto controls = std::ranges::count(c.methods, true, &MethodComparison::is_control);
  const bool are_left_out = 0 < controls && static_cast<std::size_t>(controls) < c.methods.size();
  out +=
      fmt::format("\nTogether: {}{}\n", words(decision_of(c)),
                  are_left_out ? " (noop and reference measure the tasks and decide nothing)" : "");
  return out + lost_words(c);
}

std::string render_comparison_json(const CampaignComparison& c) {
  Ordered methods = Ordered::array();
  for (const MethodComparison& m : c.methods) {
    Ordered one = {{"older", m.old_name},
                   {"newer", m.new_name},
                   {"decision", words(decision_of(m, c.margin, c.alpha))},
                   {"control", m.is_control},
                   {"contrast", contrast_json(m.contrast)},
                   {"p_turned", m.p_turned}};
    one["cost_ratio"] = m.cost_ratio ? Ordered(*m.cost_ratio) : Ordered(nullptr);
    one["time_ratio"] = m.time_ratio ? Ordered(*m.time_ratio) : Ordered(nullptr);
    one["new_invalid"] = m.new_invalid;
    methods.push_back(std::move(one));
  }
  const Ordered out = {{"older", c.older},
                       {"newer", c.newer},
                       {"one_campaign", c.one_campaign},
                       {"margin", c.margin},
                       {"alpha", c.alpha},
                       {"decision", words(decision_of(c))},
                       {"provisional", c.differences},
                       {"common", c.common},
                       {"changed", c.changed},
                       {"only_older", c.only_older},
                       {"only_newer", c.only_newer},
                       {"methods", std::move(methods)},
                       {"methods_only_older", c.methods_only_older},
                       {"methods_only_newer", c.methods_only_newer},
                       {"lost_agents", c.lost_agents}};
  return dumped(out) + "\n";
}

}  // namespace proctor
