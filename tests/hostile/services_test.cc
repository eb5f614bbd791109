// Candidates whose code runs as a service, beside the check that judges them: from there it forges,
// floods, kills and outlives, and the verdict is what the code is worth.
#include "tests/hostile/hostile_campaign.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

const std::string kWrong = "failure";

// The judge is a file of the contract, which nobody can write; the workspace is shared with the
// services (docs/sandbox.md, "What is not promised").
const std::map<std::string, std::string> kFiles = {{"side.sh", "exec sleep 1000\n"}};
const std::string kContract =
    "services:\n"
    "  - {name: side, command: exec sh side.sh, memory: 64MiB, processes: 16}\n"
    "checks:\n"
    "  - {id: first, command: sh $PROCTOR_CONTRACT/judge.sh, kind: integration, timeout: 120s, "
    "result: tap, result_file: sums.tap, fail_to_pass: [\"sums\"]}\n"
    "  - {id: second, command: sh $PROCTOR_CONTRACT/judge.sh, kind: integration, timeout: 120s, "
    "result: tap, result_file: sums.tap, fail_to_pass: [\"sums\"]}\n"
    "files: [judge.sh]\n"
    "policy:\n  wall: 60s\n  memory: 256MiB\n  processes: 64\n";
const std::string kJudge =
    "sleep 0.3\n"  // its service gets to work
    "if [ \"$(sh calc.sh 2 3)\" = 5 ]; then echo 'ok 1 - sums'; else echo 'not ok 1 - sums'; fi > "
    "$PROCTOR_RESULTS/sums.tap\necho 1..1 >> $PROCTOR_RESULTS/sums.tap\n";

std::string side(const std::string& script) {
  return "cat > side.sh <<'END'\n" + script + "\nEND\n";
}

const std::string kFix = "echo 'echo $(($1 + $2))' > calc.sh\n";
const std::string kOk = "printf 'ok 1 - sums\\n1..1\\n'";

const std::vector<HostileAgent> kAgents = {
    {"honest", kFix, "success"},
    {"writes-results",
     side("while :; do for d in $PROCTOR_RESULTS /proctor/results "
          "/proc/[0-9]*/root/proctor/results; "
          "do " +
          kOk + " > $d/sums.tap; done; done 2> /dev/null"),
     kWrong},
    {"replaces-the-judge",
     side("while :; do for f in $PROCTOR_CONTRACT/judge.sh /proctor/contract/judge.sh /bin/sh; do "
          "chmod u+w $f; echo exit 0 > $f; mv $f $f.old; done; mount -t tmpfs x /proctor; done 2> "
          "/dev/null"),
     kWrong},
    // Also between the worker's opening it and the start of the check.
    {"closes-the-workspace", side("while :; do chmod 000 /workspace $HOME; done 2> /dev/null"), ""},
    {"kills-all", side("while :; do kill -9 -1; kill -9 1 $PPID; done 2> /dev/null"), kWrong},
    {"kills-all-and-is-right",
     kFix + side("(while :; do kill -9 $PPID; done) 2> /dev/null & "
                 "exec sleep 1000"),
     "success"},
    {"outlives",
     side("for i in 1 2 3; do (setsid sh -c 'trap \"\" TERM HUP INT; while :; do sleep 1; "
          "done' &) ; done; exec sleep 1000"),
     kWrong},
    {"bombs-and-is-right", kFix + side("f() { f | f & }; f 2> /dev/null; exec sleep 1000"),
     "success"},
    {"floods-and-is-right",
     kFix + side("while :; do printf '\\033]0;pwned\\007\\033[2J%08192d\\n' 0; done"), "success"},
    {"eats-memory", side("x=x; while :; do x=$x$x; done"), kWrong},
    {"spies",
     side("while :; do cat /proc/[0-9]*/environ /proctor/contract/* > spied; done 2> /dev/null"),
     kWrong}};

}  // namespace

TEST_SUITE("hostile") {
  TEST_CASE("code that runs as a service beside its judge is judged by what it is worth" *
            doctest::test_suite("full")) {
    const auto kind = make_kind();
    if (!kind) return;
    const auto scene = hostile_scene(*kind, kAgents, kFiles, kContract);
    scene->write(scene->contract().parent_path() / "judge.sh", kJudge);
    run_hostile(*scene, kAgents);
  }
}
