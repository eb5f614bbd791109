#include "common/contract/fields.h"

#include <algorithm>
#include <array>
#include <set>

#include "common/base/parse.h"
#include "common/base/text.h"
#include "common/contract/rules.h"

namespace proctor {
namespace {
constexpr std::string_view kDurationHint = "a duration such as 30m, 45s, 1h30m or 1500ms";
constexpr std::string_view kSizeHint = "a size such as 512MiB or 2GiB";

bool take_quantity(std::string_view& rest, std::uint64_t& out) {
  return take_number(rest, out) && out <= kQuantityMax;
}

struct Unit64 {
  std::string_view name;
  std::uint64_t value;
};
constexpr std::array<Unit64, 4> kTimes{{{"h", 3'600'000}, {"m", 60'000}, {"s", 1000}, {"ms", 1}}};
constexpr std::array<Unit64, 9> kSizes{{{"TiB", std::uint64_t{1} << 40},
                                        {"GiB", std::uint64_t{1} << 30},
                                        {"MiB", std::uint64_t{1} << 20},
                                        {"KiB", std::uint64_t{1} << 10},
                                        {"TB", 1'000'000'000'000},
                                        {"GB", 1'000'000'000},
                                        {"MB", 1'000'000},
                                        {"KB", 1000},
                                        {"B", 1}}};

Error expected(std::string_view what) {
  return Error{Errc::kInvalid, std::string(what)};
}
}  // namespace

Result<std::uint64_t> parse_count(std::string_view text) {
  std::uint64_t out = 0;
  if (!take_quantity(text, out) || !text.empty())
    return expected("a whole number of at most " + std::to_string(kQuantityMax));
  return out;
}

Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  constexpr std::uint64_t kMost = std::uint64_t{366} * 24 * 3'600'000;
  std::uint64_t total = 0;
  std::size_t next = 0;  // units may only become smaller
  do {
    std::uint64_t n = 0;
    if (!take_quantity(text, n)) return expected(kDurationHint);
    std::size_t letters = 0;
    while (letters < text.size() && !is_digit(text[letters])) ++letters;
    const std::string_view unit = text.substr(0, letters);
    std::size_t i = next;
    while (i < kTimes.size() && kTimes[i].name != unit) ++i;
    if (i == kTimes.size()) return expected(kDurationHint);
    if (kMost / kTimes[i].value < n) return expected("a duration of at most 366 days");
    total += n * kTimes[i].value;
    next = i + 1;
    text.remove_prefix(letters);
  } while (!text.empty());
  if (kMost < total) return expected("a duration of at most 366 days");
  return std::chrono::milliseconds(static_cast<std::int64_t>(total));
}

Result<std::uint64_t> parse_size(std::string_view text) {
  std::uint64_t n = 0;
  if (!take_quantity(text, n)) return expected(kSizeHint);
  for (const Unit64& unit : kSizes) {
    if (unit.name != text) continue;
    if (kQuantityMax / unit.value < n) return expected("a size below 8 PiB");
    return n * unit.value;
  }
  return expected(kSizeHint);
}

Result<std::uint64_t> parse_decimal(std::string_view text, unsigned digits,
                                    std::uint64_t scaled_max) {
  PROCTOR_ASSERT(digits <= 12);
  const Error wrong = expected("a non-negative decimal with at most " + std::to_string(digits) +
                               " digits after the point");
  const std::size_t dot = text.find('.');
  const std::string_view fraction =
      dot == std::string_view::npos ? std::string_view{} : text.substr(dot + 1);
  if (dot == 0 || text.empty() || (dot != std::string_view::npos && fraction.empty())) return wrong;
  if (digits < fraction.size()) return wrong;
  std::uint64_t out = 0;
  const auto append = [&](char c) {
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (scaled_max / 10 < out) return false;
    out = out * 10 + digit;  // at most scaled_max + 9: no overflow, callers stay below 2^63
    return out <= scaled_max;
  };
  const Error too_large = expected("at most " + format_decimal(scaled_max, digits));
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i == dot) continue;
    if (!is_digit(text[i])) return wrong;
    if (!append(text[i])) return too_large;
  }
  for (std::size_t i = fraction.size(); i < digits; ++i)
    if (!append('0')) return too_large;
  return out;
}

std::string format_duration(std::chrono::milliseconds duration) {
  const auto ms = static_cast<std::uint64_t>(duration.count());
  if (ms == 0) return "0s";
  for (const Unit64& unit : kTimes)
    if (ms % unit.value == 0) return std::to_string(ms / unit.value) + std::string(unit.name);
  return std::to_string(ms) + "ms";
}

std::string format_size(std::uint64_t bytes) {
  if (bytes == 0) return "0B";
  for (const Unit64& unit : kSizes)
    if (unit.value % 1024 == 0 && bytes % unit.value == 0)
      return std::to_string(bytes / unit.value) + std::string(unit.name);
  return std::to_string(bytes) + "B";
}

std::string format_decimal(std::uint64_t scaled, unsigned digits) {
  std::string fraction;
  for (unsigned i = 0; i < digits; ++i, scaled /= 10)
    fraction.insert(fraction.begin(), static_cast<char>('0' + scaled % 10));
  while (!fraction.empty() && fraction.back() == '0') fraction.pop_back();
  return std::to_string(scaled) + (fraction.empty() ? "" : "." + fraction);
}

// A mapping read field by field.

namespace {
bool is_plain(const Node& node) {
  return node.kind == Node::Kind::kScalar && !node.quoted;
}

std::string_view scalar(const Node& node) {
  return node.kind == Node::Kind::kScalar ? std::string_view(node.text) : std::string_view();
}

template <class T>
std::optional<T> accept(Result<T> parsed, const Node& node, const std::string& path,
                        Problems& problems) {
  if (parsed.ok()) return std::move(parsed).value();
  problems.wrong(node, path, parsed.error().detail);
  return std::nullopt;
}
}  // namespace

std::string one_of(std::span<const std::string_view> names) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i != 0) out += i + 1 == names.size() ? " or " : ", ";
    out += names[i];
  }
  return out;
}

