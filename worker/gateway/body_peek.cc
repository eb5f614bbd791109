#include "worker/gateway/body_peek.h"

#include <algorithm>
#include <span>
#include <utility>

#include "common/base/parse.h"

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

// Is it one of `names`, which have a blank between them and stars as in NotPassed?
bool is_among(std::string_view names, std::string_view name) {
  while (!names.empty())
    if (is_like(name, take_until(names, ' '))) return true;
  return false;
}

const NotPassed* named(std::span<const NotPassed> table, std::string_view name) {
  for (const NotPassed& row : table)
    if (is_among(row.names, name)) return &row;
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
    const bool built_in = is_among("bash_* text_editor_* memory_* computer_*", type);
    return built_in ? Runs::kClient : Runs::kUnknown;
  }
  if (type == "function") return Runs::kClient;
  const bool local =
      api == ModelApi::kResponses && is_among("tool_search apply_patch local_shell", type);
  return local ? Runs::kClient : Runs::kUnknown;
}

namespace {
using Members = std::vector<JsonMember>;

Error wrong_member(std::string_view member, std::string_view expected) {
  return Error{Errc::kInvalid, std::string(member) + ": expected " + std::string(expected)};
}

// `name` is a type, or a member of a chat message.
bool is_thought(std::string_view name) {
  return name.find("thinking") != std::string_view::npos || name.starts_with("reasoning");
}

// The part of a peek that reads what a request is made of: messages, items, parts of content and
// tools, each by the rule of its type.  One thread.
class BodyParts {
 public:
  // `text` and `out` outlive this.
  BodyParts(ModelApi api, const JsonText& text, BodyPeek& out)
      : api_(api), text_(text), out_(out) {}

  // "messages", "input" or "system".
  Status read(const JsonMember& m) {
    if (m.key == "input" && api_ == ModelApi::kEmbeddings) return inputs(m);
    const bool typed = m.key == "input" && api_ == ModelApi::kResponses;
    const bool parts = m.key == "system" && is_messages();
    const char kind = text_.kind(m.value);
    if (kind == '"') ++out_.items;
    if (kind == '"') out_.item_at.push_back({m.value});
    if (is_null(m) || (kind == '"' && m.key != "messages")) return ok_status();
    if (kind != '[') return refused(m.key, "what is neither a text nor a list", "send a list");
    PROCTOR_TRY(const auto elements, listed(m.value, m.key));
    cut(m.value, elements);
    for (const JsonSpan& e : elements) {
      const BodyCounts before = out_;
      PROCTOR_CHECK_OK(typed ? item(e, m.key) : parts ? part(e, m.key, kDepth) : message(e, m.key));
      out_.item_at.push_back(
          {e,
           {out_.items - before.items, out_.tool_bytes - before.tool_bytes,
            out_.images - before.images, out_.image_bytes - before.image_bytes,
            out_.references - before.references, out_.thoughts - before.thoughts}});
    }
    return ok_status();
  }

  Result<PeekedTool> read_tool(JsonSpan e) const {
    PeekedTool tool{"", e};
    if (text_.kind(e) != '{') return tool;
    PROCTOR_TRY(const Members members, text_.members(e));
    const JsonMember* type = find_member(members, "type");
    if (type != nullptr) tool.type = text_.text(type->value).value_or("");
    // Anthropic's own form of an agent's tool has no type, and a schema of what it takes.
    const JsonMember* takes = find_member(members, "input_schema");
    if (type == nullptr && is_messages() && takes != nullptr && text_.kind(takes->value) == '{')
      tool.type = "custom";
    PROCTOR_CHECK_OK(read_inner(find_member(members, "tools"), tool));
    return tool;
  }

  void cut(JsonSpan list, const std::vector<JsonSpan>& elements) {
    out_.cuts.push_back({list.at, true});
    for (const JsonSpan& e : elements) out_.cuts.push_back({e.at + e.size, false});
    out_.cuts.push_back({list.at + list.size, true});
  }

