#include <doctest/doctest.h>

#include "worker/sandbox/runtime_files.h"

using namespace proctor;

TEST_SUITE("sandbox") {
  TEST_CASE("what all processes of a few sandboxes may open leaves the machine some") {
    constexpr std::uint64_t kMany = std::uint64_t{1} << 20;
    // Debian on 24 GiB without systemd, and a contract's usual limit on processes.
    constexpr std::uint64_t kMachine = 2'466'183;
    CHECK(open_files_limit(kMany, kMachine, 128) == 1'204);
    CHECK(open_files_limit(kMany, kMachine, 32) == 4'816);
    CHECK(open_files_limit(kMany, kMachine, 128) * 128 * 16 <= kMachine);
    // Where systemd has lifted it nothing is divided; programs expect some; a worker has no more.
    CHECK(open_files_limit(kMany, 9'223'372'036'854'775'807U, 128) == kMostOpenFiles);
    CHECK(open_files_limit(kMany, 65'536, 512) == kLeastOpenFiles);
    CHECK(open_files_limit(512, kMachine, 128) == 512);
    CHECK(open_files_limit(kMany, kMachine, 0) == kMostOpenFiles);
  }

  TEST_CASE("what is here is between the bounds") {
    CHECK(open_files_here(64) <= kMostOpenFiles);
    CHECK(0 < open_files_here(64));
  }
}
