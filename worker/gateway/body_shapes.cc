#include "worker/gateway/body_shapes.h"

#include <algorithm>
#include <array>
#include <span>

namespace proctor {
namespace {

constexpr std::array kChatParts{
    ShapeRule{"text", "text"},
    ShapeRule{"refusal", "refusal"},
    ShapeRule{"image_url", "image_url", Inside::kPicture},
    ShapeRule{"thinking", "thinking"},
    ShapeRule{"redacted_thinking", "data"},
};
constexpr std::array kResponsesParts{
    ShapeRule{"input_text", "text"},
    ShapeRule{"output_text", "text"},
    ShapeRule{"text", "text"},
    ShapeRule{"refusal", "refusal"},
    ShapeRule{"summary_text", "text"},
    ShapeRule{"reasoning_text", "text"},
    ShapeRule{"input_image", "image_url", Inside::kPicture},
};
constexpr std::array kResponsesItems{
    ShapeRule{"message", "content", Inside::kParts},
    ShapeRule{"reasoning", "", Inside::kReasoning},
    ShapeRule{"function_call", "arguments"},
    ShapeRule{"function_call_output", "output", Inside::kParts},
    ShapeRule{"custom_tool_call", "input"},
    ShapeRule{"custom_tool_call_output", "output", Inside::kParts},
    ShapeRule{"local_shell_call", "action"},
    ShapeRule{"local_shell_call_output", "output", Inside::kParts},
    ShapeRule{"apply_patch_call", "operation"},
    ShapeRule{"apply_patch_call_output", "status", Inside::kParts},
    ShapeRule{"tool_search_call", "arguments"},
    ShapeRule{"tool_search_output", "tools", Inside::kTools},
};
constexpr std::array kMessagesParts{
    ShapeRule{"text", "text"},
    ShapeRule{"image", "source", Inside::kPicture},
    ShapeRule{"thinking", "thinking"},
    ShapeRule{"redacted_thinking", "data"},
    ShapeRule{"tool_use", "input"},
    ShapeRule{"tool_result", "", Inside::kParts},
    ShapeRule{"tool_reference", "tool_name", Inside::kReference},
};

std::span<const ShapeRule> rules(ModelApi api, Level level) {
  if (api == ModelApi::kMessages || api == ModelApi::kCountTokens) return kMessagesParts;
  if (api != ModelApi::kResponses) return kChatParts;
  if (level == Level::kItem) return kResponsesItems;
  return kResponsesParts;
}

constexpr std::string_view kOwnTools = "let the agent's own tools do it";
constexpr std::string_view kWhole = "send it whole in the request";
constexpr std::string_view kOneModel = "ask for this run's model alone";
constexpr std::string_view kOperator = "that is for the operator's models file";
constexpr std::string_view kLeaveOut = "leave it out";

// Keys in their usual spelling.
constexpr std::array kBarred{
    // Fetches, searches, runs.
    BarredMember{"mcp_servers", "a server that the provider would call", kOwnTools},
    BarredMember{"container", "a machine of the provider's", kOwnTools},
    BarredMember{"web_search_options", "a search by the provider", kOwnTools},
    BarredMember{"search_parameters", "a search by the provider", kOwnTools},
    BarredMember{"web_search", "a search by the provider", kOwnTools},
    BarredMember{"enable_search", "a search by the provider", kOwnTools},
    BarredMember{"data_sources", "a search by the provider", kOwnTools},
    BarredMember{"plugins", "what the provider would run", kOwnTools},
    BarredMember{"tool_resources", "what the provider would run", kOwnTools},
    BarredMember{"multi_agent", "further agents of the provider's", kOwnTools},
    BarredMember{"background", "work behind the call's back", "wait for the answer"},
    // Kept elsewhere, of unknown size.
    BarredMember{"conversation", "a conversation that the provider keeps", kWhole},
    BarredMember{"previous_response_id", "an answer that the provider keeps", kWhole},
    BarredMember{"prompt", "a prompt that the provider keeps", kWhole},
    BarredMember{"cached_content", "content that the provider keeps", kWhole},
    BarredMember{"cachedcontent", "content that the provider keeps", kWhole},
    BarredMember{"file_ids", "files that the provider keeps", kWhole},
    BarredMember{"attachments", "files that the provider keeps", kWhole},
    BarredMember{"prompt_embeds", "a prompt whose tokens nobody can count", "send it as text"},
    BarredMember{"chat_template", "a text that the provider would repeat", kLeaveOut},
    // Another model, place or price.
    BarredMember{"fallbacks", "another model", kOneModel},
    BarredMember{"fallback_model", "another model", kOneModel},
    BarredMember{"fallback_models", "another model", kOneModel},
    BarredMember{"models", "another model", kOneModel},
    BarredMember{"route", "another model", kOneModel},
    BarredMember{"provider", "another provider", kOperator},
    BarredMember{"custom_llm_provider", "another provider", kOperator},
    BarredMember{"api_base", "another address", kOperator},
    BarredMember{"base_url", "another address", kOperator},
    BarredMember{"api_key", "another key", kOperator},
    BarredMember{"user_config", "another provider", kOperator},
    BarredMember{"litellm_params", "another provider", kOperator},
    BarredMember{"extra_body", "members that a proxy would put beside these", kLeaveOut},
    BarredMember{"preset", "another model", kOneModel},
    BarredMember{"lora_path", "another model", kOneModel},
    BarredMember{"kv_transfer_params", "another address", kOperator},
    BarredMember{"bootstrap_host", "another address", kOperator},
    BarredMember{"inference_geo", "another place at another price", kOperator},
    // Other answers than those that were reserved for.
    BarredMember{"audio", "speech, which has no price here", "ask for text"},
    BarredMember{"num_return_sequences", "several answers", "n says how many"},
    BarredMember{"candidate_count", "several answers", "n says how many"},
    BarredMember{"candidatecount", "several answers", "n says how many"},
    BarredMember{"num_generations", "several answers", "n says how many"},
    BarredMember{"n_predict", "another limit of the output", "the API's own says it"},
    BarredMember{"mock_response", "an answer of no model", kLeaveOut},
    BarredMember{"deferred", "work behind the call's back", "wait for the answer"},
};

constexpr std::array<std::string_view, 14> kOutside{
    "file_id",      "file_url",     "file_data",   "url",          "video_url",
    "audio_url",    "document_url", "input_audio", "image_embeds", "audio",
    "audio_embeds", "file_ids",     "attachments", "input_file"};

constexpr std::array<std::string_view, 9> kHosted{
    "web_search",           "web_fetch",   "code_interpreter",
    "code_execution",       "file_search", "image_generation",
    "computer_use_preview", "mcp",         "shell"};

}  // namespace

const ShapeRule* shape_rule(ModelApi api, Level level, std::string_view type) {
  for (const ShapeRule& rule : rules(api, level))
    if (rule.type == type) return &rule;
  return nullptr;
}

std::string shape_types(ModelApi api, Level level) {
  std::string out;
  for (const ShapeRule& rule : rules(api, level)) {
    if (!out.empty()) out += ", ";
    out += rule.type;
  }
  return out;
}

bool is_outside(std::string_view key) {
  return std::ranges::find(kOutside, key) != kOutside.end();
}

std::string usual_spelling(std::string_view key) {
  constexpr std::string_view kKelvin = "\xE2\x84\xAA", kLongS = "\xC5\xBF";
  std::string out;
  for (std::size_t i = 0; i < key.size(); ++i) {
    const char c = key[i];
    if (key.substr(i).starts_with(kKelvin)) {
      out += 'k';
      i += kKelvin.size() - 1;
    } else if (key.substr(i).starts_with(kLongS)) {
      out += 's';
      i += kLongS.size() - 1;
    } else {
      out += 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  return out;
}

const BarredMember* barred_member(std::string_view usual) {
  for (const BarredMember& member : kBarred)
    if (member.key == usual) return &member;
  return nullptr;
}

Runs runs_tool(ModelApi api, std::string_view type) {
  if (std::ranges::any_of(kHosted, [&](std::string_view begin) { return type.starts_with(begin); }))
    return Runs::kProvider;
  if (type == "custom") return Runs::kClient;
  if (api == ModelApi::kMessages || api == ModelApi::kCountTokens) {
    constexpr std::array<std::string_view, 4> kBuiltIn{"bash_", "text_editor_", "memory_",
                                                       "computer_"};
    return std::ranges::any_of(kBuiltIn, [&](std::string_view b) { return type.starts_with(b); })
               ? Runs::kClient
               : Runs::kUnknown;
  }
  if (type == "function") return Runs::kClient;
  constexpr std::array<std::string_view, 3> kLocal{"tool_search", "apply_patch", "local_shell"};
  const bool local = api == ModelApi::kResponses && std::ranges::find(kLocal, type) != kLocal.end();
  return local ? Runs::kClient : Runs::kUnknown;
}

}  // namespace proctor
