// Stages that wait for one another and for people, as users see them: with and without a
// coordinator, and when that is killed.
#include <csignal>

#include "tests/support/campaign_scene.h"

using namespace proctor;
using namespace proctor::testing;
using namespace std::chrono_literals;

namespace {

// Two runs of each of two stages; before the second `people` agree.
CampaignShape small() {
  CampaignShape shape;
  shape.replicates = 1;
  shape.workers = 1;
  return shape;
}

void add_stages(const CampaignScene& scene, int people) {
  scene.edit(scene.folder() / "campaign.yaml", "replicates: 1\n",
             "replicates: 1\nstages:\n"
             "  - {name: first, exit: [endpoint_computable, spend_within]}\n"
             "  - {name: full, entry: [{invalid_share: \"0\"}], approval: {people: " +
                 std::to_string(people) + "}}\n");
}

CommandOutcome pilot(const CampaignScene& scene, std::vector<std::string> words) {
  words.insert(words.begin(), "pilot");
  words.insert(words.begin() + 2, scene.folder().string());
  return proctor::testing::proctor(std::move(words));
}

CommandOutcome approve(const CampaignScene& scene, const std::string& by,
                       const std::string& digest = "") {
  std::vector<std::string> words{"approve", "full", "--by", by, "--reason", "as planned"};
  if (!digest.empty()) words.insert(words.end(), {"--digest", digest});
  return pilot(scene, std::move(words));
}

Json status_of(const CampaignScene& scene) {
  const CommandOutcome out = pilot(scene, {"status", "--json"});
  REQUIRE_MESSAGE(out.exit_code == 0, out.err);
  return must(parse_json(out.out));
}

std::int64_t notes(const CampaignScene& scene, const std::string& kind) {
  return scene.number("SELECT count(*) FROM notes WHERE kind = '" + kind + "'");
}

}  // namespace

