#include <sys/stat.h>
#include <algorithm>
#include <chrono>
#include <utility>

#include "common/base/limits.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "common/trace/archive.h"
#include "common/trace/evidence.h"
#include "worker/gateway/agent_variables.h"
#include "worker/gateway/cassette.h"
#include "worker/gateway/own_client.h"
#include "worker/gateway/redactor.h"
#include "worker/model/model.h"
#include "worker/model/single_shot.h"
#include "worker/network/way_out.h"
#include "worker/shell/attempt_run.h"
#include "worker/shell/host_room.h"
#include "worker/shell/run_events.h"
#include "worker/shell/run_tools.h"
#include "worker/shell/sandbox_dress.h"
#include "worker/workspace/changes.h"
#include "worker/workspace/kept_files.h"
#include "worker/workspace/tree_state.h"

namespace proctor {
// AttemptRun: the agent's way to a model, through the gateway (docs/gateway.md).

namespace {
// Secrets of the agent: it may say them to its model, and they may never be kept.
std::shared_ptr<const Redactor> secrets_redactor(const SandboxSpec& spec, const Method& method,
                                                 const Contract& contract) {
  std::map<std::string, std::string> secrets;
  for (const auto* names : {&contract.environment.secrets, &method.environment.secrets})
    for (const std::string& name : *names)
      if (const auto it = spec.env.find(name); it != spec.env.end()) secrets.insert(*it);
  if (secrets.empty()) return nullptr;
  return std::make_shared<Redactor>(rules_for_secrets(secrets));
}

// `token`: of the run at its gateway, if it has one.
Status watch_commands(const Contract& contract, const Method& method, const std::string& token,
                      SafetyWatch& safety) {
  PROCTOR_TRY(DeniedCommands patterns, DeniedCommands::compile(contract.policy.denied_commands));
  std::map<std::string, std::string> secrets;
  for (const auto* names : {&contract.environment.secrets, &method.environment.secrets})
    // Where one is needed and missing, the sandbox says so.
    for (const std::string& name : *names) static_cast<void>(add_secrets(secrets, {name}));
  Redactor::Rules rules = rules_for_secrets(secrets);
  rules.emplace_back("token", token);
  safety.watch(std::move(patterns), Redactor(std::move(rules)));
  return ok_status();
}

// A single shot asks in chat completions, for exactly what its method says, and waits as long.
ModelAccess asked_once(ModelAccess access, const ModelCall& call) {
  access.api = {ModelApi::kChat};
  access.output_default = access.output_floor = call.max_output_tokens;
  access.first_byte = access.idle = access.total = call.timeout;
  access.delta = false;  // no call of it follows another
  return access;
}
}  // namespace

// The same in every life of the worker that this attempt sees: its program has it already.
Result<std::string> AttemptRun::gateway_token() const {
  constexpr std::size_t kMost = 1000;
  const fs::path file = dir_ / "gateway-token";
  if (auto token = read_file(file, kMost); token.ok()) return token;
  std::string token = new_gateway_token();
  PROCTOR_CHECK_OK(write_file(file, token, Durability::kLazy, kPrivateFile));
  return token;
}

Result<std::unique_ptr<GatewaySession>> AttemptRun::open_gateway(const SandboxSpec& spec,
                                                                 const fs::path& dir,
                                                                 const std::string& token) {
  const Method& method = *input_.method;
  const bool single = method.kind == Method::Kind::kSingleShot;
  GatewayOptions options;
  if (method.gateway) options.method = *method.gateway;
  options.method.models = method.models();
  for (const GatewayModel& m : options.method.models) {
    const auto access = tools_.models.find(m.name);
    const bool reached =
        access != tools_.models.end() && (single || access->second.program.empty());
    if (!reached || tools_.pool == nullptr)
      return Error{Errc::kInvalid, "the models file of this worker has no URL of the model \"" +
                                       m.name + "\" (proctor-worker --models)"};
    options.models[m.name] = single ? asked_once(access->second, method.call) : access->second;
    const std::string& cassette = access->second.cassette;
    if (cassette.empty() || options.players.contains(cassette)) continue;
    PROCTOR_TRY(std::vector<CassetteCall> calls, load_cassette(cassette));
    options.players[cassette] = std::make_shared<CassettePlayer>(
        std::move(calls), input_.assignment.run_name, access->second.cassette_match);
  }
  // An agent that outlived us shows this very folder, with the socket that nobody answers any more.
  std::error_code ignored;
  fs::remove(dir / "socket", ignored);
  if (single) {
    options.bounds.drain = Millis(0);  // whoever asked has gone
    options.program = [task = ProgramTask{contract().id, input_.assignment.replicate}](
                          const ModelAccess& access, std::string_view body,
                          const std::function<bool()>& stop) {
      return ask_program(access, task, body, stop);
    };
  }
  options.token = Secret(token);
  options.redactor = secrets_redactor(spec, *input_.method, contract());
  options.earlier_calls = left_program_ != nullptr;
  options.ids = "gw-" + std::to_string(lives_) + "-";
  return GatewaySession::open(dir, std::move(options), gateway_hooks(), *tools_.pool);
}

Result<std::unique_ptr<GatewaySession>> AttemptRun::show_gateway(SandboxSpec& spec) {
  if (agent_network().open)
    return Error{Errc::kInvalid,
                 "a method with a gateway beside an open network: name the places instead"};
  PROCTOR_TRY(const fs::path dir, fresh_dir("gateway"));
  PROCTOR_CHECK_OK(put_forward_program(dir));
  PROCTOR_TRY(const std::string token, gateway_token());
  PROCTOR_TRY(auto session, open_gateway(spec, dir, token));
  spec.network = false;
  spec.mounts.push_back({dir, kGatewayAt, false});
  add_way(spec, kGatewayPort, kGatewayAt);
  set_agent_variables(spec.env, *input_.method->gateway, token);
  return session;
}

GatewayHooks AttemptRun::gateway_hooks() {
  GatewayHooks hooks;
  hooks.meter = [this](const GatewayOperation& o) { return meter_.act_for_agent(o); };
  hooks.cover = [this] { meter_.cover(); };
  hooks.status = [this] { return meter_.status_line(); };
  hooks.count = [this](const CallCounts& seen) { meter_.count_calls(seen); };
  hooks.note = [this](std::string_view type, GatewayHooks::By by, const Json& payload) {
    const Actor actor = by == GatewayHooks::By::kAgent ? Actor::kAgent : Actor::kHarness;
    // Its sums are the last of it, and short.
    return type == "gateway.closed" ? note(type, actor, payload)
                                    : note_of_agent(type, actor, payload);
  };
  hooks.cap_reached = [this](std::uint64_t evidence) { meter_.reached_by(evidence); };
  hooks.stop = [this](std::string_view cap, const std::string& reason, std::uint64_t evidence) {
    meter_.order_stop(cap, reason, evidence);
  };
  if (safety_.commands() != nullptr)
    hooks.answered = [this](std::uint64_t call, std::string_view answer) {
      safety_.commands()->answer(call, answer);
    };
  hooks.now = [hold = watch_.hold(), began = watch_.hold()->now()] {
    return std::chrono::duration_cast<Millis>(hold->now() - began);
  };
  if (workspace_)
    hooks.look = [dir = workspace_->written().dir]() -> std::optional<WorkspaceLook> {
      Result<TreeState> state = state_of_tree(dir);
      if (!state.ok()) return std::nullopt;
      return WorkspaceLook{std::move(state->digest), state->files, state->bytes};
    };
  hooks.keep = [this](const std::string& digest, std::string_view bytes) {
    return keep_said(digest, bytes);
  };
  return hooks;
}

// Once, by its content; what there is no room for is in the trace by its digest.
bool AttemptRun::keep_said(const std::string& digest, std::string_view bytes) {
  const std::lock_guard lock(said_mutex_);
  if (!said_) {
    Result<SegmentWriter> opened = SegmentWriter::open(recorder_->dir(), kGatewayBytes);
    if (!opened.ok()) return false;
    said_ = std::move(opened).value();
  }
  return said_->put(digest, bytes);
}

// AttemptRun: the worker's tools, of its own agent and of one in a sandbox (docs/tools.md).

// For an agent that is the worker's own: neither its way to the model nor the meter, whose thread
// keeps the clock, is shown in any sandbox.
Status AttemptRun::listen_unseen(const SandboxSpec& spec, Listeners& listeners) {
  SandboxSpec nobody;
  PROCTOR_TRY(listeners.meter, show_meter(nobody));
  if (input_.method->models().empty()) return ok_status();
  PROCTOR_TRY(const fs::path dir, fresh_dir("gateway"));
  PROCTOR_TRY(const std::string token, gateway_token());
  PROCTOR_TRY(listeners.gateway, open_gateway(spec, dir, token));
  return ok_status();
}

RunToolHooks AttemptRun::tool_hooks(GatewaySession& gateway, const SandboxSpec& commands) {
  RunToolHooks out;
  out.meter = [this](const MeteredCall& call) { return meter_.act(call); };
  out.tell = [&gateway](std::string_view type, GatewayHooks::By by, const Json& payload) {
    return gateway.tell(type, by, payload);
  };
  out.status = [this] { return meter_.status_line(); };
  out.state = [dir = workspace_->written().dir] {
    const Result<TreeState> state = state_of_tree(dir);
    return state.ok() ? state->digest : std::string();
  };
  if (safety_.commands() != nullptr)
    out.command = [this](const std::string& id, const std::string& command) {
      safety_.commands()->tool(id, command);
    };
  out.settle = [this, commands](ExecOutcome& outcome) -> Status {
    PROCTOR_CHECK_OK(when_there_is_room<Unit>("attempt " + commands.label, patience(),
                                              [&] { return open_again(commands); }));
    look_at_disk(outcome);
    safety_.untold("agent", outcome);
    return ok_status();
  };
  out.attempted = [this](const CallAttempt& seen) { safety_.call("agent", seen); };
  out.see_programs = !contract().policy.denied_commands.empty();
  return out;
}

RunToolPlace AttemptRun::tool_place(SandboxEngine& engine, SandboxSpec commands,
                                    fs::path scratch) const {
  RunToolPlace out;
  out.workspace = workspace_->dir();
  out.rules.writable = contract().policy.writable;
  out.rules.guarded = contract().policy.protected_;
  out.rules.user = workspace_->user();
  out.engine = &engine;
  out.sandbox = std::move(commands);
  out.scratch = std::move(scratch);
  return out;
}

ToolSessionRules AttemptRun::tool_rules() const {
  ToolSessionRules out;
  if (const auto active = caps_.caps.active) out.wall = std::min(out.wall, *active);
  for (const TestSuite& suite : contract().suites)
    out.suites.push_back({suite.name, suite.command});
  // An earlier life of this worker had calls of its own.
  if (0 < lives_) out.ids = std::to_string(lives_) + "-";
  return out;
}

Result<std::unique_ptr<OfferedTools>> AttemptRun::show_tools(SandboxEngine& engine,
                                                             SandboxSpec commands,
                                                             SandboxSpec& spec,
                                                             GatewaySession& gateway) {
  const bool enforced = input_.method->gateway->tools == MethodGateway::Tools::kEnforced;
  PROCTOR_TRY(const fs::path dir, fresh_dir("tools"));
  PROCTOR_TRY(const fs::path scratch, fresh_dir("tools-output"));
  commands.label = label("tool");  // beside the agent's own
  RunToolHooks hooks = tool_hooks(gateway, commands);
  hooks.failed = [this] { agent_stop_.request_stop(); };
  gateway.tell(events::kToolsOpen.type, GatewayHooks::By::kHarness,
               events::kToolsOpen.json(enforced ? "enforced" : "offered"));
  PROCTOR_TRY(auto out, OfferedTools::open(dir, tool_place(engine, std::move(commands), scratch),
                                           tool_rules(), std::move(hooks), agent_wall(),
                                           agent_stop_.get_token()));
  out->show_in(spec);
  if (!enforced) return out;
  // What its program sees in place of the workspace, and what nobody looks at afterwards.
  PROCTOR_TRY(spec.workspace, writable_dir("agent-apart"));
  spec.workspace_volume.clear();
  spec.disk.places.push_back({spec.workspace, 0, 0});
  return out;
}

std::optional<Error> AttemptRun::end_tools(OfferedTools& tools) {
  tools.close();
  const ToolSession& session = tools.work().session();
  note(events::kToolsClosed, session.calls(), session.refused(),
       std::string(to_string(session.stage())), session.submitted());
  return tools.work().broken();
}

Result<AgentReport> AttemptRun::work_by_tools(const AgentJob& job, GatewaySession& gateway) {
  PROCTOR_TRY(const std::string token, gateway_token());
  ToolAgentTools tools;
  tools.gateway = dir_ / "gateway";
  tools.token = Secret(token);
  tools.access = &tools_.models.at(input_.method->gateway->model().name);
  tools.place = tool_place(job.engine, job.sandbox, job.scratch);
  tools.rules = tool_rules();
  tools.hooks = tool_hooks(gateway, job.sandbox);
  return make_tool_agent(std::move(tools))->work(job, agent_stop_.get_token());
}

// AttemptRun: the agent, its meter and how it is stopped (R106, R114-R117, R159).

namespace {
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
  const Environment environment = environment_of_agent(contract(), *input_.method);
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
            safety_.untold("agent", use.outcome);
            evidence = note(events::kTool, command_ran(use.command, use.outcome, use.ceiling,
                                                       use.stdout_file, use.stderr_file, use.tool));
          },
          [this](const CallAttempt& seen) { safety_.call("agent", seen); },
          !contract().policy.denied_commands.empty(),
          [this, &engine] { return meter_.start_program(engine.kind() == SandboxKind::kDocker); },
          [this](const std::string& container) { outlives(container); },
          std::move(left)};
}

