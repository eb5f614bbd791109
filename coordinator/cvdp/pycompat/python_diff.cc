#include "coordinator/cvdp/pycompat/python_diff.h"

#include <algorithm>
#include <unordered_map>

namespace proctor::cvdp {
namespace {
using Lines = std::span<const std::string_view>;

// Where each line of the old text stands in the new one.
class Places {
 public:
  Places(Lines old_lines, Lines new_lines) {
    std::unordered_map<std::string_view, std::size_t> kinds;  // never iterated
    kinds.reserve(new_lines.size());
    new_kinds_.reserve(new_lines.size());
    std::vector<std::size_t> counts;
    for (const std::string_view line : new_lines) {
      const auto [it, fresh] = kinds.emplace(line, counts.size());
      if (fresh) counts.push_back(0);
      ++counts[it->second];
      new_kinds_.push_back(it->second);
    }
    // Lines that are everywhere have no places to look at.
    constexpr std::size_t kPopularFrom = 200;
    const std::size_t popular =
        kPopularFrom <= new_lines.size() ? new_lines.size() / 100 + 1 : new_lines.size();
    from_.push_back(0);
    for (std::size_t& count : counts) {
      if (popular < count) count = 0;
      from_.push_back(from_.back() + count);
    }
    at_.resize(from_.back());
    std::vector<std::size_t> next(from_.begin(), from_.end());
    for (std::size_t j = 0; j < new_kinds_.size(); ++j)
      if (const std::size_t kind = new_kinds_[j]; counts[kind] != 0) at_[next[kind]++] = j;
    old_kinds_.reserve(old_lines.size());
    for (const std::string_view line : old_lines) {
      const auto it = kinds.find(line);
      old_kinds_.push_back(it == kinds.end() ? kNowhere : it->second);
    }
  }
  std::span<const std::size_t> of_old(std::size_t i) const {
    const std::size_t kind = old_kinds_[i];
    if (kind == kNowhere) return {};
    return std::span(at_).subspan(from_[kind], from_[kind + 1] - from_[kind]);
  }
  bool equal(std::size_t i, std::size_t j) const { return old_kinds_[i] == new_kinds_[j]; }

 private:
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);
  std::vector<std::size_t> at_;    // lines of the new text, by kind, ascending
  std::vector<std::size_t> from_;  // where each kind begins in at_
  std::vector<std::size_t> old_kinds_;
  std::vector<std::size_t> new_kinds_;
};

struct Range {
  std::size_t old_from, old_to, new_from, new_to;
};

class Matcher {
 public:
  Matcher(Lines old_lines, Lines new_lines, std::uint64_t steps_max)
      : old_size_(old_lines.size()),
        new_size_(new_lines.size()),
        places_(old_lines, new_lines),
        steps_left_(steps_max),
        length_(new_lines.size() + 1, 0),
        next_length_(new_lines.size() + 1, 0) {}

  Result<std::vector<MatchingBlock>> blocks() {
    std::vector<Range> todo = {{0, old_size_, 0, new_size_}};
    std::vector<MatchingBlock> found;
    while (!todo.empty()) {
      const Range r = todo.back();
      todo.pop_back();
      const MatchingBlock m = longest(r);
      if (steps_left_ == 0) return Error{Errc::kExhausted, "these texts take too long to compare"};
      if (m.size == 0) continue;
      found.push_back(m);
      if (r.old_from < m.old_at && r.new_from < m.new_at)
        todo.push_back({r.old_from, m.old_at, r.new_from, m.new_at});
      if (m.old_at + m.size < r.old_to && m.new_at + m.size < r.new_to)
        todo.push_back({m.old_at + m.size, r.old_to, m.new_at + m.size, r.new_to});
    }
    return joined(std::move(found));
  }

 private:
  // The longest common block in the range; of several the first in the old text, of these the first
  // in the new one.
  MatchingBlock longest(const Range& r) {
    MatchingBlock best{r.old_from, r.new_from, 0};
    // length_[j + 1]: how long the block is that ends at the last old line and new line j.
    for (std::size_t i = r.old_from; i < r.old_to && steps_left_ != 0; ++i) {
      touched_next_.clear();
      const auto places = places_.of_old(i);
      const auto first = std::lower_bound(places.begin(), places.end(), r.new_from);
      for (auto it = first; it != places.end() && *it < r.new_to; ++it) {
        const std::size_t j = *it;
        const std::size_t k = length_[j] + 1;
        next_length_[j + 1] = k;
        touched_next_.push_back(j + 1);
        if (best.size < k) best = {i + 1 - k, j + 1 - k, k};
      }
      const std::uint64_t work = touched_next_.size() + 1;
      steps_left_ -= std::min(steps_left_, work);
      for (const std::size_t j : touched_) length_[j] = 0;
      std::swap(length_, next_length_);
      std::swap(touched_, touched_next_);
    }
    for (const std::size_t j : touched_) length_[j] = 0;
    touched_.clear();
    return grown(best, r);
  }

