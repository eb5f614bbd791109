#include "worker/shell/tool_agent.h"

#include <algorithm>
#include <utility>

#include "common/base/text.h"
#include "worker/gateway/own_client.h"
#include "worker/model/model.h"
#include "worker/tools/tool_loop.h"

namespace proctor {
namespace {

using Why = ToolLoopEnd::Why;

// Calls in a row that fail, or that the run has to wait for, until nobody waits any more.
constexpr std::uint32_t kFailuresMost = 4, kWaitsMost = 10;
constexpr std::size_t kSaidBytes = std::size_t{1} << 20;
constexpr int kOk = 200, kMultiple = 300, kTooMany = 429;

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
    tools_.hooks.tell("tool_loop.closed", GatewayHooks::By::kHarness,
                      Json{{"why", word_of(end.why)},
                           {"prompt", ToolLoop::kPromptVersion},
                           {"turns", loop.turns()},
                           {"tool_calls", work_->session().calls()},
                           {"refused", work_->session().refused()},
                           {"left_out_bytes", loop.left_out()}});
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

  // ---- the model
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

  // ---- its end
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
