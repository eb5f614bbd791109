// A contract with an image must not notice who runs it: what a command sees, and how its end is
// told, is compared between Docker and OCI, on the same image.
#include <doctest/doctest.h>
#include <unistd.h>

#include "common/images/image_store.h"
#include "tests/integration/sandbox/docker_fixture.h"
#include "tests/integration/sandbox/engine_under_test.h"
#include "tests/support/test_image.h"
#include "worker/sandbox/runtime_files.h"

using namespace proctor;
using namespace proctor::testing;
using std::chrono::milliseconds;

namespace {

struct Seen {
  ExecOutcome outcome;
  std::string out, err;
};

// The same spec in both kinds.
class BothKinds {
 public:
  BothKinds(Bench& docker, const std::string& image)
      : docker_(docker), dir_(TempDir::create("proctor-parity").value()) {
    const auto written = write_test_image(dir_.path(), test_image_name());
    REQUIRE(written.ok());
    REQUIRE(written->id == image);  // an image has one id, whoever made the archive
    SandboxOptions options;
    options.owner = "test-parity-" + std::to_string(::getpid());
    options.images = dir_.path() / "store";
    REQUIRE(ImageStore::open(options.images).value().import_archive(written->archive).ok());
    auto engine = open_sandbox_engine(SandboxKind::kOci, options);
    if (!engine.ok()) FAIL(engine.error().detail);
    oci_ = std::move(*engine);
    REQUIRE(make_dirs(dir_.path() / "workspace").ok());
    spec.label = "3.1-parity";
    spec.image = image;
    spec.workspace = dir_.path() / "workspace";
    spec.env = {{"PATH", "/usr/bin:/bin"}, {"LANG", "C.UTF-8"}, {"TZ", "UTC"}};
    spec.memory_bytes = std::uint64_t{128} << 20;
    spec.processes = 40;
    spec.cpus = 1.5;
    spec.file_bytes = std::uint64_t{64} << 20;
    spec.cpu = milliseconds(20'000);
  }

  std::pair<Seen, Seen> run(const std::string& command,
                            milliseconds timeout = milliseconds(180'000)) {
    return {run_in(docker_.engine(), command, timeout), run_in(*oci_, command, timeout)};
  }

  SandboxSpec spec;

 private:
  Seen run_in(SandboxEngine& engine, const std::string& command, milliseconds timeout) {
    auto sandbox = engine.open(spec);
    if (!sandbox.ok()) FAIL(sandbox.error().detail);
    ExecSpec exec;
    exec.command = command;
    exec.timeout = timeout;
    exec.stdout_file = dir_.path() / "out";
    exec.stderr_file = dir_.path() / "err";
    const auto outcome = (*sandbox)->run(exec, {});
    if (!outcome.ok()) FAIL(outcome.error().detail);
    return {*outcome, read_file(exec.stdout_file, 1 << 20).value(),
            read_file(exec.stderr_file, 1 << 20).value()};
  }

  Bench& docker_;
  TempDir dir_;
  std::unique_ptr<SandboxEngine> oci_;
};

// Docker's bench, where OCI sandboxes can be had as well.
std::unique_ptr<Bench> bench_of_both() {
  auto bench = make_bench();
  if (!bench || (::geteuid() == 0 && !find_on_path("runc").empty())) return bench;
  MESSAGE("not run: OCI sandboxes need root and runc");
  return nullptr;
}

}  // namespace

TEST_SUITE("sandbox parity") {
  TEST_CASE("a command sees the same under Docker and under OCI") {
    const auto bench = bench_of_both();
    if (!bench) return;
    BothKinds both(*bench, bench->spec().image);
    const char* const looks[] = {
        "env | sort",
        "id",
        "pwd; hostname; cat /etc/hostname; umask",
        // Where something is mounted, and whether it may be written.
        "while read dev at type how rest; do echo \"$at ${how%%,*}\"; done < /proc/mounts | sort | "
        // Which sandboxes of one kind make for themselves, and the Engine for its own.
        "grep -vE '^/dev/(full|null|random|tty|urandom|zero) '",
        "grep -E 'core file|file size|cpu time' /proc/self/limits",
        "cd /sys/fs/cgroup; cat memory/memory.limit_in_bytes pids/pids.max cpu/cpu.cfs_quota_us; "
        "ls | sort",
        "grep -E '^(Cap|NoNewPrivs|Seccomp:|Groups|Uid|Gid)' /proc/self/status",
        "ls -a /; ls /dev; ls /sys/class/net; ls /proc/sys/net/ipv4/ip_unprivileged_port_start",
        "cat /proc/1/cmdline; cat /proc/sys/net/ipv4/ip_unprivileged_port_start",
        "cat /proc/keys /proc/timer_list /proc/acpi 2>&1; ls -A /sys/firmware /proc/scsi 2>&1",
    };
    for (const char* look : looks) {
      CAPTURE(look);
      const auto [docker, oci] = both.run(look);
      CHECK(docker.out == oci.out);
      CHECK(docker.err == oci.err);
      CHECK(docker.outcome.exit_code == oci.outcome.exit_code);
      CHECK_FALSE((docker.out.empty() && docker.err.empty()));
    }
  }

  TEST_CASE("a command's end is told the same under Docker and under OCI") {
    const auto bench = bench_of_both();
    if (!bench) return;
    BothKinds both(*bench, bench->spec().image);
    const char* const ends[] = {"echo out; echo err >&2; exit 3",
                                "no-such-command",
                                "sh -c 'kill -SEGV $$'",
                                "kill -KILL $$",
                                "tail /dev/zero",
                                "head -c 100000000 /dev/zero > /workspace/big",
                                "touch /usr/x",
                                "unshare -U true",
                                "mount -t tmpfs none /tmp",
                                "while :; do :; done"};
    for (const char* command : ends) {
      CAPTURE(command);
      const auto [docker, oci] = both.run(command, milliseconds(4'000));
      CHECK(docker.outcome.end == oci.outcome.end);
      CHECK(docker.outcome.exit_code == oci.outcome.exit_code);
      CHECK(docker.outcome.signal == oci.outcome.signal);
      CHECK(docker.out == oci.out);
    }
  }
}
