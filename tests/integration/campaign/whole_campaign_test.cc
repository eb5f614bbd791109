// A whole campaign with the real programs: outcomes, books, evidence, money, nothing left over.
#include <algorithm>
#include <random>

#include "tests/support/books.h"
#include "tests/support/journal_schemas.h"

using namespace proctor;
using namespace proctor::testing;
using namespace std::chrono_literals;

namespace {

// Every file of the run directories, in a fixed order.
std::vector<fs::path> evidence_of(const CampaignScene& scene) {
  std::vector<fs::path> out;
  for (const fs::directory_entry& e : fs::recursive_directory_iterator(scene.folder() / "runs"))
    if (e.is_regular_file() && 0 < e.file_size() && e.path().extension() != ".zst")
      out.push_back(e.path());
  std::ranges::sort(out);
  return out;
}

}  // namespace

TEST_SUITE("campaign") {
  TEST_CASE("a campaign runs to the report with the outcomes its methods deserve") {
    CampaignShape shape;
    shape.methods = {"noop", "reference", solving_method("solver"),
                     "{name: breaker, kind: command, command: exit 3}"};
    shape.tasks = {"add", "sum"};
    shape.replicates = 1;
    const CampaignScene scene(shape);
    const CommandOutcome ran = scene.run("run");
    REQUIRE_MESSAGE(ran.exit_code == 0, ran.err << ran.out);
    CHECK(contains(ran.out, "8 runs planned, 8 ended, 0 parked, 0 open"));
    check_books(scene, {.runs = 8});
    const Json report = must(parse_json(scene.run("report", {"--json"}).out));
    for (const Json& run : report["runs"]) {
      CAPTURE(run["run"]);
      const bool solves = run["method"] == "reference" || run["method"] == "solver";
      CHECK(run["outcome"] == (solves ? "success" : "failure"));
      CHECK(run["termination"] == "completed");
    }
    CHECK(scene.status()["state"] == "complete");
    const Json groups = must(parse_json(scene.run("status", {"--json"}).out)).at("groups");
    const auto noop = std::ranges::find_if(groups, [](const Json& g) {
      return g["method"] == "noop" && g["stratum"] == "language" && g["value"] == "shell";
    });
    REQUIRE(noop != groups.end());
    CHECK((*noop)["planned"] == 2);
    CHECK((*noop)["failure"] == 2);
    CHECK((*noop)["running"] == 0);
    // The only language is all there is: its rows would repeat those of all.
    const std::string shown = scene.run("status").out;
    CHECK(contains(shown, "\nnoop       all"));
    CHECK_FALSE(contains(shown, "language=shell"));
    scene.require_nothing_left();
  }

  TEST_CASE("every command that reads takes journals of older schemas") {
    const CampaignScene scene;
    REQUIRE(scene.run("run").exit_code == 0);
    const std::string run = "add/reference/r1", folder = scene.folder().string();
    const auto said = [&](std::vector<std::string> args) {
      const CommandOutcome out = proctor::testing::proctor(args);
      CHECK_MESSAGE(out.exit_code == (args[0] == "compare" ? 5 : 0), args[0] << ": " << out.err);
      return out.out;
    };
    const auto alike = [&] {
      std::vector<std::string> out;
      for (const char* command : {"list", "story", "logs", "diff"}) {
        std::vector<std::string> args{command, folder};
        if (args[0] == "logs" || args[0] == "diff") args.push_back(run);
        out.push_back(said(args));
      }
      return out;
    };
    const std::vector<std::string> newest = alike();
    const auto raise = [&](const char* to) {
      said({"budget", "raise", folder, "global", to, "--reason", "x", "--by", "Ada"});
      CHECK(scene.number("PRAGMA user_version") == 7);
    };
    scene.sql(as_schema(3));
    CHECK(alike() == newest);
    raise("60.00");
    const std::vector<std::string> upgraded = alike();
    CHECK(upgraded[0] == newest[0]);
    for (const int schema : {6, 5, 4, 3, 2, 1}) {
      CAPTURE(schema);
      scene.sql(as_schema(schema, schema + 1));
      CHECK(alike() == upgraded);
      for (const char* command : {"status", "report", "project", "budget", "leaderboard", "wait"})
        said({command, folder});
      said({"compare", folder, folder});
      said({"explain", folder, run});
      said({"pilot", "status", folder});
      for (const char* part : {"check", "head", "export"}) said({"journal", part, folder});
      const std::string verified = scene.run("verify").out;
      CHECK_MESSAGE(contains(verified, "which this host made for the campaign, was taken away"),
                    verified);
      CHECK_FALSE(contains(verified, "that no proctor made"));
      // The report of this attempt has meters, which the journal of schema 1 cannot have.
      CHECK(contains(verified, "its report has another usage") == (schema == 1));
    }
    CHECK(scene.number("PRAGMA user_version") == 1);
    raise("61.00");
    CHECK(alike()[0] == newest[0]);
  }

  TEST_CASE("one changed byte in any file of a run makes verify fail") {
    CampaignShape shape;
    shape.methods = {"reference", solving_method("solver")};
    shape.replicates = 1;
    const CampaignScene scene(shape);
    const CommandOutcome ran = scene.run("run");
    REQUIRE_MESSAGE(ran.exit_code == 0, ran.err);
    const CommandOutcome before = scene.run("verify");
    REQUIRE_MESSAGE(before.exit_code == 0, before.out);
    std::vector<fs::path> files = evidence_of(scene);
    constexpr unsigned kSeed = 20260307;
    std::mt19937 random(kSeed);  // the same ten of them each time
    std::ranges::shuffle(files, random);
    constexpr std::size_t kSample = 10;
    REQUIRE(kSample <= files.size());
    files.resize(kSample);
    for (const fs::path& file : files) {
      CAPTURE(file);
      const std::string bytes = scene.read(file);
      std::string changed = bytes;
      char& c = changed[random() % changed.size()];
      c = static_cast<char>(c ^ 1);
      scene.write(file, changed);
      const CommandOutcome verified = scene.run("verify");
      CHECK(verified.exit_code == 1);
      CHECK_FALSE(contains(verified.out, ": 0 problems"));
      scene.write(file, bytes);
    }
    CHECK(scene.run("verify").exit_code == 0);
  }

  TEST_CASE("a removed file and an added file make verify fail") {
    CampaignShape shape;
    shape.methods = {"reference"};
    shape.replicates = 1;
    const CampaignScene scene(shape);
    REQUIRE(scene.run("run").exit_code == 0);
    const fs::path attempt = scene.folder() / "runs/add/reference/r1/attempt-1";
    const std::string patch = scene.read(attempt / "patch.diff");
    fs::remove(attempt / "patch.diff");
    CHECK(scene.run("verify").exit_code == 1);
    scene.write(attempt / "patch.diff", patch);
    CHECK(scene.run("verify").exit_code == 0);
    scene.write(attempt / "acceptance/extra", "not of this run");
    CHECK(scene.run("verify").exit_code == 1);
    fs::remove(attempt / "acceptance/extra");
    fs::remove_all(attempt);
    CHECK(scene.run("verify").exit_code == 1);
  }

  TEST_CASE("a budget that runs out parks the last runs and explain names scope and amount") {
    CampaignShape shape;
    shape.methods = {"noop", "reference"};
    shape.replicates = 3;
    shape.global = "0.5025";  // one run at a time; what they spend keeps the last ones out
    shape.task = "0.5025";
    shape.run = "0.50";
    const CampaignScene scene(shape);
    const CommandOutcome ran = scene.run("run");
    CHECK_MESSAGE(ran.exit_code == 3, ran.err);
    CHECK(contains(ran.err, "runs are parked"));
    const std::int64_t parked = scene.number("SELECT count(*) FROM runs WHERE state = 'parked'");
    REQUIRE(0 < parked);
    REQUIRE(parked < 6);
    check_books(scene, {.runs = 6, .parked = parked});
    // The last of the plan's order, no others.
    CHECK(scene.number("SELECT min(run) FROM runs WHERE state = 'parked'") == 6 - parked);
    const Json report = must(parse_json(scene.run("report", {"--json"}).out));
    const CommandOutcome why = scene.run("explain", {report["runs"][5]["run"].get<std::string>()});
    CHECK(why.exit_code == 0);
    const std::int64_t spent = scene.number("SELECT spent FROM balance");
    CAPTURE(spent);
    CHECK_MESSAGE(contains(why.out, "parked"), why.out);
    CHECK_MESSAGE(contains(why.out, "The envelope task:add was short by") !=
                      contains(why.out, "The envelope global was short by"),
                  why.out);
    CHECK_MESSAGE(contains(why.out, "0.50 units that a run of add reserves"), why.out);
    // A resume finds no more money: the same books, the same answer.
    CHECK(scene.run("resume").exit_code == 3);
    check_books(scene, {.runs = 6, .parked = parked});
    scene.require_nothing_left();
  }

  TEST_CASE("no command compares a campaign while its runs are open or wait for money") {
    CampaignShape shape;
    shape.global = shape.task = "0.5025";
    const CampaignScene scene(shape);
    const std::string folder = scene.folder().string();
    const std::vector<std::vector<std::string>> comparing{
        {"leaderboard", folder},
        {"compare", folder, folder, "--map", "noop=reference"},
        {"merge", folder, folder},
        {"power", "--n", "2", "--from", folder, "--compare", "reference,noop"}};
    const auto all_refuse = [&](const std::string& why) {
      for (const std::vector<std::string>& args : comparing) {
        const CommandOutcome out = proctor::testing::proctor(args);
        CHECK_MESSAGE(out.exit_code == 2, args[0] << out.out);
        CHECK_MESSAGE(contains(out.err, why + ": a comparison before the end"), args[0] << out.err);
        CHECK(out.out.empty());
      }
      CHECK(contains(scene.run("report").out, "not shown while"));
    };
    REQUIRE(scene.run("plan", {"--freeze"}).exit_code == 0);
    all_refuse(" are open");
    REQUIRE(scene.run("run").exit_code == 3);
    REQUIRE(0 < scene.number("SELECT count(*) FROM runs WHERE state = 'parked'"));
    all_refuse(" parked for money");
    REQUIRE(scene.run("cancel", {"all", "--reason", "enough"}).exit_code == 0);
    CHECK(proctor::testing::proctor(comparing[0]).exit_code == 0);
    CHECK(proctor::testing::proctor(comparing[1]).exit_code == 5);
  }

  TEST_CASE("a copied folder counts its runs once, resumed or from before journals had seals") {
    const CampaignScene scene;
    const std::string folder = scene.folder().string();
    REQUIRE(scene.run("run").exit_code == 0);
    const fs::path copy = scene.temp() / "copy", again = scene.temp() / "again";
    fs::copy(folder, copy, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    REQUIRE(proctor::testing::proctor({"resume", copy.string()}).exit_code == 0);
    const auto refused = [&](const std::string& command, const std::string& other) {
      const CommandOutcome out = proctor::testing::proctor({command, folder, other});
      CHECK_MESSAGE(out.exit_code == 2, command << out.out);
      CHECK_MESSAGE(contains(out.err, "4 runs of "), out.err);
    };
    const auto compared = [&](const fs::path& other) {
      return proctor::testing::proctor({"compare", folder, other.string()}).out;
    };
    for (const char* command : {"merge", "leaderboard"}) refused(command, copy.string());
    CHECK(contains(compared(copy), ": 4 runs are in both"));
    scene.sql(as_schema(3));
    for (const char* command : {"merge", "leaderboard"}) refused(command, folder);
    // The same plan, run again, has other attempts.
    fs::copy(folder, again, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    fs::remove_all(again / "runs");
    for (const char* file :
         {"journal.sqlite", "journal.sqlite-wal", "journal.sqlite-shm", "status.json"})
      fs::remove(again / ".proctor" / file);
    const CommandOutcome ran = proctor::testing::proctor({"run", again.string(), "--again"});
    CHECK_MESSAGE(ran.exit_code == 0, ran.err);
    CHECK(proctor::testing::proctor({"merge", folder, again.string()}).exit_code == 0);
    CHECK_FALSE(contains(compared(again), "in both"));
  }

  TEST_CASE("two campaigns on one machine do not disturb each other") {
    CampaignShape shape = gated_shape(1);
    const CampaignScene first(shape);
    Child run = first.start("run");
    REQUIRE_MESSAGE(eventually([&] { return first.agents_run(1); }), first.said());
    shape.methods = {"noop"};
    const CampaignScene second(shape);
    const CommandOutcome ran = second.run("run");
    CHECK_MESSAGE(ran.exit_code == 0, ran.err);
    CHECK(first.agents_run(1));
    first.open_gate();
    CHECK_MESSAGE(run.wait(180s) == 0, first.said());
    CHECK(first.number("SELECT count(*) FROM attempts") == 1);
    CHECK(first.number("SELECT count(*) FROM runs WHERE outcome = 'success'") == 1);
  }
}
