#pragma once
// Methods of many campaigns in tables (docs/analysis.md): campaigns share a table only where the
// tasks that are counted have equal contracts, and a table has no strict order but, for each row,
// the ranks that the data allow (R127; common/stats/simultaneous.h).  Pure.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/plan/registration.h"
#include "common/stats/simultaneous.h"
#include "coordinator/aggregate/analysis.h"

namespace proctor {
struct BoardCampaign {
  const Registration& registration;
  const CampaignReport& report;
  std::string folder;  // as its reader calls it
};

// One method of one campaign.
struct BoardRow {
  std::string campaign, folder, method;
  std::uint64_t tasks = 0, runs = 0;  // scorable
  Estimate rate;                      // over tasks, at the board's alpha
  // Among the agents of its table; 1 to their number where nothing is known; none: a control.
  std::optional<RankSet> ranks;
  std::optional<Bounds> bounds;  // had errors and invalid runs ended either way
  std::uint64_t satisfied = 0, acceptance_error = 0, invalid = 0, open = 0, not_run = 0;
  // Of an ended run on the counted tasks, in dollars, and of a success.
  std::optional<double> cost_of_run, cost_of_success;
  std::string prices;  // version and digest of the price table
  std::string caps;    // of a run, for people
  std::string tool_version;
  std::int64_t registered_ms = 0;
  std::string journal_head;
  // Ended runs whose report is not there to be checked: then the row is unverified.
  std::uint64_t without_evidence = 0;
  bool verified() const { return without_evidence == 0 && !journal_head.empty(); }
};

struct BoardTable {
  Digest tasks_digest;  // over the names and contracts of its tasks
  std::vector<std::string> tasks;
  std::vector<BoardRow> rows;            // by best rank, worst rank, name; controls last
  std::vector<std::string> differences;  // between its campaigns, a sentence each
  std::string rank_rule;                 // how ranks were told apart
};

struct Leaderboard {
  std::vector<BoardTable> tables;  // by number of rows, then by their first campaign
  double alpha = 0.05;
};

// `tasks`: those that are counted; empty: all that were not removed.  Requires: each campaign
// may_be_compared().
Leaderboard make_leaderboard(const std::vector<BoardCampaign>& campaigns,
                             const std::vector<std::string>& tasks);

std::string render_leaderboard_text(const Leaderboard& board);
std::string render_leaderboard_json(const Leaderboard& board);
std::string render_leaderboard_csv(const Leaderboard& board);
}  // namespace proctor
