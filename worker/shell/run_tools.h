#pragma once
// The tools of one run at work: a ToolSession whose calls are reserved at the run's meter, whose
// commands run in the run's sandbox, one at a time and with nothing left running between two, and
// whose events stand in the run's trace.  Who calls it is the worker's own agent (tool_agent.h) or
// an agent in a sandbox (offered_tools.h).
// One call at a time, as the session; the clock may be asked on any thread.
// Fails with what WorkspaceTools fails with.
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>

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

  // What commands used, together.  The rest: between two calls alone.
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

}  // namespace proctor