  void refuse(const std::string& member, std::string how, std::string instead) {
    if (!out_.reaches.empty()) return;
    out_.reaches = member;
    out_.reaches_how = std::move(how);
    out_.reaches_instead = std::move(instead);
  }
  Status refused(const std::string& member, std::string how, std::string instead) {
    refuse(member, std::move(how), std::move(instead));
    return ok_status();
  }

 private:
  bool is_null(const JsonMember& m) const { return text_.kind(m.value) == 'n'; }
  // Texts or token ids; pictures have no price there.
  Status inputs(const JsonMember& m) {
    const char kind = text_.kind(m.value);
    if (kind == '"') ++out_.items;
    if (kind == '{') refuse(m.key, "an object", "send texts or token ids");
    if (kind != '[') return ok_status();
    PROCTOR_TRY(const auto elements, listed(m.value, m.key));
    cut(m.value, elements);
    for (const JsonSpan& e : elements)
      if (text_.kind(e) == '{') refuse(m.key, "an object", "send texts or token ids");
    return ok_status();
  }

  Result<std::vector<JsonSpan>> listed(JsonSpan list, const std::string& where) {
    PROCTOR_TRY(auto elements, text_.elements(list));
    out_.items += elements.size();
    if (JsonText::kElementsMax < out_.items) return wrong_member(where, "fewer parts");
    return elements;
  }

  bool is_messages() const { return api_ == ModelApi::kMessages || api_ == ModelApi::kCountTokens; }

  bool has(const Members& members, std::string_view key) const {
    const JsonMember* m = find_member(members, key);
    return m != nullptr && !is_null(*m);
  }

  bool has_text(const Members& members, std::string_view key) const {
    const JsonMember* m = find_member(members, key);
    return m != nullptr && text_.kind(m->value) == '"' && 2 < m->value.size;
  }

  bool has_some(const Members& members, std::string_view key) const {
    const JsonMember* m = find_member(members, key);
    if (m == nullptr || text_.kind(m->value) != '[') return false;
    const auto elements = text_.elements(m->value);
    return elements.ok() && !elements->empty();
  }

  // False: it is refused.
  bool lies_inside(const Members& members, const std::string& where, bool picture) {
    for (const JsonMember& m : members) {
      const bool of_picture = m.key == "image_url" || m.key == "source";
      if (is_null(m) || (of_picture ? picture : !is_outside(m.key))) continue;
      refuse(where, "\"" + m.key + "\", which is not in the request itself", "send text");
      return false;
    }
    return true;
  }

  Status message(JsonSpan e, const std::string& where) {
    if (text_.kind(e) != '{')
      return refused(where, "a message that is no object", "send objects with role and content");
    PROCTOR_TRY(const Members members, text_.members(e));
    result(members);
    for (const JsonMember& m : members)
      if (is_thought(m.key) && !is_null(m)) ++out_.thoughts;
    if (!lies_inside(members, where, false)) return ok_status();
    return content(find_member(members, "content"), where + ".content", kDepth);
  }

  Status content(const JsonMember* m, const std::string& where, std::size_t depth) {
    if (m == nullptr || is_null(*m) || text_.kind(m->value) == '"') return ok_status();
    if (depth == 0) return wrong_member(where, "parts nested less deep");
    if (text_.kind(m->value) != '[')
      return refused(where, "what is neither a text nor a list of parts", "send a text or a list");
    PROCTOR_TRY(const auto elements, listed(m->value, where));
    for (const JsonSpan& e : elements) PROCTOR_CHECK_OK(part(e, where, depth));
    return ok_status();
  }

  Status part(JsonSpan e, const std::string& where, std::size_t depth) {
    return shape(e, where, Level::kPart, depth);
  }

  // An item of the Responses API.  A message may go without its type; anything else without one is
  // taken for a reference to stored content of any size.
  Status item(JsonSpan e, const std::string& where) {
    if (text_.kind(e) == '{') {
      PROCTOR_TRY(const Members members, text_.members(e));
      if (find_member(members, "type") == nullptr && has(members, "role") &&
          has(members, "content"))
        return message(e, where);
    }
    return shape(e, where, Level::kItem, kDepth);
  }

