#include "coordinator/aggregate/run_filter.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <set>

#include "common/base/parse.h"
#include "common/base/text.h"
#include "coordinator/aggregate/columns.h"

namespace proctor {
using namespace aggregate;

namespace {
using Field = Column<RunRecord>;  // a property of a run that a filter can ask for

constexpr std::size_t kKnownValues = 10'000;

std::string did_you_mean(std::string_view word, std::span<const std::string_view> known) {
  if (const auto near = nearest_word(word, known)) return " (did you mean " + *near + "?)";
  std::string some;
  for (std::size_t i = 0; i < std::min<std::size_t>(known.size(), 12); ++i)
    some += (some.empty() ? " (there are " : ", ") + printable(known[i]);
  return some.empty() ? "" : some + (12 < known.size() ? ", ...)" : ")");
}

Status known_value(std::string_view what, const std::string& value,
                   std::span<const std::string_view> known) {
  if (value.find('*') != std::string::npos || std::ranges::find(known, value) != known.end())
    return ok_status();
  return Error{Errc::kInvalid, "filter: no run has " + std::string(what) + " \"" +
                                   printable(value) + "\"" + did_you_mean(value, known)};
}

// The text lives as long as the run.
std::string_view text_of(const Field& field, const RunRecord& run) {
  const Cell cell = field.read(run);
  if (const bool* is = cell.get<bool>()) return *is ? "yes" : "no";
  const std::string_view* text = cell.get<std::string_view>();
  return text == nullptr ? "" : *text;
}

bool is_number(const Field& field) {
  return field.type == Type::kCount || field.type == Type::kUsd || field.type == Type::kMs;
}

// Money in micro-dollars, time in milliseconds, else a count; nothing: the run has none.
std::optional<std::int64_t> number_of(const Field& field, const RunRecord& run) {
  const Cell cell = field.read(run);
  if (const MicroUsd* amount = cell.get<MicroUsd>()) return amount->micros();
  const std::int64_t* n = cell.get<std::int64_t>();
  if (n == nullptr || (field.type == Type::kMs && *n == 0)) return std::nullopt;
  return *n;
}

// One that there is, or that some run has, of a list one of its words.
Status value_of_runs(std::string_view what, const Field& field, const std::string& value,
                     const FilterNames& names) {
  if (value.empty() || value.find('*') != std::string::npos) return ok_status();
  std::set<std::string_view> known(field.values.begin(), field.values.end());
  for (const RunRecord& run : names.runs) {
    const std::string_view has = text_of(field, run);
    if (has == value && field.type != Type::kList) return ok_status();
    if (kKnownValues <= known.size() || has.empty()) continue;
    for (const std::string_view one : split(has, field.type == Type::kList ? ',' : '\0'))
      known.insert(one);
  }
  return known_value(what, value, std::vector<std::string_view>(known.begin(), known.end()));
}

// kInvalid: there is none of that name; the nearest is named.
Result<Field> field_named(std::string_view name, const FilterNames& names) {
  const Columns<RunRecord> columns = run_columns(names.keys);
  for (const std::string& word : {std::string(name), std::string(kStratum) + std::string(name)})
    if (const Field* field = columns.find(word)) return *field;
  std::vector<std::string_view> known(names.keys.begin(), names.keys.end());
  for (const Definition& w : filter_words()) known.push_back(w.word);
  return Error{Errc::kInvalid,
               "filter: there is no word \"" + printable(name) + "\"" + did_you_mean(name, known)};
}

// "0.50" of money, "90", "90s" or "2m" of time.
Result<std::int64_t> amount_of(const Field& field, const std::string& value) {
  const Error wrong{Errc::kInvalid, "filter: \"" + printable(value) + "\" is no amount for " +
                                        field.word + " (such as " +
                                        (field.type == Type::kMs    ? "90s"
                                         : field.type == Type::kUsd ? "0.50"
                                                                    : "3") +
                                        ")"};
  if (field.type == Type::kUsd) {
    const Result<MicroUsd> amount = parse_usd(value);
    return amount.ok() ? Result<std::int64_t>(amount->micros()) : Result<std::int64_t>(wrong);
  }
  if (field.type == Type::kCount) {
    const auto n = whole_number<std::int64_t>(value);
    return n ? Result<std::int64_t>(*n) : Result<std::int64_t>(wrong);
  }
  double n = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), n);
  const std::string_view unit(end, static_cast<std::size_t>(value.data() + value.size() - end));
  const double ms = unit == "ms"                  ? 1
                    : unit == "s" || unit.empty() ? 1'000
                    : unit == "m"                 ? 60'000
                    : unit == "h"                 ? 3'600'000
                                                  : 0;
  if (error != std::errc() || ms == 0 || !(std::abs(n) < 1e12)) return wrong;
  return std::llround(n * ms);
}

