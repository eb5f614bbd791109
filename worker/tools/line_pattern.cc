#include "worker/tools/line_pattern.h"

#include <algorithm>
#include <optional>

namespace proctor {
namespace {
using ByteSet = std::bitset<256>;

constexpr std::uint32_t kNoEnd = UINT32_MAX, kTimesMax = 1'000;
constexpr std::size_t kDepthMax = 50, kNodesMax = 4'000;

std::size_t place_of(char c) {
  return static_cast<unsigned char>(c);
}

bool is_word(char c) {
  return ('0' <= c && c <= '9') || ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || c == '_';
}

ByteSet range(unsigned first, unsigned last) {
  ByteSet out;
  for (unsigned c = first; c <= last; ++c) out.set(c);
  return out;
}

// \d, \w, \s and their opposites.
std::optional<ByteSet> class_of(char letter) {
  ByteSet out;
  switch (letter) {
    case 'd':
    case 'D':
      out = range('0', '9');
      break;
    case 'w':
    case 'W':
      out = range('0', '9') | range('a', 'z') | range('A', 'Z') | range('_', '_');
      break;
    case 's':
    case 'S':
      out = range('\t', '\r') | range(' ', ' ');
      break;
    default:
      return std::nullopt;
  }
  return letter < 'a' ? ~out : out;
}

struct Node {
  enum class Kind { kEmpty, kSet, kBegin, kEnd, kWord, kNoWord, kRow, kEither, kTimes };
  Kind kind = Kind::kEmpty;
  ByteSet set{};
  std::vector<std::size_t> parts{};
  std::uint32_t least = 1, most = 1;
};

class PatternReader {
 public:
  explicit PatternReader(std::string_view text) : text_(text) {}

  // The node that is all of it.
  Result<std::size_t> read() {
    if (text_.substr(0, 4) == "(?i)") {
      folds_ = true;
      at_ = 4;
    }
    PROCTOR_TRY(const std::size_t root, either(0));
    if (at_ < text_.size()) return wrong("a ) without its (");
    return root;
  }
  const std::vector<Node>& nodes() const { return nodes_; }

 private:
  Error wrong(std::string_view what) const {
    return {Errc::kInvalid,
            "the pattern has " + std::string(what) + ", at byte " + std::to_string(at_)};
  }
  bool has(char c) const { return at_ < text_.size() && text_[at_] == c; }
  bool take(char c) {
    if (!has(c)) return false;
    ++at_;
    return true;
  }
  Result<std::size_t> add(Node node) {
    if (kNodesMax <= nodes_.size()) return wrong("more in it than is followed");
    if (folds_ && node.kind == Node::Kind::kSet)
      for (std::size_t c = 'a'; c <= 'z'; ++c) {
        const std::size_t upper = c - 'a' + 'A';
        if (node.set[c] || node.set[upper]) node.set.set(c).set(upper);
      }
    nodes_.push_back(std::move(node));
    return nodes_.size() - 1;
  }
  Result<std::size_t> add_set(const ByteSet& set) { return add({Node::Kind::kSet, set}); }

  Result<std::size_t> either(std::size_t depth) {
    if (kDepthMax < depth) return wrong("too many groups in each other");
    Node out{Node::Kind::kEither};
    do {
      PROCTOR_TRY(const std::size_t part, row(depth));
      out.parts.push_back(part);
    } while (take('|'));
    if (out.parts.size() == 1) return out.parts.front();
    return add(std::move(out));
  }

  Result<std::size_t> row(std::size_t depth) {
    Node out{Node::Kind::kRow};
    while (at_ < text_.size() && !has('|') && !has(')')) {
      PROCTOR_TRY(std::size_t part, atom(depth));
      for (bool more = true; more;) {
        PROCTOR_TRY(const std::size_t repeated, times(part));
        more = repeated != part;
        part = repeated;
      }
      out.parts.push_back(part);
    }
    return add(std::move(out));
  }

  // What was read, or as often as is said behind it.
  Result<std::size_t> times(std::size_t part) {
    Node out{Node::Kind::kTimes, {}, {part}};
    if (take('*')) {
      out.least = 0;
      out.most = kNoEnd;
    } else if (take('+')) {
      out.most = kNoEnd;
    } else if (take('?')) {
      out.least = 0;
    } else if (has('{') && at_ + 1 < text_.size() && '0' <= text_[at_ + 1] &&
               text_[at_ + 1] <= '9') {
      ++at_;
      PROCTOR_TRY(out.least, number());
      out.most = out.least;
      if (take(',')) {
        out.most = kNoEnd;
        if (!has('}')) {
          PROCTOR_TRY(out.most, number());
        }
      }
      if (!take('}')) return wrong("a { without its }");
      if (out.most < out.least) return wrong("a {m,n} with n below m");
    } else {
      return part;
    }
    take('?');  // lazy: whether a line matches is the same
    return add(std::move(out));
  }

