#include "worker/gateway/body_parts.h"

#include <algorithm>
#include <array>
#include <utility>

namespace proctor {

Error wrong_member(std::string_view member, std::string_view expected) {
  return Error{Errc::kInvalid, std::string(member) + ": expected " + std::string(expected)};
}

namespace {

// `name` is a type, or a member of a chat message.
bool is_thought(std::string_view name) {
  return name.find("thinking") != std::string_view::npos || name.starts_with("reasoning");
}

}  // namespace

// ---- what the request is made of: each part of a type that is known (body_shapes.h)
Status BodyParts::read(const JsonMember& m) {
  if (m.key == "input" && api_ == ModelApi::kEmbeddings) return inputs(m);
  const bool typed = m.key == "input" && api_ == ModelApi::kResponses;
  const bool parts = m.key == "system" && is_messages();
  const char kind = text_.kind(m.value);
  if (kind == '"') ++out_.items;
  if (kind == '"') out_.item_at.push_back({m.value});
  if (is_null(m) || (kind == '"' && m.key != "messages")) return ok_status();
  if (kind != '[') {
    refuse(m.key, "what is neither a text nor a list", "send a list");
    return ok_status();
  }
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

// Texts or token ids; pictures have no price there.
Status BodyParts::inputs(const JsonMember& m) {
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

Result<std::vector<JsonSpan>> BodyParts::listed(JsonSpan list, const std::string& where) {
  PROCTOR_TRY(auto elements, text_.elements(list));
  out_.items += elements.size();
  if (JsonText::kElementsMax < out_.items) return wrong_member(where, "fewer parts");
  return elements;
}

bool BodyParts::is_messages() const {
  return api_ == ModelApi::kMessages || api_ == ModelApi::kCountTokens;
}
bool BodyParts::has(const Members& members, std::string_view key) const {
  const JsonMember* m = find_member(members, key);
  return m != nullptr && !is_null(*m);
}
bool BodyParts::has_text(const Members& members, std::string_view key) const {
  const JsonMember* m = find_member(members, key);
  return m != nullptr && text_.kind(m->value) == '"' && 2 < m->value.size;
}
bool BodyParts::has_some(const Members& members, std::string_view key) const {
  const JsonMember* m = find_member(members, key);
  if (m == nullptr || text_.kind(m->value) != '[') return false;
  const auto elements = text_.elements(m->value);
  return elements.ok() && !elements->empty();
}

// False: it is refused.
bool BodyParts::lies_inside(const Members& members, const std::string& where, bool picture) {
  for (const JsonMember& m : members) {
    const bool of_picture = m.key == "image_url" || m.key == "source";
    if (is_null(m) || (of_picture ? picture : !is_outside(m.key))) continue;
    refuse(where, "\"" + m.key + "\", which is not in the request itself", "send text");
    return false;
  }
  return true;
}

Status BodyParts::message(JsonSpan e, const std::string& where) {
  if (text_.kind(e) != '{') {
    refuse(where, "a message that is no object", "send objects with role and content");
    return ok_status();
  }
  PROCTOR_TRY(const Members members, text_.members(e));
  result(members);
  for (const JsonMember& m : members)
    if (is_thought(m.key) && !is_null(m)) ++out_.thoughts;
  if (!lies_inside(members, where, false)) return ok_status();
  return content(find_member(members, "content"), where + ".content", kDepth);
}

Status BodyParts::content(const JsonMember* m, const std::string& where, std::size_t depth) {
  if (m == nullptr || is_null(*m) || text_.kind(m->value) == '"') return ok_status();
  if (depth == 0) return wrong_member(where, "parts nested less deep");
  if (text_.kind(m->value) != '[') {
    refuse(where, "what is neither a text nor a list of parts", "send a text or a list");
    return ok_status();
  }
  PROCTOR_TRY(const auto elements, listed(m->value, where));
  for (const JsonSpan& e : elements) PROCTOR_CHECK_OK(part(e, where, depth));
  return ok_status();
}

Status BodyParts::part(JsonSpan e, const std::string& where, std::size_t depth) {
  return shape(e, where, Level::kPart, depth);
}
// Of the Responses API.  A message may go without its type; anything else without one is taken
// for a reference to stored content of any size.
Status BodyParts::item(JsonSpan e, const std::string& where) {
  if (text_.kind(e) == '{') {
    PROCTOR_TRY(const Members members, text_.members(e));
    if (find_member(members, "type") == nullptr && has(members, "role") && has(members, "content"))
      return message(e, where);
  }
  return shape(e, where, Level::kItem, kDepth);
}

Status BodyParts::shape(JsonSpan e, const std::string& where, Level level, std::size_t depth) {
  if (text_.kind(e) != '{') {
    refuse(where, "a part that is no object", "send objects with a type");
    return ok_status();
  }
  PROCTOR_TRY(const Members members, text_.members(e));
  const JsonMember* type = find_member(members, "type");
  const std::string word = type == nullptr ? "" : text_.text(type->value).value_or("");
  const NotPassed* refused = refused_type(word);
  if (word.empty()) {
    refuse(where, "a part without a type", "say its type");
    return ok_status();
  }
  if (refused != nullptr) {
    refuse(where, "a part of type " + word + ", " + std::string(refused->what) + ",",
           std::string(refused->instead));
    return ok_status();
  }
  result(members);
  if (is_thought(word)) ++out_.thoughts;
  const ShapeRule* rule = shape_rule(api_, level, word);
  if (rule == nullptr) return unknown(e, members, where, word, depth);
  if (!rule->needs.empty() && !has(members, rule->needs)) {
    refuse(where,
           "a part of type " + word + " without \"" + std::string(rule->needs) +
               "\", by its name alone,",
           std::string(kSendWhole));
    return ok_status();
  }
  if (rule->inside == Inside::kPicture) return picture(members, where);
  if (!lies_inside(members, where, false)) return ok_status();
  return inside(*rule, members, where, depth);
}

// Its bytes bound what it costs if it says something of its own and names nothing that lies
// elsewhere, at any depth.  What it has of parts and tools is judged as everywhere.
Status BodyParts::unknown(JsonSpan e, const Members& members, const std::string& where,
                          const std::string& word, std::size_t depth) {
  constexpr std::array<std::string_view, 8> kNames{"type", "id",     "status", "role",
                                                   "name", "object", "phase",  "cache_control"};
  std::vector<JsonSpan> judged;
  bool says = false;
  for (const JsonMember& m : members) {
    const bool names = std::ranges::find(kNames, m.key) != kNames.end() || m.key.ends_with("_id") ||
                       m.key.ends_with("_ids");
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
Status BodyParts::found(JsonSpan list, const std::string& where) {
  PROCTOR_TRY(const auto elements, listed(list, where));
  out_.tool_bytes += list.size;
  PeekedTools& found = out_.found_tools.emplace_back(PeekedTools{list, {}});
  for (const JsonSpan& e : elements) {
    PROCTOR_TRY(PeekedTool tool, read_tool(e));
    found.tools.push_back(std::move(tool));
  }
  return ok_status();
}

Status BodyParts::inside(const ShapeRule& rule, const Members& members, const std::string& where,
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
          (has(members, "id") || (!has_some(members, "summary") && !has_some(members, "content"))))
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
Status BodyParts::picture(const Members& members, const std::string& where) {
  if (!lies_inside(members, where, true)) return ok_status();
  const auto data = picture_data(members);
  if (!data) {
    refuse(where, "an image that is not in the request itself", "send its data");
    return ok_status();
  }
  ++out_.images;
  out_.image_bytes += data->size;
  return ok_status();
}

// OpenAI: image_url: {url: "data:..."} or "data:..."; Anthropic: source: {type: base64}.
std::optional<JsonSpan> BodyParts::picture_data(const Members& members) const {
  constexpr std::string_view kData = "data:";
  const JsonMember* at = find_member(members, is_messages() ? "source" : "image_url");
  // Not both: which one is read is the provider's choice.
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

Result<PeekedTool> BodyParts::read_tool(JsonSpan e) const {
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

Status BodyParts::read_inner(const JsonMember* list, PeekedTool& tool) const {
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

void BodyParts::cut(JsonSpan list, const std::vector<JsonSpan>& elements) {
  out_.cuts.push_back({list.at, true});
  for (const JsonSpan& e : elements) out_.cuts.push_back({e.at + e.size, false});
  out_.cuts.push_back({list.at + list.size, true});
}

// A message of the role "tool", an item "..._output", a block "tool_result".
void BodyParts::result(const Members& members) {
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

void BodyParts::refuse(const std::string& member, std::string how, std::string instead) {
  if (!out_.reaches.empty()) return;
  out_.reaches = member;
  out_.reaches_how = std::move(how);
  out_.reaches_instead = std::move(instead);
}

}  // namespace proctor
