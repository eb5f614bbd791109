#include "worker/gateway/cassette_match.h"

#include <algorithm>
#include <array>
#include <set>

#include "worker/gateway/json_spans.h"
#include "worker/gateway/splice.h"

namespace proctor {
namespace {

constexpr std::array<std::string_view, 8> kVolatile{
    "metadata",     "user",  "safety_identifier", "prompt_cache_key", "client_metadata",
    "service_tier", "store", "stream_options"};

// Without what is volatile, by key.
std::optional<std::vector<JsonMember>> members_of(const JsonText& text, JsonSpan object, bool top) {
  auto members = text.members(object);
  if (!members.ok()) return std::nullopt;
  std::erase_if(*members, [&](const JsonMember& m) {
    return m.key == "cache_control" ||
           (top && std::ranges::find(kVolatile, m.key) != kVolatile.end());
  });
  std::ranges::sort(*members, {}, &JsonMember::key);
  return std::move(members).value();
}

void write(const JsonText& text, JsonSpan span, bool top, std::string& out) {
  const char kind = text.kind(span);
  if (kind == '{') {
    const auto members = members_of(text, span, top);
    if (!members) {  // a key twice: nothing but itself is like it
      out += text.bytes(span);
      return;
    }
    out += '{';
    for (const JsonMember& m : *members) {
      if (out.back() != '{') out += ',';
      out += json_quoted(m.key);
      out += ':';
      write(text, m.value, false, out);
    }
    out += '}';
  } else if (kind == '[') {
    const auto elements = text.elements(span);
    if (!elements.ok()) {
      out += text.bytes(span);
      return;
    }
    out += '[';
    for (const JsonSpan& e : *elements) {
      if (out.back() != '[') out += ',';
      write(text, e, false, out);
    }
    out += ']';
  } else if (const auto said = kind == '"' ? text.text(span) : std::nullopt) {
    out += json_quoted(*said);
  } else {
    out += text.bytes(span);
  }
}

std::string written(const JsonText& text, JsonSpan span, bool top) {
  std::string out;
  write(text, span, top, out);
  return out;
}

constexpr std::size_t kBefore = 40, kShown = 200;

std::string shown(const std::string& text, std::size_t from) {
  std::string out = from == 0 ? "" : "...";
  out += text.substr(from, kShown);
  if (from + kShown < text.size()) out += "...";
  return out;
}

Difference difference(std::string pointer, const std::string& ours, const std::string& theirs) {
  const std::size_t shorter = std::min(ours.size(), theirs.size());
  const auto end = ours.begin() + static_cast<std::ptrdiff_t>(shorter);
  const auto differs = std::mismatch(ours.begin(), end, theirs.begin());
  const auto at = static_cast<std::size_t>(differs.first - ours.begin());
  const std::size_t from = at < kBefore ? 0 : at - kBefore;
  return {std::move(pointer), shown(ours, from), shown(theirs, from)};
}

std::string escaped(std::string_view key) {
  std::string out = "/";
  for (const char c : key) out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return out;
}

class Walk {
 public:
  Walk(const JsonText& ours, const JsonText& theirs) : ours_(ours), theirs_(theirs) {}

  std::optional<Difference> at(const std::string& pointer, JsonSpan a, JsonSpan b, bool top) {
    const std::string x = written(ours_, a, top), y = written(theirs_, b, top);
    if (x == y) return std::nullopt;
    if (ours_.kind(a) == '{' && theirs_.kind(b) == '{') {
      if (auto found = in_objects(pointer, a, b, top)) return found;
    } else if (ours_.kind(a) == '[' && theirs_.kind(b) == '[') {
      if (auto found = in_lists(pointer, a, b)) return found;
    }
    return difference(pointer, x, y);
  }

 private:
  std::optional<Difference> in_objects(const std::string& pointer, JsonSpan a, JsonSpan b,
                                       bool top) {
    const auto x = members_of(ours_, a, top), y = members_of(theirs_, b, top);
    if (!x || !y) return std::nullopt;
    std::set<std::string> keys;
    for (const auto* members : {&*x, &*y})
      for (const JsonMember& m : *members) keys.insert(m.key);
    for (const std::string& key : keys) {
      const JsonMember *p = find_member(*x, key), *q = find_member(*y, key);
      const std::string where = pointer + escaped(key);
      if (p == nullptr)
        return Difference{where, "(absent)", shown(written(theirs_, q->value, false), 0)};
      if (q == nullptr)
        return Difference{where, shown(written(ours_, p->value, false), 0), "(absent)"};
      if (auto found = at(where, p->value, q->value, false)) return found;
    }
    return std::nullopt;
  }
  std::optional<Difference> in_lists(const std::string& pointer, JsonSpan a, JsonSpan b) {
    const auto x = ours_.elements(a), y = theirs_.elements(b);
    if (!x.ok() || !y.ok()) return std::nullopt;
    for (std::size_t i = 0; i < std::max(x->size(), y->size()); ++i) {
      const std::string where = pointer + "/" + std::to_string(i);
      if (x->size() <= i)
        return Difference{where, "(absent)", shown(written(theirs_, (*y)[i], false), 0)};
      if (y->size() <= i)
        return Difference{where, shown(written(ours_, (*x)[i], false), 0), "(absent)"};
      if (auto found = at(where, (*x)[i], (*y)[i], false)) return found;
    }
    return std::nullopt;
  }
  const JsonText& ours_;
  const JsonText& theirs_;
};

}  // namespace

std::string canonical_request(std::string_view body) {
  const auto text = JsonText::read(body);
  if (!text.ok() || text->kind(text->root()) != '{') return "";
  return written(*text, text->root(), true);
}

std::optional<Difference> first_difference(std::string_view ours, std::string_view theirs) {
  const auto a = JsonText::read(ours), b = JsonText::read(theirs);
  if (!a.ok() || !b.ok()) {
    if (ours == theirs) return std::nullopt;
    return difference("", std::string(ours), std::string(theirs));
  }
  return Walk(*a, *b).at("", a->root(), b->root(), true);
}

}  // namespace proctor