  Result<std::uint32_t> number() {
    std::uint32_t out = 0;
    bool any = false;
    for (; at_ < text_.size() && '0' <= text_[at_] && text_[at_] <= '9'; ++at_, any = true) {
      out = out * 10 + static_cast<std::uint32_t>(text_[at_] - '0');
      if (kTimesMax < out) return wrong("a repetition of more than 1000");
    }
    if (!any) return wrong("no number where one must be");
    return out;
  }

  Result<std::size_t> atom(std::size_t depth) {
    const char c = text_[at_++];
    switch (c) {
      case '(': {
        if (take('?') && !take(':')) return wrong("a (?, of which only (?: is known");
        PROCTOR_TRY(const std::size_t inner, either(depth + 1));
        if (!take(')')) return wrong("a ( without its )");
        return inner;
      }
      case '[':
        return brackets();
      case '.':
        return add_set(ByteSet().set());
      case '^':
        return add({Node::Kind::kBegin});
      case '$':
        return add({Node::Kind::kEnd});
      case '*':
      case '+':
      case '?':
        --at_;
        return wrong("a repetition of nothing");
      case '\\':
        return escaped();
      default:
        return add_set(ByteSet().set(place_of(c)));
    }
  }

  Result<std::size_t> escaped() {
    if (at_ == text_.size()) return wrong("a \\ at its end");
    if (take('b')) return add({Node::Kind::kWord});
    if (take('B')) return add({Node::Kind::kNoWord});
    PROCTOR_TRY(const ByteSet set, escape_set());
    return add_set(set);
  }

  // Behind a backslash.
  Result<ByteSet> escape_set() {
    if (at_ == text_.size()) return wrong("a \\ at its end");
    const char c = text_[at_++];
    if (const auto known = class_of(c)) return *known;
    constexpr std::string_view kLetters = "tnrfv", kBytes = "\t\n\r\f\v";
    if (const std::size_t i = kLetters.find(c); i != std::string_view::npos)
      return ByteSet().set(place_of(kBytes[i]));
    if (is_word(c)) return wrong("a \\ before a letter or digit that has no meaning here");
    return ByteSet().set(place_of(c));
  }

  Result<std::size_t> brackets() {
    ByteSet set;
    const bool all_but = take('^');
    for (bool first = true; first || !has(']'); first = false) {
      if (at_ == text_.size()) return wrong("a [ without its ]");
      const std::size_t begin = at_;
      const char low = text_[at_++];
      if (low == '\\') {
        PROCTOR_TRY(const ByteSet escape, escape_set());
        set |= escape;
        if (escape.count() != 1 || !is_range()) continue;
      }
      if (!is_range()) {
        if (low != '\\') set.set(place_of(low));
        continue;
      }
      ++at_;  // the -
      PROCTOR_TRY(const unsigned high, end_of_range());
      const unsigned from = low == '\\' ? first_of(begin) : static_cast<unsigned>(place_of(low));
      if (high < from) return wrong("a range that ends before it begins");
      set |= range(from, high);
    }
    ++at_;
    return add_set(all_but ? ~set : set);
  }
  bool is_range() const { return has('-') && at_ + 1 < text_.size() && text_[at_ + 1] != ']'; }
  // Of the escape of one byte that begins there.
  unsigned first_of(std::size_t begin) const {
    PatternReader again(text_);
    again.at_ = begin + 1;
    const auto set = again.escape_set();
    for (unsigned c = 0; set.ok() && c < set->size(); ++c)
      if ((*set)[c]) return c;
    return 0;
  }
  Result<unsigned> end_of_range() {
    const char c = text_[at_++];
    if (c != '\\') return static_cast<unsigned>(place_of(c));
    const std::size_t begin = at_ - 1;
    PROCTOR_TRY(const ByteSet set, escape_set());
    if (set.count() != 1) return wrong("a range that ends with a class");
    return first_of(begin);
  }

  const std::string_view text_;
  std::size_t at_ = 0;
  bool folds_ = false;
  std::vector<Node> nodes_;
};
}  // namespace

// Steps of a pattern from its nodes.
class PatternWriter {
  using Op = LinePattern::Step::Op;

 public:
  PatternWriter(const std::vector<Node>& nodes, LinePattern& out) : nodes_(nodes), out_(out) {}

