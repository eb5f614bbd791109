#include "worker/sandbox/host_lack.h"

#include <doctest/doctest.h>
#include <sys/sysmacros.h>

using namespace proctor;

TEST_SUITE("sandbox") {
  TEST_CASE("the kernel's words about locks are read, and nothing is made of other words") {
    const auto locks = parse_locks(
        "1: FLOCK  ADVISORY  WRITE 3481 fe:0a:10004575 0 EOF\n"
        "2: POSIX  ADVISORY  READ 3449 fe:00:10004526 128 128\n"
        "3: FLOCK  ADVISORY  READ 0 00:1d:301087 0 EOF\n"
        "3: -> FLOCK  ADVISORY  WRITE 7 fe:00:99 0 EOF\n"
        "4: OFDLCK ADVISORY  READ -1 fe:00:98 0 EOF\n");
    const std::set<HeldLock> expected = {{makedev(0xfe, 0x0a), 10004575},
                                         {makedev(0, 0x1d), 301087}};
    CHECK((locks == expected));
    for (const char* words :
         {"", "\n\n", "1: FLOCK", "1: FLOCK  ADVISORY  WRITE 3481 fe:0a 0 EOF",
          "1: FLOCK  ADVISORY  WRITE 3481 :: 0 EOF", "1: FLOCK  ADVISORY  WRITE 1 zz:0a:1 0 EOF"})
      CHECK(parse_locks(words).empty());
  }

  TEST_CASE("of very many locks the first are looked at, and that there are more is known") {
    const std::string one = "1: FLOCK  ADVISORY  WRITE 3481 fe:0a:11 0 EOF\n";
    const std::string other = "2: FLOCK  ADVISORY  WRITE 3481 fe:0a:22 0 EOF\n";
    const HeldLock first{makedev(0xfe, 0x0a), 11}, second{makedev(0xfe, 0x0a), 22};
    const std::string both = one + other;
    CHECK((parse_locks(both, both.size() + 1) == std::set<HeldLock>{first, second}));
    for (std::size_t most = one.size(); most < both.size(); ++most) {
      CAPTURE(most);
      CHECK((parse_locks(both, most) == std::set<HeldLock>{first, kMoreLocks}));
    }
    CHECK((parse_locks(both, both.size()) == std::set<HeldLock>{first, second, kMoreLocks}));
    CHECK((parse_locks(both, 3) == std::set<HeldLock>{kMoreLocks}));
  }
}
