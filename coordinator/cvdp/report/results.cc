#include "coordinator/cvdp/report/results.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "coordinator/cvdp/pycompat/python_text.h"

namespace proctor::cvdp {
namespace {
std::uint64_t mixed(std::uint64_t key) {
  return key * 0x9E3779B97F4A7C15U;
}

// Where a key is, or would be, in a table of a power of two slots that is never full.  `ends`: is
// this slot empty, or the key's?
template <class Slot, class Ends>
std::size_t place_in(const std::vector<Slot>& slots, std::uint64_t hash, Ends ends) {
  const std::size_t mask = slots.size() - 1;
  std::size_t i = static_cast<std::size_t>(hash >> 32U) & mask;
  while (!ends(slots[i])) i = (i + 1) & mask;
  return i;
}

// Words of two texts as numbers from 1, the same word the same number.
class Numbered {
 public:
  explicit Numbered(std::size_t words) : slots_(std::bit_ceil(words + words / 2 + 2)) {}
  // `words` are parts of `text`.
  std::vector<std::uint32_t> of(std::string_view text, const std::vector<std::string_view>& words) {
    std::vector<std::uint32_t> out(words.size());
    const char* const end = text.data() + text.size();
    for (std::size_t i = 0; i < words.size(); ++i) out[i] = number_of(words[i], end);
    return out;
  }
  std::uint32_t last() const { return last_; }

 private:
  // Without initialisers, so that a table is cleared in one piece.
  struct Slot {
    std::uint64_t head;  // see head_of()
    const char* word;
    std::uint32_t size;
    std::uint32_t number;  // 0: nothing is here
  };

  // The first bytes of a word, with those after a short one cleared.  Nearly every word is short
  // and stands far enough from the text's end to be read in one piece.
  static std::uint64_t head_of(std::string_view word, const char* end) {
    std::uint64_t head = 0;
    if (static_cast<std::size_t>(end - word.data()) < sizeof head) {
      std::memcpy(&head, word.data(), word.size());
      return head;
    }
    std::memcpy(&head, word.data(), sizeof head);
    const std::size_t after = word.size() < sizeof head ? sizeof head - word.size() : 0;
    return head & ~std::uint64_t{0} >> (8 * after);
  }

  std::uint32_t number_of(std::string_view word, const char* end) {
    static_assert(std::endian::native == std::endian::little);
    const std::uint64_t head = head_of(word, end);
    std::uint64_t hash = mixed(head + word.size());
    if (sizeof head < word.size()) hash ^= mixed(std::hash<std::string_view>()(word));
    Slot& slot = slots_[place_in(slots_, hash, [&](const Slot& s) {
      if (s.number == 0) return true;
      return s.head == head && s.size == word.size() &&
             (word.size() <= sizeof head || std::memcmp(s.word, word.data(), word.size()) == 0);
    })];
    if (slot.number == 0)
      slot = {head, word.data(), static_cast<std::uint32_t>(word.size()), ++last_};
    return slot.number;
  }

