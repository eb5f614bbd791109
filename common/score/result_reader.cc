#include "common/score/result_reader.h"

#include <set>

#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/score/test_results.h"

namespace proctor {
namespace {
CheckVerdict verdict(CheckOutcome outcome, std::string why) {
  CheckVerdict v;
  v.outcome = outcome;
  v.why = std::move(why);
  return v;
}

constexpr auto kEnded = each_once<ExecEnd>(std::to_array<Word<ExecEnd>>(
    {{"", ExecEnd::kExited},
     {"killed by signal ", ExecEnd::kSignalled},
     {"took longer than ", ExecEnd::kTimedOut},
     {"ran out of the memory that the policy allows", ExecEnd::kMemory},
     {"used more of the disk than the policy allows", ExecEnd::kDisk},
     {"used more CPU time than the policy allows", ExecEnd::kCpu},
     {"was cancelled", ExecEnd::kCancelled}}));

// Rule 1: nothing when the process ended by itself with an exit code that is its own.
std::optional<std::string> not_completed(const Check& check, const ExecFacts& facts) {
  std::string why(word_in(kEnded, facts.end));
  if (facts.end == ExecEnd::kTimedOut) why += std::to_string(check.timeout.count()) + " ms";
  if (facts.end == ExecEnd::kSignalled) why += std::to_string(facts.signal);
  if (!why.empty()) return why;
  if (facts.exit_code == 126) return "exit code 126: the command cannot be executed";
  if (facts.exit_code == 127) return "exit code 127: a command was not found";
  if (128 < facts.exit_code && facts.exit_code < 160)
    return "exit code " + std::to_string(facts.exit_code) + ": killed by signal " +
           std::to_string(facts.exit_code - 128);
  return std::nullopt;
}

std::string exit_text(const ExecFacts& facts) {
  return "exit code " + std::to_string(facts.exit_code);
}

// In a report and in an event: a byte may need six.
std::size_t written_bytes(const std::string& id) {
  constexpr std::size_t kEscaped = 6;
  std::size_t out = id.size();
  for (const char c : id)
    if (static_cast<unsigned char>(c) < ' ' || c == '"' || c == '\\') out += kEscaped - 1;
  return out;
}

struct Weighed {
  std::vector<std::string> failing;
  std::size_t required_missed = 0;  // failing, skipped or absent
  std::size_t absent = 0;
  std::string nearest;  // to the first that is absent: what did run
  std::size_t others_failing = 0;
  std::size_t bytes = 0;  // of `failing`

  void add(const std::string& id) {
    if (kFailingIdsMax <= failing.size() || kFailingBytes < bytes) return;
    bytes += written_bytes(id);
    if (failing.empty() || bytes <= kFailingBytes) failing.push_back(id);
  }
};

// "; TEST did not run, nearest that did: A, B", or nothing if no test ran.
std::string nearest_to(const std::string& id, const TestResults& results) {
  constexpr std::size_t kNearest = 3;
  std::string out;
  for (const std::string& test : results.nearest(id, kNearest))
    out += (out.empty() ? "; " + printable(id) + " did not run, nearest that did: " : ", ") +
           printable(test);
  return out;
}

Weighed weigh(const Check& check, const TestResults& results) {
  Weighed w;
  std::set<std::string> required;
  for (const auto* ids : {&check.fail_to_pass, &check.pass_to_pass}) {
    for (const std::string& id : *ids) {
      const auto it = results.find(id);
      const bool ran = it != results.tests.end();
      if (!required.insert(ran ? it->first : id).second) continue;
      if (ran && it->second == TestStatus::kPass) continue;
      ++w.required_missed;
      if (!ran && ++w.absent == 1) w.nearest = nearest_to(id, results);
      w.add(id);
    }
  }
  for (const auto& [id, status] : results.tests) {
    if (status != TestStatus::kFail || required.contains(id)) continue;
    ++w.others_failing;
    if (!check.others_may_fail || required.empty()) w.add(id);
  }
  return w;
}

// Rule 4.
void decide_by_tests(const Check& check, const ExecFacts& facts, const Weighed& w,
                     CheckVerdict& v) {
  const bool has_required = !check.fail_to_pass.empty() || !check.pass_to_pass.empty();
  const auto end = [&v](CheckOutcome outcome, std::string why) {
    v.outcome = outcome;
    v.why = std::move(why);
  };
  const auto first = [&w] { return printable(w.failing.front(), 200); };
  if (0 < w.required_missed) {
    const std::string which =
        w.absent == w.required_missed ? " did not run, first: " : " did not pass, first: ";
    return end(CheckOutcome::kFail,
               counted(w.required_missed, "required test") + which + first() + w.nearest);
  }
  if (has_required && check.others_may_fail) {
    std::string why = "every required test passed";
    if (0 < w.others_failing) why += "; " + std::to_string(w.others_failing) + " others may fail";
    return end(CheckOutcome::kPass, std::move(why));
  }
  if (0 < w.others_failing)
    return end(CheckOutcome::kFail,
               std::to_string(w.others_failing) + " failing, first: " + first());
  if (facts.exit_code != 0)
    return end(CheckOutcome::kFail, exit_text(facts) + " although no test failed");
  if (v.passed + v.skipped == 0) return end(CheckOutcome::kFail, "no test ran");
  return end(CheckOutcome::kPass, std::to_string(v.passed) + " passed");
}
}  // namespace

CheckVerdict judge(const Check& check, const ExecFacts& facts,
                   const std::optional<std::string>& result_file) {
  const std::optional<std::string> broken = not_completed(check, facts);
  if (check.reader == ResultReader::kExitCode) {
    if (broken) return verdict(CheckOutcome::kError, *broken);
    return verdict(facts.exit_code == 0 ? CheckOutcome::kPass : CheckOutcome::kFail,
                   exit_text(facts));
  }
  if (!result_file) {
    if (broken) return verdict(CheckOutcome::kError, *broken);
    return verdict(CheckOutcome::kError, exit_text(facts) + " and no result file " +
                                             printable(check.result_file, 200) + " of at most " +
                                             std::to_string(kResultFileBytes >> 20) + " MiB");
  }
  const Result<TestResults> results =
      check.reader == ResultReader::kJunit ? parse_junit(*result_file) : parse_tap(*result_file);
  if (!results.ok())
    return verdict(CheckOutcome::kError, broken ? *broken : results.error().detail);
  // An error still shows what its file says: a person will ask.
  CheckVerdict v;
  for (const auto& [id, status] : results->tests) {
    if (status == TestStatus::kPass) ++v.passed;
    if (status == TestStatus::kFail) ++v.failed;
    if (status == TestStatus::kSkip) ++v.skipped;
  }
  Weighed w = weigh(check, *results);
  if (broken)
    v.why = *broken;
  else
    decide_by_tests(check, facts, w, v);
  v.absent = w.absent;
  v.failing = std::move(w.failing);
  return v;
}
}  // namespace proctor
