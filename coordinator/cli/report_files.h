#pragma once
// From a campaign's journal to its report: in the terminal and as files under reports/.
#include <string>

#include "coordinator/aggregate/report.h"
#include "coordinator/cli/campaign_files.h"

namespace proctor::cli {

Result<CampaignReport> read_report(const FrozenCampaign& frozen);
// Writes report.txt, .json and .csv, runs.csv, costs.csv, success.svg and burndown.svg; with
// inputs of a projection also projection.csv.  What the
// terminal shows.
Result<std::string> write_report_files(const FrozenCampaign& frozen);

}  // namespace proctor::cli
