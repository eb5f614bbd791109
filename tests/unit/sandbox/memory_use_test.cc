#include "worker/sandbox/limit_watch.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

using namespace proctor;

namespace {

// Large beside the text of this program, which it may share with its neighbours meanwhile.
constexpr std::size_t kBlock = std::size_t{128} << 20;

// Past a sanitizer, whose own memory for what is mapped and written would be measured too.
__attribute__((no_sanitize("address", "thread"))) void touch(char* at, char with) {
  constexpr std::size_t kPage = 4096;
  for (std::size_t i = 0; i < kBlock; i += kPage) *static_cast<volatile char*>(at + i) = with;
}
char* touched(int flags) {
  const long at =
      ::syscall(SYS_mmap, nullptr, kBlock, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);
  if (at == -1) ::abort();
  char* const block = reinterpret_cast<char*>(at);  // NOLINT(performance-no-int-to-ptr)
  touch(block, 'x');
  return block;
}

}  // namespace

TEST_SUITE("memory use") {
  TEST_CASE("proportional sizes are read with what was swapped out") {
    CHECK(proportional_bytes("55d0-7ffe ---p 0 00:00 0 [rollup]\nRss:  900 kB\nPss:   120 kB\n"
                             "Pss_Dirty: 7 kB\nSwap: 40 kB\nSwapPss:  8 kB\n") == 128 * 1024);
    CHECK(proportional_bytes("") == 0);
    CHECK(proportional_bytes("\nPss: many kB\n") == 0);
    CHECK(proportional_bytes("\nPss:") == 0);
  }

  TEST_CASE("what processes share counts once, what each has counts for each") {
    char* const shared = touched(MAP_SHARED);
    const std::uint64_t alone = memory_of({::getpid()}).value();
    CHECK(kBlock <= alone);
    int ready[2];
    REQUIRE(::pipe(ready) == 0);
    pid_t children[2];
    for (pid_t& child : children) {
      child = ::fork();
      if (child == 0) {
        // Shares one block with us and has one to itself.
        touch(shared, 'y');
        touched(MAP_PRIVATE);
        [[maybe_unused]] const ssize_t n = ::write(ready[1], "r", 1);
        ::pause();
        ::_exit(0);
      }
    }
    char word = 0;
    REQUIRE(::read(ready[0], &word, 1) == 1);
    REQUIRE(::read(ready[0], &word, 1) == 1);
    const std::uint64_t together = memory_of({::getpid(), children[0], children[1]}).value();
    CHECK(alone + 2 * kBlock - kBlock / 4 <= together);
    CHECK(together <= alone + 2 * kBlock + kBlock / 2);  // not two more of what they share
    SandboxSpec spec;
    spec.memory_bytes = together / 2;
    spec.network = true;  // sockets are not looked at
    CHECK_FALSE(LimitWatch::needed(spec));
    CHECK(LimitWatch::needed(spec, LimitWatch::Memory::kWatched));
    LimitWatch::Host host{[] { return std::nullopt; },
                          [&] {
                            return std::vector<pid_t>{children[0], children[1]};
                          },
                          [&] {
                            return memory_of({::getpid(), children[0], children[1]});
                          }};
    LimitWatch watch(spec, host);
    const auto now = std::chrono::steady_clock::now();
    CHECK_FALSE(watch.look(now));
    (void)watch.look(now + std::chrono::hours(1));
    pollfd wakes{watch.wakes(), POLLIN, 0};
    REQUIRE(::poll(&wakes, 1, 60'000) == 1);
    const std::optional<LimitWatch::Passed> passed = watch.look(now);
    CHECK(passed == LimitWatch::Passed::kMemory);
    for (const pid_t child : children) {
      ::kill(child, SIGKILL);
      REQUIRE(::waitpid(child, nullptr, 0) == child);
    }
    CHECK(memory_of({children[0], children[1]}) == 0);  // gone: nothing
    ::close(ready[0]);
    ::close(ready[1]);
    ::munmap(shared, kBlock);
  }
}
