// Bad input, one test each: `check` says where and exits with 2, `run` refuses and leaves nothing.
#include <algorithm>

#include "tests/support/campaign_scene.h"

using namespace proctor;
using namespace proctor::testing;
using namespace std::chrono_literals;

namespace {

CampaignShape small() {
  CampaignShape shape;
  shape.replicates = 1;
  return shape;
}

// Both commands refuse with these words; `place` is "file:line:column: field".
void refused(const CampaignScene& scene, std::string_view place, std::string_view words = "") {
  for (const char* command : {"check", "run"}) {
    CAPTURE(command);
    const CommandOutcome out = scene.run(command);
    CHECK_MESSAGE(out.exit_code == 2, out.err);
    CHECK_MESSAGE(contains(out.err, place), out.err);
    CHECK_MESSAGE(contains(out.err, words), out.err);
  }
  CHECK_FALSE(fs::exists(scene.state() / "journal.sqlite"));
  CHECK_FALSE(fs::exists(scene.folder() / "registration.json"));
}

}  // namespace

TEST_SUITE("campaign") {
  TEST_CASE("a commit the repository does not have is refused at its line") {
    const CampaignScene scene(small());
    const std::string text = scene.read(scene.contract());
    const std::size_t at = text.find("commit: \"") + 9;
    std::string other = text;
    other.replace(at, 40, std::string(40, 'a'));
    scene.write(scene.contract(), other);
    refused(scene, "contracts/add.yaml:8:", "has no commit aaaa");
  }

  TEST_CASE("a partial clone that lacks files of its commit is refused at its line") {
    const CampaignScene scene(small());
    const fs::path full = scene.temp() / "full";
    fs::rename(scene.repository(), full);
    output_of({"git", "config", "uploadpack.allowFilter", "true"}, full);
    output_of({"git", "clone", "-q", "--no-checkout", "--filter=blob:none",
               "file://" + full.string(), scene.repository().string()});
    refused(scene, "contracts/add.yaml:8:", "is a partial clone, which lacks files of commit ");
    output_of({"git", "fetch", "-q", "--refetch", "--no-filter"}, scene.repository());
    const CommandOutcome mended = scene.run("check");
    CHECK_MESSAGE(mended.exit_code == 0, mended.err);
  }

  TEST_CASE("a missing repository is refused at its line") {
    const CampaignScene scene(small());
    scene.edit(scene.contract(), "../repo", "../gone");
    refused(scene, "contracts/add.yaml:8:", "there is no repository");
  }

  TEST_CASE("a folder that is not a repository is refused at its line") {
    const CampaignScene scene(small());
    REQUIRE(remove_tree(scene.repository() / ".git").ok());
    refused(scene, "contracts/add.yaml:", "is not a git repository");
  }

  TEST_CASE("a dirty repository is fine and its changes are not seen") {
    const CampaignScene scene(small());
    scene.write(scene.repository() / "calc.sh", "echo $(($1 + $2))\n");
    scene.write(scene.repository() / "new-file", "not committed");
    CHECK(scene.run("check").exit_code == 0);
    const CommandOutcome ran = scene.run("run");
    CHECK_MESSAGE(ran.exit_code == 0, ran.err);
    CHECK(scene.number("SELECT count(*) FROM runs WHERE outcome = 'failure'") == 1);
    CHECK(scene.read(scene.repository() / "calc.sh") == "echo $(($1 + $2))\n");
  }

  TEST_CASE("a reference patch that does not apply is refused at its line") {
    const CampaignScene scene(small());
    scene.edit(scene.folder() / "contracts/fix.patch", "-echo $(($1 - $2))", "-echo $(($1 * $2))");
    refused(scene, "contracts/add.yaml:",
            "reference_patch: found \"fix.patch\": apply patch: error: patch failed: calc.sh:1");
  }

  TEST_CASE("a reference patch that changes nothing is refused") {
    const CampaignScene scene(small());
    const fs::path patch = scene.folder() / "contracts/fix.patch";
    scene.edit(patch, "+echo $(($1 + $2))", "+echo $(($1 - $2))");
    refused(scene, "contracts/add.yaml:", "\"fix.patch\": it changes nothing");
    scene.write(patch, "");
    refused(scene, "contracts/add.yaml:", "\"fix.patch\": it is empty");
  }

  TEST_CASE("a reference patch is what its submodule has, and not another commit of it") {
    const CampaignScene scene(small());
    const fs::path part = scene.temp() / "part", repo = scene.repository();
    const auto run_git = [](const fs::path& dir, std::vector<std::string> args) {
      args.insert(args.begin(), {"git", "-c", "user.name=t", "-c", "user.email=t@localhost"});
      return output_of(std::move(args), dir);
    };
    run_git(scene.temp(), {"init", "-q", part.string()});
    scene.write(part / "sub.sh", "echo no\n");
    run_git(part, {"add", "-A"});
    run_git(part, {"commit", "-qm", "part"});
    run_git(repo, {"-c", "protocol.file.allow=always", "submodule", "--quiet", "add", part.string(),
                   "lib"});
    run_git(repo, {"commit", "-qam", "with lib"});
    const std::string text = scene.read(scene.contract());
    const std::size_t at = text.find("commit: \"");
    const auto contract = [&](const std::string& submodules) {
      std::string out = text;
      out.replace(at, 50, "commit: \"" + run_git(repo, {"rev-parse", "HEAD"}) + "\"" + submodules);
      scene.write(scene.contract(), out);
    };
    const fs::path patch = scene.folder() / "contracts/fix.patch";
    scene.write(patch, scene.read(patch) +
                           "diff --git a/lib/sub.sh b/lib/sub.sh\n--- a/lib/sub.sh\n"
                           "+++ b/lib/sub.sh\n@@ -1 +1 @@\n-echo no\n+echo yes\n");
    contract("");
    refused(scene, "contracts/add.yaml:", "lib/sub.sh: does not exist in index");
    contract("\n  submodules: true");
    const CommandOutcome checked = scene.run("check");
    CHECK_MESSAGE(checked.exit_code == 0, checked.err);
    scene.write(patch,
                "diff --git a/lib b/lib\nindex 1234567..7654321 160000\n--- a/lib\n+++ b/lib\n"
                "@@ -1 +1 @@\n-Subproject commit 1\n+Subproject commit 2\n");
    refused(scene, "contracts/add.yaml:", "it moves the commit of a submodule");
  }

  TEST_CASE("two contracts with one id are refused and both are named") {
    CampaignShape shape = small();
    shape.tasks = {"add", "sum"};
    const CampaignScene scene(shape);
    scene.edit(scene.contract("sum"), "id: sum\n", "id: add\n");
    refused(scene, "contracts/sum.yaml:1:", "contracts/add.yaml");
  }

  TEST_CASE("a contract that no pattern names is told of") {
    const CampaignScene scene;
    CHECK_FALSE(contains(scene.run("check").out, "is no task"));
    scene.write(scene.folder() / "contracts/more.yml", "id: more\n");
    CHECK(contains(scene.run("check").out, "note: contracts/more.yml is no task"));
  }

  TEST_CASE("malformed YAML is refused at its line and column") {
    const CampaignScene scene(small());
    scene.write(scene.contract(), scene.read(scene.contract()) + "broken: [1, 2\n");
    refused(scene, "contracts/add.yaml:");
    scene.write(scene.folder() / "campaign.yaml", "name: [\n");
    refused(scene, "campaign.yaml:");
  }

  TEST_CASE("every error of several files is said at once") {
    const CampaignScene scene(small());
    scene.edit(scene.folder() / "campaign.yaml", "replicates:", "replicate:");
    scene.edit(scene.folder() / "campaign.yaml", "\"50.00\"", "\"-1\"");
    scene.edit(scene.contract(), "timeout: 120s", "timeout: soon");
    refused(scene, "campaign.yaml:5:", "replicates");
    refused(scene, "budget.global", "-1");
    refused(scene, "contracts/add.yaml:13:", "soon");
  }

  TEST_CASE("a duplicate key and bytes that are not UTF-8 are refused at their place") {
    const CampaignScene scene(small());
    const std::string good = scene.read(scene.contract());
    scene.write(scene.contract(), good + "id: again\n");
    refused(scene, "contracts/add.yaml:", "id");
    scene.write(scene.contract(), good + "# \xff\xfe\n");
    refused(scene, "contracts/add.yaml:");
  }

  TEST_CASE("caps that do not nest and money of 17 digits are refused") {
    CampaignShape shape = small();
    shape.run = "60.00";
    const CampaignScene scene(shape);
    refused(scene, "campaign.yaml:", "budget.run");
    scene.edit(scene.folder() / "campaign.yaml", "60.00", "0.12345678901234567");
    refused(scene, "campaign.yaml:", "budget.run");
  }

  TEST_CASE("a check without a command is refused") {
    const CampaignScene scene(small());
    scene.edit(scene.contract(), ", command: sh tests/t.sh", "");
    refused(scene, "contracts/add.yaml:13:", "command");
  }

  TEST_CASE("a deep and a huge file are refused without being swallowed") {
    const CampaignScene scene(small());
    const std::string good = scene.read(scene.contract());
    constexpr std::size_t kDeep = 20'000, kHuge = std::size_t{40} << 20;
    scene.write(scene.contract(), good + "deep: " + std::string(kDeep, '[') + "\n");
    refused(scene, "contracts/add.yaml");
    scene.write(scene.contract(), good + "# " + std::string(kHuge, 'x') + "\n");
    refused(scene, "contracts/add.yaml");
  }

  TEST_CASE("a command that is not there is named with the one that was meant") {
    const CommandOutcome out = proctor::testing::proctor({"rnu", "camp"});
    CHECK(out.exit_code == 2);
    CHECK(out.err == "proctor: there is no command rnu (did you mean run?)\n");
    CHECK(contains(proctor::testing::proctor({"frobnicate"}).err,
                   "there are init copy try logs diff check plan run"));
  }

  TEST_CASE("a folder that is not there and one without campaign.yaml are refused") {
    const CampaignScene scene(small());
    CHECK(proctor::testing::proctor({"run", (scene.temp() / "nowhere").string()}).exit_code == 2);
    fs::remove(scene.folder() / "campaign.yaml");
    refused(scene, "campaign.yaml");
  }

  TEST_CASE("an image without an engine is one line and a fault of the machine") {
    const CampaignScene scene(small());
    scene.edit(scene.contract(), "environment:\n",
               "environment:\n  image: \"no-such@sha256:" + std::string(64, '0') + "\"\n");
    CommandSpec spec;
    spec.argv = {"env", "PROCTOR_DOCKER_SOCKET=" + (scene.temp() / "none.sock").string(),
                 proctor_program().string(), "run", scene.folder().string()};
    const CommandOutcome out = must(run_command(spec));
    CHECK_MESSAGE(out.exit_code == 4, out.err);
    CHECK_MESSAGE(contains(out.err, "no Docker Engine answers at"), out.err);
    CHECK_MESSAGE(std::count(out.err.begin(), out.err.end(), '\n') == 1, out.err);
    CHECK(!fs::exists(scene.folder() / "registration.json"));
    // With a mistake in the input it is said with its place, and both count.
    scene.edit(scene.contract(), "reference_patch: fix.patch", "reference_patch: broken.patch");
    scene.write(scene.folder() / "contracts/broken.patch", "not a patch\n");
    const CommandOutcome both = must(run_command(spec));
    CHECK_MESSAGE(both.exit_code == 2, both.err);
    CHECK_MESSAGE(contains(both.err, "environment.image: found no Docker Engine answers"),
                  both.err);
    CHECK_MESSAGE(contains(both.err, "reference_patch: found"), both.err);
  }
}
