#include "worker/shell/attempt_run.h"

#include <sys/stat.h>
#include <algorithm>
#include <utility>

#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "common/contract/cost_model.h"
#include "common/score/result_reader.h"
#include "common/trace/evidence.h"
#include "common/trace/judgement.h"
#include "common/trace/manifest.h"
#include "worker/model/model.h"
#include "worker/sandbox/spec_rules.h"
#include "worker/shell/sandbox_dress.h"

namespace proctor {
// AttemptRun: steps that are done again because the host was in want, and not the run at fault.

// Another worker may have what this one has none of.
constexpr std::chrono::minutes kWantMost{10};

Patience AttemptRun::patience() const {
  return {until_stopped(watch_.token()), kWantMost};
}

AttemptRun::Answer AttemptRun::answer_to(const LifecycleCommand& command) {
  const auto once = [&] {
    return std::visit([this](const auto& c) { return perform(c); }, command);
  };
  const auto* opens = std::get_if<OpenWorkspace>(&command);
  const bool again = std::holds_alternative<ExtractPatch>(command) ||
                     (opens != nullptr && opens->room == Room::kAcceptance);
  if (!again) return once();
  Answer answer;
  const Status done =
      when_there_is_room<Unit>("attempt " + label("acceptance"), patience(), [&]() -> Status {
        answer = once();
        const auto* failed = std::get_if<StepFailed>(&*answer);
        return failed == nullptr ? ok_status() : Status(failed->error);
      });
  PROCTOR_CHECK_OK(done);
  return answer;
}

namespace {
constexpr std::uint32_t kJudgedMost = 5;  // times again, however many retries are registered

EffectiveCaps caps_of(const AttemptInput& input) {
  const std::vector<std::string>& stages = input.settings->stages;
  const std::size_t stage = input.assignment.stage;
  return effective_caps(input.settings->cap_rules(), stage < stages.size() ? stages[stage] : "",
                        input.contract->contract);
}

std::uint32_t rerun_of(const AttemptInput& input) {
  return input.contract->contract.rerun_in(input.settings->rerun);
}

int overload_exit(const Method& method) {
  const bool asks =
      method.kind == Method::Kind::kSingleShot || method.kind == Method::Kind::kToolLoop;
  return asks ? kModelBusyExit : method.overload_exit;
}

// By which its program finds its model, as programs of its kind do; empty: it has none.
std::string_view model_variable(const Method& method) {
  if (!method.gateway || method.kind != Method::Kind::kCommand) return {};
  return method.gateway->as == MethodGateway::As::kAnthropic ? "ANTHROPIC_BASE_URL"
                                                             : "OPENAI_BASE_URL";
}
}  // namespace

Error as_host_error(Error e) {
  if (e.code == Errc::kInvalid || e.code == Errc::kExhausted) e.code = Errc::kUnavailable;
  return e;
}

AttemptRun::AttemptRun(const Tools& tools, const AttemptInput& input, AttemptWatch& watch,
                       fs::path dir, MeterBook* book)
    : tools_(tools),
      input_(input),
      watch_(watch),
      dir_(std::move(dir)),
      disk_(dir_),
      caps_(caps_of(input)),
      lifecycle_(lifecycle_plan(input.contract->contract, *caps_.caps.wall,
                                overload_exit(*input.method), input.method->environment.setup,
                                std::min(input.settings->infrastructure_retries, kJudgedMost),
                                input.method->kind == Method::Kind::kRecorded, rerun_of(input))),
      meter_(
          {caps_.caps, input.settings->cost_model, input.assignment.ask,
           acceptance_worst_case(input.contract->contract, *input.method, rerun_of(input)),
           [gate = input.gate, rates = input.settings->rates,
            run = input.assignment.attempt.run.raw()](const ActionName& action,
                                                      Instant) -> std::optional<CallWait> {
             if (gate == nullptr) return std::nullopt;
             // Shares end by the clock of everybody, also while this agent stands still.
             return gate->take(rates, action, run, mono_now());
           }},
          input.assignment.run_name,
          {[this](const Usage& usage, std::uint64_t milestones) {
             watch_.meter(usage, milestones);
             disk_.look();
           },
           [this](const Json& payload) { return note_of_agent("meter", Actor::kAgent, payload); },
           [this](const MeterStop& stop, std::uint64_t evidence) {
             tell_budget_reached(stop, evidence);
           },
           [this] { agent_stop_.request_stop(); },
           [this] {
             const std::string why = watch_.agent_order();
             if (why.empty()) return std::pair(why, std::uint64_t{0});
             return std::pair(why, note(events::kAgentOrder, why));
           },
           [hold = watch_.hold()] {
             return Instant(std::chrono::duration_cast<Millis>(hold->now().time_since_epoch()));
           }},
          book),
      safety_(
          input.settings->safety.stop_run,
          {[this](const Json& alert) { return note(events::kAlert.type, Actor::kMonitor, alert); },
           [this](std::uint64_t alert, const std::string& why) {
             note(events::kIntervention.type, Actor::kMonitor,
                  events::kIntervention.json("policy_stop", alert, std::nullopt, "agent"));
             meter_.order_stop(kPolicyCap, "policy_stop: " + why, alert);
           }}) {}

AttemptRun::Outcome AttemptRun::run() {
  out_.started_ms = wall_now().raw();
  std::vector<LifecycleCommand> commands;
  if (input_.left) {
    commands = go_on(*input_.left);
  } else {
    watch_.enter(wire::Stage::kPreparing);
    commands = lifecycle_.start();
  }
  bool cancelled = false;
  while (!commands.empty()) {
    Answer answer;
    for (const LifecycleCommand& command : commands) {
      answer = answer_to(command);
    }
    if (lifecycle_.finished()) break;
    if (broken_) answer = StepFailed{*std::exchange(broken_, std::nullopt), 0};
    if (!cancelled && watch_.token().stop_requested()) {
      cancelled = true;
      answer = RunCancelAsked{watch_.cancel_reason(), watch_.worker_leaves()};
    }
    point_to_evidence(*answer);
    commands = tell(*answer);
    if (std::holds_alternative<AgentEnded>(*answer)) agent_ended();
    if (std::holds_alternative<PatchExtracted>(*answer)) keep_checkpoint({});
    meter_.agent_kept();
    agent_sandbox_.reset();
  }
  agent_sandbox_.reset();
  leave_workspace(MeterPhase::kAcceptance);
  out_.verdict = lifecycle_.verdict();
  if (packed_) add_judged(out_.verdict.facts, *packed_);
  out_.usage = meter_.usage();
  return out_;
}

std::uint64_t AttemptRun::note(std::string_view type, Actor actor, const Json& payload) {
  const std::lock_guard lock(trace_mutex_);
  if (!recorder_) return 0;
  Result<std::uint64_t> seq = recorder_->event(type, actor, payload);
  if (seq.ok()) return *seq;
  if (!broken_) broken_ = as_host_error(in_context("trace", std::move(seq).error()));
  return 0;
}

std::uint64_t AttemptRun::note_of_agent(std::string_view type, Actor actor, const Json& payload) {
  AgentLog::Noted noted;
  {
    const std::lock_guard lock(trace_mutex_);
    if (!recorder_) return 0;
    Result<AgentLog::Noted> done = agent_log_.note(*recorder_, type, actor, payload);
    if (!done.ok()) {
      if (!broken_) broken_ = as_host_error(in_context("trace", std::move(done).error()));
      return 0;
    }
    noted = *std::move(done);
  }
  if (!noted.full.empty()) meter_.order_stop(kTraceCap, noted.full, noted.evidence);
  return noted.seq;
}

// R081: whatever ends a run leaves an event behind that the report can point to.  Events before
// the manifest's are none: there is no trace yet.
void AttemptRun::point_to_evidence(LifecycleEvent& event) {
  if (auto* failed = std::get_if<StepFailed>(&event); failed != nullptr && failed->evidence == 0)
    failed->evidence = note(events::kStepFailed, failed->error.code, failed->error.detail);
  if (auto* asked = std::get_if<RunCancelAsked>(&event))
    asked->evidence =
        note(events::kCancelAsked.type, asked->worker_leaves ? Actor::kHarness : Actor::kOperator,
             events::kCancelAsked.json(asked->reason, asked->worker_leaves));
}

std::string AttemptRun::label(std::string_view phase) const {
  return to_string(input_.assignment.attempt) + "-" + std::string(phase);
}

Result<fs::path> open_dir(const fs::path& in, const std::string& name) {
  fs::path path = in / name;
  if (Status made = make_dirs(path); !made.ok()) return as_host_error(std::move(made).error());
  // The user inside a container is not ours; only the attempt's own folder, closed to others, leads
  // here.
  if (::chmod(path.c_str(), 0777) != 0) return Error{Errc::kUnavailable, "chmod " + path.string()};
  return path;
}

fs::path AttemptRun::beside_workspace() const {
  const auto bounded = workspace_ ? workspace_->bounded() : std::nullopt;
  return bounded ? bounded->beside : dir_;
}

// The limit is kept by those who look, ten times a second; this is how far it can be passed.
DiskBound AttemptRun::disk_bound(Room room) const {
  // In acceptance what the agent left does not count, and containers see copies.
  std::uint64_t times = room == Room::kAcceptance ? 2 : 1;
  if (input_.method->container || std::ranges::any_of(contract().checks, [](const Check& c) {
        return c.container.has_value();
      }))
    ++times;
  return {contract().policy.disk_bytes * times, limits::kSandboxFiles * times};
}

// At the end of a bounded disk a command fails in a way of its own; why is known here.
void AttemptRun::look_at_disk(ExecOutcome& outcome) const {
  using End = ExecOutcome::End;
  if (!workspace_ || !workspace_->bounded()) return;
  const bool by_itself = outcome.end == End::kExited || outcome.end == End::kSignalled;
  if (by_itself && (outcome.host_disk_full || workspace_->used_up())) outcome.end = End::kDisk;
  outcome.host_disk_full = false;
}

AttemptRun::Answer AttemptRun::perform(const TakeSnapshot&) {
  PROCTOR_TRY(engine_, tools_.engines.wait_for(wish(contract().environment), watch_.token()));
  PROCTOR_TRY(std::optional<ImageFailed> image, have_image());
  if (image) return *std::move(image);
  if (!input_.method->environment.image.empty()) {
    PROCTOR_TRY(method_engine_, agent_engine());
  }
  // An image that is not here is no check's end.
  std::vector<const ProgramContainer*> containers = containers_of(contract());
  if (input_.method->container) containers.insert(containers.begin(), &*input_.method->container);
  for (const ProgramContainer* container : containers)
    PROCTOR_CHECK_OK(container_engine(*container));
  PROCTOR_TRY(snapshot_, tools_.store.snapshot(contract().repository, input_.contract->base));
  return SnapshotReady{snapshot_.commit, snapshot_.tree};
}

AttemptRun::Answer AttemptRun::perform(const WriteManifest& c) {
  PROCTOR_CHECK_OK(write_manifest());
  const std::uint64_t image = note_image();
  if (image_ && !image_->failure.empty()) return StepDone{image};
  if (c.against.empty()) return StepDone{};
  return StepDone{note(events::kSnapshotRefused, c.against, snapshot_.commit, snapshot_.tree)};
}

AttemptRun::Answer AttemptRun::perform(const OpenWorkspace& c) {
  PROCTOR_CHECK_OK(open_workspace(c.room));
  return StepDone{};
}

ShownTo AttemptRun::shown_to() const {
  const bool docker = engine_->kind() == SandboxKind::kDocker ||
                      (method_engine_ != nullptr && method_engine_->kind() == SandboxKind::kDocker);
  if (docker) return ShownTo::kDockerEngine;
  const bool users =
      engine_->has_own_users() && (method_engine_ == nullptr || method_engine_->has_own_users());
  return users ? ShownTo::kOwnUser : ShownTo::kNobody;
}

Status AttemptRun::open_workspace(Room room) {
  // The agent's is gone before the fresh one exists.
  leave_workspace(room == Room::kAcceptance ? MeterPhase::kAcceptance : MeterPhase::kSetup);
  layered_ = false;
  setup_.making.reset();
  if (room == Room::kAcceptance) watch_.enter(wire::Stage::kAcceptance);
  if (room == Room::kAgent) find_or_make(setup_, contract().setup);
  if (room == Room::kAgent && setup_.layer) {
    PROCTOR_CHECK_OK(open_on_layer(room));
  } else {
    PROCTOR_TRY(workspace_, tools_.store.create(snapshot_, label(to_string(room)), nullptr,
                                                disk_bound(room), shown_to()));
  }
  note(events::kWorkspaceOpened, std::string(to_string(room)),
       std::string(to_string(workspace_->kind())), workspace_->user() ? "own" : "one",
       snapshot_.tree);
  return ok_status();
}

Result<SandboxSpec> AttemptRun::spec_for(Room room, const std::string& label, SandboxEngine& engine,
                                         std::optional<std::uint32_t> seed) {
  const SandboxKind kind = engine.kind();
  SandboxSpec spec = dress_sandbox(contract(), kind, seed.value_or(input_.assignment.seed));
  spec.label = label;
  spec.hold = watch_.hold();
  if (kind == SandboxKind::kDocker) {
    PROCTOR_TRY(spec.workspace_volume, workspace_->docker_volume());
  } else {
    spec.workspace = workspace_->dir();
    spec.user = workspace_->user();
  }
  // The tree that the agent left is judged, whatever it takes; the limit is on what is made from
  // it.
  const FolderUse before = room == Room::kAcceptance ? patched_ : FolderUse{};
  const auto at = workspace_->written();
  spec.disk.places.push_back({at.dir, at.bytes_before + before.bytes,
                              at.files_before + before.files, at.below, at.bytes_below,
                              at.files_below});
  // One home per room: what setup installs outlives its step, and nothing of the agent's crosses.
  PROCTOR_TRY(const fs::path home, writable_dir(home_name(room)));
  spec.mounts.push_back({home, kHomeAt, true});
  spec.disk.places.push_back({home, 0, 0});
  spec.disk.bytes = contract().policy.disk_bytes;
  spec.disk.files = limits::kSandboxFiles;
  if (const auto bounded = workspace_->bounded(); bounded && 0 < bounded->entries)
    spec.disk.files = std::min(spec.disk.files, bounded->entries);
  return spec;
}

Status AttemptRun::open_again(const SandboxSpec& spec) const {
  // Its volume under Docker is no folder of the spec.
  if (workspace_) PROCTOR_CHECK_OK(open_to_owner(workspace_->dir()));
  return open_writable_places(spec);
}

Result<ExecOutcome> AttemptRun::execute(SandboxEngine& engine, MeterPhase phase,
                                        const SandboxSpec& spec, const ExecSpec& exec,
                                        std::stop_token cancel) {
  // Every sandbox opens the folders of its spec; its volume under Docker is none of them.
  if (workspace_ && spec.workspace.empty()) PROCTOR_CHECK_OK(open_to_owner(workspace_->dir()));
  PROCTOR_TRY(auto sandbox, engine.open(spec));
  watch_.sandbox_started();
  meter_.command_begins(phase, exec.timeout, engine.kind() == SandboxKind::kDocker);
  disk_.begin();
  Result<ExecOutcome> outcome = sandbox->run(exec, std::move(cancel));
  if (outcome.ok())
    PROCTOR_CHECK_OK(when_there_is_room<Unit>("attempt " + spec.label, patience(),
                                              [&] { return open_again(spec); }));
  if (outcome.ok()) look_at_disk(*outcome);
  if (outcome.ok())
    meter_.executed(phase, {outcome->wall, outcome->cpu, outcome->memory_peak});
  else
    meter_.command_failed();
  if (std::optional<Error> full = disk_.end([&] { return written_in(spec); }); full && outcome.ok())
    return *std::move(full);
  return outcome;
}

std::uint64_t written_in(const SandboxSpec& spec) {
  std::uint64_t out = 0;
  for (const DiskLimit::Place& place : spec.disk.places) {
    const std::uint64_t bytes = folder_use(place.dir).bytes;
    out += bytes - std::min(bytes, place.bytes_before);
  }
  return out;
}

Result<std::unique_ptr<PhaseNetwork>> AttemptRun::give_network(SandboxSpec& spec,
                                                               const NetworkAccess& access,
                                                               const std::string& phase) {
  network_used_ = network_used_ || access.any();
  fs::path dir;
  if (access.filtered()) {
    PROCTOR_TRY(dir, fresh_dir("network"));
  }
  return PhaseNetwork::give(spec, access, phase, dir,
                            [this](std::string_view type, Actor actor, const Json& payload) {
                              return note(type, actor, payload);
                            });
}

AttemptRun::Answer AttemptRun::perform(const GiveBriefing&) {
  if (!contract().setup.empty()) {
    PROCTOR_TRY(setup_makes_, workspace_->made_under(contract().policy.protected_,
                                                     layered_ ? fs::path() : kept_made()));
    if (layered_) setup_makes_.at = setup_.layer->work();
    // Only the agent is asked where it may write.
    if (!contract().policy.writable.empty())
      if (auto wrote = workspace_->changed_under({"**"}); wrote.ok())
        setup_wrote_ = std::move(wrote).value();
    PROCTOR_CHECK_OK(keep_setup_home());
  }
  if (!contract().setup.empty()) (void)::clock_gettime(CLOCK_REALTIME, &setup_over_);
  briefing_ = briefing_text(contract(), agent_network(), agent_wall(), caps_.caps,
                            model_variable(*input_.method));
  note(events::kBriefing, briefing_);
  PROCTOR_CHECK_OK(recorder_->flush());
  return StepDone{};
}

AttemptRun::Answer AttemptRun::perform(const PlaceAcceptanceFiles&) {
  // What setup runs is the candidate's by now, which could copy them into its work, or out to who
  // comes next: behind a setup they come with what is put back before the first check.
  FolderUse to_come;
  if (contract().setup.empty()) {
    PROCTOR_CHECK_OK(place_acceptance_files());
  } else {
    for (const auto& [place, file] : acceptance_by_place(contract())) {
      to_come.bytes += file.bytes.size();
      ++to_come.files;
    }
  }
  // Of a copy, all of it is counted as it was copied.
  if (is_overlay(workspace_->kind()))
    patched_ = folder_use(workspace_->written().dir);
  else
    patched_ = {patch_.diff.size(), patch_.files};
  patched_.bytes += to_come.bytes;
  patched_.files += to_come.files;
  return StepDone{};
}

Status AttemptRun::place_acceptance_files() {
  acceptance_placed_ = true;
  std::vector<FileDigest> placed;
  for (const AcceptanceFile& file : contract().acceptance_files) {
    const auto from = std::find_if(contract().files.begin(), contract().files.end(),
                                   [&](const ReferencedFile& f) { return f.path == file.from; });
    if (from == contract().files.end()) {
      return Error{Errc::kInvalid, "the contract holds no file " + file.from};
    }
    PROCTOR_CHECK_OK(workspace_->put_file(file.to, from->bytes, from->mode, Way::kCleared));
    placed.push_back({file.to, sha256(from->bytes)});
  }
  if (!placed.empty()) note(events::kPlaced, placed);
  return ok_status();
}

AttemptRun::Answer AttemptRun::perform(const RunCheck& c) {
  PROCTOR_CHECK_OK(protect_again(c.index));
  PROCTOR_TRY(CheckEnded ended, check(c.index));
  return ended;
}

AttemptRun::Answer AttemptRun::perform(const RecordStage& c) {
  note(events::kStage, c.from, c.to);
  return std::nullopt;
}

AttemptRun::Answer AttemptRun::perform(const RecordSkippedCheck& c) {
  const std::int64_t now = wall_now().raw();
  note(events::kAcceptance, events::CheckTold{c.check, now, now});
  return std::nullopt;
}

AttemptRun::Answer AttemptRun::perform(const RecordTermination& c) {
  note(events::kTermination.type,
       c.termination == Termination::kOperatorCancel ? Actor::kOperator : Actor::kHarness,
       events::kTermination.json(c.termination, c.rationale, c.evidence));
  return std::nullopt;
}

// AttemptRun: what a run's commands left is removed, by a process of its own where it is much
// (worker/workspace/removal.h), and what that took is the run's (decision 94).
void AttemptRun::leave_workspace(MeterPhase phase) {
  if (!workspace_) return;
  count_removal(phase, workspace_->close());
  workspace_.reset();
}

// Homes, results, copies for containers: all but the evidence, and what a later life of the worker
// would want if this one is killed before the result is on disk.  Later than this nothing can be
// counted: the report names the usage.
void AttemptRun::leave_rooms() {
  std::vector<fs::path> rooms;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(dir_, ec))
    if (entry.path() != run_dir() && entry.path() != kept_made() && entry.path() != kept_home() &&
        entry.symlink_status(ec).type() == fs::file_type::directory)
      rooms.push_back(entry.path());
  const RemovalCost took = cost_of([&](RemovalCost& cost) {
    for (const fs::path& room : rooms)
      if (const Status gone = remove_left(room, tools_.remover, cost); !gone.ok())
        log::warn("attempt " + to_string(input_.assignment.attempt) + ": " + gone.error().detail);
  });
  count_removal(MeterPhase::kAcceptance, took);
}