// A value that no run can have is a typing mistake: kInvalid with the nearest one.
Status check_value(const Field& field, const std::string& value, const FilterNames& names) {
  std::string_view word = field.word;
  if (field.type != Type::kName && field.type != Type::kList)
    return field.values.empty() ? ok_status() : known_value(word, value, field.values);
  if (word.starts_with(kStratum)) word.remove_prefix(kStratum.size());
  return value_of_runs(word == "run" ? "the name" : word, field, value, names);
}
}  // namespace

enum class Compare : std::uint8_t { kEqual, kNot, kLess, kAtMost, kMore, kAtLeast };

struct RunFilter::Node {
  enum class Kind : std::uint8_t { kAll, kAny, kNot, kText, kNumber };
  Kind kind = Kind::kAll;
  std::vector<Node> inner;  // of kAll, kAny and kNot
  std::optional<Field> field;
  Compare compare = Compare::kEqual;
  std::vector<std::string> values;    // of kText: any of them, with '*'
  std::vector<std::int64_t> amounts;  // of kNumber
};

namespace {
using Node = RunFilter::Node;

constexpr std::size_t kExpressionBytes = 16'384, kDepth = 64;

bool is_plain(char c) {
  return c != ' ' && c != '\t' && c != '\n' && c != '(' && c != ')' && c != '"' && c != '=' &&
         c != '<' && c != '>' && c != '!' && c != ',';
}

// Does the value fit the pattern, whose '*' stand for anything?
bool fits(std::string_view pattern, std::string_view value) {
  std::size_t p = 0, v = 0, star = std::string_view::npos, kept = 0;
  while (v < value.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      kept = v;
    } else if (p < pattern.size() && pattern[p] == value[v]) {
      ++p;
      ++v;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      v = ++kept;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool compared(std::int64_t a, Compare how, std::int64_t b) {
  if (a < b) return how == Compare::kLess || how == Compare::kAtMost;
  if (b < a) return how == Compare::kMore || how == Compare::kAtLeast;
  return how != Compare::kLess && how != Compare::kMore;
}

bool holds(const Node& node, const RunRecord& run) {
  switch (node.kind) {
    case Node::Kind::kAll:
      return std::ranges::all_of(node.inner, [&](const Node& n) { return holds(n, run); });
    case Node::Kind::kAny:
      return std::ranges::any_of(node.inner, [&](const Node& n) { return holds(n, run); });
    case Node::Kind::kNot:
      return !holds(node.inner.front(), run);
    case Node::Kind::kText: {
      const std::string_view value = text_of(*node.field, run);
      const bool is = std::ranges::any_of(node.values, [&](const std::string& pattern) {
        if (node.field->type != Type::kList) return fits(pattern, value);
        return std::ranges::any_of(split(value, ','),
                                   [&](std::string_view one) { return fits(pattern, one); });
      });
      return is != (node.compare == Compare::kNot);
    }
    case Node::Kind::kNumber: {
      const std::optional<std::int64_t> value = number_of(*node.field, run);
      const bool is = value && std::ranges::any_of(node.amounts, [&](std::int64_t amount) {
                        return compared(*value, node.compare, amount);
                      });
      return is != (node.compare == Compare::kNot);
    }
  }
  return false;
}

class Parser {
 public:
  Parser(std::string_view text, const FilterNames& names) : text_(text), names_(names) {}

  Result<Node> all_of_it() {
    if (kExpressionBytes < text_.size())
      return Error{Errc::kInvalid, "a filter has at most 16,384 bytes"};
    PROCTOR_TRY(Node node, either());
    skip();
    if (at_ < text_.size()) return wrong("a word such as outcome=failure");
    return node;
  }

 private:
  Result<Node> either() {
    PROCTOR_TRY(Node first, together());
    if (!word("or")) return first;
    Node any;
    any.kind = Node::Kind::kAny;
    any.inner.push_back(std::move(first));
    do {
      PROCTOR_TRY(Node next, together());
      any.inner.push_back(std::move(next));
    } while (word("or"));
    return any;
  }

  Result<Node> together() {
    Node all;
    for (;;) {
      PROCTOR_TRY(Node next, one());
      all.inner.push_back(std::move(next));
      const bool more = word("and");
      skip();
      if (!more && (at_ == text_.size() || text_[at_] == ')' || peek("or"))) break;
    }
    if (all.inner.size() == 1) return std::move(all.inner.front());
    return all;
  }

  Result<Node> one() {
    if (kDepth < ++depth_) return Error{Errc::kInvalid, "a filter is nested too deep"};
    Result<Node> out = inner();
    --depth_;
    return out;
  }

  Result<Node> inner() {
    if (word("not")) {
      PROCTOR_TRY(Node negated, one());
      Node out;
      out.kind = Node::Kind::kNot;
      out.inner.push_back(std::move(negated));
      return out;
    }
    skip();
    if (at_ < text_.size() && text_[at_] == '(') {
      ++at_;
      PROCTOR_TRY(Node out, either());
      skip();
      if (at_ == text_.size() || text_[at_] != ')') return wrong("\")\"");
      ++at_;
      return out;
    }
    return comparison();
  }

  Result<Node> comparison() {
    skip();
    PROCTOR_TRY(const std::string name, value("a word such as outcome=failure"));
    PROCTOR_TRY(Field field, field_named(name, names_));
    Node out;
    const std::optional<Compare> how = compare_sign();
    if (!how) return wrong("one of = != < <= > >= after \"" + printable(name) + "\"");
    out.compare = *how;
    const bool numeric = is_number(field);
    out.kind = numeric ? Node::Kind::kNumber : Node::Kind::kText;
    if (!numeric && *how != Compare::kEqual && *how != Compare::kNot)
      return Error{Errc::kInvalid, "filter: " + printable(name) +
                                       " is no number: compare it by = or != (\"*\" stands for "
                                       "anything)"};
    do {
      PROCTOR_TRY(std::string wanted, value("a value after \"" + printable(name) + "\""));
      if (numeric) {
        PROCTOR_TRY(const std::int64_t amount, amount_of(field, wanted));
        out.amounts.push_back(amount);
      } else {
        PROCTOR_CHECK_OK(check_value(field, wanted, names_));
        out.values.push_back(std::move(wanted));
      }
    } while (sign(","));
    out.field = std::move(field);
    return out;
  }

  std::optional<Compare> compare_sign() {
    if (sign("!=")) return Compare::kNot;
    if (sign("<=")) return Compare::kAtMost;
    if (sign(">=")) return Compare::kAtLeast;
    if (sign("==") || sign("=")) return Compare::kEqual;
    if (sign("<")) return Compare::kLess;
    if (sign(">")) return Compare::kMore;
    return std::nullopt;
  }

  Result<std::string> value(const std::string& what) {
    skip();
    std::string out;
    if (at_ < text_.size() && text_[at_] == '"') {
      for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
        if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
        out += text_[at_];
      }
      if (at_ == text_.size()) return wrong("a closing \"");
      ++at_;
      return out;
    }
    while (at_ < text_.size() && is_plain(text_[at_])) out += text_[at_++];
    if (out.empty()) return wrong(what);
    return out;
  }

  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n'))
      ++at_;
  }
  bool sign(std::string_view wanted) {
    skip();
    if (!text_.substr(at_).starts_with(wanted)) return false;
    at_ += wanted.size();
    return true;
  }
  // A whole word that no comparison begins with.
  bool peek(std::string_view wanted) {
    skip();
    const std::string_view rest = text_.substr(at_);
    if (!rest.starts_with(wanted)) return false;
    const std::string_view after = rest.substr(wanted.size());
    return after.empty() || after[0] == ' ' || after[0] == '(' || after[0] == ')';
  }
  bool word(std::string_view wanted) {
    if (!peek(wanted)) return false;
    at_ += wanted.size();
    return true;
  }
  Error wrong(const std::string& wanted) const {
    const std::string rest = printable(text_.substr(at_), 40);
    return {Errc::kInvalid, "filter: expected " + wanted +
                                (rest.empty() ? " at the end" : ", and not \"" + rest + "\"")};
  }

  std::string_view text_;
  const FilterNames& names_;
  std::size_t at_ = 0, depth_ = 0;
};
}  // namespace

Result<RunFilter> RunFilter::parse(std::string_view expression, const FilterNames& names) {
  if (expression.find_first_not_of(" \t\n") == std::string_view::npos) return RunFilter(nullptr);
  PROCTOR_TRY(Node root, Parser(expression, names).all_of_it());
  return RunFilter(std::make_shared<const Node>(std::move(root)));
}

bool RunFilter::matches(const RunRecord& run) const {
  return root_ == nullptr || holds(*root_, run);
}

std::string filter_value(std::string_view value) {
  if (!value.empty() && std::ranges::all_of(value, is_plain)) return std::string(value);
  std::string out = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string filter_key(std::string_view key) {
  const bool hidden =
      std::ranges::find(filter_words(), key, &Definition::word) != filter_words().end();
  return filter_value(hidden ? std::string(kStratum) + std::string(key) : std::string(key));
}
}  // namespace proctor
