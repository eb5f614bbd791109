// `proctor-worker selftest` as a user runs it: with less and less of what it may find on a host.
#include <unistd.h>

#include "common/base/json.h"
#include "tests/support/leftovers.h"
#include "tests/support/programs.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

// Nobody is at this socket, and nothing on this path but what is named.
CommandOutcome selftest(std::vector<std::string> before, std::vector<std::string> after) {
  CommandSpec spec;
  spec.argv = std::move(before);
  spec.argv.push_back(worker_program().string());
  spec.argv.push_back("selftest");
  spec.argv.insert(spec.argv.end(), after.begin(), after.end());
  spec.argv.insert(spec.argv.end(), {"--docker-socket", "/nonexistent/docker.sock"});
  spec.timeout = std::chrono::minutes(15);
  spec.output_max = std::size_t{4} << 20;
  return must(run_command(spec));
}

std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of('\n');
  return text.substr(text.rfind('\n', end) + 1, end - text.rfind('\n', end));
}

const Json& kind_of(const Json& report, const std::string& kind) {
  for (const Json& k : report["kinds"])
    if (k["kind"] == kind) return k;
  FAIL("no kind " << kind);
  return report;
}

}  // namespace

TEST_SUITE("selftest") {
  TEST_CASE("selftest says in its last line and by its exit code whether agents may run") {
    const TempDir dir = must(TempDir::create("selftest-here"));
    const CommandOutcome out = selftest({}, {"--json", "--scratch", dir.path().string()});
    REQUIRE_MESSAGE((out.exit_code == 0 || out.exit_code == 1), out.err);
    const Json report = must(parse_json(out.out, {.bytes_max = std::size_t{4} << 20}));
    CHECK(report["untrusted_agents"] == (out.exit_code == 0));
    CHECK(report["verdict"].get<std::string>().starts_with(out.exit_code == 0 ? "yes: " : "no: "));
    CHECK(contains(kind_of(report, "docker")["missing"].get<std::string>(), "/nonexistent"));
    for (const Json& kind : report["kinds"]) {
      if (!kind["missing"].get<std::string>().empty()) continue;
      CAPTURE(kind.dump());
      for (const char* limit : {"memory", "processes", "disk", "cpu", "file", "open_files"})
        CHECK(kind["limits"].contains(limit));
      for (const Json& attack : kind["cases"]) {
        CHECK(attack["verdict"] != "ESCAPED");
        CHECK(attack["verdict"] != "ERROR");
      }
    }
    CHECK(fs::is_empty(dir.path()));
    CHECK(leftovers_of(dir.path(), dir.path()) == "");
  }

  TEST_CASE("selftest of a user who is not root says who keeps no limit") {
    if (::geteuid() != 0) {
      MESSAGE("not run: only root can become another user");
      return;
    }
    const TempDir dir = must(TempDir::create("selftest-nobody"));
    fs::permissions(dir.path(), fs::perms(0777));
    // The build's folder may be closed to others.
    const fs::path program = dir.path() / "proctor-worker";
    fs::copy_file(worker_program(), program);
    CommandSpec spec;
    spec.argv = {"setpriv",
                 "--reuid",
                 "65534",
                 "--regid",
                 "65534",
                 "--clear-groups",
                 "env",
                 "HOME=/",
                 program.string(),
                 "selftest",
                 "--json",
                 "--docker-socket",
                 "/nonexistent/docker.sock",
                 "--scratch",
                 dir.path().string()};
    spec.timeout = std::chrono::minutes(15);
    spec.output_max = std::size_t{4} << 20;
    const CommandOutcome out = must(run_command(spec));
    REQUIRE_MESSAGE((out.exit_code == 0 || out.exit_code == 1), out.err);
    const Json report = must(parse_json(out.out, {.bytes_max = std::size_t{4} << 20}));
    CHECK(report["root"] == false);
    CHECK(contains(report["workspaces"].get<std::string>(), "copy"));
    CHECK(contains(kind_of(report, "oci")["missing"].get<std::string>(), "root"));
    const Json& bubblewrap = kind_of(report, "bubblewrap");
    if (bubblewrap["missing"] == "") {
      // Memory of many processes together is nobody's where a user has no control groups.
      for (const Json& attack : bubblewrap["cases"]) {
        CAPTURE(attack.dump());
        CHECK(attack["verdict"] != "ESCAPED");
        CHECK(attack["verdict"] != "ERROR");
      }
      if (bubblewrap["limits"]["memory"] == "rlimit") CHECK(out.exit_code == 1);
    }
  }

  TEST_CASE("selftest of a host that offers nothing says so") {
    if (::geteuid() != 0) {
      MESSAGE("not run: only root can hide a program");
      return;
    }
    // A mount namespace without the programs; bwrap is looked for in more places than PATH.
    const CommandOutcome out = selftest({"unshare", "--mount", "sh", "-c",
                                         "for p in bwrap runc; do at=$(command -v $p) || continue; "
                                         "mount --bind /dev/null \"$at\"; done; exec \"$@\"",
                                         "sh"},
                                        {});
    CHECK(out.exit_code == 1);
    CHECK(contains(out.out, "no bwrap on PATH"));
    CHECK(last_line(out.out) == "no: this host offers no sandbox at all");
  }

  TEST_CASE("selftest explains itself and refuses what it does not know") {
    CommandSpec help;
    help.argv = {worker_program().string(), "selftest", "--help"};
    const CommandOutcome told = must(run_command(help));
    CHECK(told.exit_code == 0);
    CHECK(contains(told.out, "Example: proctor-worker selftest"));
    CHECK(selftest({}, {"--frobnicate"}).exit_code == 2);
  }
}