Status AttemptRun::remove_counted(const fs::path& dir) {
  Status removed = ok_status();
  const RemovalCost took =
      cost_of([&](RemovalCost& cost) { removed = remove_left(dir, tools_.remover, cost); });
  count_removal(MeterPhase::kAcceptance, took);
  return removed;
}

void AttemptRun::count_removal(MeterPhase phase, const RemovalCost& took) {
  if (!took.apart && took.wall < kCountedWork) return;
  meter_.executed(phase, {took.wall, took.cpu, took.memory_peak});
  note(events::kRemoved, took.wall, took.cpu,
       took.apart ? std::optional(took.memory_peak) : std::nullopt);
}

// AttemptRun: what is kept for a later life of the worker, and going on with what an earlier one
// left (docs/worker.md).
std::vector<LifecycleCommand> AttemptRun::tell(const LifecycleEvent& event) {
  told_.push_back(event);
  return lifecycle_.on(event);
}

// Without one the attempt is merely lost with this worker, as it was before there was one.
void AttemptRun::keep_checkpoint(Checkpoint c) {
  c.campaign = input_.campaign;
  c.epoch = input_.epoch;
  c.settings = input_.settings_digest;
  c.assignment = input_.assignment;
  c.lives = lives_;
  c.told = told_;
  c.setup_makes = setup_makes_.paths;
  Status kept = ok_status();
  {
    const std::lock_guard lock(trace_mutex_);
    if (!recorder_) return;
    kept = recorder_->flush();
    c.trace = patched_at_ = recorder_->mark();
  }
  if (kept.ok()) kept = write_checkpoint(dir_, c);
  if (!kept.ok())
    log::warn("attempt " + to_string(input_.assignment.attempt) + ": " + kept.error().detail);
}

