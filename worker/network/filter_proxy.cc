#include "worker/network/filter_proxy.h"

#include <poll.h>
#include <sys/socket.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <optional>

#include "common/base/owned.h"
#include "worker/network/allow_list.h"
#include "worker/network/proxy_request.h"
#include "worker/network/sockets.h"

namespace proctor {
// Shared by the connections of a proxy, which outlives them.
struct ProxyContext {
  const AllowList& list;
  const FilterProxy::Options& options;
  int stop;
  std::atomic<std::uint64_t>& bytes;  // relayed so far by all of them
};

namespace {
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kAnswer{5'000}, kLook{1'000};  // look: at a clock that may stand still
constexpr std::size_t kTriedMax = 4;                  // addresses of one name
constexpr std::string_view kBadRequest = "400 Bad Request", kForbidden = "403 Forbidden",
                           kBadGateway = "502 Bad Gateway",
                           kUnavailable = "503 Service Unavailable";

// An answer of ours and no more, with `why` as its text.
void answer_proxy_client(int client, std::string_view status, const std::string& why, int stop) {
  const std::string text = "proctor: " + why + "\n";
  write_all(client,
            "HTTP/1.1 " + std::string(status) + "\r\ncontent-type: text/plain\r\ncontent-length: " +
                std::to_string(text.size()) + "\r\nconnection: close\r\n\r\n" + text,
            stop, kAnswer);
}

// Bytes both ways between a client and the server it was connected to, until one of them ends.
struct Relayed {
  std::uint64_t sent = 0, received = 0;
  std::string cut;  // why it was ended by us; empty: it was not
};

constexpr std::size_t kBuffer = std::size_t{64} << 10;

// Bytes that have been read on one side and not yet written on the other.
struct Stream {
  int from, to;
  std::string waiting{};
  bool open = true;   // more may come
  bool shut = false;  // the other side has been told that no more will
};

// A tunnel lasts until both sides have ended; a request until the server has, and nothing the
// client says behind its body is passed on.
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

  // `early` is what the client had said behind its head.
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

// One client of a FilterProxy from its first byte to its last.  Blocking, on a thread of its own;
// ends soon after `stop` turns readable.
class Connection {
 public:
  // `client` is non-blocking.
  Connection(const ProxyContext& context, UniqueFd client)
      : context_(context), client_(std::move(client)) {}

  // Nullopt: the client left without a word.
  std::optional<ProxyRecord> serve() {
    const auto begun = Clock::now();
    const bool spoke = read_head();
    if (spoke && record_.why.empty()) answer_request();
    if (!spoke && record_.why.empty()) return std::nullopt;
    record_.wall = std::chrono::duration_cast<milliseconds>(Clock::now() - begun);
    return std::move(record_);
  }

 private:
  void refuse(ProxyRecord::Verdict verdict, std::string_view status, std::string why) {
    record_.verdict = verdict;
    record_.why = std::move(why);
    const std::string of = record_.host.empty() ? "" : to_string(target_) + ": ";
    answer_proxy_client(client_.get(), status, of + record_.why, context_.stop);
  }

  // False: nothing came, or too little to answer.
  bool read_head() {
    using Verdict = ProxyRecord::Verdict;
    const auto& now = context_.options.now;
    const auto until = now() + context_.options.bounds.head;
    std::array<char, 4096> buffer{};
    while (head_length(bytes_) == 0) {
      if (kHttpHeadBytes <= bytes_.size()) {
        refuse(Verdict::kMalformed, kBadRequest, "a head that is too long");
        return true;
      }
      if (until <= now()) {
        if (!bytes_.empty()) refuse(Verdict::kMalformed, kBadRequest, "a head without end");
        return false;
      }
      if (wait_for_fd(client_.get(), POLLIN, context_.stop, Clock::now() + kLook) ==
          Waited::kStopped)
        return false;
      const ssize_t n = ::recv(client_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (0 < n) {
        bytes_.append(buffer.data(), static_cast<std::size_t>(n));
      } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        if (!bytes_.empty()) refuse(Verdict::kMalformed, kBadRequest, "a head without end");
        return false;
      }
    }
    return true;
  }