TEST_SUITE("gates") {
  TEST_CASE(
      "run ends where people decide, they approve without a coordinator, and resume goes on") {
    const CampaignScene scene(small());
    add_stages(scene, 2);
    const CommandOutcome run = scene.run("run");
    CHECK_MESSAGE(run.exit_code == 5, run.err);
    CHECK_MESSAGE(contains(run.err, "stage full waits for 2 people to approve"), run.err);
    CHECK(scene.number("SELECT count(*) FROM attempts") == 2);
    CHECK(notes(scene, "stage_checked") == 1);
    const CommandOutcome wait = scene.run("wait");
    CHECK_MESSAGE(wait.exit_code == 5, wait.err);
    CHECK_MESSAGE(contains(wait.err, "2 of 4 runs ended, 2 are behind the gate"), wait.err);
    const CommandOutcome explained = scene.run("explain", {"add/noop/r2"});
    CHECK_MESSAGE(contains(explained.out, "its stage is not open yet"), explained.out);
    const CommandOutcome told = scene.run("status");
    CHECK_MESSAGE(contains(told.out, "2 runs are behind that gate"), told.out);
    // Whoever prints the advice prints what can be typed.
    const std::string typed =
        "proctor pilot approve " + scene.folder().string() + " full --by NAME";
    for (const CommandOutcome& out :
         {explained, told, scene.run("status", {"--json"}),
          scene.run("explain", {"add/noop/r2", "--json"}), pilot(scene, {"status", "--json"})}) {
      CHECK_MESSAGE(contains(out.out, typed), out.out);
      CHECK_MESSAGE(!contains(out.out, "CAMPAIGN"), out.out);
    }

    const Json before = status_of(scene);
    CHECK(before.at("gate").at("waits_for") == "approval");
    CHECK(before.at("stages").at(0).at("state") == "closed");
    CHECK(before.at("stages").at(1).at("state") == "waiting");
    const CommandOutcome shown = pilot(scene, {"status"});
    CHECK_MESSAGE(contains(shown.out, "invalid: noop 0 of 1, reference 0 of 1"), shown.out);

    // With no run left behind it, nobody is asked to open it.
    CHECK(scene.run("cancel", {"add/noop/r2", "--reason", "later"}).exit_code == 0);
    CHECK(scene.run("cancel", {"add/reference/r2", "--reason", "later"}).exit_code == 0);
    const CommandOutcome empty = pilot(scene, {"status"});
    CHECK_MESSAGE(contains(empty.out, "stage full has no run left that could begin"), empty.out);
    CHECK_MESSAGE(!contains(empty.out, "pilot approve"), empty.out);
    CHECK(scene.run("requeue", {"all"}).exit_code == 0);

    const CommandOutcome other = approve(scene, "Ada", "0123456789ab");
    CHECK_MESSAGE(other.exit_code == 2, other.out);
    CHECK_MESSAGE(contains(other.err, "is another by now"), other.err);
    const CommandOutcome nowhere =
        pilot(scene, {"approve", "half", "--by", "Ada", "--reason", "as planned"});
    CHECK(nowhere.exit_code == 2);
    CHECK_MESSAGE(contains(nowhere.err, "there are first, full"), nowhere.err);
    const CommandOutcome unsaid = pilot(scene, {"approve", "full", "--by", "Ada", "--reason", " "});
    CHECK_MESSAGE(contains(unsaid.err, "pilot approve needs a reason"), unsaid.err);
    const CommandOutcome first = approve(scene, "Ada");
    CHECK(first.exit_code == 0);
    CHECK_MESSAGE(contains(first.out, typed), first.out);
    const CommandOutcome again = approve(scene, "Ada ");
    CHECK(again.exit_code == 0);
    CHECK_MESSAGE(contains(again.out, "has approved this already"), again.out);
    CHECK(scene.run("resume").exit_code == 5);
    CHECK(scene.number("SELECT count(*) FROM attempts") == 2);
    CHECK(approve(scene, "Bo", before.at("gate").at("digest").string()).exit_code == 0);
    const CommandOutcome resumed = scene.run("resume");
    CHECK_MESSAGE(resumed.exit_code == 0, resumed.err);
    CHECK(scene.number("SELECT count(*) FROM attempts") == 4);
    CHECK(notes(scene, "stage_opened") == 1);
    CHECK(status_of(scene).at("gate").is_null());
    const std::string story = scene.run("story").out;
    CHECK_MESSAGE(contains(story, "operator Bo: approve_stage full: as planned"), story);
    CHECK_MESSAGE(contains(story, "stage full is open, approved by Ada, Bo"), story);
    const CommandOutcome verified = scene.run("verify");
    CHECK_MESSAGE(verified.exit_code == 0, verified.out);
    const std::string digest = before.at("gate").at("digest").string();
    const Json report = must(parse_json(scene.run("report", {"--json"}).out));
    const Json& approvals = report.at("approvals");
    REQUIRE(approvals.size() == 3);
    CHECK(approvals[0].string().ends_with("stage full was approved by Ada by the digest " + digest +
                                          ": as planned"));
    CHECK(contains(approvals[1].string(), "by Bo by the digest " + digest));
    CHECK(approvals[2].string().ends_with("opened by the digest " + digest +
                                          ", which Ada, Bo had approved"));
    for (const char* file : {"report.txt", "report.html", "summary.md"})
      CHECK(contains(scene.read(scene.folder() / "reports" / file), "Approvals of stages"));
    scene.require_nothing_left();
  }

  TEST_CASE("a coordinator that is killed when somebody has approved leaves the approval behind") {
    const CampaignScene scene(small());
    add_stages(scene, 2);
    Child serve = scene.start("serve", {"--workers", "1"});
    REQUIRE_MESSAGE(eventually([&] {
                      const Json status = scene.status();
                      return status.is_object() && status.contains("gate") &&
                             status.at("gate").at("waits_for") == "approval";
                    }),
                    scene.said());
    CHECK(scene.run("wait").exit_code == 5);
    CHECK(approve(scene, "Ada").exit_code == 0);
    serve.signal(SIGKILL);
    REQUIRE(serve.wait(180s) == 128 + SIGKILL);
    CHECK(status_of(scene).at("gate").at("approved") == Json::array({"Ada"}));
    Child next = scene.start("serve", {"--workers", "1", "--resume"}, "next");
    REQUIRE_MESSAGE(eventually([&] { return contains(scene.said("next"), "listening on"); }),
                    scene.said("next"));
    const CommandOutcome opened = approve(scene, "Bo");
    CHECK_MESSAGE(opened.exit_code == 0, opened.err);
    CHECK_MESSAGE(contains(opened.out, "stage full is open"), opened.out);
    CHECK_MESSAGE(next.wait(300s) == 0, scene.said("next"));
    CHECK(scene.ended() == 4);
    CHECK(notes(scene, "stage_checked") == 1);
    CHECK(notes(scene, "stage_opened") == 1);
    const CommandOutcome verified = scene.run("verify");
    CHECK_MESSAGE(verified.exit_code == 0, verified.out);
    scene.require_nothing_left();
  }

  TEST_CASE("an approval is refused by the criterion that stopped to hold since the last check") {
    CampaignShape shape = small();
    shape.tasks = {"add", "bad"};
    const CampaignScene scene(shape);
    scene.edit(scene.folder() / "campaign.yaml", "replicates: 1\n",
               "replicates: 1\ninfrastructure_retries: 1\nstages:\n  - {name: first}\n"
               "  - {name: full, entry: [{invalid_share: \"0.5\"}], approval: {people: 1}}\n");
    scene.edit(scene.contract("bad"),
               "checks:", "setup:\n  - {command: \"false\", cache: false}\nchecks:");
    const CommandOutcome run = scene.run("run");
    REQUIRE_MESSAGE(run.exit_code == 5, run.err);
    CHECK(status_of(scene).at("gate").at("waits_for") == "approval");  // half of them are invalid
    REQUIRE(scene.run("remove-task", {"add", "--reason", "x"}).exit_code == 0);
    for (const char* digest : {"", "0123456789ab"}) {
      const CommandOutcome refused = approve(scene, "Ada", digest);
      CHECK_MESSAGE(refused.exit_code == 2, refused.err);
      CHECK_MESSAGE(contains(refused.err, "invalid_share 0.50: no, invalid: noop 1 of 1"),
                    refused.err);
    }
    CHECK(notes(scene, "stage_checked") == 1);
    scene.require_nothing_left();
  }

  // An envelope of a single run's cap: the second run finds too little.
  TEST_CASE("a stage that ran out of money is closed, and what it lacks is waived") {
    const CampaignScene scene(small());
    scene.edit(scene.folder() / "campaign.yaml", "replicates: 1\n",
               "replicates: 1\nstages:\n"
               "  - {name: first, usd: \"0.50\", exit: [endpoint_computable, spend_within]}\n"
               "  - {name: full, approval: {people: 1}}\n");
    const CommandOutcome check = scene.run("check");
    CHECK_MESSAGE(contains(check.out, "stage first cannot pay its 2 runs"), check.out);
    CHECK_MESSAGE(contains(check.out, "1.00 units by their caps, and its envelope has 0.50"),
                  check.out);
    REQUIRE(scene.run("run").exit_code == 5);
    const auto refused = [&](std::vector<std::string> words) {
      words.insert(words.end(), {"--by", "Ada", "--reason", "its money is spent"});
      const CommandOutcome out = pilot(scene, words);
      CHECK_MESSAGE(out.exit_code == 2, out.out);
      return out.err;
    };
    CHECK(contains(refused({"waive", "frist", "spend_within"}), "did you mean first?"));
    const std::string there =
        "; there are first \"exit endpoint_computable\", first \"exit spend_within\"";
    CHECK(contains(refused({"waive", "first", "spent"}), there));
    CHECK(contains(refused({"waive", "full", "closed"}), there));
    CHECK(contains(refused({"waive", "first", "spend_within"}), " holds: "));
    CHECK(contains(refused({"close", "frist"}), "did you mean first?"));
    CHECK(contains(refused({"close", "full"}), "is not open yet"));
    const std::vector<std::string> why{"--by", "Ada", "--reason", "its money is spent"};
    std::vector<std::string> close{"close", "first"},
        waive{"waive", "first", "endpoint_computable"};
    close.insert(close.end(), why.begin(), why.end());
    waive.insert(waive.end(), why.begin(), why.end());
    CHECK(pilot(scene, close).exit_code == 0);
    CHECK(contains(refused({"close", "first"}), "is closed already"));
    CHECK(scene.run("requeue", {"all"}).exit_code == 2);
    CHECK(status_of(scene).at("stages").at(0).at("state") == "over");
    CHECK(pilot(scene, waive).exit_code == 0);
    CHECK(contains(refused({"waive", "first", "endpoint_computable"}), "waived already"));
    const Json first = status_of(scene).at("stages").at(0);
    CHECK(first.at("state") == "closed");
    CHECK(first.at("exit").at(0).at("value") == "waived");
    const CommandOutcome raised = proctor::testing::proctor(
        {"budget", "raise", scene.folder().string(), "stage:first", "1.00", "--reason", "later"});
    CHECK(raised.exit_code == 0);
    CHECK_MESSAGE(contains(raised.err, "0.50 units that were registered"), raised.err);
    CHECK(approve(scene, "Bo").exit_code == 0);
    const CommandOutcome resumed = scene.run("resume");
    CHECK_MESSAGE(resumed.exit_code == 0, resumed.err);
    CHECK(scene.ended() == 3);
    const Json report = must(parse_json(scene.run("report", {"--json"}).out));
    std::string deviations;
    for (const Json& d : report.at("deviations")) deviations += d.string() + "\n";
    CHECK_MESSAGE(contains(deviations, "1 run was cancelled (stage first was closed) by Ada: its"),
                  deviations);
    CHECK_MESSAGE(contains(deviations, "exit endpoint_computable of stage first was waived by Ada"),
                  deviations);
    for (const char* file : {"report.txt", "report.html", "summary.md"})
      CHECK(contains(scene.read(scene.folder() / "reports" / file),
                     "exit endpoint_computable of stage first was waived by Ada"));
    const CommandOutcome verified = scene.run("verify");
    CHECK_MESSAGE(verified.exit_code == 0, verified.out);
    scene.require_nothing_left();
  }
}