// Its files are taken back whatever it ended as.
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
    if (method.gateway && method.gateway->tools) {
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
    evidence = note(events::kAgentStart, method.name, network_payload(agent_network()),
                    std::vector<std::string>{"read", "write", "test"});
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
  const bool doubtful = report.program && says_no_program(report.program->exit_code);
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
    ended.evidence =
        note(events::kPatchApply, patch_tried(Room::kAgent, report.applied, report.misfit));
    ended.misfit = printable(report.misfit, limits::kDetailBytes);
    if (report.applied) ended.rung = to_string(report.applied->rung);
  }
  return ended;
}

AttemptRun::Answer AttemptRun::perform(const RunAgent&) {
  watch_.enter(wire::Stage::kAgent);
  if (input_.method->kind == Method::Kind::kRecorded) return end_recorded();
  if (!contract().policy.denied_commands.empty()) {
    std::string token;
    if (!input_.method->models().empty()) {
      PROCTOR_TRY(token, gateway_token());
    }
    PROCTOR_CHECK_OK(watch_commands(contract(), *input_.method, token, safety_));
  }
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
  safety_.close();
  // What the agent has said is counted; from here on this thread is alone.
  listeners.meter.reset();
  if (ended.ok() && ended->exec.end == ExecEnd::kTimedOut)
    meter_.time_is_up(caps_.source(Cap::kWall).level == CapLevel::kPolicy);
  meter_.agent_gone();
  if (metered) note("meter.closed", Actor::kHarness, meter_.totals_payload());
  PROCTOR_CHECK_OK(ended);
  ended->forbidden = safety_.take();
  ended->asked = ended->asked || has_asked_meter(meter_.usage());
  if (const auto stop = meter_.stop()) tell_budget_reached(*stop, ended->evidence);
  PROCTOR_CHECK_OK(keep_files());
  return *ended;
}

