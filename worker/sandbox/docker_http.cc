#include "worker/sandbox/docker_http.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "common/base/files.h"
#include "common/base/text.h"

namespace proctor {
namespace {

constexpr std::size_t kReadChunk = std::size_t{64} << 10;

}  // namespace

Result<DockerConnection> DockerConnection::open(const std::string& socket,
                                                Clock::time_point deadline) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.empty() || sizeof address.sun_path <= socket.size()) {
    return Error{Errc::kInvalid, "docker socket '" + printable(socket) + "': not a usable path"};
  }
  std::memcpy(address.sun_path, socket.data(), socket.size());
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return errno_error("socket", errno);
  const auto* where = static_cast<const sockaddr*>(static_cast<const void*>(&address));
  while (::connect(fd.get(), where, sizeof address) != 0) {
    // A unix socket whose queue is full does not wait by itself.
    if ((errno == EAGAIN || errno == EINTR) && Clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      continue;
    }
    return Error{Errc::kUnavailable,
                 "docker engine at " + socket + ": " + errno_error("connect", errno).detail};
  }
  return DockerConnection(std::move(fd));
}

Status DockerConnection::wait(short events, Clock::time_point deadline) const {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd p{fd_.get(), events, 0};
    const int n =
        ::poll(&p, 1, static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000)));
    if (0 < n) return ok_status();
    if (n < 0 && errno != EINTR) return errno_error("poll", errno);
    if (n == 0 && deadline <= Clock::now()) {
      return Error{Errc::kUnavailable, "docker engine: no answer within the time allowed"};
    }
  }
}

Status DockerConnection::send(std::string_view bytes, Clock::time_point deadline) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (0 <= n) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) {
      return Error{Errc::kUnavailable, "docker engine: " + errno_error("send", errno).detail};
    }
    PROCTOR_CHECK_OK(wait(POLLOUT, deadline));
  }
  return ok_status();
}

Status DockerConnection::begin(std::string_view method, std::string_view target,
                               std::string_view body, Clock::time_point deadline,
                               std::size_t body_max, std::string_view type) {
  parser_ = HttpReplyParser(body_max);
  usable_ = false;  // until the reply has been read to its end
  std::string head = std::string(method) + " " + std::string(target) +
                     " HTTP/1.1\r\nHost: docker\r\nUser-Agent: proctor\r\n";
  if (!body.empty()) head += "Content-Type: " + std::string(type) + "\r\n";
  if (!body.empty() || method == "POST") {
    head += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  }
  head += "\r\n";
  return send(head + std::string(body), deadline);
}

Result<bool> DockerConnection::progress() {
  std::vector<char> buffer(kReadChunk);
  while (!parser_.done()) {
    const ssize_t n = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return false;
    if (n < 0) {
      return Error{Errc::kUnavailable, "docker engine: " + errno_error("receive", errno).detail};
    }
    if (n == 0) {
      PROCTOR_CHECK_OK(parser_.close());
      return true;
    }
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(n));
    PROCTOR_TRY(const std::size_t used, parser_.feed(bytes));
    raw_.append(bytes.substr(used));
  }
  usable_ = parser_.keeps_alive() && raw_.empty();
  return true;
}

Status DockerConnection::await_reply(Clock::time_point deadline) {
  for (;;) {
    PROCTOR_TRY(const bool done, progress());
    if (done) return ok_status();
    PROCTOR_CHECK_OK(wait(POLLIN, deadline));
  }
}

Result<HttpReply> DockerConnection::call(std::string_view method, std::string_view target,
                                         std::string_view body, Clock::time_point deadline,
                                         std::size_t body_max) {
  PROCTOR_CHECK_OK(begin(method, target, body, deadline, body_max));
  PROCTOR_CHECK_OK(await_reply(deadline));
  return finish();
}

Result<HttpReply> DockerConnection::upgrade(std::string_view target, Clock::time_point deadline) {
  parser_ = HttpReplyParser(std::size_t{64} << 10);
  const std::string head =
      "POST " + std::string(target) +
      " HTTP/1.1\r\nHost: docker\r\nUser-Agent: proctor\r\nContent-Length: 0\r\n"
      "Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n";
  usable_ = false;
  PROCTOR_CHECK_OK(send(head, deadline));
  PROCTOR_CHECK_OK(await_reply(deadline));
  usable_ = false;
  return finish();
}

Result<bool> DockerConnection::read_raw(std::string& out, std::size_t max) {
  if (!raw_.empty()) {
    out.append(raw_, 0, max);
    raw_.erase(0, max);
    return true;
  }
  const std::size_t before = out.size();
  out.resize(before + std::min(max, kReadChunk));
  ssize_t n = -1;
  do {
    n = ::recv(fd_.get(), out.data() + before, out.size() - before, 0);
  } while (n < 0 && errno == EINTR);
  const int error = errno;
  out.resize(before + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  if (n < 0 && error != EAGAIN) {
    return Error{Errc::kUnavailable, "docker engine: " + errno_error("receive", error).detail};
  }
  return n != 0;
}

bool DockerConnection::fresh() const {
  if (!usable_ || !fd_.valid()) return false;
  // Anything to read on an idle connection is its end.
  pollfd p{fd_.get(), POLLIN, 0};
  return ::poll(&p, 1, 0) == 0;
}

std::string url_encode(std::string_view text) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (char c : text) {
    const bool plain = ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') ||
                       c == '-' || c == '_' || c == '.' || c == '~';
    if (plain) {
      out.push_back(c);
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out.push_back('%');
      out.push_back(kHex[byte >> 4]);
      out.push_back(kHex[byte & 15]);
    }
  }
  return out;
}

}  // namespace proctor
