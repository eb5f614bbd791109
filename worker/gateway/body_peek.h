#pragma once
// A request's body, read for its cost and its reach; which types and members of it are not passed
// on.  Pure; any thread.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/contract/models_file.h"
#include "worker/gateway/json_spans.h"

namespace proctor {
// The types that a request is made of: items, parts of content, tools and members.  An unknown type
// passes if it stands for itself: then its bytes bound its cost.  Refused is what is billed apart,
// runs elsewhere or refers to what a provider keeps; the tables below are all of it
// (docs/gateway.md, "What is not passed on").

enum class Inside {
  kNothing,    // text, and whatever else is written out
  kParts,      // a text, or a list of parts
  kPicture,    // a picture in the request itself
  kTools,      // tools, each judged as those of the request
  kReasoning,  // encrypted, or in clear and without the id of what is stored
  kReference,  // to a tool of the request, which the provider prints once more
};
struct ShapeRule {
  std::string_view type;
  std::string_view needs;  // the member without which it is nothing but a name; empty: none
  Inside inside = Inside::kNothing;
};
enum class Level { kItem, kPart };
// A type that is known; nullptr: it is not.
const ShapeRule* shape_rule(ModelApi api, Level level, std::string_view type);

// Names that are not passed on.
struct NotPassed {
  std::string_view names;    // with a blank between; a star at a begin or end is anything
  std::string_view what;     // what they are: "a search by the provider"
  std::string_view instead;  // what to do
};

inline constexpr std::string_view kOwnTools = "let the agent's own tools do it";
inline constexpr std::string_view kSendWhole = "send it whole in the request";
inline constexpr std::string_view kAsText = "send text";
inline constexpr std::string_view kOneModel = "ask for this run's model alone";
inline constexpr std::string_view kForOperator = "that is for the operator's models file";
inline constexpr std::string_view kLeaveOut = "leave it out";

// Types of items and parts.
inline constexpr std::array kRefusedTypes{
    NotPassed{"item_reference", "content that the provider keeps", kSendWhole},
    NotPassed{"*compaction*", "a further paid call", "shorten the conversation"},
    NotPassed{"web_search* web_fetch* file_search* code_interpreter* code_execution* "
              "image_generation* computer_call* mcp_* multi_agent* server_tool_use *_tool_result",
              "a tool that the provider runs", kOwnTools},
    NotPassed{"input_file input_audio input_video file document* audio* video* image_embeds "
              "container_upload",
              "media without a price", kAsText},
};
// Members of items, parts and messages.
inline constexpr std::array<std::string_view, 14> kOutside{
    "file_id",      "file_url",     "file_data",   "url",          "video_url",
    "audio_url",    "document_url", "input_audio", "image_embeds", "audio",
    "audio_embeds", "file_ids",     "attachments", "input_file"};
// Members of the request, in their usual spelling.
inline constexpr std::array kBarred{
    NotPassed{"mcp_servers", "a server that the provider would call", kOwnTools},
    NotPassed{"container", "a machine of the provider's", kOwnTools},
    NotPassed{"web_search_options search_parameters web_search enable_search data_sources",
              "a search by the provider", kOwnTools},
    NotPassed{"plugins tool_resources", "what the provider would run", kOwnTools},
    NotPassed{"multi_agent", "further agents of the provider's", kOwnTools},
    NotPassed{"background deferred", "work behind the call's back", "wait for the answer"},
    NotPassed{"conversation", "a conversation that the provider keeps", kSendWhole},
    NotPassed{"previous_response_id", "an answer that the provider keeps", kSendWhole},
    NotPassed{"prompt", "a prompt that the provider keeps", kSendWhole},
    NotPassed{"cached_content cachedcontent", "content that the provider keeps", kSendWhole},
    NotPassed{"file_ids attachments", "files that the provider keeps", kSendWhole},
    NotPassed{"prompt_embeds", "a prompt whose tokens nobody can count", "send it as text"},
    NotPassed{"chat_template", "a text that the provider would repeat", kLeaveOut},
    NotPassed{"fallbacks fallback_model fallback_models models route preset lora_path",
              "another model", kOneModel},
    NotPassed{"provider custom_llm_provider user_config litellm_params", "another provider",
              kForOperator},
    NotPassed{"api_base base_url kv_transfer_params bootstrap_host", "another address",
              kForOperator},
    NotPassed{"api_key", "another key", kForOperator},
    NotPassed{"extra_body", "members that a proxy would put beside these", kLeaveOut},
    NotPassed{"inference_geo", "another place at another price", kForOperator},
    NotPassed{"audio", "speech, which has no price here", "ask for text"},
    NotPassed{"num_return_sequences candidate_count candidatecount num_generations",
              "several answers", "n says how many"},
    NotPassed{"n_predict", "another limit of the output", "the API's own says it"},
    NotPassed{"mock_response", "an answer of no model", kLeaveOut},
};

// Begins of the types of tools that a provider runs.
inline constexpr std::array<std::string_view, 9> kHosted{
    "web_search",           "web_fetch",   "code_interpreter",
    "code_execution",       "file_search", "image_generation",
    "computer_use_preview", "mcp",         "shell"};

// nullptr: none of kRefusedTypes.
const NotPassed* refused_type(std::string_view type);
bool is_outside(std::string_view key);

// `key` in small letters, and in ASCII where another letter is one of it in another case (the
// Kelvin sign, the long s).
std::string usual_spelling(std::string_view key);
// `usual`: a key in its usual spelling; nullptr: none of kBarred.
const NotPassed* barred_member(std::string_view usual);

enum class Runs { kClient, kProvider, kUnknown };
// Says who runs a tool of this type; empty: it has none.
Runs runs_tool(ModelApi api, std::string_view type);

// A tool that the request offers.
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

// The result of a tool that the agent ran.
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
  // The output: what is asked for, the member that says it, and where its value lies.
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

// All else in the body is passed on unread, byte for byte.
// Fails with kInvalid: no JSON object, or a member that decides about money and is not what it
// should be; the text names it.
Result<BodyPeek> peek_body(ModelApi api, std::string_view body);
}  // namespace proctor
