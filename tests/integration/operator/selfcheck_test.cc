// `proctor selfcheck` with real sandboxes: what it says of tasks that were made good and bad on
// purpose, what it does not do twice, and that a killed one goes on.
#include <csignal>

#include "coordinator/shell/state_folder.h"
#include "tests/support/campaign_scene.h"

using namespace proctor;
using namespace proctor::testing;
using namespace std::chrono_literals;

namespace {

constexpr auto kLong = 1800s;
constexpr const char* kCheck = "command: sh tests/t.sh";

// Each line of it matters to `kSums`, and a test comes with it.
constexpr const char* kRepair =
    "diff --git a/calc.sh b/calc.sh\n--- a/calc.sh\n+++ b/calc.sh\n@@ -1 +1,4 @@\n"
    "-echo $(($1 - $2))\n"
    "+sum=$(($1 + $2))\n"
    "+test \"$sum\" -ne 100 || sum=hundred\n"
    "+test \"$sum\" != 7 || sum=seven\n"
    "+echo \"$sum\"\n";
constexpr const char* kTests =
    "diff --git a/tests/more.sh b/tests/more.sh\nnew file mode 100644\n--- /dev/null\n"
    "+++ b/tests/more.sh\n@@ -0,0 +1 @@\n+test \"$(sh calc.sh 3 4)\" = seven\n";
constexpr const char* kSums =
    "command: 'test \"$(sh calc.sh 2 3)\" = 5 && test \"$(sh calc.sh 60 40)\" = hundred && test "
    "\"$(sh calc.sh 3 4)\" = seven && test \"$(sh calc.sh 50 51)\" = 101 && test \"$(sh calc.sh 4 "
    "4)\" = 8'";

// The verdicts that were kept, by task.
Json kept(const CampaignScene& scene) {
  return parse_json(scene.read(scene.folder() / "reports/selfcheck.json")).value();
}
Json task_of(const CampaignScene& scene, const std::string& id) {
  const Json all = kept(scene);
  for (const Json& task : all.at("tasks"))
    if (task.at("id") == id) return task;
  FAIL("no result of " << id);
  return {};
}
std::string verdict_of(const CampaignScene& scene, const std::string& id) {
  return task_of(scene, id).at("verdict").get<std::string>();
}

CampaignScene scene_of(std::vector<std::string> tasks) {
  CampaignShape shape;
  shape.tasks = std::move(tasks);
  shape.methods = {"noop", solving_method("agent")};
  shape.workers = 1;
  shape.slots = 2;
  return CampaignScene(shape);
}

}  // namespace

