#pragma once
// Exports of a campaign's runs into the forms of other projects: Inspect logs, Every Eval Ever.
#include <string>
#include <vector>

#include "coordinator/aggregate/report.h"
#include "coordinator/cli/campaign_files.h"

namespace proctor::cli {

// Where they go by themselves, below reports/.
inline constexpr const char *kInspectFolder = "inspect", *kEveryEvalFolder = "every-eval";

struct WrittenForms {
  std::string said;             // what to tell: each file, and each method without one
  std::vector<fs::path> files;  // below `into`
};

// Writes below `into`, which is made where it is not there.
Result<WrittenForms> write_inspect_logs(const FrozenCampaign& frozen, const CampaignReport& report,
                                        const fs::path& into);
Result<WrittenForms> write_every_eval(const FrozenCampaign& frozen, const CampaignReport& report,
                                      const fs::path& into);

}  // namespace proctor::cli
