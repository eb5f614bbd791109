// The filter of bubblewrap sandboxes, loaded for real by a child of ours.
#include <doctest/doctest.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <string>

#include "worker/sandbox/seccomp_filter.h"

using namespace proctor;

namespace {

constexpr int kFamilies = 64;  // more than the kernel knows (AF_MAX)

bool load(const std::string& program) {
  sock_fprog filter{};
  filter.len = static_cast<unsigned short>(program.size() / sizeof(sock_filter));
  filter.filter = reinterpret_cast<sock_filter*>(const_cast<char*>(program.data()));
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// Can a socket of that family be had, of any type?
bool opens(int family, int protocol) {
  for (const int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET, SOCK_RAW}) {
    const int one = ::socket(family, type, protocol);
    if (0 <= one) return true;
    int two[2];
    if (::socketpair(family, type, protocol, two) == 0) return true;
  }
  return false;
}

// What a child that has loaded `program` can open: families, and protocols of AF_NETLINK.
struct Opened {
  std::set<int> families, netlink;
};
Opened opened_under(const std::string& program) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (!program.empty() && !load(program)) ::_exit(1);
    char found[2 * kFamilies] = {};
    for (int n = 0; n < kFamilies; ++n) {
      found[n] = opens(n, 0) ? 1 : 0;
      found[kFamilies + n] = opens(AF_NETLINK, n) ? 1 : 0;
    }
    ::_exit(::write(ends[1], found, sizeof found) == sizeof found ? 0 : 2);
  }
  ::close(ends[1]);
  char found[2 * kFamilies] = {};
  REQUIRE(::read(ends[0], found, sizeof found) == sizeof found);
  ::close(ends[0]);
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
  Opened out;
  for (int n = 0; n < kFamilies; ++n) {
    if (found[n] != 0) out.families.insert(n);
    if (found[kFamilies + n] != 0) out.netlink.insert(n);
  }
  return out;
}

}  // namespace

TEST_SUITE("seccomp") {
  TEST_CASE("sockets are of the internet, of paths, and of routes, and of nothing else") {
    const Result<std::string> program = make_seccomp_program(Programs::kNative);
    REQUIRE(program.ok());
    const Opened without = opened_under("");
    CHECK(without.netlink.size() > 1);  // this kernel has what is to be refused
    const Opened got = opened_under(*program);
    for (const int family : {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK})
      CHECK(got.families.contains(family) == without.families.contains(family));
    for (const int family : got.families) {
      CAPTURE(family);
      CHECK((family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK));
    }
    CHECK(got.netlink == std::set<int>{NETLINK_ROUTE});
  }
}
