#include "coordinator/aggregate/campaign_merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "common/base/money.h"
#include "common/base/text.h"

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
std::string shown(const std::string& name, std::int64_t value, const std::string& unit) {
  return is_money(name) ? format_usd(MicroUsd::from_micros(value)) + " " + unit
                        : std::to_string(value);
}

void tell_numbers(const Numbers& first, const Numbers& other, const std::string& who,
                  const char* what, std::vector<std::string>& out) {
  std::map<std::string, std::pair<std::string, std::string>> all;
  for (const auto& [name, value] : first.of) all[name] = {shown(name, value, first.unit), "none"};
  for (const auto& [name, value] : other.of) {
    auto& both = all.try_emplace(name, "none", "").first->second;
    both.second = shown(name, value, other.unit);
  }
  for (const auto& [name, both] : all)
    if (both.first != both.second)
      out.push_back(fmt::format(
          "{} {} is {} in the first and {} in {}: under another limit a run "
          "is another run",
          what, name == "micro_usd" ? "usd" : printable(name), both.first, both.second, who));
}

std::map<std::string, std::int64_t> of_a_run(const Registration& r) {
  const auto found = r.envelopes.find("run");
  if (found == r.envelopes.end()) return {};
  return {{"run", found->second}};
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
  tell_numbers({a.caps, unit}, {b.caps, its}, who, "cap", out);
  tell_numbers({of_a_run(a), unit}, {of_a_run(b), its}, who, "the envelope of a", out);
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

}  // namespace proctor
