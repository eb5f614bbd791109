#include "coordinator/aggregate/campaign_comparison.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "common/base/money.h"
#include "common/base/text.h"
#include "common/stats/paired.h"
#include "coordinator/aggregate/columns.h"
#include "coordinator/aggregate/format.h"
#include "coordinator/aggregate/ordered_json.h"
#include "coordinator/aggregate/warnings.h"

namespace proctor {
namespace {
constexpr std::size_t kSentencesOfAKind = 8;

using Names = std::set<std::string>;

// What `first` and `other` have under one key and not alike.
void tell_digests(const std::map<std::string, Digest>& first,
                  const std::map<std::string, Digest>& other, const std::string& who,
                  const char* what, std::vector<std::string>& out) {
  std::size_t told = 0;
  for (const auto& [name, digest] : first) {
    const auto found = other.find(name);
    if (found == other.end() || found->second == digest || kSentencesOfAKind < ++told) continue;
    out.push_back(
        fmt::format("{} {} is {} in the first and {} in {}: runs of both are not runs of "
                    "one thing",
                    what, printable(name), digest.short_hex(), found->second.short_hex(), who));
  }
}

struct Numbers {
  const std::map<std::string, std::int64_t>& of;
  const std::string& unit;  // of those that are money: a run's envelope, and the cap on it
};
bool is_money(const std::string& name) {
  return name == "run" || name == "micro_usd";
}
std::optional<std::int64_t> number_in(const Numbers& numbers, const std::string& name) {
  const auto found = numbers.of.find(name);
  return found == numbers.of.end() ? std::nullopt : std::optional(found->second);
}
std::string shown_in(const Numbers& numbers, const std::string& name) {
  const auto value = number_in(numbers, name);
  if (!value) return "none";
  return is_money(name) ? format_usd(MicroUsd::from_micros(*value)) + " " + numbers.unit
                        : std::to_string(*value);
}
std::string cap_word(const std::string& name) {
  return name == "micro_usd" ? "usd" : printable(name);
}
// The names of the caps that either has.
Names caps_of(const Registration& a, const Registration& b) {
  Names out;
  for (const Registration* r : {&a, &b})
    for (const auto& [name, value] : r->caps) out.insert(name);
  return out;
}

void tell_number(const Numbers& first, const Numbers& other, const std::string& name,
                 const std::string& who, const std::string& what, std::vector<std::string>& out) {
  const std::string a = shown_in(first, name), b = shown_in(other, name);
  if (a != b)
    out.push_back(
        fmt::format("{} is {} in the first and {} in {}: under another limit a run is another run",
                    what, a, b, who));
}

void tell_pair(const MergedCampaign& first, const MergedCampaign& other,
               std::vector<std::string>& out) {
  const Registration &a = first.registration, &b = other.registration;
  const std::string who = printable(other.runs.campaign);
  if (a.strata != b.strata)
    out.push_back("the strata of " + who + " are others: its rows are not those of the first");
  tell_digests(a.contracts, b.contracts, who, "the contract of task", out);
  tell_digests(a.methods, b.methods, who, "method", out);
  const std::string &unit = first.runs.unit, &its = other.runs.unit;
  for (const std::string& name : caps_of(a, b))
    tell_number({a.caps, unit}, {b.caps, its}, name, who, "cap " + cap_word(name), out);
  tell_number({a.envelopes, unit}, {b.envelopes, its}, "run", who, "the envelope of a run", out);
  if (a.cost_model != b.cost_model)
    out.push_back("the price table of " + who + " is another (" + printable(b.cost_model_version) +
                  ", not " + printable(a.cost_model_version) + "): its costs are in other units");
  if (a.analysis_plan != b.analysis_plan || registered_plan(a).unit != registered_plan(b).unit)
    out.push_back("the plan of analysis of " + who +
                  " is another: there is no one level, margin and set of comparisons");
}

Names common_names(const std::vector<MergedCampaign>& campaigns,
                   Names (*of)(const Registration& r)) {
  Names out = of(campaigns.front().registration);
  for (const MergedCampaign& c : campaigns) {
    const Names here = of(c.registration);
    std::erase_if(out, [&](const std::string& name) { return !here.contains(name); });
  }
  return out;
}

Names tasks_of(const Registration& r) {
  Names out;
  for (const auto& [task, digest] : r.contracts)
    if (!is_removed(r, task)) out.insert(task);
  return out;
}

Names methods_of(const Registration& r) {
  Names out;
  for (const auto& [method, digest] : r.methods) out.insert(method);
  return out;
}

void tell_left_out(const MergedCampaign& c, const char* what, const Names& here,
                   const Names& common, std::vector<std::string>& out) {
  std::string names;
  std::size_t n = 0;
  for (const std::string& name : here)
    if (!common.contains(name) && ++n <= kSentencesOfAKind) names += " " + printable(name);
  if (n == 0) return;
  out.push_back(fmt::format("{} {} of {} are not in all campaigns and are left out:{}{}", n, what,
                            printable(c.runs.campaign), names,
                            kSentencesOfAKind < n ? " ..." : ""));
}
}  // namespace

std::vector<std::string> why_not_pooled(const std::vector<MergedCampaign>& campaigns) {
  std::vector<std::string> out;
  for (std::size_t i = 1; i < campaigns.size(); ++i)
    tell_pair(campaigns.front(), campaigns[i], out);
  SeenRuns seen;
  for (const MergedCampaign& c : campaigns)
    if (const auto again = seen.add(c.runs.campaign, c.runs.runs); 0 < again.runs)
      out.push_back(
          fmt::format("{} runs of {} are in two of the folders, given twice or one a copy of the "
                      "other: they would count twice",
                      again.runs, printable(c.runs.campaign)));
  for (const MergedCampaign& c : campaigns)
    if (const Status may = may_be_compared(c.runs.campaign, c.runs.runs); !may.ok())
      out.push_back(may.error().detail);
  if (!campaigns.empty() && out.empty()) {
    if (common_names(campaigns, tasks_of).empty()) out.emplace_back("they have no task in common");
    if (common_names(campaigns, methods_of).empty())
      out.emplace_back("they have no method in common: name one alike, or use proctor leaderboard");
  }
  return out;
}

ReportInput pooled(const std::vector<MergedCampaign>& campaigns) {
  const MergedCampaign& first = campaigns.front();
  const Names tasks = common_names(campaigns, tasks_of);
  const Names methods = common_names(campaigns, methods_of);
  ReportInput out;
  out.unit = first.runs.unit;
  out.strata_keys = first.runs.strata_keys;
  out.alpha = first.runs.alpha;
  out.plan = first.runs.plan;
  for (const auto& pair : first.runs.contrasts)
    if (methods.contains(pair.first) && methods.contains(pair.second))
      out.contrasts.push_back(pair);
  std::string ids;
  std::map<std::pair<std::string, std::string>, std::uint64_t> replicates;
  out.deviations.emplace_back(
      "pooled of several campaigns: no plan of analysis had registered the pool, so its "
      "comparisons are exploratory");
  for (const MergedCampaign& c : campaigns) {
    ids += c.runs.campaign + "\n";
    tell_left_out(c, "tasks", tasks_of(c.registration), tasks, out.deviations);
    tell_left_out(c, "methods", methods_of(c.registration), methods, out.deviations);
    out.configurations.insert(c.runs.configurations.begin(), c.runs.configurations.end());
    for (const std::string& d : c.runs.deviations)
      out.deviations.push_back(printable(c.runs.campaign) + ": " + d);
    for (const std::string& a : c.runs.approvals)
      out.approvals.push_back(printable(c.runs.campaign) + ": " + a);
    for (const RunRecord& run : c.runs.runs) {
      if (!tasks.contains(run.task) || !methods.contains(run.method)) continue;
      RunRecord& one = out.runs.emplace_back(run);
      one.run = RunId(static_cast<std::uint32_t>(out.runs.size() - 1));
      one.name =
          fmt::format("{}/{}/r{}", run.task, run.method, ++replicates[{run.task, run.method}]);
    }
  }
  for (std::size_t i = 1; i < campaigns.size(); ++i)
    if (campaigns[i].registration.seed == first.registration.seed) {
      out.deviations.emplace_back(
          "their plans have one seed: a method that draws from the seed of its run repeats itself, "
          "and its replicates are fewer than they seem");
      break;
    }
  for (std::size_t i = 1; i < campaigns.size(); ++i)
    if (campaigns[i].registration.tool_version != first.registration.tool_version)
      out.deviations.push_back(fmt::format("{} was frozen by proctor {}, the first by {}",
                                           printable(campaigns[i].runs.campaign),
                                           printable(campaigns[i].registration.tool_version),
                                           printable(first.registration.tool_version)));
  out.campaign = "merge-" + sha256(ids).short_hex();
  return out;
}

namespace {
// What must be alike for two campaigns to be one configuration class.
void tell_differences(const ComparedCampaign& before, const ComparedCampaign& after,
                      std::vector<std::string>& out) {
  const Registration &older = before.registration, &newer = after.registration;
  const Numbers caps{older.caps, before.report.unit}, new_caps{newer.caps, after.report.unit};
  for (const std::string& name : caps_of(older, newer))
    if (number_in(caps, name) != number_in(new_caps, name))
      out.push_back(fmt::format("the cap {} is {} in the older, {} in the newer", cap_word(name),
                                shown_in(caps, name), shown_in(new_caps, name)));
  const Numbers given{older.envelopes, before.report.unit},
      new_given{newer.envelopes, after.report.unit};
  if (number_in(given, "run") != number_in(new_given, "run"))
    out.push_back(fmt::format("a run may spend {} in the older, {} in the newer",
                              shown_in(given, "run"), shown_in(new_given, "run")));
  if (older.cost_model != newer.cost_model)
    out.emplace_back("their price tables differ, so costs do not compare");
  if (older.seed != newer.seed)
    out.push_back("their seeds differ (" + std::to_string(older.seed) + ", " +
                  std::to_string(newer.seed) + ")");
  if (older.tool_version != newer.tool_version)
    out.push_back("they were frozen by different versions (" + printable(older.tool_version) +
                  ", " + printable(newer.tool_version) + ")");
}

// Common tasks whose runs are of other configuration classes in one than in the other (R127).
void tell_configurations(const ComparedCampaign& before, const ComparedCampaign& after,
                         const std::vector<std::string>& common, std::vector<std::string>& out) {
  const auto older = classes_by_task(before.report.runs),
             newer = classes_by_task(after.report.runs);
  if (older.empty() != newer.empty())
    out.push_back(
        fmt::format("no run of the {} says its configuration class, so that whether "
                    "sandboxes, limits and workers were alike is not known",
                    older.empty() ? "older" : "newer"));
  std::size_t differ = 0, both = 0;
  std::set<std::string_view> classes;
  for (const std::string& task : common) {
    const auto a = older.find(task), b = newer.find(task);
    if (a == older.end() || b == newer.end()) continue;
    ++both;
    if (a->second == b->second) continue;
    ++differ;
    classes.insert(a->second.begin(), a->second.end());
    classes.insert(b->second.begin(), b->second.end());
  }
  if (differ == 0) return;
  Configurations known = before.report.configurations;
  known.insert(after.report.configurations.begin(), after.report.configurations.end());
  out.push_back(fmt::format("runs of {} of {} in common are of other configuration classes: {}",
                            differ, counted(both, "task"),
                            configuration_difference(classes, known)));
}

void tell_missing(const CampaignReport& report, const char* which, std::vector<std::string>& out) {
  const ReportRow& total = report.total;
  // Whoever takes runs away chooses what is compared.
  for (const auto& [n, what] :
       {std::pair(total.parked, "are parked"), std::pair(total.cancelled, "were cancelled"),
        std::pair(total.removed, "were removed with their tasks")})
    if (0 < n) out.push_back(fmt::format("{} runs of the {} {}", n, which, what));
}

void sort_tasks(const ComparedCampaign& older, const ComparedCampaign& newer,
                CampaignComparison& out) {
  const Names before = tasks_of(older.registration), now = tasks_of(newer.registration);
  std::ranges::set_difference(before, now, std::back_inserter(out.only_older));
  std::ranges::set_difference(now, before, std::back_inserter(out.only_newer));
  for (const std::string& task : before)
    if (now.contains(task))
      (older.registration.contracts.at(task) == newer.registration.contracts.at(task) ? out.common
                                                                                      : out.changed)
          .push_back(task);
}

// The cells of one method on some tasks, in their order.
std::vector<TaskCell> column(const TaskCells& cells, const std::string& method,
                             const std::vector<std::string>& tasks) {
  std::vector<TaskCell> out;
  const std::size_t m = cells.method(method);
  for (const std::string& task : tasks) out.push_back(cells.cell(task, m));
  return out;
}

struct Means {
  double cost = 0, time = 0;
  std::map<std::string, std::uint64_t> invalid;  // why runs ended so
};
Means means_of(const CampaignReport& report, const std::string& method,
               const std::vector<std::string>& tasks) {
  Means out;
  double ended = 0, timed = 0;
  for (const RunRecord& run : report.runs) {
    if (run.method != method || run.state != RunRecord::State::kEnded ||
        !std::ranges::binary_search(tasks, run.task))
      continue;
    ended += 1;
    out.cost += static_cast<double>(run.cost.total().micros());
    timed += run.wall_ms == 0 ? 0 : 1;
    out.time += static_cast<double>(run.wall_ms);
    if (run.outcome == RunOutcome::kInvalid) ++out.invalid[std::string(to_string(run.termination))];
  }
  if (0 < ended) out.cost /= ended;
  if (0 < timed) out.time /= timed;
  return out;
}

// What a control comes to is the same as long as tasks and checks are.
void tell_turned(const MethodComparison& control, std::vector<std::string>& out) {
  const std::uint64_t turned = control.contrast.a_better + control.contrast.b_better;
  if (!control.is_control || turned == 0) return;
  out.push_back(printable(control.new_name) + ", which measures the tasks and no agent, came to " +
                "something else at " + counted(turned, "task") +
                ": their checks or what they run on have changed, and so may the others for that");
}

std::optional<double> ratio(double newer, double older) {
  return 0 < older ? std::optional(newer / older) : std::nullopt;
}

MethodComparison compare_method(const ComparedCampaign& older, const ComparedCampaign& newer,
                                const std::string& old_name, const std::string& new_name,
                                const CampaignComparison& all) {
  MethodComparison out;
  out.old_name = old_name;
  out.new_name = new_name;
  AnalysisPlan plan;
  plan.alpha.value = static_cast<std::uint32_t>(all.alpha * 1e6 + 0.5);
  plan.non_inferiority.value = static_cast<std::uint32_t>(all.margin * 1e6 + 0.5);
  plan.unit = registered_plan(newer.registration).unit;
  const TaskCells cells = task_cells(newer.report.runs);
  std::vector<std::uint32_t> repositories;
  for (const std::string& task : all.common) {
    const std::size_t at = cells.place(task);
    repositories.push_back(at < cells.tasks.size() ? cells.repositories[at] : 0);
  }
  out.contrast =
      contrast_of(column(cells, new_name, all.common),
                  column(task_cells(older.report.runs), old_name, all.common), plan, repositories);
  out.contrast.a = new_name;
  out.contrast.b = old_name;
  out.p_turned = mcnemar_exact({0, out.contrast.a_better, out.contrast.b_better, 0});
  const Means now = means_of(newer.report, new_name, all.common);
  const Means before = means_of(older.report, old_name, all.common);
  if (0 < out.contrast.tasks) {
    out.cost_ratio = ratio(now.cost, before.cost);
    out.time_ratio = ratio(now.time, before.time);
  }
  for (const auto& [why, n] : now.invalid)
    if (before.invalid.count(why) == 0) out.new_invalid.emplace(why, n);
  return out;
}

// All units differ alike, so no spread says how sure that is.  Of n units none did worse: at alpha
// at most 1 - alpha^(1/n) of all would, each by all it has.  Worse is what a flip of signs
// would not bring about by chance.
Decision decision_of_like(const Contrast& c, double margin, double alpha) {
  const double d = *c.difference.estimate.value;
  const double unseen = 1 - std::pow(alpha, 1 / static_cast<double>(c.units));
  if (-margin < d - (1 + d) * unseen) return Decision::kNotWorse;
  const bool by_chance = !c.flips || alpha < c.flips->p;
  return d < -margin && !by_chance ? Decision::kWorse : Decision::kUndecided;
}
}  // namespace

Decision decision_of(const MethodComparison& method, double margin, double alpha) {
  const Contrast& c = method.contrast;
  const Estimate& d = c.difference.estimate;
  if (!d.value) return Decision::kUndecided;
  if (d.why == Why::kNoVariance) return decision_of_like(c, margin, alpha);
  if (d.interval && d.interval->high < -margin) return Decision::kWorse;
  if (c.not_inferior && *c.not_inferior <= alpha) return Decision::kNotWorse;
  return Decision::kUndecided;
}

Decision decision_of(const CampaignComparison& comparison) {
  const bool is_open = comparison.methods.empty() || !comparison.lost_agents.empty();
  Decision out = is_open ? Decision::kUndecided : Decision::kNotWorse;
  const bool has_agent =
      std::ranges::any_of(comparison.methods, std::logical_not<>(), &MethodComparison::is_control);
  for (const MethodComparison& m : comparison.methods) {
    if (m.is_control && has_agent) continue;
    const Decision one = decision_of(m, comparison.margin, comparison.alpha);
    if (one == Decision::kWorse) return one;
    if (one == Decision::kUndecided) out = one;
  }
  return out;
}

CampaignComparison compare_campaigns(const ComparedCampaign& older, const ComparedCampaign& newer,
                                     const std::map<std::string, std::string>& names,
                                     double margin) {
  CampaignComparison out;
  out.older = older.report.campaign;
  out.newer = newer.report.campaign;
  SeenRuns seen;
  seen.add(out.older, older.report.runs);
  if (const auto again = seen.add(out.newer, newer.report.runs); 0 < again.runs)
    out.one_campaign = fmt::format(
        "both are one campaign, given twice or one folder a copy of the other: {} runs are in both",
        again.runs);
  out.margin = margin;
  out.alpha = newer.registration.analysis_plan.value_or(AnalysisPlan{}).alpha.real();
  tell_differences(older, newer, out.differences);
  tell_missing(older.report, "older", out.differences);
  tell_missing(newer.report, "newer", out.differences);
  sort_tasks(older, newer, out);
  tell_configurations(older, newer, out.common, out.differences);
  std::set<std::string> counterparts;
  for (const auto& [old_name, digest] : older.registration.methods) {
    const auto renamed = names.find(old_name);
    const std::string new_name = renamed == names.end() ? old_name : renamed->second;
    const auto found = newer.registration.methods.find(new_name);
    if (found == newer.registration.methods.end()) {
      out.methods_only_older.push_back(old_name);
      if (!is_control(older.report, old_name)) out.lost_agents.push_back(old_name);
      continue;
    }
    counterparts.insert(new_name);
    MethodComparison one = compare_method(older, newer, old_name, new_name, out);
    one.is_control = is_control(older.report, old_name) && is_control(newer.report, new_name);
    tell_turned(one, out.differences);
    out.methods.push_back(std::move(one));
  }
  std::ranges::stable_partition(out.methods, std::logical_not<>(), &MethodComparison::is_control);
  for (const auto& [name, digest] : newer.registration.methods)
    if (counterparts.count(name) == 0) out.methods_only_newer.push_back(name);
  return out;
}

// The output of `proctor compare`: for people, and as JSON.

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
  return fmt::format(
      "  * {} of the older {} not in the newer, so nothing says that {} not worse: --map OLD=NEW "
      "names one that is called otherwise, --method one that is asked about alone\n",
      listed_names(c.lost_agents), c.lost_agents.size() == 1 ? "is" : "are",
      c.lost_agents.size() == 1 ? "it is" : "they are");
}

