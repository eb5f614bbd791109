#include "worker/shell/tool_agent.h"

#include <algorithm>
#include <utility>

#include "common/base/pause.h"
#include "common/base/text.h"
#include "worker/gateway/own_client.h"
#include "worker/model/call_rules.h"
#include "worker/shell/run_events.h"
#include "worker/tools/tool_loop.h"
#include "worker/tools/workspace_tools.h"

namespace proctor {
namespace {

using Why = ToolLoopEnd::Why;

// Calls in a row that fail, or that the run has to wait for, until nobody waits any more.
constexpr std::uint32_t kFailuresMost = 4, kWaitsMost = 10;
constexpr std::size_t kOutputBytes = std::size_t{1} << 20, kSaidBytes = std::size_t{1} << 20;
constexpr int kOk = 200, kMultiple = 300, kServer = 500;
constexpr int kDenied = 401, kUnpaid = 402, kForbidden = 403, kAbsent = 404, kSlow = 408,
              kBusy = 429, kFull = 503, kOverloaded = 529;
// A shell's, of what a signal ended.
constexpr int kBySignal = 128, kKilled = 137;

bool has_no_room(int status) {
  return status == kBusy || status == kFull || status == kOverloaded;
}
// Of what was asked it says nothing: the caps of a run, a key, an account, the model itself.
bool is_nobodys_request(int status) {
  return status == kDenied || status == kUnpaid || status == kForbidden || status == kAbsent;
}

std::string_view word_of(Why why) {
  switch (why) {
    case Why::kSubmitted:
      return "submitted";
    case Why::kSilent:
      return "silent";
    case Why::kTurns:
      return "turns";
    case Why::kTooLarge:
      return "too_large";
    case Why::kRefused:
      return "refused";
    case Why::kModel:
      return "model";
  }
  return "";
}

std::string message_in(const OwnReply& reply) {
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
        begin_(now()),
        time_(time),
        stop_(std::move(stop)) {}

  Result<AgentReport> run() {
    WorkspaceRules rules;
    rules.writable = job_.contract.policy.writable;
    rules.guarded = job_.contract.policy.protected_;
    rules.user = job_.workspace.user();
    PROCTOR_TRY(const WorkspaceTools files,
                WorkspaceTools::open(job_.workspace.dir(), std::move(rules)));
    ToolSessionRules session_rules;
    session_rules.wall = tools_.command_most;
    ToolSession session(std::move(session_rules), files, hooks());
    ToolLoop loop(loop_rules(), job_.briefing);
    const ToolLoopEnd end =
        run_tool_loop(loop, session, [this](const std::string& body) { return ask(body); });
    if (broken_) return *std::move(broken_);
    tools_.tell("tool_loop.closed", GatewayHooks::By::kHarness,
                Json{{"why", word_of(end.why)},
                     {"prompt", ToolLoop::kPromptVersion},
                     {"turns", loop.turns()},
                     {"tool_calls", session.calls()},
                     {"refused", session.refused()},
                     {"left_out_bytes", loop.left_out()}});
    return report(end);
  }

 private:
  Hold::Clock::time_point now() const {
    return job_.sandbox.hold ? job_.sandbox.hold->now() : Hold::Clock::now();
  }
  Millis elapsed() const { return std::chrono::duration_cast<Millis>(now() - begin_); }
  Millis left() const { return std::max(Millis(0), time_ - elapsed()); }
  bool over() const { return stop_.stop_requested() || left() == Millis(0); }
  void wait(Millis time) const { pause_for(std::min(time, left()), stop_); }

  void say(std::string& to, const std::string& line) const {
    if (to.size() < kSaidBytes) to += line + "\n";
  }

  ToolLoopRules loop_rules() const {
    constexpr std::uint64_t kLeast = std::uint64_t{64} << 10, kMost = std::uint64_t{1} << 20;
    ToolLoopRules out;
    out.api = gateway_.as == MethodGateway::As::kAnthropic ? ToolLoopRules::Api::kMessages
                                                           : ToolLoopRules::Api::kChat;
    out.model = gateway_.model;
    out.prompt = std::string(ToolLoop::prompt());
    out.turns = job_.method.turns;
    out.output = *gateway_.output_max;
    // Every token stands for one byte at least.
    const std::uint64_t input = tools_.access->max_input;
    out.request_bytes = std::clamp(input - std::min(input, out.output), kLeast, kMost);
    return out;
  }

  // ---- the model
  Result<std::string> ask(const std::string& body) {
    const ModelApi api =
        gateway_.as == MethodGateway::As::kAnthropic ? ModelApi::kMessages : ModelApi::kChat;
    std::uint32_t failures = 0, waits = 0;
    for (;;) {
      if (job_.sandbox.hold) job_.sandbox.hold->wait_until_off(stop_);
      if (over()) return Error{Errc::kUnavailable, "the run's time is over"};
      const Result<OwnReply> reply =
          ask_gateway(tools_.gateway, tools_.token, api, body, [this] { return over(); });
      if (!reply.ok()) {
        if (!over()) broken_ = reply.error();
        return reply.error();
      }
      const std::string said = "call " + std::to_string(++calls_) + ": " + message_in(*reply);
      say(out_, said);
      if (kOk <= reply->status && reply->status < kMultiple) {
        answered_ = true;
        return reply->body;
      }
      const Error no{Errc::kInvalid, said};
      if (reply->status == kBusy && reply->again == true) {  // the gateway's word, not a provider's
        if (++waits == kWaitsMost) return give_up(kModelBusyExit, no);
        wait(reply->retry_after);
        continue;
      }
      if (!has_no_room(reply->status) && reply->status != kSlow && reply->status < kServer) {
        // No further try can help, and no other agent would do better.
        if (!answered_ && !is_nobodys_request(reply->status)) broken_ = no;
        return give_up(1, no);
      }
      if (++failures == kFailuresMost)
        return give_up(has_no_room(reply->status) ? kModelBusyExit : 1, no);
      wait(wait_before_next(failures, tools_.access->backoff, reply->retry_after));
    }
  }
  Error give_up(int code, const Error& why) {
    exit_code_ = code;
    return why;
  }

  // ---- the tools
  ToolHooks hooks() {
    ToolHooks out;
    out.reserve = [this](const std::string& id, const ToolKind&, Millis most) {
      return reserve(id, most);
    };
    out.charge = [this](const std::string&, const ToolKind&, Millis used) {
      const auto charged =
          tools_.meter(MeterCharge{held_, Amount{.ms = static_cast<std::uint64_t>(used.count())}});
      if (!charged.ok()) broken_ = charged.error();
    };
    out.note = [this](std::string_view type, const Json& payload) { return note(type, payload); };
    out.status = tools_.status;
    out.shell = [this](const std::string& command, bool writes, Millis most) {
      return shell(command, writes, most);
    };
    out.state = tools_.state;
    out.wait = [this](Millis time) { wait(time); };
    out.now = [this] { return elapsed(); };
    return out;
  }

  ToolHeard note(std::string_view type, const Json& payload) {
    const bool asked = type == "tool.call";
    if (asked) say(out_, "  " + payload.value("id", "") + " " + payload.value("tool", ""));
    GatewaySession::Heard heard =
        tools_.tell(type, asked ? GatewayHooks::By::kAgent : GatewayHooks::By::kHarness, payload);
    const bool suspend = !heard.suspended.empty();
    return {std::move(heard.suspended), suspend, Millis(0)};
  }

  std::optional<ToolRefusal> reserve(const std::string& id, Millis most) {
    if (job_.sandbox.hold) job_.sandbox.hold->wait_until_off(stop_);
    for (std::uint32_t tries = 0;; ++tries) {
      if (broken_) return ToolRefusal{"host", "the host failed", true, 0};
      if (disk_full_) return ToolRefusal{"disk", "the workspace has no more room", true, 0};
      if (over()) return ToolRefusal{"wall", "the run's time is over", true, 0};
      MeterReserve ask;
      ask.id = "tool-" + id + "." + std::to_string(tries);
      ask.action.type = std::string(kToolCall);
      ask.most.ms = static_cast<std::uint64_t>(most.count());
      ask.witness = Witness::kMeasured;
      held_ = ask.id;
      const Result<MeterAnswer> answer = tools_.meter(ask);
      if (!answer.ok()) return ToolRefusal{"tool_calls", answer.error().detail, true, 0};
      const auto* no = std::get_if<MeterDenied>(&*answer);
      if (no == nullptr) return std::nullopt;
      if (no->final || no->retry_after_ms == 0)
        return ToolRefusal{no->cap, no->reason, no->final, no->short_by};
      wait(Millis(no->retry_after_ms));
    }
  }

  Result<ProgramRun> shell(const std::string& command, bool writes, Millis most) {
    Result<ProgramRun> ran = run_in_sandbox(command, writes, most);
    if (!ran.ok()) broken_ = ran.error();
    return ran;
  }
  Result<ProgramRun> run_in_sandbox(const std::string& command, bool writes, Millis most) {
    SandboxSpec spec = job_.sandbox;
    spec.workspace_read_only = !writes;
    ExecSpec exec;
    exec.command = command;
    exec.timeout = std::clamp(most, Millis(1), std::max(Millis(1), left()));
    exec.stdout_file = job_.scratch / "stdout";
    exec.stderr_file = job_.scratch / "stderr";
    exec.output_max = kOutputBytes;
    PROCTOR_TRY(auto sandbox, job_.engine.open(spec));
    PROCTOR_TRY(ExecOutcome outcome, sandbox->run(exec, stop_));
    sandbox.reset();
    PROCTOR_CHECK_OK(tools_.settle(outcome));
    spent_.cpu += outcome.cpu;
    spent_.memory_peak = std::max(spent_.memory_peak, outcome.memory_peak);
    ProgramRun out;
    PROCTOR_TRY(out.out, read_file(exec.stdout_file, kOutputBytes));
    PROCTOR_TRY(out.err, read_file(exec.stderr_file, kOutputBytes));
    disk_full_ = outcome.end == ExecOutcome::End::kDisk;
    out.exit = exit_of(outcome);
    using End = ExecOutcome::End;
    if (outcome.end == End::kMemory || outcome.end == End::kDisk || outcome.end == End::kCpu)
      out.err += "\n[" + end_of(outcome).describe() + "]";
    return out;
  }
  // As a shell would say it; nothing: its time was over.
  static std::optional<int> exit_of(const ExecOutcome& outcome) {
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

  // ---- its end
  Result<AgentReport> report(const ToolLoopEnd& end) {
    using End = ExecOutcome::End;
    ExecOutcome outcome = spent_;
    outcome.wall = elapsed();
    const bool done = end.why == Why::kSubmitted || end.why == Why::kSilent;
    outcome.exit_code = done ? 0 : exit_code_;
    if (!done && disk_full_)
      outcome.end = End::kDisk;
    else if (!done && stop_.stop_requested())
      outcome.end = End::kCancelled;
    else if (!done && left() == Millis(0))
      outcome.end = End::kTimedOut;
    std::string complaint;
    if (!end.detail.empty()) say(complaint, end.detail);
    outcome.stdout_bytes = out_.size();
    outcome.stderr_bytes = complaint.size();
    const fs::path out = job_.logs / "stdout", err = job_.logs / "stderr";
    PROCTOR_CHECK_OK(write_file(out, out_, Durability::kLazy));
    PROCTOR_CHECK_OK(write_file(err, complaint, Durability::kLazy));
    job_.on_tool({"tool_loop", gateway_.model, outcome, time_, out, err});
    return AgentReport{outcome};
  }

  const AgentJob& job_;
  const ToolAgentTools& tools_;
  const MethodGateway& gateway_;
  const Hold::Clock::time_point begin_;
  const Millis time_;
  const std::stop_token stop_;
  std::string out_, held_;
  ExecOutcome spent_;
  std::uint64_t calls_ = 0;
  int exit_code_ = 1;
  bool answered_ = false, disk_full_ = false;
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
