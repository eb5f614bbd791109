// A sandbox's user may be the host's root under another number, who owns the host's devices: what
// is shown of them must not be those files.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <map>

#include "tests/integration/sandbox/run_command.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

constexpr const char* kDevices[] = {"null", "zero", "full", "random", "urandom", "tty"};

// When each was last changed: its mode, its owner, its times.
std::map<std::string, std::int64_t> changes_of_devices() {
  std::map<std::string, std::int64_t> out;
  for (const char* name : kDevices) {
    struct stat st {};
    REQUIRE(::stat((std::string("/dev/") + name).c_str(), &st) == 0);
    constexpr std::int64_t kSecond = 1'000'000'000;
    out[name] = std::int64_t{st.st_ctim.tv_sec} * kSecond + st.st_ctim.tv_nsec;
  }
  return out;
}

}  // namespace

TEST_SUITE("devices") {
  TEST_CASE("no sandbox changes a device of the host, by its name or by what it was given") {
    const auto bench = make_bench();
    if (!bench) return;
    const auto before = changes_of_devices();
    // To what they have already: the machine that this runs on must live with a failure.
    const Said said = run(*bench,
                          "for d in null zero full random urandom tty; do chmod 0666 /dev/$d; "
                          "touch -a /dev/$d; done; chmod 0666 /proc/self/fd/0; "
                          "echo x > /dev/null && head -c 4 /dev/urandom | wc -c");
    CHECK(said.out == "4\n");
    CHECK_MESSAGE(changes_of_devices() == before, said.err);
  }
}
