#pragma once
// The environment by which an agent's program finds the gateway (docs/agents.md, "What is set
// inside").  Pure; any thread.
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "common/contract/campaign.h"

namespace proctor {
struct AgentVariable {
  enum class For { kEach, kOpenai, kAnthropic };
  std::string_view name;
  // As it is set, or one of <token>, <model>: the first one; <models>: all, by space; <haiku>,
  // <sonnet>, <opus>: the model that is asked for as Anthropic's of that size.
  std::string_view value;
  For whose = For::kEach;
  bool fixed = false;  // false: a value that the method has set wins
};

std::span<const AgentVariable> agent_variables();
void set_agent_variables(std::map<std::string, std::string>& env, const MethodGateway& gateway,
                         const std::string& token);
}  // namespace proctor
