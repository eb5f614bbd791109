#pragma once
// The tools that read and change files of a workspace, done by the worker itself.
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/digest.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/namespaces.h"
#include "common/base/owned.h"
#include "common/base/result.h"
#include "worker/tools/tool_list.h"
#include "worker/workspace/changes.h"

namespace proctor {
// One file that a tool changed.
struct FileChange {
  std::string path;
  std::optional<Digest> before, after;  // nothing: there was, or is, no file
};

// The end of a tool: the words for its caller, and what the trace keeps of it.
struct ToolOutcome {
  std::string text;
  bool failed = false;
  std::optional<int> exit{};  // of a program
  std::vector<FileChange> changes{};
};

inline ToolOutcome tool_failure(std::string text) {
  ToolOutcome out;
  out.text = std::move(text);
  out.failed = true;
  return out;
}

struct WorkspaceRules {
  std::vector<std::string> writable;      // globs; empty: everything
  std::vector<std::string> guarded;       // globs of what is protected
  std::shared_ptr<const OwnUser> user{};  // whose the workspace is, if not the worker's
  std::chrono::milliseconds search{10'000};
};

// They go folder by folder below the root, follow no link, leave every .git alone, read and write
// nothing but regular files, and refuse at once what is protected or not writable by the policy.
// For folders in which an agent has written: memory and time of a call are bounded whatever lies
// there.  An agent's mistake is an outcome with words for it.  Blocking; one thread.
// Fails with errno_error: the workspace cannot be opened.
class WorkspaceTools {
 public:
  static Result<WorkspaceTools> open(const fs::path& dir, WorkspaceRules rules);

  ToolOutcome list(const ListDir& ask) const;
  ToolOutcome read(const ReadFile& ask) const;
  ToolOutcome search(const Search& ask) const;
  ToolOutcome write(const WriteFile& ask) const;
  ToolOutcome edit(const EditFile& ask) const;
  // All files of it, or none.
  ToolOutcome patch(const ApplyDiff& ask) const;

 private:
  WorkspaceTools(UniqueFd root, WorkspaceRules rules);
  std::string refusal(const std::string& path) const;  // empty: it may be written
  UniqueFd root_;
  WorkspaceRules rules_;
  ProtectedPaths guarded_;
};
}  // namespace proctor
