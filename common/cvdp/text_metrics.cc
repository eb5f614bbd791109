#include "common/cvdp/text_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "common/cvdp/unicode.h"

namespace proctor::cvdp {
namespace {

// Words as numbers, the same word the same number.
class Numbered {
 public:
  std::vector<std::uint64_t> of(std::string_view text) {
    std::vector<std::uint64_t> out;
    for (const std::string_view word : split_words(text))
      out.push_back(numbers_.emplace(word, numbers_.size()).first->second);
    return out;
  }

 private:
  std::unordered_map<std::string_view, std::uint64_t> numbers_;  // never iterated
};

std::vector<std::uint64_t> pairs_of(const std::vector<std::uint64_t>& words) {
  std::vector<std::uint64_t> out;
  for (std::size_t i = 1; i < words.size(); ++i) out.push_back((words[i - 1] << 32U) | words[i]);
  return out;
}

// How many of `a` find a partner of their own in `b`.
std::size_t matches(std::vector<std::uint64_t> a, std::vector<std::uint64_t> b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  std::size_t n = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i] < b[j]) {
      ++i;
    } else if (b[j] < a[i]) {
      ++j;
    } else {
      ++n, ++i, ++j;
    }
  }
  return n;
}

double ratio(std::size_t above, std::size_t below) {
  return static_cast<double>(above) / static_cast<double>(below);
}

}  // namespace

double bleu2(std::string_view candidate, std::string_view reference) {
  Numbered words;
  const auto c = words.of(candidate);
  const auto r = words.of(reference);
  const std::size_t shared = matches(c, r);
  if (shared == 0) return 0;
  const auto pairs = pairs_of(c);
  const std::size_t shared_pairs = matches(pairs, pairs_of(r));
  const double p1 = ratio(shared, c.size());
  const double p2 =
      shared_pairs == 0 ? std::numeric_limits<double>::min() : ratio(shared_pairs, pairs.size());
  const double penalty = r.size() < c.size() ? 1.0 : std::exp(1.0 - ratio(r.size(), c.size()));
  return penalty * std::exp(0.5 * std::log(p1) + 0.5 * std::log(p2));
}

Result<double> rouge2(std::string_view candidate, std::string_view reference) {
  const std::string c_text = without_punctuation(lower_text(candidate));
  const std::string r_text = without_punctuation(lower_text(reference));
  Numbered words;
  auto c = pairs_of(words.of(c_text));
  auto r = pairs_of(words.of(r_text));
  if (r.empty()) return Error{Errc::kInvalid, "the reference has less than two words"};
  const std::size_t below = r.size();
  for (auto* v : {&c, &r}) {
    std::sort(v->begin(), v->end());
    v->erase(std::unique(v->begin(), v->end()), v->end());
  }
  return ratio(matches(std::move(c), std::move(r)), below);
}

}  // namespace proctor::cvdp
