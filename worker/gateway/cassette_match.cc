#include "worker/gateway/cassette_match.h"

#include <algorithm>
#include <array>
#include <set>

#include "worker/gateway/cassette_rules.h"
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

// The text of a list that is one part of text and nothing else: clients write it either way.
std::optional<std::string> lone_text(const JsonText& text, const std::vector<JsonSpan>& elements) {
  if (elements.size() != 1 || text.kind(elements[0]) != '{') return std::nullopt;
  const auto members = members_of(text, elements[0], false);
  if (!members || members->size() != 2 || (*members)[0].key != "text" ||
      (*members)[1].key != "type" || text.kind((*members)[0].value) != '"')
    return std::nullopt;
  const auto type = text.text((*members)[1].value);
  if (type != "text" && type != "input_text" && type != "output_text") return std::nullopt;
  return text.text((*members)[0].value);
}

std::string by_rules(const std::string& said);

void write(const JsonText& text, JsonSpan span, bool top, RequestForm form, std::string& out) {
  const bool ruled = form == RequestForm::kByRules;
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
      write(text, m.value, false, form, out);
    }
    out += '}';
  } else if (kind == '[') {
    const auto elements = text.elements(span);
    if (!elements.ok()) {
      out += text.bytes(span);
      return;
    }
    if (const auto lone = ruled ? lone_text(text, *elements) : std::nullopt) {
      out += json_quoted(by_rules(*lone));
      return;
    }
    out += '[';
    for (const JsonSpan& e : *elements) {
      if (out.back() != '[') out += ',';
      write(text, e, false, form, out);
    }
    out += ']';
  } else if (const auto said = kind == '"' ? text.text(span) : std::nullopt) {
    out += json_quoted(ruled ? by_rules(*said) : *said);
  } else {
    out += text.bytes(span);
  }
}

std::string written(const JsonText& text, JsonSpan span, bool top, RequestForm form) {
  std::string out;
  write(text, span, top, form, out);
  return out;
}

// JSON in a text (arguments of tools, what they print) is read as JSON: in it the rules would see
// the letters of its escapes before a word.
std::string by_rules(const std::string& said) {
  const auto inner = JsonText::read(said);
  if (!inner.ok() || (inner->kind(inner->root()) != '{' && inner->kind(inner->root()) != '['))
    return by_cassette_rules(said);
  return written(*inner, inner->root(), false, RequestForm::kByRules);
}

constexpr std::size_t kBefore = 40, kShown = 200;

std::string shown(const std::string& text, std::size_t from) {
  std::string out = from == 0 ? "" : "...";
  out += text.substr(from, kShown);
  if (from + kShown < text.size()) out += "...";
  return out;
}

RequestDifference difference(std::string pointer, const std::string& ours,
                             const std::string& theirs) {
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
  Walk(const JsonText& ours, const JsonText& theirs, RequestForm form)
      : ours_(ours), theirs_(theirs), form_(form) {}

  std::optional<RequestDifference> at(const std::string& pointer, JsonSpan a, JsonSpan b,
                                      bool top) {
    const std::string x = written(ours_, a, top, form_), y = written(theirs_, b, top, form_);
    if (x == y) return std::nullopt;
    if (ours_.kind(a) == '{' && theirs_.kind(b) == '{') {
      if (auto found = in_objects(pointer, a, b, top)) return found;
    } else if (ours_.kind(a) == '[' && theirs_.kind(b) == '[') {
      if (auto found = in_lists(pointer, a, b)) return found;
    }
    return difference(pointer, x, y);
  }

 private:
  std::optional<RequestDifference> in_objects(const std::string& pointer, JsonSpan a, JsonSpan b,
                                              bool top) {
    const auto x = members_of(ours_, a, top), y = members_of(theirs_, b, top);
    if (!x || !y) return std::nullopt;
    std::set<std::string> keys;
    for (const auto* members : {&*x, &*y})
      for (const JsonMember& m : *members) keys.insert(m.key);
    for (const std::string& key : keys) {
      const JsonMember *p = find_member(*x, key), *q = find_member(*y, key);
      const std::string where = pointer + escaped(key);
      if (p == nullptr) return RequestDifference{where, "(absent)", alone(theirs_, q->value)};
      if (q == nullptr) return RequestDifference{where, alone(ours_, p->value), "(absent)"};
      if (auto found = at(where, p->value, q->value, false)) return found;
    }
    return std::nullopt;
  }
  std::optional<RequestDifference> in_lists(const std::string& pointer, JsonSpan a, JsonSpan b) {
    const auto x = ours_.elements(a), y = theirs_.elements(b);
    if (!x.ok() || !y.ok()) return std::nullopt;
    for (std::size_t i = 0; i < std::max(x->size(), y->size()); ++i) {
      const std::string where = pointer + "/" + std::to_string(i);
      if (x->size() <= i) return RequestDifference{where, "(absent)", alone(theirs_, (*y)[i])};
      if (y->size() <= i) return RequestDifference{where, alone(ours_, (*x)[i]), "(absent)"};
      if (auto found = at(where, (*x)[i], (*y)[i], false)) return found;
    }
    return std::nullopt;
  }
  std::string alone(const JsonText& text, JsonSpan span) const {
    return shown(written(text, span, false, form_), 0);
  }
  const JsonText& ours_;
  const JsonText& theirs_;
  RequestForm form_;
};

}  // namespace

std::string canonical_request(std::string_view body, RequestForm form) {
  const auto text = JsonText::read(body);
  if (!text.ok() || text->kind(text->root()) != '{') return "";
  return written(*text, text->root(), true, form);
}

std::optional<RequestDifference> first_difference(std::string_view ours, std::string_view theirs,
                                                  RequestForm form) {
  const auto a = JsonText::read(ours), b = JsonText::read(theirs);
  if (!a.ok() || !b.ok()) {
    if (ours == theirs) return std::nullopt;
    return difference("", std::string(ours), std::string(theirs));
  }
  return Walk(*a, *b, form).at("", a->root(), b->root(), true);
}

}  // namespace proctor