// On the socket's thread while the agent works, and then on the slot's; never on both, and the
// slot's thread does not touch the lifecycle while the agent works.
void AttemptRun::tell_budget_reached(const MeterStop& stop, std::uint64_t evidence) {
  for (const LifecycleCommand& command : tell(BudgetReached{stop.cap, evidence, stop.reason}))
    std::visit([this](const auto& c) { perform(c); }, command);
}

AttemptRun::Answer AttemptRun::perform(const StopAgent&) {
  // The agent has been told over its socket and has its grace; the meter's clock then pulls
  // agent_stop_, which kills its sandbox.  An agent that has ended needs neither.
  note(events::kAgentStop, stop_grace(*meter_.stop()), meter_.stop()->reason);
  return std::nullopt;
}

// AttemptRun: what an agent left as a patch, put into the fresh workspace, and protected files put
// back (R044, R047).
AttemptRun::Answer AttemptRun::perform(const ExtractPatch&) {
  watch_.enter(wire::Stage::kExtracting);
  const Instant began = mono_now();
  const std::chrono::nanoseconds before = thread_cpu_time();
  Result<Patch> patch =
      recorded_ ? as_extracted(
                      recorded_->mutation,
                      input_.method->find_file(recorded_patch(input_.assignment.run_name))->bytes)
      : unreadable_ ? Result<Patch>(*unreadable_)
                    : workspace_->extract_patch(limits::kPatchBytes, contract().policy.ignored);
  // A large tree is paid for by whoever left it.
  const Millis took = mono_now() - began;
  const bool apart = patch.ok() && patch->apart.has_value();
  // Of a process of its own that was ended at its limits nobody has told the CPU time.
  const Millis cpu = apart        ? patch->apart->cpu
                     : patch.ok() ? std::chrono::duration_cast<Millis>(thread_cpu_time() - before)
                                  : took;
  if (apart || kCountedWork <= took)
    meter_.executed(MeterPhase::kAcceptance, {took, cpu, apart ? patch->apart->memory_peak : 0});
  PatchExtracted extracted;
  if (!patch.ok()) {
    // Beyond our limits, or closed even to its owner: so the agent left it.
    const Errc code = patch.error().code;
    if (code != Errc::kExhausted && code != Errc::kInvalid) return std::move(patch).error();
    extracted.unreadable = printable(patch.error().detail, limits::kDetailBytes);
    patch = Patch{};
  }
  patch_ = std::move(patch).value();
  if (Status written = recorder_->write_patch(patch_.diff); !written.ok()) {
    return as_host_error(std::move(written).error());
  }
  events::Mutation mutation = mutation_of(patch_, contract().policy.ignored);
  mutation.wall = took;
  mutation.cpu = cpu;
  if (patch_.apart) mutation.memory_peak = patch_.apart->memory_peak;
  mutation.unreadable = extracted.unreadable;
  extracted.refused = patch_.refused;
  extracted.conflicts = patch_.conflicts;
  for (std::string& place : extracted.conflicts) place = printable(place, limits::kDetailBytes);
  // A patch holds what setup changed, too.
  extracted.changed = (!patch_.diff.empty() || !patch_.paths.empty() || !patch_.refused.empty()) &&
                      (!agent_began_ || touched_since(workspace_->written().dir, *agent_began_));
  const std::vector<std::string>& writable = contract().policy.writable;
  for (const std::string& path : patch_.paths) {
    if (is_setups(path))
      setup_left_.push_back(path);
    else if (!writable.empty() && !any_glob_covers(writable, path))
      extracted.outside_writable.push_back(path);
  }
  mutation.of_setup = path_list(setup_left_);
  note(events::kMutation, mutation);
  return extracted;
}

