// Heavy records: references of repositories and patches for git.
#include "coordinator/cvdp/dataset/prepare.h"

#include <doctest/doctest.h>

#include <set>

#include "common/base/files.h"
#include "coordinator/cvdp/dataset/import.h"
#include "coordinator/cvdp/pycompat/python_text.h"
#include "tests/unit/cvdp/shared_data.h"

using namespace proctor;
using namespace proctor::cvdp;

namespace {

constexpr const char* kCommit = "0123456789abcdef0123456789abcdef01234567";

Record record_of(const std::string& json) {
  std::vector<Finding> findings;
  return check_record(read_json(json).value(), 1, findings);
}

std::string heavy(const std::string& repo, const std::string& commit, const std::string& patch) {
  return R"({"id":"cvdp_agentic_heavy_x_0001","categories":["cid003","easy"],"prompt":"p",)"
         R"("context":{"repo":")" +
         repo + R"(","commit":")" + commit + R"("},"patch":)" + patch +
         R"(,"harness":{"docker-compose.yml":"services: {d: {image: i, command: [pytest], volumes: [./src/:/src/:ro]}}","src/t.py":"t"}})";
}

}  // namespace

TEST_SUITE("cvdp heavy") {
  TEST_CASE("a record is heavy by what it holds, and its flags stand above it") {
    const auto own = heavy_source(record_of(heavy("r", kCommit, "{}")), "", "");
    REQUIRE(own.ok());
    CHECK((*own)->repository == "r");
    const auto other = heavy_source(record_of(heavy("r", "x", "{}")), "https://h/r", kCommit);
    REQUIRE(other.ok());
    CHECK((*other)->repository == "https://h/r");
    for (const char* commit : {"", "HEAD", "-x", "0123"})
      CHECK_FALSE(heavy_source(record_of(heavy("r", commit, "{}")), "", "").ok());
    CHECK_FALSE(heavy_source(record_of(heavy("--upload-pack=x", kCommit, "{}")), "", "").ok());
    const auto plain = heavy_source(
        record_of(R"({"id":"cvdp_agentic_x_0001","categories":["cid003","easy"],"prompt":"p",)"
                  R"("context":{"rtl/a.sv":"x"},"patch":{},"harness":{}})"),
        "", "");
    REQUIRE(plain.ok());
    CHECK_FALSE(*plain);
  }

  TEST_CASE("bare names are folders or bundles of the base, and nothing outside") {
    const std::set<std::string> there = {"/b/both", "/b/both.bundle", "/b/one.bundle"};
    const auto resolved = [&](const std::string& name, const std::string& base = "/b") {
      return resolve_reference(name, base,
                               [&](const std::string& path) { return there.contains(path); });
    };
    CHECK(*resolved("both") == "/b/both");
    CHECK(*resolved("one") == "/b/one.bundle");
    CHECK(*resolved("none") == "/b/none");
    CHECK(*resolved("/elsewhere") == "/elsewhere");
    CHECK(*resolved("https://h/r") == "https://h/r");
    CHECK(*resolved("git@h:r") == "git@h:r");
    CHECK_FALSE(resolved("../secret").ok());
    CHECK_FALSE(resolved("r", "").ok());
  }

  TEST_CASE("the payload is the folder external of repositories that are CVDP's") {
    CHECK(payload_folder("/b/cvdp_cpu") == "external");
    CHECK(payload_folder("https://h/cvdp-cpu.git/") == "external");
    CHECK(payload_folder("/b/cvdp_ext_cpu") == "");
    CHECK(payload_folder("/cvdp_work/cpu") == "");
  }

  TEST_CASE("GitHub is asked over ssh, as upstream's own cases have it") {
    CHECK(github_over_ssh("https://github.com/o/r") == "git@github.com:o/r.git");
    CHECK(github_over_ssh("https://github.com/o/r.git") == "git@github.com:o/r.git");
    CHECK(github_over_ssh("https://gitlab.com/o/r") == "https://gitlab.com/o/r");
  }

  TEST_CASE("GitHub's addresses are rewritten as upstream does it") {
    if (!cvdp::testing::have_shared_data("GitHub's addresses")) return;
    const Value cases = cvdp::testing::units("normalize_repo_url");
    for (const Member& m : *cases.object()) {
      CAPTURE(m.key);
      CHECK(github_over_ssh(m.key) == *m.value.string());
    }
  }

  TEST_CASE("patches of datasets become one diff for git, whatever headers they have") {
    const Record r =
        record_of(heavy("r", kCommit,
                        R"({"a.v":"@@ -1 +1 @@\n-x\n+y","n.v":"@@ -0,0 +1,1 @@\n+n\n",)"
                        R"("h.v":"--- a/external/h.v\n+++ b/external/h.v\n@@ -1 +1 @@\n-x\n+y\n",)"
                        R"("redacted.v":""})"));
    const auto diff = heavy_reference(r);
    REQUIRE(diff.ok());
    CHECK(*diff ==
          "diff --git a/a.v b/a.v\n--- a/a.v\n+++ b/a.v\n@@ -1 +1 @@\n-x\n+y\n"
          "diff --git a/n.v b/n.v\nnew file mode 100644\n--- /dev/null\n+++ b/n.v\n@@ -0,0 +1,1 "
          "@@\n+n\n"
          "diff --git a/h.v b/h.v\n--- a/h.v\n+++ b/h.v\n@@ -1 +1 @@\n-x\n+y\n");
    CHECK_FALSE(heavy_reference(record_of(heavy("r", kCommit, R"({"a.v":"no hunk"})"))).ok());
    CHECK_FALSE(
        heavy_reference(record_of(heavy("r", kCommit, R"({"../a":"@@ -1 +1 @@\n-x\n+y"})"))).ok());
  }

  TEST_CASE("its harness sees the payload whole and lies beside it") {
    ImportSettings settings;
    settings.image_id = [](const std::string&) {
      return Result<std::string>("sha256:" + std::string(64, 'a'));
    };
    const auto files =
        make_contract(record_of(heavy("r", kCommit, R"({"a.v":"@@ -1 +1 @@\n-x\n+y"})")),
                      "../repos/cvdp.git", kCommit, settings);
    REQUIRE(files.ok());
    const std::string& yaml = files->front().bytes;
    for (const char* part :
         {"from: .\n", "from: .cvdp-harness/src", "at: /src", "at: /rundir", "working_dir: /rundir",
          "to: .cvdp-harness/src/t.py", "reference_patch"})
      CHECK_MESSAGE(yaml.find(part) != std::string::npos, part, "\n", yaml);
    CHECK(yaml.find("/code/rtl") == std::string::npos);
    CommitExtras extras;
    extras.tree = std::string(40, 'b');
    extras.golden = true;
    const auto stream = commit_stream(record_of(heavy("r", kCommit, R"({"a.v":"D"})")), 1, extras);
    REQUIRE(stream.ok());
    CHECK(stream->find("M 040000 " + extras.tree + " \"\"\n") != std::string::npos);
    CHECK(stream->find("golden_ref_solution.patch") != std::string::npos);
    CHECK(stream->find("\"repo\"") == std::string::npos);
  }
}
