// Gates, score and tags of a million recorded runs, on all cores and on one: each by the fold that
// workers, the coordinator's arrival and `proctor verify` run, fed with the events of a run as they
// are read from its trace (payloads as JSON; no file is read and no hash computed).  The runs are
// of a few dozen kinds, made once by the writers of the product: with and without a score, checks
// that rate and modes of the campaign's own; satisfied, or failing at each gate in one of the ways
// that tags tell apart.  Prints `figure NAME VALUE UNIT` lines for scripts/bench.
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench_support.h"
#include "common/base/digest.h"
#include "common/base/json_fields.h"
#include "common/trace/judgement.h"
#include "common/trace/payloads.h"

namespace {

using namespace proctor;

constexpr std::size_t kRuns = 1'000'000;

enum class Twist {
  kNone,       // satisfied, like the next two
  kTimeOut,    // of the agent: a tag, and no gate minds
  kWords,      // a denied command in a model's words, which decides nothing
  kTestFails,  // and so on: none of these is satisfied
  kTestAbsent,
  kNoCompiler,
  kNoFit,
  kConflict,
  kProtected,
  kOutside,
  kNetwork,
  kEscape,
  kStopped,
  kAll,
};

// One recorded run, and the rules of its manifest.
struct Recorded {
  JudgeRules rules;
  std::map<std::string, std::string> monitors{{"calls", "seccomp"}, {"commands", "unobserved"}};
  std::vector<TraceEvent> events{};
  RunOutcome outcome = RunOutcome::kSuccess;
  bool satisfied = false;

