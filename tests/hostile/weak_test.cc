// The selftest proves that it can fail: each sandbox that is weakened on purpose is found, by name,
// and nothing that would harm the host is tried in it.  "The host" is a machine of its own here,
// made of namespaces, whose processes a destructive attack would kill.
#include "tests/hostile/weak.h"

#include "common/base/json.h"
#include "tests/support/programs.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

// In its first process: a network, somebody who must live on, only one kind of sandbox, and for
// that an engine of its own if need be.
constexpr const char* kHost = R"(
ip link set lo up || exit 99
# An engine at the usual place has its processes outside: none of them would be seen from here.
if [ -S /var/run/docker.sock ]; then mount --bind /dev/null /var/run/docker.sock; fi
if [ -n "$ENGINE" ]; then . "$ENGINE" && docker_ensure >&2 || exit 99; fi
for other in $OTHERS; do at=$(command -v $other) && mount --bind /dev/null "$at"; done
setsid sleep 1000 &
victim=$!
"$WORKER" selftest --json --docker-socket "${PROCTOR_DOCKER_SOCKET:-/nonexistent}" --scratch "$SCRATCH"
code=$?
kill -0 $victim 2>/dev/null && echo 'the neighbour lives' >&2
if [ -n "$ENGINE" ]; then docker_stop_ours; fi
exit $code
)";

struct Found {
  CommandOutcome outcome;
  Json report;
};

Found selftest_with(const WeakKind& kind, const std::string& changes, const std::string& others) {
  const TempDir dir = must(TempDir::create("selftest-weak"));
  fs::permissions(dir.path(), fs::perms(0755));
  REQUIRE(make_dirs(dir.path() / "scratch").ok());
  const std::string bin = lay_weak_program(dir.path(), kind, changes);
  CommandSpec spec;
  spec.argv = {"unshare", "-p", "-n", "-m", "-f", "--mount-proc", "--kill-child", "env",
               "PROCTOR_DOCKER_SOCKET=", std::string("ENGINE=") + kind.engine,
               "XDG_CACHE_HOME=" + (dir.path() / "scratch").string(), "OTHERS=" + others,
               "WORKER=" + worker_program().string(),
               "SCRATCH=" + (dir.path() / "scratch").string(),
               // What others left is told from what is ours by numbers of processes, which are
               // counted anew in there.
               "TMPDIR=" + (dir.path() / "scratch").string(),
               "PATH=" + bin + ":/usr/sbin:/usr/bin:/sbin:/bin", "sh", "-c", kHost};
  spec.timeout = std::chrono::seconds(90);
  spec.output_max = std::size_t{4} << 20;
  Found out{must(run_command(spec)), {}};
  CAPTURE(out.outcome.err);
  REQUIRE((out.outcome.exit_code == 0 || out.outcome.exit_code == 1));
  out.report = must(parse_json(out.outcome.out, {.bytes_max = std::size_t{4} << 20}));
  return out;
}

const Json& kind_of(const Json& report, const std::string& kind) {
  for (const Json& k : report["kinds"])
    if (k["kind"] == kind) return k;
  FAIL("no kind " << kind);
  return report;
}

}  // namespace

TEST_SUITE("weakened") {
  TEST_CASE("each weakened sandbox is found by name and nothing that harms is tried in it" *
            doctest::test_suite("full")) {
    const WeakKind kind = weak_kind();
    if (!may_weaken(kind)) return;
    for (const Weakness& weak : kind.weaknesses) {
      CAPTURE(std::string(weak.name));
      const Found found = selftest_with(kind, weak.changes, kind.others);
      const Json& told = kind_of(found.report, kind.kind);
      CAPTURE(told.dump());
      CHECK(found.outcome.exit_code == 1);
      CHECK(contains(found.outcome.err, "the neighbour lives"));
      CHECK(told["missing"] == "");
      CHECK(told["contained"] == false);
      CHECK(contains(told["told"].get<std::string>(), "escaped: isolation"));
      bool seen = false;
      for (const Json& attack : told["cases"]) {
        CAPTURE(attack.dump());
        const std::string name = attack["name"].string();
        if (name == "isolation") {
          seen = attack["verdict"] == "ESCAPED" &&
                 contains(attack["detail"].get<std::string>(), weak.seen);
        } else if (name != "network" && name != "other-processes" && name != "odd-names") {
          CHECK(attack["verdict"] == "NOT TRIED");
        }
      }
      CHECK(seen);
      CHECK(contains(found.report["verdict"].get<std::string>(), "no: "));
    }
  }

  TEST_CASE("a kind as it should be is found fit where another is weakened and the answer is no") {
    const WeakKind kind = weak_kind();
    if (!may_weaken(kind)) return;
    const Found found = selftest_with(kind, kind.weaknesses.front().changes, "");
    CHECK(found.outcome.exit_code == 1);
    CHECK(contains(found.outcome.err, "the neighbour lives"));
    CHECK(kind_of(found.report, kind.kind)["contained"] == false);
    CHECK(contains(found.report["verdict"].get<std::string>(), "no: "));
    for (const Json& other : found.report["kinds"]) {
      const bool same = other["kind"] == kind.kind || other["kind"] == kind.likewise;
      if (same || other["missing"] != "") continue;
      CAPTURE(other.dump());
      CHECK(other["contained"] == true);
    }
  }
}
