// AttemptRun: what is kept for a later life of the worker, and going on with what an earlier one
// left (docs/worker.md).
#include <utility>

#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/system_clock.h"
#include "common/trace/evidence.h"
#include "worker/shell/attempt_run.h"
#include "worker/shell/run_events.h"

namespace proctor {

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
  if (kind == Method::Kind::kNoop || kind == Method::Kind::kReference) return;
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
  note("worker.restarted", Actor::kHarness,
       Json{{"agent", left.checkpoint.program.has_value()}, {"lives", lives_}});
  // What came before the agent's start is in the trace; what follows its patch is not.
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
  } else if (layer_) {
    setup_makes_.at = layer_->work();
  }
  setup_home_ = kept_home();
  if (!fs::exists(kept_home(), ec) && layer_) setup_home_ = layer_->home();
  if (c.workspace() == nullptr) return clear_acceptance();
  if (agent) left_program_ = &left;
  PROCTOR_TRY(workspace_,
              tools_.store.adopt(snapshot_, label(to_string(Room::kAgent)), *c.workspace()));
  return ok_status();
}

// What runs is ended, and its workspace goes with the attempt.
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
    home_known_.clear();
    container_copies_.clear();
    acceptance_placed_ = false;
    PROCTOR_TRY(RunRecorder cut,
                RunRecorder::reopen(run_dir(), patched_at_, RunRecorder::Keep::kMarked));
    *recorder_ = std::move(cut);
    note("acceptance.again", Actor::kHarness, Json{{"nth", c.nth}, {"why", as_utf8(c.why)}});
    PROCTOR_TRY(snapshot_, tools_.store.snapshot(contract().repository, input_.contract->base));
    return clear_acceptance();
  });
  if (!back.ok()) broken_ = back.error();
  return std::nullopt;
}

// Acceptance begins again, in a fresh workspace: nothing of the first try is there.
Status AttemptRun::clear_acceptance() {
  PROCTOR_TRY(patch_.diff, read_file(run_dir() / kPatchFile, limits::kPatchBytes));
  PROCTOR_CHECK_OK(remove_tree(run_dir() / kAcceptanceDir));
  PROCTOR_CHECK_OK(remove_tree(run_dir() / "setup-acceptance"));
  PROCTOR_CHECK_OK(remove_counted(dir_ / home_name(Room::kAcceptance)));
  PROCTOR_CHECK_OK(remove_counted(container_root(Room::kAcceptance)));
  for (std::size_t i = 0; i < contract().checks.size(); ++i)
    PROCTOR_CHECK_OK(remove_counted(dir_ / ("check-" + std::to_string(i) + "-results")));
  return ok_status();
}

}  // namespace proctor