  Status shape(JsonSpan e, const std::string& where, Level level, std::size_t depth) {
    if (text_.kind(e) != '{')
      return refused(where, "a part that is no object", "send objects with a type");
    PROCTOR_TRY(const Members members, text_.members(e));
    const JsonMember* type = find_member(members, "type");
    const std::string word = type == nullptr ? "" : text_.text(type->value).value_or("");
    const NotPassed* barred = refused_type(word);
    if (word.empty()) return refused(where, "a part without a type", "say its type");
    if (barred != nullptr)
      return refused(where, "a part of type " + word + ", " + std::string(barred->what) + ",",
                     std::string(barred->instead));
    result(members);
    if (is_thought(word)) ++out_.thoughts;
    const ShapeRule* rule = shape_rule(api_, level, word);
    if (rule == nullptr) return unknown(e, members, where, word, depth);
    if (!rule->needs.empty() && !has(members, rule->needs))
      return refused(where,
                     "a part of type " + word + " without \"" + std::string(rule->needs) +
                         "\", by its name alone,",
                     std::string(kSendWhole));
    if (rule->inside == Inside::kPicture) return picture(members, where);
    if (!lies_inside(members, where, false)) return ok_status();
    return inside(*rule, members, where, depth);
  }

  // Its bytes bound what it costs if it says something of its own and names nothing that lies
  // elsewhere, at any depth.  What it has of parts and tools is judged as everywhere.
  Status unknown(JsonSpan e, const Members& members, const std::string& where,
                 const std::string& word, std::size_t depth) {
    constexpr std::array<std::string_view, 8> kNames{"type", "id",     "status", "role",
                                                     "name", "object", "phase",  "cache_control"};
    std::vector<JsonSpan> judged;
    bool says = false;
    for (const JsonMember& m : members) {
      const bool names = std::ranges::find(kNames, m.key) != kNames.end() ||
                         m.key.ends_with("_id") || m.key.ends_with("_ids");
      const char kind = text_.kind(m.value);
      says = says || (!names && 2 < m.value.size && (kind == '"' || kind == '[' || kind == '{'));
      if (kind != '[') continue;
      if (m.key == "tools") PROCTOR_CHECK_OK(found(m.value, where));
      if (m.key == "content" || m.key == "output")
        PROCTOR_CHECK_OK(content(&m, where + "." + m.key, depth - 1));
      if (m.key == "tools" || m.key == "content" || m.key == "output") judged.push_back(m.value);
    }
    if (!says)
      refuse(where, "a part of type " + word + " by its name alone", std::string(kSendWhole));
    const auto on_key = [&](std::string_view key, std::size_t at) {
      const auto holds = [&](JsonSpan s) { return s.at <= e.at + at && e.at + at < s.at + s.size; };
      const std::string usual = usual_spelling(key);
      if (text_.kind({e.at + at, 1}) == 'n' || std::ranges::any_of(judged, holds)) return;
      if (is_outside(usual) || usual == "image_url" || usual == "source")
        refuse(where, "\"" + usual + "\" in a part of type " + word, std::string(kAsText));
    };
    PROCTOR_CHECK_OK(JsonText::read(text_.bytes(e), on_key));
    return ok_status();
  }

  // Tools in the conversation: what a search of them brought, or what came with a later turn.
  Status found(JsonSpan list, const std::string& where) {
    PROCTOR_TRY(const auto elements, listed(list, where));
    out_.tool_bytes += list.size;
    PeekedTools& found = out_.found_tools.emplace_back(PeekedTools{list, {}});
    for (const JsonSpan& e : elements) {
      PROCTOR_TRY(PeekedTool tool, read_tool(e));
      found.tools.push_back(std::move(tool));
    }
    return ok_status();
  }

