// After the freeze somebody edits a file: who reads evidence still does, and is told which file it
// was; what would run something refuses.
#include <unistd.h>

#include "common/base/text.h"
#include "tests/support/books.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

// A campaign that has run, with a method in a script of its own.
CampaignShape scripted() {
  CampaignShape shape;
  shape.methods = {"noop", "{name: mine, kind: command, script: agent.sh}"};
  shape.replicates = 1;
  return shape;
}

void write_agent(const CampaignScene& scene) {
  const fs::path agent = scene.folder() / "agent.sh";
  scene.write(agent, "#!/bin/sh\necho hello from the agent\necho 'echo $(($1 + $2))' > calc.sh\n");
  fs::permissions(agent, fs::perms(0755));
}

CommandOutcome without(const CampaignScene& scene, const std::string& program,
                       const std::string& command) {
  const fs::path bin = scene.temp() / ("without-" + program);
  fs::create_directories(bin);
  for (const char* name : {"git", "redis-server", "bwrap", "sh", "env"})
    if (program != name && !fs::exists(fs::symlink_status(bin / name)))
      fs::create_symlink(fs::path("/usr/bin") / name, bin / name);
  CommandSpec spec;
  spec.argv = {"/usr/bin/env", "PATH=" + bin.string(), proctor_program().string(), command,
               scene.folder().string()};
  spec.timeout = std::chrono::seconds(300);
  return must(run_command(spec));
}

}  // namespace

