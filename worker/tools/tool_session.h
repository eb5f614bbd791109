#pragma once
// The tools of one run: each call is reserved at its worst case, judged by the run's stage, done,
// charged for its time and told to the trace, in this order, and every call that was reserved is
// charged.  Hooks do the rest; they are called on the caller's thread.
// One call at a time, so that the workspace stands still while a tool reads or writes it; who
// serves several connections takes turns, as ToolServer does.
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/files.h"
#include "common/base/result.h"
#include "worker/tools/mcp_protocol.h"
#include "worker/tools/tool_list.h"
#include "worker/tools/workspace_tools.h"

namespace proctor {
// Why a call is not granted; `cap` names which of the run's is reached.
struct ToolRefusal {
  std::string cap, why;
  bool final = false;  // nothing will be granted any more
  std::uint64_t short_by = 0;
};

// The word of circuit breakers on an event.
struct ToolHeard {
  std::string why;  // empty: nothing
  bool suspend = false;
  std::chrono::milliseconds wait{0};
};

struct ProgramRun {
  std::optional<int> exit;  // nothing: it was ended by its time limit
  std::string out, err;
};

struct ToolHooks {
  using Millis = std::chrono::milliseconds;
  std::function<std::optional<ToolRefusal>(const std::string& id, const ToolKind& kind,
                                           Millis most)>
      reserve;
  // `failed`: of a suite that was run; nothing where none was.
  std::function<void(const std::string& id, const ToolKind& kind, Millis used,
                     std::optional<bool> failed)>
      charge;
  std::function<ToolHeard(std::string_view type, const Json& payload)> note;
  std::function<std::string()> status;  // of the meter
  // A command in the sandbox, with the workspace writable or not; an error is none of the agent.
  std::function<Result<ProgramRun>(const std::string& command, bool writes, Millis most)> shell;
  std::function<std::string()> state;  // of the workspace; empty: it cannot be looked at
  std::function<void(Millis)> wait;    // answers are throttled by it
  std::function<Millis()> now;         // the run's own clock
  // May be empty.  A command of the agent that its shell is handed next, behind its event.
  std::function<void(const std::string& id, const std::string& command)> command{};
};

struct ToolSuite {
  std::string name, command;
};

struct ToolSessionRules {
  ToolStageRules stages;
  std::vector<ToolSuite> suites;  // the developer's tests
  std::chrono::milliseconds wall{120'000};
  std::string ids{};  // begins every id
};

class ToolSession {
 public:
  // `files` outlives this.
  ToolSession(ToolSessionRules rules, const WorkspaceTools& files, ToolHooks hooks);

  // A call of a tool that exists.
  McpResult call(const McpCall& ask);
  // The agent has said that it is done.
  bool submitted() const { return submitted_; }
  ToolStage stage() const { return stages_.stage(); }
  std::uint64_t calls() const { return calls_; }
  std::uint64_t refused() const { return refused_; }

 private:
  using Millis = std::chrono::milliseconds;
  struct Done;
  Millis most_of(const ToolKind& kind, const Result<ToolArguments>& arguments) const;
  McpResult refuse(const ToolRefusal& refusal);
  Done perform(const ToolKind& kind, const ToolArguments& arguments, Millis most);
  Done run(const std::string& command, Millis most);
  void change(const StageChange& stage);
  std::string hear(const ToolHeard& heard);
  bool is_told() const;

  const ToolSessionRules rules_;
  const WorkspaceTools& files_;
  const ToolHooks hooks_;
  ToolStages stages_;
  std::uint64_t calls_ = 0, refused_ = 0;
  bool submitted_ = false;
  std::optional<ToolRefusal> final_;
};

// Clients of one ToolServer at a time.
inline constexpr std::size_t kToolClientsMax = 8;

// ToolServer: the socket on which a run's agent speaks MCP, one message a line, as a client's
// "stdio" server does behind a copying program.  In a folder of its own, which is of one run, so
// that nobody needs a token.  Decides nothing.
//
// Its clients are foreign code: their number, a line, and what they leave unread are bounded, and
// nothing that one does ends the server or the run.  One thread that accepts and one for each
// client; calls of tools take turns, everything else is answered at once.
// Errors: kUnavailable, the socket cannot be had.
class ToolServer {
 public:
  // Makes `dir`/socket; `dir` exists and has none.  `session` outlives this, and is called on the
  // threads of this, one at a time.
  static Result<std::unique_ptr<ToolServer>> start(const fs::path& dir, ToolSession& session,
                                                   std::string instructions);
  ToolServer(const ToolServer&) = delete;
  ToolServer& operator=(const ToolServer&) = delete;
  // Cuts every client off and waits for the call under way.
  ~ToolServer();

 private:
  struct Impl;
  explicit ToolServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};
}  // namespace proctor
