#include "worker/tools/tool_session.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include "common/base/digest.h"
#include "common/base/net_host.h"
#include "common/base/owned.h"
#include "common/base/text.h"
#include "worker/tools/text_lines.h"

namespace proctor {
namespace {
// What an event holds of what was said, and how many calls have events of their own.
constexpr std::size_t kArgumentBytes = std::size_t{64} << 10, kPrefixBytes = 4'096;
constexpr std::uint64_t kEventsOfCalls = 20'000;
constexpr std::chrono::milliseconds kFileTool{10'000};

template <class... F>
struct Each : F... {
  using F::operator()...;
};
template <class... F>
Each(F...) -> Each<F...>;

Json change_json(const FileChange& change) {
  return {{"path", change.path},
          {"before", change.before ? Json(change.before->hex()) : Json()},
          {"after", change.after ? Json(change.after->hex()) : Json()}};
}

std::string stream_of(std::string_view name, std::string_view bytes) {
  if (bytes.empty()) return "";
  std::string out = "[" + std::string(name) + "]\n" + head_and_tail(bytes).text;
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
  const auto verdict = stages_.judge(kind, hooks_.now());
  if (verdict.change) change(*verdict.change);
  if (!verdict.refused.empty()) return {tool_failure("Refused: " + verdict.refused + "."), true};
  const auto plain = [](ToolOutcome outcome) { return Done{std::move(outcome)}; };
  const auto said = [](std::string text) {
    Done out;
    out.outcome.text = std::move(text);
    return out;
  };
  return std::visit(
      Each{[&](const ListDir& ask) { return plain(files_.list(ask)); },
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

struct ToolServer::Impl {
  struct Client {
    UniqueFd fd;
    std::atomic<bool> done = false;
    std::jthread thread;
  };

  Impl(ToolSession& s, std::string words, UniqueFd l, UniqueFd w)
      : session(s), instructions(std::move(words)), listener(std::move(l)), wake(std::move(w)) {}

  ToolSession& session;
  const std::string instructions;
  const UniqueFd listener, wake;
  std::mutex turn;  // of the session
  std::jthread thread;

  // False: it is time to end.
  bool ready(int fd, short events) const {
    std::array<pollfd, 2> fds{{{wake.get(), POLLIN, 0}, {fd, events, 0}}};
    while (::poll(fds.data(), fds.size(), -1) < 0)
      if (errno != EINTR) return false;
    return fds[0].revents == 0;
  }

  void run() {
    std::list<Client> clients;
    while (ready(listener.get(), POLLIN)) {
      clients.remove_if([](const Client& c) { return c.done.load(); });
      UniqueFd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      // One more than is served is cut off: an agent has one client, and perhaps that of a helper.
      if (!fd.valid() || clients.size() == kToolClientsMax) continue;
      Client& client = clients.emplace_back();
      client.fd = std::move(fd);
      client.thread = std::jthread([this, &client] {
        serve(client.fd.get());
        ::shutdown(client.fd.get(), SHUT_RDWR);
        client.done = true;
      });
    }
  }

  void serve(int fd) {
    std::string in;
    std::array<char, kReadChunk> buffer;  // NOLINT: filled by recv
    while (ready(fd, POLLIN)) {
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
    const McpStep step = mcp_step(line, nullptr, instructions);
    if (const auto* ready_answer = std::get_if<McpAnswer>(&step))
      return ready_answer->body.empty() || say(fd, ready_answer->body);
    if (const auto* call = std::get_if<McpCall>(&step)) {
      std::string result;
      {
        const std::lock_guard lock(turn);
        // Whoever waited for his turn until the end has none any more.
        std::array<pollfd, 1> end{{{wake.get(), POLLIN, 0}}};
        if (::poll(end.data(), end.size(), 0) != 0) return false;
        result = mcp_result(*call, session.call(*call));
      }
      return say(fd, std::move(result));
    }
    return true;  // a call that was cancelled has been answered before the word of it was read
  }

  bool say(int fd, std::string line) const {
    line += '\n';
    std::string_view left = line;
    while (!left.empty()) {
      const ssize_t n = ::send(fd, left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (0 < n) {
        left.remove_prefix(static_cast<std::size_t>(n));
      } else if (errno == EAGAIN) {
        if (!ready(fd, POLLOUT)) return false;
      } else if (errno != EINTR) {
        return false;
      }
    }
    return true;
  }
};

ToolServer::ToolServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<ToolServer>> ToolServer::start(const fs::path& dir, ToolSession& session,
                                                      std::string instructions) {
  PROCTOR_TRY(UniqueFd listener, listen_in(dir, static_cast<int>(kToolClientsMax), "tool socket"));
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return errno_error("tool socket: eventfd", errno);
  auto impl = std::make_unique<Impl>(session, std::move(instructions), std::move(listener),
                                     std::move(wake));
  impl->thread = std::jthread([i = impl.get()] { i->run(); });
  return std::unique_ptr<ToolServer>(new ToolServer(std::move(impl)));
}

ToolServer::~ToolServer() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(impl_->wake.get(), &one, sizeof one);
  impl_->thread.join();
}
}  // namespace proctor
