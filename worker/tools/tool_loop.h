#pragma once
// ToolLoop: the conversation of the reference agent with a model that works by tools, turn by turn:
// what is asked next, what an answer asks for, what its calls came to.  Two styles of API, whole
// answers, no sampling parameter.  What would make a request too large is left out of the oldest
// results first, so that the same answers make the same requests.  Pure; one thread.
// Errors: kInvalid, an answer that is none.
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/json.h"
#include "common/base/result.h"
#include "common/base/words.h"
#include "worker/tools/tool_session.h"

namespace proctor {
struct ToolLoopRules {
  enum class Api { kChat, kMessages };
  Api api = Api::kChat;
  std::string model{};
  std::string prompt{};  // the system's
  std::uint64_t turns = 80, output = 8'192;
  std::size_t request_bytes = std::size_t{1} << 20;
};

class ToolLoop {
 public:
  // The built-in prompt, and which one it is.
  static constexpr std::string_view kPromptVersion = "1";
  static std::string_view prompt();

  ToolLoop(ToolLoopRules rules, std::string briefing);

  // kExhausted: it is too large whatever is left out, or all turns are used.
  Result<std::string> request();

  struct Asked {
    std::string id, tool;
    Json arguments;  // as they were written; no object: they are none
  };
  // Empty: the model asked for no tool and was reminded, or, a second time in a row, is done.
  Result<std::vector<Asked>> on_answer(std::string_view body);
  bool done() const { return done_; }
  // Of a call of the last answer; each once, in order.
  void on_result(const Asked& asked, const McpResult& result);

  std::uint64_t turns() const { return turns_; }
  bool has_turns() const { return turns_ < rules_.turns; }
  std::uint64_t left_out() const { return left_out_; }  // bytes of results

 private:
  Result<std::vector<Asked>> chat_answer(const Json& answer);
  Result<std::vector<Asked>> messages_answer(const Json& answer);
  Json body() const;
  bool leave_out_oldest();
  const ToolLoopRules rules_;
  std::vector<Json> items_;                // of the conversation
  std::vector<std::uint64_t> item_turns_;  // in which each was said
  std::uint64_t turns_ = 0, left_out_ = 0;
  bool reminded_ = false, done_ = false;
};

struct ToolLoopEnd {
  enum class Why { kSubmitted, kSilent, kTurns, kTooLarge, kRefused, kModel };
  Why why;
  std::string detail;
};
constexpr auto words(ToolLoopEnd::Why) {
  return std::to_array<Word<ToolLoopEnd::Why>>({{"submitted", ToolLoopEnd::Why::kSubmitted},
                                                {"silent", ToolLoopEnd::Why::kSilent},
                                                {"turns", ToolLoopEnd::Why::kTurns},
                                                {"too_large", ToolLoopEnd::Why::kTooLarge},
                                                {"refused", ToolLoopEnd::Why::kRefused},
                                                {"model", ToolLoopEnd::Why::kModel}});
}
// Until the work is handed in, the model has nothing more to ask, or something ends it.  `ask` is
// the way to the model: a request's body, the body of its answer.
using AskModel = std::function<Result<std::string>(const std::string& body)>;
ToolLoopEnd run_tool_loop(ToolLoop& loop, ToolSession& session, const AskModel& ask);
}  // namespace proctor
