#pragma once
// Which runs a stage of a campaign has: which tasks, how many replicates of its own, and how they
// follow one another (docs/plan.md, "Stages of their own").  Pure data.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace proctor {

inline constexpr std::uint32_t kPlannedSeed = 20260307;  // R071, R165

enum class StageOrder : std::uint8_t {
  kRounds,  // every task once under every method, then again
  kTasks,   // all replicates of a task under every method, then the next task
};
inline constexpr std::array<std::pair<std::string_view, StageOrder>, 2> kStageOrders{
    {{"rounds", StageOrder::kRounds}, {"tasks", StageOrder::kTasks}}};

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

std::string_view to_string(StageOrder order);
// "1 of each stratum, 2 replicates, by rounds", for people.
std::string describe(const StageDraw& draw);

}  // namespace proctor
