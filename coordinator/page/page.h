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
struct Campaign;

// What is registered of a campaign and no report holds.
struct PageFacts {
  struct Fact {
    std::string what, value;
  };
  std::vector<Fact> methods;  // by name: "reference", "command"
  // An alert of the evidence: a violation, or words that a pattern names.
  struct Seen {
    std::string run, violation;
    std::string form, segment;  // a command: how it passed, its line; a call: its target
    enum class Kind : std::uint8_t { kCritical, kOther, kWords } kind = Kind::kOther;
    std::uint64_t more = 0;  // alerts of the run that are left out behind this one
    friend bool operator==(const Seen&, const Seen&) = default;
  };
  std::string folder = "CAMPAIGN";  // its usual one, by the registered name
  std::vector<Fact> asked;          // tasks, replicates, seed, ...
  std::vector<Fact> caps;           // limits of a run, and envelopes
  std::vector<Fact> judged;         // see judging_facts()
  std::vector<Fact> origins;        // digests and versions
  std::vector<Seen> seen;           // the first kSeenRuns with a violation
  std::vector<Fact> removals;       // by task, the reason
  std::string provisional;  // why results are (another seed than the planned one); empty: not
};

inline constexpr std::size_t kSeenRuns = 20;

// Registered rules of the score, and what stops a run or the campaign.
std::vector<PageFacts::Fact> judging_facts(const Campaign& campaign);
// The caps of a run that hold: of contract or campaign, whichever is lower.
std::vector<PageFacts::Fact> cap_facts(const Campaign& campaign);

struct PageInput {
  const CampaignReport& report;  // Requires: with its details (details.h)
  const PageFacts& facts;
  const MoneyInput* money = nullptr;  // nothing: nobody has run anything yet
};
std::string render_html(const PageInput& input);

// A leaderboard as one file of the same kind.
std::string render_leaderboard_html(const Leaderboard& board);
}  // namespace proctor