void AttemptRun::outlives(const std::string& container) {
  const auto workspace = workspace_->left_to_others();
  if (!workspace) return;
  Checkpoint c;
  c.program = Checkpoint::Program{container, *workspace, disk_.free_at_begin()};
  keep_checkpoint(std::move(c));
}

// A program's hours, or a model's answer: neither is paid for twice.
void AttemptRun::agent_ended() {
  const Method::Kind kind = input_.method->kind;
  if (kind == Method::Kind::kNoop || kind == Method::Kind::kReference ||
      kind == Method::Kind::kRecorded)
    return;
  if (const auto workspace = workspace_->left_to_others()) {
    Checkpoint c;
    c.ended = Checkpoint::Ended{*workspace, meter_.usage()};
    keep_checkpoint(std::move(c));
  }
}

std::vector<LifecycleCommand> AttemptRun::go_on(const LeftAttempt& left) {
  out_.started_ms = left.book.so_far.started_ms;
  lives_ = left.checkpoint.lives;
  setup_makes_.paths = left.checkpoint.setup_makes;
  std::vector<LifecycleCommand> next = lifecycle_.start();
  for (const LifecycleEvent& event : left.checkpoint.told) next = tell(event);
  if (const Status restored = restore(left); !restored.ok()) {
    const Error& e = restored.error();
    log::warn("attempt " + to_string(input_.assignment.attempt) + " cannot go on: " + e.detail);
    give_up(left);
    // Without its room, a patch that is kept is not judged: no other try here would have one.
    const Errc code = left.checkpoint.workspace() == nullptr ? Errc::kInvalid : Errc::kUnavailable;
    LifecycleEvent lost = StepFailed{{code, "its worker was killed: " + e.detail}, 0};
    point_to_evidence(lost);
    return tell(lost);
  }
  note(events::kWorkerRestarted, left.checkpoint.program.has_value(), lives_);
  // The trace has all that came before the agent's start, and nothing that follows its patch.
  if (left.checkpoint.program) next.erase(next.begin(), next.end() - 1);
  return next;
}

