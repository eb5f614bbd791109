#pragma once
// Results of one item: how near a text is to its reference, and how an exit code becomes a result.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "coordinator/cvdp/dataset/record.h"

namespace proctor::cvdp {
// How near an answer in words is to its reference: BLEU as NLTK's sentence_bleu computes it and
// upstream's own "ROUGE", to the last bit.  Pure; any thread.
// Source: CVDP 8.5; Papineni et al. 2002.

// Words and pairs of words, weighted equally, one reference, brevity penalty, no smoothing.
// 0 when no word is shared; with words but no pair shared about 1e-154, as NLTK has it.
double bleu2(std::string_view candidate, std::string_view reference);

// The part of the reference's word pairs that the candidate has too, each counted once above the
// line and as often as it comes below it.  kInvalid: the reference has less than two words.
Result<double> rouge2(std::string_view candidate, std::string_view reference);

// Both must be above this, not at it.
inline constexpr double kTextScoreBar = 0.40;

// Results of problems: whether one is sound, raw_result.json, and answers in words.
// Pure; any thread.

// Does a problem tell a right answer from none?  Its reference must pass every time and the
// untouched context never.  Source: CVDP 9.8 (sanity_check).

// The verdicts of one problem in one mode.
struct Verdicts {
  std::size_t passed = 0, verdicts = 0;
  std::string why;  // of a run without one
};
// The fault of the problem, "flaky: ..." where the same thing passed and failed; empty: nothing.
std::string unsound(const Verdicts& golden, const Verdicts& untouched, std::size_t samples);

// raw_result.json: what a problem's services ended as, in upstream's words, so that its tools and
// people's scripts read it.  Source: CVDP 5.4, 5.5, 9.1, 8.5.
//
// A result is the service's exit code, as upstream has it; 0 passes.  Ends that upstream cannot
// tell apart have a code and a message here: over time 1, out of memory 137, over its disk quota
// -9, no verdict 1.

// How the container of one service ended.
struct ServiceEnd {
  std::string
      ended;  // exited, signalled, timed_out, memory, disk, cpu, cancelled, not_run (report.json)
  int exit_code = 0;
  std::uint64_t wall_ms = 0;
  std::uint64_t timeout_ms = 0;
  std::string why;
};
struct TestResult {
  std::int64_t result = 1;
  std::optional<std::string> log;  // its path
  std::optional<std::string> error;
  double seconds = 0;
  std::optional<double> bleu{};
  // By a model: its score, or none where it gave none.
  struct Judged {
    std::optional<double> score;
  };
  std::optional<Judged> judged{};
};
TestResult test_result(const ServiceEnd& end);
// The result of a test that never ran.
TestResult failed(std::string why);

// Its member of raw_result.json; `errors` is the sum of the results, as upstream's.
Value item_json(std::string_view category, std::string_view difficulty,
                const std::vector<TestResult>& tests);
bool passes(const std::vector<TestResult>& tests);

// A problem whose answer is text, as upstream's golden and no-patch runs score it without a judge:
// BLEU and ROUGE of `answer` against the reference.  nullopt as the answer: one failed test.
struct ScoredAnswer {
  std::vector<TestResult> tests;  // without logs
  std::vector<std::string> logs;  // what is in them, one each
};
// Upstream's reports count these as failed where no model judges, whatever their tests say.
bool needs_judge(const Record& record);
ScoredAnswer score_answer(const Record& record, const std::optional<std::string>& answer);
// The same by a model's word.  An error: it gave no score, and why.
ScoredAnswer judged_answer(const Record& record, const std::string& answer,
                           const Result<Judgement>& judgement);
// The problem as a judge gets it: upstream's order of members.
std::string_view problem_of(const Record& record);
}  // namespace proctor::cvdp
