#include "worker/gateway/cassette.h"

#include <re2/re2.h>
#include <algorithm>
#include <set>

#include "common/base/digest.h"
#include "common/base/text.h"
#include "worker/gateway/json_spans.h"

namespace proctor {
namespace {
// One expression, so that a text is read once whatever their number: group N is rule N - 1.
std::string all_rules() {
  std::string out;
  for (const CassetteRule& rule : kCassetteRules) {
    if (!out.empty()) out += '|';
    out.append("(").append(rule.pattern).append(")");
  }
  return out;
}
}  // namespace

std::string by_cassette_rules(std::string_view text) {
  static const re2::RE2 rules(all_rules());
  std::array<re2::StringPiece, 1 + kCassetteRules.size()> found;
  const re2::StringPiece all(text.data(), text.size());
  std::string out;
  std::size_t at = 0;
  while (rules.Match(all, at, all.size(), re2::RE2::UNANCHORED, found.data(),
                     static_cast<int>(found.size()))) {
    const auto begin = static_cast<std::size_t>(found[0].data() - all.data());
    std::size_t rule = 0;
    while (found.at(1 + rule).data() == nullptr) ++rule;
    const std::string_view with = kCassetteRules.at(rule).with;
    out += text.substr(at, begin - at);
    out += with.empty() ? text.substr(begin, found[0].size()) : with;
    at = begin + found[0].size();
  }
  out += text.substr(at);
  return out;
}

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

CassettePlayer::CassettePlayer(std::vector<CassetteCall> calls, const std::string& run,
                               CassetteMatch match)
    : match_(match) {
  const bool own = std::ranges::any_of(calls, [&](const CassetteCall& c) { return c.run == run; });
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (own && calls[i].run != run) continue;
    std::string key = key_of(calls[i].request());
    entries_.push_back({std::move(calls[i]), i + 1, std::move(key), "", false});
  }
}

std::string CassettePlayer::key_of(std::string_view body) const {
  switch (match_) {
    case CassetteMatch::kExact:
      return sha256(body).hex();
    case CassetteMatch::kCanonical:
      return sha256(canonical_request(body)).hex();
    case CassetteMatch::kSequence:
      return "";
  }
  return "";
}

// The rules are for a request that is like no recorded one without them: a recording that was
// played before there were rules is played as it was.
CassettePlayer::Entry* CassettePlayer::find_by_rules(std::string_view route,
                                                     const std::string& form) {
  for (Entry& e : entries_) {
    if (e.used || e.call.route != route) continue;
    if (e.by_rules.empty()) e.by_rules = canonical_request(e.call.request(), RequestForm::kByRules);
    if (e.by_rules == form) return &e;
  }
  return nullptr;
}

std::variant<CassettePlayer::Hit, CassettePlayer::Miss> CassettePlayer::take(ModelApi api,
                                                                             std::string_view body,
                                                                             const Redact& redact) {
  const std::string key = key_of(body), route(word_of(api));
  const std::lock_guard lock(mutex_);
  const auto same = std::ranges::find_if(
      entries_, [&](const Entry& e) { return !e.used && e.call.route == route && e.key == key; });
  Entry* found = same == entries_.end() ? nullptr : &*same;
  std::string form;
  if (found == nullptr && match_ == CassetteMatch::kCanonical) {
    form = canonical_request(body, RequestForm::kByRules);
    if (!form.empty()) found = find_by_rules(route, form);
  }
  if (found == nullptr) return miss(route, body, form, redact);
  found->used = true;
  found->by_rules.clear();
  return Hit{found->number, &found->call};
}

CassettePlayer::Miss CassettePlayer::miss(std::string_view route, std::string_view body,
                                          const std::string& form, const Redact& redact) const {
  const Entry* nearest = nullptr;
  std::ptrdiff_t most = -1;
  for (const Entry& e : entries_) {
    if (e.used || e.call.route != route) continue;
    const auto alike = std::ranges::mismatch(form, e.by_rules).in1 - form.begin();
    if (alike <= most) continue;
    most = alike;
    nearest = &e;
  }
  Miss miss;
  if (nearest == nullptr) {
    miss.text = "the recording has no further call of " + std::string(route);
    return miss;
  }
  miss.expected = nearest->number;
  const auto shown = [&](std::string_view text) {
    return redact ? redact(text) : std::string(text);
  };
  const auto found = first_difference(
      shown(body), shown(nearest->call.request()),
      match_ == CassetteMatch::kCanonical ? RequestForm::kByRules : RequestForm::kPlain);
  if (found) {
    miss.pointer = found->pointer;
    miss.ours = printable(found->ours, 400);
    miss.theirs = printable(found->theirs, 400);
  } else {
    miss.ours = miss.theirs = "the same, but for spelling and what is left out of a comparison";
  }
  miss.text = "call " + std::to_string(miss.expected) + " of the recording: " +
              (miss.pointer.empty() ? "the body" : printable(miss.pointer, 200)) +
              " differs: " + miss.ours + " here, " + miss.theirs + " recorded";
  return miss;
}

std::size_t CassettePlayer::unused() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::ranges::count_if(entries_, [](const Entry& e) { return !e.used; }));
}
}  // namespace proctor
