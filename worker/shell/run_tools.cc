#include "worker/shell/run_tools.h"

#include <algorithm>
#include <utility>

#include "common/base/system_clock.h"
#include "worker/shell/run_events.h"

namespace proctor {
namespace {

constexpr std::size_t kCommandOutput = std::size_t{1} << 20;
// A shell's, of what a signal ended.
constexpr int kBySignal = 128, kKilled = 137;

// As a shell would say it; nothing: its time was over.
std::optional<int> shell_exit(const ExecOutcome& outcome) {
  switch (outcome.end) {
    case ExecOutcome::End::kExited:
      return outcome.exit_code;
    case ExecOutcome::End::kSignalled:
      return kBySignal + outcome.signal;
    case ExecOutcome::End::kTimedOut:
    case ExecOutcome::End::kCancelled:
      return std::nullopt;
    case ExecOutcome::End::kMemory:
    case ExecOutcome::End::kDisk:
    case ExecOutcome::End::kCpu:
      return kKilled;
  }
  return std::nullopt;
}

}  // namespace

Result<std::unique_ptr<RunTools>> RunTools::open(RunToolPlace place, ToolSessionRules rules,
                                                 RunToolHooks hooks, Millis time,
                                                 std::stop_token stop) {
  PROCTOR_TRY(WorkspaceTools files, WorkspaceTools::open(place.workspace, place.rules));
  return std::unique_ptr<RunTools>(new RunTools(std::move(place), std::move(files),
                                                std::move(rules), std::move(hooks), time,
                                                std::move(stop)));
}

RunTools::RunTools(RunToolPlace place, WorkspaceTools files, ToolSessionRules rules,
                   RunToolHooks hooks, Millis time, std::stop_token stop)
    : place_(std::move(place)),
      files_(std::move(files)),
      hooks_(std::move(hooks)),
      begin_(place_.sandbox.hold ? place_.sandbox.hold->now() : Hold::Clock::now()),
      time_(time),
      stop_(std::move(stop)),
      session_(std::make_unique<ToolSession>(std::move(rules), files_, session_hooks())) {}

RunTools::~RunTools() = default;

RunTools::Millis RunTools::elapsed() const {
  const auto now = place_.sandbox.hold ? place_.sandbox.hold->now() : Hold::Clock::now();
  return std::chrono::duration_cast<Millis>(now - begin_);
}
RunTools::Millis RunTools::left() const {
  return std::max(Millis(0), time_ - elapsed());
}
bool RunTools::over() const {
  return stop_.stop_requested() || left() == Millis(0);
}
void RunTools::wait(Millis time) const {
  pause_for(std::min(time, left()), stop_);
}
void RunTools::wait_until_goes_on() const {
  if (place_.sandbox.hold) place_.sandbox.hold->wait_until_off(stop_);
}

void RunTools::fail(const Error& why) {
  broken_ = why;
  if (hooks_.failed) hooks_.failed();
}

ToolHooks RunTools::session_hooks() {
  ToolHooks out;
  out.reserve = [this](const std::string& id, const ToolKind& kind, Millis most) {
    auto no = reserve(held_, "tool-" + id, kToolCall, most);
    if (no || kind.tool != Tool::kRunTests) return no;
    no = reserve(cycle_, "cycle-" + id, kAcceptanceCycle, Millis(0));
    if (no) settle(MeterRelease{held_});
    return no;
  };
  out.charge = [this](const std::string&, const ToolKind& kind, Millis used,
                      std::optional<bool> failed) {
    settle(MeterCharge{held_, Amount{.ms = static_cast<std::uint64_t>(used.count())}});
    if (kind.tool != Tool::kRunTests) return;
    if (failed)
      settle(MeterCharge{cycle_, Amount{.failed = *failed}});
    else
      settle(MeterRelease{cycle_});
  };
  out.note = [this](std::string_view type, const Json& payload) { return note(type, payload); };
  out.status = hooks_.status;
  out.shell = [this](const std::string& command, bool writes, Millis most) {
    Result<ProgramRun> ran = run_in_sandbox(command, writes, most);
    if (!ran.ok()) fail(ran.error());
    return ran;
  };
  out.state = hooks_.state;
  out.wait = [this](Millis time) { wait(time); };
  out.now = [this] { return elapsed(); };
  return out;
}

ToolHeard RunTools::note(std::string_view type, const Json& payload) const {
  const bool asked = type == "tool.call";
  if (asked && hooks_.say)
    hooks_.say("  " + payload.value("id", "") + " " + payload.value("tool", ""));
  GatewaySession::Heard heard =
      hooks_.tell(type, asked ? GatewayHooks::By::kAgent : GatewayHooks::By::kHarness, payload);
  const bool suspend = !heard.suspended.empty();
  return {std::move(heard.suspended), suspend, Millis(0)};
}

void RunTools::settle(const MeteredCall& end) {
  const auto settled = hooks_.meter(end);
  if (!settled.ok()) fail(settled.error());
}

// What is held is known by `as`, another name for each try.
std::optional<ToolRefusal> RunTools::reserve(std::string& as, const std::string& id,
                                             std::string_view action, Millis most) {
  wait_until_goes_on();
  for (std::uint32_t tries = 0;; ++tries) {
    if (broken_) return ToolRefusal{"host", "the host failed", true, 0};
    if (disk_full_) return ToolRefusal{"disk", "the workspace has no more room", true, 0};
    if (over()) return ToolRefusal{"wall", "the run's time is over", true, 0};
    MeterReserve ask;
    ask.id = id + "." + std::to_string(tries);
    ask.action.type = std::string(action);
    ask.most.failed = action == kAcceptanceCycle;
    ask.most.ms = static_cast<std::uint64_t>(most.count());
    ask.witness = Witness::kMeasured;
    as = ask.id;
    const Result<MeterAnswer> answer = hooks_.meter(ask);
    if (!answer.ok()) return ToolRefusal{"tool_calls", answer.error().detail, true, 0};
    const auto* no = std::get_if<MeterDenied>(&*answer);
    if (no == nullptr) return std::nullopt;
    if (no->final || no->retry_after_ms == 0)
      return ToolRefusal{no->cap, no->reason, no->final, no->short_by};
    wait(Millis(no->retry_after_ms));
  }
}

Result<ProgramRun> RunTools::run_in_sandbox(const std::string& command, bool writes, Millis most) {
  SandboxSpec spec = place_.sandbox;
  spec.workspace_read_only = !writes;
  ExecSpec exec;
  exec.command = command;
  exec.timeout = std::clamp(most, Millis(1), std::max(Millis(1), left()));
  exec.stdout_file = place_.scratch / "stdout";
  exec.stderr_file = place_.scratch / "stderr";
  exec.output_max = kCommandOutput;
  PROCTOR_TRY(auto sandbox, place_.engine->open(spec));
  PROCTOR_TRY(ExecOutcome outcome, sandbox->run(exec, stop_));
  sandbox.reset();
  PROCTOR_CHECK_OK(hooks_.settle(outcome));
  spent_.cpu += outcome.cpu;
  spent_.memory_peak = std::max(spent_.memory_peak, outcome.memory_peak);
  ProgramRun out;
  PROCTOR_TRY(out.out, read_file(exec.stdout_file, kCommandOutput));
  PROCTOR_TRY(out.err, read_file(exec.stderr_file, kCommandOutput));
  disk_full_ = outcome.end == ExecOutcome::End::kDisk;
  out.exit = shell_exit(outcome);
  using End = ExecOutcome::End;
  if (outcome.end == End::kMemory || outcome.end == End::kDisk || outcome.end == End::kCpu)
    out.err += "\n[" + end_of(outcome).describe() + "]";
  return out;
}

}  // namespace proctor
