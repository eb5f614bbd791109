// Recorded patches judged again: `proctor replay` and `proctor regrade`.
#include "common/base/file_lock.h"
#include "common/trace/run_report.h"
#include "tests/support/books.h"

using namespace proctor;
using namespace proctor::testing;

namespace {
CampaignShape shape_of(std::vector<std::string> methods) {
  CampaignShape shape;
  shape.methods = std::move(methods);
  shape.ledger = "journal";
  return shape;
}
CampaignShape usual() {
  return shape_of({"noop", "reference", solving_method("solver"),
                   "{name: wrong, kind: command, command: 'echo \"echo 7\" > calc.sh'}"});
}

// All bytes of a campaign but for the folders that a replay makes, that its workers share, and what
// readers of the journal leave beside it.
std::string bytes_of(const CampaignScene& scene) {
  std::map<std::string, std::string> files;
  using Walk = fs::recursive_directory_iterator;
  for (Walk it(scene.folder()), end; it != end; ++it) {
    if (it->path() == scene.folder() / "regrades" || it->path() == scene.state() / "workers")
      it.disable_recursion_pending();
    else if (it->is_regular_file() && !contains(it->path().filename().string(), ".sqlite-"))
      files[it->path().string()] = scene.read(it->path());
  }
  std::string out;
  for (const auto& [path, bytes] : files) out += path + " " + sha256(bytes).hex() + "\n";
  return out;
}

// Events have other numbers.
std::map<std::string, std::string> gates_of(const RunReport& report) {
  std::map<std::string, std::string> out;
  for (const GateReport& g : report.gates) out[g.gate] = g.outcome;
  return out;
}

CommandOutcome proctor_of(const CampaignScene& scene, const std::string& command,
                          const std::string& name, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {command, (scene.folder() / "regrades" / name).string()});
  return proctor::testing::proctor(more);
}

std::map<std::string, Json> lines_of(const CampaignScene& scene, const fs::path& file) {
  std::map<std::string, Json> out;
  const std::string text = scene.read(file);
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    Json line = parse_json(rest.substr(0, end)).value();
    out.emplace(line["run_name"].string(), std::move(line));
    rest.remove_prefix(end + 1);
  }
  return out;
}

void runs(const CampaignScene& scene) {
  const CommandOutcome ran = scene.run("run");
  REQUIRE_MESSAGE(!scene.sql("select 1 from attempts").empty(), ran.err);
}
}  // namespace

