// AttemptRun: the agent, its meter and how it is stopped (R106, R114-R117, R159).
#include <utility>

#include "common/base/limits.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "worker/gateway/own_client.h"
#include "worker/model/single_shot.h"
#include "worker/shell/attempt_run.h"
#include "worker/shell/disk_watch.h"
#include "worker/shell/failure_words.h"
#include "worker/shell/run_events.h"
#include "worker/shell/sandbox_dress.h"
#include "worker/workspace/changes.h"
#include "worker/workspace/touched.h"

namespace proctor {
namespace {

// A shell's, of a program that cannot be run or is not there.
constexpr int kNotExecutable = 126, kNotFoundBySh = 127;

// Anything but its own time: what an agent says to its meter is the agent at work.
bool has_asked_meter(const Usage& u) {
  return 0 < u.model_calls + u.input_tokens + u.output_tokens + u.other_micros + u.tool_ms +
                 u.dependency_installs + u.failed_cycles + u.reported_micros + u.reported_tokens +
                 u.reported_calls + u.refused_calls;
}

}  // namespace

// That of the contract, or of the method's own image.
Result<SandboxEngine*> AttemptRun::agent_engine() {
  if (input_.method->container) return container_engine(*input_.method->container);
  if (input_.method->environment.image.empty()) return engine_;
  const Environment environment = agent_environment();
  return tools_.engines.wait_for(wish(environment), watch_.token());
}

Result<std::unique_ptr<MeterServer>> AttemptRun::show_meter(SandboxSpec& spec) {
  PROCTOR_TRY(const fs::path dir, fresh_dir("meter"));
  // An agent that outlived us shows this very folder, with the socket that nobody answers any more.
  std::error_code ignored;
  fs::remove(dir / fs::path(kMeterSocket).filename(), ignored);
  PROCTOR_TRY(auto server, MeterServer::start(dir, meter_));
  // Connecting needs no writable mount, and a client must not take the socket away.
  spec.mounts.push_back({dir, kMeterAt, false});
  spec.env["PROCTOR_METER"] = kMeterSocket;
  return server;
}

AgentJob AttemptRun::agent_job(SandboxEngine& engine, SandboxSpec spec, fs::path scratch,
                               std::uint64_t& evidence, OfferedTools* tools) {
  std::optional<AgentJob::Left> left;
  if (left_program_ != nullptr)
    left = AgentJob::Left{left_program_->command(), left_program_->book.command->limit};
  return {contract(),
          *input_.method,
          *workspace_,
          engine,
          std::move(spec),
          briefing_,
          input_.assignment.run_name,
          input_.assignment.seed,
          input_.assignment.replicate,
          agent_wall(),
          std::move(scratch),
          recorder_->dir() / "agent",
          [this] {
            watch_.sandbox_started();
            if (left_program_ == nullptr) meter_.program_runs();
          },
          [this, &evidence, tools](const ToolUse& use) {
            Execution whole{use.outcome.wall, use.outcome.cpu, use.outcome.memory_peak};
            if (tools != nullptr) {  // and what its commands took
              tools->close();
              const ExecOutcome& spent = tools->work().spent();
              whole.cpu += spent.cpu;
              whole.memory_peak = std::max(whole.memory_peak, spent.memory_peak);
            }
            meter_.program_ended(whole);
            evidence = note("tool", Actor::kAgent, tool_payload(use));
          },
          [this, &engine] { return meter_.start_program(engine.kind() == SandboxKind::kDocker); },
          [this](const std::string& container) { outlives(container); },
          std::move(left)};
}

// What it has written is taken back whatever it ended as.
Result<AgentReport> AttemptRun::work_in_container(const AgentJob& job,
                                                  const ProgramContainer& container) {
  std::stop_source too_much;
  const std::stop_callback agent(agent_stop_.get_token(), [&] { too_much.request_stop(); });
  DiskWatch disk(container_root(Room::kAgent), contract().policy.disk_bytes, too_much);
  PROCTOR_TRY(AgentReport report,
              make_agent(Method::Kind::kCommand)->work(job, too_much.get_token()));
  if (disk.end() && report.program && !watch_.token().stop_requested())
    stopped_at_disk_limit(*report.program);
  const bool full = workspace_->used_up();
  FolderCount left({0, kChangedFilesMax * 5});
  left.add(container_root(Room::kAgent));
  if (left.passed()) {
    unreadable_ = Error{Errc::kExhausted, "workspace: nested too deep, or too many files"};
    return report;
  }
  Status taken = take_back(container);
  // Not the host's failure, for which there is another attempt.
  if (!taken.ok() && full) return Error{Errc::kInvalid, taken.error().detail};
  PROCTOR_CHECK_OK(taken);
  return report;
}

Result<AgentReport> AttemptRun::work_with(const AgentJob& job, const Listeners& listeners) {
  const Method& method = *input_.method;
  if (method.kind == Method::Kind::kToolLoop) return work_by_tools(job, *listeners.gateway);
  if (method.container) return work_in_container(job, *method.container);
  if (method.kind != Method::Kind::kSingleShot)
    return make_agent(method.kind)->work(job, agent_stop_.get_token());
  SingleShotTools tools{};
  if (listeners.gateway) {
    PROCTOR_TRY(const std::string token, gateway_token());
    tools.access = &tools_.models.at(method.call.model);
    tools.ask = [dir = dir_ / "gateway", token = Secret(token)](const std::string& body,
                                                                const std::function<bool()>& over) {
      return ask_gateway(dir, token, ModelApi::kChat, body, over);
    };
  }
  return make_single_shot(std::move(tools))->work(job, agent_stop_.get_token());
}

// A moment that lies behind all that setup changed, by the clock that stamps changes.
timespec AttemptRun::agent_begins() const {
  constexpr std::chrono::milliseconds kTick(1);
  constexpr int kTicksMost = 100;  // a clock that was set back is not waited for
  timespec now = stamp_now();
  const auto is_behind = [&] {
    return std::pair(setup_over_.tv_sec, setup_over_.tv_nsec) < std::pair(now.tv_sec, now.tv_nsec);
  };
  for (int i = 0; i < kTicksMost && !is_behind(); ++i) {
    pause_for(kTick, watch_.token());
    now = stamp_now();
  }
  return now;
}

Result<AgentEnded> AttemptRun::work(Listeners& listeners) {
  const Method& method = *input_.method;
  SandboxSpec spec;
  fs::path scratch;
  std::unique_ptr<PhaseNetwork> network;
  // A baseline opens no sandbox and writes no output; an empty folder would be evidence of nothing.
  PROCTOR_TRY(SandboxEngine* const engine, agent_engine());
  if (method.container) {
    PROCTOR_TRY(spec, container_spec(*engine, *method.container, Room::kAgent, label("agent")));
    PROCTOR_CHECK_OK(make_dirs(recorder_->dir() / "agent"));
    PROCTOR_CHECK_OK(add_secrets(spec.env, method.environment.secrets));
    PROCTOR_TRY(network, give_container_network(spec, agent_network(), "agent"));
  } else if (method.kind == Method::Kind::kCommand) {
    PROCTOR_TRY(spec, agent_spec(*engine));
    PROCTOR_TRY(scratch, fresh_dir("agent"));
    PROCTOR_CHECK_OK(make_dirs(recorder_->dir() / "agent"));
    PROCTOR_TRY(network, give_network(spec, agent_network(), "agent"));
    const SandboxSpec commands = spec;  // of tools: they see neither the meter nor the gateway
    PROCTOR_TRY(listeners.meter, show_meter(spec));
    if (method.gateway) {
      PROCTOR_TRY(listeners.gateway, show_gateway(spec));
    }
    if (method.gateway && method.gateway->tools != MethodGateway::Tools::kNone) {
      PROCTOR_TRY(listeners.tools, show_tools(*engine, commands, spec, *listeners.gateway));
    }
  } else if (method.kind == Method::Kind::kSingleShot) {
    PROCTOR_CHECK_OK(make_dirs(recorder_->dir() / "agent"));
    PROCTOR_CHECK_OK(listen_unseen(spec, listeners));
  } else if (method.kind == Method::Kind::kToolLoop) {
    PROCTOR_TRY(scratch, fresh_dir("agent"));
    PROCTOR_CHECK_OK(make_dirs(recorder_->dir() / "agent"));
    PROCTOR_TRY(spec, agent_spec(*engine));
    PROCTOR_CHECK_OK(listen_unseen(spec, listeners));
    PROCTOR_TRY(network, give_network(spec, agent_network(), "agent"));
  }
  std::uint64_t evidence = 0;
  if (left_program_ == nullptr)
    evidence = note("agent.start", Actor::kHarness,
                    Json{{"method", method.name},
                         {"network", network_payload(agent_network())},
                         {"privileges", {"read", "write", "test"}}});
  const std::stop_callback whole_run(watch_.token(), [this] { agent_stop_.request_stop(); });
  const AgentJob job =
      agent_job(*engine, std::move(spec), std::move(scratch), evidence, listeners.tools.get());
  if (left_program_ == nullptr) {
    disk_.begin();
  } else {
    disk_.go_on(left_program_->checkpoint.program->disk_free);
  }
  const timespec before = agent_begins();
  PROCTOR_TRY(AgentReport report, work_with(job, listeners));
  PROCTOR_CHECK_OK(open_again(job.sandbox));
  // Only the end of one that may not have started asks who made the changes.
  const bool doubtful = report.program && (report.program->exit_code == kNotExecutable ||
                                           report.program->exit_code == kNotFoundBySh);
  if (doubtful && left_program_ == nullptr) agent_began_ = before;
  agent_sandbox_ = std::move(report.sandbox);
  if (report.program) look_at_disk(*report.program);
  if (report.program && report.program->host_disk_full) disk_.seen_full();
  if (std::optional<Error> full = disk_.end([&] { return written_in(job.sandbox); }))
    return *std::move(full);
  AgentEnded ended;
  if (network) {
    ended.denied = network->close();
    ended.asked = network->was_used();
  }
  ended.ran_program = report.program.has_value();
  if (report.program) ended.exec = end_of(*report.program);
  ended.no_model = std::move(report.no_model);
  if (ended.ran_program && ended.exec.exit_code != 0)
    ended.words = failure_words(recorder_->dir() / "agent" / "stderr", ended.denied);
  ended.evidence = evidence;
  if (report.applied || !report.misfit.empty()) {
    ended.evidence = note("patch.apply", Actor::kHarness,
                          applied_payload(Room::kAgent, report.applied, report.misfit));
    ended.misfit = printable(report.misfit, limits::kDetailBytes);
    if (report.applied) ended.rung = to_string(report.applied->rung);
  }
  return ended;
}

AttemptRun::Answer AttemptRun::perform(const RunAgent&) {
  watch_.enter(wire::Stage::kAgent);
  Listeners listeners;
  Result<AgentEnded> ended = work(listeners);
  left_program_ = nullptr;
  const bool metered = listeners.meter != nullptr;
  if (listeners.tools) {
    const std::optional<Error> broken = end_tools(*listeners.tools);
    if (broken && ended.ok()) ended = *broken;
    listeners.tools.reset();
  }
  if (listeners.gateway) {
    listeners.gateway->close();  // every call that was granted is settled
    if (const ModelLack lack = listeners.gateway->lack(); ended.ok() && !lack.why.empty())
      ended->no_model = lack;
    listeners.gateway.reset();
  }
  // What the agent has said is counted; from here on this thread is alone.
  listeners.meter.reset();
  if (ended.ok() && ended->exec.end == ExecEnd::kTimedOut)
    meter_.time_is_up(caps_.source(Cap::kWall).level == CapLevel::kPolicy);
  meter_.agent_gone();
  if (metered) note("meter.closed", Actor::kHarness, meter_.totals_payload());
  if (!ended.ok()) return StepFailed{std::move(ended).error(), 0};
  ended->asked = ended->asked || has_asked_meter(meter_.usage());
  if (const auto stop = meter_.stop()) tell_budget_reached(*stop, ended->evidence);
  if (Status kept = keep_files(); !kept.ok()) return StepFailed{std::move(kept).error(), 0};
  return *ended;
}

// On the socket's thread while the agent works, and then on the slot's; never on both, and the
// slot's thread does not touch the lifecycle while the agent works.
void AttemptRun::tell_budget_reached(const MeterStop& stop, std::uint64_t evidence) {
  for (const LifecycleCommand& command : tell(BudgetReached{stop.cap, evidence, stop.reason}))
    std::visit([this](const auto& c) { perform(c); }, command);
}

AttemptRun::Answer AttemptRun::perform(const StopAgent&) {
  // The agent has been told over its socket and has kStopGrace; the meter's clock then pulls
  // agent_stop_, which kills its sandbox.  An agent that has ended needs neither.
  note("agent.stop", Actor::kHarness,
       Json{{"grace_ms", kStopGrace.count()}, {"reason", meter_.stop()->reason}});
  return std::nullopt;
}

}  // namespace proctor
