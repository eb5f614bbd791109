#include "worker/network/relay.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

namespace proctor {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kBuffer = std::size_t{64} << 10;

// What has been read on one side and not yet written on the other.
struct Stream {
  int from, to;
  std::string waiting{};
  bool open = true;   // more may come
  bool shut = false;  // the other side has been told that no more will
};

class Relay {
 public:
  Relay(const ProxyContext& context, int client, int server, const ProxyRequest& request)
      : context_(context),
        tunnel_(request.tunnel),
        body_(request.body),
        up_{client, server},
        down_{server, client} {
    if (!tunnel_) up_.waiting = request.head;
    up_.open = tunnel_ || !body_.done();
    own_ = up_.waiting.size();
  }

  Relayed run(std::string_view early) {
    if (!early.empty() && !take(up_, early)) return std::move(out_);
    last_ = context_.options.now();
    while (out_.cut.empty() && !ended()) {
      std::array<pollfd, 3> fds = {pollfd{context_.stop, POLLIN, 0}, wish(up_.from, up_, down_),
                                   wish(down_.from, down_, up_)};
      if (::poll(fds.data(), fds.size(), kSlice) < 0 && errno != EINTR) break;
      if (fds[0].revents != 0) {
        out_.cut = "the phase ended";
      } else if (!move(up_, fds[1].revents, fds[2].revents) ||
                 !move(down_, fds[2].revents, fds[1].revents)) {
        break;
      } else if (context_.options.bounds.idle <= context_.options.now() - last_) {
        out_.cut = "idle for too long";
      }
    }
    return std::move(out_);
  }

 private:
  static constexpr int kSlice = 1000;

  bool ended() const {
    const auto over = [](const Stream& s) { return !s.open && s.waiting.empty(); };
    return over(down_) && (!tunnel_ || over(up_));
  }

  // A hang-up is always reported: without a wish of ours it would turn this into a busy loop.
  static pollfd wish(int fd, const Stream& reads, const Stream& writes) {
    short events = 0;
    if (reads.open && reads.waiting.size() < kBuffer) events |= POLLIN;
    if (!writes.waiting.empty()) events |= POLLOUT;
    return {events == 0 ? -1 : fd, events, 0};
  }

  bool move(Stream& s, short from_events, short to_events) {
    if (s.open && s.waiting.size() < kBuffer && (from_events & ~POLLOUT) != 0 && !read(s))
      return false;
    if (!s.waiting.empty() && to_events != 0 && !write(s)) return false;
    if (!s.open && s.waiting.empty() && !s.shut) {
      s.shut = true;
      // A server that is told that a request has no more after its body may take it for a client
      // that left.
      if (tunnel_ || &s == &down_) ::shutdown(s.to, SHUT_WR);
    }
    return true;
  }

  bool read(Stream& s) {
    const ssize_t n = ::recv(s.from, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (n <= 0) {
      s.open = false;
      // A client that left half a request.
      return tunnel_ || &s == &down_;
    }
    return take(s, {buffer_.data(), static_cast<std::size_t>(n)});
  }

  bool take(Stream& s, std::string_view bytes) {
    last_ = context_.options.now();
    if (!tunnel_ && &s == &up_) {
      const auto used = body_.feed(bytes);
      if (!used.ok()) {
        out_.cut = used.error().detail;
        return false;
      }
      bytes = bytes.substr(0, *used);
      up_.open = !body_.done();
    }
    if (context_.options.bounds.bytes < context_.bytes.fetch_add(bytes.size()) + bytes.size()) {
      out_.cut = "the phase has moved more bytes than it may";
      return false;
    }
    s.waiting += bytes;
    return true;
  }

  bool write(Stream& s) {
    const ssize_t n = ::send(s.to, s.waiting.data(), s.waiting.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    last_ = context_.options.now();
    const auto moved = static_cast<std::size_t>(n);
    s.waiting.erase(0, moved);
    if (&s == &down_) {
      out_.received += moved;
    } else {
      const std::size_t head = std::min(own_, moved);  // ours, not the client's
      own_ -= head;
      out_.sent += moved - head;
    }
    return true;
  }

  const ProxyContext& context_;
  const bool tunnel_;
  BodyScanner body_;
  Stream up_, down_;
  std::size_t own_ = 0;
  std::array<char, kBuffer> buffer_{};
  std::chrono::steady_clock::time_point last_{};
  Relayed out_;
};

}  // namespace

Relayed relay(const ProxyContext& context, int client, int server, const ProxyRequest& request,
              std::string_view early) {
  Relay both(context, client, server, request);
  return both.run(early);
}

}  // namespace proctor
