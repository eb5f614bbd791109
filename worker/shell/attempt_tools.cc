// AttemptRun: the worker's tools, of its own agent and of one in a sandbox (docs/tools.md).
#include <algorithm>

#include "worker/shell/attempt_run.h"
#include "worker/shell/tool_agent.h"
#include "worker/workspace/tree_state.h"

namespace proctor {

// For an agent that is the worker's own: neither its way to the model nor the meter, whose thread
// keeps the clock, is shown in any sandbox.
Status AttemptRun::listen_unseen(const SandboxSpec& spec, Listeners& listeners) {
  SandboxSpec nobody;
  PROCTOR_TRY(listeners.meter, show_meter(nobody));
  if (input_.method->models().empty()) return ok_status();
  PROCTOR_TRY(const fs::path dir, fresh_dir("gateway"));
  PROCTOR_TRY(const std::string token, gateway_token());
  PROCTOR_TRY(listeners.gateway, open_gateway(spec, dir, token));
  return ok_status();
}

RunToolHooks AttemptRun::tool_hooks(GatewaySession& gateway, const SandboxSpec& commands) {
  RunToolHooks out;
  out.meter = [this](const MeteredCall& call) { return meter_.act(call); };
  out.tell = [&gateway](std::string_view type, GatewayHooks::By by, const Json& payload) {
    return gateway.tell(type, by, payload);
  };
  out.status = [this] { return meter_.status_line(); };
  out.state = [dir = workspace_->written().dir] {
    const Result<TreeState> state = state_of_tree(dir);
    return state.ok() ? state->digest : std::string();
  };
  out.settle = [this, commands](ExecOutcome& outcome) -> Status {
    PROCTOR_CHECK_OK(when_there_is_room<Unit>("attempt " + commands.label, patience(),
                                              [&] { return open_again(commands); }));
    look_at_disk(outcome);
    return ok_status();
  };
  return out;
}

RunToolPlace AttemptRun::tool_place(SandboxEngine& engine, SandboxSpec commands,
                                    fs::path scratch) const {
  RunToolPlace out;
  out.workspace = workspace_->dir();
  out.rules.writable = contract().policy.writable;
  out.rules.guarded = contract().policy.protected_;
  out.rules.user = workspace_->user();
  out.engine = &engine;
  out.sandbox = std::move(commands);
  out.scratch = std::move(scratch);
  return out;
}

ToolSessionRules AttemptRun::tool_rules() const {
  ToolSessionRules out;
  if (const auto active = caps_.caps.active) out.wall = std::min(out.wall, *active);
  for (const TestSuite& suite : contract().suites)
    out.suites.push_back({suite.name, suite.command});
  // An earlier life of this worker had calls of its own.
  if (0 < lives_) out.ids = std::to_string(lives_) + "-";
  return out;
}

Result<std::unique_ptr<OfferedTools>> AttemptRun::show_tools(SandboxEngine& engine,
                                                             SandboxSpec commands,
                                                             SandboxSpec& spec,
                                                             GatewaySession& gateway) {
  const bool enforced = input_.method->gateway->tools == MethodGateway::Tools::kEnforced;
  PROCTOR_TRY(const fs::path dir, fresh_dir("tools"));
  PROCTOR_TRY(const fs::path scratch, fresh_dir("tools-output"));
  commands.label = label("tool");  // beside the agent's own
  RunToolHooks hooks = tool_hooks(gateway, commands);
  hooks.failed = [this] { agent_stop_.request_stop(); };
  gateway.tell("tools.open", GatewayHooks::By::kHarness,
               Json{{"mode", enforced ? "enforced" : "offered"}});
  PROCTOR_TRY(auto out, OfferedTools::open(dir, tool_place(engine, std::move(commands), scratch),
                                           tool_rules(), std::move(hooks), agent_wall(),
                                           agent_stop_.get_token()));
  out->show_in(spec);
  if (!enforced) return out;
  // What its program sees in place of the workspace, and what nobody looks at afterwards.
  PROCTOR_TRY(spec.workspace, writable_dir("agent-apart"));
  spec.workspace_volume.clear();
  spec.disk.places.push_back({spec.workspace, 0, 0});
  return out;
}

std::optional<Error> AttemptRun::end_tools(OfferedTools& tools) {
  tools.close();
  const ToolSession& session = tools.work().session();
  note("tools.closed", Actor::kHarness,
       Json{{"calls", session.calls()},
            {"refused", session.refused()},
            {"stage", to_string(session.stage())},
            {"submitted", session.submitted()}});
  return tools.work().broken();
}

Result<AgentReport> AttemptRun::work_by_tools(const AgentJob& job, GatewaySession& gateway) {
  PROCTOR_TRY(const std::string token, gateway_token());
  ToolAgentTools tools;
  tools.gateway = dir_ / "gateway";
  tools.token = Secret(token);
  tools.access = &tools_.models.at(input_.method->gateway->model().name);
  tools.place = tool_place(job.engine, job.sandbox, job.scratch);
  tools.rules = tool_rules();
  tools.hooks = tool_hooks(gateway, job.sandbox);
  return make_tool_agent(std::move(tools))->work(job, agent_stop_.get_token());
}

}  // namespace proctor