std::string read_text(const Node& node, const std::string& path, const TextRule& rule,
                      Problems& problems) {
  const std::string expected(rule.expected);
  if (node.kind != Node::Kind::kScalar || node.text.empty()) {
    problems.wrong(node, path, expected);
    return "";
  }
  if (rule.bytes_max < node.text.size()) {
    problems.add(node.at, path, "a text of " + std::to_string(node.text.size()) + " bytes",
                 "at most " + std::to_string(rule.bytes_max));
    return "";
  }
  if (rule.accepts != nullptr && !rule.accepts(node.text)) {
    problems.wrong(node, path, expected);
    return "";
  }
  return node.text;
}

std::optional<MicroUsd> read_usd(const Node& node, const std::string& path, Problems& problems) {
  if (node.kind != Node::Kind::kScalar) {
    problems.wrong(node, path, "an amount in USD such as \"5.00\"");
    return std::nullopt;
  }
  MicroUsd amount;
  const char* why = why_not_usd(node.text, amount);
  if (why == nullptr) return amount;
  problems.wrong(node, path, std::string("an amount in USD such as \"5.00\": ") + why);
  return std::nullopt;
}

void KeyList::also(std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys)
    if (std::ranges::find(keys_, key) == keys_.end()) keys_.push_back(key);
}

Fields::Fields(const Node& node, std::string path, Keys keys, Problems& problems,
               FileCollector* files)
    : node_(node), path_(std::move(path)), keys_(keys), problems_(&problems), files_(files) {
  if (node.kind != Node::Kind::kMapping) {
    problems.wrong(node, path_, "a mapping with " + one_of(keys));
    return;
  }
  for (const Entry& e : node.entries) {
    if (std::ranges::find(keys, e.key) != keys.end()) continue;
    const std::string shown = printable(e.key, 80);
    problems.add(e.at, this->path(shown), "the unknown key \"" + shown + "\"", one_of(keys),
                 nearest_word(e.key, keys).value_or(""));
  }
}

const Node* Fields::find(std::string_view key) const {
  PROCTOR_ASSERT(std::ranges::find(keys_, key) != keys_.end());
  return node_.find(key);
}

