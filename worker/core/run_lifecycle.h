#pragma once
// RunLifecycle: what happens next in one attempt, and what it all amounted to (R055-R061,
// R065-R069, R080-R082).  A pure state machine: facts in, commands out; no clock, no file, no
// process, no thread.  The shell (RunExecutor) performs one command at a time and answers with one
// event; only RunCancelAsked and BudgetReached may come at any moment.
//
//   snapshot -> manifest -> workspace -> setup... -> method's setup... -> briefing -> agent ->
//   extract
//            -> fresh workspace -> apply -> restore -> place -> setup... -> check... -> package
//
// Where acceptance is registered to be repeated (R133), the second line begins again behind checks
// that passed; the first repetition that does not pass is the verdict.
// Rules beyond docs/requirements.md are in docs/worker.md, "How an attempt ends".
// Errors: none of its own; what went wrong outside arrives as StepFailed.  Not thread-safe.
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/fields.h"
#include "common/base/json.h"
#include "common/base/result.h"
#include "common/base/words.h"
#include "common/contract/contract.h"
#include "common/score/outcome.h"
#include "common/score/result_reader.h"
#include "common/trace/run_report.h"

namespace proctor {
// All that the decisions depend on.
struct LifecyclePlan {
  std::string commit;  // expected identity (R043, R047)
  std::string tree;    // expected; empty: the commit's own
  struct Setup {
    std::string command;
    std::chrono::milliseconds timeout{0};
    bool network = false;
  };
  std::vector<Setup> setup;
  std::vector<Setup> method_setup;  // installs the agent
  std::vector<CheckReport> checks;  // as they are reported when they never run
  std::chrono::milliseconds agent_wall{0};
  int overload_exit = 0;  // of the method (campaign.h)
  // The patch was recorded, and no agent works: where no setup says what it left, the agent's room
  // is not opened.
  bool recorded = false;
  // How often acceptance begins again, on the same patch, after a failure of the host.
  std::uint32_t judged_again = 0;
  std::uint32_t rerun = 0;  // JudgeRules::rerun
};
LifecyclePlan lifecycle_plan(const Contract& contract, std::chrono::milliseconds agent_wall,
                             int overload_exit = 0, const std::vector<SetupStep>& method_setup = {},
                             std::uint32_t judged_again = 0, bool recorded = false,
                             std::uint32_t rerun = 0);

enum class Room { kAgent, kAcceptance };  // which of the two workspaces of an attempt
constexpr auto words(Room) {
  return std::to_array<Word<Room>>({{"agent", Room::kAgent}, {"acceptance", Room::kAcceptance}});
}

// How a command in a sandbox ended: the sandbox's own words, without its header.
struct ProgramEnd {
  ExecEnd end = ExecEnd::kExited;
  int exit_code = 0;
  int signal = 0;
  std::chrono::milliseconds wall{0};
  ExecFacts facts() const { return {end, exit_code, signal}; }
  // "exit 3", "ended by signal 11", for rationales.
  std::string describe() const;
};
void fields(auto& v, Is<ProgramEnd> auto& e) {
  v("end", e.end);
  v("exit_code", e.exit_code);
  v("signal", e.signal);
  v("wall_ms", e.wall);
}

// Events: what has happened.  `evidence` is the seq of the trace event that shows it, 0: none.
// Those that are described have a form in JSON (event_json).

struct SnapshotReady {
  std::string commit, tree;  // observed
};
void fields(auto& v, Is<SnapshotReady> auto& e) {
  v.follows("event", "snapshot");
  v("commit", e.commit);
  v("tree", e.tree);
}
struct StepDone {              // of a step that only succeeds or fails
  std::uint64_t evidence = 0;  // WriteManifest's: the event of what stood against the snapshot
};
void fields(auto& v, Is<StepDone> auto&) {
  v.follows("event", "done");
}
struct StepFailed {
  Error error;
  std::uint64_t evidence = 0;
};
// The image that the contract says how to make cannot be made here; TakeSnapshot's.
struct ImageFailed {
  std::string inputs;  // what it would have been made of
  std::string why;
  std::string words{};  // as SetupEnded's
};
struct SetupEnded {
  ProgramEnd exec;
  std::uint64_t evidence = 0;
  // For one that failed: the end of what it said, and what its network refused; for people.
  std::string words{};
};
void fields(auto& v, Is<SetupEnded> auto& e) {
  v.follows("event", "setup");
  v("exec", e.exec);
  v("evidence", e.evidence);
}
struct AgentEnded {
  bool ran_program = false;  // noop and reference run none
  ProgramEnd exec;           // of the program
  std::uint64_t evidence = 0;
  std::vector<std::string> denied{};  // places it asked its network for and may not reach
  // It asked its meter or its network for something: whatever it ended as, it had started.
  bool asked = false;
  std::string words{};  // as SetupEnded's
  // For a method that hands in a patch of somebody's: the rung it fits by, or why it fits by none.
  // The workspace is then as it was.
  std::string rung{}, misfit{};
  ModelLack no_model{};                  // of the one that its method has it ask
  std::vector<std::string> forbidden{};  // violations that monitors saw, each once
};
void fields(auto& v, Is<AgentEnded> auto& e) {
  constexpr Rule kLater{.older_lack = true};
  v.follows("event", "agent");
  v("ran_program", e.ran_program);
  v("exec", e.exec);
  v("evidence", e.evidence);
  v("denied", e.denied);
  v("asked", e.asked, kLater);
  v("words", e.words, kLater);
  v("rung", e.rung, kLater);
  v("misfit", e.misfit, kLater);
  v("forbidden", e.forbidden, {.text = Rule::Text::kBytes, .older_lack = true});
  v("no_model", e.no_model.why, kOptional);
  if (e.no_model.why.empty()) return;
  v("busy", e.no_model.busy);
  v("no_model_evidence", e.no_model.evidence);
  v("eaten", e.no_model.eaten, kOptional);
  v("later", e.no_model.later, kOptional);
}
struct PatchExtracted {
  std::vector<std::string> refused;           // files no patch can hold
  std::vector<std::string> outside_writable;  // changed against policy.writable
  // Not empty: the agent's tree is beyond what can be read, so this says; the patch is empty.
  std::string unreadable{};
  bool changed = true;                   // anything at all, also what no patch can hold
  std::vector<std::string> conflicts{};  // "PATH:LINE" of files that got conflict markers
};
void fields(auto& v, Is<PatchExtracted> auto& e) {
  v.follows("event", "patch");
  v("refused", e.refused, {.text = Rule::Text::kBytes});
  v("outside_writable", e.outside_writable, {.text = Rule::Text::kBytes});
  v("unreadable", e.unreadable, {.text = Rule::Text::kBytes});
  v("changed", e.changed, {.older_lack = true});
  v("conflicts", e.conflicts, {.text = Rule::Text::kBytes, .older_lack = true});
}
struct PatchApplied {
  std::string rung;  // to_string(ApplyRung)
};
// git refuses the patch that the agent's tree gave.  The fresh workspace is as it was.
struct PatchRefused {
  std::string why;
};
struct ProtectedRestored {
  std::vector<std::string> changed;
};
struct CheckEnded {
  CheckReport report;      // with an outcome, unless its services did not get ready
  std::string services{};  // not empty: why the candidate's services did not get ready
  std::vector<std::string> forbidden{};  // as AgentEnded's, and none of those
};
struct RunCancelAsked {
  std::string reason;
  // The worker goes away rather than the run being unwanted: another worker may make a new attempt.
  bool worker_leaves = false;
  std::uint64_t evidence = 0;
};
struct BudgetReached {
  std::string cap;  // "usd", "tokens"
  std::uint64_t evidence = 0;
  std::string reason{};  // "budget_exceeded: tokens: 90 of 100 used, ..."
};
void fields(auto& v, Is<BudgetReached> auto& e) {
  v.follows("event", "budget");
  v("cap", e.cap);
  v("evidence", e.evidence);
  v("reason", e.reason, {.text = Rule::Text::kBytes});
}
using LifecycleEvent = std::variant<SnapshotReady, ImageFailed, StepDone, StepFailed, SetupEnded,
                                    AgentEnded, PatchExtracted, PatchApplied, PatchRefused,
                                    ProtectedRestored, CheckEnded, RunCancelAsked, BudgetReached>;

// Commands: what to do.  Each is answered by the event named behind it, or by StepFailed.

struct TakeSnapshot {};   // SnapshotReady, ImageFailed
struct WriteManifest {    // StepDone
  std::string against{};  // not empty: why the run ends behind it, which needs an event (R081)
};
struct OpenWorkspace {  // StepDone
  Room room = Room::kAgent;
};
struct RunSetup {  // SetupEnded
  Room room = Room::kAgent;
  std::size_t index = 0;
};
struct RunMethodSetup {  // SetupEnded
  std::size_t index = 0;
};
struct GiveBriefing {};           // StepDone
struct RunAgent {};               // AgentEnded
struct ExtractPatch {};           // PatchExtracted
struct ApplyPatch {};             // PatchApplied, PatchRefused; StepDone: there is none
struct RestoreProtected {         // ProtectedRestored
  std::vector<std::string> also;  // paths changed against policy.writable: put back too
};
struct PlaceAcceptanceFiles {};  // StepDone
struct RunCheck {                // CheckEnded
  std::size_t index = 0;
};

// Things to record before the command that follows them; these have no answer.

struct RecordStage {
  std::string from, to;
};
// The host failed in acceptance: puts everything back to where the patch was extracted.
struct JudgeAgain {
  std::uint32_t nth = 1;  // in this life of the worker
  std::string why{};
};
// Acceptance passed and has to pass again: clears its room and keeps its evidence.
struct RepeatAcceptance {
  std::uint32_t nth = 1, of = 1;
};
struct RecordSkippedCheck {  // its precondition failed; its event must exist all the same (R058)
  CheckReport check;
};
struct RecordTermination {  // R081
  Termination termination = Termination::kCompleted;
  std::string rationale;
  std::uint64_t evidence = 0;
};
struct StopAgent {};  // the cap is reached: cut the agent off; AgentEnded still follows
struct Package {};    // last: write the report from verdict(), then nothing more
using LifecycleCommand =
    std::variant<TakeSnapshot, WriteManifest, OpenWorkspace, RunSetup, RunMethodSetup, GiveBriefing,
                 RunAgent, ExtractPatch, ApplyPatch, RestoreProtected, PlaceAcceptanceFiles,
                 RunCheck, RecordStage, JudgeAgain, RepeatAcceptance, RecordSkippedCheck,
                 RecordTermination, StopAgent, Package>;

struct Verdict {
  RunOutcome outcome = RunOutcome::kInvalid;
  Termination termination = Termination::kCompleted;
  std::string rationale;
  bool infrastructure = false;  // the host failed: a new attempt may be made
  bool overload = false;        // with it: not the host, a provider had no room
  Fault fault = Fault::kHost;   // with it and without `overload`: whose failure it looks like
  std::string cause;            // not of kHost: what failed, equal where it was the same failure
  AttemptFacts facts{};         // what `rationale` says for people
  std::uint64_t evidence = 0;
  std::vector<CheckReport> checks;
  std::vector<std::string> violations;  // "protected: tests/a.py", sorted within each kind
  // The agent left what cannot be judged, so the untouched tree was: never a success.
  std::string unreadable{};
  // With `application.refused` likewise: the patch that was handed in fits nothing.
  PatchEnd application{};
};

// A program that ends later than this had started, whatever its exit code.
inline constexpr std::chrono::milliseconds kAgentStartWindow{5'000};

class RunLifecycle {
 public:
  explicit RunLifecycle(LifecyclePlan plan);

  std::vector<LifecycleCommand> start();
  // Requires that `event` answers the pending command (or may come at any moment).
  std::vector<LifecycleCommand> on(const LifecycleEvent& event);

  bool finished() const { return std::holds_alternative<Packaging>(state_); }
  // Requires finished().
  const Verdict& verdict() const;

 private:
  struct New {};
  struct TakingSnapshot {};
  struct WritingManifest {
    std::optional<Error> snapshot_error;  // the manifest is written even so: it says what was tried
    std::string identity_error;           // R047
    std::optional<ImageFailed> image;     // likewise
  };
  struct OpeningWorkspace {
    Room room;
  };
  struct SettingUp {
    Room room;
    std::size_t index;
  };
  struct SettingUpMethod {
    std::size_t index;
  };
  struct Briefing {};
  struct AgentRunning {};
  struct Extracting {};
  struct Applying {};
  struct Restoring {};
  struct Placing {};
  struct Checking {
    std::size_t index;
  };
  struct Packaging {};
  using State = std::variant<New, TakingSnapshot, WritingManifest, OpeningWorkspace, SettingUp,
                             SettingUpMethod, Briefing, AgentRunning, Extracting, Applying,
                             Restoring, Placing, Checking, Packaging>;

  void handle(const SnapshotReady& e);
  void handle(const ImageFailed& e);
  void handle(const StepDone& e);
  void handle(const StepFailed& e);
  void handle(const SetupEnded& e);
  void handle(const AgentEnded& e);
  void handle(const PatchExtracted& e);
  void handle(const PatchApplied& e);
  void handle(const PatchRefused& e);
  void handle(const ProtectedRestored& e);
  void handle(const CheckEnded& e);
  void handle(const RunCancelAsked& e);
  void handle(const BudgetReached& e);

  void after_manifest(const WritingManifest& state, std::uint64_t evidence);
  void list_services();
  void agent_unavailable(const AgentEnded& e);
  void model_unavailable(const ModelLack& lack, std::uint64_t evidence);
  void image_failed(const ImageFailed& e, std::uint64_t evidence);
  void setup_failed(const SettingUp& state, const SetupEnded& e);
  void method_setup_failed(std::size_t index, const SetupEnded& e);
  void next_setup(Room room, std::size_t index);
  void next_method_setup(std::size_t index);
  void next_check(std::size_t index);
  void go(State next, LifecycleCommand command);
  void stage(std::string_view name);
  void end_invalid(Termination t, std::string rationale, bool infrastructure,
                   std::uint64_t evidence);
  void violation(std::string text);
  // The agent left no patch that can be applied; it goes on with the untouched tree.
  void tree_unreadable(const std::string& why);
  void take_patch(const PatchExtracted& e);
  void conclude();
  void repeat();
  void package();

  LifecyclePlan plan_;
  State state_ = New{};
  std::string stage_ = "assigned";
  // It ended as a program does that could not start; what it left tells.
  std::optional<AgentEnded> doubtful_start_;
  // Where acceptance begins again.  Not null once the patch is extracted: the agent is paid for, so
  // no failure of acceptance asks for a new attempt.
  struct Patched;
  std::shared_ptr<const Patched> patched_;
  std::uint32_t judged_again_ = 0, repeated_ = 0;
  std::vector<std::string> forbidden_;  // violations that monitors saw in acceptance
  std::vector<CheckReport> services_;   // that failed; behind the contract's checks
  std::optional<BudgetReached> budget_;
  std::vector<std::string> outside_writable_;
  std::size_t violation_bytes_ = 0, violations_left_out_ = 0;
  Verdict verdict_;
  std::vector<LifecycleCommand> out_;
};

// Events as JSON, so that a later life of the worker can bring another RunLifecycle to the same
// place.  Pure.  Those that only ever end an attempt, or come after its patch, have no form here.
std::optional<Json> event_json(const LifecycleEvent& event);
// kInvalid names the field.
Result<LifecycleEvent> event_from(const Json& json);
}  // namespace proctor
