#include "tests/support/chat_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <list>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "common/base/owned.h"
#include "tests/support/json_tools.h"

namespace proctor::testing {
namespace {

void need(bool fine, const char* what) {
  if (!fine) throw std::runtime_error(what);
}

std::size_t length_in(const std::string& head) {
  std::string lower = head;
  for (char& c : lower)
    if ('A' <= c && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  const std::size_t at = lower.find("content-length:");
  return at == std::string::npos ? 0 : std::stoul(lower.substr(at + 15));
}

bool send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

ChatAnswer chat_says(const std::string& text, std::uint64_t input, std::uint64_t output) {
  Json body = {
      {"id", "c"},
      {"choices", {{{"index", 0}, {"message", {{"role", "assistant"}, {"content", text}}}}}}};
  if (0 < input + output) body["usage"] = {{"prompt_tokens", input}, {"completion_tokens", output}};
  ChatAnswer out;
  out.body = body.dump();
  return out;
}

struct ChatServer::Impl {
  Script script;
  UniqueFd listener, stop;
  std::uint16_t port = 0;
  mutable std::mutex mutex;
  std::vector<Heard> heard;
  std::list<std::jthread> clients;
  std::jthread thread;

  void run() {
    for (;;) {
      std::array<pollfd, 2> fds{{{stop.get(), POLLIN, 0}, {listener.get(), POLLIN, 0}}};
      ::poll(fds.data(), fds.size(), -1);
      if (fds[0].revents != 0) return;
      UniqueFd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      clients.emplace_back([this, client = std::move(fd)] { serve(client.get()); });
    }
  }

  // Waits for bytes; false when the client or the server goes.
  bool readable(int fd) const {
    std::array<pollfd, 2> fds{{{stop.get(), POLLIN, 0}, {fd, POLLIN, 0}}};
    ::poll(fds.data(), fds.size(), -1);
    return fds[0].revents == 0;
  }

  void serve(int fd) {
    std::string said;
    std::array<char, 65536> buffer;  // NOLINT: filled by recv
    std::size_t head = std::string::npos;
    while (head == std::string::npos || said.size() < head + 4 + length_in(said.substr(0, head))) {
      if (!readable(fd)) return;
      const ssize_t n = ::recv(fd, buffer.data(), buffer.size(), 0);
      if (n <= 0) return;
      said.append(buffer.data(), static_cast<std::size_t>(n));
      head = said.find("\r\n\r\n");
    }
    const Json body = json_or_null(said.substr(head + 4));
    std::size_t call = 0;
    {
      const std::lock_guard lock(mutex);
      call = heard.size();
      heard.push_back({said.substr(0, head), body});
    }
    answer(fd, script(body, call));
  }

  void answer(int fd, const ChatAnswer& a) const {
    if (a.close) return;
    while (a.hang) {
      if (!readable(fd)) return;
      char one = 0;
      if (::recv(fd, &one, 1, 0) <= 0) return;
    }
    const std::size_t length = a.said_length == 0 ? a.body.size() : a.said_length;
    if (send_all(fd, "HTTP/1.1 " + std::to_string(a.status) +
                         " X\r\nContent-Type: " + a.content_type + "\r\n" + a.headers +
                         "Content-Length: " + std::to_string(length) +
                         "\r\nConnection: close\r\n\r\n"))
      send_all(fd, a.body);
  }
};

ChatServer::ChatServer(Script script) : impl_(std::make_unique<Impl>()) {
  Impl& i = *impl_;
  i.script = std::move(script);
  i.listener.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  i.stop.reset(::eventfd(0, EFD_CLOEXEC));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  auto* const address = reinterpret_cast<sockaddr*>(&at);
  need(::bind(i.listener.get(), address, size) == 0, "bind");
  constexpr int kBacklog = 64;
  need(::listen(i.listener.get(), kBacklog) == 0, "listen");
  need(::getsockname(i.listener.get(), address, &size) == 0, "getsockname");
  i.port = ntohs(at.sin_port);
  i.thread = std::jthread([&i] { i.run(); });
}

ChatServer::~ChatServer() {
  const std::uint64_t one = 1;
  (void)!::write(impl_->stop.get(), &one, sizeof one);
  impl_->thread.join();
  impl_->clients.clear();
}

std::string ChatServer::url() const {
  return "http://127.0.0.1:" + std::to_string(impl_->port) + "/v1";
}

std::vector<ChatServer::Heard> ChatServer::heard() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->heard;
}

}  // namespace proctor::testing
