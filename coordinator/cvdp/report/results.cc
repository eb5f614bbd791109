#include "coordinator/cvdp/report/results.h"

#include <algorithm>

#include "coordinator/cvdp/report/text_metrics.h"

namespace proctor::cvdp {
namespace {
std::string share(const Verdicts& t) {
  return std::to_string(t.passed) + " of " + std::to_string(t.verdicts);
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

TestResult test_result(const ServiceEnd& end) {
  TestResult out;
  out.seconds = static_cast<double>(end.wall_ms) / 1000;
  if (end.ended == "exited") {
    out.result = end.exit_code;
    return out;
  }
  out.error = end.why.empty() ? "no verdict: " + end.ended : end.why;
  if (end.ended == "timed_out") {
    out.error = "killed after " + std::to_string(end.timeout_ms / 1000) + " s, its time limit";
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
    Object test;
    // Upstream writes a truth value for what a model judged.
    if (t.judged && t.judged->score)
      test.append("result", t.result != 0);
    else
      test.append("result", t.result);
    test.append("log", or_null(t.log));
    test.append("error_msg", or_null(t.error));
    test.append("execution", real(t.seconds));
    if (t.bleu) test.append("bleu_score", real(*t.bleu));
    if (t.judged) test.append("llm_score", t.judged->score ? real(*t.judged->score) : Value());
    errors += t.result;
    list.emplace_back(std::move(test));
  }
  Object item;
  item.append("category", category);
  item.append("difficulty", difficulty);
  item.append("tests", std::move(list));
  const bool judged = tests.size() == 1 && tests[0].judged && tests[0].judged->score;
  item.append("errors", judged ? Value(errors != 0) : Value(errors));
  return item;
}

bool passes(const std::vector<TestResult>& tests) {
  return std::all_of(tests.begin(), tests.end(), [](const TestResult& t) { return t.result == 0; });
}

bool needs_judge(const Record& record) {
  const int category = category_number(record.category);
  return category == 9 || category == 10;
}

std::string_view problem_of(const Record& record) {
  if (const std::string* s = text_at(record.value, "prompt")) return *s;
  if (const std::string* s = prompt_of(record)) return *s;
  const Object* input = object_at(record.value, "input");
  const std::string* s = input == nullptr ? nullptr : text_at(*input, "text");
  return s == nullptr ? std::string_view() : std::string_view(*s);
}

ScoredAnswer judged_answer(const Record& record, const std::string& answer,
                           const Result<Judgement>& judgement) {
  TestResult test;
  test.judged.emplace();
  std::string log = "problem:\n" + std::string(problem_of(record)) + "\n\nreference:\n" +
                    std::string(reference_of(record)) + "\n\nanswer:\n" + answer + "\n\n";
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
  const auto fail = [&out](const char* why) {
    TestResult test;
    test.error = why;
    out.tests.push_back(std::move(test));
    out.logs.emplace_back();
  };
  if (!answer) fail("No content for subjective scoring");
  if (answer && answer->empty()) fail("Empty content for subjective scoring");
  if (!out.tests.empty()) return out;
  const std::string_view reference = reference_of(record);
  const Result<double> rouge = rouge2(*answer, reference);
  if (!rouge.ok()) {
    fail("Failed to execute subjective tests: the reference has less than two words");
    return out;
  }
  const double bleu = bleu2(*answer, reference);
  // Upstream writes the number of failed metrics into both.
  const int failed = (kTextScoreBar < *rouge ? 0 : 1) + (kTextScoreBar < bleu ? 0 : 1);
  const auto add = [&](const char* name, double score) {
    TestResult test;
    test.result = failed;
    out.tests.push_back(std::move(test));
    out.logs.push_back("reference:\n" + std::string(reference) + "\n\nanswer:\n" + *answer +
                       "\n\n" + name + ": " + python_repr(score) + "\n");
  };
  add("ROUGE", *rouge);
  add("BLEU", bleu);
  if (!needs_judge(record)) out.tests.back().bleu = bleu;
  return out;
}
}  // namespace proctor::cvdp
