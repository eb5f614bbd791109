#pragma once
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
#include <memory>

#include "common/base/ids.h"
#include "common/contract/models_file.h"
#include "worker/agent/agent.h"
#include "worker/shell/run_tools.h"

namespace proctor {

// All of it outlives work().
struct ToolAgentTools {
  fs::path gateway;  // the folder of the session's socket
  Secret token;
  const ModelAccess* access;
  RunToolPlace place;
  ToolSessionRules rules;
  RunToolHooks hooks;
};

std::unique_ptr<Agent> make_tool_agent(ToolAgentTools tools);

}  // namespace proctor