Status AttemptRun::restore(const LeftAttempt& left) {
  const Checkpoint& c = left.checkpoint;
  const bool agent = c.program.has_value();
  patched_at_ = c.trace;
  watch_.enter(c.stage());
  watch_.sandbox_started();
  Usage usage = left.book.so_far.usage;
  if (!agent && left.book.command)
    add_time(usage, left.book.command->phase, time_of(*left.book.command, mono_now()));
  meter_.go_on(usage, agent ? left.book.command : std::nullopt);
  if (!agent) meter_.agent_gone();
  PROCTOR_TRY(RunRecorder recorder,
              RunRecorder::reopen(run_dir(), c.trace,
                                  agent ? RunRecorder::Keep::kAll : RunRecorder::Keep::kMarked));
  recorder_ = std::make_unique<RunRecorder>(std::move(recorder));
  PROCTOR_TRY(engine_, tools_.engines.wait_for(wish(contract().environment), watch_.token()));
  PROCTOR_TRY(const std::optional<ImageFailed> image, have_image());
  if (image) return Error{Errc::kUnavailable, "its image is gone: " + image->why};
  PROCTOR_TRY(SandboxEngine* const runs_agent, agent_engine());
  if (!input_.method->environment.image.empty()) method_engine_ = runs_agent;
  if (agent && runs_agent->kind() != SandboxKind::kDocker)
    return Error{Errc::kUnavailable, "its image has another runtime now"};
  PROCTOR_TRY(snapshot_, tools_.store.snapshot(contract().repository, input_.contract->base));
  network_used_ = agent_network().any();
  for (const auto* setup : {&contract().setup, &input_.method->environment.setup})
    for (const SetupStep& step : *setup) network_used_ = network_used_ || step.network.any();
  look_for_layer();
  look_for_method_layer();  // its agent works with it still
  // Where the earlier life worked on a layer there are no copies; what neither has is not trusted.
  std::error_code ec;
  if (fs::exists(kept_made(), ec)) {
    setup_makes_.at = kept_made();
  } else if (setup_.layer) {
    setup_makes_.at = setup_.layer->work();
  }
  setup_home_ = kept_home();
  if (!fs::exists(kept_home(), ec) && setup_.layer) setup_home_ = setup_.layer->home();
  if (c.workspace() == nullptr) return clear_acceptance();
  if (agent) {
    left_program_ = &left;
    PROCTOR_CHECK_OK(each_event(run_dir(), [this](const TraceEvent& event) {
      if (event.type == events::kAlert.type) safety_.heard(event.payload);
    }));
  }
  PROCTOR_TRY(workspace_,
              tools_.store.adopt(snapshot_, label(to_string(Room::kAgent)), *c.workspace()));
  return ok_status();
}