// A patch holds what setup changed, too, which is nobody's violation where it lies as setup left
// it.
bool AttemptRun::is_setups(const std::string& path) const {
  if (recorded_)
    return std::ranges::find(recorded_->mutation.of_setup.listed, path) !=
           recorded_->mutation.of_setup.listed.end();
  if (setup_over_.tv_sec == 0) return false;  // an earlier life saw it
  if (!std::ranges::binary_search(setup_makes_.paths, path) &&
      !std::ranges::binary_search(setup_wrote_, path))
    return false;
  return !changed_since(workspace_->dir() / path, setup_over_);
}

AttemptRun::Answer AttemptRun::perform(const ApplyPatch&) {
  if (patch_.diff.empty()) return StepDone{};
  Result<AppliedPatch> applied = workspace_->apply(patch_.diff);
  if (!applied.ok() && applied.error().code != Errc::kInvalid) return std::move(applied).error();
  const std::string why =
      applied.ok() ? "" : printable(applied.error().detail, limits::kDetailBytes);
  note(events::kPatchApply,
       patch_tried(Room::kAcceptance, applied.ok() ? std::optional(*applied) : std::nullopt, why));
  if (!applied.ok()) return PatchRefused{why};
  return PatchApplied{std::string(to_string(applied->rung))};
}

