#include "worker/sandbox/socket_use.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "common/base/parse.h"

namespace proctor {
namespace {

// A datagram is never longer; its pages may be twice that.
constexpr std::uint64_t kDatagramMost = std::uint64_t{128} << 10;
// What the kernel lets a socket have at most, as most hosts are set.
constexpr std::uint64_t kQueuesMost = std::uint64_t{8} << 20;

// The word number `at` of a line; empty: there are fewer.
std::string_view word(std::string_view line, std::size_t at) {
  for (;; --at) {
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    const std::string_view first = line.substr(0, line.find(' '));
    if (at == 0 || first.empty()) return first;
    line.remove_prefix(first.size());
  }
}

std::uint64_t number(std::string_view text, int base) {
  std::uint64_t value = 0;
  take_number(text, value, base);
  return value;
}

struct Sum {
  std::uint64_t bytes = 0;
  std::size_t sockets = 0;
  bool all = true;
};

// Of the lines below the first, of kSocketsMost sockets: the kernel goes through all that it showed
// before, each time that somebody reads on.
Sum sum_of(int fd, std::uint64_t (*bytes_of)(std::string_view)) {
  Sum out;
  std::array<char, 8192> buffer{};
  std::size_t have = 0;
  bool heading = true;
  if (::lseek(fd, 0, SEEK_SET) != 0) return out;
  for (;;) {
    const ssize_t n = ::read(fd, buffer.data() + have, buffer.size() - have);
    if (n <= 0) return out;
    have += static_cast<std::size_t>(n);
    std::string_view text(buffer.data(), have);
    for (std::size_t end = 0; (end = text.find('\n')) != std::string_view::npos;) {
      if (!heading) {
        out.bytes += bytes_of(text.substr(0, end));
        ++out.sockets;
      }
      heading = false;
      text.remove_prefix(end + 1);
    }
    have = text.size() < buffer.size() ? text.size() : 0;  // no line is as long as that
    std::memmove(buffer.data(), text.data(), have);
    if (kSocketsMost <= out.sockets) {
      out.all = false;
      return out;
    }
  }
}

std::string text_of(int fd) {
  std::array<char, 4096> buffer{};
  const ssize_t n = ::pread(fd, buffer.data(), buffer.size(), 0);
  return {buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0))};
}

std::uint64_t both_line_bytes(std::string_view line) {
  return sent_line_bytes(line) + received_line_bytes(line);
}

std::optional<ino_t> network_of(const std::string& process) {
  struct stat st {};
  if (::stat(("/proc/" + process + "/ns/net").c_str(), &st) != 0) return std::nullopt;
  return st.st_ino;
}

}  // namespace

std::uint64_t netlink_line_bytes(std::string_view line) {
  return number(word(line, 4), 10) + number(word(line, 5), 10);
}

std::uint64_t sent_line_bytes(std::string_view line) {
  const std::string_view queues = word(line, 4);
  return number(queues.substr(0, queues.find(':')), 16);
}

std::uint64_t received_line_bytes(std::string_view line) {
  const std::string_view queues = word(line, 4);
  return number(queues.substr(std::min(queues.find(':'), queues.size() - 1) + 1), 16);
}

std::uint64_t sockets_of(std::string_view protocol, std::string_view sockstat) {
  std::uint64_t count = 0;
  while (!sockstat.empty()) {
    const std::string_view line = take_until(sockstat, '\n');
    if (line.starts_with(protocol) && word(line, 1) == "inuse") count += number(word(line, 2), 10);
  }
  return count;
}

// bwrap itself, which is in the sandbox's groups too, has our network.
bool SocketUse::find_network(const std::function<std::vector<pid_t>()>& inside) {
  const auto ours = network_of("self");
  for (const pid_t pid : inside()) {
    const std::string process = std::to_string(pid);
    const auto its = network_of(process);
    if (!ours || !its || *its == *ours) continue;
    const auto open = [&](const char* name) {
      return UniqueFd(::open(("/proc/" + process + "/net/" + name).c_str(), O_RDONLY | O_CLOEXEC));
    };
    UniqueFd netlink = open("netlink");
    std::vector<UniqueFd> counts, queues;
    for (const char* name : {"sockstat", "sockstat6"}) counts.push_back(open(name));
    for (const char* name : {"udp", "udp6", "udplite", "udplite6"}) queues.push_back(open(name));
    if (counts_all_)
      for (const char* name : {"tcp", "tcp6"}) queues.push_back(open(name));
    // Whoever had that number until now may be somebody else since.
    const std::vector<pid_t> again = inside();
    if (std::find(again.begin(), again.end(), pid) == again.end() || network_of(process) != its)
      continue;
    netlink_ = std::move(netlink);
    counts_ = std::move(counts);
    queues_ = std::move(queues);
    return true;
  }
  return false;
}

// Those that no look reaches hold as much as a datagram can.
std::uint64_t SocketUse::queued() const {
  std::uint64_t sockets = 0, bytes = 0;
  for (const UniqueFd& fd : counts_) {
    if (!fd.valid()) continue;
    const std::string text = text_of(fd.get());
    sockets += sockets_of("UDP", text) + (counts_all_ ? sockets_of("TCP", text) : 0);
  }
  // Most hold nothing, and who has few of them cannot have too much.
  if (sockets * (counts_all_ ? kQueuesMost : kDatagramMost) <= most_) return 0;
  for (const UniqueFd& fd : queues_) {
    if (!fd.valid()) continue;
    const Sum some = sum_of(fd.get(), counts_all_ ? &both_line_bytes : &sent_line_bytes);
    bytes += some.bytes;
    if (!some.all && some.sockets < sockets)
      return bytes + (sockets - some.sockets) * kDatagramMost;
    sockets -= std::min<std::uint64_t>(sockets, some.sockets);
  }
  return bytes;
}

bool SocketUse::passed(const std::function<std::vector<pid_t>()>& inside) {
  if (!netlink_.valid() && !find_network(inside)) return false;
  const Sum netlink = sum_of(netlink_.get(), &netlink_line_bytes);
  return !netlink.all || most_ < netlink.bytes || most_ < netlink.bytes + queued();
}

}  // namespace proctor
