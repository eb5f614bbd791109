#include "worker/network/resolver.h"

#include <ares.h>
#include <netdb.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

namespace proctor {
namespace {
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Before the first channel and after the last.
struct Library {
  int status = ::ares_library_init(ARES_LIB_INIT_ALL);
  Library() = default;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() { ::ares_library_cleanup(); }
};

struct Answer {
  bool ended = false;
  int status = ARES_SUCCESS;
  std::vector<IpAddress> addresses;
};

void on_answer(void* arg, int status, int, ares_addrinfo* found) {
  auto& answer = *static_cast<Answer*>(arg);
  answer.ended = true;
  answer.status = status;
  const std::unique_ptr<ares_addrinfo, void (*)(ares_addrinfo*)> owned(found, ::ares_freeaddrinfo);
  for (const ares_addrinfo_node* n = found == nullptr ? nullptr : found->nodes;
       n != nullptr && answer.addresses.size() < kAddressesMax; n = n->ai_next) {
    IpAddress address;
    if (n->ai_family == AF_INET) {
      std::array<std::uint8_t, 4> v4{};
      // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): how addresses are handed over
      const auto* in = reinterpret_cast<const sockaddr_in*>(n->ai_addr);
      std::copy_n(reinterpret_cast<const std::uint8_t*>(&in->sin_addr), v4.size(), v4.begin());
      address = ip_from_v4(v4);
    } else if (n->ai_family == AF_INET6) {
      // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
      const auto* in6 = reinterpret_cast<const sockaddr_in6*>(n->ai_addr);
      std::copy_n(static_cast<const std::uint8_t*>(in6->sin6_addr.s6_addr), address.bytes.size(),
                  address.bytes.begin());
    } else {
      continue;
    }
    if (std::find(answer.addresses.begin(), answer.addresses.end(), address) ==
        answer.addresses.end())
      answer.addresses.push_back(address);
  }
}

// One turn of the channel's sockets.  False: nobody wants the answer any more.
bool turn(ares_channel channel, int stop, Clock::time_point deadline) {
  std::array<ares_socket_t, ARES_GETSOCK_MAXNUM> sockets{};
  const auto bits = static_cast<unsigned>(
      ::ares_getsock(channel, sockets.data(), static_cast<int>(sockets.size())));
  std::vector<pollfd> fds{{stop, POLLIN, 0}};
  for (unsigned i = 0; i < sockets.size(); ++i) {
    const bool reads = (bits & (1U << i)) != 0;
    const bool writes = (bits & (1U << (i + ARES_GETSOCK_MAXNUM))) != 0;
    if (reads || writes)
      fds.push_back(
          {sockets[i], static_cast<short>((reads ? POLLIN : 0) | (writes ? POLLOUT : 0)), 0});
  }
  timeval most{1, 0}, buffer{};
  const timeval* wait = ::ares_timeout(channel, &most, &buffer);
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
  const std::int64_t asked = wait->tv_sec * 1000 + wait->tv_usec / 1000 + 1;
  const int ready =
      ::poll(fds.data(), fds.size(),
             static_cast<int>(std::clamp<std::int64_t>(std::min(asked, left), 0, 1000)));
  if (fds[0].revents != 0 || (ready < 0 && errno != EINTR) || deadline <= Clock::now())
    return false;
  for (std::size_t i = 1; 0 < ready && i < fds.size(); ++i) {
    const bool reads = (fds[i].revents & (POLLIN | POLLERR | POLLHUP)) != 0;
    const bool writes = (fds[i].revents & (POLLOUT | POLLERR)) != 0;
    ::ares_process_fd(channel, reads ? fds[i].fd : ARES_SOCKET_BAD,
                      writes ? fds[i].fd : ARES_SOCKET_BAD);
  }
  ::ares_process_fd(channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);  // what has timed out
  return true;
}
}  // namespace

Result<std::vector<IpAddress>> resolve_name(const std::string& name, int stop,
                                            Clock::time_point deadline) {
  static const Library library;
  if (library.status != ARES_SUCCESS)
    return Error{Errc::kUnavailable, "resolver: " + std::string(::ares_strerror(library.status))};
  ares_options options{};
  options.flags = ARES_FLAG_NOSEARCH;  // the host's own domain is not the contract's
  options.timeout = 3'000;
  options.tries = 2;
  ares_channel channel = nullptr;
  const int made =
      ::ares_init_options(&channel, &options, ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES);
  if (made != ARES_SUCCESS)
    return Error{Errc::kUnavailable, "resolver: " + std::string(::ares_strerror(made))};
  Answer answer;  // outlives the channel, whose destruction calls back
  const std::unique_ptr<ares_channeldata, void (*)(ares_channel)> owned(channel, ::ares_destroy);
  ares_addrinfo_hints hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_flags = ARES_AI_NOSORT;  // sorting connects sockets to foreign addresses
  ::ares_getaddrinfo(channel, name.c_str(), nullptr, &hints, on_answer, &answer);
  while (!answer.ended) {
    if (!turn(channel, stop, deadline))
      return Error{Errc::kUnavailable, "name server: no answer in time"};
  }
  if (!answer.addresses.empty()) return answer.addresses;
  if (answer.status == ARES_SUCCESS || answer.status == ARES_ENOTFOUND ||
      answer.status == ARES_ENODATA)
    return Error{Errc::kNotFound, "no such name"};
  return Error{Errc::kUnavailable, "name server: " + std::string(::ares_strerror(answer.status))};
}
}  // namespace proctor
