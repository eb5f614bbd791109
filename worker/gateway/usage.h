#pragma once
// What a provider says a call has used, brought to one form: counts that contain each other as
// Amount wants them.  OpenAI's prompt_tokens contain what was cached or written, Anthropic's
// input_tokens do not.  Pure; any thread.  What a provider says is hostile.
#include <optional>
#include <string>
#include <string_view>

#include "common/contract/models_file.h"
#include "worker/core/run_meter.h"
#include "worker/gateway/sse_scan.h"

namespace proctor {

// `usage`: the object that the API gives.  nullopt: a count is missing, negative, no integer or
// above 1e9.
std::optional<Amount> read_usage(ModelApi api, std::string_view usage, bool long_cache);

// What the body of a whole answer says.
struct AnswerFacts {
  std::optional<Amount> usage;
  std::string raw_usage;  // to 4 KiB
  std::string finish;     // why the model ended
  std::string id;         // the provider's
  bool has_content = false;
  std::string fault{};  // "it is no JSON object": no answer of the API, whatever its status
};
AnswerFacts read_answer(ModelApi api, std::string_view body, bool long_cache);

// Follows a stream.
class StreamFacts {
 public:
  StreamFacts(ModelApi api, bool long_cache) : api_(api), long_cache_(long_cache) {}
  void on(const SseEvent& event);
  bool ended() const { return ended_; }    // its last event has come
  bool failed() const { return failed_; }  // ... and said that it broke
  // Of a chat stream: nothing but the usage that we asked for is in it.
  static bool is_bare_usage(const SseEvent& event);
  const AnswerFacts& facts() const { return facts_; }
  // What is known of a stream that broke off: the input, where the API says it first.
  std::optional<Amount> begun() const { return begun_; }

 private:
  void on_chat(std::string_view data);
  void on_responses(const SseEvent& event);
  void on_messages(const SseEvent& event);
  ModelApi api_;
  bool long_cache_;
  bool ended_ = false, failed_ = false;
  AnswerFacts facts_;
  std::optional<Amount> begun_;
  std::string first_usage_;  // of message_start
};

}  // namespace proctor
