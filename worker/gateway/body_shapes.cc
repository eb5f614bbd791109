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

// Does the name begin, end or go on as the pattern has it?
bool is_like(std::string_view name, std::string_view pattern) {
  const bool before = pattern.starts_with('*'), behind = pattern.ends_with('*');
  pattern.remove_prefix(before ? 1 : 0);
  pattern.remove_suffix(behind ? 1 : 0);
  if (before && behind) return name.find(pattern) != std::string_view::npos;
  if (before) return name.ends_with(pattern);
  return behind ? name.starts_with(pattern) : name == pattern;
}

const NotPassed* named(std::span<const NotPassed> table, std::string_view name) {
  for (const NotPassed& row : table)
    for (std::string_view names = row.names; !names.empty();) {
      const std::string_view one = names.substr(0, names.find(' '));
      if (is_like(name, one)) return &row;
      names.remove_prefix(std::min(names.size(), one.size() + 1));
    }
  return nullptr;
}

}  // namespace

const ShapeRule* shape_rule(ModelApi api, Level level, std::string_view type) {
  for (const ShapeRule& rule : rules(api, level))
    if (rule.type == type) return &rule;
  return nullptr;
}

const NotPassed* refused_type(std::string_view type) {
  return named(kRefusedTypes, usual_spelling(type));
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

const NotPassed* barred_member(std::string_view usual) {
  return named(kBarred, usual);
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
