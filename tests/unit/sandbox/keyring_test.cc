// What a runtime is started with, before any filter: the keys of whoever started it are not there.
#include <doctest/doctest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <set>

#include "common/base/files.h"
#include "worker/sandbox/boxed_sandbox.h"

using namespace proctor;

TEST_SUITE("sandbox") {
  TEST_CASE("every sandbox has a keyring of its own, and the worker keeps its own") {
    constexpr long kSessionRing = -3;
    const auto ours = [] { return ::syscall(SYS_keyctl, 0L, kSessionRing, 0L); };
    if (ours() == -1) {
      MESSAGE("not run: no keys are to be had in this kernel, or here");
      return;
    }
    BoxLaunch launch;
    launch.argv = {"/usr/bin/perl", "-e", "print syscall(250, 0, -3, 0)"};
    if (SYS_keyctl != 250 || ::access(launch.argv[0].c_str(), X_OK) != 0) {
      MESSAGE("not run: the number of keyctl is another here, or there is no perl");
      return;
    }
    launch.timeout = std::chrono::milliseconds(60'000);
    const TempDir dir = TempDir::create("keyring").value();
    const long before = ours();
    std::set<std::string> rings = {std::to_string(before)};
    for (int i = 0; i < 2; ++i) {
      auto out = BoundedFile::create(dir.path() / "out", 4'096);
      auto err = BoundedFile::create(dir.path() / "err", 4'096);
      REQUIRE(out.ok());
      REQUIRE(err.ok());
      const auto end = run_box(launch, *out, *err, {});
      REQUIRE(end.ok());
      CHECK(end->runtime_exit == 0);
      CHECK(rings.insert(out->head()).second);
    }
    CHECK(ours() == before);
  }
}
