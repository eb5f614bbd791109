#pragma once
// What a provider answers whose model asks for tools, in the words of both APIs.
#include <string>
#include <vector>

#include "tests/support/provider_server.h"

namespace proctor::testing {

struct Asks {
  std::string tool;
  Json arguments = Json::object();
};

inline ProviderSays chat_asks(const std::vector<Asks>& calls, std::uint64_t input = 20,
                              std::uint64_t output = 30) {
  Json asked = Json::array();
  for (std::size_t i = 0; i < calls.size(); ++i)
    asked.push_back(
        {{"id", "c" + std::to_string(i)},
         {"type", "function"},
         {"function", {{"name", calls[i].tool}, {"arguments", calls[i].arguments.dump()}}}});
  Json choice = {{"index", 0},
                 {"finish_reason", "tool_calls"},
                 {"message", {{"role", "assistant"}, {"content", nullptr}, {"tool_calls", asked}}}};
  ProviderSays out;
  out.body = Json{{"id", "x"},
                  {"object", "chat.completion"},
                  {"model", "provider-model"},
                  {"choices", Json::array({choice})},
                  {"usage",
                   {{"prompt_tokens", input},
                    {"completion_tokens", output},
                    {"total_tokens", input + output}}}}
                 .dump();
  return out;
}

inline ProviderSays messages_asks(const std::vector<Asks>& calls, std::uint64_t input = 20,
                                  std::uint64_t output = 30) {
  Json content = Json::array();
  for (std::size_t i = 0; i < calls.size(); ++i)
    content.push_back({{"type", "tool_use"},
                       {"id", "c" + std::to_string(i)},
                       {"name", calls[i].tool},
                       {"input", calls[i].arguments}});
  ProviderSays out;
  out.body = Json{{"id", "m"},
                  {"type", "message"},
                  {"role", "assistant"},
                  {"model", "provider-model"},
                  {"content", content},
                  {"stop_reason", "tool_use"},
                  {"usage", {{"input_tokens", input}, {"output_tokens", output}}}}
                 .dump();
  return out;
}

// One answer after the other, and the last of them for ever.
inline ProviderServer::Script in_order(std::vector<ProviderSays> answers) {
  return [answers = std::move(answers)](const auto&, std::size_t call) {
    return answers[std::min(call, answers.size() - 1)];
  };
}

inline Asks go_on_to(const std::string& stage) {
  return {"advance_stage", {{"to", stage}, {"reason", "it is time"}}};
}

}  // namespace proctor::testing
