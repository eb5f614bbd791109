// RunLifecycle: the setup of a task and of a method, and whose failure it is when a step fails.
#include "common/base/result.h"
#include "worker/core/lifecycle_words.h"
#include "worker/core/run_lifecycle.h"

namespace proctor {

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

}  // namespace proctor
