#include "worker/tools/tool_session.h"

#include <poll.h>
#include <sys/socket.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <utility>

#include "common/base/digest.h"
#include "common/base/owned.h"
#include "common/base/text.h"
#include "worker/network/sockets.h"
#include "worker/tools/text_lines.h"

namespace proctor {
namespace {
// What an event holds of what was said, and how many calls have events of their own.
constexpr std::size_t kArgumentBytes = std::size_t{64} << 10, kPrefixBytes = 4'096;
constexpr std::uint64_t kEventsOfCalls = 20'000;
constexpr std::chrono::milliseconds kFileTool{10'000};

Json change_json(const FileChange& change) {
  return {{"path", change.path},
          {"before", change.before ? Json(change.before->hex()) : Json()},
          {"after", change.after ? Json(change.after->hex()) : Json()}};
}

std::string stream_of(std::string_view name, std::string_view bytes) {
  if (bytes.empty()) return "";
  std::string out = "[" + std::string(name) + "]\n" + head_and_tail(bytes);
  if (!out.ends_with('\n')) out += '\n';
  return out;
}

std::string suites_of(const std::vector<ToolSuite>& suites) {
  std::string out;
  for (const ToolSuite& suite : suites) out += (out.empty() ? "" : ", ") + printable(suite.name);
  return out;
}
}  // namespace

// The end of a tool, and whether a rule of the run kept it from being done.
struct ToolSession::Done {
  ToolOutcome outcome;
  bool refused = false;
  bool ran = false;  // a command
};

ToolSession::ToolSession(ToolSessionRules rules, const WorkspaceTools& files, ToolHooks hooks)
    : rules_(std::move(rules)), files_(files), hooks_(std::move(hooks)), stages_(rules_.stages) {}

bool ToolSession::is_told() const {
  return calls_ <= kEventsOfCalls;
}

ToolSession::Millis ToolSession::most_of(const ToolKind& kind,
                                         const Result<ToolArguments>& arguments) const {
  if (kind.tool != Tool::kShell && kind.tool != Tool::kRunTests)
    return std::max(kFileTool, kind.tool == Tool::kSearch ? rules_.wall : Millis(0));
  if (!arguments.ok()) return kFileTool;
  const auto* shell = std::get_if<ShellCommand>(&*arguments);
  if (shell == nullptr || !shell->timeout_ms) return rules_.wall;
  return std::min(rules_.wall, Millis(*shell->timeout_ms));
}

// Once for good, whatever is asked for afterwards: the answer is the same and costs nothing.
McpResult ToolSession::refuse(const ToolRefusal& refusal) {
  ++refused_;
  if (refusal.final) final_ = refusal;
  McpResult out;
  out.failed = true;
  out.text = "Refused: " + refusal.why + ".";
  out.text += refusal.final ? " Nothing more will be granted; finish your work now."
                            : " It may be granted later.";
  out.structured = {
      {"refused",
       {{"cap", refusal.cap}, {"final", refusal.final}, {"short_by", refusal.short_by}}}};
  return out;
}

void ToolSession::change(const StageChange& stage) {
  if (is_told()) hear(hooks_.note("stage.changed", stage_json(stage)));
}

// The words of the answer about it, if it has any.
std::string ToolSession::hear(const ToolHeard& heard) {
  std::string out;
  if (heard.suspend) {
    out = "Writing is suspended: " + heard.why + ". Read before you go on.\n";
    if (const auto change = stages_.suspend(heard.why, hooks_.now()); change && is_told())
      hooks_.note("stage.changed", stage_json(*change));
  }
  if (0 < heard.wait.count()) {
    hooks_.wait(heard.wait);
    out += "[waited " +
           std::to_string(std::chrono::ceil<std::chrono::seconds>(heard.wait).count()) +
           " s: " + heard.why + "]\n";
  }
  return out;
}

ToolSession::Done ToolSession::run(const std::string& command, Millis most) {
  const auto ran = hooks_.shell(command, stages_.shell_writes(), most);
  if (!ran.ok()) return {tool_failure("the command could not be run: " + ran.error().detail)};
  Done out;
  out.ran = true;
  out.outcome.exit = ran->exit;
  out.outcome.failed = ran->exit != 0;
  out.outcome.text = ran->exit ? "exit code " + std::to_string(*ran->exit) + "\n"
                               : "ended after " + std::to_string(most.count()) + " ms\n";
  out.outcome.text += stream_of("stdout", ran->out) + stream_of("stderr", ran->err);
  return out;
}

ToolSession::Done ToolSession::perform(const ToolKind& kind, const ToolArguments& arguments,
                                       Millis most) {
  const std::string lack = stages_.lack_of(kind, hooks_.now());
  if (!lack.empty()) return {tool_failure("Refused: " + lack + "."), true};
  const auto plain = [](ToolOutcome outcome) { return Done{std::move(outcome)}; };
  const auto said = [](std::string text) {
    Done out;
    out.outcome.text = std::move(text);
    return out;
  };
  return std::visit(
      Overload{
          [&](const ListDir& ask) { return plain(files_.list(ask)); },
          [&](const ReadFile& ask) { return plain(files_.read(ask)); },
          [&](const Search& ask) { return plain(files_.search(ask)); },
          [&](const WriteFile& ask) { return plain(files_.write(ask)); },
          [&](const EditFile& ask) { return plain(files_.edit(ask)); },
          [&](const ApplyDiff& ask) { return plain(files_.patch(ask)); },
          [&](const ShellCommand& ask) { return run(ask.command, most); },
          [&](const AdvanceStage& ask) {
            auto next = stages_.advance(ask.to, ask.reason, hooks_.now());
            if (!next.ok())
              return Done{tool_failure("Refused: " + next.error().detail + "."), true};
            change(*next);
            return said("The stage is \"" + std::string(to_string(stages_.stage())) + "\" now.");
          },
          [&](const RunTests& ask) {
            const auto& suites = rules_.suites;
            const auto suite = std::find_if(suites.begin(), suites.end(), [&](const ToolSuite& s) {
              return !ask.name || s.name == *ask.name;
            });
            if (suites.empty()) return plain(tool_failure("the task names no tests"));
            if (suite == suites.end())
              return plain(tool_failure("there are no tests of that name: " + suites_of(suites)));
            return run(suite->command, most);
          },
          [&](const AskStatus&) {
            return said("stage: " + std::string(to_string(stages_.stage())) + "\n" +
                        hooks_.status());
          },
          [&](const Submit&) {
            submitted_ = true;
            return said("The work is handed in.");
          }},
      arguments);
}

McpResult ToolSession::call(const McpCall& ask) {
  const ToolKind* kind = find_tool(ask.tool);
  PROCTOR_ASSERT(kind != nullptr);
  const auto arguments = read_tool_arguments(*kind, ask.arguments);
  if (submitted_) return refuse({"submit", "the work is handed in", true, 0});
  if (!kind->counted && arguments.ok()) {
    const Done done = perform(*kind, *arguments, kFileTool);
    return {done.outcome.text, done.outcome.failed, nullptr};
  }
  if (final_) return refuse(*final_);
  const std::string id = rules_.ids + "t" + std::to_string(++calls_);
  const Millis most = most_of(*kind, arguments);
  if (kind->counted)
    if (const auto no = hooks_.reserve(id, *kind, most)) {
      if (is_told())
        hooks_.note("tool.refused", {{"id", id},
                                     {"tool", kind->name},
                                     {"cap", no->cap},
                                     {"final", no->final},
                                     {"short_by", no->short_by}});
      return refuse(*no);
    }

  const std::string written = ask.arguments.dump(-1, Json::Utf8::kReplace);
  const std::string digest = sha256(written).hex();
  std::string aside;
  if (is_told())
    aside = hear(hooks_.note("tool.call", {{"id", id},
                                           {"tool", kind->name},
                                           {"arguments", head_of(written, kArgumentBytes)},
                                           {"arguments_digest", digest},
                                           {"stage", to_string(stages_.stage())}}));
  if (arguments.ok() && hooks_.command)
    if (const auto* shell = std::get_if<ShellCommand>(&*arguments))
      hooks_.command(id, shell->command);
  const Millis began = hooks_.now();
  const Done done = arguments.ok() ? perform(*kind, *arguments, most)
                                   : Done{tool_failure(arguments.error().detail + ".")};
  const ToolOutcome& outcome = done.outcome;
  const Millis used = std::clamp(hooks_.now() - began, Millis(0), most);
  if (kind->counted)
    hooks_.charge(
        id, *kind, used,
        kind->tool == Tool::kRunTests && done.ran ? std::optional(outcome.failed) : std::nullopt);
  if (done.refused) ++refused_;
  if (kind->reads && !outcome.failed) stages_.has_read();
  if (is_told()) {
    Json changes = Json::array();
    for (const FileChange& change : outcome.changes) changes.push_back(change_json(change));
    Json payload = {{"id", id},
                    {"ok", !outcome.failed},
                    {"refused", done.refused},
                    {"wall_ms", static_cast<std::uint64_t>(used.count())},
                    {"exit", outcome.exit ? Json(*outcome.exit) : Json()},
                    {"output", head_of(outcome.text, kPrefixBytes)},
                    {"output_digest", sha256(outcome.text).hex()},
                    {"changes", std::move(changes)}};
    if (const std::string state = hooks_.state(); !state.empty()) payload["state"] = state;
    aside += hear(hooks_.note("tool.result", payload));
  }
  McpResult out{outcome.text, outcome.failed, nullptr};
  if (!aside.empty() && !out.text.ends_with('\n')) out.text += '\n';
  out.text += aside;
  return out;
}

constexpr std::size_t kReadChunk = std::size_t{64} << 10;

constexpr std::chrono::hours kForever{24 * 365};

struct ToolServer::Impl {
  ToolSession& session;
  const std::string instructions;
  const UniqueFd stop;  // readable from the end on
  std::mutex turn{};    // of the session
  std::atomic<std::size_t> clients = 0;
  std::unique_ptr<SocketServer> server{};  // last: its threads use the others

