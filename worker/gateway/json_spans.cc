#include "worker/gateway/json_spans.h"

#include <algorithm>

#include "common/base/json.h"
#include "common/base/json_text.h"
#include "common/base/parse.h"
#include "common/base/text.h"

namespace proctor {
namespace {
Error broken(std::size_t at, std::string_view what) {
  return Error{Errc::kInvalid, "byte " + std::to_string(at) + ": " + std::string(what)};
}

// Half a surrogate pair is no text of ours, but the provider's business.
constexpr JsonRules kRules{.depth_max = JsonText::kDepthMax, .lone_surrogates = true};

// All of the value whose first token was read.
JsonSpan whole(JsonLexer& in) {
  const std::size_t from = in.at();
  in.skip();
  return {from, in.end() - from};
}
}  // namespace

Result<JsonText> JsonText::read(std::string_view text, const OnKey& on_key) {
  if (!is_utf8(text)) return Error{Errc::kInvalid, "not UTF-8"};
  JsonLexer in(text, kRules);
  std::optional<std::string> key;
  JsonToken token = in.next();
  const std::size_t from = in.at();
  for (; token != JsonToken::kEnd; token = in.next()) {
    if (token == JsonToken::kFault) return broken(in.at(), in.fault().what);
    if (key) on_key(*std::exchange(key, std::nullopt), in.at());
    if (token == JsonToken::kKey && on_key) key = in.text();
  }
  return JsonText(text, {from, in.end() - from});
}

Result<std::vector<JsonMember>> JsonText::members(JsonSpan object) const {
  std::vector<JsonMember> out;
  JsonLexer in(text_, kRules, object.at);
  in.next();
  while (in.next() == JsonToken::kKey) {
    const auto key = text({in.at(), in.end() - in.at()});
    if (!key) return broken(in.at(), "a key that is no text");
    const std::size_t begin = in.at();
    in.next();
    out.push_back({*key, begin, whole(in)});
    if (kMembersMax < out.size()) return broken(object.at, "an object of too many members");
  }
  std::vector<std::string_view> keys;
  for (const JsonMember& m : out) keys.push_back(m.key);
  std::ranges::sort(keys);
  const auto twice = std::ranges::adjacent_find(keys);
  if (twice != keys.end())
    return Error{Errc::kInvalid, "\"" + printable(*twice, 60) + "\" is there twice"};
  return out;
}

Result<std::vector<JsonSpan>> JsonText::elements(JsonSpan array) const {
  std::vector<JsonSpan> out;
  JsonLexer in(text_, kRules, array.at);
  in.next();
  while (in.next() != JsonToken::kArrayEnd) {
    out.push_back(whole(in));
    if (kElementsMax < out.size()) return broken(array.at, "a list of too many elements");
  }
  return out;
}

std::optional<std::string> JsonText::text(JsonSpan span) const {
  JsonLexer in(bytes(span));
  return in.next() == JsonToken::kString ? std::optional(in.text()) : std::nullopt;
}

std::optional<std::uint64_t> JsonText::count(JsonSpan span) const {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 53U;
  const auto out = whole_number<std::uint64_t>(bytes(span));
  return out <= kMost ? out : std::nullopt;
}

std::optional<bool> JsonText::flag(JsonSpan span) const {
  if (bytes(span) == "true") return true;
  if (bytes(span) == "false") return false;
  return std::nullopt;
}

const JsonMember* find_member(const std::vector<JsonMember>& members, std::string_view key) {
  const auto it = std::ranges::find(members, key, &JsonMember::key);
  return it == members.end() ? nullptr : &*it;
}

JsonAt JsonAt::operator[](std::string_view path) const {
  JsonAt out = *this;
  while (!path.empty() && out) {
    const std::string_view name = take_until(path, '.');
    const JsonSpan in = *std::exchange(out.span_, std::nullopt);
    if (text_->kind(in) == '[' && name == "0") {
      const auto elements = text_->elements(in);
      if (elements.ok() && !elements->empty()) out.span_ = elements->front();
    } else if (text_->kind(in) == '{' && name != "0") {
      const auto members = text_->members(in);
      const JsonMember* m = members.ok() ? find_member(*members, name) : nullptr;
      if (m != nullptr) out.span_ = m->value;
    }
  }
  return out;
}

std::vector<JsonAt> JsonAt::each() const {
  std::vector<JsonAt> out;
  if (kind() != '[') return out;
  if (const auto elements = text_->elements(*span_); elements.ok())
    for (const JsonSpan& e : *elements) out.push_back({text_, e});
  return out;
}

std::string spliced(std::string_view text, std::vector<Splice> edits) {
  std::ranges::stable_sort(edits, {}, [](const Splice& s) { return s.instead.at; });
  std::string out;
  std::size_t at = 0;
  for (const Splice& s : edits) {
    PROCTOR_ASSERT(at <= s.instead.at && s.instead.at + s.instead.size <= text.size());
    out += text.substr(at, s.instead.at - at);
    out += s.bytes;
    at = s.instead.at + s.instead.size;
  }
  out += text.substr(at);
  return out;
}

Splice further_member(JsonSpan object, bool has_members, std::string_view key,
                      std::string_view value) {
  std::string bytes = has_members ? "," : "";
  bytes += json_quoted(key);
  bytes += ':';
  bytes += value;
  return {{object.at + object.size - 1, 0}, std::move(bytes), std::string(key), ""};
}

std::string json_quoted(std::string_view text) {
  return Json(std::string(text)).dump(-1, Json::Utf8::kReplace);
}
}  // namespace proctor
