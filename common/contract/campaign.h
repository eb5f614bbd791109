#pragma once
// campaign.yaml as data: what is run, how often, under which caps.  Parser: campaign_parser.h.
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/contract/analysis_plan.h"
#include "common/contract/call_limits.h"
#include "common/contract/caps.h"
#include "common/contract/contract.h"
#include "common/contract/cost_inputs.h"
#include "common/contract/cost_model.h"
#include "common/contract/rubric.h"
#include "common/contract/stages.h"

namespace proctor {
// The call of a method that asks a model once and writes what it answers (docs/single-shot.md).
struct ModelCall {
  std::string model;     // as the worker's models file has it; empty: answers are in the contract
  std::string provider;  // as the price table names it; may be empty
  std::uint32_t attempts = 4;                 // calls at most, while no answer can be used
  std::uint64_t max_output_tokens = 16'384;   // asked for, and what a call is reserved at
  std::chrono::milliseconds timeout{60'000};  // of a call
  friend bool operator==(const ModelCall&, const ModelCall&) = default;
};

// Things that an agent has beside those that each contract gives every agent.  They are the
// method's, shown to the agent's own phase (and its own setup) alone, and part of no contract.
struct MethodEnvironment {
  std::string image;  // its command runs in it; empty: in what the contract says
  std::map<std::string, std::string> variables;  // of command and setup
  std::vector<std::string> secrets;              // names; of the command alone
  std::vector<Toolchain> toolchains;
  NetworkAccess network{};  // of the command, beside what policies give every agent
  // Make what lies at $PROCTOR_AGENT, before any workspace is shown; their `inputs` are empty.
  std::vector<SetupStep> setup;
  bool empty() const {
    return image.empty() && variables.empty() && secrets.empty() && toolchains.empty() &&
           !network.any() && setup.empty();
  }
};

// A model that a method's program may ask for.
struct GatewayModel {
  std::string name;      // as workers' models files have it
  std::string provider;  // as the price table names it; may be empty
  // Other names of the same model, by which programs ask for it: "claude-haiku-*".
  std::vector<std::string> aliases;
  std::optional<std::uint64_t> output_max;  // tokens of one call
  friend bool operator==(const GatewayModel&, const GatewayModel&) = default;
};

// The gateway of a command whose program speaks to models through the worker's gateway
// (docs/gateway.md), or of a kToolLoop, whose worker does.
struct MethodGateway {
  // The API that its program speaks: chat completions and their kin, responses, or messages.
  enum class As { kOpenai, kOpenaiResponses, kAnthropic };
  As as = As::kOpenai;
  // Never empty.  The first is the one that a program's variables name; the others are by name.
  std::vector<GatewayModel> models{1};
  Breakers breakers{};  // the same of all methods of a campaign
  // kCommand: the worker's own tools, which its program finds as an MCP server (docs/tools.md):
  // beside a workspace of its own, or in place of it.
  enum class Tools { kOffered, kEnforced };
  std::optional<Tools> tools{};
  const GatewayModel& model() const { return models.front(); }
  // The model that is asked for by this name: its own or an exact alias before the longest
  // beginning.  Null: none.
  const GatewayModel* find(std::string_view asked) const;
  // "big, small".
  std::string names(std::string_view between = ", ") const;
  friend bool operator==(const MethodGateway&, const MethodGateway&) = default;
};

constexpr auto words(MethodGateway::As) {
  using As = MethodGateway::As;
  return std::to_array<Word<As>>({{"openai", As::kOpenai},
                                  {"openai-responses", As::kOpenaiResponses},
                                  {"anthropic", As::kAnthropic}});
}
constexpr auto words(MethodGateway::Tools) {
  using Tools = MethodGateway::Tools;
  return std::to_array<Word<Tools>>({{"offered", Tools::kOffered}, {"enforced", Tools::kEnforced}});
}

struct Method {
  // kRecorded: no agent; the patches of an earlier campaign are judged (docs/replay.md).
  enum class Kind { kNoop, kReference, kCommand, kSingleShot, kToolLoop, kRecorded };
  std::string name;
  Kind kind = Kind::kNoop;
  std::string command;  // kCommand: for /bin/sh -c in the workspace; of a container: its words
  // kCommand: a program of an image of its own instead.  Paths of the workspace that it may write
  // to are taken back into the workspace when it has ended.
  std::optional<ProgramContainer> container{};
  std::map<std::string, std::string> variables;
  // Shown read-only at $PROCTOR_METHOD.  kRecorded: of each run that it has, recorded_patch() and
  // recorded_facts() of its name; the other runs of the plan are not made.
  std::vector<ReferencedFile> files;
  // kCommand: the exit code by which it says that a provider of models had no room, so that the
  // run is tried again later; 0: none.  The campaign's word, not the agent's: whoever has it could
  // take another try.
  int overload_exit = 0;
  ModelCall call{};                 // kSingleShot
  Digest digest;                    // of the canonical form, like a contract's
  MethodEnvironment environment{};  // kCommand
  // kCommand: globs of files that are kept as evidence when it has ended: of the workspace, or of
  // its home where they begin with "~/".
  std::vector<std::string> keep{};
  std::optional<MethodGateway> gateway{};  // kCommand, without a container; always of a kToolLoop
  std::uint64_t turns = 80;                // kToolLoop: requests of its model, at most
  Kind of = Kind::kCommand;                // kRecorded: of the method that made the patches
  // Its own kind, or that of the method whose patches it has.
  Kind acts_as() const { return kind == Kind::kRecorded ? of : kind; }
  // Is this run of the plan one that it can make?
  bool has_run(const std::string& run_name) const;
  // Null: there is none of that path.
  const ReferencedFile* find_file(const std::string& path) const;
  // Models that its runs may ask: of its gateway or its call; empty: none.
  std::vector<GatewayModel> models() const;
};
constexpr auto words(Method::Kind) {
  using Kind = Method::Kind;
  return std::to_array<Word<Kind>>({{"noop", Kind::kNoop},
                                    {"reference", Kind::kReference},
                                    {"command", Kind::kCommand},
                                    {"single_shot", Kind::kSingleShot},
                                    {"tool_loop", Kind::kToolLoop},
                                    {"recorded", Kind::kRecorded}});
}
// Files of a kRecorded method, of the run of this name.
inline std::string recorded_patch(const std::string& run_name) {
  return "recorded/" + run_name + ".patch";
}
inline std::string recorded_facts(const std::string& run_name) {
  return "recorded/" + run_name + ".json";
}

// The campaign whose recorded patches another one judges, from CAMPAIGN/regrades/NAME.
struct DerivedFrom {
  std::string campaign;                          // its id
  std::map<std::string, std::string> contracts;  // by task, the digests of its contracts, in hex
  // By task, the folder of its contract, relative to that campaign's: relative sources of
  // repositories resolve against it.  Absent: that campaign's own folder.
  std::map<std::string, std::string> bases;
  friend bool operator==(const DerivedFrom&, const DerivedFrom&) = default;
};
inline constexpr const char* kRegradesFolder = "regrades";

struct Stage {
  std::string name;
  std::optional<MicroUsd> usd;  // envelope of the stage
  Caps caps{};                  // of its runs
  StageRules rules{};           // what opens it, and what closes it
  StageDraw draw{};             // its tasks and its replicates
};

// An envelope that other campaigns on the same Redis use too (docs/budgets.md).
struct SharedEnvelope {
  std::string name;
  MicroUsd cap;
  // Its name among the campaign's envelopes: "shared:lab-november".
  std::string scope() const { return "shared:" + name; }
};

struct Envelopes {
  MicroUsd global;
  std::optional<SharedEnvelope> shared{};           // around global
  std::map<std::string, MicroUsd> stage;            // by stage name
  std::optional<MicroUsd> task;                     // of every task
  std::map<std::string, MicroUsd> tasks;            // by task id, before `task`
  MicroUsd run = MicroUsd::from_micros(5'000'000);  // R106
  // Across the others: of all runs of a method, of all runs whose task has a stratum's level.
  std::map<std::string, MicroUsd> methods;                        // by name
  std::map<std::string, std::map<std::string, MicroUsd>> strata;  // by key, then level
};

// Evidence kept of one run for Method::keep: files, and bytes of each and of all together.
inline constexpr std::size_t kKeptFiles = 64;
inline constexpr std::uint64_t kKeptFileBytes = std::uint64_t{16} << 20;
inline constexpr std::uint64_t kKeptBytes = std::uint64_t{32} << 20;

// Bytes kept of one run of what its agent said to models and they to it.
inline constexpr std::uint64_t kGatewayBytes = std::uint64_t{32} << 20;

// Envelopes of one reservation: global, stage and task, then method and strata where they have one.
inline constexpr std::size_t kEnvelopesOfRunMax = 8;

// Messages while money is spent; the same for every envelope and method (R190).
struct BudgetWatch {
  std::vector<std::uint32_t> alerts{50, 80, 95};  // percent of an envelope's cap, ascending
  struct Dominance {
    enum class Action { kOff, kNote, kStop };
    Action action = Action::kNote;
    std::uint32_t percent = 80;    // of what is reserved for the run
    std::uint32_t milestones = 1;  // that a run must have reached by then
    friend bool operator==(const Dominance&, const Dominance&) = default;
  };
  Dominance dominance;
  friend bool operator==(const BudgetWatch&, const BudgetWatch&) = default;
};
constexpr auto words(BudgetWatch::Dominance::Action) {
  using Action = BudgetWatch::Dominance::Action;
  return std::to_array<Word<Action>>(
      {{"off", Action::kOff}, {"note", Action::kNote}, {"stop", Action::kStop}});
}

// New tries for what was not the agent's fault: how many, how soon, and when a worker or a person
// is asked (docs/retries.md).  How often after an infrastructure failure: infrastructure_retries.
struct Retries {
  std::uint32_t overload = 5;                // new attempts of a run because a provider had no room
  std::chrono::milliseconds backoff{1'000};  // first wait after an infrastructure failure; doubles
  std::chrono::milliseconds overload_backoff{15'000};  // likewise after an overload
  std::chrono::milliseconds backoff_max{600'000};      // no wait is longer
  bool escalate =
      false;  // where no attempt is left a person decides (R107), else the run is invalid
  // Equal failures in a row, before any work began, after which a task or method is parked.
  std::uint32_t park_after = 3;
  std::uint32_t quarantine_after = 3;            // infrastructure failures in a row of one worker
  std::chrono::milliseconds quarantine{60'000};  // first; doubles with each one that follows
  std::chrono::milliseconds quarantine_max{1'800'000};
  friend bool operator==(const Retries&, const Retries&) = default;
};

struct Campaign {
  std::filesystem::path folder;
  std::string name;
  std::vector<Contract> contracts;  // in the order of campaign.yaml
  std::vector<Method> methods;
  std::uint32_t replicates = 1;
  std::uint32_t seed = kPlannedSeed;
  std::string seed_deviation;  // reason, required when seed differs (R072)
  std::vector<Stage> stages;   // at least one
  Envelopes envelopes;
  BudgetWatch watch;
  Caps caps;                              // defaults of every run
  std::map<std::string, Caps> task_caps;  // by contract id
  Rates rates;                            // of all runs together
  // For every run at least: a contract may ask for more, never for less.
  Isolation isolation = Isolation::kKernel;
  std::vector<std::string> strata;  // keys reported by; each contract must have them
  std::uint32_t workers = 2;        // of `proctor run`
  std::uint32_t slots = 2;          // of each of them
  enum class LedgerKind { kRedis, kJournal };
  LedgerKind ledger = LedgerKind::kRedis;  // kJournal: no Redis at all, `redis` is empty
  std::string redis;  // "", "unix:/path", "tcp://host:port/db", tls://; "": a private one
  std::uint32_t infrastructure_retries = 3;
  Retries retries;
  RubricWeights weights;
  SafetyPlan safety;
  std::uint32_t rerun = 0;    // of acceptance at least, as a contract's
  std::string failure_modes;  // JSONL of its own (rubric.h)
  CostModel cost_model;
  std::optional<CostInputs> cost_inputs;    // the expected use of runs; empty: no such file
  std::optional<AnalysisPlan> analysis;     // empty: the defaults, and reports say so
  Origin origin;                            // campaign.yaml's, for diagnostics
  std::optional<DerivedFrom> derived_from;  // empty: its agents are its own

  CapRules cap_rules() const;
  // Replicates of each of its tasks under each method.
  std::uint32_t replicates_of(const Stage& stage) const {
    return stage.draw.replicates.value_or(replicates);
  }
  // How many tasks the stage has, and how many runs all stages together.
  std::uint64_t tasks_of(const Stage& stage) const;
  std::uint64_t run_count() const;
  // The most that a run of this task may spend, in the stage that allows most: what is reserved for
  // it before it starts.
  MicroUsd run_cap(const Contract& contract) const;
  // The envelope of a task, the global one where it has none of its own.
  MicroUsd task_envelope(const std::string& contract_id) const;
  // The isolation of a run of this contract: the stronger of its own and the campaign's.
  Isolation isolation_of(const Contract& contract) const {
    return stronger(isolation, contract.policy.isolation);
  }
  const Contract* find_contract(const std::string& id) const;
  const Method* find_method(const std::string& name) const;
};

constexpr auto words(Campaign::LedgerKind) {
  using Kind = Campaign::LedgerKind;
  return std::to_array<Word<Kind>>({{"redis", Kind::kRedis}, {"journal", Kind::kJournal}});
}

// The contract's values of these keys; an absent one is "none" (check_campaign refuses it).
std::vector<std::string> stratum_values(const std::vector<std::string>& keys,
                                        const Contract& contract);
// Strata in order.  The contracts are the campaign's own.
std::map<std::vector<std::string>, std::vector<const Contract*>> tasks_by_stratum(
    const Campaign& campaign);

// The repository of each contract as a number from 1 on: the same source, the same number.
std::vector<std::uint32_t> repositories_of(const Campaign& campaign);

// The most of what is priced that a run of this contract can use: setup in the agent's and in the
// fresh workspace, the agent until `wall`, every check until its time limit, both as often as
// acceptance runs with `rerun` repetitions, and the bytes it keeps.
Usage worst_case(const Contract& contract, const Method& method, std::chrono::milliseconds wall,
                 std::uint32_t rerun);
// The part of it that comes after the agent: the headroom for acceptance and logging (R115).
Usage acceptance_worst_case(const Contract& contract, std::uint32_t rerun);
Usage acceptance_worst_case(const Contract& contract, const Method& method, std::uint32_t rerun);
}  // namespace proctor
