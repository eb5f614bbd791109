#pragma once
// Attempts that a damaged journal has lost, from their run directories: what they came to and cost.
// An attempt of which a worker of this host has a meter book or a result is entered as under way,
// with its whole ask reserved: the worker reports it as metered.  Other attempts that were made are
// entered as lost, at their ceiling, as far as the envelopes have room; of attempts that may have
// been made at most as many as slots were in use elsewhere.
#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/cli/campaign_files.h"
#include "coordinator/core/records.h"
#include "coordinator/core/run_queue.h"
#include "coordinator/journal/journal_check.h"

namespace proctor::cli {

struct Rebuilt {
  std::vector<JournalWrite> facts;
  std::vector<std::string> lines;  // one for each attempt, for people
  std::uint64_t from_evidence = 0, under_way = 0, lost = 0;
  MicroUsd charged_for_lost;
};

// `state`: what was salvaged.  Reads runs/, verifies each directory that it takes, and the folders
// of this host's workers.
Rebuilt rebuild_attempts(const FrozenCampaign& frozen, const PlanView& view,
                         const RestoredState& state, const Salvage& salvage);

}  // namespace proctor::cli
