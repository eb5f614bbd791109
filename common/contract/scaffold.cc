#include "common/contract/scaffold.h"

namespace proctor {
namespace {
constexpr std::string_view kNamePlaceholder = "@NAME@";

constexpr std::string_view kCampaign =
    R"text(# yaml-language-server: $schema=schemas/campaign.schema.json
# A Proctor campaign.  Try, in this order:
#   proctor check .    says everything that is wrong with these files, and runs nothing
#   proctor plan .     draws the order of the runs
#   proctor run .      runs them and prints the report
name: @NAME@

# Every file in contracts/ is a task.  `contracts: [contracts/one.yaml]` would choose.

# What is compared.  noop changes nothing, reference applies the contract's own patch: together they
# show that each task fails without work and can be solved.  A command is any program; it runs in
# the task's workspace, with the briefing in $PROCTOR_BRIEFING, and this folder's files in
# $PROCTOR_METHOD.
methods:
  - noop
  - reference
  - name: scripted
    kind: command
    script: agent.sh

# Each method meets each task this often.
replicates: 2

# In US dollars.  A run never passes `run`; no run starts when it could pass another of these.
budget:
  global: "20.00"
  task: "10.00"
  run: "1.00"
  # ledger: journal   (no Redis at all: the coordinator keeps the envelopes itself)
  # Also possible, across the tree:
  # methods: {scripted: "8.00"}           all runs of a method
  # strata: {language: {shell: "15.00"}}  all runs of tasks with a level of a stratum

# Of each run.  A contract may ask for less.
caps:
  wall: 5m
  tool_calls: 200

# The report is broken down by these; every contract has a value for each.
strata: [language, runtime, dependencies, type]

# Processes that `proctor run` starts, and how many runs each does at a time.
workers: 2
slots: 1

# Calls in any minute, of all runs on all workers; `calls_per_minute` in caps is one run's own.
# rates: {calls_per_minute: 600, providers: {acme: 300}}
)text";

constexpr std::string_view kContract =
    R"text(# yaml-language-server: $schema=../schemas/contract.schema.json
# One task: a repository, what the agent is told, and how its work is judged.
id: fix-greeting
title: The greeting lacks its punctuation
type: bug_fix
strata: {language: shell, runtime: fast, dependencies: none}

# What the agent reads.
briefing: |
  greet.sh prints "Hello Ada" for the argument Ada.  It must print "Hello, Ada!".
  Run `sh test.sh` to see what is expected.

repository:
  source: ../repos/greeting  # a path beside this file, a URL, or a .bundle file
  commit: "@COMMIT@"

# Runs in every fresh workspace, before the agent and before the checks.  There is no network but
# where a step says so: `network: {allow: ["packages.example:443"]}`.
setup:
  - command: chmod +x greet.sh
    timeout: 10s

# Run in order, in a fresh workspace with the agent's patch.
checks:
  - id: syntax
    command: sh -n greet.sh
    kind: static
    timeout: 10s
  - id: greets
    command: sh hidden_test.sh
    kind: unit
    timeout: 30s

# Put into the workspace after the patch: the agent never sees it and cannot change it.
acceptance_files:
  - from: hidden_test.sh
    to: hidden_test.sh

policy:
  protected: [test.sh]  # put back before the checks
  wall: 2m
  memory: 512MiB
  processes: 64
  disk: 256MiB

# Solves the task; used by the method `reference` and by `proctor check`.
reference_patch: fix-greeting.patch
)text";

constexpr std::string_view kPatch = R"text(diff --git a/greet.sh b/greet.sh
--- a/greet.sh
+++ b/greet.sh
@@ -1,3 +1,3 @@
 #!/bin/sh
 # greet.sh NAME: greets NAME.
-echo "Hello $1"
+echo "Hello, $1!"
)text";

constexpr std::string_view kHiddenTest = R"text(#!/bin/sh
# The acceptance test of fix-greeting: exit code 0 is a pass, anything else a failure.
set -u
for name in Ada "Grace Hopper"; do
  found=$(sh greet.sh "$name")
  if [ "$found" != "Hello, $name!" ]; then
    echo "greet.sh $name printed: $found"
    exit 1
  fi
done
)text";

