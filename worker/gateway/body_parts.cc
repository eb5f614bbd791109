#include "worker/gateway/body_parts.h"

#include <utility>

namespace proctor {

Error wrong_member(std::string_view member, std::string_view expected) {
  return Error{Errc::kInvalid, std::string(member) + ": expected " + std::string(expected)};
}

// ---- what the request is made of: each part of a type that is known (body_shapes.h)
Status BodyParts::read(const JsonMember& m) {
  if (m.key == "input" && api_ == ModelApi::kEmbeddings) return inputs(m);
  const bool typed = m.key == "input" && api_ == ModelApi::kResponses;
  const bool parts = m.key == "system" && is_messages();
  const char kind = text_.kind(m.value);
  if (kind == '"') ++out_.items;
  if (is_null(m) || (kind == '"' && m.key != "messages")) return ok_status();
  if (kind != '[') {
    refuse(m.key, "what is neither a text nor a list", "send a list");
    return ok_status();
  }
  PROCTOR_TRY(const auto elements, listed(m.value, m.key));
  cut(m.value, elements);
  for (const JsonSpan& e : elements)
    PROCTOR_CHECK_OK(typed ? item(e, m.key) : parts ? part(e, m.key, kDepth) : message(e, m.key));
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
  const auto known = [&] { return "use one of " + shape_types(api_, level); };
  if (text_.kind(e) != '{') {
    refuse(where, "a part that is no object", known());
    return ok_status();
  }
  PROCTOR_TRY(const Members members, text_.members(e));
  const JsonMember* type = find_member(members, "type");
  const std::string word = type == nullptr ? "" : text_.text(type->value).value_or("");
  const ShapeRule* rule = shape_rule(api_, level, word);
  if (rule == nullptr) {
    refuse(where, word.empty() ? "a part without a type" : "a part of type " + word, known());
    return ok_status();
  }
  result(members);
  if (!rule->needs.empty() && !has(members, rule->needs)) {
    refuse(where,
           "a part of type " + word + " without \"" + std::string(rule->needs) +
               "\", by its name alone,",
           "send it whole");
    return ok_status();
  }
  if (rule->inside == Inside::kPicture) return picture(members, where);
  if (!lies_inside(members, where, false)) return ok_status();
  return inside(*rule, members, where, depth);
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
      PROCTOR_TRY(const auto elements, listed(list.value, where));
      out_.tool_bytes += list.value.size;
      for (const JsonSpan& e : elements) {
        PROCTOR_TRY(PeekedTool tool, read_tool(e));
        out_.found_tools.push_back(std::move(tool));
      }
      return ok_status();
    }
    case Inside::kReasoning:
      if (!has_text(members, "encrypted_content") &&
          (has(members, "id") || (!has_some(members, "summary") && !has_some(members, "content"))))
        refuse(where, "reasoning that the provider keeps",
               "ask for it (include: reasoning.encrypted_content) and send it, or leave it out");
      return ok_status();
    case Inside::kReference:
      ++references_;
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
  PROCTOR_TRY(tool.inner, types_in(find_member(members, "tools")));
  return tool;
}

Result<std::vector<std::string>> BodyParts::types_in(const JsonMember* list) const {
  std::vector<std::string> out;
  if (list == nullptr || text_.kind(list->value) != '[') return out;
  PROCTOR_TRY(const auto elements, text_.elements(list->value));
  for (const JsonSpan& e : elements) {
    out.emplace_back();
    if (text_.kind(e) != '{') continue;
    PROCTOR_TRY(const Members members, text_.members(e));
    if (find_member(members, "tools") != nullptr) out.back() = "a namespace in a namespace";
    if (const JsonMember* type = find_member(members, "type"))
      out.back() = text_.text(type->value).value_or("");
  }
  return out;
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