  // False: there would be too many.
  bool write(std::size_t node) {
    // What writes no step, an empty group a thousand times a thousand times, is bounded as well.
    constexpr std::size_t kVisitsMax = 20 * LinePattern::kStepsMax;
    if (kVisitsMax < ++visits_) return false;
    const Node& n = nodes_[node];
    switch (n.kind) {
      case Node::Kind::kEmpty:
        return true;
      case Node::Kind::kSet:
        out_.sets_.push_back(n.set);
        return step(Op::kSet, static_cast<std::uint32_t>(out_.sets_.size() - 1));
      case Node::Kind::kBegin:
        return step(Op::kBegin);
      case Node::Kind::kEnd:
        return step(Op::kEnd);
      case Node::Kind::kWord:
        return step(Op::kWord);
      case Node::Kind::kNoWord:
        return step(Op::kNoWord);
      case Node::Kind::kRow:
        return std::all_of(n.parts.begin(), n.parts.end(), [&](auto part) { return write(part); });
      case Node::Kind::kEither:
        return either(n);
      case Node::Kind::kTimes:
        return times(n);
    }
    return true;
  }
  bool match() { return step(Op::kMatch); }

 private:
  std::uint32_t here() const { return static_cast<std::uint32_t>(out_.steps_.size()); }
  bool step(Op op, std::uint32_t a = 0, std::uint32_t b = 0) {
    if (LinePattern::kStepsMax <= out_.steps_.size()) return false;
    out_.steps_.push_back({op, a, b});
    return true;
  }

  bool either(const Node& n) {
    std::vector<std::uint32_t> ends;
    for (std::size_t i = 0; i < n.parts.size(); ++i) {
      const std::uint32_t split = here();
      const bool last = i + 1 == n.parts.size();
      if (!last && !step(Op::kSplit, split + 1)) return false;
      if (!write(n.parts[i])) return false;
      if (last) break;
      ends.push_back(here());
      if (!step(Op::kSplit)) return false;
      out_.steps_[split].b = here();
    }
    for (const std::uint32_t end : ends) out_.steps_[end].a = out_.steps_[end].b = here();
    return true;
  }

  bool times(const Node& n) {
    for (std::uint32_t i = 0; i < n.least; ++i)
      if (!write(n.parts[0])) return false;
    if (n.most == kNoEnd) {
      const std::uint32_t split = here();
      if (!step(Op::kSplit, split + 1) || !write(n.parts[0]) || !step(Op::kSplit, split, split))
        return false;
      out_.steps_[split].b = here();
      return true;
    }
    std::vector<std::uint32_t> splits;
    for (std::uint32_t i = n.least; i < n.most; ++i) {
      splits.push_back(here());
      if (!step(Op::kSplit, here() + 1) || !write(n.parts[0])) return false;
    }
    for (const std::uint32_t split : splits) out_.steps_[split].b = here();
    return true;
  }

  const std::vector<Node>& nodes_;
  LinePattern& out_;
  std::size_t visits_ = 0;
};

Result<LinePattern> LinePattern::compile(std::string_view pattern) {
  PatternReader reader(pattern);
  PROCTOR_TRY(const std::size_t root, reader.read());
  LinePattern out;
  PatternWriter writer(reader.nodes(), out);
  if (!writer.write(root) || !writer.match())
    return Error{Errc::kInvalid, "the pattern has repetitions that are too many together"};
  out.seen_.assign(out.steps_.size(), 0);
  return out;
}

LinePattern LinePattern::literal(std::string_view text) {
  LinePattern out;
  out.literal_ = text;
  out.is_literal_ = true;
  return out;
}

// Everything that can be reached without a byte joins those that wait for one.  True: a match.
bool LinePattern::follow(std::uint32_t begin, std::string_view line, std::size_t at) {
  open_.assign(1, begin);
  while (!open_.empty()) {
    const std::uint32_t i = open_.back();
    open_.pop_back();
    if (seen_[i] == round_) continue;
    seen_[i] = round_;
    const Step& s = steps_[i];
    const bool before = 0 < at && is_word(line[at - 1]);
    const bool behind = at < line.size() && is_word(line[at]);
    switch (s.op) {
      case Step::Op::kMatch:
        return true;
      case Step::Op::kSet:
        next_.push_back(i);
        break;
      case Step::Op::kSplit:
        open_.push_back(s.b);
        open_.push_back(s.a);
        break;
      case Step::Op::kBegin:
        if (at == 0) open_.push_back(i + 1);
        break;
      case Step::Op::kEnd:
        if (at == line.size()) open_.push_back(i + 1);
        break;
      case Step::Op::kWord:
        if (before != behind) open_.push_back(i + 1);
        break;
      case Step::Op::kNoWord:
        if (before == behind) open_.push_back(i + 1);
        break;
    }
  }
  return false;
}

bool LinePattern::matches(std::string_view line) {
  if (is_literal_) return line.find(literal_) != std::string_view::npos;
  now_.clear();
  for (std::size_t at = 0; at <= line.size(); ++at) {
    ++round_;
    next_.clear();
    for (const std::uint32_t i : now_) {
      if (!sets_[steps_[i].a][place_of(line[at - 1])]) continue;
      if (follow(i + 1, line, at)) return true;
    }
    if (follow(0, line, at)) return true;
    std::swap(now_, next_);
  }
  return false;
}
}  // namespace proctor
