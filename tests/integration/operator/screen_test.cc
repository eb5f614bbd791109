// `proctor screen` with real sandboxes: what it says of checks that flicker and of one that does
// not, that its load is one, what it does not do twice, and that a killed one goes on.
#include <algorithm>
#include <csignal>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "coordinator/shell/state_folder.h"
#include "tests/support/campaign_scene.h"
#include "tests/support/json_schema.h"

using namespace proctor;
using namespace proctor::testing;
using namespace std::chrono_literals;

namespace {

constexpr auto kLong = 1800s;
constexpr const char* kCheck = "command: sh tests/t.sh, kind: unit";
// Six clean repeats exclude 0.402.
const std::vector<std::string> kSix{"--repeats", "6", "--load-repeats", "6", "--bound", "0.45"};

std::string tap_check(const std::string& right) {
  return "command: 'echo 1..2 > $PROCTOR_RESULTS/tap; echo ok 1 - steady >> $PROCTOR_RESULTS/tap; "
         "if " +
         right +
         "; then echo ok 2 - t7 >> $PROCTOR_RESULTS/tap; else echo not ok 2 - t7 >> "
         "$PROCTOR_RESULTS/tap; fi', result: tap, result_file: tap, kind: unit";
}

Json kept(const CampaignScene& scene) {
  Json out = parse_json(scene.read(scene.folder() / "reports/flakiness.json")).value();
  CHECK(JsonSchema("flakiness").violations(out) == "");
  return out;
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
// Discrepant repeats of a state in an arm.
std::uint64_t discrepant(const Json& task, const std::string& state, const std::string& arm) {
  for (const Json& a : task.at("arms"))
    if (a.at("state") == state && a.at("arm") == arm)
      return a.at("discrepant").get<std::uint64_t>();
  FAIL("no arm " << state << " " << arm);
  return 0;
}

CampaignScene scene_of(std::vector<std::string> tasks) {
  CampaignShape shape;
  shape.tasks = std::move(tasks);
  shape.methods = {"noop", solving_method("agent")};
  shape.workers = 2;
  shape.slots = 1;
  return CampaignScene(shape);
}

StateFolder arm_of(const CampaignScene& scene, const std::string& arm) {
  return {scene.state() / "screen" / arm};
}
std::vector<fs::path> ended(const StateFolder& place) {
  std::vector<fs::path> out;
  std::error_code ec;
  for (fs::recursive_directory_iterator it(place.runs(), ec), end; !ec && it != end;
       it.increment(ec))
    if (it->path().filename() == "report.json" && !contains(it->path().string(), "/.incoming/"))
      out.push_back(it->path());
  return out;
}
std::size_t workers_of(const StateFolder& place) {
  std::error_code ec;
  return static_cast<std::size_t>(
      std::ranges::count_if(fs::directory_iterator(place.logs(), ec),
                            [](const auto& file) { return file.path().extension() == ".log"; }));
}

// Threads of a process that have been on a core for a quarter of a second or more.
std::size_t busy_threads(pid_t pid) {
  std::size_t out = 0;
  std::error_code ec;
  for (fs::directory_iterator it("/proc/" + std::to_string(pid) + "/task", ec), end;
       !ec && it != end; it.increment(ec)) {
    if (it->path().filename() == std::to_string(pid)) continue;  // its main thread has its own work
    std::ifstream file(it->path() / "stat");                     // of a thread that may be gone
    std::string stat;
    if (!std::getline(file, stat) || stat.rfind(')') == std::string::npos) continue;
    std::istringstream fields(stat.substr(stat.rfind(')') + 1));
    std::string skipped;
    for (int i = 0; i < 11; ++i) fields >> skipped;
    long ticks = 0;
    fields >> ticks;
    out += 25 <= ticks ? 1U : 0U;
  }
  return out;
}

}  // namespace

TEST_SUITE("screen") {
  TEST_CASE("a check that draws by chance is flaky and its test is named, another is stable") {
    const CampaignScene scene = scene_of({"chance", "steady"});
    // The seeds of runs are the plan's, so this comes out the same every time.
    scene.edit(scene.contract("chance"), kCheck,
               tap_check("sh tests/t.sh && test $((PROCTOR_SEED % 3)) != 0"));
    scene.edit(scene.contract("steady"), kCheck, tap_check("sh tests/t.sh"));
    const CommandOutcome out = scene.run("screen", kSix, kLong);
    CHECK_MESSAGE(out.exit_code == 1, (out.err + out.out));
    CHECK_MESSAGE(verdict_of(scene, "steady") == "stable", out.out);
    CHECK_MESSAGE(contains(out.out,
                           "steady  stable     reference: 0 of 12; snapshot: 0 of 12; it may still "
                           "be up to 40.2 % alone, 40.2 % under load"),
                  out.out);
    CHECK_MESSAGE(verdict_of(scene, "chance") == "flaky", out.out);
    const Json chance = task_of(scene, "chance");
    CHECK(chance.at("unstable") == Json::array({"t7"}));
    CHECK(0 < discrepant(chance, "reference", "serial") + discrepant(chance, "reference", "load"));
    CHECK(discrepant(chance, "snapshot", "serial") == 0);  // its test fails without the repair
    CHECK_MESSAGE(contains(out.out, "1 stable, 1 flaky; flaky are 1 of 2"), out.out);
    // 2 methods, 2 replicates.
    CHECK_MESSAGE(contains(out.out, "of the 4 runs that the campaign has of it"), out.out);
    const fs::path quarantine = scene.folder() / "reports/quarantine.txt";
    CHECK(scene.read(quarantine).starts_with("chance  flaky: "));
    CHECK(!contains(scene.read(quarantine), "steady"));
    CHECK(workers_of(arm_of(scene, "serial")) == 1);
    CHECK(workers_of(arm_of(scene, "load")) == 2);
    // It is no part of the campaign.
    CHECK(!fs::exists(scene.folder() / "registration.json"));
    CHECK(!fs::exists(scene.state() / "journal.sqlite"));
    // But who is about to spend money on it is told.
    const CommandOutcome check = scene.run("check");
    CHECK_MESSAGE(contains(check.out, "note: task chance was judged flaky: "), check.out);
    CHECK_MESSAGE(!contains(check.out, "task steady was judged"), check.out);

    // What was counted is judged by other limits without a run.
    const CommandOutcome lenient = scene.run("screen",
                                             {"--repeats", "6", "--load-repeats", "6",
                                              "--tolerance", "0.9", "--bound", "0.49", "--json"},
                                             kLong);
    CHECK_MESSAGE(lenient.exit_code == 1, lenient.err);
    CHECK(parse_json(lenient.out).value() == kept(scene));
    CHECK(kept(scene).at("usd_micros") == 0);
    CHECK(verdict_of(scene, "chance") != "flaky");
    // Another contract is.
    scene.edit(scene.contract("chance"), " && test $((PROCTOR_SEED % 3)) != 0", "");
    const CommandOutcome mended = scene.run("screen", kSix, kLong);
    CHECK_MESSAGE(mended.exit_code == 0, (mended.err + mended.out));
    CHECK_MESSAGE(contains(mended.out, "1 known from before"), mended.out);
    CHECK(verdict_of(scene, "chance") == "stable");
    CHECK(!fs::exists(quarantine));
    scene.require_nothing_left();
  }

  TEST_CASE("load keeps all cores busy, and a killed one goes on where it was") {
    const CampaignScene scene = scene_of({"add"});
    const std::vector<std::string> flags{"--repeats", "2",       "--load-repeats",
                                         "30",        "--bound", "0.45"};
    Child child = scene.start("screen", flags);
    const StateFolder alone = arm_of(scene, "serial"), load = arm_of(scene, "load");
    REQUIRE_MESSAGE(eventually([&] { return 2 <= ended(load).size(); }), scene.said());
    const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
    CHECK_MESSAGE(eventually([&] { return cores <= busy_threads(child.pid()); }), scene.said());
    child.signal(SIGKILL);
    (void)child.wait(300s);
    CHECK(ended(alone).size() == 4);
    std::map<fs::path, std::string> bytes;
    for (const StateFolder& place : {alone, load})
      for (const fs::path& file : ended(place)) bytes[file] = scene.read(file);
    CHECK(bytes.size() < 64);
    CHECK(!fs::exists(scene.folder() / "reports/flakiness.json"));
    const CommandOutcome out = scene.run("screen", flags, kLong);
    // Two repeats exclude no rate.
    CHECK_MESSAGE(out.exit_code == 1, (out.err + out.out));
    CHECK_MESSAGE(contains(out.err, "note: 2 repeats cannot exclude a rate of 0.45"), out.err);
    CHECK(verdict_of(scene, "add") == "undecided");
    CHECK_MESSAGE(
        contains(out.out, "more repeats decide: proctor screen " + scene.folder().string() +
                              " add --repeats 6 --load-repeats 30"),
        out.out);
    CHECK(scene.read(scene.folder() / "reports/quarantine.txt").starts_with("add  undecided: "));
    for (const auto& [file, text] : bytes) CHECK_MESSAGE(scene.read(file) == text, file);
    CHECK(ended(load).size() == 60);
    // Registered all the same: whoever reads the report knows.
    const CommandOutcome plan = scene.run("plan", {"--freeze"});
    CHECK_MESSAGE(contains(plan.out, "note: task add was judged undecided: "), plan.out);
    CHECK(contains(scene.read(scene.folder() / "registration.json"), "\"distrusted\""));
    const CommandOutcome report = scene.run("report");
    CHECK_MESSAGE(contains(report.out, "Warning: task add was registered although it was judged"),
                  report.out);
    CHECK(contains(scene.read(scene.folder() / "reports/report.html"),
                   "task add was registered although it was judged undecided"));
    scene.require_nothing_left();
  }

  TEST_CASE("a screen ends with its money, and its wrong words are wrong input") {
    const CampaignScene scene = scene_of({"add"});
    const CommandOutcome poor =
        scene.run("screen", {"--repeats", "1", "--load-repeats", "1", "--usd", "0.000001"}, kLong);
    CHECK_MESSAGE(poor.exit_code == 3, (poor.err + poor.out));
    CHECK_MESSAGE(contains(poor.out, "go on with: proctor screen " + scene.folder().string() +
                                         " add --repeats 1 --load-repeats 1 --usd 0.000001\n"),
                  poor.out);
    CHECK_MESSAGE(contains(poor.err, "Alone: 1 repeat of each state of 1 task\n"), poor.err);
    CHECK_MESSAGE(verdict_of(scene, "add") == "unjudged", poor.out);
    CHECK(!fs::exists(scene.folder() / "reports/quarantine.txt"));
    const CommandOutcome task = scene.run("screen", {"ad"});
    CHECK(task.exit_code == 2);
    CHECK_MESSAGE(contains(task.err, "did you mean add?"), task.err);
    const std::vector<std::vector<std::string>> wrong{
        {"--usd", "much"},      {"--tolerance", "2"},
        {"--tolerance", "nan"}, {"--snapshot-tolerance", "-1"},
        {"--bound", "0.5"},     {"--bound", "0"},
        {"--repeats", "0"},     {"--load-repeats", "10001"}};
    for (const std::vector<std::string>& flags : wrong) {
      CAPTURE(flags.front());
      CAPTURE(flags.back());
      CHECK(scene.run("screen", flags).exit_code == 2);
    }
    scene.require_nothing_left();
  }

  TEST_CASE("a task that this host cannot screen keeps no other from being screened") {
    const CampaignScene scene = scene_of({"add", "lua"});
    scene.edit(scene.contract("lua"), "toolchains: [", "toolchains: [{path: /opt/no-such-lua}, ");
    const CommandOutcome out = scene.run("screen", kSix, kLong);
    CHECK_MESSAGE(out.exit_code == 1, out.err);
    CHECK_MESSAGE(verdict_of(scene, "lua") == "unjudged", out.out);
    CHECK(contains(out.out, "it cannot run here ("));
    CHECK_MESSAGE(verdict_of(scene, "add") == "stable", out.out);
    scene.require_nothing_left();
  }
}
