// A journal that was put back or lost its end: whole in itself, and refused for what is around it.
#include <algorithm>
#include <csignal>

#include "tests/support/books.h"
#include "tests/support/paths.h"
#include "tests/support/redis_server.h"

using namespace proctor;
using namespace proctor::testing;
using namespace std::chrono_literals;

namespace {

void kill_now(Child& child) {
  child.signal(SIGKILL);
  REQUIRE(child.wait(180s) == 128 + SIGKILL);
}

// As if journal.sqlite alone had been copied: the log and its index are not there.
void keep_the_file_alone(const CampaignScene& scene) {
  fs::remove(scene.state() / "journal.sqlite-wal");
  fs::remove(scene.state() / "journal.sqlite-shm");
}

// Four runs that end, and four whose agents wait at the gate.
CampaignShape half_gated_shape() {
  CampaignShape shape = gated_shape(4);
  shape.methods.push_back("noop");
  shape.slots = 2;
  return shape;
}

// The coordinator dies where a run has ended and two are under way; its journal loses the log.
void kill_with_two_under_way(const CampaignScene& scene) {
  Child run = scene.start("run");
  REQUIRE_MESSAGE(eventually([&] { return 1 <= scene.ended() && scene.agents_run(2); }),
                  scene.said());
  REQUIRE(eventually([&] {
    const Json status = scene.status();
    return status.is_object() && status.at("running").get<int>() == 2;
  }));
  kill_now(run);
  keep_the_file_alone(scene);
}

CommandOutcome journal(const CampaignScene& scene, const std::string& verb) {
  return proctor::testing::proctor({"journal", verb, scene.folder().string()});
}

void refused(const CampaignScene& scene, const std::string& why) {
  for (const char* command : {"run", "resume", "serve"}) {
    CAPTURE(command);
    const CommandOutcome ran = scene.run(command);
    CHECK(ran.exit_code == 4);
    CHECK_MESSAGE(contains(ran.err, why), ran.err);
    CHECK_MESSAGE(contains(ran.err, "proctor journal recover " + scene.folder().string()), ran.err);
  }
  for (const std::vector<std::string>& act :
       {std::vector<std::string>{"budget", scene.folder().string()},
        {"budget", "raise", scene.folder().string(), "global", "61", "--reason", "more"},
        {"report", scene.folder().string()},
        {"remove-task", scene.folder().string(), "add", "--reason", "flaky"}}) {
    CAPTURE(act[0]);
    const CommandOutcome said = proctor::testing::proctor(act);
    CHECK(said.exit_code == 4);
    CHECK_MESSAGE(contains(said.err, "knows less than what is around it"), said.err);
  }
  CHECK(scene.number("SELECT count(*) FROM notes") == 0);
  CHECK(scene.number("SELECT count(*) FROM epochs") == 0);  // nobody began
  const CommandOutcome checked = journal(scene, "check");
  CHECK(checked.exit_code == 1);
  CHECK_MESSAGE(contains(checked.out, why), checked.out);
}

void recovers_to_the_end(const CampaignScene& scene, std::int64_t runs) {
  const CommandOutcome recovered = journal(scene, "recover");
  CHECK_MESSAGE(recovered.exit_code == 0, (recovered.out + recovered.err));
  CHECK(journal(scene, "check").exit_code == 0);
  scene.open_gate();
  const CommandOutcome resumed = scene.run("resume");
  CHECK_MESSAGE(resumed.exit_code == 0, resumed.err);
  check_books(scene, {.runs = runs, .attempts = Expected::Attempts::kAny});
  scene.require_nothing_left();
}

}  // namespace

