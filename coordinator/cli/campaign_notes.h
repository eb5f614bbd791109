#pragma once
// Notes on a campaign that people read before it spends money.
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/contract/campaign.h"

namespace proctor::cli {
// How many runs a campaign plans, and each of its stages, for check and plan.

// "3 tasks x 2 methods x 4 replicates", and what several stages make of it.
std::string size_text(const Campaign& campaign);
// A line for each stage, and one for what opens and closes it; empty where there is one stage,
// which has all of it and asks for nothing.
std::string stages_text(const Campaign& campaign);

// The outcome of a campaign's plan of analysis, as far as its methods and its number of tasks say:
// for who can still change it.  Pure; thread-safe.

// The pairs a - b that the report will compare.
std::vector<std::pair<std::string, std::string>> comparisons_of(const Campaign& campaign,
                                                                const AnalysisPlan& plan);

// How many tasks, or repositories where they are the unit of its comparisons.
std::uint64_t units_of(const Campaign& campaign);

// What will be compared, and a note on each thing that the plan leaves out or can never show: lines
// to print, each with its end.  Nothing of a campaign of one method.
std::string analysis_text(const Campaign& campaign);

// Mistakes in methods' programs that can be seen before money is spent on them: a script that its
// interpreter cannot be for, a file that its command names and its method does not bring.  Each
// would be a failure of the agent in every run.  One sentence each; none of them is an error: a
// shell may be meant, and a folder be mounted there.  Reads what the campaign holds and nothing
// else.
std::vector<std::string> method_notes(const Campaign& campaign);

// Findings of `proctor selfcheck` and `proctor screen` against the tasks of a campaign, for whoever
// is about to spend money on them.

// By task, of those whose contract and image are still what was judged: "flaky: 2 of 60 ...",
// "undecided: ...", "unsound: ...".  Files that are not there, or that cannot be read, say nothing.
std::map<std::string, std::string> distrusted_tasks(const Campaign& campaign);
// The same as notes for people, a sentence each; empty: nothing is known against any task.
std::vector<std::string> trust_notes(const std::map<std::string, std::string>& distrusted);
}  // namespace proctor::cli