  void answer_request() {
    using Verdict = ProxyRecord::Verdict;
    const std::size_t length = head_length(bytes_);
    auto request = parse_proxy_request(std::string_view(bytes_).substr(0, length));
    bytes_.erase(0, length);
    if (!request.ok()) return refuse(Verdict::kMalformed, kBadRequest, request.error().detail);
    target_ = request->target;
    record_.method = request->method;
    record_.host = target_.host.text;
    record_.port = target_.port;
    const AllowedPlace* place = context_.list.entry_for(target_);
    if (place == nullptr)
      return refuse(Verdict::kDenied, kForbidden, "not on the contract's allow-list");
    const UniqueFd server = reach(*place);
    if (!server.valid()) return;
    record_.verdict = Verdict::kAllowed;
    if (request->tunnel && write_all(client_.get(), "HTTP/1.1 200 Connection established\r\n\r\n",
                                     context_.stop, kAnswer) != Wrote::kAll) {
      record_.why = "the client left";
      return;
    }
    Relayed done = Relay(context_, client_.get(), server.get(), *request).run(bytes_);
    record_.sent = done.sent;
    record_.received = done.received;
    record_.why = std::move(done.cut);
  }

  // A connection to an address that was judged; invalid after an answer that says why not.
  UniqueFd reach(const AllowedPlace& place) {
    using Verdict = ProxyRecord::Verdict;
    const auto until = Clock::now() + context_.options.bounds.connect;
    std::vector<IpAddress> addresses;
    if (target_.host.address) {
      addresses = {*target_.host.address};
    } else {
      auto found = context_.options.resolve(target_.host.text, context_.stop, until);
      if (!found.ok()) {
        refuse(Verdict::kUnreachable, kBadGateway, found.error().detail);
        return {};
      }
      addresses = std::move(found).value();
    }
    const auto denied =
        std::ranges::find_if(addresses, [&](const IpAddress& a) { return !admits(place, a); });
    const std::string why = denied == addresses.end()
                                ? ""
                                : "its name leads to " + to_string(*denied) + ", a " +
                                      std::string(to_string(kind_of(*denied))) + " address";
    std::erase_if(addresses, [&](const IpAddress& a) { return !admits(place, a); });
    if (addresses.empty()) {
      refuse(Verdict::kDenied, kForbidden, why.empty() ? "its name leads nowhere" : why);
      return {};
    }
    std::string failed;
    for (std::size_t i = 0; i < std::min(addresses.size(), kTriedMax); ++i) {
      record_.address = to_string(addresses[i]);
      Result<UniqueFd> server =
          connect_to_address(addresses[i], target_.port, context_.stop, until, "");
      if (server.ok()) return std::move(server).value();
      failed = server.error().detail;
    }
    refuse(Verdict::kUnreachable, kBadGateway, failed);
    return {};
  }

  const ProxyContext& context_;
  UniqueFd client_;
  std::string bytes_;  // read and not yet used
  ProxyTarget target_;
  ProxyRecord record_;
};
}  // namespace

struct FilterProxy::Impl {
  AllowList list;
  Options options;
  OnRecord on_record;
  UniqueFd stop;  // readable from the end on
  std::mutex recording{};
  std::atomic<std::uint64_t> bytes = 0, requests = 0;
  std::unique_ptr<SocketServer> server{};  // last: its threads use the others

  void record(const ProxyRecord& r) {
    const std::lock_guard lock(recording);
    on_record(r);
  }

  void serve(UniqueFd client) {
    if (requests.fetch_add(1) < options.bounds.requests) {
      if (const auto done =
              Connection({list, options, stop.get(), bytes}, std::move(client)).serve())
        record(*done);
      return;
    }
    ProxyRecord turned_away;
    turned_away.verdict = ProxyRecord::Verdict::kDenied;
    turned_away.why = "more requests than a phase may make";
    answer_proxy_client(client.get(), kUnavailable, turned_away.why, stop.get());
    record(turned_away);
  }
};

FilterProxy::FilterProxy(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<FilterProxy>> FilterProxy::start(const fs::path& dir, Options options,
                                                        OnRecord on_record) {
  PROCTOR_TRY(AllowList list, AllowList::of(options.allow));
  PROCTOR_TRY(auto server, SocketServer::open(dir, options.bounds.connections, "network proxy"));
  PROCTOR_TRY(UniqueFd stop, new_signal("network proxy"));
  std::unique_ptr<Impl> impl(
      new Impl{std::move(list), std::move(options), std::move(on_record), std::move(stop)});
  impl->server = std::move(server);
  impl->server->start(impl->stop.get(),
                      [i = impl.get()](UniqueFd client) { i->serve(std::move(client)); });
  return std::unique_ptr<FilterProxy>(new FilterProxy(std::move(impl)));
}

FilterProxy::~FilterProxy() {
  wake(impl_->stop.get());
}
}  // namespace proctor