// Its program is ended, and its workspace goes with the attempt.
void AttemptRun::give_up(const LeftAttempt& left) {
  left_program_ = nullptr;
  meter_.agent_gone();
  meter_.agent_kept();
  const Checkpoint& c = left.checkpoint;
  if (c.workspace() == nullptr) return;
  SandboxSpec spec;
  spec.label = label("agent");
  if (c.program && engine_ != nullptr)  // else there was none to be had a moment ago
    if (const auto runs_it = agent_engine(); runs_it.ok())
      (void)(*runs_it)->adopt(spec, left.command()).ok();
  if (workspace_) return;
  auto workspace = tools_.store.adopt(snapshot_, spec.label, *c.workspace());
  if (workspace.ok()) workspace_ = std::move(workspace).value();
}

// Back to where the patch was extracted, as after a restart of the worker: what the try before left
// is out of the trace and paid for.
AttemptRun::Answer AttemptRun::perform(const JudgeAgain& c) {
  const std::string work = "attempt " + label("acceptance");
  constexpr std::chrono::minutes kStarved{1};
  const Patience others{until_stopped(watch_.token()), kStarved, kStarved};
  log::warn(work + " is judged again: " + c.why);
  locked_before_.clear();
  if (const auto lacked = std::exchange(lacked_, std::nullopt)) {  // until it is given back
    const auto again = [&] { return had_all(*lacked->first, lacked->second); };
    static_cast<void>(when_there_is_room<Unit>(work, others, again));
  } else {
    pause_for(std::chrono::seconds(c.nth), watch_.token());
  }
  const Status back = when_there_is_room<Unit>(work, patience(), [&]() -> Status {
    leave_workspace(MeterPhase::kAcceptance);
    PROCTOR_TRY(RunRecorder cut,
                RunRecorder::reopen(run_dir(), patched_at_, RunRecorder::Keep::kMarked));
    *recorder_ = std::move(cut);
    note(events::kJudgedAgain, c.nth, c.why);
    return clear_acceptance();
  });
  if (!back.ok()) broken_ = back.error();
  return std::nullopt;
}

