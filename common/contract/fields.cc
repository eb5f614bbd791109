#include "common/contract/fields.h"

#include <algorithm>
#include <set>

#include "common/base/text.h"
#include "common/contract/scalar.h"

namespace proctor {
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
  if (need == Need::kRequired) missing(key, rule.expected);
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
  if (need == Need::kRequired) missing(key, "an amount in USD such as \"5.00\"");
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
