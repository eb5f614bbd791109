// What the help of the programs says, every command of them walked.
#include <sys/stat.h>

#include <sstream>

#include "tests/support/campaign_scene.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

// Commands that `help` lists below "Subcommands:".
std::vector<std::string> listed(const std::string& help) {
  std::vector<std::string> out;
  std::istringstream in(help);
  bool there = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("Subcommands:")) {
      there = true;
    } else if (!line.starts_with(" ")) {
      there = false;
    } else if (there && 2 < line.size() && line.starts_with("  ") && line[2] != ' ') {
      out.push_back(line.substr(2, line.find(' ', 2) - 2));
    }
  }
  return out;
}

std::string help_of(const fs::path& program, const std::vector<std::string>& command) {
  CommandSpec spec;
  spec.argv = {program.string()};
  spec.argv.insert(spec.argv.end(), command.begin(), command.end());
  spec.argv.emplace_back("--help");
  const CommandOutcome out = must(run_command(spec));
  CHECK_MESSAGE(out.exit_code == 0, out.err);
  return out.out;
}

// How many commands have been walked.
std::size_t walk(const fs::path& program, const std::vector<std::string>& command = {}) {
  std::string name = program.filename().string();
  for (const std::string& word : command) name += " " + word;
  CAPTURE(name);
  const std::string help = help_of(program, command);
  for (const char* leak : {"ENUM:", "->0", "->1", "->2", "value in {", " OR {", "(R0", "(R1", "(R2",
                           "REQUIREMENTS", "ARCHITECTURE"}) {
    CAPTURE(leak);
    CHECK_MESSAGE(!contains(help, leak), help);
  }
  std::size_t n = 1;
  for (const std::string& inner : listed(help)) {
    std::vector<std::string> deeper = command;
    deeper.push_back(inner);
    n += walk(program, deeper);
  }
  return n;
}

}  // namespace

TEST_SUITE("help") {
  TEST_CASE("no help of any command shows what is ours alone") {
    CHECK(40 <= walk(proctor_program()));
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{}, {"selftest"}, {"gc"}})
      walk(worker_program(), command);
  }

  TEST_CASE("an option that is not there is named with the one that was meant") {
    const auto said = [](std::vector<std::string> args) {
      const CommandOutcome out = proctor::testing::proctor(std::move(args));
      CHECK(out.exit_code == 2);
      return out.err;
    };
    CHECK(contains(said({"run", "--worker", "4", "nowhere"}), "(did you mean --workers?)"));
    CHECK(contains(said({"serve", "--listn=tcp://127.0.0.1:1", "nowhere"}),
                   "(did you mean --listen?)"));
    CHECK(contains(said({"keygen", "nowhere", "--workers", "w"}), "(did you mean --worker?)"));
    CHECK_FALSE(contains(said({"run", "--zzzzzz", "nowhere"}), "did you mean"));
    // One that is required and mistyped is not just missing.
    const std::string reson = said({"cancel", "nowhere", "all", "--reson", "its key has leaked"});
    CHECK_MESSAGE(contains(reson, "there is no option --reson (did you mean --reason?)"), reson);
    CHECK(contains(said({"budget", "raise", "nowhere", "global", "5", "--raeson=x"}),
                   "(did you mean --reason?)"));
    CHECK(contains(said({"remove-task", "nowhere", "t"}), "--reason is required"));
  }

  TEST_CASE("what standard output did not take is told, whatever the command") {
    const auto into_full = [](const std::string& args) {
      CommandSpec spec;
      spec.argv = {"sh", "-c", "exec " + proctor_program().string() + " " + args + " >/dev/full"};
      return must(run_command(spec));
    };
    for (const char* args : {"--help", "--version", "completion bash"}) {
      CAPTURE(args);
      const CommandOutcome out = into_full(args);
      CHECK(out.exit_code == 4);
      CHECK_MESSAGE(contains(out.err, "No space left on device"), out.err);
    }
  }

  TEST_CASE("an empty path and a named pipe are bad input, at once") {
    const CommandOutcome empty = proctor::testing::proctor({"init", ""});
    CHECK(empty.exit_code == 2);
    CHECK_MESSAGE(contains(empty.err, "an empty path names nothing"), empty.err);
    const auto dir = TempDir::create("pipe");
    REQUIRE(dir.ok());
    const std::string pipe = (dir->path() / "data.jsonl").string();
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    const CommandOutcome out = proctor::testing::proctor({"cvdp", "check", pipe});
    CHECK(out.exit_code == 2);
    CHECK_MESSAGE(contains(out.err, "a named pipe"), out.err);
  }

  TEST_CASE("a run, a task, a method or a campaign that is not there is named with the one meant") {
    const CampaignScene scene;
    REQUIRE(scene.run("plan", {"--freeze"}).exit_code == 0);
    const auto names_it = [](const CommandOutcome& out, const std::string& meant) {
      CHECK(out.exit_code == 2);
      CHECK_MESSAGE(contains(out.err, "(did you mean " + meant + "?)"), out.err);
    };
    for (const char* command : {"logs", "diff", "explain"})
      names_it(scene.run(command, {"add/nop/r1"}), "add/noop/r1");
    names_it(scene.run("try", {"ad", "noop"}), "add");
    names_it(scene.run("try", {"add", "refrence"}), "reference");
    REQUIRE(scene.run("run").exit_code == 0);
    for (const char* command : {"requeue", "approve", "cancel"}) {
      names_it(scene.run(command, {"add/nop/r1", "--reason", "x"}), "add/noop/r1");
      names_it(scene.run(command, {"refrence", "--reason", "x"}), "reference");
    }
    names_it(scene.run("quarantine", {"locl-1"}), "local-1");
    names_it(proctor::testing::proctor(
                 {"budget", "raise", scene.folder().string(), "task:ad", "45", "--reason", "x"}),
             "task:add");
    const std::string typed = (scene.temp() / "cmp").string(), meant = scene.folder().string();
    for (const char* command : {"status", "check", "run", "report", "logs", "explain", "pause"}) {
      CAPTURE(command);
      std::vector<std::string> args{command, typed};
      if (std::string_view(command) == "logs" || std::string_view(command) == "explain")
        args.emplace_back("add/noop/r1");
      names_it(proctor::testing::proctor(std::move(args)), meant);
    }
    names_it(proctor::testing::proctor({"copy", typed, (scene.temp() / "new").string()}), meant);
  }

  TEST_CASE("serve without keys fails before it registers anything") {
    const CampaignScene scene;
    const auto refused = [&](std::vector<std::string> more) {
      const CommandOutcome out = scene.run("serve", std::move(more));
      CHECK_MESSAGE(out.exit_code == 2, out.err);
      CHECK_FALSE(fs::exists(scene.folder() / "registration.json"));
      CHECK_FALSE(fs::exists(scene.folder() / "plan.csv"));
      return out.err;
    };
    const std::string err = refused({"--listen", "tcp://127.0.0.1:0"});
    CHECK_MESSAGE(contains(err, "proctor keygen " + scene.folder().string()), err);
    refused({"--listen", "nonsense"});
    refused({"--listen", "tcp://0.0.0.0:0", "--insecure-loopback"});
  }
}
