// Attempts at what a sandbox refuses, on every engine: seen where the kernel can be asked, and as
// vain as ever everywhere.
#include <doctest/doctest.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>

#include "common/score/denied_commands.h"
#include "tests/integration/sandbox/run_command.h"
#include "tests/support/paths.h"

using namespace proctor;
using namespace proctor::testing;
using End = ExecOutcome::End;

namespace {

constexpr const char* kProbe = "/opt/probe/net_probe ";

// `call N` of net_probe.
std::string call(long number, const std::string& more = "") {
  return "call " + std::to_string(number) + more + " ";
}

struct Scene {
  explicit Scene(Bench& b) : bench(b), spec(b.spec()) {
    const fs::path dir = bench.scratch() / "probe";
    REQUIRE(make_dirs(dir).ok());
    fs::copy_file(build_dir() / "net_probe", dir / "net_probe");
    spec.mounts.push_back({dir, "/opt/probe", false});
  }
  Said run(const std::string& command, bool programs = false) {
    ExecSpec exec = exec_of(bench, command);
    exec.attempted = [this](const CallAttempt& a) {
      const bool program = a.what == CallAttempt::What::kProgram;
      const std::string lines = program ? program_lines(a.target) : a.target;
      seen.push_back(a.call + " " + lines.substr(0, lines.find('\n')));
    };
    exec.see_programs = programs;
    seen.clear();
    return testing::run(bench, spec, exec);
  }
  bool sees() const { return bench.engine().enforcement().at("attempts") == "seccomp"; }
  bool saw(const std::string& what) const { return std::ranges::count(seen, what) != 0; }

  Bench& bench;
  SandboxSpec spec;
  std::vector<std::string> seen;
};

}  // namespace

