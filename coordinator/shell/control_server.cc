#include "coordinator/shell/control_server.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/base/log.h"
#include "common/base/owned.h"
#include "common/wire/asio.h"
#include "coordinator/shell/control_protocol.h"

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

}  // namespace proctor
