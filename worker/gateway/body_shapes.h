#pragma once
// What a request is made of, by type: items, parts of content, tools and members.  An unknown type
// passes if it stands for itself: then its bytes bound its cost.  Refused is what is billed apart,
// runs elsewhere or refers to what a provider keeps; the tables below are all of it
// (docs/gateway.md, "What is not passed on").
// Pure; any thread.
#include <array>
#include <string>
#include <string_view>

#include "common/contract/models_file.h"

namespace proctor {

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
// A type that is known; nullptr: it is not.
enum class Level { kItem, kPart };
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
inline constexpr std::string_view kOperator = "that is for the operator's models file";
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
              kOperator},
    NotPassed{"api_base base_url kv_transfer_params bootstrap_host", "another address", kOperator},
    NotPassed{"api_key", "another key", kOperator},
    NotPassed{"extra_body", "members that a proxy would put beside these", kLeaveOut},
    NotPassed{"inference_geo", "another place at another price", kOperator},
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
// Of a key in its usual spelling; nullptr: none of kBarred.
const NotPassed* barred_member(std::string_view usual);

enum class Runs { kClient, kProvider, kUnknown };
// Who runs a tool of this type; empty: it has none.
Runs runs_tool(ModelApi api, std::string_view type);

}  // namespace proctor
