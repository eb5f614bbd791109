#pragma once
// From a campaign's files and journal to its projection and its report.
#include <map>
#include <string>

#include "common/trace/run_report.h"
#include "coordinator/aggregate/money.h"
#include "coordinator/aggregate/projection.h"
#include "coordinator/aggregate/report.h"
#include "coordinator/cli/campaign_files.h"
#include "coordinator/journal/journal_reader.h"
#include "coordinator/page/page.h"
#include "coordinator/shell/campaign_view.h"

namespace proctor::cli {
// The input of a campaign's projection.  Envelopes as registered: raises are deviations, and a
// projection is older than they are.  `registration`: none while the campaign is not frozen.
// Pure: reads and writes nothing.
ProjectionInput projection_input(const Campaign& campaign, const Plan& plan,
                                 const Registration* registration);

// kInvalid, with both digests: the file of this run is not as it was recorded.
Status has_digest(const fs::path& file, const Digest& found, const Digest& expected,
                  const std::string& run);
// A file of an attempt whose digest is recorded.  kNotFound: it is not here; kInvalid: as above.
Result<std::string> bound_file(const fs::path& file, const Digest& expected, std::size_t bytes_max,
                               const std::string& run);
// Its report.json, by the digest that the journal has.
Result<RunReport> bound_report(const StateFolder& folder, const std::string& run, AttemptNo no,
                               const Digest& expected);

// "regrade of ID", of the campaign whose recorded patches it judges, or "replay of ID" where that
// judged by the same contracts; empty: its agents are its own.
std::string again_of(const Campaign& campaign);

// Alerts of an attempt in the order of the page: critical violations, other ones, words.  At most
// ten: the first of each violation, then others of them, then words.  Evidence that is gone or
// broken shows the less; `proctor verify` says so.
std::vector<PageFacts::Seen> seen_in(const fs::path& attempt, const std::string& run);

// From a campaign's journal to its report: in the terminal and as files under reports/.

// The runs alone, by number: what a report counts.
Result<ReportInput> read_runs(const FrozenCampaign& frozen);
Result<CampaignReport> read_report(const FrozenCampaign& frozen);
// Of a journal at one moment, and of the view that was made of it.
Result<CampaignReport> read_report(const FrozenCampaign& frozen, JournalReader& journal,
                                   const CampaignView& view);

// Of the runs of one stage, with details; what is not of one stage (the projection) is left out.
Result<CampaignReport> read_stage_report(const FrozenCampaign& frozen, const std::string& stage);

struct RenderedReport {
  CampaignReport report;
  std::map<std::string, std::string> files;  // name to bytes
  bool running = false;                      // then burndown.svg ends now
  std::string tables;                        // report.txt without its words
};
// What write_report_files writes, from the journal as it is.
Result<RenderedReport> render_report_files(const FrozenCampaign& frozen);

struct WrittenReport {
  CampaignReport report;
  std::string shown;  // on the terminal
};
// Writes report.html, .txt, .json and .csv, contrasts.csv, runs.csv, run_records.jsonl, costs.csv,
// junit.xml, summary.md, badge.svg, success.svg, burndown.svg and gated_rubric_schema.json; with
// inputs of a projection also projection.csv.  And digests.json (report.h).
Result<WrittenReport> write_report_files(const FrozenCampaign& frozen,
                                         Words words = Words::kLeftOut);
}  // namespace proctor::cli