  std::vector<Slot> slots_;
  std::uint32_t last_ = 0;
};

std::size_t shared_words(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b,
                         std::uint32_t last) {
  std::vector<std::uint32_t> left(last + std::size_t{1});
  for (const std::uint32_t word : b) ++left[word];
  std::size_t n = 0;
  for (const std::uint32_t word : a) {
    const std::uint32_t one = left[word] == 0 ? 0U : 1U;
    left[word] -= one;
    n += one;
  }
  return n;
}

std::uint64_t pair_at(const std::vector<std::uint32_t>& words, std::size_t i) {
  return std::uint64_t{words[i - 1]} << 32U | words[i];
}

std::size_t shared_pairs(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) {
  const std::size_t slots = std::bit_ceil(2 * b.size() + 2);
  std::vector<std::uint64_t> keys(slots);  // 0: nothing is here; no pair is 0
  std::vector<std::uint32_t> left(slots);  // how many have no partner yet
  const auto place = [&keys](std::uint64_t pair) {
    return place_in(keys, mixed(pair ^ pair >> 29U),
                    [pair](std::uint64_t key) { return key == 0 || key == pair; });
  };
  for (std::size_t i = 1; i < b.size(); ++i) {
    const std::size_t at = place(pair_at(b, i));
    keys[at] = pair_at(b, i);
    ++left[at];
  }
  std::size_t n = 0;
  for (std::size_t i = 1; i < a.size(); ++i) {
    std::uint32_t& some = left[place(pair_at(a, i))];
    const std::uint32_t one = some == 0 ? 0U : 1U;
    some -= one;
    n += one;
  }
  return n;
}

std::vector<std::uint64_t> set_of_pairs(const std::vector<std::uint32_t>& words) {
  std::vector<std::uint64_t> out;
  out.reserve(words.size());
  for (std::size_t i = 1; i < words.size(); ++i) out.push_back(pair_at(words, i));
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

double ratio(std::size_t above, std::size_t below) {
  return static_cast<double>(above) / static_cast<double>(below);
}
}  // namespace

double bleu2(std::string_view candidate, std::string_view reference) {
  const auto c_words = split_words(candidate);
  const auto r_words = split_words(reference);
  Numbered words(c_words.size() + r_words.size());
  const auto c = words.of(candidate, c_words);
  const auto r = words.of(reference, r_words);
  const std::size_t shared = shared_words(c, r, words.last());
  if (shared == 0) return 0;
  const std::size_t both = shared_pairs(c, r);
  const double p1 = ratio(shared, c.size());
  const double p2 = both == 0 ? std::numeric_limits<double>::min() : ratio(both, c.size() - 1);
  const double penalty = r.size() < c.size() ? 1.0 : std::exp(1.0 - ratio(r.size(), c.size()));
  return penalty * std::exp(0.5 * std::log(p1) + 0.5 * std::log(p2));
}

Result<double> rouge2(std::string_view candidate, std::string_view reference) {
  const std::string c_text = without_punctuation(lower_text(candidate));
  const std::string r_text = without_punctuation(lower_text(reference));
  const auto c_words = split_words(c_text);
  const auto r_words = split_words(r_text);
  Numbered words(c_words.size() + r_words.size());
  const auto c = words.of(c_text, c_words);
  const auto r = words.of(r_text, r_words);
  if (r.size() < 2) return Error{Errc::kInvalid, "the reference has less than two words"};
  const auto c_pairs = set_of_pairs(c), r_pairs = set_of_pairs(r);
  std::vector<std::uint64_t> both;
  std::set_intersection(c_pairs.begin(), c_pairs.end(), r_pairs.begin(), r_pairs.end(),
                        std::back_inserter(both));
  return ratio(both.size(), r.size() - 1);
}

namespace {
std::string share(const Verdicts& t) {
  return fmt::format("{} of {}", t.passed, t.verdicts);
}

std::string if_flaky(const Verdicts& t) {
  return 0 < t.passed && t.passed < t.verdicts ? "flaky: " : "";
}
}  // namespace

std::string unsound(const Verdicts& golden, const Verdicts& untouched, std::size_t samples) {
  if (golden.verdicts < samples || untouched.verdicts < samples)
    return "no verdict: " + (golden.why.empty() ? untouched.why : golden.why);
  std::string out;
  if (golden.passed < golden.verdicts)
    out = if_flaky(golden) + "the reference passed " + share(golden);
  if (0 < untouched.passed)
    out += (out.empty() ? "" : "; ") + if_flaky(untouched) + "without any change " +
           share(untouched) + " passed";
  return out;
}

namespace {
constexpr int kKilled = 128 + 9, kOverQuota = -9;

Value or_null(const std::optional<std::string>& text) {
  return text ? Value(*text) : Value();
}
}  // namespace

TestResult failed(std::string why) {
  TestResult out;
  out.error = std::move(why);
  return out;
}

TestResult test_result(const ServiceEnd& end) {
  TestResult out;
  out.seconds = static_cast<double>(end.wall_ms) / 1000;
  if (end.ended == "exited") {
    out.result = end.exit_code;
    return out;
  }
  out.error = end.why.empty() ? "no verdict: " + end.ended : end.why;
  if (end.ended == "timed_out") {
    out.error = fmt::format("killed after {} s, its time limit", end.timeout_ms / 1000);
  } else if (end.ended == "memory" || end.ended == "cpu") {
    out.result = kKilled;
  } else if (end.ended == "disk") {
    out.result = kOverQuota;
  } else if (end.ended == "signalled") {
    out.result = end.exit_code == 0 ? kKilled : end.exit_code;
  }
  return out;
}

Value item_json(std::string_view category, std::string_view difficulty,
                const std::vector<TestResult>& tests) {
  Array list;
  std::int64_t errors = 0;
  for (const TestResult& t : tests) {
    // Upstream writes a truth value for what a model judged.
    const bool judged = t.judged && t.judged->score;
    Object test =
        object_of("result", judged ? Value(t.result != 0) : Value(t.result), "log", or_null(t.log),
                  "error_msg", or_null(t.error), "execution", real(t.seconds));
    if (t.bleu) test.append("bleu_score", real(*t.bleu));
    if (t.judged) test.append("llm_score", t.judged->score ? real(*t.judged->score) : Value());
    errors += t.result;
    list.emplace_back(std::move(test));
  }
  const bool judged = tests.size() == 1 && tests[0].judged && tests[0].judged->score;
  return object_of("category", category, "difficulty", difficulty, "tests", std::move(list),
                   "errors", judged ? Value(errors != 0) : Value(errors));
}

bool passes(const std::vector<TestResult>& tests) {
  return std::all_of(tests.begin(), tests.end(), [](const TestResult& t) { return t.result == 0; });
}

bool needs_judge(const Record& record) {
  const int category = category_number(record.category);
  return category == 9 || category == 10;
}

std::string_view problem_of(const Record& record) {
  const std::string* s = text_at(record.value, "prompt");
  if (s == nullptr) s = prompt_of(record);
  if (s == nullptr) s = text_at(object_at(record.value, "input"), "text");
  return s == nullptr ? std::string_view() : std::string_view(*s);
}

ScoredAnswer judged_answer(const Record& record, const std::string& answer,
                           const Result<Judgement>& judgement) {
  TestResult test;
  test.judged.emplace();
  std::string log = fmt::format("problem:\n{}\n\nreference:\n{}\n\nanswer:\n{}\n\n",
                                problem_of(record), reference_of(record), answer);
  if (judgement.ok()) {
    test.judged->score = judgement->score;
    test.result = judgement->pass ? 0 : 1;
    log += "score: " + python_repr(judgement->score) + "\n" + judgement->reasoning + "\n";
  } else {
    test.error = "Failed to execute subjective tests: " + judgement.error().detail;
    log += *test.error + "\n";
  }
  return {{std::move(test)}, {std::move(log)}};
}

ScoredAnswer score_answer(const Record& record, const std::optional<std::string>& answer) {
  ScoredAnswer out;
  const auto fail = [](const char* why) { return ScoredAnswer{{failed(why)}, {""}}; };
  if (!answer) return fail("No content for subjective scoring");
  if (answer->empty()) return fail("Empty content for subjective scoring");
  const std::string_view reference = reference_of(record);
  const Result<double> rouge = rouge2(*answer, reference);
  if (!rouge.ok())
    return fail("Failed to execute subjective tests: the reference has less than two words");
  const double bleu = bleu2(*answer, reference);
  // Upstream writes the number of failed metrics into both.
  const int misses = (kTextScoreBar < *rouge ? 0 : 1) + (kTextScoreBar < bleu ? 0 : 1);
  const auto add = [&](const char* name, double score) {
    TestResult test;
    test.result = misses;
    out.tests.push_back(std::move(test));
    out.logs.push_back(fmt::format("reference:\n{}\n\nanswer:\n{}\n\n{}: {}\n", reference, *answer,
                                   name, python_repr(score)));
  };
  add("ROUGE", *rouge);
  add("BLEU", bleu);
  if (!needs_judge(record)) out.tests.back().bleu = bleu;
  return out;
}
}  // namespace proctor::cvdp
