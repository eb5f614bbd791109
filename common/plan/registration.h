#pragma once
// registration.json: what was promised before the first run (R163, R164, R173, R177; docs/plan.md).
// The frozen part holds digests and settings and never changes; its digest is the campaign's
// identity.  Removals are beside it: they change what is run, not what was promised.
// Pure; reading is of hostile bytes: kInvalid names the field, kCorrupt a frozen part that does not
// have the digest beside it.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/digest.h"
#include "common/base/result.h"
#include "common/contract/analysis_plan.h"
#include "common/contract/stages.h"

namespace proctor {
struct BudgetWatch;
struct Campaign;
struct Rates;
struct Retries;

struct Removal {
  std::string task;
  std::string reason;
  WallTime at;
  std::string by{};  // empty: registered before it was asked
  friend bool operator==(const Removal&, const Removal&) = default;
};

struct Registration {
  // Records: they may differ on another day.
  std::string tool_version;
  WallTime at;
  // Promises.
  std::string campaign;
  std::uint32_t seed = 0;
  std::string seed_deviation;
  std::uint32_t replicates = 0;
  std::vector<std::string> stages;
  std::vector<std::string> strata;
  Digest plan;                              // of the file's bytes
  std::map<std::string, Digest> contracts;  // by id
  std::map<std::string, Digest> methods;    // by name
  // Envelopes in micro-dollars: "global", "run", "task", "stage:NAME", "task:ID", "method:NAME",
  // "stratum:KEY=LEVEL".
  std::map<std::string, std::int64_t> envelopes;
  // Default caps of a run that are set: "micro_usd", "tokens", "tool_calls",
  // "failed_acceptance_cycles", "wall_ms".
  std::map<std::string, std::int64_t> caps;
  // Other bounds of runs: further caps "campaign:CAP", "stage:NAME:CAP", "task:ID:CAP" (the keys of
  // files, in their units), "infrastructure_retries", "isolation" (0: the kernel's, 1: user space).
  // nullopt: registered by a version that had no such member, so they are unknown.
  std::optional<std::map<std::string, std::int64_t>> limits;
  Digest cost_model;
  std::string cost_model_version;
  // The digest of pilot_cost_model_inputs.json; a campaign without a projection has no such member.
  std::optional<Digest> cost_inputs;
  std::map<std::string, std::string> analysis;
  // By stage, those that have rules (stages.h): what opens and what closes them, in words.
  std::map<std::string, std::string> stage_rules;
  // By stage, those whose tasks or replicates are not the campaign's (stages.h).
  std::map<std::string, StageDraw> stage_draws;
  // A record: what selfcheck and screen had said against tasks when they were registered all the
  // same, "flaky: ...", "unsound: ..." by task.
  std::map<std::string, std::string> distrusted;
  // A campaign that judges recorded patches of another has "campaign", its id, and "contract:TASK",
  // the digests of that one's contracts.  Empty: its agents are its own.
  std::map<std::string, std::string> derived_from;
  // nullopt: none was registered, and reports follow the defaults.
  std::optional<AnalysisPlan> analysis_plan;
  // kRubricVersion of the rules that its verdicts follow from, which each worker then
  // knows.  nullopt: registered by a version without such rules.
  std::optional<std::uint64_t> rubric;
  // Not frozen.
  std::vector<Removal> removals;
  friend bool operator==(const Registration&, const Registration&) = default;
};

// The settings that reports of this version are computed with.
std::map<std::string, std::string> analysis_settings();
// The plan that reports follow: the one that was written, else the defaults; its unit where none
// was written is the repository if tasks share one.  For a registration from before there was a
// choice it is nothing: tasks.
AnalysisPlan registered_plan(const Campaign& campaign);
AnalysisPlan registered_plan(const Registration& registration);
// Alert levels and dominance rule, as `analysis` has them.
std::map<std::string, std::string> watch_settings(const BudgetWatch& watch);

// Fails with kInvalid when a number is too large for JSON (2^53 - 1) or a name is not UTF-8.
Result<Registration> make_registration(const Campaign& campaign, const Digest& plan, WallTime at);

// Requires: made by make_registration or parse_registration.
Digest frozen_digest(const Registration& registration);
// "pilot-12ab34cd56ef": in the journal, in manifests and reports.
std::string campaign_id(const Registration& registration);
// For people: indented, keys sorted, a line feed at the end.
std::string to_json(const Registration& registration);
Result<Registration> parse_registration(std::string_view json);

// The points that `now` would register otherwise, one sentence each: "contract json-lib: registered
// 12ab34cd56ef, now 98fe76dc54ba".  Empty: the campaign may run.  Inputs of a projection that were
// not registered are none: nothing was promised about them.
std::vector<std::string> differences(const Registration& registered, const Registration& now);

// R173: takes a task out, for a reason.  kNotFound: no such task; kConflict: already out;
// kInvalid: no reason, or more than limits::kDetailBytes of it or of `by`, or no UTF-8.
Status add_removal(Registration& registration, std::string_view task, std::string_view reason,
                   WallTime at, std::string_view by = {});
bool is_removed(const Registration& registration, std::string_view task);
}  // namespace proctor
