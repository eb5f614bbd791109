#include "worker/shell/run_tools.h"

#include <algorithm>
#include <utility>

#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "worker/gateway/own_client.h"
#include "worker/model/model.h"
#include "worker/network/way_out.h"
#include "worker/shell/run_events.h"
#include "worker/tools/tool_loop.h"

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
  out.command = hooks_.command;
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

// The reservation is known by `as`, another name for each try.
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
  exec.attempted = hooks_.attempted;
  exec.see_programs = hooks_.see_programs;
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

namespace {
constexpr const char* kInstructions =
    "Work on the repository in /workspace with these tools. Stages: read, write, test; each allows "
    "what the ones before did. Ask for the next with advance_stage. Paths are relative to the "
    "repository.";

std::string at(const char* name) {
  return std::string(kToolsAt) + "/" + name;
}

// As Claude Code, Cursor and others read it.
std::string client_file() {
  Json server = {{"type", "stdio"}, {"command", at("forward")}};
  server["args"] = Json::array({"--stdio", at("socket")});
  return Json{{"mcpServers", {{"proctor", std::move(server)}}}}.dump(2) + "\n";
}
}  // namespace

Result<std::unique_ptr<OfferedTools>> OfferedTools::open(const fs::path& dir, RunToolPlace place,
                                                         ToolSessionRules rules, RunToolHooks hooks,
                                                         std::chrono::milliseconds time,
                                                         const std::stop_token& run) {
  PROCTOR_CHECK_OK(put_forward_program(dir));
  PROCTOR_CHECK_OK(write_file(dir / "mcp.json", client_file(), Durability::kLazy, kOpenFile));
  // An agent that outlived us shows this very folder, with a socket that nobody answers any more.
  std::error_code ignored;
  fs::remove(dir / "socket", ignored);
  std::unique_ptr<OfferedTools> out(new OfferedTools(dir));
  PROCTOR_TRY(out->work_, RunTools::open(std::move(place), std::move(rules), std::move(hooks), time,
                                         out->stop_.get_token()));
  out->run_ = std::make_unique<std::stop_callback<std::function<void()>>>(
      run, [stop = &out->stop_] { stop->request_stop(); });
  PROCTOR_TRY(out->server_, ToolServer::start(dir, out->work_->session(), kInstructions));
  return out;
}

OfferedTools::~OfferedTools() {
  close();
}

void OfferedTools::show_in(SandboxSpec& spec) const {
  // Connecting needs no writable mount, and a client must not take the socket away.
  spec.mounts.push_back({dir_, kToolsAt, false});
  spec.env["PROCTOR_MCP"] = at("forward") + " --stdio " + at("socket");
  spec.env["PROCTOR_MCP_CONFIG"] = at("mcp.json");
}

void OfferedTools::close() {
  stop_.request_stop();
  server_.reset();
}

