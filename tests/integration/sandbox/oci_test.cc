// What only the OCI engine can get wrong: images, the init inside, what a killed worker leaves.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "common/base/subprocess.h"
#include "common/images/image_store.h"
#include "tests/integration/sandbox/oci_runtime_under_test.h"
#include "tests/integration/sandbox/run_command.h"
#include "tests/support/test_image.h"
#include "worker/sandbox/runtime_files.h"
#include "worker/selftest/isolation_proof.h"

using namespace proctor;
using namespace proctor::testing;
using std::chrono::milliseconds;
using End = ExecOutcome::End;

namespace {

std::string said_by(Bench& bench, const SandboxSpec& spec, const std::string& command) {
  return run(bench, spec, exec_of(bench, command)).out;
}

bool within(milliseconds time, const std::function<bool()>& asked) {
  const auto until = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < until) {
    if (asked()) return true;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return asked();
}

}  // namespace

TEST_SUITE("sandbox oci") {
  TEST_CASE("the runsc of 2022 fails ordinary commands and is told from one that does not") {
    SandboxOptions options;
    options.owner = "test-" + std::to_string(::getpid()) + "-runsc";
    options.oci_runtime = kRunsc;
    const TempDir dir = TempDir::create().value();
    options.images = dir.path() / "store";
    const auto engine = open_sandbox_engine(SandboxKind::kOci, options);
    if (!engine.ok()) return;
    CommandSpec version;
    version.argv = {kRunsc, "--version"};
    const bool of_2022 = run_for_output(version).value().find("2022") != std::string::npos;
    const auto proof = prove_kind(**engine, options);
    REQUIRE(proof.ok());
    CHECK((proof->verdict == IsolationProof::Verdict::kUnfit) == of_2022);
    if (!of_2022) return;
    for (const char* said : {"runsc version 0.0~2022", "ls -l: exit", "Invalid argument"})
      CHECK_MESSAGE(proof->detail.find(said) != std::string::npos, proof->detail);
  }

  TEST_CASE("an image is found by its id and by its name") {
    const auto bench = make_bench();
    if (!bench) return;
    for (const std::string& image :
         {bench->spec().image, std::string("proctor-test"), std::string("proctor-test:latest")}) {
      SandboxSpec spec = bench->spec();
      spec.image = image;
      CHECK(said_by(*bench, spec, "echo here") == "here\n");
    }
  }

  TEST_CASE("an image without a shell of this machine is the image's fault") {
    const auto bench = make_bench();
    if (!bench) return;
    // None at all, and one for another machine.
    for (const auto& [write, words] :
         {std::pair(&write_image_without_shell, "/bin/sh"),
          std::pair(&write_image_with_foreign_shell, "Exec format error")}) {
      CAPTURE(std::string(words));
      const TempDir dir = TempDir::create().value();
      const auto image = write(dir.path(), "no-shell:1");
      REQUIRE(image.ok());
      SandboxOptions options;
      options.owner = "test-" + std::to_string(::getpid()) + "-shell";
      options.images = dir.path() / "store";
      options.oci_runtime = oci_runtime_under_test();
      REQUIRE(ImageStore::open(options.images).value().import_archive(image->archive).ok());
      auto engine = open_sandbox_engine(SandboxKind::kOci, options);
      REQUIRE(engine.ok());
      SandboxSpec spec = bench->spec();
      spec.image = "no-shell:1";
      auto sandbox = (*engine)->open(spec);
      REQUIRE(sandbox.ok());
      const auto outcome = (*sandbox)->run(exec_of(*bench, "true"), {});
      REQUIRE_FALSE(outcome.ok());
      CHECK(outcome.error().code == Errc::kInvalid);
      CHECK(outcome.error().detail.find(words) != std::string::npos);
    }
  }

  TEST_CASE("the image is not changed and a variable of it is not seen") {
    const auto bench = make_bench();
    if (!bench) return;
    SandboxSpec spec = bench->spec();
    spec.env = {{"ONLY", "this"}};
    CHECK(said_by(*bench, spec, "/usr/bin/env -u PWD -u OLDPWD -u _ -u SHLVL") == "ONLY=this\n");
    CHECK(said_by(*bench, spec, "echo no > /usr/bin/x; test -e /usr/bin/x || echo unchanged") ==
          "unchanged\n");
  }

  TEST_CASE("a command reads nowhere on the host the layers of its root lie") {
    const auto bench = make_bench();
    if (!bench || bench->userspace()) return;  // gVisor shows its own mounts
    const std::string root = said_by(*bench, bench->spec(), "grep ' / / ' /proc/self/mountinfo");
    CAPTURE(root);
    CHECK(root.find(" - overlay ") != std::string::npos);
    CHECK(root.find("lowerdir=/proc/self/fd/") != std::string::npos);
    CHECK(root.find("proctor-oci-", root.find(" - overlay ")) == std::string::npos);
  }

  TEST_CASE("what runs inside cannot reach the descriptor of init") {
    const auto bench = make_bench();
    if (!bench) return;
    // gVisor's kernel lets a first process be killed from inside, which ends all, and never as a
    // success; and shows its environment, which is that of every command.
    const ExecSpec exec = exec_of(
        *bench,
        "for fd in 0 1 3 4; do echo '{ \"exit-code\": 0 }' > "
        "/proc/1/fd/$fd; done >/dev/null 2>&1; " +
            std::string(bench->userspace() ? ""
                                           : "kill -9 1; kill -TERM 1; cat /proc/1/environ; ") +
            "exit 7");
    auto sandbox = bench->engine().open(bench->spec());
    REQUIRE(sandbox.ok());
    const auto outcome = (*sandbox)->run(exec, {});
    REQUIRE(outcome.ok());
    CHECK(outcome->end == End::kExited);
    CHECK(outcome->exit_code == 7);
    if (!bench->userspace()) CHECK(read_file(exec.stdout_file, 1000).value().empty());
    if (bench->userspace())
      for (const char* signal : {"KILL", "TERM"})
        CHECK(run(*bench, "kill -s " + std::string(signal) + " 1; exit 0").outcome.end ==
              End::kSignalled);
  }

  TEST_CASE("when the worker is killed the container ends and the next life removes the rest") {
    const auto bench = make_bench();
    if (!bench) return;
    const std::string number = "91" + std::to_string(::getpid());
    // What gVisor runs the host does not see: only who serves it, by the folder of his state.
    const std::string mark = bench->userspace() ? "/proctor-oci-" + std::to_string(::getpid()) + "-"
                                                : "sleep" + std::string(1, '\0') + number;
    const pid_t worker = ::fork();
    if (worker == 0) {
      auto sandbox = bench->engine().open(bench->spec());
      (void)(*sandbox)
          ->run(exec_of(*bench, "setsid sleep " + number + " & sleep " + number), {})
          .ok();
      ::_exit(0);
    }
    REQUIRE(within(milliseconds(180'000), [&] { return 0 < processes_with(mark); }));
    ::kill(worker, SIGKILL);
    REQUIRE(::waitpid(worker, nullptr, 0) == worker);
    CHECK(within(milliseconds(60'000), [&] { return processes_with(mark) == 0; }));
    CHECK_FALSE(bench->leftovers().empty());
    CHECK(bench->engine().clean_up().ok());
    CHECK(groups_of("test-" + std::to_string(::getpid())).empty());
  }
}
