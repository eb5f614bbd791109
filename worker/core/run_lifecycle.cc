#include "worker/core/run_lifecycle.h"

#include <algorithm>
#include <utility>

#include "common/base/json_fields.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/score/gates.h"
#include "worker/core/run_meter.h"

namespace proctor {
// Words of rationales.
inline std::string with_words(std::string what, const std::string& words) {
  return words.empty() ? what : std::move(what) + "; " + words;
}

// The cause, without what differs between two times that it fails in the same way.
inline std::string cause_of(const std::string& what, const ProgramEnd& e) {
  return what + ": " +
         (e.end == ExecEnd::kTimedOut ? std::string("stopped at its time limit") : e.describe());
}

inline std::string bounded(std::string text) {
  if (limits::kDetailBytes < text.size()) text.resize(limits::kDetailBytes);
  return text;
}

namespace {
// The exit codes by which a shell, and we ourselves, say that a program could not be run.  The
// agent may say them too: so what it did before is looked at as well.
bool may_not_have_started(const AgentEnded& e) {
  return e.ran_program && e.exec.end == ExecEnd::kExited && says_no_program(e.exec.exit_code) &&
         e.exec.wall <= kAgentStartWindow && !e.asked && e.denied.empty() && e.forbidden.empty();
}
}  // namespace

LifecyclePlan lifecycle_plan(const Contract& contract, std::chrono::milliseconds agent_wall,
                             int overload_exit, const std::vector<SetupStep>& method_setup,
                             std::uint32_t judged_again, bool recorded, std::uint32_t rerun) {
  LifecyclePlan plan;
  plan.rerun = rerun;
  plan.recorded = recorded;
  plan.judged_again = judged_again;
  plan.overload_exit = overload_exit;
  plan.commit = contract.repository.commit;
  plan.tree = contract.repository.tree;
  plan.agent_wall = agent_wall;
  for (const SetupStep& s : contract.setup)
    plan.setup.push_back({s.command, s.timeout, s.network.any()});
  for (const SetupStep& s : method_setup)
    plan.method_setup.push_back({s.command, s.timeout, s.network.any()});
  for (const Check& c : contract.checks) {
    CheckReport report;
    report.id = c.id;
    report.kind = word_of(c.kind);
    report.gate = to_string(c.gate);
    report.command = c.command;
    report.timeout_ms = static_cast<std::uint64_t>(c.timeout.count());
    report.reader = word_of(c.reader);
    report.ended = "not_run";
    report.why = "did not run";
    plan.checks.push_back(std::move(report));
  }
  return plan;
}

std::string ProgramEnd::describe() const {
  constexpr auto kSaid = each_once(
      std::to_array<Word<ExecEnd>>({{"exit ", ExecEnd::kExited},
                                    {"ended by signal ", ExecEnd::kSignalled},
                                    {"stopped at its time limit after ", ExecEnd::kTimedOut},
                                    {"stopped at its memory limit", ExecEnd::kMemory},
                                    {"stopped at its disk limit", ExecEnd::kDisk},
                                    {"stopped at its CPU limit", ExecEnd::kCpu},
                                    {"cancelled", ExecEnd::kCancelled}}));
  std::string out(word_in(kSaid, end));
  if (end == ExecEnd::kExited) out += std::to_string(exit_code);
  if (end == ExecEnd::kSignalled) out += std::to_string(signal);
  if (end == ExecEnd::kTimedOut) out += std::to_string(wall.count()) + " ms";
  return out;
}

struct RunLifecycle::Patched {
  RunLifecycle before;
  PatchExtracted patch;
};

RunLifecycle::RunLifecycle(LifecyclePlan plan) : plan_(std::move(plan)) {
  verdict_.checks = plan_.checks;
}

std::vector<LifecycleCommand> RunLifecycle::start() {
  PROCTOR_ASSERT(std::holds_alternative<New>(state_));
  go(TakingSnapshot{}, TakeSnapshot{});
  return std::exchange(out_, {});
}

std::vector<LifecycleCommand> RunLifecycle::on(const LifecycleEvent& event) {
  PROCTOR_ASSERT(!std::holds_alternative<New>(state_));
  std::visit([this](const auto& e) { handle(e); }, event);
  return std::exchange(out_, {});
}

const Verdict& RunLifecycle::verdict() const {
  PROCTOR_ASSERT(finished());
  return verdict_;
}

void RunLifecycle::go(State next, LifecycleCommand command) {
  state_ = std::move(next);
  out_.push_back(std::move(command));
}

void RunLifecycle::stage(std::string_view name) {
  out_.emplace_back(RecordStage{std::exchange(stage_, std::string(name)), std::string(name)});
}

void RunLifecycle::handle(const SnapshotReady& e) {
  PROCTOR_ASSERT(std::holds_alternative<TakingSnapshot>(state_));
  WritingManifest next;
  if (e.commit != plan_.commit) {
    next.identity_error = "observed commit " + e.commit + ", the contract names " + plan_.commit;
  } else if (e.tree.empty()) {
    next.identity_error = "no tree id was observed";
  } else if (!plan_.tree.empty() && e.tree != plan_.tree) {
    next.identity_error = "observed tree " + e.tree + ", the contract names " + plan_.tree;
  }
  const std::string against = next.identity_error.empty() ? "" : "identity: " + next.identity_error;
  go(std::move(next), WriteManifest{against});
}

void RunLifecycle::handle(const StepDone& e) {
  if (const auto* manifest = std::get_if<WritingManifest>(&state_)) {
    const WritingManifest copy = *manifest;
    after_manifest(copy, e.evidence);
  } else if (const auto* opening = std::get_if<OpeningWorkspace>(&state_)) {
    if (opening->room == Room::kAgent) {
      next_setup(Room::kAgent, 0);
    } else {
      go(Applying{}, ApplyPatch{});
    }
  } else if (std::holds_alternative<Briefing>(state_)) {
    stage("agent");
    go(AgentRunning{}, RunAgent{});
  } else if (std::holds_alternative<Applying>(state_)) {
    go(Restoring{}, RestoreProtected{outside_writable_});
  } else {
    PROCTOR_ASSERT(std::holds_alternative<Placing>(state_));
    next_setup(Room::kAcceptance, 0);
  }
}

void RunLifecycle::after_manifest(const WritingManifest& state, std::uint64_t evidence) {
  stage("prepare");
  if (state.image) {
    image_failed(*state.image, evidence);
  } else if (state.snapshot_error) {
    // kInvalid: every host would fail alike; anything else may heal, or another host have it.
    end_invalid(Termination::kInfrastructure, "snapshot: " + state.snapshot_error->detail,
                state.snapshot_error->code != Errc::kInvalid, evidence);
  } else if (!state.identity_error.empty()) {
    end_invalid(Termination::kInfrastructure, "identity: " + state.identity_error, false, evidence);
  } else if (plan_.recorded && plan_.setup.empty()) {
    next_method_setup(0);
  } else {
    go(OpeningWorkspace{Room::kAgent}, OpenWorkspace{Room::kAgent});
  }
}

void RunLifecycle::handle(const AgentEnded& e) {
  PROCTOR_ASSERT(std::holds_alternative<AgentRunning>(state_));
  for (const std::string& place : e.denied) violation("network: " + place);
  for (const std::string& what : e.forbidden) violation(what);
  verdict_.evidence = e.evidence;
  verdict_.termination = Termination::kCompleted;
  verdict_.rationale =
      e.ran_program ? ended_by_itself(e.exec.describe()) : "the method runs no program";
  if (e.ran_program && e.exec.end == ExecEnd::kExited) verdict_.facts.agent_exit = e.exec.exit_code;
  verdict_.application.rung = e.rung;
  verdict_.application.refused = bounded(e.misfit);
  if (plan_.overload_exit != 0 && !budget_ && e.ran_program && e.exec.end == ExecEnd::kExited &&
      e.exec.exit_code == plan_.overload_exit) {
    const std::string& why = e.no_model.why;
    return model_unavailable(
        {why.empty() ? "the agent ended with " + e.exec.describe() : why, true}, e.evidence);
  }
  // Whatever it made of that: no agent is judged by an operator's fault.  One that a cap stopped
  // ends as cancelled; time until a wall cap that it waited for its model's answer is not its own.
  const bool went_on = e.no_model.later && e.exec.end == ExecEnd::kExited && e.exec.exit_code == 0;
  if (!e.no_model.why.empty() && !went_on &&
      (budget_ ? e.no_model.eaten || budget_->cap == to_string(Cap::kWall)
               : e.exec.end != ExecEnd::kCancelled))
    return model_unavailable(e.no_model, e.evidence);
  if (!budget_ && may_not_have_started(e)) doubtful_start_ = e;
  if (budget_) {
    verdict_.facts.agent_exit.reset();
    verdict_.termination = budget_->cap == kBreakerCap  ? Termination::kBreaker
                           : budget_->cap == kPolicyCap ? Termination::kPolicyStop
                           : budget_->cap == kTraceCap  ? Termination::kResourceLimit
                                                        : Termination::kBudgetExceeded;
    verdict_.rationale =
        bounded(budget_->reason.empty() ? "budget_exceeded: " + budget_->cap : budget_->reason);
    verdict_.evidence = budget_->evidence;
    if (verdict_.termination == Termination::kBudgetExceeded) verdict_.facts.cap = budget_->cap;
  } else if (e.ran_program && e.exec.end == ExecEnd::kTimedOut) {
    verdict_.termination = Termination::kAgentTimeout;
    verdict_.rationale = "the agent was stopped after " + std::to_string(e.exec.wall.count()) +
                         " ms; its limit is " + std::to_string(plan_.agent_wall.count()) +
                         " ms";  // R092
  } else if (e.ran_program && (e.exec.end == ExecEnd::kMemory || e.exec.end == ExecEnd::kDisk ||
                               e.exec.end == ExecEnd::kCpu)) {
    verdict_.termination = Termination::kResourceLimit;
    verdict_.rationale = "the agent was " + e.exec.describe();
  } else if (e.ran_program && e.exec.end == ExecEnd::kCancelled) {
    end_invalid(Termination::kOperatorCancel, "cancelled while the agent worked", false,
                e.evidence);
    return;
  }
  if (!doubtful_start_)
    out_.emplace_back(
        RecordTermination{verdict_.termination, verdict_.rationale, verdict_.evidence});
  stage("extract");
  go(Extracting{}, ExtractPatch{});
}

void RunLifecycle::handle(const PatchExtracted& e) {
  PROCTOR_ASSERT(std::holds_alternative<Extracting>(state_));
  auto patched = std::make_shared<const Patched>(Patched{*this, e});
  if (const auto start = std::exchange(doubtful_start_, std::nullopt)) {
    if (!e.changed && e.unreadable.empty()) return agent_unavailable(*start);
    out_.emplace_back(
        RecordTermination{verdict_.termination, verdict_.rationale, verdict_.evidence});
  }
  if (!e.unreadable.empty()) tree_unreadable(e.unreadable);
  patched_ = std::move(patched);
  take_patch(e);
  stage("acceptance");
  go(OpeningWorkspace{Room::kAcceptance}, OpenWorkspace{Room::kAcceptance});
}

void RunLifecycle::take_patch(const PatchExtracted& e) {
  verdict_.application.conflicts = e.conflicts;
  for (const std::string& path : e.refused) violation("refused: " + path);
  for (const std::string& path : e.outside_writable) violation("not writable: " + path);
  outside_writable_ = e.outside_writable;
  std::ranges::sort(outside_writable_);
}

// The agent was never at work: that is no failure of its, and no success of an empty patch.
void RunLifecycle::agent_unavailable(const AgentEnded& e) {
  const std::string what = could_not_start(e.exec.describe());
  verdict_.fault = Fault::kAgent;
  verdict_.cause = bounded(what);
  end_invalid(Termination::kAgentUnavailable,
              with_words(what + " after " + std::to_string(e.exec.wall.count()) +
                             " ms, without a change or a call",
                         e.words),
              true, e.evidence);
  if (e.exec.end == ExecEnd::kExited) verdict_.facts.agent_exit = e.exec.exit_code;
}

void RunLifecycle::model_unavailable(const ModelLack& lack, std::uint64_t evidence) {
  if (lack.evidence != 0) evidence = lack.evidence;
  if (lack.busy) {
    verdict_.overload = true;
    end_invalid(Termination::kModelOverloaded, "a provider of models had no room: " + lack.why,
                true, evidence);
    return;
  }
  verdict_.fault = Fault::kAgent;
  verdict_.cause = bounded(no_model(lack.why));
  end_invalid(Termination::kAgentUnavailable, verdict_.cause, true, evidence);
  verdict_.facts.no_model = true;
}

void RunLifecycle::handle(const PatchApplied& e) {
  PROCTOR_ASSERT(std::holds_alternative<Applying>(state_));
  // The one of two patches that fits worse is told: both must have fitted.
  verdict_.application.rung = std::string(worse_rung(verdict_.application.rung, e.rung));
  go(Restoring{}, RestoreProtected{outside_writable_});
}

void RunLifecycle::handle(const PatchRefused& e) {
  PROCTOR_ASSERT(std::holds_alternative<Applying>(state_));
  verdict_.application.refused = bounded(e.why);
  tree_unreadable(e.why);
  go(Restoring{}, RestoreProtected{outside_writable_});
}

void RunLifecycle::handle(const ProtectedRestored& e) {
  PROCTOR_ASSERT(std::holds_alternative<Restoring>(state_));
  for (const std::string& path : e.changed) {
    // Those outside the writable globs were named when the patch was extracted.
    if (!std::ranges::binary_search(outside_writable_, path)) violation("protected: " + path);
  }
  go(Placing{}, PlaceAcceptanceFiles{});
}

void RunLifecycle::next_check(std::size_t index) {
  if (index < plan_.checks.size()) {
    go(Checking{index}, RunCheck{index});
  } else {
    conclude();
  }
}

namespace {
// A server of the candidate's that does not serve is the candidate's failure; the check itself has
// no outcome, for it never ran.
CheckReport failed_services(const CheckEnded& e) {
  CheckReport services;
  services.id = services_check(e.report.id);
  services.kind = e.report.kind;
  services.gate = e.report.gate;
  services.reader = "exit_code";
  services.outcome = CheckOutcome::kFail;
  services.exit_code = 1;
  services.ended = to_string(ExecEnd::kExited);
  services.why = bounded(e.services);
  return services;
}
}  // namespace

void RunLifecycle::handle(const CheckEnded& e) {
  PROCTOR_ASSERT(std::holds_alternative<Checking>(state_));
  PROCTOR_ASSERT(e.report.outcome.has_value() == e.services.empty());
  const std::size_t index = std::get<Checking>(state_).index;
  verdict_.checks[index] = e.report;
  verdict_.checks[index].why = bounded(e.report.why);
  for (const std::string& what : e.forbidden) violation(what);
  forbidden_.insert(forbidden_.end(), e.forbidden.begin(), e.forbidden.end());
  if (!e.services.empty()) {
    services_.push_back(failed_services(e));
    out_.emplace_back(RecordSkippedCheck{services_.back()});
  }
  next_check(index + 1);
}

void RunLifecycle::handle(const StepFailed& e) {
  // The input is at fault, not the host: the same on every worker, so no new attempt.
  const bool host = e.error.code != Errc::kInvalid;
  if (std::holds_alternative<TakingSnapshot>(state_)) {
    WritingManifest next;
    next.snapshot_error = e.error;
    return go(std::move(next), WriteManifest{"snapshot: " + e.error.detail});
  }
  const auto* checking = std::get_if<Checking>(&state_);
  if (checking != nullptr && !host) {
    CheckEnded ended{plan_.checks[checking->index]};  // R057: misconfigured
    ended.report.outcome = CheckOutcome::kError;
    ended.report.why = bounded(e.error.detail);
    out_.emplace_back(RecordSkippedCheck{ended.report});
    return handle(ended);
  }
  if (std::holds_alternative<Extracting>(state_) && e.error.code == Errc::kExhausted)
    return end_invalid(Termination::kResourceLimit, "patch too large to record: " + e.error.detail,
                       false, e.evidence);
  const std::string why =
      std::visit(Overload{[](const auto&) { return std::string(); },
                          [](const WritingManifest&) { return std::string("manifest"); },
                          [](const OpeningWorkspace&) { return std::string("workspace"); },
                          [](const SettingUp&) { return std::string("setup"); },
                          [](const SettingUpMethod&) { return std::string("the method's setup"); },
                          [](const Briefing&) { return std::string("briefing"); },
                          [](const AgentRunning&) { return std::string("agent"); },
                          [](const Extracting&) { return std::string("extraction"); },
                          [](const Applying&) { return std::string("apply"); },
                          [](const Restoring&) { return std::string("restore protected files"); },
                          [](const Placing&) { return std::string("place acceptance files"); },
                          [&](const Checking& s) { return "check " + plan_.checks[s.index].id; }},
                 state_) +
      ": " + e.error.detail;
  PROCTOR_ASSERT(!why.starts_with(':'));
  if (!patched_) return end_invalid(Termination::kInfrastructure, why, host, e.evidence);
  if (host && judged_again_ < plan_.judged_again) {
    const std::shared_ptr<const Patched> from = patched_;
    const std::uint32_t nth = judged_again_ + 1;
    *this = from->before;
    judged_again_ = nth;
    handle(from->patch);
    out_.insert(out_.begin(), JudgeAgain{nth, bounded(why)});
    return;
  }
  // How the agent ended stays as it was: that is told apart from what it was worth.
  verdict_.outcome = RunOutcome::kInvalid;
  verdict_.rationale.resize(std::min(verdict_.rationale.size(), limits::kDetailBytes / 2));
  verdict_.rationale = bounded(verdict_.rationale + not_judged(why));
  verdict_.facts.not_judged = true;
  verdict_.evidence = e.evidence;
  out_.emplace_back(RecordTermination{verdict_.termination, verdict_.rationale, e.evidence});
  package();
}

void RunLifecycle::handle(const RunCancelAsked& e) {
  if (finished()) return;  // the outcome is decided; what is recorded stays recorded
  end_invalid(e.worker_leaves ? Termination::kInfrastructure : Termination::kOperatorCancel,
              e.reason, e.worker_leaves, e.evidence);
}

void RunLifecycle::handle(const BudgetReached& e) {
  // Only the agent spends against these caps; after it, acceptance has its own headroom.
  if (!std::holds_alternative<AgentRunning>(state_) || budget_) return;
  budget_ = e;
  out_.emplace_back(StopAgent{});
}

void RunLifecycle::end_invalid(Termination t, std::string rationale, bool infrastructure,
                               std::uint64_t evidence) {
  verdict_.outcome = RunOutcome::kInvalid;
  verdict_.termination = t;
  verdict_.rationale = bounded(std::move(rationale));
  verdict_.facts = {};
  verdict_.infrastructure = infrastructure;
  verdict_.evidence = evidence;
  out_.emplace_back(RecordTermination{t, verdict_.rationale, evidence});
  package();
}

// A report must be writable whatever an agent left: hundreds of thousands of paths, too.
void RunLifecycle::violation(std::string text) {
  constexpr std::size_t kNamed = 2'000, kBytes = std::size_t{1} << 20;
  text = bounded(std::move(text));
  if (kNamed <= verdict_.violations.size() || kBytes < violation_bytes_ + text.size()) {
    ++violations_left_out_;
    return;
  }
  violation_bytes_ += text.size();
  verdict_.violations.push_back(std::move(text));
}

void RunLifecycle::tree_unreadable(const std::string& why) {
  verdict_.unreadable = bounded(why);
  violation("unreadable: " + why);
  if (verdict_.termination != Termination::kCompleted) return;
  verdict_.termination = Termination::kResourceLimit;
  verdict_.facts.agent_exit.reset();
  verdict_.rationale =
      bounded("what the agent left cannot be judged, the untouched tree is: " + why);
  out_.emplace_back(RecordTermination{verdict_.termination, verdict_.rationale, verdict_.evidence});
}

void RunLifecycle::list_services() {
  for (CheckReport& services : std::exchange(services_, {}))
    verdict_.checks.push_back(std::move(services));
}

void RunLifecycle::conclude() {
  list_services();
  verdict_.outcome = decide(true, deciding_outcomes(verdict_.checks));
  // A contract whose checks pass on the untouched tree is no way out.
  const bool judged = verdict_.unreadable.empty() && verdict_.application.refused.empty();
  if (!judged && verdict_.outcome == RunOutcome::kSuccess) verdict_.outcome = RunOutcome::kFailure;
  if (verdict_.outcome == RunOutcome::kSuccess && repeated_ < plan_.rerun) return repeat();
  verdict_.facts.patch = patch_word(verdict_.application);
  verdict_.facts.violations = verdict_.violations.size() + violations_left_out_;
  if (!verdict_.violations.empty())
    verdict_.facts.violated = verdict_.violations.front().substr(0, kFirstViolationBytes);
  // These words are never what is cut, but for the end of what is said of a patch.
  std::string fitted = patch_words(verdict_.application);
  if (0 < repeated_ && verdict_.outcome != RunOutcome::kSuccess)
    fitted.insert(0, "; acceptance passed " + counted(repeated_, "time") +
                         " and did not pass in run " + std::to_string(1 + repeated_) + " of " +
                         std::to_string(1 + plan_.rerun));
  const std::string broken = violation_words(verdict_.facts.violations, verdict_.facts.violated);
  const std::size_t room = limits::kDetailBytes - broken.size();
  std::string& told = verdict_.rationale;
  told.resize(std::min(told.size(), std::max(room / 2, room - std::min(room, fitted.size()))));
  told += fitted.substr(0, room - told.size()) + broken;
  package();
}

// As it was when the patch was extracted, but for what monitors saw since, which stays: any failure
// dominates.
void RunLifecycle::repeat() {
  const RunLifecycle& before = patched_->before;
  verdict_ = before.verdict_;
  violation_bytes_ = before.violation_bytes_;
  violations_left_out_ = before.violations_left_out_;
  take_patch(patched_->patch);
  for (const std::string& what : forbidden_) violation(what);
  out_.emplace_back(RepeatAcceptance{++repeated_, plan_.rerun});
  go(OpeningWorkspace{Room::kAcceptance}, OpenWorkspace{Room::kAcceptance});
}

void RunLifecycle::package() {
  list_services();
  if (0 < violations_left_out_)
    verdict_.violations.push_back("and " + std::to_string(std::exchange(violations_left_out_, 0)) +
                                  " more");
  stage("package");
  go(Packaging{}, Package{});
}

// RunLifecycle: the setup of a task and of a method, and whose failure it is when a step fails.
void RunLifecycle::next_setup(Room room, std::size_t index) {
  if (index < plan_.setup.size()) {
    go(SettingUp{room, index}, RunSetup{room, index});
  } else if (room == Room::kAgent) {
    next_method_setup(0);
  } else {
    next_check(0);
  }
}

void RunLifecycle::next_method_setup(std::size_t index) {
  if (index < plan_.method_setup.size()) {
    go(SettingUpMethod{index}, RunMethodSetup{index});
  } else {
    stage("brief");
    go(Briefing{}, GiveBriefing{});
  }
}

void RunLifecycle::handle(const ImageFailed& e) {
  PROCTOR_ASSERT(std::holds_alternative<TakingSnapshot>(state_));
  WritingManifest next;
  next.image = e;
  go(std::move(next), WriteManifest{"image: " + e.why});
}

// It is made of the contract's files alone, before anything of the agent's: another attempt tells
// whether the host or what it was allowed of the network is to blame.
void RunLifecycle::image_failed(const ImageFailed& e, std::uint64_t evidence) {
  verdict_.fault = Fault::kTask;
  verdict_.cause = bounded("its image " + e.inputs + " cannot be built");
  end_invalid(Termination::kInfrastructure,
              with_words("its image cannot be built: " + e.why, e.words), true, evidence);
}

void RunLifecycle::handle(const SetupEnded& e) {
  const bool worked = e.exec.end == ExecEnd::kExited && e.exec.exit_code == 0;
  if (const auto* method = std::get_if<SettingUpMethod>(&state_)) {
    const std::size_t index = method->index;
    return worked ? next_method_setup(index + 1) : method_setup_failed(index, e);
  }
  PROCTOR_ASSERT(std::holds_alternative<SettingUp>(state_));
  const SettingUp state = std::get<SettingUp>(state_);
  if (worked) {
    next_setup(state.room, state.index + 1);
  } else {
    setup_failed(state, e);
  }
}

// It knows nothing of the task, and nothing of the agent was at work.
void RunLifecycle::method_setup_failed(std::size_t index, const SetupEnded& e) {
  const std::string name = "the method's setup step " + std::to_string(index + 1) + " (" +
                           plan_.method_setup[index].command + ")";
  verdict_.fault = Fault::kAgent;
  verdict_.cause = bounded(cause_of(name, e.exec));
  end_invalid(Termination::kAgentUnavailable, with_words(name + ": " + e.exec.describe(), e.words),
              true, e.evidence);
}

void RunLifecycle::setup_failed(const SettingUp& state, const SetupEnded& e) {
  const LifecyclePlan::Setup& step = plan_.setup[state.index];
  const std::string name =
      "setup step " + std::to_string(state.index + 1) + " (" + step.command + ")";
  const std::string what = name + ": " + e.exec.describe();
  if (state.room == Room::kAgent) {
    // On the untouched snapshot: nothing the agent did.  With a network the outside world may be to
    // blame, which another attempt can tell; without, every attempt would end here.
    if (step.network) {
      verdict_.fault = Fault::kTask;
      verdict_.cause = bounded(cause_of(name, e.exec));
    }
    end_invalid(Termination::kInfrastructure,
                with_words(what + " on the untouched snapshot", e.words), step.network, e.evidence);
    return;
  }
  // It worked on the snapshot, in this attempt; the patch is the difference.  Unless it did not get
  // to a verdict, or spoke to the network.
  // The same reading as any check's exit code has (result_reader.h).
  const CheckOutcome outcome =
      step.network ? CheckOutcome::kError : judge(Check{}, e.exec.facts(), std::nullopt).outcome;
  CheckReport setup;
  setup.id = kSetupCheck;
  setup.kind = "build";
  setup.gate = "build";
  setup.outcome = outcome;
  setup.exit_code = e.exec.exit_code;
  setup.wall_ms = static_cast<std::uint64_t>(e.exec.wall.count());
  setup.command = step.command;
  setup.timeout_ms = static_cast<std::uint64_t>(step.timeout.count());
  setup.reader = "exit_code";
  setup.ended = to_string(e.exec.end);
  setup.why = bounded(with_words(what, e.words));
  // They have their events all the same, and no outcome: nobody has seen what they would say.
  for (CheckReport& check : verdict_.checks) check.why = "did not run: setup failed";
  verdict_.checks.insert(verdict_.checks.begin(), std::move(setup));
  for (const CheckReport& check : verdict_.checks) out_.emplace_back(RecordSkippedCheck{check});
  conclude();
}

std::optional<Json> event_json(const LifecycleEvent& event) {
  // A setup that failed has words, and nothing comes after it.
  if (const auto* setup = std::get_if<SetupEnded>(&event);
      setup != nullptr && !setup->words.empty())
    return std::nullopt;
  return std::visit(
      [](const auto& e) -> std::optional<Json> {
        if constexpr (Described<decltype(e)>)
          return to_json(e);
        else
          return std::nullopt;
      },
      event);
}

Result<LifecycleEvent> event_from(const Json& json) {
  const auto as = [&](auto event) -> Result<LifecycleEvent> {
    PROCTOR_CHECK_OK(read_json(event, json, "event"));
    return LifecycleEvent(std::move(event));
  };
  const auto word = json.find("event");
  const auto is = [&](const char* type) { return word != json.end() && *word == type; };
  if (is("snapshot")) return as(SnapshotReady{});
  if (is("done")) return as(StepDone{});
  if (is("setup")) return as(SetupEnded{});
  if (is("agent")) {
    AgentEnded ended;
    ended.asked = true;  // a checkpoint from before it knew no agent that could not start
    return as(std::move(ended));
  }
  if (is("budget")) return as(BudgetReached{});
  if (is("patch")) return as(PatchExtracted{});
  return Error{Errc::kInvalid, "event.event: no such event"};
}
}  // namespace proctor
