#pragma once
// What a request's body says of its cost and its reach.  All else is passed on unread, byte for
// byte.  Pure; any thread.
// Fails with kInvalid: no JSON object, or a member that decides about money and is not what it
// should be; the text names it.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/contract/models_file.h"
#include "worker/gateway/json_spans.h"

namespace proctor {

struct PeekedTool {
  std::string type;  // empty: it says none
  JsonSpan span;
  std::vector<PeekedTool> inner{};  // the tools in it, of a namespace of them
  JsonSpan inner_at{};              // ... and their list
};
struct PeekedTools {
  JsonSpan list;
  std::vector<PeekedTool> tools;
};

// What came of a tool that the agent ran.
struct PeekedResult {
  std::string id;  // of the call
  JsonSpan content;
};
// Where a body may be cut into pieces: always there, or where a piece is large enough.
struct BodyCut {
  std::size_t at = 0;
  bool always = false;
  friend auto operator<=>(const BodyCut&, const BodyCut&) = default;
};

// The parts of a body, or of an item, that have a cost beside its bytes.
struct BodyCounts {
  std::uint64_t items = 0;       // messages, inputs, tools, parts, ...
  std::uint64_t tool_bytes = 0;  // of `tools` and its kin
  std::uint64_t images = 0, image_bytes = 0;
  std::uint64_t references = 0;  // to tools, each of which is printed once more
  std::uint64_t thoughts = 0;    // what a model reasoned, in clear or encrypted
};
struct PeekedItem {
  JsonSpan at;
  BodyCounts counts{};  // in it
};

struct BodyPeek : BodyCounts {
  JsonSpan root;
  bool has_members = false;
  std::string model;
  JsonSpan model_at;
  bool stream = false;
  // Of the output: what is asked for, the member that says it, and where its value lies.
  std::optional<std::uint64_t> limit;
  std::string limit_key;
  JsonSpan limit_at;
  std::uint64_t samples = 1;          // n, best_of; as often for each prompt
  std::uint64_t beside = 0;           // bytes of a prediction: rejected tokens are billed
  std::uint64_t thinking = 0;         // thinking.budget_tokens
  std::optional<bool> include_usage;  // of stream_options
  std::optional<JsonSpan> include_usage_at, stream_options_at;
  bool stream_options_empty = false;
  std::string tier;
  bool caches = false, caches_for_hours = false;
  std::uint64_t largest_tool = 0;  // bytes
  std::vector<PeekedTool> tools;
  std::vector<PeekedTools> found_tools;  // in items of the conversation
  std::optional<JsonSpan> tools_at;
  JsonSpan tools_member;  // with its key and one comma: what is left without it is an object
  std::vector<PeekedResult> results;
  // Messages, inputs and tools; the members that say how they are to be answered.
  std::vector<PeekedItem> item_at;
  std::vector<JsonSpan> settings;
  bool hides = false;         // the provider may leave items out of what it counts
  std::vector<BodyCut> cuts;  // ascending: between messages, tools, ...
  // The first member that asks for more than an answer, or for what its bytes do not bound: a URL
  // to be fetched, a file kept elsewhere, a chain of answers.  Empty: none.
  std::string reaches;
  std::string reaches_how, reaches_instead;
};

// Pieces that make up the body, cut so that those of a conversation are those of its next turn too.
std::vector<JsonSpan> pieces_of(std::size_t body, const std::vector<BodyCut>& cuts);

Result<BodyPeek> peek_body(ModelApi api, std::string_view body);

}  // namespace proctor
