#pragma once
// The tools of a run: their names, what they take, and from which stage on they may be used.  The
// list is the same in every stage and in the same order, for clients ask for it once and prompt
// caches live on it.  Pure; any thread.
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "common/base/json.h"

namespace proctor {

// Cumulative: who may write may read.
enum class ToolStage { kRead, kWrite, kTest };
std::string_view to_string(ToolStage stage);
std::optional<ToolStage> stage_named(std::string_view name);

enum class Tool {
  kListDir,
  kReadFile,
  kSearch,
  kShell,
  kAdvanceStage,
  kWriteFile,
  kEditFile,
  kApplyPatch,
  kRunTests,
  kStatus,
  kSubmit
};

struct ToolParameter {
  enum class Kind { kText, kPath, kCount, kFlag, kStage };
  std::string_view name;
  Kind kind;
  bool required;
  std::uint64_t least, most;  // of a count; of a text its bytes
  std::string_view what;
};

struct ToolKind {
  Tool tool;
  std::string_view name;
  ToolStage from;
  bool reads;    // looks at the workspace and changes nothing
  bool counted;  // is a call for the caps of a run
  std::string_view what;
  std::span<const ToolParameter> parameters;
};

// Null: there is none.
const ToolKind* find_tool(std::string_view name);

// As `tools/list` tells it.
Json tool_list_json();

// What is read and told at most.
namespace tool_bounds {
inline constexpr std::uint64_t kEntries = 2'000, kLines = 2'000, kHits = 200, kPathBytes = 4'096,
                               kFileBytes = std::uint64_t{1} << 20, kCommandBytes = 64U << 10,
                               kWallMs = 3'600'000, kReadBytes = 64U << 10, kHitBytes = 400,
                               kStreamBytes = 32U << 10;
}  // namespace tool_bounds

}  // namespace proctor
