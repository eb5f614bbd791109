// One suite for every engine: what a sandbox promises, checked by commands run inside.
#include <doctest/doctest.h>
#include <signal.h>

#include <memory>
#include <optional>
#include <thread>

#include "tests/integration/sandbox/run_command.h"

using namespace proctor;
using namespace proctor::testing;
using std::chrono::milliseconds;
using End = ExecOutcome::End;

namespace {

std::uintmax_t size_of(const fs::path& file) {
  std::error_code ec;
  const std::uintmax_t size = fs::file_size(file, ec);
  return ec ? 0 : size;
}

bool grows(const fs::path& file, milliseconds within) {
  const std::uintmax_t before = size_of(file);
  const auto until = std::chrono::steady_clock::now() + within;
  while (std::chrono::steady_clock::now() < until) {
    if (size_of(file) != before) return true;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return false;
}

// Waits until a write that was under way is through; false: it never stands still.
bool stands_still(const fs::path& file) {
  for (int i = 0; i < 50; ++i)
    if (!grows(file, milliseconds(400))) return true;
  return false;
}

// Two processes, one of a session of its own; each speaks every few milliseconds.
constexpr const char* kChatter =
    "setsid sh -c 'while :; do echo b; sleep 0.01; done' & "
    "while :; do echo a; [ -e stop ] && exit 5; sleep 0.01; done";

}  // namespace

TEST_SUITE("sandbox") {
  TEST_CASE("what is suspended stands still and its clock with it until it goes on") {
    const auto bench = make_bench();
    if (!bench) return;
    SandboxSpec spec = bench->spec();
    const auto hold = std::make_shared<Hold>();
    spec.hold = hold;
    ExecSpec exec = exec_of(*bench, kChatter);
    exec.timeout = milliseconds(6'000);
    const auto began = std::chrono::steady_clock::now();
    std::optional<Said> said;
    std::jthread runs([&] { said = run(*bench, spec, exec); });
    REQUIRE(grows(exec.stdout_file, milliseconds(180'000)));
    hold->set(true);
    CHECK(stands_still(exec.stdout_file));
    // Longer than its ceiling.
    CHECK_FALSE(grows(exec.stdout_file, milliseconds(6'500)));
    hold->set(false);
    CHECK(grows(exec.stdout_file, milliseconds(60'000)));
    hold->set(true);
    CHECK(stands_still(exec.stdout_file));
    hold->set(false);
    runs.join();
    CHECK(said->outcome.end == End::kTimedOut);
    CHECK(said->outcome.wall >= exec.timeout);
    const auto whole = std::chrono::steady_clock::now() - began;
    CHECK(said->outcome.wall + milliseconds(6'500) < whole);
    CHECK(bench->leftovers().empty());
  }

  TEST_CASE("what is suspended can be cancelled and nothing starts while it is") {
    const auto bench = make_bench();
    if (!bench) return;
    SandboxSpec spec = bench->spec();
    const auto hold = std::make_shared<Hold>();
    spec.hold = hold;
    const ExecSpec exec = exec_of(*bench, kChatter);
    std::stop_source cancel;
    std::optional<Said> said;
    std::jthread runs([&] { said = run(*bench, spec, exec, cancel.get_token()); });
    REQUIRE(grows(exec.stdout_file, milliseconds(180'000)));
    hold->set(true);
    CHECK(stands_still(exec.stdout_file));
    cancel.request_stop();
    runs.join();
    CHECK(said->outcome.end == End::kCancelled);
    CHECK(bench->leftovers().empty());

    fs::remove(exec.stdout_file);
    std::stop_source again;
    said.reset();
    std::jthread waits([&] { said = run(*bench, spec, exec, again.get_token()); });
    CHECK_FALSE(grows(exec.stdout_file, milliseconds(500)));
    again.request_stop();
    waits.join();
    CHECK(said->outcome.end == End::kCancelled);
    CHECK(said->out.empty());
  }

  TEST_CASE("a command's exit code comes back as it was") {
    const auto bench = make_bench();
    if (!bench) return;
    struct Row {
      const char* what;
      const char* command;
      int code;
    };
    const Row rows[] = {{"success", "true", 0},
                        {"failure", "exit 3", 3},
                        {"a tool of python's", "exit 255", 255},
                        {"usage error of git", "exit 129", 129},
                        {"no such command", "no-such-command-here", 127},
                        {"not executable", "/workspace", 126}};
    for (const Row& row : rows) {
      CAPTURE(row.what);
      const Said said = run(*bench, row.command);
      CHECK(said.outcome.end == End::kExited);
      CHECK(said.outcome.exit_code == row.code);
    }
  }

  TEST_CASE("death by a signal is told from an exit") {
    const auto bench = make_bench();
    if (!bench) return;
    for (int signal : {SIGSEGV, SIGTERM, SIGKILL, SIGABRT}) {
      CAPTURE(signal);
      const Said said = run(*bench, "sh -c 'kill -" + std::to_string(signal) + " $$'");
      CHECK(said.outcome.end == End::kSignalled);
      CHECK(said.outcome.signal == signal);
    }
  }

  TEST_CASE("stdout and stderr arrive apart and whole") {
    const auto bench = make_bench();
    if (!bench) return;
    const Said said = run(*bench, "echo to out; echo to err >&2; printf 'a\\000b'");
    CHECK(said.out == std::string("to out\na\0b", 10));
    CHECK(said.err == "to err\n");
    CHECK(said.outcome.stdout_bytes == 10);
    CHECK(said.outcome.stderr_bytes == 7);
  }

  TEST_CASE("the environment is exactly the one given") {
    const auto bench = make_bench();
    if (!bench) return;
    REQUIRE(::setenv("PROCTOR_TEST_HOST_SECRET", "sk-1", 1) == 0);
    SandboxSpec spec = bench->spec();
    spec.env = {{"PATH", "/usr/bin:/bin"}, {"GREETING", "hello  'you' \"$x\"\n2"}, {"EMPTY", ""}};
    // The shell itself adds PWD, and OLDPWD or _ in some versions.
    const Said said =
        run(*bench, spec, exec_of(*bench, "env -u PWD -u OLDPWD -u _ -u SHLVL | sort"));
    CHECK(said.out == "2\nEMPTY=\nGREETING=hello  'you' \"$x\"\nPATH=/usr/bin:/bin\n");
    ::unsetenv("PROCTOR_TEST_HOST_SECRET");
  }

  TEST_CASE("an environment larger than any pipe or socket holds arrives whole") {
    const auto bench = make_bench();
    if (!bench) return;
    constexpr std::size_t kEach = 100'000;  // the kernel takes 131,071 bytes in one
    SandboxSpec spec = bench->spec();
    spec.env = {{"PATH", "/usr/bin:/bin"}};
    for (char name = 'A'; name < 'I'; ++name)
      spec.env[std::string(1, name)] = std::string(kEach, static_cast<char>(name - 'A' + 'a'));
    const Said said =
        run(*bench, spec,
            exec_of(*bench,
                    "for v in \"$A\" \"$B\" \"$C\" \"$D\" \"$E\" \"$F\" \"$G\" \"$H\"; do "
                    "printf '%d %.1s\\n' ${#v} $v; done"));
    std::string wanted;
    for (char c = 'a'; c < 'i'; ++c) wanted += std::to_string(kEach) + " " + c + "\n";
    CHECK(said.out == wanted);
  }

  TEST_CASE("there is no network unless the spec says so") {
    const auto bench = make_bench();
    if (!bench) return;
    const std::string interfaces = "tail -n +3 /proc/net/dev | sed 's/:.*//; s/ //g' | sort";
    CHECK(run(*bench, interfaces).out == "lo\n");
    SandboxSpec spec = bench->spec();
    spec.network = true;
    CHECK(run(*bench, spec, exec_of(*bench, interfaces)).out != "lo\n");
  }

  TEST_CASE("the host's files are absent or read-only") {
    const auto bench = make_bench();
    if (!bench) return;
    CHECK(run(*bench, "test -e " + bench->scratch().string()).outcome.exit_code == 1);
    CHECK(run(*bench, "cat /etc/shadow").outcome.exit_code != 0);
    for (const char* at : {"/x", "/usr/x", "/etc/x", "/usr/bin/x"}) {
      CAPTURE(at);
      CHECK(run(*bench, "touch " + std::string(at)).outcome.exit_code != 0);
      CHECK_FALSE(fs::exists(at));
    }
  }

  TEST_CASE("mounts show what the spec names and write only where it allows") {
    const auto bench = make_bench();
    if (!bench) return;
    REQUIRE(make_dirs(bench->scratch() / "tool").ok());
    REQUIRE(make_dirs(bench->scratch() / "cache").ok());
    REQUIRE(write_file(bench->scratch() / "tool/version", "1.2\n").ok());
    SandboxSpec spec = bench->spec();
    spec.mounts = {{bench->scratch() / "tool", "/opt/tool", false},
                   {bench->scratch() / "cache", "/opt/cache", true}};
    const Said said = run(*bench, spec,
                          exec_of(*bench,
                                  "cat /opt/tool/version; echo kept > /opt/cache/file; "
                                  "echo no > /opt/tool/version"));
    CHECK(said.out == "1.2\n");
    CHECK(said.outcome.exit_code != 0);
    CHECK(read_file(bench->scratch() / "tool/version", 100).value() == "1.2\n");
    CHECK(read_file(bench->scratch() / "cache/file", 100).value() == "kept\n");
  }

  TEST_CASE("the workspace is writable and outlives the command while tmp does not") {
    const auto bench = make_bench();
    if (!bench) return;
    auto sandbox = bench->engine().open(bench->spec());
    REQUIRE(sandbox.ok());
    ExecSpec exec =
        exec_of(*bench, "pwd; echo 1 > kept; mkdir d; echo 2 > /tmp/gone; chmod 700 kept");
    REQUIRE((*sandbox)->run(exec, {}).value().exit_code == 0);
    CHECK(read_file(exec.stdout_file, 100).value() == "/workspace\n");
    exec.command = "cat kept; test -d d && echo d; cat /tmp/gone";
    CHECK((*sandbox)->run(exec, {}).value().exit_code == 1);
    CHECK(read_file(exec.stdout_file, 100).value() == "1\nd\n");
  }

  TEST_CASE("nothing privileged can be done inside") {
    const auto bench = make_bench();
    if (!bench) return;
    CHECK(run(*bench, "grep CapEff /proc/self/status").out == "CapEff:\t0000000000000000\n");
    CHECK(run(*bench, "grep CapBnd /proc/self/status").out == "CapBnd:\t0000000000000000\n");
    // gVisor's kernel has the flag, and no line for it.
    CHECK(run(*bench, "grep NoNewPrivs /proc/self/status").out ==
          (bench->userspace() ? "" : "NoNewPrivs:\t1\n"));
    CHECK(run(*bench, "grep Seccomp: /proc/self/status").out == "Seccomp:\t2\n");
    CHECK(run(*bench, "mount -t tmpfs none /tmp").outcome.exit_code != 0);
    CHECK(run(*bench, "unshare -U true").outcome.exit_code != 0);
  }

  TEST_CASE("a timeout kills everything also daemons that left their session") {
    const auto bench = make_bench();
    if (!bench) return;
    const std::string mark = "86" + std::to_string(::getpid());  // seconds, and a name to look for
    ExecSpec exec = exec_of(*bench, "echo up; (setsid sleep " + mark +
                                        " >/dev/null 2>&1 &) ; "
                                        "(setsid sh -c 'sleep " +
                                        mark + " & sleep " + mark +
                                        "' &) ; "
                                        "trap '' TERM; sleep " +
                                        mark);
    exec.timeout = milliseconds(5'000);
    const auto begun = std::chrono::steady_clock::now();
    const Said said = run(*bench, bench->spec(), exec);
    CHECK(said.outcome.end == End::kTimedOut);
    CHECK(said.out == "up\n");
    CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(120));
    CHECK(5'000 <= said.outcome.wall.count());
    CHECK(processes_with(mark) == 0);
  }

  TEST_CASE("a command that ends leaves no background process behind") {
    const auto bench = make_bench();
    if (!bench) return;
    const std::string mark = "87" + std::to_string(::getpid());
    const Said said = run(*bench, "(setsid sleep " + mark + " &) ; echo started");
    CHECK(said.outcome.end == End::kExited);
    CHECK(said.out == "started\n");
    CHECK(processes_with(mark) == 0);
  }

  TEST_CASE("memory beyond the limit ends the command as such") {
    const auto bench = make_bench();
    if (!bench) return;
    if (bench->engine().enforcement().at("memory").find("cgroup") == std::string::npos) {
      MESSAGE("not run: no memory control group here");
      return;
    }
    SandboxSpec spec = bench->spec();
    spec.memory_bytes = std::uint64_t{64} << 20;
    const Said said = run(*bench, spec, exec_of(*bench, "tail /dev/zero"));
    CHECK(said.outcome.end == End::kMemory);
    const Said small =
        run(*bench, spec, exec_of(*bench, "head -c 1000000 /dev/zero | tail -c 1 >/dev/null"));
    CHECK(small.outcome.end == End::kExited);
    CHECK(small.outcome.exit_code == 0);
  }

  TEST_CASE("a fork bomb meets the limit on processes") {
    const auto bench = make_bench();
    if (!bench) return;
    if (bench->engine().enforcement().at("processes").find("cgroup") == std::string::npos) {
      MESSAGE("not run: no pids control group here");
      return;
    }
    const std::string mark = "88" + std::to_string(::getpid());
    SandboxSpec spec = bench->spec();
    spec.processes = 20;
    ExecSpec exec =
        exec_of(*bench,
                "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 "
                "25 26 27 28 29 30; do sleep " +
                    mark + " & done; wait");
    exec.timeout = milliseconds(60'000);
    const Said said = run(*bench, spec, exec);
    CHECK(said.outcome.end != End::kCancelled);
    CHECK(said.err.find("ork") != std::string::npos);  // "Cannot fork"
    CHECK(processes_with(mark) == 0);
    // Enough is enough: the limit leaves room for what it allows.
    const Said fits = run(
        *bench, spec, exec_of(*bench, "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.1 & done; wait"));
    CHECK(fits.outcome.exit_code == 0);
    CHECK(fits.err.empty());
  }

  TEST_CASE("files larger than the limit cannot be written") {
    const auto bench = make_bench();
    if (!bench) return;
    SandboxSpec spec = bench->spec();
    spec.file_bytes = 1 << 20;
    const Said said = run(*bench, spec, exec_of(*bench, "head -c 2000000 /dev/zero > big"));
    CHECK(said.outcome.exit_code != 0);
    CHECK(run(*bench, "test $(wc -c < big) -le 1048576").outcome.exit_code == 0);
  }

  TEST_CASE("CPU time beyond the limit ends the command") {
    const auto bench = make_bench();
    if (!bench) return;
    SandboxSpec spec = bench->spec();
    spec.cpu = milliseconds(1'000);
    const Said said = run(*bench, spec, exec_of(*bench, "while :; do :; done"));
    CHECK(said.outcome.end == End::kCpu);
    CHECK(said.outcome.wall < milliseconds(120'000));
    // Of many that nobody waits for, each below it, by their sum.
    const Said many =
        run(*bench, spec,
            exec_of(*bench, "for i in 1 2 3; do (while :; do :; done &); done; sleep 60"));
    CHECK(many.outcome.end == End::kCpu);
  }

  TEST_CASE("a flood of output is counted and cut and does not stall the command") {
    const auto bench = make_bench();
    if (!bench) return;
    ExecSpec exec = exec_of(*bench, "head -c 30000000 /dev/zero; echo done >&2");
    exec.output_max = 100'000;
    const Said said = run(*bench, bench->spec(), exec);
    CHECK(said.outcome.exit_code == 0);
    CHECK(said.outcome.stdout_bytes == 30'000'000);
    CHECK(said.out.size() == 100'000);
    CHECK(said.err == "done\n");
  }

  TEST_CASE("an endless flood still meets its timeout") {
    const auto bench = make_bench();
    if (!bench) return;
    ExecSpec exec = exec_of(*bench, "yes & yes >&2");
    exec.output_max = 1000;
    exec.timeout = milliseconds(4'000);
    const Said said = run(*bench, bench->spec(), exec);
    CHECK(said.outcome.end == End::kTimedOut);
    CHECK(said.out.size() == 1000);
    CHECK(said.err.size() == 1000);
    CHECK(said.outcome.wall < milliseconds(60'000));
  }

  TEST_CASE("cancelling ends the command at once") {
    const auto bench = make_bench();
    if (!bench) return;
    const std::string mark = "89" + std::to_string(::getpid());
    std::stop_source stop;
    ExecSpec exec = exec_of(*bench, "echo up; sleep " + mark);
    std::atomic<bool> begun{false};
    exec.begun = [&] { begun = true; };
    const auto runs = [&] {  // gVisor's processes are not the host's to see
      return bench->userspace() ? begun.load() : processes_with(mark) != 0;
    };
    std::jthread canceller([&](std::stop_token own) {
      while (!own.stop_requested() && !runs()) std::this_thread::yield();
      stop.request_stop();
    });
    const Said said = run(*bench, bench->spec(), exec, stop.get_token());
    CHECK(said.outcome.end == End::kCancelled);
    CHECK(processes_with(mark) == 0);
    // Asked before it starts, it does not start.
    CHECK(run(*bench, bench->spec(), exec, stop.get_token()).outcome.end == End::kCancelled);
  }

  TEST_CASE("cancelling at any moment of the start leaves nothing running") {
    const auto bench = make_bench();
    if (!bench) return;
    const std::string mark = "90" + std::to_string(::getpid());
    for (int microseconds = 0; microseconds < 12'000; microseconds += 1'000) {
      CAPTURE(microseconds);
      std::stop_source stop;
      const auto when = std::chrono::steady_clock::now() + std::chrono::microseconds(microseconds);
      std::jthread canceller([&] {
        while (std::chrono::steady_clock::now() < when) std::this_thread::yield();
        stop.request_stop();
      });
      const Said said =
          run(*bench, bench->spec(), exec_of(*bench, "sleep " + mark), stop.get_token());
      CHECK(said.outcome.end == End::kCancelled);
      CHECK(processes_with(mark) == 0);
    }
  }

  TEST_CASE("what a command used is measured") {
    const auto bench = make_bench();
    if (!bench) return;
    const Said said = run(*bench, "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done");
    CHECK(said.outcome.end == End::kExited);
    CHECK(milliseconds(20) <= said.outcome.wall);
    CHECK(said.outcome.cpu <= said.outcome.wall + milliseconds(50));
  }

  TEST_CASE("sandboxes on many threads do not meet") {
    const auto bench = make_bench();
    if (!bench) return;
    std::vector<int> codes(4, -1);
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&, i] {
          SandboxSpec spec = bench->spec();
          spec.label += "-" + std::to_string(i);
          ExecSpec exec = exec_of(*bench, "echo me > /tmp/x; exit " + std::to_string(i));
          exec.stdout_file = bench->scratch() / ("o" + std::to_string(i));
          exec.stderr_file = bench->scratch() / ("e" + std::to_string(i));
          auto sandbox = bench->engine().open(spec);
          if (!sandbox.ok()) return;
          auto outcome = (*sandbox)->run(exec, {});
          if (outcome.ok()) codes[static_cast<std::size_t>(i)] = outcome->exit_code;
        });
      }
    }
    CHECK(codes == std::vector<int>{0, 1, 2, 3});
  }

  TEST_CASE(
      "a mount of what is not there is the host's lack, one at a bad place the spec's fault") {
    const auto bench = make_bench();
    if (!bench) return;
    for (const SandboxMount& bad : {SandboxMount{bench->scratch() / "absent", "/opt/x", false},
                                    SandboxMount{bench->scratch(), "relative", false},
                                    SandboxMount{bench->scratch(), "/opt/../etc", false},
                                    SandboxMount{bench->scratch(), "/proc", false},
                                    SandboxMount{bench->scratch(), "/", true}}) {
      CAPTURE(bad.at);
      SandboxSpec spec = bench->spec();
      spec.mounts = {bad};
      auto sandbox = bench->engine().open(spec);
      REQUIRE_FALSE(sandbox.ok());
      CHECK(sandbox.error().code == (bad.at == "/opt/x" ? Errc::kNotFound : Errc::kInvalid));
    }
  }

  TEST_CASE("an image that is not there is the host's lack and is named") {
    const auto bench = make_bench();
    if (!bench) return;
    SandboxSpec spec = bench->spec();
    if (spec.image.empty()) {
      MESSAGE("not run: this kind of sandbox takes no image");
      return;
    }
    for (const char* image :
         {"proctor-no-such-image:1", "bad reference", "../x",
          "sha256:0000000000000000000000000000000000000000000000000000000000000000"}) {
      CAPTURE(image);
      spec.image = image;
      const auto sandbox = bench->engine().open(spec);
      REQUIRE_FALSE(sandbox.ok());
      if (std::string_view(image).find(':') != std::string_view::npos)  // a reference
        CHECK(sandbox.error().code == Errc::kNotFound);
      CHECK(sandbox.error().detail.find(image) != std::string::npos);
    }
  }

  TEST_CASE("nothing is left over and clean up finds nothing to do") {
    const auto bench = make_bench();
    if (!bench) return;
    SandboxSpec spec = bench->spec();
    spec.memory_bytes = std::uint64_t{256} << 20;
    spec.processes = 50;
    CHECK(run(*bench, spec, exec_of(*bench, "sleep 99999 & exit 0")).outcome.exit_code == 0);
    CHECK(bench->leftovers().empty());
    CHECK(bench->engine().clean_up().ok());
  }
}