  Status inside(const ShapeRule& rule, const Members& members, const std::string& where,
                std::size_t depth) {
    switch (rule.inside) {
      case Inside::kParts: {
        const bool said = is_messages() || rule.needs == "content";
        const std::string_view key = said ? "content" : "output";
        return content(find_member(members, key), where + "." + std::string(key), depth - 1);
      }
      case Inside::kTools: {
        const JsonMember& list = *find_member(members, rule.needs);
        if (text_.kind(list.value) != '[') return wrong_member(where + ".tools", "a list");
        return found(list.value, where);
      }
      case Inside::kReasoning:
        if (!has_text(members, "encrypted_content") &&
            (has(members, "id") ||
             (!has_some(members, "summary") && !has_some(members, "content"))))
          refuse(where, "reasoning that the provider keeps",
                 "ask for it (include: reasoning.encrypted_content) and send it, or leave it out");
        return ok_status();
      case Inside::kReference:
        ++out_.references;
        return ok_status();
      case Inside::kPicture:
      case Inside::kNothing:
        return ok_status();
    }
    return ok_status();
  }

  // A picture that lies in the body passes; what a provider would fetch or has kept does not, nor
  // what nobody has a price for.
  Status picture(const Members& members, const std::string& where) {
    if (!lies_inside(members, where, true)) return ok_status();
    const auto data = picture_data(members);
    if (!data) return refused(where, "an image that is not in the request itself", "send its data");
    ++out_.images;
    out_.image_bytes += data->size;
    return ok_status();
  }

  // OpenAI: image_url: {url: "data:..."} or "data:..."; Anthropic: source: {type: base64}.
  std::optional<JsonSpan> picture_data(const Members& members) const {
    constexpr std::string_view kData = "data:";
    const JsonMember* at = find_member(members, is_messages() ? "source" : "image_url");
    // One of both: which one is read is the provider's choice.
    if (at == nullptr || has(members, is_messages() ? "image_url" : "source")) return std::nullopt;
    JsonSpan value = at->value;
    if (text_.kind(value) == '{') {
      const auto inner = text_.members(value);
      if (!inner.ok() || has(*inner, "file_id")) return std::nullopt;
      const JsonMember* type = find_member(*inner, "type");
      const JsonMember* said = find_member(*inner, is_messages() ? "data" : "url");
      if (said == nullptr) return std::nullopt;
      if (is_messages() && (type == nullptr || text_.text(type->value) != "base64" ||
                            has(*inner, "url") || text_.kind(said->value) != '"'))
        return std::nullopt;
      value = said->value;
    } else if (is_messages()) {
      return std::nullopt;
    }
    const auto url = text_.text(value);
    if (!url || (!is_messages() && !url->starts_with(kData))) return std::nullopt;
    return value;
  }

  Status read_inner(const JsonMember* list, PeekedTool& tool) const {
    if (list == nullptr || text_.kind(list->value) != '[') return ok_status();
    PROCTOR_TRY(const auto elements, text_.elements(list->value));
    tool.inner_at = list->value;
    for (const JsonSpan& e : elements) {
      PeekedTool& inner = tool.inner.emplace_back(PeekedTool{"", e});
      if (text_.kind(e) != '{') continue;
      PROCTOR_TRY(const Members members, text_.members(e));
      // A namespace in a namespace is of no type that is known.
      const JsonMember* type = find_member(members, "type");
      if (type != nullptr && find_member(members, "tools") == nullptr)
        inner.type = text_.text(type->value).value_or("");
    }
    return ok_status();
  }

  // A message of the role "tool", an item "..._output", a block "tool_result".
  void result(const Members& members) {
    for (const auto& [id, content] :
         {std::pair("tool_call_id", "content"), std::pair("call_id", "output"),
          std::pair("tool_use_id", "content")}) {
      const JsonMember* call = find_member(members, id);
      const JsonMember* said = find_member(members, content);
      if (call == nullptr || said == nullptr) continue;
      if (auto name = text_.text(call->value))
        out_.results.push_back({*std::move(name), said->value});
      return;
    }
  }

