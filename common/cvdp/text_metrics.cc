#include "common/cvdp/text_metrics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "common/cvdp/unicode.h"

namespace proctor::cvdp {
namespace {

// A table from keys to small numbers, open addressing, never iterated.  Requires: less than half
// full.
template <class Key, class Hash>
class FlatTable {
 public:
  explicit FlatTable(std::size_t keys) : slots_(std::bit_ceil(2 * keys + 2)) {}
  std::uint32_t& at(Key key) {
    std::size_t i = Hash()(key) & (slots_.size() - 1);
    while (slots_[i].used && slots_[i].key != key) i = (i + 1) & (slots_.size() - 1);
    slots_[i].used = true;
    slots_[i].key = key;
    return slots_[i].value;
  }
  // Null where there is no such key.
  std::uint32_t* find(Key key) {
    std::size_t i = Hash()(key) & (slots_.size() - 1);
    while (slots_[i].used && slots_[i].key != key) i = (i + 1) & (slots_.size() - 1);
    return slots_[i].used ? &slots_[i].value : nullptr;
  }

 private:
  struct Slot {
    Key key{};
    std::uint32_t value = 0;
    bool used = false;
  };
  std::vector<Slot> slots_;
};
struct MixHash {
  std::size_t operator()(std::uint64_t key) const {
    return static_cast<std::size_t>((key * 0x9E3779B97F4A7C15U) >> 20U);
  }
};

// Words of two texts as numbers from 1, the same word the same number.
class Numbered {
 public:
  explicit Numbered(std::size_t words) : numbers_(words) {}
  std::vector<std::uint64_t> of(const std::vector<std::string_view>& words) {
    std::vector<std::uint64_t> out;
    out.reserve(words.size());
    for (const std::string_view word : words) {
      std::uint32_t& number = numbers_.at(word);
      if (number == 0) number = ++last_;
      out.push_back(number);
    }
    return out;
  }

 private:
  FlatTable<std::string_view, std::hash<std::string_view>> numbers_;
  std::uint32_t last_ = 0;
};

std::vector<std::uint64_t> pairs_of(const std::vector<std::uint64_t>& words) {
  std::vector<std::uint64_t> out;
  out.reserve(words.size());
  for (std::size_t i = 1; i < words.size(); ++i) out.push_back((words[i - 1] << 32U) | words[i]);
  return out;
}

// How many of `a` find a partner of their own in `b`.
std::size_t matches(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
  FlatTable<std::uint64_t, MixHash> left(b.size());
  for (const std::uint64_t key : b) ++left.at(key);
  std::size_t n = 0;
  for (const std::uint64_t key : a) {
    std::uint32_t* const count = left.find(key);
    if (count == nullptr || *count == 0) continue;
    --*count;
    ++n;
  }
  return n;
}

double ratio(std::size_t above, std::size_t below) {
  return static_cast<double>(above) / static_cast<double>(below);
}

}  // namespace

double bleu2(std::string_view candidate, std::string_view reference) {
  const auto c_words = split_words(candidate);
  const auto r_words = split_words(reference);
  Numbered words(c_words.size() + r_words.size());
  const auto c = words.of(c_words);
  const auto r = words.of(r_words);
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
  const auto c_words = split_words(c_text);
  const auto r_words = split_words(r_text);
  Numbered words(c_words.size() + r_words.size());
  auto c = pairs_of(words.of(c_words));
  auto r = pairs_of(words.of(r_words));
  if (r.empty()) return Error{Errc::kInvalid, "the reference has less than two words"};
  const std::size_t below = r.size();
  for (auto* v : {&c, &r}) {
    std::sort(v->begin(), v->end());
    v->erase(std::unique(v->begin(), v->end()), v->end());
  }
  return ratio(matches(c, r), below);
}

}  // namespace proctor::cvdp