  // One more than is served is cut off: an agent has one client, and perhaps that of a helper.
  void serve(const UniqueFd& client) {
    if (clients.fetch_add(1) < kToolClientsMax) converse(client.get());
    --clients;
  }

  void converse(int fd) {
    std::string in;
    std::array<char, kReadChunk> buffer;  // NOLINT: filled by recv
    while (wait_for_fd(fd, POLLIN, stop.get(), SteadyClock::now() + kForever) == Waited::kReady) {
      const ssize_t n = ::recv(fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (n <= 0) return;
      const std::size_t before = in.size();
      in.append(buffer.data(), static_cast<std::size_t>(n));
      std::size_t from = 0, end = in.find('\n', before);
      for (; end != std::string::npos; end = in.find('\n', from)) {
        if (!answer(fd, std::string_view(in).substr(from, end - from))) return;
        from = end + 1;
      }
      in.erase(0, from);
      if (kRpcBytes < in.size()) {
        say(fd, rpc_error({rpc::kRequest, "a message of more than 8 MiB", nullptr, nullptr}));
        return;
      }
    }
  }

  // False: the client is gone, or it is time to end.
  bool answer(int fd, std::string_view line) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) return true;
    const McpStep step = mcp_step(line, instructions);
    // One that cancels a call needs none: the call was answered before the word of it was read.
    if (const auto* said = std::get_if<std::string>(&step)) return said->empty() || say(fd, *said);
    const auto& call = std::get<McpCall>(step);
    std::string result;
    {
      const std::lock_guard lock(turn);
      // Whoever waited for his turn until the end has none any more.
      if (wait_for_fd(-1, 0, stop.get(), SteadyClock::now()) == Waited::kStopped) return false;
      result = mcp_result(call, session.call(call));
    }
    return say(fd, result);
  }

  bool say(int fd, const std::string& line) const {
    return write_all(fd, line + '\n', stop.get(), kForever) == Wrote::kAll;
  }
};

ToolServer::ToolServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<ToolServer>> ToolServer::start(const fs::path& dir, ToolSession& session,
                                                      std::string instructions) {
  PROCTOR_TRY(auto server, SocketServer::open(dir, kToolClientsMax + 1, "tool socket"));
  PROCTOR_TRY(UniqueFd stop, new_signal("tool socket"));
  std::unique_ptr<Impl> impl(new Impl{session, std::move(instructions), std::move(stop)});
  impl->server = std::move(server);
  impl->server->start(impl->stop.get(),
                      [i = impl.get()](const UniqueFd& client) { i->serve(client); });
  return std::unique_ptr<ToolServer>(new ToolServer(std::move(impl)));
}

ToolServer::~ToolServer() {
  wake(impl_->stop.get());
}
}  // namespace proctor
