#pragma once
// What a reader of a report has to know before any number, as far as its runs say it.  Pure.
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/aggregate/report.h"

namespace proctor {
// One sentence for each method of which a recording answered calls of models: it shows nothing of
// what they cost, and may not be what a provider would say today.
std::vector<std::string> recording_warnings(std::span<const RunRecord> runs);

// Configuration classes of runs that ended (R127).

// The classes of each of these runs' tasks; runs of a worker that did not say one are left out.
std::map<std::string_view, std::set<std::string_view>> classes_by_task(
    std::span<const RunRecord> runs);
// "sandbox (bubblewrap, docker), worker.commit (a, b)"; "parts that are not known here" where fewer
// than two of them could be read.
std::string configuration_difference(const std::set<std::string_view>& classes,
                                     const Configurations& known);
// Which tasks have runs of several, and what differs; empty: none.
std::string configuration_warning(std::span<const RunRecord> runs, const Configurations& known);
// "2 configuration classes: 0123456789abcdef 40 runs, ..."; empty: no run has one.
std::string configuration_line(std::span<const RunRecord> runs);

// The bounds of what a report says, a sentence each, which its text, its page and its JSON share:
// policy, scope (R195), assumptions, which runs cannot be replayed and why (R075), configuration
// classes, and of which days they are (R196).
std::vector<std::string> report_limits(const CampaignReport& report);

// Why runs came to no verdict, and which tasks cannot tell a solution from none.

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
// "2 invalid of agent: WHY (task/agent/r1)"; `why` may be empty.
std::string end_cause_text(const EndCause& cause, const std::string& why);

// A sentence for each task whose checks pass with nothing changed, or do not pass with its
// reference patch, or pass and then do not.
std::vector<std::string> broken_tasks(std::span<const RunRecord> runs);
// Why results are not to be trusted, whatever they are: every run that ended is without a verdict,
// or a control came out wrong.  Empty: neither is so.
std::string why_worthless(std::span<const RunRecord> runs);
// "agent: 2 of 3 successes did not pass a gate beside their checks", of each method that has such.
std::vector<std::string> unsatisfied_methods(const CampaignReport& report);
// Of one run; empty: it does not show that.  With RunRecord::passes its task is flaky.
std::string broken_task_word(const RunRecord& run);

// A method all of whose judged runs ended as soon as they had begun, with one exit code that is not
// 0, and none of which succeeded: an agent that never did anything, in numbers as any other.
struct EarlyEnd {
  std::string method;
  std::uint64_t runs = 0;  // all that were judged
  int exit_code = 0;
  std::size_t first = 0;  // position of one of them
};
std::vector<EarlyEnd> early_ends(const std::vector<RunRecord>& runs);
// "4 of 4 runs of py-agent ended within 2 s with exit code 1, and none succeeded: ...".
std::string early_end_text(const EarlyEnd& early, const std::vector<RunRecord>& runs);

// All as sections of the report; nothing where there is nothing to say.
void append_end_causes(std::string& out, const CampaignReport& report);
void append_broken_tasks(std::string& out, const CampaignReport& report);
void append_early_ends(std::string& out, const CampaignReport& report);
}  // namespace proctor
