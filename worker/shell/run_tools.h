#pragma once
// The tools of one run at work: a ToolSession whose calls are reserved at the run's meter, whose
// commands run in the run's sandbox, one at a time and with nothing left running between two, and
// whose events stand in the run's trace.  It is called by the worker's own agent
// (make_tool_agent) or by an agent in a sandbox (OfferedTools).
// One call at a time, as the session; the clock may be asked on any thread.
// Fails with what WorkspaceTools fails with.
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>

#include "common/base/ids.h"
#include "common/contract/models_file.h"
#include "worker/agent/agent.h"
#include "worker/core/run_meter.h"
#include "worker/gateway/gateway_session.h"
#include "worker/sandbox/sandbox.h"
#include "worker/tools/tool_session.h"

namespace proctor {
using MeteredCall = std::variant<MeterReserve, MeterCharge, MeterRelease>;

struct RunToolHooks {
  std::function<Result<MeterAnswer>(const MeteredCall&)> meter;
  std::function<GatewaySession::Heard(std::string_view type, GatewayHooks::By by, const Json&)>
      tell;
  std::function<std::string()> status;  // of the meter
  std::function<std::string()> state;   // of the workspace; empty: it cannot be looked at
  // After each command, before anything looks at what it left.
  std::function<Status(ExecOutcome&)> settle;
  // Both may be empty: a line for each call; the host could not do one, and will do no further.
  std::function<void(const std::string& line)> say{};
  std::function<void()> failed{};
  // May be empty: as ExecSpec has them, of each command.
  std::function<void(const CallAttempt&)> attempted{};
  bool see_programs = false;
  // May be empty: as in ToolHooks.
  std::function<void(const std::string& id, const std::string& command)> command{};
};

struct RunToolPlace {
  fs::path workspace;
  WorkspaceRules rules;
  SandboxEngine* engine = nullptr;  // of commands; outlives the tools
  SandboxSpec sandbox;              // likewise, with the workspace writable
  fs::path scratch;                 // for what a command says; exists
};

class RunTools {
 public:
  using Millis = std::chrono::milliseconds;
  // `time`: of the whole run of the agent, from now on.
  static Result<std::unique_ptr<RunTools>> open(RunToolPlace place, ToolSessionRules rules,
                                                RunToolHooks hooks, Millis time,
                                                std::stop_token stop);
  RunTools(const RunTools&) = delete;
  RunTools& operator=(const RunTools&) = delete;
  ~RunTools();

  ToolSession& session() { return *session_; }
  // The run's own clock, which stands still while the run is suspended.
  Millis elapsed() const;
  Millis left() const;
  bool over() const;
  void wait(Millis time) const;
  void wait_until_goes_on() const;

  // The use of all commands together.  The rest: between two calls alone.
  const ExecOutcome& spent() const { return spent_; }
  bool disk_full() const { return disk_full_; }
  // Why the host could not do a call; nothing of the agent's.
  const std::optional<Error>& broken() const { return broken_; }

 private:
  RunTools(RunToolPlace place, WorkspaceTools files, ToolSessionRules rules, RunToolHooks hooks,
           Millis time, std::stop_token stop);
  ToolHooks session_hooks();
  ToolHeard note(std::string_view type, const Json& payload) const;
  std::optional<ToolRefusal> reserve(std::string& as, const std::string& id,
                                     std::string_view action, Millis most);
  void settle(const MeteredCall& end);
  void fail(const Error& why);
  Result<ProgramRun> run_in_sandbox(const std::string& command, bool writes, Millis most);

  const RunToolPlace place_;
  const WorkspaceTools files_;
  const RunToolHooks hooks_;
  const Hold::Clock::time_point begin_;
  const Millis time_;
  const std::stop_token stop_;
  std::unique_ptr<ToolSession> session_;
  std::string held_, cycle_;  // what is reserved of the call under way, and of its suite
  ExecOutcome spent_;
  bool disk_full_ = false;
  std::optional<Error> broken_;
};

// Where an agent in a sandbox finds the tools of its run.
inline constexpr const char* kToolsAt = "/proctor/tools";

// The tools of a run as an agent in a sandbox finds them: a folder, shown read-only at kToolsAt,
// with the socket on which they are served by MCP, the program that any MCP client starts as a
// "stdio" server (`forward --stdio`), and a file that says so in the words of many clients.
//
// Its calls are done on the threads of its server, one at a time; everything here is for the slot's
// thread.  The hooks' owners outlive close().
// Errors: kUnavailable, the socket cannot be had, or the workspace not opened.
class OfferedTools {
 public:
  // In `dir`, which is empty or as an earlier life left it.  `run`: whoever ends it ends the call
  // under way and all further ones.
  static Result<std::unique_ptr<OfferedTools>> open(const fs::path& dir, RunToolPlace place,
                                                    ToolSessionRules rules, RunToolHooks hooks,
                                                    std::chrono::milliseconds time,
                                                    const std::stop_token& run);
  OfferedTools(const OfferedTools&) = delete;
  OfferedTools& operator=(const OfferedTools&) = delete;
  ~OfferedTools();  // close()

  void show_in(SandboxSpec& spec) const;
  // Nobody is served any more, and no command runs.  May be called again.
  void close();
  // After close().
  RunTools& work() { return *work_; }

 private:
  explicit OfferedTools(fs::path dir) : dir_(std::move(dir)) {}
  const fs::path dir_;
  std::stop_source stop_;
  std::unique_ptr<std::stop_callback<std::function<void()>>> run_;
  std::unique_ptr<RunTools> work_;
  std::unique_ptr<ToolServer> server_;
};

// All of it outlives work().
struct ToolAgentTools {
  fs::path gateway;  // the folder of the session's socket
  Secret token;
  const ModelAccess* access;
  RunToolPlace place;
  ToolSessionRules rules;
  RunToolHooks hooks;
};

// The agent of a method of kind tool_loop: a model that works by the worker's tools and has nothing
// else.  Its calls go through the run's gateway, as those of every program; its tools are done
// here, and their commands run in the sandbox, one at a time, with nothing left running between
// two.
//
// Ends as a program does: exit code 0 where the model says that it is done, 1 where it is kept from
// going on (stderr says why), kModelBusyExit where its provider had no room, or at a limit.
// Evidence: the events of the gateway, of the tools (docs/tools.md), "tool_loop.closed" with the
// sums; agent/stdout has a line for each turn.
// Fails with kInvalid where a provider refuses the very first request for what it is, with anything
// else where the host failed.
std::unique_ptr<Agent> make_tool_agent(ToolAgentTools tools);
}  // namespace proctor
