#pragma once
// Campaigns of trials, which `try`, `selfcheck` and `screen` run in folders of their own below
// .proctor: one function makes all of them.  In selfcheck's every variant of a contract but noop is
// a contract whose reference is that variant's patch, so that the workers' ordinary acceptance
// judges it.
#include <optional>
#include <string>
#include <vector>

#include "common/pilot/selfcheck.h"
#include "coordinator/aggregate/report.h"
#include "coordinator/cli/campaign_files.h"

namespace proctor::cli {
struct Trials {
  std::vector<Contract> contracts{};
  std::vector<Method> methods{};  // empty: noop and reference
  std::uint32_t repeats = 1;      // each contract under each method
  std::optional<MicroUsd> usd{};  // limit of all together; nothing: none
  Caps caps{};                    // a stage's, beside the campaign's
  std::uint32_t infrastructure_retries = 0;
};
// From `campaign` it has the name, the seed, what bounds one run (caps, rates, dominance,
// isolation) and what prices it; everything else, keys to come included, is as if nobody had
// written it: no stages, gates, envelopes, plan of analysis or ledger of the campaign.  What fails
// is told and parks neither its task nor its worker.
Campaign trial_campaign(const Campaign& campaign, Trials trials);

// "the campaign has no task jason-lib (did you mean json-lib?)"
Error no_such(const std::string& whose, const std::string& what, const std::string& name,
              const std::vector<std::string_view>& names);
// As no_such(): the registration does not have it.
Status has_method(const std::string& whose, const Registration& campaign,
                  const std::string& method);

// One task, one method, once, with the caps of the first stage that may have the task.  kInvalid:
// the campaign has no such one.
Result<Campaign> try_campaign(const Campaign& campaign, const std::string& task,
                              const std::string& method);

struct TaskVariants {
  const Contract* contract = nullptr;  // of the campaign
  std::vector<Variant> variants;
};

StateFolder selfcheck_folder(const fs::path& campaign);
// `usd`: what all of it may cost; nothing: no limit.
Campaign selfcheck_campaign(const Campaign& campaign, const std::vector<TaskVariants>& tasks,
                            std::uint32_t repeats, std::optional<MicroUsd> usd);
// Frozen without a time, so that the same trials are the same campaign, which goes on where it was.
// What is no variant of `tasks` is taken out of its plan; no tasks: all of it is wanted.
Result<FrozenCampaign> freeze_trials(Campaign derived, const std::vector<TaskVariants>& tasks,
                                     StateFolder folder);
// What the runs of one task came to, by variant and repeat; checks as their reports have them.
std::vector<VariantRuns> runs_of(const FrozenCampaign& frozen, const CampaignReport& report,
                                 const TaskVariants& task);

// The campaign of one run that `proctor try` makes and others read again, in a folder of its own
// below the campaign's, .proctor/try/TASK/METHOD.

StateFolder try_folder(const fs::path& campaign, const std::string& task,
                       const std::string& method);

struct TriedRun {
  StateFolder folder;
  std::string name;  // TASK/METHOD/r1, run 0 of its plan
};
// `run`: TASK/METHOD, perhaps with /r1.  kNotFound: it has not been tried.
Result<TriedRun> find_try(const std::string& campaign, const std::string& run);
// With what is read of the campaign as it is now.
Result<FrozenCampaign> load_try(const std::string& campaign, const std::string& run);

// A run as the commands that read one are asked for it: of the registered campaign, or of a try.
struct AskedRun {
  FrozenCampaign frozen;
  RunId run;
};
enum class Whose : std::uint8_t { kCampaign, kTry };
Result<AskedRun> find_asked(const std::string& campaign, const std::string& run, Whose whose);
// Says with an error about a run that a try of it is there.
Error with_try_hint(Error error, const std::string& campaign, const std::string& run);
}  // namespace proctor::cli
