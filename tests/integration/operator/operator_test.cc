// A campaign steered by hand, as an operator would, with a coordinator that is killed meanwhile.
#include <doctest/doctest.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "tests/support/books.h"
#include "tests/support/leftovers.h"

using namespace proctor;
using namespace proctor::testing;
using namespace std::chrono_literals;

namespace {

// An agent that computes until the gate opens.
std::string spinning_method(const std::string& name) {
  return solving_method(name, "until [ -s /opt/gate/open ]; do :; done; ");
}

// Ticks of the processor that the sandboxes of the scene have used.
std::int64_t cpu_of(const CampaignScene& scene) {
  std::int64_t sum = 0;
  for (const pid_t pid : sandboxed_of(scene.temp())) {
    const Result<std::string> stat = read_file("/proc/" + std::to_string(pid) + "/stat", 4096);
    if (!stat.ok()) continue;
    std::istringstream rest(stat->substr(stat->rfind(')') + 2));
    std::string word;
    for (int field = 3; field < 14; ++field) rest >> word;
    std::int64_t user = 0, system = 0;
    rest >> user >> system;
    sum += user + system;
  }
  return sum;
}

bool cpu_grows(const CampaignScene& scene) {
  const std::int64_t before = cpu_of(scene);
  return eventually([&] { return before + 5 <= cpu_of(scene); });
}

// For half a second nothing is computed.
bool stands_still(const CampaignScene& scene) {
  return eventually([&] {
    const std::int64_t before = cpu_of(scene);
    std::this_thread::sleep_for(500ms);
    return cpu_of(scene) <= before;
  });
}

// `proctor WORD CAMPAIGN MORE`, which must be done or unchanged.
std::string act(const CampaignScene& scene, const std::string& word,
                std::vector<std::string> more = {}, const char* verdict = "done") {
  more.insert(more.end(), {"--json", "--by", "Ada"});
  const CommandOutcome out = scene.run(word, more);
  CAPTURE(word);
  REQUIRE_MESSAGE(out.exit_code == 0, out.err);
  const Json said = must(parse_json(out.out));
  CHECK_MESSAGE(said["verdict"] == verdict, out.out);
  CHECK(said["act"] == word);
  CHECK_FALSE(said["text"].get<std::string>().empty());
  return said["text"].get<std::string>();
}

std::int64_t acts_of(const CampaignScene& scene, const std::string& word) {
  return scene.number(
      "SELECT count(*) FROM notes WHERE kind = 'operator' AND detail LIKE '%\"act\":\"" + word +
      "\"%'");
}

void kill_now(Child& child) {
  child.signal(SIGKILL);
  REQUIRE(child.wait(180s) == 128 + SIGKILL);
}

bool worker_is(const CampaignScene& scene, const std::string& name, const std::string& state) {
  const Json status = scene.status();
  if (status.is_null()) return false;
  for (const Json& w : status["workers"])
    if (w["name"] == name) return contains(w["state"].get<std::string>(), state);
  return false;
}

}  // namespace