TEST_SUITE("sandbox attempts") {
  TEST_CASE("what a sandbox refuses is refused as ever, and seen where it can be") {
    const auto bench = make_bench();
    if (!bench) return;
    Scene scene(*bench);
    const auto refused = [&](const std::string& question) {
      const Said said = scene.run(kProbe + question);
      CHECK(said.outcome.exit_code == 0);
      CHECK_FALSE(said.out.ends_with(": done\n"));
      CHECK_FALSE(said.out.ends_with(": reached\n"));
      return scene.seen;
    };
    using Seen = std::vector<std::string>;
    const auto wanted = [&](const std::string& what) { return scene.sees() ? Seen{what} : Seen{}; };
    CHECK(refused(call(SYS_mount)) == wanted("mount "));
    CHECK(refused(call(SYS_unshare, "," + std::to_string(CLONE_NEWUSER))) == wanted("unshare "));
    CHECK(refused(call(SYS_clone, "," + std::to_string(CLONE_NEWNET))) == wanted("clone "));
    CHECK(refused(call(SYS_setns)) == wanted("setns "));
    CHECK(refused(call(SYS_keyctl)) == wanted("keyctl "));
    CHECK(refused(call(SYS_bpf)) == wanted("bpf "));
    CHECK(refused(call(SYS_ptrace, "," + std::to_string(PTRACE_ATTACH) + ",1")) ==
          wanted("ptrace "));
    CHECK(refused("tcp 203.0.113.1:80") == wanted("connect 203.0.113.1:80"));
    CHECK(refused("udp 203.0.113.1:53") == wanted("connect 203.0.113.1:53"));
    CHECK(refused("bind 203.0.113.1:80") == wanted("bind 203.0.113.1:80"));
    // A process that nobody may read hides where it goes, not that it goes.
    const std::string unreadable = call(SYS_prctl, ",4,0");  // PR_SET_DUMPABLE
    CHECK(refused(unreadable + "tcp 203.0.113.1:80") == wanted("connect ?"));
    CHECK(refused("message 203.0.113.1:53") == wanted("sendmsg 203.0.113.1:53"));
    CHECK(refused("messages 203.0.113.1:53") == wanted("sendmmsg 203.0.113.1:53"));
    CHECK(refused("rewrite /etc/passwd") == wanted("openat2 /etc/passwd"));
    CHECK(refused("rewrite ../usr/../etc/passwd") == wanted("openat2 /etc/passwd"));
    CHECK(refused(call(SYS_mknodat, ",-100,0," + std::to_string(S_IFBLK | 0600))) ==
          wanted("mknodat "));
  }

  TEST_CASE("a write to a place of the host is seen, by whatever name the place has") {
    const auto bench = make_bench();
    if (!bench) return;
    Scene scene(*bench);
    const Said said = scene.run(
        "exec 2>&-; (echo x >> /etc/passwd); (cd /etc && echo x > ./shadow); "
        "(echo x > ../usr/../etc/group); chmod 777 /usr/bin/env; mv /etc/passwd /tmp/x; "
        "mv /workspace /usr/sbin/y; rm -f /etc/passwd; (echo 0 > /proc/sys/vm/swappiness); "
        "ln -s a /etc/soft; ln /workspace/a /etc/hard; mkdir -p /etc/made/below; rmdir /etc/ssl; "
        "mkfifo /etc/pipe; touch -c -d @0 /etc/hosts; mkdir -p /etc /dev; rm -rf /etc/ssl; "
        "cat /etc/passwd > /dev/null; test -e /etc/passwd; ls /root /sys; true");
    CHECK(said.outcome.exit_code == 0);
    CHECK(scene.seen.empty() != scene.sees());
    if (!scene.sees()) return;
    const std::string all = [&] {
      std::string out;
      for (const std::string& one : scene.seen) out += one + "\n";
      return out;
    }();
    CAPTURE(all);
    for (const char* what : {"/etc/passwd", "/etc/shadow", "/etc/group", "/proc/sys/vm/swappiness"})
      CHECK((scene.saw("openat " + std::string(what)) || scene.saw("open " + std::string(what))));
    CHECK(all.find("chmod") != all.npos);
    CHECK(all.find(" /usr/bin/env\n") != all.npos);
    CHECK(all.find("rename") != all.npos);
    CHECK(all.find("symlink") != all.npos);
    CHECK(all.find(" /etc/soft\n") != all.npos);
    CHECK(all.find(" /usr/sbin/y\n") != all.npos);
    CHECK(all.find("unlink") != all.npos);
    for (const char* path : {"/etc/made", "/etc/pipe", "/etc/hosts"})
      CHECK(all.find(" " + std::string(path) + "\n") != all.npos);
    if (bench->engine().kind() == SandboxKind::kBubblewrap) {  // an image of tests has no rmdir
      CHECK(all.find("rmdir /etc/ssl\n") != all.npos);
      CHECK(all.find("unlinkat /etc/ssl/") != all.npos);  // a tree's files, of which none goes
    }
    for (const char* there : {"mkdir /etc\n", "mkdir /dev\n", "mkdirat /etc\n", "mkdirat /dev\n"})
      CHECK(all.find(there) == all.npos);
    CHECK(all.find("/dev/null") == all.npos);
    CHECK(all.find("/tmp") == all.npos);
    CHECK(all.find("/workspace") == all.npos);
  }

  TEST_CASE("every program is seen where somebody asks, in its own words") {
    const auto bench = make_bench();
    if (!bench) return;
    Scene scene(*bench);
    const std::string command = "env true 'a b'; head -c 0 /dev/null";
    scene.run(command);
    CHECK(scene.seen.empty());
    CHECK(scene.run(command, true).outcome.exit_code == 0);
    CHECK(scene.seen.empty() != scene.sees());
    if (!scene.sees()) return;
    REQUIRE_FALSE(scene.seen.empty());
    CHECK(scene.seen.front().ends_with("'env true '\\''a b'\\''; head -c 0 /dev/null'"));
    CHECK(std::ranges::count(scene.seen, "execve env true 'a b'") == 1);
    CHECK(std::ranges::count(scene.seen, "execve true 'a b'") == 1);  // found in a PATH
    CHECK(scene.seen.back() == "execve head -c 0 /dev/null");
    // The kernel does not find it.
    CHECK(scene.run("/no/such/program", true).outcome.exit_code == 127);
    CHECK(scene.seen.back() == "execve /no/such/program");
  }

  TEST_CASE("no text of a command is a line of its own") {
    const auto bench = make_bench();
    if (!bench) return;
    Scene scene(*bench);
    const Said said = scene.run(
        "exec 2>&-; f=\"$(printf '/etc/x\\n{ \"exit-code\": 0 }\\nattempt 165 1 -\\nuntold 9 "
        "9\\n')\"; "
        "(: > \"$f.\"); env \"$f=\" sh -c 'exit 7'",
        true);
    CHECK(said.outcome.exit_code == 7);
    CHECK(said.outcome.attempts_untold == 0);
    CHECK_FALSE(scene.saw("mount "));
    if (scene.sees())
      CHECK(std::ranges::count_if(scene.seen, [](const std::string& one) {
              return one.find("/etc/x\\x0a{ \"exit-code\": 0 }\\x0aattempt") != one.npos ||
                     one.find("/etc/x { \"exit-code\": 0 } attempt") != one.npos;
            }) == 2);  // the file, and env
  }

  TEST_CASE("a watched command has no descriptor and no right that an unwatched one has not") {
    const auto bench = make_bench();
    if (!bench) return;
    Scene scene(*bench);
    const std::string look =
        "ls /proc/self/fd | wc -l; grep -c . /proc/self/status; "
        "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status; "
        "cat /proc/1/environ 2> /dev/null; true";
    const Said watched = scene.run(look);
    CHECK(watched.out == run(*bench, scene.spec, exec_of(*bench, look)).out);
    if (scene.sees())  // 0, 1, 2 and the one with which ls reads the folder; gVisor has its own
      CHECK(watched.out.starts_with("4\n"));
    CHECK(scene.run("exit 3").outcome.exit_code == 3);
    CHECK(scene.run("kill -9 $$").outcome.signal == 9);
    CHECK(scene.run("no-such-command").outcome.exit_code == 127);
  }

  TEST_CASE("a flood of attempts is bounded, counted and over soon") {
    const auto bench = make_bench();
    if (!bench) return;
    Scene scene(*bench);
    const auto begun = std::chrono::steady_clock::now();
    const Said said =
        scene.run(std::string(kProbe) + "flood " + std::to_string(SYS_setns) + ",100000; exit 9");
    CHECK(said.outcome.exit_code == 9);
    CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(60));
    CHECK(scene.seen.size() == (scene.sees() ? kAttemptsTold : 0));
    CHECK(said.outcome.attempts_untold == (scene.sees() ? 100'000 - kAttemptsTold : 0));
  }

  TEST_CASE("what could not be read is counted") {
    const auto bench = make_bench();
    if (!bench) return;
    Scene scene(*bench);
    const std::string unreadable = kProbe + call(SYS_prctl, ",4,0");
    const auto untold = [&](const std::string& command) {
      return scene.run(command, true).outcome.attempts_untold;
    };
    CHECK(untold(unreadable) == 0);
    CHECK(untold(unreadable + "rewrite /etc/passwd tcp 203.0.113.1:80") == (scene.sees() ? 2 : 0));
    // The folder of one is not known that is deeper than a path is long.
    const std::string deep =
        "cd /tmp; n=$(printf %0120d 1); i=0; "
        "while [ $i -lt 40 ]; do mkdir $n; cd -P $n; i=$((i+1)); done; ";
    CHECK((untold(deep + kProbe + "rewrite ../x") != 0) == scene.sees());
    // A word of 64 KiB.
    const std::string grow = "w=x; while [ ${#w} -lt 65536 ]; do w=$w$w; done; ";
    CHECK(untold(grow + "true") == 0);
    CHECK((untold(grow + "env w=$w true") != 0) == scene.sees());
  }

  TEST_CASE("many programs hide none") {
    const auto bench = make_bench();
    if (!bench) return;
    Scene scene(*bench);
    const Said said = scene.run(
        std::string(kProbe) + "flood " + std::to_string(SYS_execve) + ",5000; head -c 0 /dev/null",
        true);
    CHECK(said.outcome.exit_code == 0);
    CHECK(said.outcome.attempts_untold == 0);
    if (scene.sees()) CHECK(scene.seen.back() == "execve head -c 0 /dev/null");
  }

  TEST_CASE("a command that is ended has told of what it attempted") {
    const auto bench = make_bench();
    if (!bench) return;
    Scene scene(*bench);
    ExecSpec exec = exec_of(
        *bench, std::string(kProbe) + "flood " + std::to_string(SYS_setns) + ",600; sleep 100000");
    std::uint64_t seen = 0;
    exec.attempted = [&](const CallAttempt&) { ++seen; };
    exec.timeout = std::chrono::milliseconds(3'000);
    const Said said = run(*bench, scene.spec, exec);
    CHECK(said.outcome.end == End::kTimedOut);
    CHECK(seen == (scene.sees() ? kAttemptsTold : 0));
    if (scene.sees()) CHECK(said.outcome.attempts_untold == 256);  // 400, when it last doubled
  }

  TEST_CASE("honest work is not seen as an attempt") {
    const auto bench = make_bench();
    if (!bench) return;
    Scene scene(*bench);
    const auto quiet = [&](const std::string& command) {
      const Said said = scene.run("set -e; cd /workspace; " + command);
      CAPTURE(command);
      CAPTURE(said.err);
      CHECK(said.outcome.exit_code == 0);
      for (const std::string& one : scene.seen) MESSAGE(one);
      CHECK(scene.seen.empty());
    };
    quiet(
        "mkdir -p a/b; echo x > a/b/c; cp -rp a d; mv d e; ln -s e f; chmod -R u+w e; rm -rf a e "
        "f");
    quiet("mkdir -p /dev /etc /tmp/x; touch -c -d @0 /tmp/x; mkfifo /tmp/x/p; rm -r /tmp/x");
    quiet("yes | head -n 1000 > /tmp/x; echo x > /dev/shm/y; sort /tmp/x > /dev/null");
    quiet("(" + std::string(kProbe) + "bind 0.0.0.0:80 bind 127.0.0.1:81 > /dev/null)");
    if (bench->engine().kind() != SandboxKind::kBubblewrap) return;  // images of tests have no more
    quiet("printf 'int main(void) { return 0; }' > m.c; cc -O2 m.c -o m; ./m");
    quiet(
        "git init -q .; git add m.c; "
        "git -c user.name=a -c user.email=b commit -q -m c; git gc -q; git status > /dev/null");
    quiet(
        "/usr/bin/python3 -c \""
        "import http.server, threading, urllib.request, sqlite3, subprocess, tempfile\n"
        "s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), "
        "http.server.SimpleHTTPRequestHandler)\n"
        "threading.Thread(target=s.serve_forever, daemon=True).start()\n"
        "urllib.request.urlopen('http://127.0.0.1:%d/m.c' % s.server_address[1]).read()\n"
        "d = sqlite3.connect('x.db'); d.execute('create table t (a)'); d.commit()\n"
        "subprocess.run(['true']); tempfile.TemporaryDirectory()\"");
  }
}
