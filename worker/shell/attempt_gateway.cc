// AttemptRun: the agent's way to a model, through the gateway (docs/gateway.md).
#include <sys/stat.h>

#include "worker/gateway/cassette_player.h"
#include "worker/gateway/secret_rules.h"
#include "worker/network/way_out.h"
#include "worker/shell/attempt_run.h"
#include "worker/workspace/tree_state.h"

namespace proctor {
namespace {

constexpr const char* kUrl = "http://127.0.0.1:8710";

// What programs read, each by its own name.  What the method itself has set is the user's word.
void dress_for_gateway(SandboxSpec& spec, const Method& method, const std::string& token) {
  using As = MethodGateway::As;
  const MethodGateway& gateway = *method.gateway;
  const std::string url = kUrl, v1 = url + "/v1";
  spec.env["PROCTOR_GATEWAY"] = url;
  spec.env["PROCTOR_GATEWAY_TOKEN"] = token;
  spec.env["PROCTOR_GATEWAY_MODEL"] = gateway.model;
  if (gateway.as == As::kAnthropic) {
    spec.env["ANTHROPIC_BASE_URL"] = url;
    spec.env["ANTHROPIC_API_BASE"] = url;
    spec.env["ANTHROPIC_API_KEY"] = token;
    for (const char* name :
         {"ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL"})
      spec.env.emplace(name, gateway.model);
    for (const char* name :
         {"DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"})
      spec.env.emplace(name, "1");
  } else {
    spec.env["OPENAI_BASE_URL"] = v1;
    spec.env["OPENAI_API_BASE"] = v1;
    spec.env["OPENAI_API_KEY"] = token;
    spec.env.emplace("OPENAI_MODEL", gateway.model);
  }
  spec.env.emplace("LITELLM_LOCAL_MODEL_COST_MAP", "True");  // else it asks the network for prices
  for (const char* name : {"no_proxy", "NO_PROXY"})
    spec.env.emplace(name, "localhost,127.0.0.1,::1");
}

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
  const MethodGateway& wanted = *input_.method->gateway;
  const auto access = tools_.models.find(wanted.model);
  const bool reached = access != tools_.models.end() &&
                       (!access->second.url.empty() || !access->second.cassette.empty());
  if (!reached || tools_.pool == nullptr)
    return Error{Errc::kInvalid, "the models file of this worker has no URL of the model \"" +
                                     wanted.model + "\" (proctor-worker --models)"};
  // An agent that outlived us shows this very folder, with the socket that nobody answers any more.
  std::error_code ignored;
  fs::remove(dir / "socket", ignored);
  GatewayOptions options;
  options.method = wanted;
  options.access = access->second;
  options.token = Secret(token);
  if (const std::string& cassette = access->second.cassette; !cassette.empty()) {
    PROCTOR_TRY(std::vector<CassetteCall> calls, load_cassette(cassette));
    options.player = std::make_shared<CassettePlayer>(std::move(calls), input_.assignment.run_name,
                                                      access->second.cassette_match);
  }
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
  dress_for_gateway(spec, *input_.method, token);
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
