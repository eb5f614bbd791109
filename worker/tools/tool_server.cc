#include "worker/tools/tool_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include "common/base/net_host.h"
#include "common/base/owned.h"

namespace proctor {
namespace {

constexpr std::size_t kReadChunk = std::size_t{64} << 10;

}  // namespace

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
