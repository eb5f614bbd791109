#include "tests/support/local_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "common/base/owned.h"

namespace proctor::testing {
namespace {

void need(bool fine, const char* what) {
  if (!fine) throw std::runtime_error(what);
}

bool is_http(const std::string& said) {
  return said.starts_with("GET ") || said.starts_with("POST ");
}

}  // namespace

struct LocalServer::Impl {
  struct Client {
    UniqueFd fd;
    std::size_t heard;  // its index
    bool answered = false;
  };

  UniqueFd listener, stop;
  std::uint16_t port = 0;
  mutable std::mutex mutex;
  std::vector<std::string> heard;
  std::vector<Client> clients;
  std::jthread thread;

  void run() {
    for (;;) {
      std::vector<pollfd> fds{{stop.get(), POLLIN, 0}, {listener.get(), POLLIN, 0}};
      for (const Client& c : clients) fds.push_back({c.fd.get(), POLLIN, 0});
      ::poll(fds.data(), fds.size(), -1);
      if (fds[0].revents != 0) return;
      for (std::size_t i = 2; i < fds.size(); ++i)
        if (fds[i].revents != 0) hear(clients[i - 2]);
      std::erase_if(clients, [](const Client& c) { return !c.fd.valid(); });
      if (fds[1].revents == 0) continue;
      UniqueFd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      const std::lock_guard lock(mutex);
      clients.push_back({std::move(fd), heard.size()});
      heard.emplace_back();
    }
  }

  void hear(Client& c) {
    std::array<char, 65536> buffer{};
    const ssize_t n = ::recv(c.fd.get(), buffer.data(), buffer.size(), 0);
    if (n <= 0) return c.fd.reset();
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(n));
    const std::lock_guard lock(mutex);
    std::string& said = heard[c.heard];
    said += bytes;
    if (!is_http(said)) return say(c, bytes);
    if (c.answered || said.find("\r\n\r\n") == std::string::npos) return;
    c.answered = true;
    say(c, "HTTP/1.1 200 OK\r\ncontent-length: " + std::to_string(said.size()) + "\r\n\r\n" + said);
    // As asked for by "connection: close"; what comes later is heard all the same.
    ::shutdown(c.fd.get(), SHUT_WR);
  }

  static void say(const Client& c, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(c.fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }
};

LocalServer::LocalServer() : impl_(std::make_unique<Impl>()) {
  impl_->listener.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  impl_->stop.reset(::eventfd(0, EFD_CLOEXEC));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const plain = reinterpret_cast<sockaddr*>(&address);
  need(::bind(impl_->listener.get(), plain, size) == 0, "bind a port of 127.0.0.1");
  need(::listen(impl_->listener.get(), 100) == 0, "listen on 127.0.0.1");
  need(::getsockname(impl_->listener.get(), plain, &size) == 0, "getsockname");
  impl_->port = ntohs(address.sin_port);
  impl_->thread = std::jthread([i = impl_.get()] { i->run(); });
}

LocalServer::~LocalServer() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(impl_->stop.get(), &one, sizeof one);
  impl_->thread.join();
}

std::uint16_t LocalServer::port() const {
  return impl_->port;
}
std::string LocalServer::at() const {
  return "127.0.0.1:" + std::to_string(impl_->port);
}

std::vector<std::string> LocalServer::heard() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->heard;
}

}  // namespace proctor::testing
