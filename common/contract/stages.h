#pragma once
// Stages of a campaign: which runs each draws, and when its gate opens.  Pure data.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/words.h"

namespace proctor {
// Which runs a stage of a campaign has: which tasks, how many replicates of its own, and how they
// follow one another (docs/plan.md, "Stages of their own").

inline constexpr std::uint32_t kPlannedSeed = 20260307;  // R071, R165

enum class StageOrder : std::uint8_t {
  kRounds,  // every task once under every method, then again
  kTasks,   // all replicates of a task under every method, then the next task
};
constexpr auto words(StageOrder) {
  return std::to_array<Word<StageOrder>>(
      {{"rounds", StageOrder::kRounds}, {"tasks", StageOrder::kTasks}});
}

struct StageDraw {
  // So many tasks of each stratum, drawn with the plan; all of a stratum that has fewer.
  std::optional<std::uint32_t> per_stratum{};
  std::vector<std::string> tasks{};           // by id, ascending.  Neither of the two: every task
  std::optional<std::uint32_t> replicates{};  // nothing: the campaign's
  StageOrder order = StageOrder::kRounds;

  bool has_every_task() const { return !per_stratum && tasks.empty(); }
  // As stages are where nothing is written: a registration says nothing of it.
  bool empty() const { return *this == StageDraw{}; }
  friend bool operator==(const StageDraw&, const StageDraw&) = default;
};

// "1 of each stratum, 2 replicates, by rounds", for people.
std::string describe(const StageDraw& draw);

// The gate of a stage: criteria of the stages before it, and how many people have to agree
// (docs/pilots.md, "Gates").  A fixed list and no expressions: each criterion has its own facts and
// its own sentence.

enum class StagePredicate : std::uint8_t {
  kClosed,               // an earlier stage has ended and what its `exit` asks for holds
  kCompleteOrStopped,    // every run of the stage has ended, is parked, cancelled or removed
  kEndpointComputable,   // each task and method of it has a run that came to a verdict; unknown
                         // where no task is left
  kInvalidShare,         // invalid runs of those that ended, in every method
  kInfrastructureShare,  // attempts that infrastructure spoiled, of those that were made
  kSpendWithin,  // it spent no more than was registered, whatever its envelope was raised to
};
constexpr auto words(StagePredicate) {
  return std::to_array<Word<StagePredicate>>(
      {{"closed", StagePredicate::kClosed},
       {"complete_or_stopped", StagePredicate::kCompleteOrStopped},
       {"endpoint_computable", StagePredicate::kEndpointComputable},
       {"invalid_share", StagePredicate::kInvalidShare},
       {"infrastructure_share", StagePredicate::kInfrastructureShare},
       {"spend_within", StagePredicate::kSpendWithin}});
}

constexpr bool is_share(StagePredicate p) {
  return p == StagePredicate::kInvalidShare || p == StagePredicate::kInfrastructureShare;
}

struct StageCriterion {
  StagePredicate is = StagePredicate::kCompleteOrStopped;
  std::string stage{};           // of kClosed: which
  std::uint32_t millionths = 0;  // of a share: it holds up to this
  friend bool operator==(const StageCriterion&, const StageCriterion&) = default;
};

struct StageRules {
  // All must hold; of the stage before for `entry`, of the stage itself for `exit`.
  std::vector<StageCriterion> entry{}, exit{};
  // How many people agree before it opens; nothing: one where it has entry criteria, else none.
  std::optional<std::uint32_t> people{};
  std::uint32_t approvals() const { return people.value_or(entry.empty() ? 0 : 1); }
  bool empty() const { return entry.empty() && exit.empty() && !people; }
  friend bool operator==(const StageRules&, const StageRules&) = default;
};

// "invalid_share", and of a parameter its text: "0.05", "limited"; empty where there is none.
std::string parameter_of(const StageCriterion& criterion);
// "entry closed limited, invalid_share 0.05; exit spend_within; approval of 2": as it is
// registered, whole, defaults and all.
std::string describe(const StageRules& rules);
}  // namespace proctor
