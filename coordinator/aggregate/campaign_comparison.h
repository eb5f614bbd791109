#pragma once
// Several campaigns at once: pooled (`proctor merge`) or one against another (`proctor compare`)
// (R127; docs/analysis.md).  Pure.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/words.h"
#include "common/plan/registration.h"
#include "coordinator/aggregate/analysis.h"
#include "coordinator/aggregate/report.h"

namespace proctor {
// Campaigns of one configuration class as one table: more replicates of the same tasks under the
// same methods and limits (`proctor merge`).

struct MergedCampaign {
  const Registration& registration;
  const ReportInput& runs;
};

// Why they may not be pooled, a sentence each; empty: they may.  What is equal in all: strata,
// contracts of common tasks, methods of one name, caps, what a run may spend, prices, the plan of
// analysis; no attempt is in two of them; and each may_be_compared().
std::vector<std::string> why_not_pooled(const std::vector<MergedCampaign>& campaigns);

// Their runs as those of one campaign: of tasks and methods that all of them have, in the order of
// the campaigns, replicates numbered on.  Its deviations say what was left out, and that no plan
// had registered the pool.  Requires: why_not_pooled() is empty, at least one campaign.
ReportInput pooled(const std::vector<MergedCampaign>& campaigns);

// Two campaigns side by side: what keeps them from being compared, and how each method of the newer
// one differs from the same method of the older, paired over the tasks that both have
// (`proctor compare`).

struct ComparedCampaign {
  const Registration& registration;
  const CampaignReport& report;
};

// How one method of the newer campaign did against its counterpart in the older.
struct MethodComparison {
  std::string old_name, new_name;
  // noop or reference in both: it measures the tasks, so what it came to decides nothing, and where
  // it changed the tasks or their checks did.
  bool is_control = false;
  Contrast contrast;  // newer less older
  // Mean cost and time of an ended run on the common tasks, newer over older; nothing where the
  // older one's is 0, or where no task is paired.
  std::optional<double> cost_ratio, time_ratio;
  // Tasks that turned, and how probable it is that so many of them turned one way by chance.
  double p_turned = 1;
  // Reasons why runs ended invalid that the older campaign does not know, with how often.
  std::map<std::string, std::uint64_t> new_invalid;
};

enum class Decision : std::uint8_t { kNotWorse, kWorse, kUndecided };
constexpr auto words(Decision) {
  return std::to_array<Word<Decision>>({{"not worse", Decision::kNotWorse},
                                        {"worse", Decision::kWorse},
                                        {"undecided", Decision::kUndecided}});
}

struct CampaignComparison {
  std::string older, newer;              // ids
  std::string one_campaign;              // why both are one, a sentence; empty: they are two
  std::vector<std::string> differences;  // that make the result provisional, a sentence each
  std::vector<std::string> common, only_older, only_newer;  // tasks; common: by equal contracts
  std::vector<std::string> changed;  // tasks of the same name whose contracts differ: not compared
  std::vector<MethodComparison> methods;
  // Methods without a counterpart: no row tells how they did.  lost_agents: those of only the older
  // that are neither noop nor reference, so nobody knows whether they are worse.
  std::vector<std::string> methods_only_older, methods_only_newer, lost_agents;
  double margin = 0.05;
  double alpha = 0.05;
};

// `names`: of methods, older to newer, where they are called otherwise.  A method without a
// counterpart is named, and has no row.  Requires: both may_be_compared().
CampaignComparison compare_campaigns(const ComparedCampaign& older, const ComparedCampaign& newer,
                                     const std::map<std::string, std::string>& names,
                                     double margin);

// Worse: the interval lies below -margin.  Not worse: the one-sided test at -margin is passed.
// Where all tasks differ alike there is no interval: not worse where so many tasks bound the share
// of those that would do worse below the margin, worse where the exact test says so.
Decision decision_of(const MethodComparison& method, double margin, double alpha);
// Of all methods together: worse where one is, else undecided where one is or an agent was lost.
// Controls are left out where there is another method.
Decision decision_of(const CampaignComparison& comparison);

std::string render_comparison_text(const CampaignComparison& comparison);
std::string render_comparison_json(const CampaignComparison& comparison);
}  // namespace proctor
