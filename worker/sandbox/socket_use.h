#pragma once
// SocketUse: memory in a sandbox's sockets that the kernel charges to no control group, of any
// version: what waits in queues of netlink, and datagrams that were begun and not sent (MSG_MORE).
// A monitor asks while the command runs.  Blocking, but for no longer than kSocketsMost sockets
// take.  One object, one thread; never fails: where nothing is to be seen, nothing is too much.
// Source: proc(5); net/netlink/af_netlink.c and net/ipv4/udp.c of Linux on their files there.
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "common/base/owned.h"

namespace proctor {

// What sockets may hold of a limit on memory.  As much again is what control groups of version 1
// let TCP and UDP have, whose pages they count beside all others.
inline constexpr std::uint64_t socket_share(std::uint64_t memory_bytes) {
  constexpr std::uint64_t kPart = 8, kLeast = std::uint64_t{8} << 20;
  return memory_bytes / kPart < kLeast ? kLeast : memory_bytes / kPart;
}

// More of netlink's are too many: nothing that builds or tests has a hundred, and one look could
// not see them all.
inline constexpr std::size_t kSocketsMost = 4'096;

class SocketUse {
 public:
  // kAll: also what TCP holds and UDP has received, where the kernel charges that to nobody.
  enum class Counts { kUncharged, kAll };
  explicit SocketUse(std::uint64_t most, Counts counts = Counts::kUncharged)
      : most_(most), counts_all_(counts == Counts::kAll) {}
  // Do they hold more, now?  `inside`: the sandbox's processes, of whom somebody has a network
  // that is not ours; until then it holds nothing.
  bool passed(const std::function<std::vector<pid_t>()>& inside);

 private:
  bool find_network(const std::function<std::vector<pid_t>()>& inside);
  std::uint64_t queued() const;
  const std::uint64_t most_;
  const bool counts_all_;
  // Files of that network: they show it for as long as they are open, whoever has died.
  UniqueFd netlink_;
  std::vector<UniqueFd> counts_, queues_;
};

// Bytes queued in the socket of a line of /proc/net/netlink, both ways.
std::uint64_t netlink_line_bytes(std::string_view line);
// Bytes on their way out of the socket of a line of /proc/net/udp or tcp; and those that came in.
std::uint64_t sent_line_bytes(std::string_view line);
std::uint64_t received_line_bytes(std::string_view line);
// Sockets of a protocol ("UDP": of UDPLITE too) by the text of /proc/net/sockstat, or sockstat6.
std::uint64_t sockets_of(std::string_view protocol, std::string_view sockstat);

}  // namespace proctor