TEST_SUITE("operator") {
  TEST_CASE("a paused campaign stands still over a killed coordinator and goes on when it may") {
    CampaignShape shape;
    // No run of either has ended when it is cancelled, however late that is.
    shape.methods = {spinning_method("spin"), spinning_method("other")};
    shape.replicates = 3;
    const CampaignScene scene(shape);
    Child run = scene.start("run");
    REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(1); }), scene.said());
    act(scene, "pause", {"--reason", "lunch"});
    act(scene, "pause", {}, "unchanged");
    CHECK(cpu_grows(scene));
    act(scene, "pause", {"--now", "--reason", "lunch, really"});
    CHECK(stands_still(scene));
    const std::int64_t begun = scene.number("SELECT count(*) FROM attempts");

    kill_now(run);
    Child resumed = scene.start("resume", {}, "resumed");
    REQUIRE_MESSAGE(eventually([&] {
                      return scene.number("SELECT count(*) FROM epochs") == 2 &&
                             worker_is(scene, "local-1", "ready");
                    }),
                    scene.said("resumed"));
    CHECK(stands_still(scene));
    CHECK(scene.number("SELECT count(*) FROM attempts") == begun);
    act(scene, "pause", {"--now"}, "unchanged");

    act(scene, "cancel", {"method:other", "--reason", "not needed"});
    act(scene, "unpause");
    CHECK(cpu_grows(scene));
    act(scene, "requeue", {"other"});
    scene.open_gate();
    CHECK_MESSAGE(resumed.wait(180s) == 0, scene.said("resumed"));
    CHECK(acts_of(scene, "pause") == 2);
    CHECK(acts_of(scene, "unpause") == 1);
    CHECK(scene.number("SELECT count(*) FROM attempts WHERE state = 'lost'") == 0);
    check_books(scene, {.runs = 6, .attempts = Expected::Attempts::kAny});
    const std::string story = scene.run("story").out;
    for (const char* part :
         {"operator Ada: pause --now", "lunch, really", "operator Ada: unpause",
          "operator Ada: cancel method:other: not needed", "life 2 of the coordinator"})
      CHECK_MESSAGE(contains(story, part), story);
    scene.require_nothing_left();
  }

  TEST_CASE("runs and workers and money are steered while the campaign is at work") {
    CampaignShape shape;
    shape.methods = {gated_method("gated"), "noop"};
    shape.replicates = 4;
    const CampaignScene scene(shape);
    Child run = scene.start("run");
    REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(2); }), scene.said());

    act(scene, "drain", {"local-2", "--reason", "its disk"});
    act(scene, "drain", {"local-2"}, "unchanged");
    act(scene, "release", {"local-2"});
    act(scene, "quarantine", {"local-2"});
    act(scene, "release", {"local-2"});
    act(scene, "kick", {"local-1", "--reason", "it hangs"});
    CHECK(eventually([&] {
      return 0 < scene.number("SELECT count(*) FROM attempts WHERE state IN ('lost', 'cancelled')");
    }));
    const CommandOutcome raised = proctor::testing::proctor(
        {"budget", "raise", scene.folder().string(), "global", "60.00", "--reason", "more"});
    CHECK_MESSAGE(raised.exit_code == 0, raised.err);

    CHECK(contains(scene.run("kick", {"local-9", "--reason", "x"}).err, "no worker is named"));
    CHECK(scene.run("cancel", {"nop", "--reason", "x"}).exit_code == 2);
    CHECK(scene.run("cancel", {"noop"}).exit_code == 2);  // without a reason

    scene.open_gate();
    CHECK_MESSAGE(run.wait(180s) == 0, scene.said());
    check_books(scene, {.runs = 8, .attempts = Expected::Attempts::kAny});
    CHECK(scene.run("verify").exit_code == 0);
    scene.require_nothing_left();
  }

  TEST_CASE("without a coordinator an act is written down and the next one stands by it") {
    CampaignShape shape;
    shape.methods = {gated_method("gated"), gated_method("other")};
    shape.replicates = 2;
    shape.workers = 1;
    const CampaignScene scene(shape);
    CHECK(scene.run("pause").exit_code == 2);  // not registered
    Child run = scene.start("run");
    REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(1); }), scene.said());
    kill_now(run);
    act(scene, "pause");
    act(scene, "pause", {}, "unchanged");
    act(scene, "cancel", {"other", "--reason", "not needed"});
    CHECK(acts_of(scene, "pause") == 1);
    Child resumed = scene.start("resume", {}, "resumed");
    // status.json of the killed one stays until its successor has begun.
    REQUIRE_MESSAGE(eventually([&] {
                      return scene.number("SELECT count(*) FROM epochs") == 2 &&
                             worker_is(scene, "local-1", "ready");
                    }),
                    scene.said("resumed"));
    act(scene, "pause", {}, "unchanged");
    act(scene, "unpause");
    scene.open_gate();
    CHECK_MESSAGE(resumed.wait(180s) == 0, scene.said("resumed"));
    CHECK(scene.number("SELECT count(*) FROM attempts WHERE run IN (SELECT run FROM runs WHERE "
                       "state = 'ended')") >= 2);
    scene.require_nothing_left();
  }

  TEST_CASE("a coordinator that does not answer is told so and nothing is changed") {
    const CampaignScene scene(gated_shape(1));
    Child run = scene.start("run");
    REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(1); }), scene.said());
    fs::remove(scene.state() / "control.sock");
    const CommandOutcome silent = scene.run("pause");
    CHECK(silent.exit_code == 4);
    CHECK_MESSAGE(contains(silent.err, "no coordinator listens at"), silent.err);
    CHECK_MESSAGE(contains(silent.err, "the campaign is in use"), silent.err);
    scene.open_gate();
    CHECK_MESSAGE(run.wait(180s) == 0, scene.said());
    scene.require_nothing_left();
  }

  TEST_CASE("beside a coordinator that hangs an act says what it waits for and is not done later") {
    const CampaignScene scene(gated_shape(1));
    Child run = scene.start("run");
    REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(1); }), scene.said());
    run.signal(SIGSTOP);
    Child pause = scene.start("pause", {}, "pause");
    REQUIRE_MESSAGE(eventually([&] {
                      return contains(scene.said("pause"), "waiting for the coordinator (process");
                    }),
                    scene.said("pause"));
    CHECK_MESSAGE(contains(scene.said("pause"), "it last spoke at 2"), scene.said("pause"));
    kill_now(pause);  // or it gives up by itself
    // As if it had been silent for long.
    Json said = scene.status();
    said["at_ms"] = said["at_ms"].get<std::int64_t>() - 60'000;
    scene.write(scene.state() / "status.json", said.dump());
    const CommandOutcome status = scene.run("status");
    CHECK_MESSAGE(contains(status.err, "has said nothing since"), status.err);
    run.signal(SIGCONT);
    act(scene, "unpause", {}, "unchanged");
    CHECK(acts_of(scene, "pause") == 0);
    CHECK_MESSAGE(contains(scene.said(), "pause was withdrawn before it was heard"), scene.said());
    scene.open_gate();
    CHECK_MESSAGE(run.wait(180s) == 0, scene.said());
    scene.require_nothing_left();
  }
}