TEST_SUITE("campaign") {
  TEST_CASE("replay reproduces every verdict for nothing, and leaves the campaign as it is") {
    const CampaignScene scene(usual());
    runs(scene);
    const std::string before = bytes_of(scene);
    const CommandOutcome replayed = scene.run("replay");
    REQUIRE_MESSAGE(replayed.exit_code == 0, replayed.out << replayed.err);
    CHECK(contains(replayed.out, "add/wrong/r2: reproduced\n"));
    CHECK(contains(replayed.out, "8 reproduced, 0 diverged, 0 not judged\n"));
    CHECK(bytes_of(scene) == before);
    const fs::path derived = scene.folder() / "regrades/replay-1";
    const std::string plan = "pilot_randomization_plan.csv";
    CHECK(scene.read(derived / plan) == scene.read(scene.folder() / plan));
    const auto lines = lines_of(scene, derived / "reports/replay.jsonl");
    REQUIRE(lines.size() == 8);
    const Json& wrong = lines.at("add/wrong/r1");
    CHECK(wrong["old"]["outcome"] == "failure");
    CHECK(wrong["new"]["outcome"] == "failure");
    CHECK(wrong["old"]["contract"] == wrong["new"]["contract"]);
    CHECK(wrong["old"]["report"] != wrong["new"]["report"]);
    CHECK(wrong["differences"].empty());
    // Patch, verdict, checks and gates are those of the original; models cost nothing.
    for (const auto& [name, line] : lines) {
      const std::string file = name + "/attempt-1/report.json";
      const RunReport was = parse_report(scene.read(scene.folder() / "runs" / file)).value();
      const RunReport is = parse_report(scene.read(derived / "runs" / file)).value();
      CHECK(is.patch == was.patch);
      CHECK(is.outcome == was.outcome);
      CHECK(gates_of(is) == gates_of(was));
      CHECK(is.application == was.application);
      CHECK(is.cost.model == MicroUsd::zero());
      CHECK(is.usage.agent_ms == 0);
      CHECK(is.usage.model_calls == 0);
      CHECK(is.failed_cycles == 0);
    }
    // It is a campaign like any other.
    const CommandOutcome verified = proctor_of(scene, "verify", "replay-1");
    CHECK_MESSAGE(verified.exit_code == 0, verified.out << verified.err);
    CHECK_MESSAGE(contains(verified.out, "money: no envelope: a replay costs nothing"),
                  verified.out);
    CHECK(contains(scene.run("verify").out, " reserved, of 50.000000\n"));
    const CommandOutcome checked = proctor_of(scene, "check", "replay-1", {"--offline"});
    CHECK_MESSAGE(contains(checked.out, "no envelope: a replay costs nothing"), checked.out);
    const CommandOutcome report = proctor_of(scene, "report", "replay-1");
    CHECK_MESSAGE(report.exit_code == 0, report.err);
    CHECK(scene.run("verify").exit_code == 0);
    const Json registered = parse_json(scene.read(derived / "registration.json")).value();
    const Json own = parse_json(scene.read(scene.folder() / "registration.json")).value();
    CHECK(registered["frozen"]["contracts"] == own["frozen"]["contracts"]);
    CHECK(registered["frozen"]["derived_from"]["contract:add"] ==
          own["frozen"]["contracts"]["add"]);
    // A second one is another; a part of the runs leaves the others out of its plan.
    const CommandOutcome part = scene.run("replay", {"wrong", "add/noop/r1", "--json"});
    REQUIRE_MESSAGE(part.exit_code == 0, part.err);
    const Json said = parse_json(part.out).value();
    CHECK(said["runs"].size() == 3);
    CHECK(said["model_micros"] == 0);
    CHECK(said["name"] == (scene.folder() / "regrades/replay-2").string());
    CHECK(proctor_of(scene, "verify", "replay-2").exit_code == 0);
    // A part may have been chosen for its verdict, so it is compared with nothing.
    for (const auto& [name, interim] : {std::pair("replay-1", false), {"replay-2", true}}) {
      const fs::path file = scene.folder() / "regrades" / name / "reports/report.json";
      const Json analysis =
          parse_json(scene.read(file), {std::size_t{64} << 20}).value()["analysis"];
      CHECK(analysis["interim"] == interim);
      CHECK(analysis["contrasts"].empty() == interim);
    }
    // One that was not asked for has no task that was removed.
    const CommandOutcome unasked =
        proctor_of(scene, "explain", "replay-2", {"add/solver/r1", "--json"});
    REQUIRE_MESSAGE(unasked.exit_code == 0, unasked.err);
    CHECK(parse_json(unasked.out).value()["why"]["code"] == "not_judged_again");
    for (const char* command : {"logs", "diff"}) {
      const CommandOutcome nothing = proctor_of(scene, command, "replay-2", {"add/solver/r1"});
      CHECK(nothing.exit_code == 2);
      CHECK_MESSAGE(contains(nothing.err, "not judged again"), nothing.err);
      CHECK_MESSAGE(contains(nothing.err, scene.folder().string() + "\n"), nothing.err);
      CHECK(proctor_of(scene, command, "replay-2", {"add/wrong/r1"}).exit_code == 0);
    }
    // Another process makes the next one: this one takes the name behind it.
    {
      const auto held = FileLock::try_acquire(scene.folder() / "regrades/replay-3.lock");
      REQUIRE(held.ok());
      const CommandOutcome beside = scene.run("replay", {"add/noop/r1", "--json"});
      REQUIRE_MESSAGE(beside.exit_code == 0, beside.err);
      CHECK(parse_json(beside.out).value()["name"] ==
            (scene.folder() / "regrades/replay-4").string());
    }
    // One that is there goes on, and comes to the same.
    const CommandOutcome again = scene.run("replay", {"--name", "replay-1"});
    CHECK_MESSAGE(again.exit_code == 0, again.err);
    CHECK(contains(again.out, "8 reproduced, 0 diverged, 0 not judged\n"));
    const fs::path kept = derived / "reports/replay.jsonl";
    const std::string record = scene.read(kept);
    const CommandOutcome others = scene.run("replay", {"add/noop/r1", "--name", "replay-1"});
    CHECK(others.exit_code != 0);
    CHECK_MESSAGE(contains(others.err, "give another --name"), others.err);
    CHECK(scene.read(kept) == record);
    // The lines of old and new are verified like the other reports.
    scene.write(kept, record + "\n");
    const CommandOutcome edited = proctor_of(scene, "verify", "replay-1");
    CHECK(edited.exit_code == 1);
    CHECK_MESSAGE(contains(edited.out, "reports/replay.jsonl: "), edited.out);
    scene.write(kept, record);
    // So is each file that the campaign was made of: Proctor alone writes there.
    for (const char* name :
         {"recorded/add/wrong/r1.patch", "recorded/add/wrong/r1.json",
          "contracts/add/contract.json", "campaign.yaml", "pilot_randomization_plan.csv"}) {
      CAPTURE(name);
      const std::string bytes = scene.read(derived / name);
      scene.write(derived / name, bytes + "\n");
      const CommandOutcome changed = proctor_of(scene, "verify", "replay-1");
      CHECK(changed.exit_code == 1);
      CHECK_MESSAGE(contains(changed.out, (derived / name).string() + " (changed): "), changed.out);
      fs::remove(derived / name);
      scene.write(scene.temp() / "elsewhere", bytes);
      fs::create_symlink(scene.temp() / "elsewhere", derived / name);
      const CommandOutcome link = proctor_of(scene, "verify", "replay-1");
      CHECK(link.exit_code == 1);
      CHECK_MESSAGE(contains(link.out, (derived / name).string() + " (no file of its own): "),
                    link.out);
      fs::remove(derived / name);
      scene.write(derived / name, bytes);
    }
    CHECK(proctor_of(scene, "verify", "replay-1").exit_code == 0);
    CHECK(scene.run("replay", {"nothing"}).exit_code == 2);
    const auto made = [&] {
      return std::distance(fs::directory_iterator(derived.parent_path()), {});
    };
    const auto there = made();
    for (const std::string& name :
         {std::string("../here"), std::string(".."), std::string("a b"), std::string("-a"),
          std::string("a\nb"), std::string(101, 'a')}) {
      CAPTURE(name);
      const CommandOutcome refused = scene.run("replay", {"--name=" + name});
      CHECK(refused.exit_code == 2);
      CHECK_MESSAGE(contains(refused.err, "--name "), refused.err);
      CHECK_MESSAGE(contains(refused.err, " 1 to 100 "), refused.err);
    }
    CHECK(made() == there);
    scene.require_nothing_left();
  }

  TEST_CASE("regrade gives every patch of a task its verdict by the corrected contract") {
    CampaignShape shape = usual();
    shape.tasks = {"add", "more"};
    shape.replicates = 1;
    const CampaignScene scene(shape);
    runs(scene);
    const std::string before = bytes_of(scene);
    const fs::path fixed = scene.temp() / "fixed";
    const auto nothing_at = [&](const std::string& what) {
      const CommandOutcome refused = scene.run("regrade", {"--contracts", fixed.string()});
      CHECK(refused.exit_code == 2);
      CHECK_MESSAGE(contains(refused.err, "--contracts " + fixed.string() + ": " + what),
                    refused.err);
      const std::string next = refused.err.substr(refused.err.find("\n  ") + 3);
      CHECK_MESSAGE(next.starts_with("cp -r '" + (scene.folder() / "contracts").string()), next);
      return next;
    };
    nothing_at("not found");
    REQUIRE(make_dirs(fixed).ok());
    nothing_at("no contract is there");
    // The line that it says to type makes contracts, none of which is corrected yet.
    CommandSpec copy;
    copy.argv = {"/bin/sh", "-c", nothing_at("no contract is there")};
    CHECK(must(run_command(copy)).exit_code == 0);
    const CommandOutcome copied = scene.run("regrade", {"--contracts", fixed.string()});
    CHECK_MESSAGE(contains(copied.err, "no contract there differs"), copied.err);
    fs::remove_all(fixed);
    REQUIRE(make_dirs(fixed).ok());
    const std::string text = scene.read(scene.contract());
    scene.write(fixed / "fix.patch", scene.read(scene.folder() / "contracts/fix.patch"));
    scene.write(fixed / "more.yaml", scene.read(scene.contract("more")));  // as it was
    scene.write(fixed / "add.yaml", text);
    const auto change = [&](std::string_view from, std::string_view to) {
      scene.write(fixed / "add.yaml", text);
      scene.edit(fixed / "add.yaml", from, to);
      return scene.run("regrade", {"--contracts", fixed.string(), "--name", "fix"});
    };
    const CommandOutcome same = change("sh tests/t.sh", "sh tests/t.sh");
    CHECK(same.exit_code == 2);
    for (const auto& [from, to, key] :
         {std::tuple{"processes: 64", "processes: 65", "policy.processes"},
          {"must print the sum.", "must print a sum.", "briefing"},
          {"reference_patch: fix.patch", "reference_patch: fix.patch\nsetup: [make]", "setup"}}) {
      const CommandOutcome refused = change(from, to);
      CHECK(refused.exit_code == 2);
      CHECK_MESSAGE(contains(refused.err, std::string(key) + ": differs"), refused.err);
    }
    CHECK_FALSE(fs::exists(scene.folder() / "regrades"));
    const CommandOutcome graded = change("sh tests/t.sh", "grep -q 7 calc.sh");
    REQUIRE_MESSAGE(graded.exit_code == 0, graded.out << graded.err);
    CHECK_MESSAGE(contains(graded.out,
                           "add: 4 patches of 4 methods; failure -> success 1, success "
                           "-> failure 2, unchanged 1\n"),
                  graded.out);
    CHECK(bytes_of(scene) == before);
    const fs::path derived = scene.folder() / "regrades/fix";
    const auto lines = lines_of(scene, derived / "reports/regrade.jsonl");
    REQUIRE(lines.size() == 4);
    const Json& wrong = lines.at("add/wrong/r1");
    CHECK(wrong["old"]["outcome"] == "failure");
    CHECK(wrong["new"]["outcome"] == "success");
    CHECK(wrong["differences"][1]["what"] == "check sums");
    const Json registered = parse_json(scene.read(derived / "registration.json")).value();
    CHECK(registered["frozen"]["derived_from"]["contract:add"] == wrong["old"]["contract"]);
    CHECK(registered["frozen"]["contracts"]["add"] == wrong["new"]["contract"]);
    CHECK(wrong["old"]["contract"] != wrong["new"]["contract"]);
    const CommandOutcome verified = proctor_of(scene, "verify", "fix");
    CHECK_MESSAGE(verified.exit_code == 0, verified.out << verified.err);
    CHECK(proctor_of(scene, "report", "fix").exit_code == 0);
    // The old verdict is beside the new one in each table.
    const fs::path reports = derived / "reports";
    CHECK(scene.read(reports / "judged_again.csv") ==
          "method,old_outcome,outcome,runs\nnoop,failure,failure,1\n"
          "reference,success,failure,1\nsolver,success,failure,1\nwrong,failure,success,1\n");
    CHECK(contains(scene.read(reports / "report.txt"), "add/wrong/r1: failure -> success\n"));
    // Each of them may be read alone.
    const std::string origin =
        "regrade of " + registered["frozen"]["derived_from"]["campaign"].string();
    for (const char* name : {"report.txt", "report.html", "summary.md", "badge.svg"})
      CHECK_MESSAGE(contains(scene.read(reports / name), origin), name);
    CHECK_MESSAGE(contains(verified.out, "money: no envelope: a regrade costs nothing"),
                  verified.out);
    CHECK(contains(scene.read(reports / "junit.xml"),
                   R"(<property name="old_outcome" value="success"/>)"));
    const std::string page = scene.read(reports / "report.html");
    CHECK_FALSE(contains(page, "No result was scored again"));
    // Its commands lead to it, and its monitors looked at acceptance.
    CHECK(contains(page, "/regrades/NAME"));
    CHECK(contains(page, "(of this judging; "));
    const auto records = lines_of(scene, reports / "run_records.jsonl");
    CHECK(records.at("add/wrong/r1")["old_outcome"] == "failure");
    CHECK_FALSE(records.at("more/wrong/r1").contains("old_outcome"));
    CHECK_FALSE(fs::exists(scene.folder() / "reports/judged_again.csv"));
    const CommandOutcome why = proctor_of(scene, "explain", "fix", {"add/wrong/r1", "--json"});
    REQUIRE_MESSAGE(why.exit_code == 0, why.err);
    const Json explained = parse_json(why.out).value();
    CHECK(explained["outcome"] == "success");
    CHECK(explained["old_outcome"] == "failure");
    for (const char* run : {"add/wrong/r1", "add/solver/r1"}) {
      const fs::path file = derived / "runs" / run / "attempt-1/report.json";
      const Json told =
          parse_json(proctor_of(scene, "explain", "fix", {run, "--json"}).out).value();
      const RunReport report = parse_report(scene.read(file)).value();
      const Json& attempt = told["attempts"][0];
      REQUIRE(attempt["gates"].size() == report.gates.size());
      CHECK(attempt["gates"][2]["outcome"] == report.gates[2].outcome);
      CHECK(attempt["gates"][2]["evidence"][0] == report.gates[2].evidence.front());
      REQUIRE(attempt["tags"].size() == report.tags.size());
      for (std::size_t t = 0; t < report.tags.size(); ++t) {
        CHECK(attempt["tags"][t]["id"] == report.tags[t].id);
        CHECK(attempt["tags"][t]["evidence"][0] == report.tags[t].evidence.front());
      }
    }
    CHECK(contains(proctor_of(scene, "explain", "fix", {"add/wrong/r1"}).out,
                   "ended with success; its patch is judged again, and was failure\n"));
    // All that differs is named, and no class of configurations does for want of caps.
    CHECK_MESSAGE(contains(graded.out, "check sums fail -> pass; gate functional fail -> pass"),
                  graded.out);
    CHECK_FALSE(contains(graded.out, "another configuration class"));
    // The same name is for the same contracts.
    CHECK(change("sh tests/t.sh", "grep -q 8 calc.sh").exit_code == 2);
  }

  TEST_CASE("evidence that was changed is refused before anything is made") {
    const CampaignScene scene(usual());
    runs(scene);
    const fs::path run = scene.folder() / "runs/add/solver/r1/attempt-1";
    for (const char* file : {"patch.diff", "report.json", "events.jsonl"}) {
      const std::string bytes = scene.read(run / file);
      scene.write(run / file, bytes + "\n");
      const CommandOutcome refused = scene.run("replay");
      CHECK(refused.exit_code == 2);
      CHECK_MESSAGE(contains(refused.err, "add/solver/r1: "), refused.err);
      CHECK(contains(refused.err, sha256(bytes).hex()));
      CHECK(contains(refused.err, sha256(bytes + "\n").hex()));
      CHECK_FALSE(fs::exists(scene.folder() / "regrades"));
      // Runs that are not asked for are not looked at.
      CHECK(scene.run("replay", {"noop", "--name", file}).exit_code == 0);
      fs::remove_all(scene.folder() / "regrades");
      scene.write(run / file, bytes);
    }
    fs::remove(run / "patch.diff");
    CHECK(scene.run("replay").exit_code == 2);
    // A class of configurations is known by any of its manifests.
    for (const char* method : {"noop", "reference", "solver", "wrong"})
      fs::remove(scene.folder() / "runs/add" / method / "r1/attempt-1/manifest.json");
    CHECK(scene.run("report").exit_code == 0);
    const std::string page = scene.read(scene.folder() / "reports/report.html");
    CHECK(contains(page, "judged runs: calls: "));
    CHECK_FALSE(contains(page, "judged runs: not known"));
  }

  TEST_CASE("a link in the place of a folder of regrades is refused, and leads nobody elsewhere") {
    CampaignShape shape = shape_of({"noop"});
    shape.replicates = 1;
    const CampaignScene scene(shape);
    runs(scene);
    const fs::path regrades = scene.folder() / "regrades", elsewhere = scene.temp() / "elsewhere";
    REQUIRE(make_dirs(elsewhere).ok());
    const auto is_refused = [&](const fs::path& place) {
      const CommandOutcome refused = scene.run("replay", {"--name", "one"});
      CHECK(refused.exit_code == 2);
      CHECK_MESSAGE(contains(refused.err, place.string() + ": a symbolic link"), refused.err);
      CHECK(fs::is_empty(elsewhere));
    };
    for (const fs::path& target : {elsewhere, scene.temp() / "nowhere"}) {
      CAPTURE(target);
      fs::create_directory_symlink(target, regrades);
      is_refused(regrades);
      fs::remove(regrades);
      REQUIRE(make_dirs(regrades).ok());
      fs::create_directory_symlink(target, regrades / "one");
      is_refused(regrades / "one");
      fs::remove_all(regrades);
    }
    CHECK_FALSE(fs::exists(scene.temp() / "nowhere"));
    CHECK(scene.run("replay", {"--name", "one"}).exit_code == 0);
  }

  TEST_CASE("a replay sees what setup made, what agents may not change, and what is no patch") {
    CampaignShape shape = shape_of(
        {"noop", solving_method("litter", "mkfifo pipe; echo x > tests/t.sh; echo y > other; "),
         solving_method("kept", "chmod u+w made.txt; "),
         solving_method("markers", "printf \"<<<<<<< a\\n\" > calc2.sh; ")});
    shape.replicates = 1;
    for (const bool setup : {true, false}) {
      CAPTURE(setup);
      const CampaignScene scene(shape);
      scene.edit(scene.contract(), "policy:\n", "policy:\n  writable: [\"calc*\", \"tests/**\"]\n");
      if (setup) {
        scene.edit(scene.contract(),
                   "checks:", "setup: ['echo a > tests/made.txt; echo b > made.txt']\nchecks:");
        scene.edit(scene.contract(), "command: sh tests/t.sh",
                   "command: 'test -s tests/made.txt && sh tests/t.sh'");
      } else {
        scene.edit(scene.folder() / "campaign.yaml", "chmod u+w made.txt; ", "");
      }
      runs(scene);
      const CommandOutcome replayed = scene.run("replay");
      CHECK_MESSAGE(replayed.exit_code == 0, replayed.out << replayed.err);
      CHECK(contains(replayed.out, "4 reproduced, 0 diverged, 0 not judged\n"));
      for (const char* method : {"noop", "litter", "kept", "markers"}) {
        CAPTURE(method);
        const std::string file = "runs/add/" + std::string(method) + "/r1/attempt-1/report.json";
        const RunReport was = parse_report(scene.read(scene.folder() / file)).value();
        const RunReport is =
            parse_report(scene.read(scene.folder() / "regrades/replay-1" / file)).value();
        CHECK(is.violations == was.violations);
        CHECK(gates_of(is) == gates_of(was));
        CHECK(is.application == was.application);
        CHECK(is.patch == was.patch);
      }
    }
  }

  TEST_CASE("runs without a verdict are named and left out") {
    CampaignShape shape = shape_of({"noop", "{name: gone, kind: command, command: ./nowhere}"});
    shape.replicates = 1;
    const CampaignScene scene(shape);
    scene.edit(scene.folder() / "campaign.yaml", "replicates: 1",
               "replicates: 1\ninfrastructure_retries: 0");
    runs(scene);
    const CommandOutcome replayed = scene.run("replay");
    CHECK_MESSAGE(replayed.exit_code == 0, replayed.out << replayed.err);
    CHECK(contains(replayed.out, "add/gone/r1: not judged again: "));
    CHECK(contains(replayed.out, "1 reproduced, 0 diverged, 0 not judged, 1 left out\n"));
    CHECK(scene.run("replay", {"gone"}).exit_code == 2);
  }
}
