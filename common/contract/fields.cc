#include "common/contract/fields.h"

#include <algorithm>
#include <set>

#include "common/base/parse.h"
#include "common/base/text.h"

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
  Result<MicroUsd> amount = parse_usd(node.text);
  if (amount.ok()) return *amount;
  // parse_usd's sentence repeats the text; only its reason is wanted here.
  const std::string& why = amount.error().detail;
  const std::size_t reason = why.rfind(": ");
  problems.wrong(node, path,
                 "an amount in USD such as \"5.00\": " +
                     (reason == std::string::npos ? why : why.substr(reason + 2)));
  return std::nullopt;
}

Fields::Fields(const Node& node, std::string path, Keys keys, Problems& problems)
    : node_(node), path_(std::move(path)), keys_(keys), problems_(&problems) {
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

std::string Fields::text(std::string_view key, Need need, const TextRule& rule) const {
  const Node* node = find(key);
  if (node != nullptr) return read_text(*node, path(key), rule, *problems_);
  if (need == Need::kMust) missing(key, rule.expected);
  return "";
}

bool Fields::flag(std::string_view key, bool otherwise) const {
  const Node* node = find(key);
  if (node == nullptr) return otherwise;
  if (is_plain(*node) && node->text == "true") return true;
  if (is_plain(*node) && node->text == "false") return false;
  problems_->wrong(*node, path(key), "true or false");
  return otherwise;
}

std::uint64_t Fields::count(std::string_view key, std::uint64_t otherwise, std::uint64_t min,
                            std::uint64_t max) const {
  const Node* node = find(key);
  if (node == nullptr) return otherwise;
  if (is_plain(*node))
    if (const auto n = parse_count(node->text); n.ok() && min <= *n && *n <= max) return *n;
  problems_->wrong(*node, path(key),
                   "a whole number from " + std::to_string(min) + " to " + std::to_string(max));
  return otherwise;
}

std::optional<std::uint64_t> Fields::optional_count(std::string_view key) const {
  if (find(key) == nullptr) return std::nullopt;
  return count(key, 0, 0, kQuantityMax);
}

std::chrono::milliseconds Fields::duration(std::string_view key,
                                           std::chrono::milliseconds otherwise,
                                           std::chrono::milliseconds min) const {
  const Node* node = find(key);
  if (node == nullptr) return otherwise;
  const auto d = accept(parse_duration(node->kind == Node::Kind::kScalar ? node->text : ""), *node,
                        path(key), *problems_);
  if (!d) return otherwise;
  if (min <= *d) return *d;
  problems_->wrong(*node, path(key), "a duration of at least " + format_duration(min));
  return otherwise;
}

std::optional<std::chrono::milliseconds> Fields::optional_duration(std::string_view key) const {
  if (find(key) == nullptr) return std::nullopt;
  return duration(key, std::chrono::milliseconds(1), std::chrono::milliseconds(1));
}

std::uint64_t Fields::size(std::string_view key, std::uint64_t otherwise, std::uint64_t min) const {
  const Node* node = find(key);
  if (node == nullptr) return otherwise;
  const auto n = accept(parse_size(node->kind == Node::Kind::kScalar ? node->text : ""), *node,
                        path(key), *problems_);
  if (!n) return otherwise;
  if (min <= *n) return *n;
  problems_->wrong(*node, path(key), "a size of at least " + format_size(min));
  return otherwise;
}

std::optional<MicroUsd> Fields::usd(std::string_view key, Need need) const {
  const Node* node = find(key);
  if (node != nullptr) return read_usd(*node, path(key), *problems_);
  if (need == Need::kMust) missing(key, "an amount in USD such as \"5.00\"");
  return std::nullopt;
}

std::optional<std::size_t> Fields::choose(std::string_view key,
                                          std::span<const std::string_view> names) const {
  const Node* node = find(key);
  if (node == nullptr) return std::nullopt;
  const bool is_text = node->kind == Node::Kind::kScalar;
  if (is_text)
    if (const auto it = std::ranges::find(names, node->text); it != names.end())
      return static_cast<std::size_t>(it - names.begin());
  problems_->add(node->at, path(key), describe(*node), one_of(names),
                 is_text ? nearest_word(node->text, names).value_or("") : "");
  return std::nullopt;
}

void Fields::each(std::string_view key,
                  const std::function<void(const Node&, const std::string&)>& visit) const {
  const Node* node = find(key);
  if (node == nullptr) return;
  if (node->kind != Node::Kind::kSequence) {
    problems_->wrong(*node, path(key), "a list");
    return;
  }
  const std::string prefix = path(key) + "[";
  for (std::size_t i = 0; i < node->items.size(); ++i)
    visit(node->items[i], prefix + std::to_string(i) + "]");
}

std::vector<std::string> Fields::texts(std::string_view key, const TextRule& rule) const {
  std::vector<std::string> out;
  std::set<std::string> seen;
  each(key, [&](const Node& item, const std::string& where) {
    std::string value = read_text(item, where, rule, *problems_);
    if (value.empty()) return;
    if (seen.insert(value).second) {
      out.push_back(std::move(value));
    } else {
      problems_->wrong(item, where, "each entry once");
    }
  });
  return out;
}

std::map<std::string, std::string> Fields::table(std::string_view key, const TextRule& name,
                                                 const TextRule& value) const {
  std::map<std::string, std::string> out;
  const Node* node = find(key);
  if (node == nullptr) return out;
  if (node->kind != Node::Kind::kMapping) {
    problems_->wrong(*node, path(key), "a mapping of names to texts");
    return out;
  }
  for (const Entry& e : node->entries) {
    const std::string where = path(key) + "." + printable(e.key, 80);
    Node as_node;
    as_node.kind = Node::Kind::kScalar;
    as_node.at = e.at;
    as_node.text = e.key;
    const std::string checked = read_text(as_node, where, name, *problems_);
    // An environment variable may well be empty; rules with their own test still decide.
    std::string v;
    const bool empty_text = e.value.kind == Node::Kind::kScalar && e.value.text.empty();
    if (!empty_text || value.accepts != nullptr) v = read_text(e.value, where, value, *problems_);
    if (!checked.empty()) out.emplace(checked, std::move(v));
  }
  return out;
}
}  // namespace proctor