AttemptRun::Answer AttemptRun::perform(const RestoreProtected& c) {
  const std::vector<std::string>& globs = contract().policy.protected_;
  if (globs.empty() && c.also.empty()) return ProtectedRestored{};
  PROCTOR_TRY(std::vector<std::string> changed, workspace_->restore(globs, c.also));
  std::erase_if(changed, [this](const std::string& path) {
    return std::ranges::binary_search(setup_left_, path);
  });
  note(events::kRestored, path_list(changed));
  return ProtectedRestored{std::move(changed)};
}

// AttemptRun: a patch that an earlier campaign recorded, in the place of an agent (docs/replay.md).

AttemptRun::Answer AttemptRun::end_recorded() {
  const std::string& run = input_.assignment.run_name;
  const ReferencedFile* facts = input_.method->find_file(recorded_facts(run));
  const ReferencedFile* patch = input_.method->find_file(recorded_patch(run));
  meter_.agent_gone();
  if (facts == nullptr || patch == nullptr)
    return Error{Errc::kInvalid, "method " + input_.method->name + " has no patch of " + run};
  PROCTOR_TRY(recorded_, parse_recorded_run(facts->bytes));
  if (sha256(patch->bytes) != recorded_->patch)
    return Error{Errc::kInvalid, "the patch of " + run + " is not the one that was recorded"};
  AgentEnded ended;
  ended.rung = recorded_->rung;
  ended.misfit = recorded_->misfit;
  ended.evidence = note(events::kAgentStart, input_.method->name, network_payload({}),
                        std::vector<std::string>{});
  if (!ended.misfit.empty())
    ended.evidence = note(events::kPatchApply, patch_tried(Room::kAgent, {}, ended.misfit));
  for (const Json& alert : recorded_->alerts) safety_.alert(alert);
  ended.forbidden = safety_.take();
  return ended;
}

