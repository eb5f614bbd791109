// Completion as a real bash asks for it.
#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "tests/support/campaign_scene.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

// What bash would offer after `line`, in `cwd`: the script is sourced, and its function called with
// what readline gives it.
std::vector<std::string> offered(const std::string& line, const fs::path& cwd) {
  const std::string script =
      "source <(\"$0\" completion bash) || exit 9\n"
      "complete -p proctor | grep -q -- '-F _proctor' || exit 8\n"
      "COMP_LINE=$1; COMP_POINT=${#1}; COMP_WORDS=(\"$0\"); COMP_CWORD=1\n"
      "_proctor\n"
      "for c in \"${COMPREPLY[@]}\"; do printf '%s\\n' \"$c\"; done\n";
  const std::string out = output_of(
      {"bash", "--norc", "--noprofile", "-c", script, proctor_program().string(), line}, cwd);
  std::vector<std::string> lines;
  std::istringstream in(out);
  for (std::string l; std::getline(in, l);) lines.push_back(l);
  return lines;
}

using Words = std::vector<std::string>;

bool holds(const Words& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

}  // namespace

TEST_SUITE("completion") {
  TEST_CASE("bash completes commands and options and campaigns and runs and workers") {
    CampaignShape shape;
    shape.tasks = {"add", "noop"};  // one name is a task and a method
    const CampaignScene scene(shape);
    const fs::path here = scene.temp();
    const auto after = [&](const std::string& line) { return offered(line, here); };

    CHECK(after("proctor pau") == Words{"pause"});
    CHECK(holds(after("proctor "), "story"));
    CHECK_FALSE(holds(after("proctor "), "__complete"));
    CHECK(after("proctor pause --n") == Words{"--now"});
    CHECK(after("proctor journal ex") == Words{"export"});
    CHECK(after("proctor completion ") == Words{"bash", "fish", "zsh"});
    CHECK(after("proctor nonsense ").empty());

    CHECK(after("proctor pause ca") == Words{"camp"});
    CHECK(after("proctor pause ").size() == 2);  // camp, and gate/ on the way to nothing
    CHECK(after("proctor pause --reason ").empty());
    CHECK(after("proctor cancel camp ").empty());  // nothing is registered yet
    CHECK(after("proctor pause nowhere/").empty());

    REQUIRE(scene.run("plan", {"--freeze"}).exit_code == 0);
    CHECK(after("proctor cancel camp a") == Words{"add", "add/", "all"});
    CHECK(after("proctor cancel --reason 'its key leaked' camp re") == Words{"reference"});
    // One name for both has to be said longer; bash sees the part behind the colon.
    CHECK(after("proctor cancel camp task:n") == Words{"noop"});
    CHECK(after("proctor cancel camp method:") == Words{"noop"});
    CHECK(after("proctor explain camp ad") == Words{"add/"});
    CHECK(after("proctor explain camp add/n") == Words{"add/noop/"});
    CHECK(after("proctor explain camp add/noop/") == Words{"add/noop/r1", "add/noop/r2"});
    CHECK(after("proctor explain camp gone/").empty());
    CHECK(after("proctor budget raise camp task:a") == Words{"add"});
    CHECK(after("proctor budget ra") == Words{"raise"});
    CHECK(after("proctor kick camp ").empty());  // no worker was ever here
    CHECK(after("proctor list camp --where gate.g4") == Words{"gate.g4="});
    CHECK(after("proctor list camp --where gate.g4=f") == Words{"fail"});
    CHECK(holds(after("proctor list camp --where tag="), "policy.network_denied"));
  }

  TEST_CASE("workers are those of the last status") {
    CampaignShape shape;
    shape.methods = {"noop"};
    shape.replicates = 1;
    shape.workers = 1;  // a second may come after the only run has ended
    const CampaignScene scene(shape);
    const CommandOutcome run = scene.run("run");
    REQUIRE_MESSAGE(run.exit_code == 0, run.err);
    CHECK(offered("proctor kick camp ", scene.temp()) == Words{"local-1"});
    CHECK(offered("proctor drain " + scene.folder().string() + " lo", "/") == Words{"local-1"});
    scene.require_nothing_left();
  }

  TEST_CASE("fish is offered runs by its script" * doctest::test_suite("full")) {
    const std::string script = proctor::testing::proctor({"completion", "fish"}).out;
    CHECK_MESSAGE(contains(script, "complete -c proctor -f"), script);
    CHECK(contains(proctor::testing::proctor({"completion", "tcsh"}).err, "bash, zsh and fish"));
    CommandSpec which;
    which.argv = {"fish", "--version"};
    if (!run_command(which).ok()) {
      MESSAGE("not run: there is no fish on this machine");
      return;
    }
    const CampaignScene scene;
    REQUIRE(scene.run("plan", {"--freeze"}).exit_code == 0);
    const std::string said =
        output_of({"sh", "-c", "PATH=$0:$PATH exec fish --no-config -c \"$1\"",
                   proctor_program().parent_path().string(),
                   "proctor completion fish | source; complete -C 'proctor explain camp add/n'"},
                  scene.temp());
    CHECK(said == "add/noop/");
  }

  TEST_CASE("zsh reads its script" * doctest::test_suite("full")) {
    CommandSpec which;
    which.argv = {"zsh", "--version"};
    if (!run_command(which).ok()) {
      MESSAGE("not run: there is no zsh on this machine");
      return;
    }
    const std::string said = output_of(
        {"zsh", "-fc",
         "autoload -U compinit; compinit -u; source <($0 completion zsh); whence -w _proctor",
         proctor_program().string()});
    CHECK(said == "_proctor: function");
  }
}