TEST_SUITE("selfcheck") {
  TEST_CASE("a good task is sound, and what is wrong with others is named") {
    const CampaignScene scene = scene_of({"good", "leaves", "open", "solved", "wrong"});
    scene.write(scene.folder() / "contracts/whole.patch", std::string(kTests) + kRepair);
    for (const char* task : {"good", "open"})
      scene.edit(scene.contract(task), "fix.patch", "whole.patch");
    scene.edit(scene.contract("good"), kCheck, kSums);
    // Asks for the test of the patch alone, which nothing protects.
    scene.edit(scene.contract("open"), kCheck, "command: test -s tests/more.sh");
    scene.edit(scene.contract("open"), "protected: [\"tests/**\"]", "protected: [\"golden/**\"]");
    scene.edit(scene.contract("solved"), kCheck, "command: test -s calc.sh");
    scene.edit(scene.contract("wrong"), kCheck, "command: 'test \"$(sh calc.sh 2 3)\" = 6'");
    // Runs the candidate's code in the judge's own process, and believes its exit code.
    scene.edit(scene.contract("leaves"), kCheck,
               "command: 'set -- 2 3; . ./calc.sh > $HOME/sum; test \"$(cat $HOME/sum)\" = 5'");
    const CommandOutcome out = scene.run("selfcheck", {"--repeats", "2"}, kLong);
    CHECK_MESSAGE(out.exit_code == 1, out.err);
    CHECK_MESSAGE(verdict_of(scene, "good") == "sound", out.out);
    CHECK_MESSAGE(verdict_of(scene, "leaves") == "unsound: early_exit passed", out.out);
    CHECK(contains(out.out, "fail_to_pass"));
    CHECK(task_of(scene, "good").at("mutants").at("decided") == 13);
    CHECK(task_of(scene, "good").at("mutants").at("undecided") == 0);
    CHECK(contains(out.out, "good    sound     reference 2/2, noop 0/2, 13 of 13 mutants die"));
    CHECK_MESSAGE(verdict_of(scene, "open") == "unsound: tests_only passed (tests/more.sh)",
                  out.out);
    CHECK(contains(out.out, "policy.protected"));
    CHECK_MESSAGE(verdict_of(scene, "solved") == "unsound: noop passed", out.out);
    CHECK_MESSAGE(verdict_of(scene, "wrong").starts_with("unsound: reference failed (check sums"),
                  out.out);
    CHECK_MESSAGE(contains(out.out, "proctor try " + scene.folder().string() + " wrong reference"),
                  out.out);
    CHECK_MESSAGE(contains(out.out, "1 sound, 4 unsound"), out.out);
    // It is no part of the campaign.
    CHECK(!fs::exists(scene.folder() / "registration.json"));
    CHECK(!fs::exists(scene.state() / "journal.sqlite"));

    // What is known is not run again; the settings or the contract being others, it is.
    const CommandOutcome again = scene.run("selfcheck", {"good", "--repeats", "2"}, kLong);
    CHECK_MESSAGE(again.exit_code == 0, again.err);
    CHECK_MESSAGE(contains(again.out, "1 known from before"), again.out);
    CHECK(contains(again.out, "It cost 0.00"));
    scene.edit(scene.contract("solved"), "command: test -s calc.sh", kCheck);
    const CommandOutcome mended = scene.run("selfcheck", {"solved", "--repeats", "2"}, kLong);
    CHECK_MESSAGE(mended.exit_code == 0, mended.out);
    CHECK(!contains(mended.out, "known from before"));
    CHECK(verdict_of(scene, "solved") == "weak");  // its reference is one line
    CHECK(verdict_of(scene, "good") == "sound");
    const CommandOutcome json = scene.run("selfcheck", {"good", "--repeats", "2", "--json"}, kLong);
    CHECK(json.exit_code == 0);
    CHECK(parse_json(json.out).value() == kept(scene));
    // Results of acceptance that ran once say nothing of one that is repeated.
    const fs::path yaml = scene.folder() / "campaign.yaml";
    scene.write(yaml, scene.read(yaml) + "acceptance: {rerun: 1}\n");
    const CommandOutcome repeated = scene.run("selfcheck", {"solved", "--repeats", "2"}, kLong);
    CHECK_MESSAGE(repeated.exit_code == 0, repeated.out);
    CHECK(!contains(repeated.out, "known from before"));
    CHECK(task_of(scene, "solved").at("rerun") == 1);
    scene.require_nothing_left();
  }

  TEST_CASE("a task that measures chance is flaky") {
    const CampaignScene scene = scene_of({"add"});
    // The seeds of runs are the plan's, so this comes out the same every time.
    scene.edit(scene.contract(), kCheck,
               "command: 'test $((PROCTOR_SEED % 2)) = 0 && sh tests/t.sh'");
    const CommandOutcome out = scene.run("selfcheck", {"--repeats", "8", "--mutants", "0"}, kLong);
    CHECK_MESSAGE(out.exit_code == 1, out.err);
    CHECK_MESSAGE(verdict_of(scene, "add").starts_with("flaky: reference "), out.out);
    CHECK(contains(out.out, "proctor screen " + scene.folder().string() + " add"));
    scene.require_nothing_left();
  }

  TEST_CASE("what it writes beside a campaign's reports is no stranger to verify") {
    CampaignShape shape;
    shape.methods = {"noop"};
    shape.replicates = 1;
    const CampaignScene scene(shape);
    scene.run("selfcheck", {"--repeats", "1"}, kLong);
    REQUIRE(fs::exists(scene.folder() / "reports/selfcheck.json"));
    CHECK((fs::status(scene.folder() / "reports").permissions() & fs::perms::mask) ==
          fs::perms::owner_all);
    REQUIRE(scene.run("run").exit_code == 0);
    const CommandOutcome verify = scene.run("verify");
    CHECK_MESSAGE(verify.exit_code == 0, verify.out);
  }

  TEST_CASE("a killed one goes on where it was") {
    const CampaignScene scene = scene_of({"add"});
    const std::vector<std::string> flags{"--repeats", "12"};
    Child child = scene.start("selfcheck", flags);
    const StateFolder place{scene.state() / "selfcheck"};
    const auto ended = [&] {
      std::vector<fs::path> out;
      std::error_code ec;
      for (fs::recursive_directory_iterator it(place.runs(), ec), end; !ec && it != end;
           it.increment(ec))
        if (it->path().filename() == "report.json" && !contains(it->path().string(), "/.incoming/"))
          out.push_back(it->path());
      return out;
    };
    REQUIRE_MESSAGE(eventually([&] { return 3 <= ended().size(); }), scene.said());
    child.signal(SIGKILL);
    (void)child.wait(300s);
    const std::vector<fs::path> before = ended();
    std::map<fs::path, std::string> bytes;
    for (const fs::path& file : before) bytes[file] = scene.read(file);
    CHECK(!fs::exists(scene.folder() / "reports/selfcheck.json"));
    const CommandOutcome out = scene.run("selfcheck", flags, kLong);
    CHECK_MESSAGE(out.exit_code == 0, (out.err + out.out));
    CHECK(verdict_of(scene, "add") == "weak");
    for (const auto& [file, text] : bytes) CHECK_MESSAGE(scene.read(file) == text, file);
    scene.require_nothing_left();
  }

  TEST_CASE("a task that this host cannot run says so and keeps no other from its verdict") {
    const CampaignScene scene = scene_of({"add", "lua"});
    scene.edit(scene.contract("lua"), "toolchains: [", "toolchains: [{path: /opt/no-such-lua}, ");
    const CommandOutcome out = scene.run("selfcheck", {"--repeats", "1"}, kLong);
    CHECK_MESSAGE(out.exit_code == 1, out.err);
    CHECK_MESSAGE(verdict_of(scene, "lua").starts_with("unsound: reference cannot run here ("),
                  out.out);
    CHECK_MESSAGE(verdict_of(scene, "add") == "weak", out.out);
    scene.require_nothing_left();
  }

  TEST_CASE("a limit of money ends it, and wrong words are wrong input") {
    const CampaignScene scene = scene_of({"add"});
    const CommandOutcome poor =
        scene.run("selfcheck", {"--repeats", "1", "--usd", "0.000001"}, kLong);
    CHECK_MESSAGE(poor.exit_code == 3, (poor.err + poor.out));
    CHECK_MESSAGE(verdict_of(scene, "add").starts_with("unjudged: "), poor.out);
    const CommandOutcome task = scene.run("selfcheck", {"ad"});
    CHECK(task.exit_code == 2);
    CHECK_MESSAGE(contains(task.err, "did you mean add?"), task.err);
    CHECK(scene.run("selfcheck", {"--usd", "much"}).exit_code == 2);
    for (const char* share : {"2", "nan", "-nan", "inf", "-1", "", ".", "0x1"})
      CHECK_MESSAGE(scene.run("selfcheck", {"--killed", share}).exit_code == 2, share);
    scene.require_nothing_left();
  }
}