std::string Fields::path(std::string_view key) const {
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

Mark Fields::at(std::string_view key) const {
  const Node* node = find(key);
  return node == nullptr ? node_.at : node->at;
}

void Fields::missing(std::string_view key, std::string_view expected) const {
  if (node_.kind != Node::Kind::kMapping) return;  // that was reported already
  problems_->add(node_.at, path(key), "nothing", std::string(expected));
}

void Fields::wrong(std::string_view key, std::string expected) const {
  if (const Node* node = find(key)) problems_->wrong(*node, path(key), std::move(expected));
}

void Fields::some(std::string_view key, const std::string& what) const {
  const Node* node = find(key);
  if (node == nullptr) return missing(key, "a list of at least one " + what);
  if (node->kind == Node::Kind::kSequence && node->items.empty())
    complain(key, "no " + what, "a list of at least one " + what);
}

void Fields::each(std::string_view key,
                  const std::function<void(const Node&, const std::string&)>& visit) const {
  const Node* node = find(key);
  if (node == nullptr) return;
  if (node->kind != Node::Kind::kSequence) return wrong(key, "a list");
  const std::string prefix = path(key) + "[";
  for (std::size_t i = 0; i < node->items.size(); ++i)
    visit(node->items[i], prefix + std::to_string(i) + "]");
}

void Fields::named(std::string_view key, std::string_view expected,
                   const std::function<void(const Entry&, const std::string&)>& visit) const {
  const Node* node = find(key);
  if (node == nullptr) return;
  if (node->kind != Node::Kind::kMapping) return wrong(key, std::string(expected));
  for (const Entry& e : node->entries)
    visit(e, path(key) + "." + printable(e.key, limits::kNameBytes));
}

void Fields::each_once(std::string_view key, std::span<const std::string> names,
                       std::string_view expected, std::string_view member) const {
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty() || seen.insert(names[i]).second) continue;
    const Node& item = find(key)->items[i];
    const Node* at = member.empty() ? nullptr : item.find(member);
    problems_->wrong(at == nullptr ? item : *at,
                     path(key) + "[" + std::to_string(i) + "]" +
                         (member.empty() ? "" : "." + std::string(member)),
                     std::string(expected));
  }
}

void Fields::decimal(std::string_view key, std::uint64_t& out, unsigned digits, std::uint64_t most,
                     std::string_view needed) const {
  if (const Node* node = find(key))
    out = accept(parse_decimal(scalar(*node), digits, most), *node, path(key), *problems_)
              .value_or(out);
  else if (!needed.empty())
    missing(key, needed);
}

void Fields::words(std::string_view key, std::vector<std::string>& out) const {
  constexpr std::size_t kMost = 1000;
  each(key, [&](const Node& item, const std::string& where) {
    const bool fits = item.kind == Node::Kind::kScalar && item.text.size() <= kCommandBytes &&
                      item.text.find('\0') == std::string::npos && out.size() < kMost;
    if (!fits)
      problems_->wrong(item, where, "a word of a command, at most 64 KiB, of at most 1000");
    else
      out.push_back(item.text);
  });
}

void Fields::file(std::string_view key, std::string& out, std::string_view needed) const {
  if (const Node* node = find(key))
    out = files_->add(*node, path(key));
  else if (!needed.empty())
    missing(key, needed);
}

namespace {
std::string name_of(const Entry& entry, const std::string& path, const TextRule& rule,
                    Problems& problems) {
  Node as_node;
  as_node.kind = Node::Kind::kScalar;
  as_node.at = entry.at;
  as_node.text = entry.key;
  return read_text(as_node, path, rule, problems);
}
}  // namespace

void read_member(const Fields& f, std::string_view key, std::string& out, const TextRule& rule,
                 Need need) {
  if (const Node* node = f.find(key))
    out = read_text(*node, f.path(key), rule, f.problems());
  else if (need == Need::kMust)
    f.missing(key, rule.expected);
}