namespace {
using Why = ToolLoopEnd::Why;

// Calls in a row that fail, or that the run has to wait for, until nobody waits any more.
constexpr std::uint32_t kFailuresMost = 4, kWaitsMost = 10;
constexpr std::size_t kSaidBytes = std::size_t{1} << 20;
constexpr int kOk = 200, kMultiple = 300, kTooMany = 429;

std::string message_in(const OwnReply& reply) {
  if (reply.status == 0) return "the connection ended without an answer";
  std::string out = "status " + std::to_string(reply.status);
  const auto body = parse_json(reply.body);
  if (!body.ok() || !body->is_object()) return out;
  const auto error = body->find("error");
  if (error == body->end() || !error->is_object()) return out;
  const auto text = error->find("message");
  if (text != error->end() && text->is_string())
    out += ": " + printable(text->get<std::string>(), 1'000);
  return out;
}

// One agent at work.
class Conversation {
 public:
  Conversation(const AgentJob& job, const ToolAgentTools& tools, Millis time, std::stop_token stop)
      : job_(job),
        tools_(tools),
        gateway_(*job.method.gateway),
        time_(time),
        stop_(std::move(stop)) {}

  Result<AgentReport> run() {
    RunToolHooks hooks = tools_.hooks;
    hooks.say = [this](const std::string& line) { say(out_, line); };
    PROCTOR_TRY(work_, RunTools::open(tools_.place, tools_.rules, std::move(hooks), time_, stop_));
    ToolLoop loop(loop_rules(), job_.briefing);
    const ToolLoopEnd end = run_tool_loop(loop, work_->session(),
                                          [this](const std::string& body) { return ask(body); });
    if (broken_) return *std::move(broken_);
    if (work_->broken()) return *work_->broken();
    const ToolSession& session = work_->session();
    tools_.hooks.tell(events::kToolLoopClosed.type, GatewayHooks::By::kHarness,
                      events::kToolLoopClosed.json(
                          std::string(word_of(end.why)), std::string(ToolLoop::kPromptVersion),
                          loop.turns(), session.calls(), session.refused(), loop.left_out()));
    return report(end);
  }

 private:
  void say(std::string& to, const std::string& line) const {
    if (to.size() < kSaidBytes) to += line + "\n";
  }

  ToolLoopRules loop_rules() const {
    constexpr std::uint64_t kLeast = std::uint64_t{64} << 10, kMost = std::uint64_t{1} << 20;
    ToolLoopRules out;
    out.api = gateway_.as == MethodGateway::As::kAnthropic ? ToolLoopRules::Api::kMessages
                                                           : ToolLoopRules::Api::kChat;
    out.model = gateway_.model().name;
    out.prompt = std::string(ToolLoop::prompt());
    out.turns = job_.method.turns;
    out.output = *gateway_.model().output_max;
    // Every token stands for one byte at least.
    const std::uint64_t input = tools_.access->max_input;
    out.request_bytes = std::clamp(input - std::min(input, out.output), kLeast, kMost);
    return out;
  }

  // The way to the model.

  Result<std::string> ask(const std::string& body) {
    const ModelApi api =
        gateway_.as == MethodGateway::As::kAnthropic ? ModelApi::kMessages : ModelApi::kChat;
    std::uint32_t failures = 0, waits = 0;
    for (;;) {
      work_->wait_until_goes_on();
      if (work_->over()) return Error{Errc::kUnavailable, "the run's time is over"};
      const Result<OwnReply> reply =
          ask_gateway(tools_.gateway, tools_.token, api, body, [this] { return work_->over(); });
      if (!reply.ok()) {
        if (!work_->over()) broken_ = reply.error();
        return reply.error();
      }
      const std::string said = "call " + std::to_string(++calls_) + ": " + message_in(*reply);
      say(out_, said);
      if (kOk <= reply->status && reply->status < kMultiple) {
        answered_ = true;
        return reply->body;
      }
      const Error no{Errc::kInvalid, said};
      if (reply->status == kTooMany &&
          reply->again == true) {  // the gateway's word, not a provider's
        if (++waits == kWaitsMost) return give_up(kModelBusyExit, no);
        work_->wait(reply->retry_after);
        continue;
      }
      const OwnFailure failure = failure_of(reply->status);
      if (failure == OwnFailure::kRefused || failure == OwnFailure::kNoAccess) {
        // No further try can help, and no other agent would do better.
        if (!answered_ && failure == OwnFailure::kRefused) broken_ = no;
        return give_up(1, no);
      }
      if (++failures == kFailuresMost)
        return give_up(failure == OwnFailure::kBusy ? kModelBusyExit : 1, no);
      work_->wait(wait_before_next(failures, tools_.access->backoff, reply->retry_after));
    }
  }
  Error give_up(int code, const Error& why) {
    exit_code_ = code;
    return why;
  }

  // The end of the conversation.

  Result<AgentReport> report(const ToolLoopEnd& end) {
    using End = ExecOutcome::End;
    ExecOutcome outcome = work_->spent();
    outcome.wall = work_->elapsed();
    const bool done = end.why == Why::kSubmitted || end.why == Why::kSilent;
    outcome.exit_code = done ? 0 : exit_code_;
    if (!done && work_->disk_full())
      outcome.end = End::kDisk;
    else if (!done && stop_.stop_requested())
      outcome.end = End::kCancelled;
    else if (!done && work_->left() == Millis(0))
      outcome.end = End::kTimedOut;
    std::string complaint;
    if (!end.detail.empty()) say(complaint, end.detail);
    outcome.stdout_bytes = out_.size();
    outcome.stderr_bytes = complaint.size();
    const fs::path out = job_.logs / "stdout", err = job_.logs / "stderr";
    PROCTOR_CHECK_OK(write_file(out, out_, Durability::kLazy));
    PROCTOR_CHECK_OK(write_file(err, complaint, Durability::kLazy));
    job_.on_tool({"tool_loop", gateway_.model().name, outcome, time_, out, err});
    return AgentReport{outcome};
  }

  const AgentJob& job_;
  const ToolAgentTools& tools_;
  const MethodGateway& gateway_;
  const Millis time_;
  const std::stop_token stop_;
  std::unique_ptr<RunTools> work_;
  std::string out_;
  std::uint64_t calls_ = 0;
  int exit_code_ = 1;
  bool answered_ = false;
  std::optional<Error> broken_;
};

class ToolAgent final : public Agent {
 public:
  explicit ToolAgent(ToolAgentTools tools) : tools_(std::move(tools)) {}
  Result<AgentReport> work(const AgentJob& job, std::stop_token cancel) override {
    const std::optional<Millis> time =
        job.start_program ? job.start_program() : std::optional(job.wall);
    if (!time) return AgentReport{};
    job.on_sandbox();
    return Conversation(job, tools_, *time, std::move(cancel)).run();
  }

 private:
  ToolAgentTools tools_;
};
}  // namespace

std::unique_ptr<Agent> make_tool_agent(ToolAgentTools tools) {
  return std::make_unique<ToolAgent>(std::move(tools));
}
}  // namespace proctor