std::string times(const std::optional<double>& ratio) {
  return ratio ? fmt::format("x{:.2f}", *ratio) : "-";
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
  const auto columns = contrast_columns().named("difference|interval|p|tasks|better|worse");
  std::vector<std::string> head = titles_of(columns);
  head.insert(head.begin(), {"method", "decision"});
  head.insert(head.end(), {"p turned", "cost", "time"});
  Table table(head, 2);
  for (const MethodComparison& m : c.methods) {
    const std::string name =
        m.old_name == m.new_name ? m.new_name : m.old_name + " -> " + m.new_name;
    const std::string_view decision = word_of(decision_of(m, c.margin, c.alpha));
    std::vector<std::string> cells = cells_of(columns, m.contrast);
    cells.insert(cells.begin(),
                 {printable(name), m.is_control ? "control" : std::string(decision)});
    cells.insert(cells.end(), {p_words(m.p_turned), times(m.cost_ratio), times(m.time_ratio)});
    table.group(controls_apart(m));
    table.add(std::move(cells));
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
      fmt::format("\nTogether: {}{}\n", word_of(decision_of(c)),
                  are_left_out ? " (noop and reference measure the tasks and decide nothing)" : "");
  return out + lost_words(c);
}

std::string render_comparison_json(const CampaignComparison& c) {
  const auto method = [&](const MethodComparison& m) {
    return filled(R"({"older":$,"newer":$,"decision":$,"control":$,"contrast":$,"p_turned":$,)"
                  R"("cost_ratio":$,"time_ratio":$,"new_invalid":$})",
                  {m.old_name, m.new_name, word_of(decision_of(m, c.margin, c.alpha)), m.is_control,
                   contrast_columns().json(m.contrast), m.p_turned, or_null(m.cost_ratio),
                   or_null(m.time_ratio), m.new_invalid});
  };
  return filled(
             R"({"older":$,"newer":$,"one_campaign":$,"margin":$,"alpha":$,"decision":$,)"
             R"("provisional":$,"common":$,"changed":$,"only_older":$,"only_newer":$,"methods":@,)"
             R"("methods_only_older":$,"methods_only_newer":$,"lost_agents":$})",
             {c.older, c.newer, c.one_campaign, c.margin, c.alpha, word_of(decision_of(c)),
              c.differences, c.common, c.changed, c.only_older, c.only_newer,
              listed(c.methods, method), c.methods_only_older, c.methods_only_newer,
              c.lost_agents}) +
         "\n";
}
}  // namespace proctor