TEST_SUITE("coordinator") {
  TEST_CASE("a journal that knows less than runs is refused until it is recovered") {
    CampaignShape shape;
    shape.methods = {"noop"};
    shape.replicates = 6;
    const CampaignScene scene(shape);
    Child run = scene.start("run");
    REQUIRE_MESSAGE(eventually([&] { return 2 <= scene.ended(); }), scene.said());
    kill_now(run);
    keep_the_file_alone(scene);
    refused(scene, "of an attempt that the journal never granted");
    recovers_to_the_end(scene, 6);
  }

  TEST_CASE("a recovered journal leaves what is under way to the workers that have it") {
    CampaignShape shape = half_gated_shape();
    shape.global = shape.task = "4.00";  // of runs that reserve 0.50
    const CampaignScene scene(shape);
    kill_with_two_under_way(scene);
    const CommandOutcome recovered = journal(scene, "recover");
    REQUIRE_MESSAGE(recovered.exit_code == 0, (recovered.out + recovered.err));
    // In the campaign's one word for its money: without a price table these are no dollars.
    CHECK_MESSAGE(contains(recovered.out, " units)"), recovered.out);
    CHECK_MESSAGE(!contains(recovered.out, "USD"), recovered.out);
    CHECK(scene.number("SELECT count(*) FROM attempts WHERE state = 'lost'") == 0);
    CHECK(scene.number("SELECT count(*) FROM attempts WHERE state = 'granted'") == 2);
    CHECK(scene.number("SELECT reserved FROM balance") == 1'000'000);
    const CommandOutcome at_once = scene.run("verify");
    CHECK_MESSAGE(at_once.exit_code == 0, at_once.out);
    scene.open_gate();
    const CommandOutcome resumed = scene.run("resume");
    CHECK_MESSAGE(resumed.exit_code == 0, resumed.err);
    check_books(scene, {.runs = 8});
    CHECK(contains(output_of({"python3", (source_dir() / "tests/audit/audit").string(),
                              scene.folder().string()}),
                   ": 0 problems"));
  }

  TEST_CASE("what may have been under way elsewhere is charged for as many slots as there were") {
    const CampaignScene scene(half_gated_shape());
    kill_with_two_under_way(scene);
    for (const pid_t worker : scene.workers()) ::kill(worker, SIGKILL);
    REQUIRE(eventually([&] { return scene.workers().empty(); }));
    fs::remove_all(scene.state() / "workers/workers");  // as of a worker of another host
    const CommandOutcome recovered = journal(scene, "recover");
    REQUIRE_MESSAGE(recovered.exit_code == 0, (recovered.out + recovered.err));
    CHECK(scene.number("SELECT count(*) FROM attempts WHERE state = 'lost'") == 2);
    CHECK(scene.number("SELECT sum(charged) FROM attempts WHERE state = 'lost'") == 1'000'000);
    CHECK(scene.run("verify").exit_code == 0);
    // An attempt that reserves less than a run of its task is a problem, whoever entered it.
    (void)output_of({"sqlite3", (scene.state() / "journal.sqlite").string(),
                     "UPDATE attempts SET ask = 400000, charged = 400000, cost_execution = 400000 "
                     "WHERE state = 'lost'"});
    CHECK(contains(scene.run("verify").out, "it asked for 0.4"));
  }

  TEST_CASE("a journal that knows less than its Redis is refused until it is recovered") {
    RedisServer redis;
    CampaignShape shape = gated_shape(3);
    shape.redis = redis.address();
    const CampaignScene scene(shape);
    Child run = scene.start("run");
    REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(1); }), scene.said());
    kill_now(run);
    std::string told;  // of the one that is under way
    for (const char* name : {"add/gated/r1", "add/gated/r2", "add/gated/r3"})
      told += scene.run("explain", {name}).out;
    CHECK_MESSAGE(contains(told, ", as the last coordinator knew: none runs since "), told);
    keep_the_file_alone(scene);
    refused(scene, "Redis was filled under epoch 1");
    recovers_to_the_end(scene, 3);
  }

  TEST_CASE("a journal with nothing in it costs nothing and is not damaged") {
    CampaignShape shape;
    shape.methods = {"noop"};
    shape.redis = "unix:/nowhere/redis.sock";
    const CampaignScene scene(shape);
    const std::string begin = "proctor run " + scene.folder().string();
    CHECK(contains(scene.run("status").err, begin));
    REQUIRE(scene.run("run").exit_code == 4);  // its tables are there; no coordinator began
    const CommandOutcome verified = scene.run("verify");
    CHECK_MESSAGE(verified.exit_code == 0, verified.out);
    CHECK_MESSAGE(contains(scene.run("explain", {"add/noop/r1"}).out, begin), "explain");
    const fs::path file = scene.state() / "journal.sqlite";
    for (const std::string how : {"empty", "without tables", "never made", "missing"}) {
      CAPTURE(how);
      fs::remove(file);
      if (how == "without tables")
        (void)output_of({"sqlite3", file.string(), "PRAGMA journal_mode = WAL; VACUUM"});
      else if (how != "missing")
        scene.write(file, "");
      if (how == "never made") scene.write(file.string() + "-journal", "cut");
      for (const char* verb : {"check", "recover", "check"}) {
        const CommandOutcome said = journal(scene, verb);
        CHECK_MESSAGE(said.exit_code == 0, (said.out + said.err));
        CHECK_MESSAGE(contains(said.out, "no attempt was granted"), said.out);
        CHECK_MESSAGE(contains(said.out, begin), said.out);
      }
      // Whoever asks for what has run is told what to type.
      for (const char* command : {"report", "verify", "story", "explain"}) {
        if (how == "missing") break;
        CAPTURE(command);
        const bool of_a_run = command == std::string("explain");
        const CommandOutcome said =
            scene.run(command, of_a_run ? std::vector<std::string>{"add/noop/r1"}
                                        : std::vector<std::string>{});
        CHECK_MESSAGE(contains(said.err, begin), (said.out + said.err));
      }
      fs::remove(file.string() + "-journal");
    }
    // The same files beside what says otherwise are damage, and every command has one code for it.
    scene.write(file, "");
    fs::create_directories(scene.folder() / "runs/add/noop/r1/attempt-1");
    const CommandOutcome checked = journal(scene, "check");
    CHECK(checked.exit_code == 1);
    CHECK_MESSAGE(contains(checked.out, "that the journal never granted"), checked.out);
    for (const char* command : {"run", "resume", "serve"}) {
      const CommandOutcome refused = scene.run(command);
      CHECK_MESSAGE(refused.exit_code == 4, refused.err);
      CHECK_MESSAGE(contains(refused.err, "proctor journal recover"), refused.err);
    }
  }

  TEST_CASE("a journal that was emptied under runs that were under way is damaged") {
    const CampaignScene scene(gated_shape(2));
    Child run = scene.start("run");
    REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(1); }), scene.said());
    REQUIRE(eventually([&] {
      const Json status = scene.status();
      return status.is_object() && 0 < status.at("running").get<int>();
    }));
    kill_now(run);
    keep_the_file_alone(scene);
    scene.write(scene.state() / "journal.sqlite", "");
    CommandOutcome checked = journal(scene, "check");
    CHECK(checked.exit_code == 1);
    CHECK_MESSAGE(contains(checked.out, "were under way"), checked.out);
    CHECK(scene.run("run").exit_code == 4);
    CHECK(scene.run("resume").exit_code == 4);
    fs::remove(scene.state() / "status.json");  // its worker's meter book is left
    checked = journal(scene, "check");
    CHECK(checked.exit_code == 1);
    CHECK_MESSAGE(contains(checked.out, "that the journal never granted"), checked.out);
    recovers_to_the_end(scene, 2);
  }

  TEST_CASE("who reads a campaign whose journal is damaged or gone is told what to type") {
    CampaignShape shape;
    shape.methods = {"noop", "reference"};
    const CampaignScene scene(shape);
    REQUIRE(scene.run("run").exit_code == 0);
    const fs::path file = scene.state() / "journal.sqlite",
                   report = scene.folder() / "reports/report.txt";
    std::string told;
    const auto all_say = [&](const std::string& words) {
      for (const char* command : {"report", "list", "budget", "verify", "story"}) {
        const CommandOutcome read = scene.run(command);
        CAPTURE(command);
        CHECK(read.exit_code == 4);
        CHECK_MESSAGE(contains(read.err, words), read.err);
        CHECK_MESSAGE(contains(read.err, "proctor journal recover"), read.err);
      }
      CHECK(scene.read(report) == told);
    };
    const fs::path registration = scene.folder() / "registration.json";
    fs::rename(registration, scene.temp() / "registration.json");
    for (const char* command : {"run", "resume", "report", "verify"}) {
      const CommandOutcome refused = scene.run(command);
      CAPTURE(command);
      CHECK(refused.exit_code == 2);
      CHECK_MESSAGE(contains(refused.err, "registration.json is missing, but"), refused.err);
      CHECK_FALSE(fs::exists(registration));
    }
    fs::rename(scene.temp() / "registration.json", registration);
    CHECK(scene.run("report").exit_code == 0);
    told = scene.read(report);
    std::string bytes = scene.read(file);
    constexpr std::size_t kPage = 4096;
    std::fill(bytes.begin() + kPage, bytes.end(), '\0');
    scene.write(file, bytes);
    all_say("proctor journal check");
    fs::remove(file);
    all_say("is missing, but " + (scene.folder() / "runs").string() + " has results");
  }

  TEST_CASE("after any kill the journal knows what is around it") {
    RedisServer redis;
    CampaignShape shape;
    shape.methods = {"noop", "reference"};
    shape.replicates = 4;
    shape.redis = redis.address();
    const CampaignScene scene(shape);
    for (std::int64_t ended = 2; ended <= 6; ended += 2) {
      Child run = scene.start(ended == 2 ? "run" : "resume");
      REQUIRE_MESSAGE(eventually([&] { return ended <= scene.ended(); }), scene.said());
      kill_now(run);
      const CommandOutcome checked = journal(scene, "check");
      CHECK_MESSAGE(checked.exit_code == 0, checked.out);
    }
    CHECK(scene.run("resume").exit_code == 0);
    check_books(scene, {.runs = 8});
  }
}