  // Lines that were not looked for may still prolong a block.
  MatchingBlock grown(MatchingBlock m, const Range& r) const {
    while (r.old_from < m.old_at && r.new_from < m.new_at &&
           places_.equal(m.old_at - 1, m.new_at - 1))
      m = {m.old_at - 1, m.new_at - 1, m.size + 1};
    while (m.old_at + m.size < r.old_to && m.new_at + m.size < r.new_to &&
           places_.equal(m.old_at + m.size, m.new_at + m.size))
      ++m.size;
    return m;
  }

  std::vector<MatchingBlock> joined(std::vector<MatchingBlock> found) const {
    std::sort(found.begin(), found.end(), [](const MatchingBlock& a, const MatchingBlock& b) {
      return a.old_at != b.old_at ? a.old_at < b.old_at : a.new_at < b.new_at;
    });
    std::vector<MatchingBlock> out;
    for (const MatchingBlock& m : found) {
      if (!out.empty() && out.back().old_at + out.back().size == m.old_at &&
          out.back().new_at + out.back().size == m.new_at)
        out.back().size += m.size;
      else
        out.push_back(m);
    }
    out.push_back({old_size_, new_size_, 0});
    return out;
  }

  std::size_t old_size_;
  std::size_t new_size_;
  Places places_;
  std::uint64_t steps_left_;
  std::vector<std::size_t> length_;
  std::vector<std::size_t> next_length_;
  std::vector<std::size_t> touched_;
  std::vector<std::size_t> touched_next_;
};

// A stretch of equal or of differing lines.
struct Step {
  bool equal = false;
  Range range{};
};

std::vector<Step> steps_of(const std::vector<MatchingBlock>& blocks) {
  std::vector<Step> out;
  std::size_t i = 0;
  std::size_t j = 0;
  for (const MatchingBlock& m : blocks) {
    if (i < m.old_at || j < m.new_at) out.push_back({false, {i, m.old_at, j, m.new_at}});
    i = m.old_at + m.size;
    j = m.new_at + m.size;
    if (m.size != 0) out.push_back({true, {m.old_at, i, m.new_at, j}});
  }
  return out;
}

constexpr std::size_t kContext = 3;

void keep_last(Range& r) {
  if (r.old_to - r.old_from <= kContext) return;
  r.old_from = r.old_to - kContext;
  r.new_from = r.new_to - kContext;
}
void keep_first(Range& r) {
  r.old_to = std::min(r.old_to, r.old_from + kContext);
  r.new_to = std::min(r.new_to, r.new_from + kContext);
}

// Stretches that share a hunk.
std::vector<std::vector<Step>> hunks_of(std::vector<Step> steps) {
  std::vector<std::vector<Step>> out;
  if (steps.empty()) return out;
  if (steps.front().equal) keep_last(steps.front().range);
  if (steps.back().equal) keep_first(steps.back().range);
  std::vector<Step> hunk;
  for (const Step& step : steps) {
    Step s = step;
    if (s.equal && 2 * kContext < s.range.old_to - s.range.old_from) {
      Step tail = s;
      keep_first(tail.range);
      hunk.push_back(tail);
      out.push_back(std::move(hunk));
      hunk.clear();
      keep_last(s.range);
    }
    hunk.push_back(s);
  }
  if (!hunk.empty() && !(hunk.size() == 1 && hunk.front().equal)) out.push_back(std::move(hunk));
  return out;
}

std::string range_text(std::size_t from, std::size_t to) {
  const std::size_t n = to - from;
  if (n == 1) return std::to_string(from + 1);
  return std::to_string(n == 0 ? from : from + 1) + "," + std::to_string(n);
}

void append_hunk(std::string& out, const std::vector<Step>& hunk, Lines old_lines,
                 Lines new_lines) {
  const Range &first = hunk.front().range, &last = hunk.back().range;
  out += "\n@@ -" + range_text(first.old_from, last.old_to) + " +" +
         range_text(first.new_from, last.new_to) + " @@";
  const auto put = [&](char mark, Lines lines, std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) {
      out += '\n';
      out += mark;
      out += lines[i];
    }
  };
  for (const Step& s : hunk) {
    if (s.equal) {
      put(' ', old_lines, s.range.old_from, s.range.old_to);
    } else {
      put('-', old_lines, s.range.old_from, s.range.old_to);
      put('+', new_lines, s.range.new_from, s.range.new_to);
    }
  }
}
}  // namespace

Result<std::vector<MatchingBlock>> matching_blocks(Lines old_lines, Lines new_lines,
                                                   std::uint64_t steps_max) {
  return Matcher(old_lines, new_lines, steps_max).blocks();
}

Result<std::string> unified_diff(Lines old_lines, Lines new_lines, std::string_view path) {
  PROCTOR_TRY(const auto blocks, matching_blocks(old_lines, new_lines));
  std::string out;
  for (const auto& hunk : hunks_of(steps_of(blocks))) {
    if (out.empty()) out = "--- a/" + std::string(path) + "\n+++ b/" + std::string(path);
    append_hunk(out, hunk, old_lines, new_lines);
  }
  return out;
}
}  // namespace proctor::cvdp