// AttemptRun: files of the agent that its method wants kept as evidence (campaign.h).

Status AttemptRun::keep_files() {
  const std::vector<std::string>& wanted = input_.method->keep;
  if (wanted.empty() || !recorder_ || !workspace_) return ok_status();
  constexpr std::string_view kHome = "~/";
  std::vector<std::string> of_home, of_workspace;
  for (const std::string& glob : wanted) {
    if (glob.starts_with(kHome))
      of_home.push_back(glob.substr(kHome.size()));
    else
      of_workspace.push_back(glob);
  }
  KeepRoom room{kKeptFiles, kKeptFileBytes, kKeptBytes, 0};
  std::vector<EvidenceFile> files;
  std::vector<events::LeftOut> left_out;
  const auto keep = [&](const fs::path& from, const std::vector<std::string>& globs,
                        const std::string& name) -> Status {
    if (globs.empty()) return ok_status();
    const std::string below = std::string(kKeptDir) + "/" + name + "/";
    room.depth = kArchiveDepth - static_cast<std::size_t>(std::ranges::count(below, '/'));
    PROCTOR_TRY(const KeptFiles kept,
                proctor::keep_files(from, globs, recorder_->dir() / below, room));
    // A file that is not there is no mistake: an agent that failed writes no trajectory.
    for (const KeptFiles::File& f : kept.files)
      files.push_back({below + f.path, f.bytes, f.digest});
    for (const KeptFiles::LeftOut& l : kept.left_out) left_out.push_back({below + l.path, l.why});
    if (0 < kept.left_out_beside)
      left_out.push_back({below, std::to_string(kept.left_out_beside) + " more"});
    return ok_status();
  };
  PROCTOR_CHECK_OK(keep(workspace_->dir(), of_workspace, "workspace"));
  if (!of_home.empty()) {
    PROCTOR_TRY(const fs::path home, writable_dir(home_name(Room::kAgent)));
    PROCTOR_CHECK_OK(keep(home, of_home, "home"));
  }
  note(events::kAgentKept, files, left_out);
  return ok_status();
}
}  // namespace proctor