AttemptRun::Answer AttemptRun::perform(const RepeatAcceptance& c) {
  const auto clear = [&]() -> Status {
    PROCTOR_CHECK_OK(leave_acceptance());
    std::error_code ec;
    for (const std::string_view dir : {kAcceptanceDir, kAcceptanceSetupDir})
      if (fs::exists(run_dir() / dir, ec))
        PROCTOR_CHECK_OK(rename_path(run_dir() / dir, run_dir() / repeated_dir(dir, c.nth)));
    return ok_status();
  };
  const Status done = when_there_is_room<Unit>("attempt " + label("acceptance"), patience(), clear);
  if (done.ok())
    note(events::kRepeated, c.nth, c.of);
  else
    broken_ = done.error();
  return std::nullopt;
}

// The next workspace begins with the snapshot and the recorded patch, and no file of this one.
Status AttemptRun::leave_acceptance() {
  leave_workspace(MeterPhase::kAcceptance);
  home_known_.clear();
  container_copies_.clear();
  acceptance_placed_ = false;
  PROCTOR_TRY(snapshot_, tools_.store.snapshot(contract().repository, input_.contract->base));
  PROCTOR_TRY(patch_.diff, read_file(run_dir() / kPatchFile, limits::kPatchBytes));
  PROCTOR_CHECK_OK(remove_counted(dir_ / home_name(Room::kAcceptance)));
  PROCTOR_CHECK_OK(remove_counted(container_root(Room::kAcceptance)));
  for (std::size_t i = 0; i < contract().checks.size(); ++i)
    PROCTOR_CHECK_OK(remove_counted(dir_ / ("check-" + std::to_string(i) + "-results")));
  return ok_status();
}

