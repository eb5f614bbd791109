// AttemptRun: a method of kind tool_loop, whose agent is the worker's own (docs/tools.md).
#include <algorithm>

#include "worker/shell/attempt_run.h"
#include "worker/shell/tool_agent.h"
#include "worker/workspace/tree_state.h"

namespace proctor {

// Of its commands: neither a way to the model nor the meter, which its thread keeps the clock of.
Result<SandboxSpec> AttemptRun::tool_spec(SandboxEngine& engine, Listeners& listeners) {
  PROCTOR_TRY(SandboxSpec spec, agent_spec(engine));
  SandboxSpec nobody;
  PROCTOR_TRY(listeners.meter, show_meter(nobody));
  PROCTOR_TRY(const fs::path dir, fresh_dir("gateway"));
  PROCTOR_TRY(const std::string token, gateway_token());
  PROCTOR_TRY(listeners.gateway, open_gateway(spec, dir, token));
  return spec;
}

Result<AgentReport> AttemptRun::work_by_tools(const AgentJob& job, GatewaySession& gateway) {
  PROCTOR_TRY(const std::string token, gateway_token());
  ToolAgentTools tools;
  tools.gateway = dir_ / "gateway";
  tools.token = Secret(token);
  tools.access = &tools_.models.at(input_.method->gateway->model);
  tools.meter = [this](const MeteredCall& call) { return meter_.act(call); };
  tools.tell = [&gateway](std::string_view type, GatewayHooks::By by, const Json& payload) {
    return gateway.tell(type, by, payload);
  };
  tools.status = [this] { return meter_.status_line(); };
  tools.state = [dir = workspace_->written().dir] {
    const Result<TreeState> state = state_of_tree(dir);
    return state.ok() ? state->digest : std::string();
  };
  tools.settle = [this, &job](ExecOutcome& outcome) -> Status {
    PROCTOR_CHECK_OK(when_there_is_room<Unit>("attempt " + job.sandbox.label, patience(),
                                              [&] { return open_again(job.sandbox); }));
    look_at_disk(outcome);
    return ok_status();
  };
  if (const auto active = caps_.caps.active)
    tools.command_most = std::min(tools.command_most, *active);
  return make_tool_agent(std::move(tools))->work(job, agent_stop_.get_token());
}

}  // namespace proctor
