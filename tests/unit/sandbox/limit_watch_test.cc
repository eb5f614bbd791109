// Limits that are looked at: by whom, how soon, and that nobody waits for a look.
#include "worker/sandbox/limit_watch.h"

#include <doctest/doctest.h>
#include <poll.h>

#include <atomic>
#include <latch>

using namespace proctor;
using Passed = LimitWatch::Passed;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

namespace {

std::vector<pid_t> nobody() {
  return {};
}

void begin(LimitWatch& watch) {
  REQUIRE(watch.wakes() == -1);
  REQUIRE_FALSE(watch.look(Clock::now()));
  (void)watch.look(Clock::now() + std::chrono::hours(1));
  REQUIRE(0 <= watch.wakes());
}

// What it finds, when it says that it has found something.
std::optional<Passed> found(LimitWatch& watch) {
  constexpr int kLongest = 60'000;
  pollfd fd{watch.wakes(), POLLIN, 0};
  if (::poll(&fd, 1, kLongest) != 1) return std::nullopt;
  return watch.look(Clock::now());
}

SandboxSpec cpu_spec() {
  SandboxSpec spec;
  spec.cpu = milliseconds(50);
  return spec;
}

void limit_disk(SandboxSpec& spec, const fs::path& dir, std::uint64_t bytes, std::uint64_t files) {
  spec.disk.places = {{dir, 0, 0}};
  spec.disk.bytes = bytes;
  spec.disk.files = files;
}

}  // namespace

TEST_SUITE("limit watch") {
  TEST_CASE("what has no limit needs no watch") {
    const TempDir dir = TempDir::create("watch").value();
    SandboxSpec spec;
    CHECK_FALSE(LimitWatch::needed(spec));
    CHECK(LimitWatch::needed(cpu_spec()));
    spec.memory_bytes = 1;
    CHECK(LimitWatch::needed(spec));  // its sockets
    spec.network = true;
    CHECK_FALSE(LimitWatch::needed(spec));  // which are among the host's
    CHECK(LimitWatch::needed(spec, LimitWatch::Memory::kWatched));
    spec.memory_bytes = 0;
    limit_disk(spec, dir.path(), 0, 1);
    CHECK(LimitWatch::needed(spec));
  }

  TEST_CASE("nobody looks in the first moment") {
    const SandboxSpec spec = cpu_spec();
    LimitWatch watch(spec, {[]() -> std::optional<milliseconds> {
                              FAIL("asked");
                              return {};
                            },
                            nobody});
    const auto now = Clock::now();
    CHECK_FALSE(watch.look(now));
    CHECK_FALSE(watch.look(now + milliseconds(50)));
    CHECK(watch.wakes() == -1);
  }

  TEST_CASE("CPU time is looked at until there is too much of it") {
    const SandboxSpec spec = cpu_spec();
    std::atomic<int> asked{0};
    LimitWatch watch(
        spec, {[&]() -> std::optional<milliseconds> { return milliseconds(++asked < 3 ? 50 : 51); },
               nobody});
    begin(watch);
    CHECK(found(watch) == Passed::kCpu);
    CHECK(asked == 3);
  }

  // As 25 processes of 20,000 descriptors made of a look among these.
  TEST_CASE("a look that does not end keeps neither time nor disk from being looked at") {
    const TempDir dir = TempDir::create("watch").value();
    SandboxSpec spec = cpu_spec();
    limit_disk(spec, dir.path(), 0, 1);
    std::latch over(1), asked_cpu(1), asked_inside(1);
    std::atomic<int> times_cpu{0}, times_inside{0};
    LimitWatch watch(spec, {[&]() -> std::optional<milliseconds> {
                              if (times_cpu++ == 0) asked_cpu.count_down();
                              over.wait();
                              return std::nullopt;
                            },
                            [&] {
                              if (times_inside++ == 0) asked_inside.count_down();
                              over.wait();
                              return std::vector<pid_t>{};
                            }});
    begin(watch);
    asked_cpu.wait();
    asked_inside.wait();  // for what its processes have open without a name
    CHECK_FALSE(watch.look(Clock::now()));
    REQUIRE(write_file(dir.path() / "1", "").ok());
    REQUIRE(write_file(dir.path() / "2", "").ok());
    CHECK(found(watch) == Passed::kDisk);
    CHECK(times_cpu == 1);
    CHECK(times_inside == 1);
    over.count_down();
  }

  TEST_CASE("while it is paused nothing is looked at") {
    const SandboxSpec spec = cpu_spec();
    std::latch first(1);
    std::atomic<int> asked{0};
    LimitWatch watch(spec, {[&]() -> std::optional<milliseconds> {
                              if (asked++ == 0) first.count_down();
                              return milliseconds(asked < 3 ? 0 : 51);
                            },
                            nobody});
    watch.pause(true);
    begin(watch);
    first.wait();  // had begun
    pollfd fd{watch.wakes(), POLLIN, 0};
    CHECK(::poll(&fd, 1, 300) == 0);
    CHECK(asked == 1);
    watch.pause(false);
    CHECK(found(watch) == Passed::kCpu);
  }

  TEST_CASE("a disk that fills faster than it is looked at makes the next look hurry") {
    const TempDir dir = TempDir::create("watch").value();
    SandboxSpec spec;
    limit_disk(spec, dir.path(), 0, 1'000'000'000'000);
    DiskLook easy(spec.disk, DiskLook::Where::kNamed);
    CHECK_FALSE(easy.passed(&nobody, {}));
    CHECK_FALSE(easy.may_have_passed());
    limit_disk(spec, dir.path(), 64'000, 0);
    DiskLook look(spec.disk, DiskLook::Where::kNamed);
    CHECK_FALSE(look.passed(&nobody, {}));
    REQUIRE(write_file(dir.path() / "large", std::string(1'000'000, 'x')).ok());
    CHECK(look.may_have_passed());
    CHECK(look.passed(&nobody, {}));
    std::stop_source stopped;
    stopped.request_stop();
    CHECK_FALSE(look.passed(&nobody, stopped.get_token()));
  }
}