  static constexpr std::size_t kDepth = 6;  // of parts within parts
  ModelApi api_;
  const JsonText& text_;
  BodyPeek& out_;
};

class Peeker {
 public:
  Peeker(ModelApi api, const JsonText& text) : api_(api), text_(text), parts_(api, text, out_) {}

  Result<BodyPeek> peek(bool caches, bool for_hours) {
    out_.root = text_.root();
    out_.caches = caches;
    out_.caches_for_hours = for_hours;
    PROCTOR_TRY(const Members members, text_.members(out_.root));
    out_.has_members = !members.empty();
    for (const JsonMember& m : members) {
      PROCTOR_CHECK_OK(member(m));
      if (is_setting(m)) out_.settings.push_back({m.begin, end_of(m) - m.begin});
    }
    for (std::size_t i = 0; i < members.size(); ++i)
      if (members[i].key == "tools") out_.tools_member = whole_member(members, i);
    if (out_.model.empty()) return wrong_member("model", "the name of one");
    out_.samples *= prompts_;
    out_.tool_bytes += out_.references * out_.largest_tool;
    std::ranges::sort(out_.cuts);
    return std::move(out_);
  }

 private:
  static std::size_t end_of(const JsonMember& m) { return m.value.at + m.value.size; }
  static JsonSpan whole_member(const Members& members, std::size_t i) {
    if (i + 1 < members.size()) return {members[i].begin, members[i + 1].begin - members[i].begin};
    const std::size_t from = i == 0 ? members[i].begin : end_of(members[i - 1]);
    return {from, end_of(members[i]) - from};
  }

  // Neither an item nor what no answer's cost depends on.
  bool is_setting(const JsonMember& m) const {
    constexpr std::string_view kNot =
        "messages input tools functions stream stream_options store metadata user "
        "client_metadata cache_control";
    const bool items = m.key == "system" && text_.kind(m.value) == '[';
    return !items && !is_limit(m.key) && !is_among(kNot, m.key);
  }

  Status member(const JsonMember& m) {
    const std::string& key = m.key;
    // Programs that take members of any case would read another request than we do.
    const std::string usual = usual_spelling(key);
    if (usual != key && is_read(usual)) return wrong_member(key, "the spelling " + usual);
    if (key == "model") return read_model(m);
    if (key == "stream") return flag(m, out_.stream);
    if (key == "stream_options") return stream_options(m);
    if (key == "n" || key == "best_of") return samples(m);
    if (is_limit(key)) return limit(m);
    if (key == "service_tier") return tier(m);
    if (key == "speed" && api_ == ModelApi::kMessages) return tier(m);
    if (key == "messages" || key == "input" || key == "system") return parts_.read(m);
    if (key == "tools" || key == "functions") return tools(m);
    if (key == "prediction") out_.beside = m.value.size;
    if (key == "thinking") return thinking(m);
    return reach(m, usual);
  }

  static bool is_read(std::string_view key) {
    constexpr std::string_view kRead =
        "model stream stream_options n best_of max_tokens max_completion_tokens "
        "max_output_tokens service_tier speed messages input system tools functions "
        "prediction thinking prompt context_management instructions modalities";
    return is_among(kRead, key);
  }

  bool is_limit(std::string_view key) const {
    switch (api_) {
      case ModelApi::kChat:
        return key == "max_completion_tokens" || key == "max_tokens";
      case ModelApi::kCompletions:
      case ModelApi::kMessages:
        return key == "max_tokens";
      case ModelApi::kResponses:
        return key == "max_output_tokens";
      case ModelApi::kEmbeddings:
      case ModelApi::kCountTokens:
        return false;
    }
    return false;
  }

  bool is_null(const JsonMember& m) const { return text_.kind(m.value) == 'n'; }