// Acceptance begins again, in a fresh workspace: nothing of the first try is there.
Status AttemptRun::clear_acceptance() {
  std::vector<std::string> agents;
  for (const LifecycleEvent& event : told_)
    if (const auto* ended = std::get_if<AgentEnded>(&event)) agents = ended->forbidden;
  safety_.back_to(agents);
  fragments_ = {};
  for (const std::string_view dir : {kAcceptanceDir, kAcceptanceSetupDir}) {
    PROCTOR_CHECK_OK(remove_tree(run_dir() / dir));
    for (std::uint32_t n = 1; n <= rerun_of(input_); ++n)
      PROCTOR_CHECK_OK(remove_tree(run_dir() / repeated_dir(dir, n)));
  }
  return leave_acceptance();
}

// AttemptRun: the two ends of a run directory, manifest.json and report.json (R043-R047, R053,
// R054).

namespace {
// The bytes that the archive will hold but for report.json, before compression: report and result
// must name the same usage, and a report cannot hold its own size.
std::uint64_t recorded_bytes(const fs::path& run_dir, std::uint64_t at_least) {
  const auto entries = list_tree(run_dir);
  if (!entries.ok()) return at_least;
  std::uint64_t total = 0;
  for (const auto& entry : *entries) total += entry.bytes;
  return total;
}
}  // namespace