  template <class Kind, class... T>
  void note(const Kind& kind, const T&... payload) {
    TraceEvent event;
    event.seq = events.size();
    event.t = event.seq * 1'000;
    event.actor = kind.actor;
    event.type = kind.type;
    event.payload = kind.json(payload...);
    events.push_back(std::move(event));
  }
  void stages(const std::vector<const char*>& names) {
    for (std::size_t i = 1; i < names.size(); ++i) note(events::kStage, names[i - 1], names[i]);
  }
  void alert(std::string_view code, const Json& signals) {
    note(events::kAlert, std::string(code), signals, "agent", events::MaybeText());
  }
};

events::PathList paths_of(std::vector<std::string> listed) {
  return {listed.size(), std::move(listed)};
}

// `scored`: the contract has a rubric; `rated`: a check rates the patch, and the campaign has modes
// of its own.
JudgeRules rules_of(bool scored, bool rated) {
  JudgeRules out;
  out.checks = {{"build", Gate::kBuild}, {"unit/tests", Gate::kFunctional}};
  out.protected_ = {"tests/**", "ci/**"};
  out.writable = {"src/**", "include/**"};
  out.commands = {R"((^|\s)shutdown\s)"};
  if (scored) {
    out.lambda = kMillion;
    out.lines = 80;
    out.files = 4;
  }
  if (!rated) return out;
  out.checks.push_back({"short", Gate::kMaint});
  TagRule rule;
  rule.id = "bench.unit_one";
  rule.check = "unit/tests";
  rule.exit_code = 1;
  rule.sentence = "The tests end with 1.";
  out.tags = {rule};
  return out;
}

events::CheckTold told(const char* id, const char* kind, Gate gate, std::string text = "") {
  events::CheckTold out;
  CheckReport& check = out.check;
  check.id = id;
  check.kind = kind;
  check.gate = word_of(gate);
  check.outcome = text.empty() ? CheckOutcome::kPass : CheckOutcome::kFail;
  check.exit_code = text.empty() ? 0 : 1;
  check.wall_ms = 812;
  check.why = std::move(text);
  check.command = "cmake --build build && ctest --test-dir build --output-junit results.xml";
  check.timeout_ms = 60'000;
  check.reader = "junit";
  check.ended = "exited";
  check.passed = 40;
  check.stdout_digest = check.stderr_digest = check.result_digest = sha256(id);
  out.started_ms = 1'770'000'000'000;
  out.finished_ms = 1'770'000'000'812;
  return out;
}

void add_checks(Recorded& run, Twist twist) {
  events::CheckTold build = told("build", "build", Gate::kBuild);
  if (twist == Twist::kNoCompiler) {
    build = told("build", "build", Gate::kBuild, "exit 127: no such program");
    build.check.outcome = CheckOutcome::kError;
    build.check.exit_code = 127;
  }
  events::CheckTold unit = told("unit/tests", "unit", Gate::kFunctional);
  if (twist == Twist::kTestFails || twist == Twist::kTestAbsent) {
    unit = told("unit/tests", "unit", Gate::kFunctional, "the test parser/empty does not pass");
    unit.check.failing = {"parser/empty"};
    unit.check.failed = twist == Twist::kTestFails ? 1 : 0;
    unit.check.absent = twist == Twist::kTestAbsent ? 1 : 0;
  }
  run.note(events::kAcceptance, build);
  run.note(events::kAcceptance, unit);
  if (2 < run.rules.checks.size())
    run.note(events::kAcceptance, told("short", "static", Gate::kMaint));
  if (build.check.outcome != CheckOutcome::kPass) run.outcome = RunOutcome::kAcceptanceError;
  if (unit.check.outcome != CheckOutcome::kPass) run.outcome = RunOutcome::kFailure;
}

void add_agent(Recorded& run, Twist twist) {
  using namespace events;
  const auto command = [](const char* form) {
    return to_json(CommandSeen{R"((^|\s)shutdown\s)", form, "sudo shutdown -h now", "tool"});
  };
  if (twist == Twist::kWords) run.alert(kOsRisk, command("text"));
  if (twist == Twist::kNetwork)
    run.alert(kNetworkDenied, to_json(CallSeen{"connect", "192.0.2.7:443"}));
  if (twist == Twist::kEscape)
    for (const char* call : {"mount", "unshare", "unshare"})
      run.alert(kEscape, to_json(CallSeen{call, ""}));
  if (twist == Twist::kStopped) run.alert(kOsRisk, command("executed"));
}

void add_patch(Recorded& run, Twist twist, std::uint64_t lines) {
  events::Mutation m;
  m.insertions = lines;
  m.deletions = 3;
  m.bytes = 40 * lines;
  m.patch = sha256("patch");
  std::vector<std::string> changed{"src/parser.cc", "include/parser.h"};
  if (twist == Twist::kOutside) changed.emplace_back("docs/parser.md");
  m.files = changed.size();
  m.paths = paths_of(std::move(changed));
  if (twist == Twist::kConflict) m.conflicts = paths_of({"src/parser.cc"});
  run.note(events::kMutation, m);
  events::PatchTried tried;
  tried.room = "acceptance";
  tried.tried = {"git apply"};
  if (twist == Twist::kNoFit)
    tried.why = "src/parser.cc: the hunk at line 17 does not fit";
  else
    tried.rung = "git apply";
  run.note(events::kPatchApply, tried);
  run.note(events::kRestored,
           paths_of(twist == Twist::kProtected ? std::vector<std::string>{"tests/parser_test.cc"}
                                               : std::vector<std::string>()));
}

Recorded record(Twist twist, bool scored, bool rated, std::uint64_t lines) {
  Recorded run;
  run.rules = rules_of(scored, rated);
  run.satisfied = twist <= Twist::kWords;
  run.note(events::kManifestWritten, sha256("manifest"));
  run.stages({"setup", "brief", "agent"});
  run.note(events::kAgentStart, "reference", Json(false), std::vector<std::string>{"tests/**"});
  add_agent(run, twist);
  run.stages({"agent", "extract"});
  add_patch(run, twist, lines);
  run.stages({"extract", "acceptance"});
  add_checks(run, twist);
  run.note(events::kTermination,
           twist == Twist::kTimeOut   ? Termination::kAgentTimeout
           : twist == Twist::kStopped ? Termination::kPolicyStop
                                      : Termination::kCompleted,
           "the method ended by itself", std::uint64_t{4});
  return run;
}

std::vector<Recorded> all_kinds() {
  std::vector<Recorded> out;
  std::uint64_t lines = 2;
  for (int twist = 0; twist < static_cast<int>(Twist::kAll); ++twist)
    for (const auto& [scored, rated] : {std::pair(false, false), {true, false}, {true, true}})
      out.push_back(record(static_cast<Twist>(twist), scored, rated, lines += 3));
  return out;
}

struct Sum {
  std::size_t satisfied = 0, scored = 0, tags = 0, violations = 0;
};

JudgedRun judge(const Recorded& run) {
  JudgementFold fold(run.rules, run.monitors);
  for (const TraceEvent& event : run.events) fold.on(event);
  return fold.result(run.outcome);
}

// A figure says something only of runs that are judged as they were made.
void check(const Recorded& run) {
  const JudgedRun judged = judge(run);
  if (all_pass(judged.gates) != run.satisfied)
    bench::give_up("a run is judged otherwise than it was made: gate safety: " +
                   judged.gates.back().why);
  if (judged.score.has_value() != (run.satisfied && run.rules.scores()))
    bench::give_up("a score without its gates, or none with them");
  if (!run.satisfied && judged.tags.empty()) bench::give_up("a failed gate without a tag");
}

// All runs once, each thread its share of them.
double seconds_of(const std::vector<Recorded>& kinds, std::size_t threads, Sum& sum) {
  std::vector<Sum> sums(threads);
  const std::int64_t start = bench::mono_ns();
  {
    std::vector<std::jthread> all;
    for (std::size_t t = 0; t < threads; ++t)
      all.emplace_back([&, t] {
        Sum own;
        for (std::size_t i = t; i < kRuns; i += threads) {
          const JudgedRun judged = judge(kinds[i % kinds.size()]);
          own.satisfied += all_pass(judged.gates) ? 1 : 0;
          own.scored += judged.score ? 1 : 0;
          own.tags += judged.tags.size();
          own.violations += judged.violations.size();
        }
        sums[t] = own;
      });
  }
  const double seconds = bench::seconds_since(start);
  for (const Sum& one : sums) {
    sum.satisfied += one.satisfied;
    sum.scored += one.scored;
    sum.tags += one.tags;
    sum.violations += one.violations;
  }
  return seconds;
}

}  // namespace

int main() {
  const std::vector<Recorded> kinds = all_kinds();
  std::size_t events = 0;
  for (const Recorded& run : kinds) {
    check(run);
    events += run.events.size();
  }
  Sum sum;
  const double on_one = seconds_of(kinds, 1, sum);
  Sum other;
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  const double on_all = seconds_of(kinds, cores, other);
  if (other.tags != sum.tags || other.satisfied != sum.satisfied)
    bench::give_up("several threads judge otherwise than one");
  std::printf(
      "%zu kinds of runs with %.1f events each: %zu satisfied, %zu scored, %zu tags, %zu "
      "violations\n",
      kinds.size(), static_cast<double>(events) / static_cast<double>(kinds.size()), sum.satisfied,
      sum.scored, sum.tags, sum.violations);
  std::printf("figure rubric.judged_1m_s %.2f s\n", on_all);
  std::printf("figure rubric.judged_1m_one_core_s %.2f s\n", on_one);
}
