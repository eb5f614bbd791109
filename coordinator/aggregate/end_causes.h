#pragma once
// What a reader of a report has to know before its numbers: why runs came to no verdict, and which
// tasks cannot tell a solution from none.  Pure.
#include <string>
#include <vector>

#include "coordinator/aggregate/report.h"

namespace proctor {

// Runs that ended invalid or as acceptance errors, of one method and for one cause.
struct EndCause {
  RunOutcome outcome = RunOutcome::kInvalid;
  std::string method;
  std::string why;    // of the first of them; of an acceptance error empty: its checks say it
  std::string first;  // that run's name
  std::uint64_t runs = 0;
};
// The most frequent first.
std::vector<EndCause> end_causes(const CampaignReport& report);

// Ended runs that neither passed nor failed, all of them: nothing was measured.
bool is_without_verdict(const CampaignReport& report);

// A sentence for each task whose checks pass with nothing changed, or do not pass with its
// reference patch.
std::vector<std::string> broken_tasks(const CampaignReport& report);
// Of one run; empty: it does not show that.
std::string broken_task_word(const RunRecord& run);

// Both as sections of the report; nothing where there is nothing to say.
void append_end_causes(std::string& out, const CampaignReport& report);
void append_broken_tasks(std::string& out, const CampaignReport& report);

}  // namespace proctor
