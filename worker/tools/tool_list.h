#pragma once
// The tools of a run: their names, what they take, and from which stage on they may be used.  The
// list is the same in every stage and in the same order, for clients ask for it once and prompt
// caches live on it.  Pure; any thread but for ToolStages.
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "common/base/json.h"
#include "common/base/result.h"
#include "common/base/words.h"

namespace proctor {
// Cumulative: who may write may read.
enum class ToolStage { kRead, kWrite, kTest };
constexpr auto words(ToolStage) {
  return std::to_array<Word<ToolStage>>(
      {{"read", ToolStage::kRead}, {"write", ToolStage::kWrite}, {"test", ToolStage::kTest}});
}

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

// The most that is read and told.
namespace tool_bounds {
inline constexpr std::uint64_t kEntries = 2'000, kLines = 2'000, kHits = 200, kPathBytes = 4'096,
                               kFileBytes = std::uint64_t{1} << 20, kCommandBytes = 64U << 10,
                               kWallMs = 3'600'000, kReadBytes = 64U << 10, kHitBytes = 400,
                               kStreamBytes = 32U << 10;
}  // namespace tool_bounds

// A call's arguments, read from what a model wrote: strict by their description (fields() in
// tool_list.cc), and paths that stay in the workspace and out of every .git, as text; links are the
// business of whoever opens them.  Errors: kInvalid, in words for the model.

// Paths are relative to the workspace, "" its top.
struct ListDir {
  std::string path;
  std::uint64_t depth = 1, limit = tool_bounds::kEntries;
};
struct ReadFile {
  std::string path;
  std::uint64_t offset = 1, limit = tool_bounds::kLines;
};
struct Search {
  std::string pattern, path, glob;  // empty glob: every file
  bool literal = false;
  std::uint64_t limit = tool_bounds::kHits;
};
struct ShellCommand {
  std::string command;
  std::optional<std::uint64_t> timeout_ms;
};
struct AdvanceStage {
  ToolStage to = ToolStage::kRead;
  std::string reason;
};
struct WriteFile {
  std::string path, content;
};
struct EditFile {
  std::string path, old_text, new_text;
  std::uint64_t count = 1;
};
struct ApplyDiff {
  std::string patch;
};
struct RunTests {
  std::optional<std::string> name;
};
struct AskStatus {};
struct Submit {
  std::string note;
};
using ToolArguments = std::variant<ListDir, ReadFile, Search, ShellCommand, AdvanceStage, WriteFile,
                                   EditFile, ApplyDiff, RunTests, AskStatus, Submit>;

struct ToolKind {
  Tool tool;
  std::string_view name;
  ToolStage from;
  bool reads;    // looks at the workspace and changes nothing
  bool counted;  // is a call for the caps of a run
  std::string_view what;
  ToolArguments arguments;  // as they are where a call names none
};

// Null: there is none.
const ToolKind* find_tool(std::string_view name);

// As `tools/list` tells it.
Json tool_list_json();

Result<ToolArguments> read_tool_arguments(const ToolKind& kind, const Json& arguments);

// "./src//a.py/" is "src/a.py", "." is "".
Result<std::string> tool_path(std::string_view said);

// The rules of ToolStages.
struct ToolStageRules {
  ToolStage last = ToolStage::kTest;  // as far as the run may go
  std::uint64_t reads = 3;            // after a suspension, before writing is allowed again
  std::chrono::milliseconds pause{10'000};
};

struct StageChange {
  enum class By { kAgent, kBreaker };
  ToolStage from, to;
  By by;
  std::string reason;
};
Json stage_json(const StageChange& change);

// The stage that a run has reached, and which tools it may use there: read, then write, then test.
// A circuit breaker may suspend writing; reading then earns it back.  Pure; one thread.
class ToolStages {
 public:
  using Millis = std::chrono::milliseconds;
  explicit ToolStages(ToolStageRules rules = {}) : rules_(rules) {}

  ToolStage stage() const { return stage_; }
  // May a command write to the workspace?  It is mounted so, whatever the command promises.
  bool shell_writes() const { return stage_ == ToolStage::kTest; }

  // Why the tool may not be used; empty: it may.  `now` is the run's own clock, here and below.
  std::string lack_of(const ToolKind& kind, Millis now) const;
  // kInvalid: it is no stage to go on to, in words for the model.
  Result<StageChange> advance(ToolStage to, std::string reason, Millis now);
  // Back to reading; nullopt: it was there already.
  std::optional<StageChange> suspend(std::string reason, Millis now);
  // A tool that reads has answered.
  void has_read() { reads_since_ += suspended_ ? 1 : 0; }

 private:
  std::string suspended_lack(Millis now) const;
  const ToolStageRules rules_;
  ToolStage stage_ = ToolStage::kRead;
  bool suspended_ = false;
  std::uint64_t reads_since_ = 0;
  Millis until_{0};
};
}  // namespace proctor
