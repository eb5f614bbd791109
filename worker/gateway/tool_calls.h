#pragma once
// The calls of tools that a model asks its agent for: which, and the digest of what it says to
// each.  Pure; any thread.  What a provider says is hostile: what cannot be read is left out.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/contract/models_file.h"
#include "worker/gateway/sse_scan.h"

namespace proctor {

inline constexpr std::size_t kToolCallsMax = 64;  // of one answer

struct ToolCall {
  std::string id, name;
  std::string arguments;
};

std::vector<ToolCall> tool_calls_in(ModelApi api, std::string_view body);

// Follows a stream.
class StreamToolCalls {
 public:
  explicit StreamToolCalls(ModelApi api) : api_(api) {}
  void on(const SseEvent& event);
  std::vector<ToolCall> calls() const;  // those that have begun, in their order

 private:
  void on_chat(std::string_view data);
  void on_messages(std::string_view data);
  void append(ToolCall& call, const std::string& more);
  ModelApi api_;
  std::map<std::uint64_t, ToolCall> open_;  // by their index
  std::vector<ToolCall> whole_;
  std::size_t bytes_ = 0;  // of the open ones, which end where nobody's answer is that long
};

}  // namespace proctor
