#include "worker/services/service_group.h"

#include <doctest/doctest.h>

#include "common/base/files.h"
#include "common/base/subprocess.h"

namespace proctor {
namespace {

using std::chrono::milliseconds;

Result<std::string> shell(const std::string& command, const fs::path& dir) {
  return run_for_output(
      {.argv = {"/bin/sh", "-c", command}, .cwd = dir, .env = {}, .stdin_bytes = {}});
}

}  // namespace

TEST_SUITE("services") {
  TEST_CASE("what fails is the host's until code of the workspace has been started") {
    struct Row {
      std::vector<bool> workspace;
      std::size_t failed;
      Blame blame;
    };
    const Row rows[] = {{{false}, 0, Blame::kHost},
                        {{true}, 0, Blame::kCandidate},
                        {{false, true}, 0, Blame::kHost},
                        {{false, true}, 1, Blame::kCandidate},
                        {{true, false}, 1, Blame::kCandidate},
                        {{false, false, true}, 1, Blame::kHost}};
    for (const Row& row : rows) CHECK(blame_for(row.workspace, row.failed) == row.blame);
  }

  TEST_CASE("every service is the loopback by its name") {
    CHECK(hosts_of_services({"db", "web-1"}) ==
          "127.0.0.1\tlocalhost sandbox\n::1\tlocalhost\n127.0.0.1\tdb\n127.0.0.1\tweb-1\n");
  }

  TEST_CASE("a readiness command is run until it succeeds, whatever is in it") {
    const auto dir = TempDir::create("proctor-readiness");
    REQUIRE(dir.ok());
    // Succeeds the third time; leaves a comment, changes its folder, reads its input.
    const std::string command = "cat; cd /; echo x >>" + (dir->path() / "tries").string() +
                                "; [ $(wc -l <" + (dir->path() / "tries").string() +
                                ") -ge 3 ] || exit 9 # done";
    const auto said = shell(until_it_succeeds(command, milliseconds(5)) + "; pwd", dir->path());
    REQUIRE(said.ok());
    CHECK(*said == dir->path().string() + "\n");
    CHECK(read_file(dir->path() / "tries", 100).value() == "x\nx\nx\n");
    CHECK(until_it_succeeds("x", milliseconds(1'050)).find("sleep 1.050 ") != std::string::npos);
    CHECK(until_it_succeeds("x", milliseconds(20)).find("sleep 0.020 ") != std::string::npos);
  }
}

}  // namespace proctor
