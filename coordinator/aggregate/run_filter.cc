#include "coordinator/aggregate/run_filter.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <set>

#include "common/base/text.h"
#include "coordinator/aggregate/format.h"

namespace proctor::aggregate {
// A property of a run that a filter can ask for.
struct FilterField {
  std::size_t word = 0;              // position in filter_words()
  std::optional<std::size_t> key{};  // a stratum instead: position of its key
};

// kInvalid: there is none of that name; the nearest is named.
Result<FilterField> field_named(std::string_view name, const FilterNames& names);
bool is_number_field(const FilterField& field);
std::string_view text_of(const FilterField& field, const RunRecord& run);
// Money in micro-dollars, time in milliseconds, else a count; nothing: the run has none.
std::optional<std::int64_t> number_of(const FilterField& field, const RunRecord& run);
// "0.50" of money, "90", "90s" or "2m" of time.
Result<std::int64_t> amount_of(const FilterField& field, const std::string& value);
// A value that no run can have is a typing mistake: kInvalid with the nearest one.
Status check_value(const FilterField& field, const std::string& value, const FilterNames& names);
}  // namespace proctor::aggregate

namespace proctor {
namespace {
enum Word : std::size_t {
  kRun,
  kTask,
  kMethod,
  kStage,
  kState,
  kOutcome,
  kSatisfied,
  kEnd,
  kWorker,
  kPatch,
  kParked,
  kOrder,
  kAttempts,
  kExit,
  kViolations,
  kReviews,
  kCalls,
  kCost,
  kModel,
  kExecution,
  kHuman,
  kOverhead,
  kSelfReported,
  kWasted,
  kTime,
  kSetup,
  kAgent,
  kAcceptance,
};
constexpr std::size_t kFirstNumber = kOrder, kFirstMoney = kCost, kFirstTime = kTime;

constexpr std::string_view kStratum = "stratum.";
constexpr std::size_t kKnownValues = 10'000;

std::string did_you_mean(std::string_view word, std::span<const std::string_view> known) {
  if (const auto near = nearest_word(word, known)) return " (did you mean " + *near + "?)";
  std::string some;
  for (std::size_t i = 0; i < std::min<std::size_t>(known.size(), 12); ++i)
    some += (some.empty() ? " (there are " : ", ") + printable(known[i]);
  return some.empty() ? "" : some + (12 < known.size() ? ", ...)" : ")");
}

Error no_such_value(std::string_view what, const std::string& value,
                    std::span<const std::string_view> known) {
  return {Errc::kInvalid, "filter: no run has " + std::string(what) + " \"" + printable(value) +
                              "\"" + did_you_mean(value, known)};
}

Status known_value(std::string_view what, const std::string& value,
                   std::span<const std::string_view> known) {
  if (value.find('*') != std::string::npos || std::ranges::find(known, value) != known.end())
    return ok_status();
  return no_such_value(what, value, known);
}

// One of those that runs have; they are gathered only when none has this one.
Status value_of_runs(std::string_view what, const aggregate::FilterField& field,
                     const std::string& value, const FilterNames& names) {
  if (value.find('*') != std::string::npos || value.empty()) return ok_status();
  std::set<std::string_view> known;
  for (const RunRecord& run : names.runs) {
    const std::string_view has = aggregate::text_of(field, run);
    if (has == value) return ok_status();
    if (known.size() < kKnownValues && !has.empty()) known.insert(has);
  }
  return no_such_value(what, value, std::vector<std::string_view>(known.begin(), known.end()));
}

constexpr std::array<std::string_view, 6> kStates{"planned", "running",   "parked",
                                                  "ended",   "cancelled", "removed"};
constexpr std::array<std::string_view, 4> kOutcomes{"success", "failure", "acceptance_error",
                                                    "invalid"};
constexpr std::array<std::string_view, 10> kEnds{
    "completed",       "agent_timeout",  "budget_exceeded",   "resource_limit", "policy_stop",
    "operator_cancel", "infrastructure", "agent_unavailable", "breaker",        "model_overloaded"};
constexpr std::array<std::string_view, 2> kYesNo{"yes", "no"};

std::int64_t count(std::uint64_t n) {
  return static_cast<std::int64_t>(n);
}
}  // namespace

const std::vector<FilterWord>& filter_words() {
  static const std::vector<FilterWord> kWords = {
      {"run", "its name, TASK/METHOD/rN"},
      {"task", "its task"},
      {"method", "its method"},
      {"stage", "its stage"},
      {"state", "planned, running, parked, ended, cancelled, removed"},
      {"outcome", "of an ended run: success, failure, acceptance_error, invalid"},
      {"satisfied", "of an ended run: yes (a success that passed every gate) or no"},
      {"end", "why an ended run ended: completed, agent_timeout, budget_exceeded, ..."},
      {"worker", "who had the attempt that counts"},
      {"patch", "how its patch fitted, where not as it is: whitespace, three_way, refused"},
      {"parked", "the envelope that was short"},
      {"order", "its place in the plan, from 0"},
      {"attempts", "how many it took"},
      {"exit", "what its agent ended with"},
      {"violations", "how often it broke a constraint of its contract"},
      {"reviews", "how many people's reviews are booked for it"},
      {"calls", "metered model calls"},
      {"cost", "of all its attempts, in the unit of the price table"},
      {"model", "the part of it that models are"},
      {"execution", "likewise sandbox time and tools"},
      {"human", "likewise people"},
      {"overhead", "likewise storage and starting"},
      {"self_reported", "the part that agents said of themselves"},
      {"wasted", "the part that infrastructure spoiled"},
      {"time", "from its start to its report: seconds, or 500ms, 90s, 2m, 1h"},
      {"setup", "the part of it that setup took"},
      {"agent", "likewise the agent"},
      {"acceptance", "likewise the checks"},
  };
  return kWords;
}

namespace aggregate {
Result<FilterField> field_named(std::string_view name, const FilterNames& names) {
  const auto& words = filter_words();
  const bool by_prefix = name.starts_with(kStratum);
  if (!by_prefix)
    for (std::size_t i = 0; i < words.size(); ++i)
      if (words[i].word == name) return FilterField{i};
  const std::string_view key = by_prefix ? name.substr(kStratum.size()) : name;
  for (std::size_t k = 0; k < names.keys.size(); ++k)
    if (names.keys[k] == key) return FilterField{0, k};
  std::vector<std::string_view> known(names.keys.begin(), names.keys.end());
  for (const FilterWord& w : words) known.push_back(w.word);
  return Error{Errc::kInvalid,
               "filter: there is no word \"" + printable(name) + "\"" + did_you_mean(name, known)};
}

bool is_number_field(const FilterField& field) {
  return !field.key && kFirstNumber <= field.word;
}

std::string_view text_of(const FilterField& field, const RunRecord& run) {
  if (field.key) return run.strata[*field.key];
  const bool ended = run.state == RunRecord::State::kEnded;
  switch (field.word) {
    case kRun:
      return run.name;
    case kTask:
      return run.task;
    case kMethod:
      return run.method;
    case kStage:
      return run.stage;
    case kState:
      return to_string(run.state);
    case kOutcome:
      return ended ? to_string(run.outcome) : "";
    case kSatisfied:
      return !ended ? "" : run.satisfied() ? "yes" : "no";
    case kEnd:
      return ended ? to_string(run.termination) : "";
    case kWorker:
      return run.worker;
    case kPatch:
      return run.patch;
    case kParked:
      return run.state == RunRecord::State::kParked ? std::string_view(run.parked_scope) : "";
    default:
      return "";
  }
}

std::optional<std::int64_t> number_of(const FilterField& field, const RunRecord& run) {
  const auto known = [](std::uint64_t ms) {
    return ms == 0 ? std::nullopt : std::optional<std::int64_t>(count(ms));
  };
  switch (field.word) {
    case kOrder:
      return run.run.raw();
    case kAttempts:
      return run.attempts;
    case kExit:
      return run.agent_exit ? std::optional<std::int64_t>(*run.agent_exit) : std::nullopt;
    case kViolations:
      return count(run.violations);
    case kReviews:
      return run.reviews;
    case kCalls:
      return count(run.metered_calls);
    case kCost:
      return run.cost.total().micros();
    case kModel:
      return run.cost.model.micros();
    case kExecution:
      return run.cost.execution.micros();
    case kHuman:
      return run.cost.human.micros();
    case kOverhead:
      return run.cost.overhead.micros();
    case kSelfReported:
      return run.self_reported.usd.micros();
    case kWasted:
      return run.wasted.micros();
    case kTime:
      return known(run.wall_ms);
    case kSetup:
      return known(run.setup_ms);
    case kAgent:
      return known(run.agent_ms);
    case kAcceptance:
      return known(run.acceptance_ms);
    default:
      return std::nullopt;
  }
}

Result<std::int64_t> amount_of(const FilterField& field, const std::string& value) {
  const std::string_view word = filter_words()[field.word].word;
  const Error wrong{Errc::kInvalid, "filter: \"" + printable(value) + "\" is no amount for " +
                                        std::string(word) + " (such as " +
                                        (kFirstTime <= field.word    ? "90s"
                                         : kFirstMoney <= field.word ? "0.50"
                                                                     : "3") +
                                        ")"};
  if (kFirstMoney <= field.word && field.word < kFirstTime) {
    const Result<MicroUsd> amount = parse_usd(value);
    return amount.ok() ? Result<std::int64_t>(amount->micros()) : Result<std::int64_t>(wrong);
  }
  if (field.word < kFirstMoney) {
    std::int64_t n = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), n);
    if (error != std::errc() || end != value.data() + value.size()) return wrong;
    return n;
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

Status check_value(const FilterField& field, const std::string& value, const FilterNames& names) {
  if (field.key) return value_of_runs(names.keys[*field.key], field, value, names);
  switch (field.word) {
    case kRun:
      return value_of_runs("the name", field, value, names);
    case kTask:
      return value_of_runs("task", field, value, names);
    case kMethod:
      return value_of_runs("method", field, value, names);
    case kStage:
      return value_of_runs("stage", field, value, names);
    case kWorker:
      return value_of_runs("worker", field, value, names);
    case kState:
      return known_value("state", value, kStates);
    case kOutcome:
      return known_value("outcome", value, kOutcomes);
    case kSatisfied:
      return known_value("satisfied", value, kYesNo);
    case kEnd:
      return known_value("end", value, kEnds);
    default:
      return ok_status();
  }
}
}  // namespace aggregate

using namespace aggregate;

enum class Compare : std::uint8_t { kEqual, kNot, kLess, kAtMost, kMore, kAtLeast };

struct RunFilter::Node {
  enum class Kind : std::uint8_t { kAll, kAny, kNot, kText, kNumber };
  Kind kind = Kind::kAll;
  std::vector<Node> inner;  // of kAll, kAny and kNot
  FilterField field{};
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
  switch (how) {
    case Compare::kEqual:
    case Compare::kNot:
      return a == b;
    case Compare::kLess:
      return a < b;
    case Compare::kAtMost:
      return a <= b;
    case Compare::kMore:
      return a > b;
    case Compare::kAtLeast:
      return a >= b;
  }
  return false;
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
      const std::string_view value = text_of(node.field, run);
      const bool is = std::ranges::any_of(
          node.values, [&](const std::string& pattern) { return fits(pattern, value); });
      return is != (node.compare == Compare::kNot);
    }
    case Node::Kind::kNumber: {
      const std::optional<std::int64_t> value = number_of(node.field, run);
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
    PROCTOR_TRY(const FilterField field, field_named(name, names_));
    Node out;
    out.field = field;
    const std::optional<Compare> how = compare_sign();
    if (!how) return wrong("one of = != < <= > >= after \"" + printable(name) + "\"");
    out.compare = *how;
    const bool is_number = is_number_field(field);
    out.kind = is_number ? Node::Kind::kNumber : Node::Kind::kText;
    if (!is_number && *how != Compare::kEqual && *how != Compare::kNot)
      return Error{Errc::kInvalid, "filter: " + printable(name) +
                                       " is no number: compare it by = or != (\"*\" stands for "
                                       "anything)"};
    do {
      PROCTOR_TRY(std::string wanted, value("a value after \"" + printable(name) + "\""));
      if (is_number) {
        PROCTOR_TRY(const std::int64_t amount, amount_of(field, wanted));
        out.amounts.push_back(amount);
      } else {
        PROCTOR_CHECK_OK(check_value(field, wanted, names_));
        out.values.push_back(std::move(wanted));
      }
    } while (sign(","));
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
  const auto& words = filter_words();
  const bool hidden =
      std::ranges::any_of(words, [&](const FilterWord& w) { return w.word == key; });
  return filter_value(hidden ? "stratum." + std::string(key) : std::string(key));
}
}  // namespace proctor