void read_member(const Fields& f, std::string_view key, std::vector<std::string>& out,
                 const TextRule& rule, std::size_t most) {
  std::set<std::string> seen;
  if (f.find(key) != nullptr) out.clear();
  f.each(key, [&](const Node& item, const std::string& where) {
    const std::string value = read_text(item, where, rule, f.problems());
    if (value.empty()) return;
    if (!seen.insert(value).second) return f.problems().wrong(item, where, "each entry once");
    out.push_back(value);
  });
  if (most < out.size()) f.wrong(key, "at most " + std::to_string(most) + " entries");
}

void read_member(const Fields& f, std::string_view key, std::map<std::string, std::string>& out,
                 const TextRule& name, const TextRule& value, Need) {
  f.named(key, "a mapping of names to texts", [&](const Entry& e, const std::string& where) {
    const std::string checked = name_of(e, where, name, f.problems());
    // An environment variable may well be empty; rules with their own test still decide.
    std::string v;
    const bool empty_text = e.value.kind == Node::Kind::kScalar && e.value.text.empty();
    if (!empty_text || value.accepts != nullptr) v = read_text(e.value, where, value, f.problems());
    if (!checked.empty()) out.emplace(checked, std::move(v));
  });
}

void read_member(const Fields& f, std::string_view key, std::map<std::string, std::uint64_t>& out,
                 std::string_view expected, const TextRule& name, std::uint64_t least,
                 std::uint64_t most) {
  f.named(key, expected, [&](const Entry& e, const std::string& where) {
    const std::string checked = name_of(e, where, name, f.problems());
    const auto n = read_count(e.value, where, least, most, f.problems());
    if (n && !checked.empty()) out.emplace(checked, *n);
  });
}

void read_member(const Fields& f, std::string_view key, bool& out) {
  const Node* node = f.find(key);
  if (node == nullptr) return;
  if (!is_plain(*node) || (node->text != "true" && node->text != "false"))
    return f.wrong(key, "true or false");
  out = node->text == "true";
}

void read_member(const Fields& f, std::string_view key, std::chrono::milliseconds& out,
                 std::chrono::milliseconds least) {
  const Node* node = f.find(key);
  if (node == nullptr) return;
  const auto d = accept(parse_duration(scalar(*node)), *node, f.path(key), f.problems());
  if (d && *d < least) return f.wrong(key, "a duration of at least " + format_duration(least));
  if (d) out = *d;
}

void read_member(const Fields& f, std::string_view key, MicroUsd& out, Need need) {
  if (const Node* node = f.find(key))
    out = read_usd(*node, f.path(key), f.problems()).value_or(out);
  else if (need == Need::kMust)
    f.missing(key, "an amount in USD such as \"5.00\"");
}

void read_member(const Fields& f, std::string_view key, Digest& out) {
  const Node* node = f.find(key);
  if (node == nullptr) return f.missing(key, "a SHA-256");
  const Result<Digest> digest = Digest::from_hex(scalar(*node));
  if (!digest.ok()) return f.wrong(key, "a SHA-256");
  out = *digest;
}

void read_bytes(const Fields& f, std::string_view key, std::uint64_t& out, std::uint64_t least) {
  const Node* node = f.find(key);
  if (node == nullptr) return;
  const auto n = accept(parse_size(scalar(*node)), *node, f.path(key), f.problems());
  if (n && *n < least) return f.wrong(key, "a size of at least " + format_size(least));
  if (n) out = *n;
}

std::optional<std::uint64_t> read_count(const Node& node, const std::string& path,
                                        std::uint64_t least, std::uint64_t most,
                                        Problems& problems) {
  if (is_plain(node))
    if (const auto n = parse_count(node.text); n.ok() && least <= *n && *n <= most) return *n;
  problems.wrong(node, path,
                 "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  return std::nullopt;
}

std::optional<std::size_t> read_word(const Node& node, const std::string& path,
                                     std::span<const std::string_view> names, Problems& problems) {
  const bool is_text = node.kind == Node::Kind::kScalar;
  if (is_text)
    if (const auto it = std::ranges::find(names, node.text); it != names.end())
      return static_cast<std::size_t>(it - names.begin());
  problems.add(node.at, path, describe(node), one_of(names),
               is_text ? nearest_word(node.text, names).value_or("") : "");
  return std::nullopt;
}
}  // namespace proctor
