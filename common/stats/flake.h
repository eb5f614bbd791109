#pragma once
// Flakiness, of two kinds that are never one number: of checks, which an untouched snapshot must
// always pass, and of agents, whose runs of one task come out differently.  Pure; thread-safe.
#include <cstdint>
#include <optional>
#include <span>

#include "common/stats/clustered.h"
#include "common/stats/interval.h"

namespace proctor {

// The rate that so many repeats without a discrepancy exclude: 1 - alpha^(1/n).  Requires: n > 0.
double flake_upper_bound(std::uint64_t repeats, double alpha = 0.05);
// How probable it is that so many repeats show a flake of this rate at least once.
double chance_to_see(double rate, std::uint64_t repeats);

struct AgentFlakiness {
  Estimate mixed;         // share of tasks with both outcomes, of those with two runs; Wilson
  Estimate disagreement;  // unbiased chance that two runs of a task differ; Student's t over tasks
};
AgentFlakiness agent_flakiness(std::span<const Cluster> tasks, double alpha = 0.05);

}  // namespace proctor
