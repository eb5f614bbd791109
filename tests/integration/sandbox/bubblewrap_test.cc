// What only bubblewrap can get wrong: tools of the host under our filter and our /etc.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <thread>

#include "common/base/owned.h"
#include "tests/integration/sandbox/engine_under_test.h"
#include "tests/support/programs.h"
#include "worker/sandbox/boxed_sandbox.h"
#include "worker/sandbox/lean_host.h"
#include "worker/sandbox/process_tree.h"

using namespace proctor;
using namespace proctor::testing;

TEST_SUITE("sandbox bubblewrap") {
  TEST_CASE("compilers and interpreters of the host work inside") {
    const auto bench = make_bench();
    if (!bench) return;
    struct Row {
      const char* tool;  // must be there for the row to be run
      const char* command;
    };
    const Row rows[] = {
        {"/usr/bin/gcc", "echo 'int main(){return 0;}' > a.c && gcc -o a a.c && ./a"},
        {"/usr/bin/git", "git init -q r && git -C r status --short"},
        {"/usr/bin/python3",
         "/usr/bin/python3 -c 'import multiprocessing as m, subprocess as s, threading as t; "
         "x = t.Thread(target=print); x.start(); x.join(); s.run([\"true\"], check=True); "
         "p = m.Process(target=print); p.start(); p.join(); assert p.exitcode == 0'"},
        {"/usr/bin/node",
         "node -e 'require(\"fs\").promises.readFile(\"/etc/passwd\").then(b => "
         "process.exit(b.length > 0 ? 0 : 1))'"},
        // Its scheduler and its threads, without building the standard library for a minute.
        {"/usr/local/go/bin/go",
         "export HOME=/tmp GOPROXY=off GOTOOLCHAIN=local; /usr/local/go/bin/go list std"},
    };
    for (const Row& row : rows) {
      CAPTURE(row.tool);
      if (!fs::exists(row.tool)) {
        MESSAGE("left out: no " << row.tool << " on this machine");
        continue;
      }
      auto sandbox = bench->engine().open(bench->spec());
      REQUIRE(sandbox.ok());
      ExecSpec exec;
      exec.command = row.command;
      exec.timeout = std::chrono::minutes(3);
      exec.stdout_file = bench->scratch() / "out";
      exec.stderr_file = bench->scratch() / "err";
      const auto outcome = (*sandbox)->run(exec, {});
      REQUIRE(outcome.ok());
      CAPTURE(read_file(exec.stderr_file, 1 << 20).value());
      CAPTURE(read_file(exec.stdout_file, 1 << 20).value());
      CHECK(outcome->exit_code == 0);
    }
  }

  TEST_CASE("files, folders and more of them than the lean host has room for are shown") {
    const auto bench = make_bench();
    if (!bench) return;
    for (const std::size_t folders : {1U, 40U}) {
      CAPTURE(folders);
      SandboxSpec spec = bench->spec();
      REQUIRE(write_file(bench->scratch() / "one", "said\n", Durability::kLazy).ok());
      spec.mounts = {{bench->scratch() / "one", "/opt/one", false}};
      for (std::size_t i = 0; i < folders; ++i) {
        const fs::path dir = bench->scratch() / ("folder" + std::to_string(i));
        REQUIRE(make_dirs(dir).ok());
        REQUIRE(write_file(dir / "number", std::to_string(i), Durability::kLazy).ok());
        spec.mounts.push_back({dir, "/opt/" + std::to_string(i), false});
      }
      auto sandbox = bench->engine().open(spec);
      REQUIRE(sandbox.ok());
      ExecSpec exec;
      const std::string last = std::to_string(folders - 1);
      exec.command =
          "test $(cat /opt/one) = said && test $(cat /opt/" + last + "/number) = " + last;
      exec.stdout_file = bench->scratch() / "out";
      exec.stderr_file = bench->scratch() / "err";
      const auto outcome = (*sandbox)->run(exec, {});
      REQUIRE(outcome.ok());
      CAPTURE(read_file(exec.stderr_file, 1 << 20).value());
      CHECK(outcome->exit_code == 0);
    }
  }

  TEST_CASE("bwrap starts among few mounts, however many the host has") {
    if (::geteuid() != 0) {
      MESSAGE("not run: only root has a lean host");
      return;
    }
    const TempDir dir = TempDir::create("lean").value();
    for (const char* name : {"root", "etc", "shown"}) REQUIRE(make_dirs(dir.path() / name).ok());
    REQUIRE(write_file(dir.path() / "init", "", Durability::kLazy).ok());
    REQUIRE(write_file(dir.path() / "shown/here", "", Durability::kLazy).ok());
    HostView host;
    host.dirs = {"/usr"};
    host.etc = dir.path() / "etc";
    host.init = dir.path() / "init";
    const Result<LeanHost> lean = LeanHost::make(host, dir.path() / "root");
    REQUIRE_MESSAGE(lean.ok(), lean.error().detail);
    SandboxSpec spec;
    spec.workspace = dir.path() / "shown";
    HostView view;
    LeanHost::Shown shown;
    REQUIRE(lean->show(spec, view, shown, LeanHost::Then::kAnothers).value());
    // A sanitizer's fork starts a thread in the child, and who has threads cannot leave a
    // namespace.
    const auto child = static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
    if (child == 0) {
      if (!lean->enter(shown)) ::_exit(100);
      if (::access((spec.workspace / "here").c_str(), F_OK) != 0) ::_exit(101);
      if (::access(dir.path().c_str(), F_OK) == 0) ::_exit(102);  // the host is gone
      const int table = ::open("/proc/self/mountinfo", O_RDONLY);
      int lines = 0;
      for (char c = 0; ::read(table, &c, 1) == 1;) lines += c == '\n' ? 1 : 0;
      ::_exit(lines < 90 ? lines : 90);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) <= 10);  // of /usr there may be parts
    CHECK(1 <= WEXITSTATUS(status));
  }

  TEST_CASE("a runtime that cannot be started says at which step, and why") {
    const TempDir dir = TempDir::create("box").value();
    BoundedFile out = BoundedFile::create(dir.path() / "out", 1024).value();
    BoundedFile err = BoundedFile::create(dir.path() / "err", 1024).value();
    BoxLaunch launch;
    launch.argv = {"/no/such/runtime"};
    launch.timeout = std::chrono::seconds(120);
    const auto absent = run_box(launch, out, err, {});
    REQUIRE_FALSE(absent.ok());
    CHECK(absent.error().code == Errc::kUnavailable);
    CHECK(absent.error().detail == "/no/such/runtime: run it: No such file or directory");
    launch.enter = [] {
      errno = EBUSY;
      return false;
    };
    const auto barred = run_box(launch, out, err, {});
    REQUIRE_FALSE(barred.ok());
    CHECK(barred.error().detail ==
          "/no/such/runtime: mount what it starts in: Device or resource busy");
  }

  // As bwrap's first process inside is, where its worker is killed before that has set all up.
  TEST_CASE("what a killed worker's runtimes left running is found by its label") {
    const std::string label =
        runtime_label("/usr/bin/bwrap", "orphan-test-" + std::to_string(::getpid()));
    const auto start = [](const std::string& shown) {
      const pid_t parent = ::fork();
      if (parent == 0) {
        if (::fork() == 0) {
          ::execl("/bin/sleep", shown.c_str(), "60", nullptr);
          ::_exit(1);
        }
        ::_exit(0);  // and leaves a child of nobody's
      }
      ::waitpid(parent, nullptr, 0);
    };
    const auto alive = [](const std::string& shown) {
      std::size_t n = 0;
      for (const auto& process : fs::directory_iterator("/proc")) {
        const auto words = read_file(process.path() / "cmdline", 4096);
        if (words.ok() && words->starts_with(shown + '\0')) ++n;
      }
      return n;
    };
    const std::string other = label + "0";
    start(label);
    start(label);
    start(other);
    // fork() is not exec() yet.
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(180);
    while (alive(label) + alive(other) < 3 && std::chrono::steady_clock::now() < until)
      ::usleep(1000);
    CHECK(alive(label) == 2);
    kill_orphans(label);
    CHECK(alive(label) == 0);
    CHECK(alive(other) == 1);
    kill_orphans(other);
    CHECK(alive(other) == 0);
  }

  TEST_CASE("without control groups the memory of all processes together is watched") {
    const auto bench = make_bench();
    if (!bench) return;
    SandboxOptions options;
    options.owner = "no-groups";
    options.cgroups = false;
    auto engine = open_sandbox_engine(SandboxKind::kBubblewrap, options);
    REQUIRE_MESSAGE(engine.ok(), (engine.ok() ? "" : engine.error().detail));
    CHECK((*engine)->enforcement().at("memory") == "rlimit");
    CHECK((*engine)->enforcement().at("memory_sum") == "monitor");
    // Each stays far below the limit; the eight together do not.
    const std::string hog =
        "for i in 1 2 3 4 5 6 7 8; do (x=$(head -c 40000000 /dev/zero | tr '\\0' x); "
        "while :; do sleep 1; done) & done; wait";
    SandboxSpec spec = bench->spec();
    spec.memory_bytes = std::uint64_t{192} << 20;
    auto sandbox = (*engine)->open(spec);
    REQUIRE(sandbox.ok());
    ExecSpec exec;
    exec.command = hog;
    exec.timeout = std::chrono::seconds(90);  // on an emulated machine it takes its time
    auto outcome = (*sandbox)->run(exec, {});
    REQUIRE_MESSAGE(outcome.ok(), (outcome.ok() ? "" : outcome.error().detail));
    CHECK(outcome->end == ExecOutcome::End::kMemory);
    CHECK(outcome->wall < std::chrono::seconds(80));
    // What they share counts once, and what fits runs.
    exec.command = "x=$(head -c 40000000 /dev/zero | tr '\\0' x); sleep 0.4; true";
    outcome = (*sandbox)->run(exec, {});
    REQUIRE(outcome.ok());
    CHECK(outcome->end == ExecOutcome::End::kExited);
    CHECK(outcome->exit_code == 0);
  }

  TEST_CASE("the time of a command that is ended from outside is counted, its children's too") {
    const auto bench = make_bench();
    if (!bench) return;
    auto sandbox = bench->engine().open(bench->spec());
    REQUIRE(sandbox.ok());
    ExecSpec exec;
    exec.command =
        "sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done; echo burnt; sleep 100000'; :";
    exec.timeout = std::chrono::hours(1);
    exec.stdout_file = bench->scratch() / "out";
    exec.stderr_file = bench->scratch() / "err";
    std::stop_source cancel;
    std::optional<Result<ExecOutcome>> outcome;
    std::jthread runs([&] { outcome = (*sandbox)->run(exec, cancel.get_token()); });
    CHECK(eventually([&] {
      const auto said = read_file(exec.stdout_file, 64);
      return said.ok() && *said == "burnt\n";
    }));
    cancel.request_stop();
    runs.join();
    REQUIRE(outcome->ok());
    CHECK((*outcome)->end == ExecOutcome::End::kCancelled);
    CHECK(std::chrono::milliseconds(30) <= (*outcome)->cpu);  // a shell needs 100 and more
  }

  TEST_CASE("no descriptor of the worker reaches the command") {
    const auto bench = make_bench();
    if (!bench) return;
    const UniqueFd leaked(::dup(0));  // without close-on-exec, as a careless library would
    auto sandbox = bench->engine().open(bench->spec());
    REQUIRE(sandbox.ok());
    ExecSpec exec;
    exec.command = "ls /proc/self/fd | wc -l";
    exec.stdout_file = bench->scratch() / "out";
    REQUIRE((*sandbox)->run(exec, {}).ok());
    // 0, 1, 2 and the one with which ls reads the folder.
    CHECK(read_file(exec.stdout_file, 100).value() == "4\n");
  }

  TEST_CASE("the first process is closed to the command, which is the same user") {
    const auto bench = make_bench();
    if (!bench) return;
    auto sandbox = bench->engine().open(bench->spec());
    REQUIRE(sandbox.ok());
    ExecSpec exec;
    exec.command =
        "for f in fd exe environ; do ls -d /proc/1/$f > /dev/null && echo there; done; "
        "readlink /proc/1/fd/3 || echo closed; readlink /proc/1/exe || echo closed; "
        "cat /proc/1/environ || echo closed; head -c 1 /proc/self/environ | wc -c";
    exec.stdout_file = bench->scratch() / "out";
    exec.stderr_file = bench->scratch() / "err";
    REQUIRE((*sandbox)->run(exec, {}).ok());
    CHECK(read_file(exec.stdout_file, 100).value() ==
          "there\nthere\nthere\nclosed\nclosed\nclosed\n1\n");
  }

  TEST_CASE("files made inside belong to the worker outside") {
    const auto bench = make_bench();
    if (!bench) return;
    const SandboxSpec spec = bench->spec();
    auto sandbox = bench->engine().open(spec);
    REQUIRE(sandbox.ok());
    REQUIRE(write_file(spec.workspace / "given", "old").ok());
    ExecSpec exec;
    exec.command = "id -u && echo new > given && echo made > made";
    exec.stdout_file = bench->scratch() / "out";
    REQUIRE((*sandbox)->run(exec, {}).value().exit_code == 0);
    CHECK(read_file(exec.stdout_file, 100).value() == "1000\n");
    CHECK(read_file(spec.workspace / "given", 100).value() == "new\n");
    CHECK(read_file(spec.workspace / "made", 100).value() == "made\n");
  }
}
