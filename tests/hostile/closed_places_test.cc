// Candidates that close the folders which the worker shows their commands and reads afterwards: who
// cannot solve a task stays in the count, and who can is judged by what he solved.
#include "tests/hostile/hostile_campaign.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

const std::string kPlaces = "/workspace /workspace/tests $HOME \"${PROCTOR_RESULTS:-$HOME}\"";
const std::string kClose = "chmod 000 " + kPlaces + " 2> /dev/null; ";

std::string calc(const std::string& script) {
  return "cat > calc.sh <<'END'\n" + script + "\nEND\n";
}

}  // namespace

TEST_SUITE("hostile") {
  TEST_CASE("who closes the workspace in a check or a setup does not leave the count by it") {
    const auto kind = make_kind();
    if (!kind) return;
    const std::vector<HostileAgent> agents = {
        {"wrong", calc(kClose + "echo 7"), "failure"},
        {"right", calc("chmod 000 /workspace $HOME; echo $(($1 + $2))"), "success"},
        {"unsearchable", calc("chmod 600 /workspace; echo 7"), "failure"},
        {"in-setup", "echo '" + kClose + "' > prepare.sh", "failure"},
        {"itself", "echo 'echo $(($1 + $2))' > calc.sh; chmod 000 /workspace $HOME", "success"}};
    const auto scene = hostile_scene(
        *kind, agents, {{"prepare.sh", ":\n"}},
        "setup:\n  - {command: sh prepare.sh, timeout: 120s}\n"
        "checks:\n"
        "  - {id: first, command: 'test $(sh calc.sh 2 3) = 5', kind: unit, timeout: 120s}\n"
        "  - {id: second, command: 'test $(sh calc.sh 4 3) = 7 && echo x > $PROCTOR_RESULTS/x', "
        "kind: unit, timeout: 120s}\n"
        "policy:\n  protected: [\"tests/**\"]\n  wall: 60s\n  memory: 128MiB\n  processes: 32\n");
    run_hostile(*scene, agents);
  }
}
