#include "coordinator/shell/control_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "common/base/log.h"
#include "common/base/owned.h"
#include "common/wire/asio.h"

namespace proctor {
namespace asio = boost::asio;

namespace {
using Protocol = asio::local::stream_protocol;

constexpr std::chrono::milliseconds kAcceptAgain{200};

// A socket's address has 107 bytes; a campaign's folder can be deeper.  Through a descriptor of the
// folder the path is short whatever it is.
struct Address {
  UniqueFd folder;
  sockaddr_un name{};
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): how bind and connect are called
  const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&name); }
};

Result<Address> address_of(const fs::path& socket) {
  Address out;
  out.folder.reset(::open(socket.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!out.folder.valid()) return errno_error("open " + socket.parent_path().string(), errno);
  const std::string path =
      "/proc/self/fd/" + std::to_string(out.folder.get()) + "/" + socket.filename().string();
  if (sizeof out.name.sun_path <= path.size())
    return Error{Errc::kInvalid, "the name of the control socket is too long"};
  out.name.sun_family = AF_UNIX;
  std::memcpy(out.name.sun_path, path.c_str(), path.size() + 1);
  return out;
}

Result<UniqueFd> unix_socket() {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return errno_error("control socket", errno);
  return fd;
}

std::string refusal(ControlAnswer::Verdict verdict, const std::string& why) {
  return encode(ControlAnswer{verdict, why, {}});
}

bool may_speak(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == 0 || peer.uid == ::geteuid();
}
}  // namespace

struct ControlServer::Listener {
  Protocol::acceptor acceptor;
  asio::steady_timer pause;
};

class ControlServer::Client : public std::enable_shared_from_this<Client> {
 public:
  Client(ControlServer& server, Protocol::socket socket)
      : server_(&server), socket_(std::move(socket)), timer_(socket_.get_executor()) {}

  int fd() { return socket_.native_handle(); }

  // No word of ours reaches the server any more.
  void cut() {
    server_ = nullptr;
    boost::system::error_code ec;
    socket_.close(ec);
    timer_.cancel();
  }

  void read() {
    wait(server_->times_.line, [this] { gone(); });
    asio::async_read_until(socket_, asio::dynamic_buffer(in_, kControlLineBytes + 1), '\n',
                           [self = shared_from_this()](boost::system::error_code ec,
                                                       std::size_t n) { self->have(ec, n); });
  }

  void last_word(std::string line) {
    last_ = true;
    say(std::move(line));
  }

 private:
  void have(boost::system::error_code ec, std::size_t n) {
    if (server_ == nullptr) return;
    if (ec == asio::error::not_found)
      return last_word(
          refusal(ControlAnswer::Verdict::kInvalid,
                  "request: a line longer than " + std::to_string(kControlLineBytes) + " bytes"));
    if (ec == asio::error::eof && !in_.empty())
      return last_word(
          refusal(ControlAnswer::Verdict::kInvalid, "request: the last line has no end"));
    if (ec) return gone();
    std::string line = in_.substr(0, n - 1);
    in_.erase(0, n);
    const std::uint64_t question = ++question_;
    open_ = true;
    wait(server_->times_.answer, [this, question] {
      answer(question, refusal(ControlAnswer::Verdict::kUnavailable,
                               "no answer yet: it may still be done, and asking again is safe"));
    });
    Reply reply;
    reply.say_ = [weak = weak_from_this(), question](std::string text) {
      if (const auto self = weak.lock()) self->answer(question, std::move(text));
    };
    reply.first_ = [weak = weak_from_this(), question](std::string_view text) {
      const auto self = weak.lock();
      return self && self->say_first(question, text);
    };
    server_->handler_(std::move(line), std::move(reply));
  }

