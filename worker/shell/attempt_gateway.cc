// AttemptRun: the agent's way to a model, through the gateway (docs/gateway.md).
#include <sys/stat.h>

#include "worker/gateway/agent_variables.h"
#include "worker/gateway/cassette.h"
#include "worker/gateway/redactor.h"
#include "worker/model/model.h"
#include "worker/network/way_out.h"
#include "worker/shell/attempt_run.h"
#include "worker/workspace/tree_state.h"

namespace proctor {
namespace {

// What the agent was given as a secret it may say to its model, and nothing of it may be kept.
std::shared_ptr<const Redactor> secrets_redactor(const SandboxSpec& spec, const Method& method,
                                                 const Contract& contract) {
  std::map<std::string, std::string> secrets;
  for (const auto* names : {&contract.environment.secrets, &method.environment.secrets})
    for (const std::string& name : *names)
      if (const auto it = spec.env.find(name); it != spec.env.end()) secrets.insert(*it);
  if (secrets.empty()) return nullptr;
  return std::make_shared<LiteralRedactor>(rules_for_secrets(secrets));
}

// A single shot asks in chat completions, for exactly what its method says, and waits as long.
ModelAccess asked_once(ModelAccess access, const ModelCall& call) {
  access.api = {ModelApi::kChat};
  access.output_default = access.output_floor = call.max_output_tokens;
  access.first_byte = access.idle = access.total = call.timeout;
  access.delta = false;  // no call of it follows another
  return access;
}

}  // namespace

// The same in every life of the worker that this attempt sees: its program has it already.
Result<std::string> AttemptRun::gateway_token() const {
  constexpr std::size_t kMost = 1000;
  const fs::path file = dir_ / "gateway-token";
  if (auto token = read_file(file, kMost); token.ok()) return token;
  std::string token = new_gateway_token();
  PROCTOR_CHECK_OK(write_file(file, token, Durability::kLazy, kPrivateFile));
  return token;
}

Result<std::unique_ptr<GatewaySession>> AttemptRun::open_gateway(const SandboxSpec& spec,
                                                                 const fs::path& dir,
                                                                 const std::string& token) {
  const Method& method = *input_.method;
  const bool single = method.kind == Method::Kind::kSingleShot;
  GatewayOptions options;
  if (method.gateway) options.method = *method.gateway;
  options.method.models = method.models();
  for (const GatewayModel& m : options.method.models) {
    const auto access = tools_.models.find(m.name);
    const bool reached =
        access != tools_.models.end() && (single || access->second.program.empty());
    if (!reached || tools_.pool == nullptr)
      return Error{Errc::kInvalid, "the models file of this worker has no URL of the model \"" +
                                       m.name + "\" (proctor-worker --models)"};
    options.models[m.name] = single ? asked_once(access->second, method.call) : access->second;
    const std::string& cassette = access->second.cassette;
    if (cassette.empty() || options.players.contains(cassette)) continue;
    PROCTOR_TRY(std::vector<CassetteCall> calls, load_cassette(cassette));
    options.players[cassette] = std::make_shared<CassettePlayer>(
        std::move(calls), input_.assignment.run_name, access->second.cassette_match);
  }
  // An agent that outlived us shows this very folder, with the socket that nobody answers any more.
  std::error_code ignored;
  fs::remove(dir / "socket", ignored);
  if (single) {
    options.bounds.drain = Millis(0);  // whoever asked has gone
    options.program = [task = ProgramTask{contract().id, input_.assignment.replicate}](
                          const ModelAccess& access, std::string_view body,
                          const std::function<bool()>& stop) {
      return ask_program(access, task, body, stop);
    };
  }
  options.token = Secret(token);
  options.redactor = secrets_redactor(spec, *input_.method, contract());
  options.earlier_calls = left_program_ != nullptr;
  options.ids = "gw-" + std::to_string(lives_) + "-";
  return GatewaySession::open(dir, std::move(options), gateway_hooks(), *tools_.pool);
}

Result<std::unique_ptr<GatewaySession>> AttemptRun::show_gateway(SandboxSpec& spec) {
  if (agent_network().open)
    return Error{Errc::kInvalid,
                 "a method with a gateway beside an open network: name the places instead"};
  PROCTOR_TRY(const fs::path dir, fresh_dir("gateway"));
  PROCTOR_CHECK_OK(put_forward_program(dir));
  PROCTOR_TRY(const std::string token, gateway_token());
  PROCTOR_TRY(auto session, open_gateway(spec, dir, token));
  spec.network = false;
  spec.mounts.push_back({dir, kGatewayAt, false});
  add_way(spec, kGatewayPort, kGatewayAt);
  set_agent_variables(spec.env, *input_.method->gateway, token);
  return session;
}

GatewayHooks AttemptRun::gateway_hooks() {
  GatewayHooks hooks;
  hooks.meter = [this](const GatewayOperation& o) { return meter_.act_for_agent(o); };
  hooks.cover = [this] { meter_.cover(); };
  hooks.status = [this] { return meter_.status_line(); };
  hooks.count = [this](const CallCounts& seen) { meter_.count_calls(seen); };
  hooks.note = [this](std::string_view type, GatewayHooks::By by, const Json& payload) {
    const Actor actor = by == GatewayHooks::By::kAgent ? Actor::kAgent : Actor::kHarness;
    // Its sums are the last of it, and short.
    return type == "gateway.closed" ? note(type, actor, payload)
                                    : note_of_agent(type, actor, payload);
  };
  hooks.cap_reached = [this](std::uint64_t evidence) { meter_.reached_by(evidence); };
  hooks.stop = [this](std::string_view cap, const std::string& reason, std::uint64_t evidence) {
    meter_.order_stop(cap, reason, evidence);
  };
  hooks.now = [hold = watch_.hold(), began = watch_.hold()->now()] {
    return std::chrono::duration_cast<Millis>(hold->now() - began);
  };
  if (workspace_)
    hooks.look = [dir = workspace_->written().dir]() -> std::optional<WorkspaceLook> {
      Result<TreeState> state = state_of_tree(dir);
      if (!state.ok()) return std::nullopt;
      return WorkspaceLook{std::move(state->digest), state->files, state->bytes};
    };
  hooks.keep = [this](const std::string& digest, std::string_view bytes) {
    return keep_said(digest, bytes);
  };
  return hooks;
}

// Once, by its content; what there is no room for is in the trace by its digest.
bool AttemptRun::keep_said(const std::string& digest, std::string_view bytes) {
  const std::lock_guard lock(said_mutex_);
  if (!said_) {
    Result<SegmentWriter> opened = SegmentWriter::open(recorder_->dir(), kGatewayBytes);
    if (!opened.ok()) return false;
    said_ = std::move(opened).value();
  }
  return said_->put(digest, bytes);
}

}  // namespace proctor