AttemptRun::Answer AttemptRun::perform(const Package&) {
  watch_.enter(wire::Stage::kPackaging);
  leave_workspace(MeterPhase::kAcceptance);
  leave_rooms();
  out_.finished_ms = std::max(out_.started_ms, wall_now().raw());  // a clock may be put back
  if (!recorder_) return std::nullopt;
  meter_.stored(recorded_bytes(run_dir(), patch_.diff.size()));
  out_.usage = meter_.usage();
  const Verdict& verdict = lifecycle_.verdict();
  RunReport report;
  identify(report);
  report.tree = snapshot_.tree;
  report.outcome = verdict.outcome;
  report.termination = verdict.termination;
  report.rationale = verdict.rationale;
  report.evidence_seq = verdict.evidence;
  report.facts = verdict.facts;
  report.facts->fault = verdict.fault;
  report.checks = verdict.checks;
  report.application = verdict.application;
  report.violations = verdict.violations;
  if (!input_.settings->seed_deviation.empty()) {
    report.deviations.push_back("seed " + std::to_string(input_.settings->seed) + ": " +
                                input_.settings->seed_deviation);
  }
  report.replayable = !network_used_;
  report.usage = out_.usage;
  report.failed_cycles = out_.usage.failed_cycles;
  report.cost = price(input_.settings->cost_model, out_.usage);
  report.finished_ms = out_.finished_ms;
  PROCTOR_CHECK_OK(recorder_->flush());
  PROCTOR_CHECK_OK(judge_report(report, run_dir()));
  const Result<Digest> digest =
      when_there_is_room<Digest>("the report of attempt " + to_string(report.attempt), patience(),
                                 [&] { return recorder_->finish(report); });
  if (digest.ok()) {
    out_.report = *digest;
    out_.packaged = true;
    packed_ = std::move(report);
  } else {
    broken_ = digest.error();
  }
  return std::nullopt;
}
}  // namespace proctor