  // The kernel decides between this line and the client's hanging up: it is in the client's hands,
  // or it is refused.  One who leaves no room for a few bytes does not listen either.
  bool say_first(std::uint64_t question, std::string_view line) {
    if (server_ == nullptr || !open_ || question != question_) return false;
    const ssize_t n =
        ::send(socket_.native_handle(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n == static_cast<ssize_t>(line.size())) return true;
    gone();
    return false;
  }

  void answer(std::uint64_t question, std::string line) {
    if (server_ == nullptr || !open_ || question != question_) return;
    say(std::move(line));
  }

  void say(std::string line) {
    open_ = false;
    out_ = std::move(line);
    wait(server_->times_.write, [this] { gone(); });
    asio::async_write(socket_, asio::buffer(out_),
                      [self = shared_from_this()](boost::system::error_code ec, std::size_t) {
                        if (self->server_ == nullptr) return;
                        if (ec || self->last_) return self->gone();
                        self->read();
                      });
  }

  void wait(std::chrono::milliseconds time, std::function<void()> then) {
    timer_.expires_after(time);
    timer_.async_wait(
        [self = shared_from_this(), then = std::move(then)](boost::system::error_code ec) {
          if (!ec && self->server_ != nullptr) then();
        });
  }

  void gone() {
    if (server_ == nullptr) return;
    auto self = shared_from_this();
    server_->clients_.erase(self);
    cut();
  }

  ControlServer* server_;
  Protocol::socket socket_;
  asio::steady_timer timer_;
  std::string in_, out_;
  std::uint64_t question_ = 0;
  bool open_ = false, last_ = false;
};

ControlServer::ControlServer(asio::io_context& io, fs::path socket, Handler handler, Times times)
    : listener_(new Listener{Protocol::acceptor(io), asio::steady_timer(io)}),
      socket_(std::move(socket)),
      handler_(std::move(handler)),
      times_(times) {}

Result<std::unique_ptr<ControlServer>> ControlServer::open(asio::io_context& io,
                                                           const fs::path& socket, Handler handler,
                                                           Times times) {
  std::unique_ptr<ControlServer> out(new ControlServer(io, socket, std::move(handler), times));
  if (Status s = out->listen(); !s.ok())
    return in_context("control socket " + socket.string(), std::move(s).error());
  out->accept();
  return out;
}

Status ControlServer::listen() {
  PROCTOR_TRY(const Address address, address_of(socket_));
  PROCTOR_TRY(UniqueFd fd, unix_socket());
  if (::unlinkat(address.folder.get(), socket_.filename().c_str(), 0) != 0 && errno != ENOENT)
    return errno_error("remove the old one", errno);
  if (::bind(fd.get(), address.raw(), sizeof address.name) != 0) return errno_error("bind", errno);
  if (::fchmodat(address.folder.get(), socket_.filename().c_str(), 0600, 0) != 0)
    return errno_error("chmod", errno);
  if (::listen(fd.get(), static_cast<int>(kClientsMax)) != 0) return errno_error("listen", errno);
  boost::system::error_code ec;
  listener_->acceptor.assign(Protocol(), fd.get(), ec);
  if (ec) return Error{Errc::kUnavailable, ec.message()};
  fd.release();
  return ok_status();
}

void ControlServer::accept() {
  listener_->acceptor.async_accept([this, alive = std::weak_ptr<int>(alive_)](
                                       boost::system::error_code ec, Protocol::socket socket) {
    if (alive.expired() || ec == asio::error::operation_aborted) return;
    if (!ec) {
      admit(std::make_shared<Client>(*this, std::move(socket)));
      return accept();
    }
    listener_->pause.expires_after(kAcceptAgain);  // no descriptor left, say: not in a busy loop
    listener_->pause.async_wait([this, alive](boost::system::error_code cancelled) {
      if (!cancelled && !alive.expired()) accept();
    });
  });
}

void ControlServer::admit(const std::shared_ptr<Client>& client) {
  if (!may_speak(client->fd())) return log::warn("control socket: refused a stranger");
  const bool full = kClientsMax <= clients_.size();
  if (2 * kClientsMax <= clients_.size()) return;  // not even a word for it
  clients_.insert(client);
  if (!full) return client->read();
  client->last_word(refusal(ControlAnswer::Verdict::kUnavailable,
                            std::to_string(kClientsMax) + " clients are connected already"));
}

ControlServer::~ControlServer() {
  for (const auto& client : clients_) client->cut();
  boost::system::error_code ec;
  listener_->acceptor.close(ec);
  std::error_code gone;
  fs::remove(socket_, gone);
}

Result<int> connect_control(const fs::path& socket) {
  const auto address = address_of(socket);
  if (!address.ok()) return address.error();
  PROCTOR_TRY(UniqueFd fd, unix_socket());
  const timeval limit{10, 0};  // where nobody accepts, and as many wait as the kernel keeps
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (::connect(fd.get(), address->raw(), sizeof address->name) == 0) return fd.release();
  if (errno == ENOENT)
    return Error{Errc::kNotFound, "no coordinator listens at " + socket.string()};
  return Error{Errc::kUnavailable, "no coordinator answers at " + socket.string()};
}

namespace {
using Clock = std::chrono::steady_clock;

class Call {
 public:
  Call(UniqueFd fd, const ControlPatience& patience, const std::function<void()>& waits)
      : fd_(std::move(fd)), notice_(Clock::now() + patience.notice), waits_(waits) {}