  Status read_model(const JsonMember& m) {
    const auto name = text_.text(m.value);
    if (!name || name->empty()) return wrong_member("model", "the name of one");
    out_.model = *name;
    out_.model_at = m.value;
    return ok_status();
  }
  Status flag(const JsonMember& m, bool& out) {
    if (is_null(m)) return ok_status();
    const auto said = text_.flag(m.value);
    if (!said) return wrong_member(m.key, "true or false");
    out = *said;
    return ok_status();
  }
  Result<std::uint64_t> count(const JsonMember& m, std::uint64_t least) {
    const auto n = text_.count(m.value);
    if (!n || *n < least)
      return wrong_member(m.key, "a whole number of at least " + std::to_string(least) +
                                     ", without sign, point or exponent");
    return *n;
  }
  Status limit(const JsonMember& m) {
    if (is_null(m)) return wrong_member(m.key, "a number, or no such member");
    PROCTOR_TRY(const std::uint64_t n, count(m, 1));
    if (out_.limit)
      return wrong_member(m.key, "one limit of the output, not " + out_.limit_key + " too");
    out_.limit = n;
    out_.limit_key = m.key;
    out_.limit_at = m.value;
    return ok_status();
  }
  Status samples(const JsonMember& m) {
    constexpr std::uint64_t kMost = 16;
    if (is_null(m)) return ok_status();
    PROCTOR_TRY(const std::uint64_t n, count(m, 1));
    if (kMost < n) return wrong_member(m.key, "at most 16");
    out_.samples = std::max(out_.samples, n);
    return ok_status();
  }
  Status tier(const JsonMember& m) {
    if (is_null(m)) return ok_status();
    const auto word = text_.text(m.value);
    if (!word) return wrong_member(m.key, "a word");
    if (*word != "auto" && *word != "default" && *word != "standard" && *word != "standard_only")
      out_.tier = *word;
    return ok_status();
  }
  Status stream_options(const JsonMember& m) {
    if (is_null(m)) return wrong_member(m.key, "a mapping, or no such member");
    if (text_.kind(m.value) != '{') return wrong_member(m.key, "a mapping");
    out_.stream_options_at = m.value;
    PROCTOR_TRY(const Members members, text_.members(m.value));
    out_.stream_options_empty = members.empty();
    const JsonMember* usage = find_member(members, "include_usage");
    if (usage == nullptr) return ok_status();
    const auto said = text_.flag(usage->value);
    if (!said) return wrong_member("stream_options.include_usage", "true or false");
    out_.include_usage = *said;
    out_.include_usage_at = usage->value;
    return ok_status();
  }
  Status thinking(const JsonMember& m) {
    if (text_.kind(m.value) != '{') return ok_status();
    PROCTOR_TRY(const Members members, text_.members(m.value));
    const JsonMember* budget = find_member(members, "budget_tokens");
    if (budget == nullptr) return ok_status();
    PROCTOR_TRY(out_.thinking, count(*budget, 0));
    return ok_status();
  }

  Status tools(const JsonMember& m) {
    if (is_null(m)) return ok_status();
    if (text_.kind(m.value) != '[') return wrong_member(m.key, "a list");
    PROCTOR_TRY(const auto elements, text_.elements(m.value));
    out_.items += elements.size();
    out_.tool_bytes += m.value.size;
    parts_.cut(m.value, elements);
    if (m.key == "tools") out_.tools_at = m.value;
    for (const JsonSpan& e : elements) {
      out_.largest_tool = std::max<std::uint64_t>(out_.largest_tool, e.size);
      out_.item_at.push_back({e, {.tool_bytes = e.size}});
      PROCTOR_TRY(PeekedTool tool, parts_.read_tool(e));
      if (m.key == "tools") out_.tools.push_back(std::move(tool));
    }
    return ok_status();
  }

