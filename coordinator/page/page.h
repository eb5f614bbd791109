#pragma once
// reports/report.html: the whole report as one file that needs nothing beside it and runs nothing.
// In the order of questions: what was asked, what happened, the answer with its interval, what to
// distrust, what it cost, where the runs are.  Pure: the same input gives the same bytes.
#include <string>
#include <vector>

#include "coordinator/aggregate/leaderboard.h"
#include "coordinator/aggregate/money.h"
#include "coordinator/aggregate/report.h"

namespace proctor {
// What is registered of a campaign and no report holds.
struct PageFacts {
  struct Fact {
    std::string what, value;
  };
  struct MethodFact {
    std::string name, kind;  // "reference", "command"
  };
  struct Removal {
    std::string task, reason;
  };
  std::vector<MethodFact> methods;
  std::vector<Fact> asked;    // tasks, replicates, seed, ...
  std::vector<Fact> caps;     // of a run and of envelopes
  std::vector<Fact> origins;  // digests and versions
  std::vector<Removal> removals;
  std::string provisional;  // why results are (another seed than the planned one); empty: not
};

struct PageInput {
  const CampaignReport& report;  // Requires: with its details (details.h)
  const PageFacts& facts;
  const MoneyInput* money = nullptr;  // nothing: nobody has run anything yet
};
std::string render_html(const PageInput& input);

// A leaderboard as one file of the same kind.
std::string render_leaderboard_html(const Leaderboard& board);
}  // namespace proctor
