#pragma once
// A model's answer read for money and evidence: events of a stream, usage, calls of tools.  Pure;
// any thread.  All that a provider says is hostile.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/result.h"
#include "common/contract/models_file.h"
#include "worker/core/run_meter.h"
#include "worker/gateway/json_spans.h"

namespace proctor {
// Events of a stream (text/event-stream), as they come, in pieces of any size.
// Source: WHATWG HTML 9.2.
struct SseEvent {
  std::string name;   // empty: none was said
  std::string data;   // lines joined by '\n'
  std::string bytes;  // all of it, as it came, with the blank line that ends it
};

class SseScan {
 public:
  static constexpr std::size_t kEventBytes = std::size_t{16} << 20;
  // The events that are whole now.  kExhausted: one that is larger than kEventBytes.
  Result<std::vector<SseEvent>> feed(std::string_view bytes);
  // True between two events: a line of ours may stand here.
  bool between() const { return event_.bytes.empty(); }
  std::string rest() const { return event_.bytes; }

 private:
  void end_line(std::vector<SseEvent>& out);
  SseEvent event_;
  std::string line_;
  bool first_ = true;      // nothing has come yet: a byte order mark may
  bool after_cr_ = false;  // a line feed now belongs to the line before
  bool has_data_ = false;
};

// The use of a call as its provider says it, brought to one form: counts that contain each other as
// Amount wants them.  OpenAI's prompt_tokens contain what was cached or written, Anthropic's
// input_tokens do not.

// `usage`: the object that the API gives.  nullopt: a count is missing, negative, no integer or
// above 1e9.
std::optional<Amount> read_usage(ModelApi api, std::string_view usage, bool long_cache);

// Facts of an answer; read_answer() takes them from the body of a whole one.
struct AnswerFacts {
  std::optional<Amount> usage;
  std::string raw_usage;  // to 4 KiB
  std::string finish;     // why the model ended
  std::string id;         // the provider's
  bool has_content = false;
  std::string fault{};  // "it is no JSON object": no answer of the API, whatever its status
};
AnswerFacts read_answer(ModelApi api, std::string_view body, bool long_cache);

// Takes the same from a stream.
class StreamFacts {
 public:
  StreamFacts(ModelApi api, bool long_cache) : api_(api), long_cache_(long_cache) {}
  void on(const SseEvent& event);
  bool ended() const { return ended_; }    // its last event has come
  bool failed() const { return failed_; }  // ... and said that it broke
  // For an event of a chat stream: is nothing in it but the usage that we asked for?
  static bool is_bare_usage(const SseEvent& event);
  const AnswerFacts& facts() const { return facts_; }
  // The part that is known of a stream that broke off: the input, where the API says it first.
  std::optional<Amount> begun() const { return begun_; }

 private:
  void on_chat(const JsonAt& event);
  void on_responses(const JsonAt& event);
  void on_messages(const JsonAt& event);
  void take_usage(std::string_view usage);
  ModelApi api_;
  bool long_cache_;
  bool ended_ = false, failed_ = false;
  AnswerFacts facts_;
  std::optional<Amount> begun_;
  std::string first_usage_;  // of message_start
};

// The calls of tools that a model asks its agent for: which, and the digest of what it says to
// each.  Calls that cannot be read are left out.

inline constexpr std::size_t kToolCallsMax = 64;  // of one answer

struct ToolCall {
  std::string id, name;
  std::string arguments;
};

std::vector<ToolCall> tool_calls_in(ModelApi api, std::string_view body);

// The same from a stream.
class StreamToolCalls {
 public:
  explicit StreamToolCalls(ModelApi api) : api_(api) {}
  void on(const SseEvent& event);
  std::vector<ToolCall> calls() const;  // those that have begun, in their order

 private:
  void on_chat(const JsonAt& event);
  void on_messages(const JsonAt& event);
  void append(ToolCall& call, const std::string& more);
  ModelApi api_;
  std::map<std::uint64_t, ToolCall> open_;  // by their index
  std::vector<ToolCall> whole_;
  std::size_t bytes_ = 0;  // of the open ones, which end where nobody's answer is that long
};

// A text that a model says, for whoever watches its words.
struct SaidText {
  std::string text;
  bool for_tool = false;  // an argument of a tool that it asks for
  // Where the parts of the text begin, and where in the body: a JSON string does, or, of a stream,
  // the event that brought the part.  Rising; never empty.
  std::vector<std::pair<std::size_t, std::size_t>> parts;
  // The same of the part that holds this byte of the text.
  std::size_t in_body(std::size_t offset) const;
};
// All of a whole answer or of a stream, of every API, in the order in which they begin.  Arguments
// of a tool are brought to lines: each text in them, and each list of words as one command.  A
// stream may say the same text twice, as Responses do.
std::vector<SaidText> said_in(std::string_view body);
}  // namespace proctor