TEST_SUITE("campaign") {
  TEST_CASE("one comment in an agent after the freeze hides no evidence and names its file") {
    const CampaignScene scene(scripted());
    write_agent(scene);
    REQUIRE(scene.run("run").exit_code == 0);
    const std::string was = scene.run("report", {"--csv"}).out;
    const fs::path agent = scene.folder() / "agent.sh";
    const std::string text = scene.read(agent);
    scene.write(agent, text + "# a comment\n");

    const std::string run = "add/mine/r1";
    struct Row {
      const char* command;
      std::vector<std::string> more;
      const char* shows;
    };
    const Row rows[] = {{"explain", {run}, "check "},
                        {"logs", {run}, "hello from the agent"},
                        {"diff", {run}, "+echo $(($1 + $2))"},
                        {"list", {}, "add/mine/r1"},
                        {"story", {}, "settled"},
                        {"budget", {}, "global"},
                        {"status", {}, "mine"},
                        {"verify", {}, ": 0 problems"}};
    for (const Row& row : rows) {
      CAPTURE(row.command);
      const CommandOutcome out = scene.run(row.command, row.more);
      CHECK_MESSAGE(out.exit_code == 0, out.err);
      CHECK_MESSAGE(contains(out.out, row.shows), out.out);
      CHECK_MESSAGE(contains(out.err, "agent.sh (changed)"), out.err);
      CHECK_MESSAGE(contains(out.err, "proctor copy " + scene.folder().string()), out.err);
    }
    CHECK(scene.run("report", {"--csv"}).out == was);
    const CommandOutcome cancelled = scene.run("cancel", {"all", "--reason", "enough"});
    CHECK_MESSAGE(contains(cancelled.err, "the campaign has ended"), cancelled.err);

    for (const char* command : {"run", "resume", "serve"}) {
      CAPTURE(command);
      const CommandOutcome refused = scene.run(command);
      CHECK(refused.exit_code == 2);
      CHECK_MESSAGE(contains(refused.err, "\n  agent.sh (changed)"), refused.err);
      CHECK_MESSAGE(contains(refused.err, "proctor copy " + scene.folder().string()), refused.err);
    }
    const CommandOutcome requeued = scene.run("requeue", {"all"});
    CHECK(requeued.exit_code == 2);
    CHECK_MESSAGE(contains(requeued.err, "agent.sh (changed)"), requeued.err);

    // Its way out.
    scene.write(agent, scene.read(scene.state() / "registered/agent.sh"));
    fs::permissions(agent, fs::perms(0755));
    CHECK(scene.read(agent) == text);
    const CommandOutcome quiet = scene.run("explain", {run});
    CHECK(quiet.exit_code == 0);
    CHECK_MESSAGE(quiet.err.empty(), quiet.err);
  }

  TEST_CASE("evidence that cannot be read is never shown as if it were empty") {
    CampaignShape shape;
    shape.methods = {"noop", "{name: pipes, kind: command, command: 'mkfifo left right'}",
                     "{name: deep, kind: command, command: 'i=0; while [ $i -lt 300 ]; do "
                     "i=$((i+1)); mkdir d && cd d || break; done'}"};
    shape.replicates = 1;
    const CampaignScene scene(shape);
    REQUIRE(scene.run("run").exit_code == 0);
    const CommandOutcome deep = scene.run("diff", {"add/deep/r1"});
    CHECK(deep.exit_code == 4);
    CHECK_MESSAGE(contains(deep.err, "could not be read: workspace: nested deeper"), deep.err);
    CHECK_FALSE(contains(deep.err, "changed nothing"));
    const CommandOutcome pipes = scene.run("diff", {"add/pipes/r1"});
    CHECK(pipes.exit_code == 0);
    CHECK_MESSAGE(pipes.out.empty(), pipes.out);
    for (const char* pipe : {"left left,", "left right,"})
      CHECK_MESSAGE(contains(pipes.err, pipe), pipes.err);
    CHECK_FALSE(contains(pipes.err, "changed nothing"));
    const CommandOutcome noop = scene.run("diff", {"add/noop/r1"});
    CHECK(noop.exit_code == 0);
    CHECK_MESSAGE(contains(noop.err, "changed nothing"), noop.err);
    CHECK(scene.run("explain", {"add/noop/r1"}).exit_code == 0);

    const fs::path evidence = scene.folder() / "runs/add/noop/r1/attempt-1";
    fs::permissions(evidence, fs::perms::owner_all);
    for (const char* file : {"report.json", "events.jsonl"}) {
      fs::remove(evidence / file);
      scene.write(evidence / file, "{\n");
    }
    CHECK(scene.run("diff", {"add/noop/r1"}).exit_code == 4);
    const CommandOutcome explained = scene.run("explain", {"add/noop/r1"});
    CHECK(explained.exit_code != 0);
    CHECK_MESSAGE(contains(explained.out, "its evidence cannot be read"), explained.out);
    CHECK_MESSAGE(contains(explained.err, "report.json"), explained.err);
    if (::geteuid() == 0) return;  // it reads all
    fs::permissions(scene.folder() / "runs/add/deep/r1/attempt-1/agent", fs::perms::none);
    CHECK(scene.run("logs", {"add/deep/r1"}).exit_code != 0);
    fs::permissions(scene.folder() / "runs/add/deep/r1/attempt-1/agent", fs::perms::owner_all);
  }

  TEST_CASE("whatever happened to the definition after the freeze what was registered is shown") {
    const CampaignScene scene(scripted());
    write_agent(scene);
    REQUIRE(scene.run("run").exit_code == 0);
    const fs::path yaml = scene.folder() / "campaign.yaml";
    const std::string text = scene.read(yaml);
    const auto shown = [&](const std::string& named) {
      const CommandOutcome out = scene.run("budget");
      CHECK_MESSAGE(out.exit_code == 0, out.err);
      CHECK_MESSAGE((contains(out.out, "50.00") && !contains(out.out, "70.00")), out.out);
      CHECK_MESSAGE(contains(out.err, named), out.err);
    };
    scene.edit(yaml, "50.00", "70.00");
    shown("campaign.yaml (changed)");
    scene.write(yaml, text + "nonsense: [\n");
    shown("campaign.yaml (changed)");
    const CommandOutcome broken = scene.run("resume");
    CHECK(broken.exit_code == 2);
    CHECK_MESSAGE(contains(broken.err, "have changed: campaign.yaml (changed)"), broken.err);
    scene.write(yaml, text);

    const std::string contract = scene.read(scene.contract());
    std::string another = contract;
    another.replace(another.find("id: add"), 7, "id: sub");
    scene.write(scene.contract("sub"), another);
    shown("contracts/sub.yaml (new)");
    fs::remove(scene.contract("sub"));
    fs::remove(scene.contract());
    shown("contracts/add.yaml (gone)");
    scene.write(scene.contract(), contract);

    const fs::path plan = scene.folder() / "pilot_randomization_plan.csv";
    const std::string drawn = scene.read(plan);
    fs::remove(plan);
    shown("pilot_randomization_plan.csv (gone)");
    scene.write(plan, drawn);
    fs::permissions(scene.folder() / "agent.sh", fs::perms(0644));
    shown("agent.sh (not executable any more)");

    // Copies that do not make the registration again are not believed.
    scene.write(scene.state() / "registered/agent.sh", "#!/bin/sh\n");
    const CommandOutcome refused = scene.run("budget");
    CHECK(refused.exit_code == 2);
    CHECK_MESSAGE(contains(refused.err, "differs from its registration"), refused.err);
  }

  TEST_CASE("a program that this host lacks is named before anything is registered") {
    const CampaignScene scene;
    struct Row {
      const char* program;
      const char* package;
    };
    for (const Row& row :
         {Row{"git", "apt-get install git"}, Row{"redis-server", "apt-get install redis-server"},
          Row{"bwrap", "apt-get install bubblewrap"}}) {
      CAPTURE(row.program);
      const CommandOutcome ran = without(scene, row.program, "run");
      CHECK(ran.exit_code == 4);
      CHECK_MESSAGE(contains(ran.err, std::string(row.program) + " is not on this host's PATH"),
                    ran.err);
      CHECK_MESSAGE(contains(ran.err, row.package), ran.err);
      CHECK_FALSE(fs::exists(scene.folder() / "registration.json"));
    }
    CHECK(without(scene, "git", "check").exit_code == 4);
    const CommandOutcome noted = without(scene, "bwrap", "check");
    CHECK(noted.exit_code == 0);
    CHECK_MESSAGE(contains(noted.out, "note: bwrap is not on this host's PATH"), noted.out);
  }

  TEST_CASE("what is kept of the registration is that and nothing else, or verify names it") {
    const CampaignScene scene(scripted());
    write_agent(scene);
    REQUIRE(scene.run("run").exit_code == 0);
    const CommandOutcome good = scene.run("verify");
    CHECK_MESSAGE(good.exit_code == 0, good.out);
    const fs::path kept = scene.state() / "registered";
    const auto names = [&](const std::string& what) {
      const CommandOutcome verified = scene.run("verify");
      CHECK(verified.exit_code == 1);
      CHECK_MESSAGE(contains(verified.out, what + "\n"), verified.out);
    };
    for (const char* extra : {"more.yaml", "contracts/more.yaml", "deeper/x"}) {
      fs::create_directories((kept / extra).parent_path());
      scene.write(kept / extra, "");
      names(std::string(extra) + ": is not of the files that were registered: remove it");
      fs::remove(kept / extra);
    }
    const std::string agent = scene.read(kept / "agent.sh");
    scene.write(kept / "agent.sh", agent + "# a comment\n");
    names("agent.sh: is not as it was registered");
    fs::remove(kept / "agent.sh");
    names("agent.sh: is missing");
    fs::create_symlink(scene.folder() / "agent.sh", kept / "agent.sh");
    names("agent.sh: is no file of its own");
    fs::remove(kept / "agent.sh");
    scene.write(kept / "agent.sh", agent);
    fs::permissions(kept / "agent.sh", fs::perms(0600));
    names("agent.sh: is not executable, and was when it was registered");
    fs::permissions(kept / "agent.sh", fs::perms(0700));
    CHECK(scene.run("verify").exit_code == 0);
    fs::remove(kept / "campaign.yaml");
    names("campaign.yaml: is missing");
  }

  TEST_CASE(
      "a comment in a registered copy is a problem of that file, and so is a missing folder") {
    CampaignShape shape = scripted();
    shape.ledger = "journal";
    const CampaignScene scene(shape);
    write_agent(scene);
    REQUIRE(scene.run("run").exit_code == 0);
    const fs::path kept = scene.state() / "registered", list = scene.state() / "registered.sha256";
    const auto problems = [&](const std::vector<std::string>& expected) {
      const CommandOutcome verified = scene.run("verify");
      CHECK(verified.exit_code == (expected.empty() ? 0 : 1));
      for (const std::string& line : expected)
        CHECK_MESSAGE(contains(verified.out, line + "\n"), verified.out);
      CHECK_MESSAGE(
          contains(verified.out, " events: " + counted(expected.size(), "problem") + "\n"),
          verified.out);
    };
    problems({});
    const std::string changed = ": is not as it was registered";
    for (const char* name : {"campaign.yaml", "contracts/add.yaml", "agent.sh"}) {
      CAPTURE(name);
      const std::string was = scene.read(kept / name);
      scene.write(kept / name, was + "# a comment\n");
      problems({(kept / name).string() + changed});
      scene.write(kept / name, was);
      problems({});
    }
    const std::string listed = scene.read(list);
    fs::rename(kept, scene.temp() / "away");
    problems({kept.string() + ": is missing: it held the files as they were registered"});
    fs::remove(list);
    problems({kept.string() + ": is missing: it held the files as they were registered"});
    fs::rename(scene.temp() / "away", kept);
    problems({list.string() + ": is missing: it lists the files that were registered"});
    scene.write(list, listed + "\n");
    problems(
        {list.string() + ": is not the list of the registered files that the journal speaks of"});

    // Neither does whoever goes on believe another list than the first life did.
    scene.write(kept / "campaign.yaml", scene.read(kept / "campaign.yaml") + "# more\n");
    fs::remove(list);
    REQUIRE(scene.run("resume").exit_code == 0);
    problems({list.string() + ": is missing: it lists the files that were registered"});
    // A copy that is made anew from the same bytes is the same.
    fs::remove_all(kept);
    REQUIRE(scene.run("resume").exit_code == 0);
    problems({});
  }

  TEST_CASE("what an earlier version did not keep or list is no problem, what is not so is one") {
    CampaignShape shape = scripted();
    shape.ledger = "journal";
    const CampaignScene scene(shape);
    write_agent(scene);
    REQUIRE(scene.run("plan", {"--freeze"}).exit_code == 0);
    fs::remove(scene.state() / "registered.sha256");
    REQUIRE(scene.run("run").exit_code == 0);
    CHECK(scene.run("verify").exit_code == 0);
    const fs::path kept = scene.state() / "registered";
    const std::string yaml = scene.read(kept / "campaign.yaml");
    scene.edit(kept / "campaign.yaml", "50.00", "70.00");
    const CommandOutcome other = scene.run("verify");
    CHECK(other.exit_code == 1);
    CHECK_MESSAGE(
        contains(other.out, kept.string() + ": does not make the registration again: envelope"),
        other.out);
    scene.write(kept / "campaign.yaml", yaml + "# a comment\n");
    CHECK(scene.run("verify").exit_code == 0);
    fs::remove_all(kept);
    CHECK(scene.run("verify").exit_code == 0);
  }

  TEST_CASE("a registered file that became a link is a problem of verify, whatever it leads to") {
    CampaignShape shape = scripted();
    shape.ledger = "journal";
    const CampaignScene scene(shape);
    write_agent(scene);
    const fs::path elsewhere = scene.temp() / "elsewhere";
    const auto becomes_link = [&](const std::string& name) {
      fs::rename(scene.folder() / name, elsewhere);
      fs::create_symlink(elsewhere, scene.folder() / name);
    };
    becomes_link("campaign.yaml");  // a person's may be one from the beginning
    REQUIRE(scene.run("run").exit_code == 0);
    CHECK(scene.run("verify").exit_code == 0);
    fs::remove(scene.folder() / "campaign.yaml");
    fs::rename(elsewhere, scene.folder() / "campaign.yaml");
    for (const char* name : {"agent.sh", "contracts/add.yaml", "contracts", "registration.json",
                             "pilot_randomization_plan.csv"}) {
      CAPTURE(name);
      becomes_link(name);
      const CommandOutcome verified = scene.run("verify");
      CHECK(verified.exit_code == 1);
      CHECK_MESSAGE(contains(verified.out, scene.folder().string() + "/" + name), verified.out);
      CHECK_MESSAGE(contains(verified.out, " (no file of its own): "), verified.out);
      fs::remove(scene.folder() / name);
      fs::rename(elsewhere, scene.folder() / name);
      CHECK(scene.run("verify").exit_code == 0);
    }
  }

  TEST_CASE("a link that leads nowhere is as much a problem as one that leads to the same bytes") {
    CampaignShape shape = scripted();
    shape.ledger = "journal";
    const CampaignScene scene(shape);
    write_agent(scene);
    REQUIRE(scene.run("run").exit_code == 0);
    const fs::path away = scene.temp() / "away", none = scene.temp() / "none";
    struct Row {
      const char* path;  // becomes the link
      std::vector<std::string> named;
    };
    const Row rows[] = {{"agent.sh", {"agent.sh"}},
                        {"contracts/add.yaml", {"contracts/add.yaml"}},
                        {"contracts", {"contracts/add.yaml", "contracts/fix.patch"}},
                        {"pilot_randomization_plan.csv", {"pilot_randomization_plan.csv"}}};
    for (const Row& row : rows) {
      const fs::path path = scene.folder() / row.path;
      for (const fs::path& to : {none, path}) {  // missing, and a loop
        CAPTURE(path.string());
        CAPTURE(to.string());
        fs::rename(path, away);
        fs::create_symlink(to, path);
        const CommandOutcome verified = scene.run("verify");
        CHECK_MESSAGE(verified.exit_code == 1, verified.out);
        for (const std::string& name : row.named)
          CHECK_MESSAGE(contains(verified.out,
                                 scene.folder().string() + "/" + name + " (no file of its own): "),
                        verified.out);
        CHECK_MESSAGE(
            contains(verified.out, " events: " + counted(row.named.size(), "problem") + "\n"),
            verified.out);
        fs::remove(path);
        fs::rename(away, path);
      }
    }
    // Files that are missing are none, nor is a person's campaign.yaml that leads nowhere.
    const fs::path agent = scene.folder() / "agent.sh", yaml = scene.folder() / "campaign.yaml";
    const auto only_named = [&](const std::string& what) {
      const CommandOutcome verified = scene.run("verify");
      CHECK_MESSAGE(verified.exit_code == 0, verified.out);
      CHECK_MESSAGE(contains(verified.err, what), verified.err);
    };
    fs::rename(agent, away);
    only_named("agent.sh (gone)");
    fs::rename(away, agent);
    fs::rename(yaml, away);
    fs::create_symlink(none, yaml);
    only_named("campaign.yaml (gone)");
    fs::remove(yaml);
    fs::rename(away, yaml);
    CHECK(scene.run("verify").exit_code == 0);
  }

  TEST_CASE("a campaign's contracts are files of its own folder and no link to others") {
    const CampaignScene scene(scripted());
    write_agent(scene);
    REQUIRE(scene.run("check").exit_code == 0);
    const fs::path contracts = scene.folder() / "contracts", elsewhere = scene.temp() / "elsewhere";
    const auto refused = [&](const std::string& link) {
      for (const char* command : {"check", "plan", "run"}) {
        CAPTURE(command);
        const CommandOutcome out = scene.run(command);
        CHECK(out.exit_code == 2);
        CHECK_MESSAGE(contains(out.out + out.err, "found " + link + ", a symbolic link"),
                      (out.out + out.err));
      }
    };
    fs::rename(contracts, elsewhere);
    fs::create_directory_symlink(elsewhere, contracts);
    refused("contracts");
    fs::remove(contracts);
    fs::rename(elsewhere, contracts);
    fs::rename(scene.contract(), scene.temp() / "add.yaml");
    fs::create_symlink(scene.temp() / "add.yaml", scene.contract());
    refused("contracts/add.yaml");
  }
}
