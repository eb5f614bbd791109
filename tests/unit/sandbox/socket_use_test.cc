// What sockets hold beside all control groups: the kernel's words for it, and a network of a
// child's own that holds too much.
#include "worker/sandbox/limit_watch.h"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>

using namespace proctor;

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

void fill_netlink(int sockets) {
  static char block[kMiB / 8];
  for (int i = 0; i < sockets; ++i) {
    const int fd = ::socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK, 0);
    nlmsghdr head{};
    head.nlmsg_len = sizeof block;
    head.nlmsg_type = 9'999;
    head.nlmsg_flags = NLM_F_REQUEST;
    std::memcpy(block, &head, sizeof head);
    ::send(fd, block, sizeof block, 0);
  }
}

void begin_datagrams(int sockets) {
  static char block[60'000];
  for (int i = 0; i < sockets; ++i) {
    const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = ::htons(9);
    at.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    ::connect(fd, reinterpret_cast<sockaddr*>(&at), sizeof at);
    ::send(fd, block, sizeof block, MSG_MORE);
  }
}

void fill_tcp(int connections) {
  static char block[kMiB];
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  ::bind(listener, reinterpret_cast<sockaddr*>(&at), size);
  ::listen(listener, connections);
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&at), &size);
  for (int i = 0; i < connections; ++i) {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    ::connect(fd, reinterpret_cast<sockaddr*>(&at), size);
    ::send(fd, block, sizeof block, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
}

bool switch_loopback_on() {
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP;
  const int fd = ::socket(AF_INET, SOCK_DGRAM, 0);
  const bool on = ::ioctl(fd, SIOCSIFFLAGS, &request) == 0;
  ::close(fd);
  return on;
}

// A child in a network of its own, which holds what `fill` takes until it goes.
class Holder {
 public:
  template <class F>
  explicit Holder(F fill) {
    std::array<int, 2> ready{};
    if (::pipe(ready.data()) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      const bool apart =
          (::unshare(CLONE_NEWNET) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0) &&
          switch_loopback_on();
      if (apart) fill();
      const char word = apart ? '1' : '0';
      [[maybe_unused]] const ssize_t n = ::write(ready[1], &word, 1);
      for (;;) ::pause();
    }
    char word = '0';
    works_ = ::read(ready[0], &word, 1) == 1 && word == '1';
    ::close(ready[0]);
    ::close(ready[1]);
    if (!works_) MESSAGE("not run: no network of its own is to be had here");
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  ~Holder() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  bool works() const { return works_; }
  std::function<std::vector<pid_t>()> inside() const {
    return [pid = pid_] { return std::vector<pid_t>{::getpid(), pid}; };
  }

 private:
  pid_t pid_ = -1;
  bool works_ = false;
};

}  // namespace

TEST_SUITE("socket use") {
  TEST_CASE("what the kernel says of a socket is read") {
    CHECK(netlink_line_bytes("00000000974014c1 0   1234   00000000 4096     512      0        2  "
                             "      0        77") == 4608);
    CHECK(netlink_line_bytes("00000000974014c1 0") == 0);
    const char* line =
        "16365: 0100007F:A31E 0100007F:0009 01 0000EDA0:00000010 00:00000000 00000000     0        "
        "0 12698380 2 00000000dec095ac 0";
    CHECK(sent_line_bytes(line) == 0xEDA0);
    CHECK(received_line_bytes(line) == 16);
    CHECK(sent_line_bytes("") == 0);
    CHECK(received_line_bytes("") == 0);
    CHECK(sockets_of("UDP",
                     "sockets: used 900\nTCP: inuse 5 orphan 0\nUDP: inuse 900 mem 33\n"
                     "UDPLITE: inuse 2\nRAW: inuse 7\n") == 902);
    CHECK(sockets_of("UDP", "UDP6: inuse 3\nUDPLITE6: inuse 0") == 3);
  }

  TEST_CASE("a share of memory is an eighth and never too little to work with") {
    CHECK(socket_share(800 * kMiB) == 100 * kMiB);
    CHECK(socket_share(kMiB) == 8 * kMiB);
  }

  TEST_CASE("queues of netlink in its own network count and those of others do not") {
    fill_netlink(20);  // in ours
    const Holder quiet([] {});
    if (!quiet.works()) return;
    CHECK_FALSE(SocketUse(kMiB).passed(quiet.inside()));
    const Holder full([] { fill_netlink(20); });
    CHECK(SocketUse(kMiB).passed(full.inside()));
    CHECK_FALSE(SocketUse(64 * kMiB).passed(full.inside()));
  }

  TEST_CASE("datagrams that were begun and never sent count") {
    const Holder full([] { begin_datagrams(40); });
    if (!full.works()) return;
    CHECK(SocketUse(kMiB).passed(full.inside()));
    CHECK_FALSE(SocketUse(4 * kMiB).passed(full.inside()));
  }

  TEST_CASE("what TCP holds and UDP has received counts where nobody else counts it") {
    const Holder full([] { fill_tcp(4); });
    if (!full.works()) return;
    SocketUse all(kMiB, SocketUse::Counts::kAll);
    CHECK(all.passed(full.inside()));
    CHECK_FALSE(SocketUse(kMiB).passed(full.inside()));
  }

  TEST_CASE("who has the host's network is nobody to be looked at") {
    fill_netlink(20);
    SocketUse ours(1);
    CHECK_FALSE(ours.passed([] { return std::vector<pid_t>{::getpid()}; }));
  }
}
