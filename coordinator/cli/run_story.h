#pragma once
// Which facts of a journal belong into one run's story: its own, and what was done to its task, its
// method or an envelope of its, or to a list of runs of which it is one.
#include <set>
#include <string>

#include "coordinator/cli/campaign_files.h"
#include "coordinator/journal/journal_story.h"

namespace proctor::cli {

class RunStory {
 public:
  RunStory(const FrozenCampaign& frozen, RunId run);

  bool has(const StoryFact& fact) const;
  RunId run() const { return run_; }

 private:
  bool is_among(const StoryFact& act) const;
  bool is_raised(const StoryFact& raise) const;
  bool is_at_fault(const StoryFact& fault) const;

  RunId run_;
  std::string task_;
  std::uint32_t task_index_ = 0, method_index_ = 0;
  std::set<std::string> envelopes_;
};

}  // namespace proctor::cli
