// A runtime ends with the worker that started it, whatever it was at.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "common/base/files.h"
#include "worker/sandbox/boxed_sandbox.h"

using namespace proctor;

TEST_SUITE("sandbox") {
  TEST_CASE("a runtime ends with its worker") {
    const TempDir dir = TempDir::create("runtime-end").value();
    // What is left by a child of ours comes to us.
    REQUIRE(::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
    const pid_t worker = ::fork();
    if (worker == 0) {
      BoxLaunch launch;
      launch.argv = {"/bin/sh", "-c",
                     "echo $$ > " + (dir.path() / "pid").string() + "; exec sleep 600"};
      launch.timeout = std::chrono::minutes(10);
      auto out = BoundedFile::create(dir.path() / "out", 4'096);
      auto err = BoundedFile::create(dir.path() / "err", 4'096);
      if (out.ok() && err.ok()) (void)run_box(launch, *out, *err, {}).ok();
      ::_exit(0);
    }
    REQUIRE(0 < worker);
    const auto read_pid = [&] {
      const auto text = read_file(dir.path() / "pid", 100);
      return text.ok() && text->ends_with('\n') ? static_cast<pid_t>(std::stol(*text)) : 0;
    };
    using Clock = std::chrono::steady_clock;
    const auto within = [](std::chrono::seconds most, const auto& done) {
      for (const auto until = Clock::now() + most; Clock::now() < until;) {
        if (done()) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
      return false;
    };
    REQUIRE(within(std::chrono::seconds(120), [&] { return read_pid() != 0; }));
    const pid_t runtime = read_pid();
    ::kill(worker, SIGKILL);
    REQUIRE(::waitpid(worker, nullptr, 0) == worker);
    const bool ended = within(std::chrono::seconds(120),
                              [&] { return ::waitpid(runtime, nullptr, WNOHANG) == runtime; });
    CHECK(ended);
    if (!ended) {
      ::kill(runtime, SIGKILL);
      ::waitpid(runtime, nullptr, 0);
    }
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
  }
}