  // False: it is not ready by then.
  bool wait(short events, Clock::time_point until) {
    for (;;) {
      const auto now = Clock::now();
      if (until <= now) return false;
      if (waits_ && notice_ <= now) std::exchange(waits_, nullptr)();
      const auto next = waits_ ? std::min(until, notice_) : until;
      pollfd p{fd_.get(), events, 0};
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - now).count();
      if (0 < ::poll(&p, 1, static_cast<int>(left))) return true;
    }
  }

  void send(std::string_view bytes, Clock::time_point until) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (0 <= n)
        bytes.remove_prefix(static_cast<std::size_t>(n));
      else if (errno == EAGAIN && !wait(POLLOUT, until))
        return;
      else if (errno != EINTR && errno != EAGAIN)
        return;  // it has said why already, or ended: what it said tells
    }
  }

  // Nothing: no whole line has come by then, or the other end has gone.
  std::optional<std::string> line(Clock::time_point until) {
    for (;;) {
      if (const std::size_t end = in_.find('\n'); end != std::string::npos) {
        std::string out = in_.substr(0, end);
        in_.erase(0, end + 1);
        return out;
      }
      if (ended_ || kControlAnswerBytes < in_.size() || !wait(POLLIN, until)) return std::nullopt;
      read();
    }
  }

  // Nothing that is said from now on is said to us; what was said before is heard.
  std::optional<std::string> hang_up() {
    ::shutdown(fd_.get(), SHUT_RDWR);
    while (read()) {
    }
    ended_ = true;
    return line(Clock::now());
  }

  bool ended() const { return ended_; }

 private:
  // False: there is nothing to read now.
  bool read() {
    std::array<char, 16'384> buffer{};
    const ssize_t n = ::recv(fd_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (0 < n) in_.append(buffer.data(), static_cast<std::size_t>(n));
    if (n == 0 || (n < 0 && errno != EAGAIN)) ended_ = true;
    return 0 < n;
  }

  UniqueFd fd_;
  Clock::time_point notice_;
  std::function<void()> waits_;
  std::string in_;
  bool ended_ = false;
};
}  // namespace

Result<ControlHeard> call_control(const fs::path& socket, ControlRequest request,
                                  const ControlPatience& patience,
                                  const std::function<void()>& waits) {
  using What = ControlHeard::What;
  request.taken = request.act != kActExplain;
  const std::string question = encode(request);
  if (kControlLineBytes < question.size())
    return Error{Errc::kInvalid, "this is more than " + std::to_string(kControlLineBytes) +
                                     " bytes of words for a coordinator"};
  const auto begun = Clock::now();
  PROCTOR_TRY(const int fd, connect_control(socket));
  Call call(UniqueFd(fd), patience, waits);
  const auto until = begun + patience.taken;
  call.send(question, until);
  std::optional<std::string> line = call.line(until);
  bool ended = call.ended();
  const bool gave_up = !line && !ended;
  if (!line) line = call.hang_up();
  constexpr std::string_view kTaken = kTakenLine.substr(0, kTakenLine.size() - 1);
  const bool taken = line && *line == kTaken;
  if (taken) {
    line = call.line(begun + patience.answered);
    ended = !gave_up && call.ended();
  }
  if (!line) return ControlHeard{taken ? What::kTaken : What::kNothing, {}, ended};
  PROCTOR_TRY(ControlAnswer answer, parse_control_answer(*line));
  return ControlHeard{What::kAnswer, std::move(answer), false};
}
}  // namespace proctor
