#include "worker/gateway/agent_variables.h"

#include <algorithm>
#include <array>

namespace proctor {
namespace {
using For = AgentVariable::For;

constexpr std::string_view kUrl = "http://127.0.0.1:8710", kV1 = "http://127.0.0.1:8710/v1";
constexpr std::array kVariables{
    AgentVariable{"PROCTOR_GATEWAY", kUrl, For::kEach, true},
    AgentVariable{"PROCTOR_GATEWAY_TOKEN", "<token>", For::kEach, true},
    AgentVariable{"PROCTOR_GATEWAY_MODEL", "<model>", For::kEach, true},
    AgentVariable{"PROCTOR_GATEWAY_MODELS", "<models>", For::kEach, true},
    AgentVariable{"no_proxy", "localhost,127.0.0.1,::1"},
    AgentVariable{"NO_PROXY", "localhost,127.0.0.1,::1"},
    // Else LiteLLM asks the network for prices.
    AgentVariable{"LITELLM_LOCAL_MODEL_COST_MAP", "True"},
    AgentVariable{"OPENAI_BASE_URL", kV1, For::kOpenai, true},
    AgentVariable{"OPENAI_API_BASE", kV1, For::kOpenai, true},
    AgentVariable{"OPENAI_API_KEY", "<token>", For::kOpenai, true},
    AgentVariable{"OPENAI_MODEL", "<model>", For::kOpenai},
    // mini-swe-agent asks at its first start, and ends at a model whose price it does not know.
    AgentVariable{"MSWEA_CONFIGURED", "true", For::kOpenai},
    AgentVariable{"MSWEA_COST_TRACKING", "ignore_errors", For::kOpenai},
    AgentVariable{"ANTHROPIC_BASE_URL", kUrl, For::kAnthropic, true},
    AgentVariable{"ANTHROPIC_API_BASE", kUrl, For::kAnthropic, true},
    AgentVariable{"ANTHROPIC_API_KEY", "<token>", For::kAnthropic, true},
    AgentVariable{"ANTHROPIC_MODEL", "<model>", For::kAnthropic},
    AgentVariable{"ANTHROPIC_SMALL_FAST_MODEL", "<haiku>", For::kAnthropic},
    AgentVariable{"ANTHROPIC_DEFAULT_HAIKU_MODEL", "<haiku>", For::kAnthropic},
    AgentVariable{"ANTHROPIC_DEFAULT_SONNET_MODEL", "<sonnet>", For::kAnthropic},
    AgentVariable{"ANTHROPIC_DEFAULT_OPUS_MODEL", "<opus>", For::kAnthropic},
    AgentVariable{"DISABLE_AUTOUPDATER", "1", For::kAnthropic},
    AgentVariable{"DISABLE_TELEMETRY", "1", For::kAnthropic},
    AgentVariable{"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1", For::kAnthropic},
    // Else Claude Code refuses --dangerously-skip-permissions to the root of a container.
    AgentVariable{"IS_SANDBOX", "1", For::kAnthropic},
};

// The first model with "haiku" in a name of it, else the one that takes "claude-haiku-", else the
// first.
const GatewayModel& model_of_size(const MethodGateway& gateway, std::string_view size) {
  const auto has = [size](std::string_view name) { return name.find(size) != name.npos; };
  for (const GatewayModel& m : gateway.models)
    if (has(m.name) || std::ranges::any_of(m.aliases, has)) return m;
  const GatewayModel* taken = gateway.find("claude-" + std::string(size) + "-");
  return taken == nullptr ? gateway.model() : *taken;
}

std::string value_of(std::string_view word, const MethodGateway& gateway,
                     const std::string& token) {
  if (!word.starts_with('<')) return std::string(word);
  if (word == "<token>") return token;
  if (word == "<model>") return gateway.model().name;
  if (word == "<models>") return gateway.names(" ");
  return model_of_size(gateway, word.substr(1, word.size() - 2)).name;
}
}  // namespace

std::span<const AgentVariable> agent_variables() {
  return kVariables;
}

void set_agent_variables(std::map<std::string, std::string>& env, const MethodGateway& gateway,
                         const std::string& token) {
  const For ours = gateway.as == MethodGateway::As::kAnthropic ? For::kAnthropic : For::kOpenai;
  for (const AgentVariable& v : agent_variables()) {
    if (v.whose != For::kEach && v.whose != ours) continue;
    const auto [it, fresh] = env.try_emplace(std::string(v.name));
    if (fresh || v.fixed) it->second = value_of(v.value, gateway, token);
  }
}
}  // namespace proctor