constexpr std::string_view kMakeRepo = R"text(#!/bin/sh
# Makes the repository that contracts/fix-greeting.yaml works on, and prints its commit id.
# Running it again makes the same repository with the same id.
set -eu
cd "$(dirname "$0")"
rm -rf repos/greeting
mkdir -p repos/greeting
cd repos/greeting
cat > greet.sh <<'END'
#!/bin/sh
# greet.sh NAME: greets NAME.
echo "Hello $1"
END
cat > test.sh <<'END'
#!/bin/sh
[ "$(sh greet.sh Ada)" = "Hello, Ada!" ] || { echo "not greeted well"; exit 1; }
END
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=Proctor GIT_AUTHOR_EMAIL=proctor@localhost
export GIT_COMMITTER_NAME=Proctor GIT_COMMITTER_EMAIL=proctor@localhost
export GIT_AUTHOR_DATE='2026-03-07T00:00:00Z' GIT_COMMITTER_DATE='2026-03-07T00:00:00Z'
git -c init.defaultBranch=main init -q .
git -c core.autocrlf=false add .
git commit -q -m 'A greeting'
git rev-parse HEAD
)text";

constexpr std::string_view kAgent = R"text(#!/bin/sh
# A stand-in for an agent: it runs in the workspace and may change any file there.
set -eu
sed -i 's/Hello $1/Hello, $1!/' greet.sh
sh test.sh
)text";

constexpr std::string_view kPrices = R"text(action_type,unit,unit_price,provider,model,notes
sandbox,minute,0.01,,,two cores for a minute
tool_call,call,0.0005,,,
llm_request,input_token,0.000003,,,every model while no row names one
llm_request,output_token,0.000015,,,
artifact_storage,gigabyte,0.02,,,once
run,run,0.001,,,scheduling and bookkeeping
human,minute,0.80,,,a reviewer (proctor review)
)text";

constexpr std::string_view kInputs = R"text({
  "$schema": "schemas/pilot_cost_model_inputs.schema.json",
  "notes": "What you expect a run to use: proctor project makes a forecast of it before money is spent, and the report sets what was used beside it. per_run counts units of the price table (pilot_cost_model.csv), as decimals. Delete this file to go without a forecast.",
  "lost_attempts_per_run": 0,
  "usage": [
    {
      "notes": "An entry without task and method holds for every run that no other entry names.",
      "actions": [
        {"action_type": "sandbox", "unit": "minute", "per_run": 0.02, "notes": "setup, agent and checks together"},
        {"action_type": "artifact_storage", "unit": "gigabyte", "per_run": 0.00001}
      ]
    },
    {
      "method": "scripted",
      "actions": [
        {"action_type": "sandbox", "unit": "minute", "per_run": 0.03},
        {"action_type": "tool_call", "unit": "call", "per_run": 1, "notes": "the program itself"},
        {"action_type": "artifact_storage", "unit": "gigabyte", "per_run": 0.00001},
        {"action_type": "human", "unit": "minute", "per_run": 0.25, "notes": "one run in eight is looked at for two minutes"}
      ]
    }
  ]
}
)text";

std::string filled(std::string_view text, std::string_view name) {
  std::string out(text);
  if (const std::size_t at = out.find(kNamePlaceholder); at != std::string::npos)
    out.replace(at, kNamePlaceholder.size(), name);
  return out;
}
}  // namespace

std::vector<std::pair<std::string, std::string>> scaffold_files(std::string_view name) {
  return {{"campaign.yaml", filled(kCampaign, name)},
          {"contracts/fix-greeting.yaml", std::string(kContract)},
          {"contracts/fix-greeting.patch", std::string(kPatch)},
          {"contracts/hidden_test.sh", std::string(kHiddenTest)},
          {"make-repo.sh", std::string(kMakeRepo)},
          {"agent.sh", std::string(kAgent)},
          {"pilot_cost_model.csv", std::string(kPrices)},
          {"pilot_cost_model_inputs.json", std::string(kInputs)},
          {"schemas/campaign.schema.json", std::string(kCampaignSchema)},
          {"schemas/contract.schema.json", std::string(kContractSchema)},
          {"schemas/pilot_cost_model_inputs.schema.json", std::string(kCostInputsSchema)},
          {".gitignore", "/repos/\n"}};
}
}  // namespace proctor
