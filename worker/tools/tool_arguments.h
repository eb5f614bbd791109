#pragma once
// What a call of a tool asks for, read from what a model wrote: strict by the tool's own list of
// parameters (tool_list.h), and paths that stay in the workspace and out of every .git, as text;
// links are the business of whoever opens them.  Pure; any thread.
// Errors: kInvalid, in words for the model.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "common/base/result.h"
#include "worker/tools/tool_list.h"

namespace proctor {

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

Result<ToolArguments> read_tool_arguments(const ToolKind& kind, const Json& arguments);

// "./src//a.py/" is "src/a.py", "." is "".
Result<std::string> tool_path(std::string_view said);

}  // namespace proctor