  // Each prompt of a list is answered, and billed, up to the limit of its own.  A flat list of
  // token ids is one prompt; a list of texts or of such lists is as many as it has.
  Status prompts(const JsonMember& m) {
    constexpr std::uint64_t kMost = 2'048;
    ++out_.items;
    if (is_null(m) || text_.kind(m.value) == '"') return ok_status();
    if (text_.kind(m.value) != '[')
      return wrong_member(m.key, "a text, a list of them, or token ids");
    PROCTOR_TRY(const auto elements, text_.elements(m.value));
    parts_.cut(m.value, elements);
    std::uint64_t ids = 0;
    for (const JsonSpan& e : elements) {
      const char kind = text_.kind(e);
      if (text_.count(e)) {
        ++ids;
      } else if (kind == '[') {
        PROCTOR_TRY(const auto tokens, text_.elements(e));
        for (const JsonSpan& token : tokens)
          if (!text_.count(token)) return wrong_member(m.key, "token ids in the lists of its list");
      } else if (kind != '"') {
        return wrong_member(m.key, "a text, a list of them, or token ids");
      }
    }
    if (0 < ids && ids < elements.size())
      return wrong_member(m.key, "token ids or prompts, not both");
    if (0 < ids || elements.empty()) return ok_status();
    if (kMost < elements.size()) return wrong_member(m.key, "at most 2048 prompts");
    out_.items += elements.size();
    prompts_ = elements.size();
    return ok_status();
  }

  Status reach(const JsonMember& m, std::string_view usual) {
    // Completions have a prompt that is what is asked.
    if (m.key == "prompt" && api_ == ModelApi::kCompletions) return prompts(m);
    if (is_null(m)) return ok_status();
    const std::string_view bytes = text_.bytes(m.value);
    const NotPassed* barred = barred_member(usual);
    if (barred != nullptr && bytes != "false" && bytes != "[]" && bytes != "\"\"")
      parts_.refuse(m.key, std::string(barred->what), std::string(barred->instead));
    if (m.key == "context_management" && bytes.find("_tool_") != std::string_view::npos)
      out_.hides = true;
    if (m.key == "context_management" && bytes.find("compact") != std::string_view::npos)
      parts_.refuse(m.key, "a compaction, which is a further paid call,",
                    "shorten the conversation");
    if (m.key == "instructions" && api_ == ModelApi::kResponses && text_.kind(m.value) != '"')
      parts_.refuse(m.key, "a list of items", "send instructions as a text");
    if (m.key == "modalities") return modalities(m);
    return ok_status();
  }

  Status modalities(const JsonMember& m) {
    if (text_.kind(m.value) != '[') return wrong_member(m.key, "a list");
    PROCTOR_TRY(const auto elements, text_.elements(m.value));
    for (const JsonSpan& e : elements)
      if (text_.text(e) != "text")
        parts_.refuse(m.key, "an answer that is no text", "ask for text");
    return ok_status();
  }

  ModelApi api_;
  const JsonText& text_;
  std::uint64_t prompts_ = 1;
  BodyPeek out_;
  BodyParts parts_;
};
}  // namespace

std::vector<JsonSpan> pieces_of(std::size_t body, const std::vector<BodyCut>& cuts) {
  constexpr std::size_t kEnough = 1'024;
  std::vector<JsonSpan> out;
  std::size_t from = 0;
  for (const BodyCut& cut : cuts) {
    if (cut.at <= from || body <= cut.at) continue;
    if (!cut.always && cut.at - from < kEnough) continue;
    out.push_back({from, cut.at - from});
    from = cut.at;
  }
  if (from < body) out.push_back({from, body - from});
  return out;
}

Result<BodyPeek> peek_body(ModelApi api, std::string_view body) {
  bool caches = false, for_hours = false;
  const auto on_key = [&](std::string_view key, std::size_t at) {
    if (key == "cache_control" || key == "prompt_cache_options") caches = true;
    // "5m" is minutes; whatever else it is, it may be hours.
    if ((key == "ttl" || key == "prompt_cache_retention") && !body.substr(at).starts_with("\"5m\""))
      for_hours = true;
  };
  PROCTOR_TRY(const JsonText text, JsonText::read(body, on_key));
  if (text.kind(text.root()) != '{') return Error{Errc::kInvalid, "expected a JSON object"};
  return Peeker(api, text).peek(caches, for_hours);
}
}  // namespace proctor
