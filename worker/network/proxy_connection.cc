#include "worker/network/proxy_connection.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "worker/network/address_rules.h"
#include "worker/network/proxy_request.h"
#include "worker/network/relay.h"

namespace proctor {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kAnswer{5'000};
constexpr std::size_t kTriedMax = 4;  // addresses of one name
constexpr int kBadRequest = 400, kForbidden = 403, kBadGateway = 502;

// Until `fd` is ready, at most one second.  False: told to stop.
bool wait_for(int fd, short events, int stop, milliseconds most) {
  std::array<pollfd, 2> fds = {pollfd{stop, POLLIN, 0}, pollfd{fd, events, 0}};
  const auto ms = std::clamp<std::int64_t>(most.count(), 0, 1000);
  ::poll(fds.data(), fds.size(), static_cast<int>(ms));
  return fds[0].revents == 0;
}

bool send_all(int fd, std::string_view bytes, int stop) {
  const auto until = Clock::now() + kAnswer;
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (0 < n) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno != EAGAIN && errno != EINTR) {
      return false;
    } else if (until <= Clock::now() || !wait_for(fd, POLLOUT, stop, kAnswer)) {
      return false;
    }
  }
  return true;
}

std::string_view phrase(int status) {
  switch (status) {
    case kBadRequest:
      return "Bad Request";
    case kForbidden:
      return "Forbidden";
    case kBadGateway:
      return "Bad Gateway";
    default:
      return "Service Unavailable";
  }
}

class Connection {
 public:
  Connection(const ProxyContext& context, UniqueFd client)
      : context_(context), client_(std::move(client)) {}

  std::optional<ProxyRecord> serve() {
    const auto begun = Clock::now();
    const bool spoke = read_head();
    if (spoke && record_.why.empty()) answer_request();
    if (!spoke && record_.why.empty()) return std::nullopt;
    record_.wall = std::chrono::duration_cast<milliseconds>(Clock::now() - begun);
    return std::move(record_);
  }

 private:
  void refuse(ProxyRecord::Verdict verdict, int status, std::string why) {
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
      if (kProxyHeadBytes <= bytes_.size()) {
        refuse(Verdict::kMalformed, kBadRequest, "a head that is too long");
        return true;
      }
      if (until <= now()) {
        if (!bytes_.empty()) refuse(Verdict::kMalformed, kBadRequest, "a head without end");
        return false;
      }
      if (!wait_for(client_.get(), POLLIN, context_.stop, milliseconds(1000))) return false;
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
    if (request->tunnel &&
        !send_all(client_.get(), "HTTP/1.1 200 Connection established\r\n\r\n", context_.stop)) {
      record_.why = "the client left";
      return;
    }
    Relayed done = relay(context_, client_.get(), server.get(), *request, bytes_);
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
      UniqueFd server = connect_to(addresses[i], until, failed);
      if (server.valid()) return server;
    }
    refuse(Verdict::kUnreachable, kBadGateway, failed);
    return {};
  }

  UniqueFd connect_to(const IpAddress& address, Clock::time_point until,
                      std::string& failed) const {
    sockaddr_storage to{};
    socklen_t size = 0;
    if (address.is_v4()) {
      sockaddr_in in{};
      in.sin_family = AF_INET;
      in.sin_port = htons(target_.port);
      std::memcpy(&in.sin_addr, address.bytes.data() + 12, 4);
      std::memcpy(&to, &in, size = sizeof in);
    } else {
      sockaddr_in6 in{};
      in.sin6_family = AF_INET6;
      in.sin6_port = htons(target_.port);
      std::memcpy(&in.sin6_addr, address.bytes.data(), address.bytes.size());
      std::memcpy(&to, &in, size = sizeof in);
    }
    UniqueFd fd(::socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd.valid()) {
      failed = std::strerror(errno);  // NOLINT(concurrency-mt-unsafe): glibc's is
      return {};
    }
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): how connect is called
    int error = ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), size) == 0 ? 0 : errno;
    while (error == EINPROGRESS || error == EINTR) {
      const auto left = std::chrono::ceil<milliseconds>(until - Clock::now());
      if (left.count() <= 0 || !wait_for(fd.get(), POLLOUT, context_.stop, left)) {
        failed = "no connection in time";
        return {};
      }
      std::array<pollfd, 1> ready = {pollfd{fd.get(), POLLOUT, 0}};
      if (::poll(ready.data(), 1, 0) <= 0) continue;
      socklen_t length = sizeof error;
      ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    }
    if (error == 0) return fd;
    failed = std::strerror(error);  // NOLINT(concurrency-mt-unsafe)
    return {};
  }

  const ProxyContext& context_;
  UniqueFd client_;
  std::string bytes_;  // read and not yet used
  ProxyTarget target_;
  ProxyRecord record_;
};

}  // namespace

std::string_view to_string(ProxyRecord::Verdict verdict) {
  switch (verdict) {
    case ProxyRecord::Verdict::kAllowed:
      return "allowed";
    case ProxyRecord::Verdict::kDenied:
      return "denied";
    case ProxyRecord::Verdict::kMalformed:
      return "malformed";
    case ProxyRecord::Verdict::kUnreachable:
      return "unreachable";
  }
  return "?";
}

void answer_proxy_client(int client, int status, const std::string& why, int stop) {
  const std::string text = "proctor: " + why + "\n";
  send_all(client,
           "HTTP/1.1 " + std::to_string(status) + " " + std::string(phrase(status)) +
               "\r\ncontent-type: text/plain\r\ncontent-length: " + std::to_string(text.size()) +
               "\r\nconnection: close\r\n\r\n" + text,
           stop);
}

std::optional<ProxyRecord> serve_proxy_client(const ProxyContext& context, UniqueFd client) {
  return Connection(context, std::move(client)).serve();
}

}  // namespace proctor
