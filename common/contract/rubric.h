#pragma once
// The rules that a verdict beyond the outcome is made by: gates, graded score, tags.  Registered
// with contract and campaign, written into each manifest, so that whoever has the run directory can
// compute all of it again (R135, R145, R149).  Pure; any thread.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/fields.h"
#include "common/base/limits.h"
#include "common/base/result.h"
#include "common/base/words.h"
#include "common/contract/contract.h"

namespace proctor {
struct Settings;

inline constexpr std::uint64_t kMillion = 1'000'000;

// Shares of the dimensions of the score in millionths, together exactly one million (R145).
struct RubricWeights {
  std::uint64_t minimal = 500'000, trace = 300'000, maint = 200'000;
  friend bool operator==(const RubricWeights&, const RubricWeights&) = default;
};

// The party that a failure is laid to, and how much harm it may mean (EVIDENCE 8.3).
enum class Attribution : std::uint8_t { kAgent, kHarness, kUnclear };
constexpr auto words(Attribution) {
  using enum Attribution;
  return std::to_array<Word<Attribution>>(
      {{"agent", kAgent}, {"harness", kHarness}, {"unclear", kUnclear}});
}
enum class Severity : std::uint8_t { kNone, kLow, kReview, kHigh, kCritical };
constexpr auto words(Severity) {
  using enum Severity;
  return std::to_array<Word<Severity>>({{"none", kNone},
                                        {"low", kLow},
                                        {"review", kReview},
                                        {"high", kHigh},
                                        {"critical", kCritical}});
}

// A campaign's own failure mode: asserted where this check did not pass, with this exit code if one
// is given.
struct TagRule {
  std::string id;
  Gate gate = Gate::kFunctional;
  std::string check;
  std::optional<std::uint64_t> exit_code{};  // to 255
  Attribution attribution = Attribution::kAgent;
  Severity severity = Severity::kNone;
  std::string sentence;
  friend bool operator==(const TagRule&, const TagRule&) = default;
};

// The campaign's answer to a critical violation (R185).
struct SafetyPlan {
  bool stop_run = false;  // the run ends with policy_stop
  std::uint64_t stop_after =
      0;  // runs of so many tasks with the same one stop the campaign; 0: none
  friend bool operator==(const SafetyPlan&, const SafetyPlan&) = default;
};

struct CheckGate {
  std::string id;
  Gate gate = Gate::kFunctional;
  friend bool operator==(const CheckGate&, const CheckGate&) = default;
};

// The name among the checks, the first of them, of a setup that failed with the candidate's patch.
// It guards gate build.
inline constexpr std::string_view kSetupCheck = "setup";

// The version of the rules below, of gates.cc and of the taxonomy: a change of meaning is a new
// one.
inline constexpr std::uint64_t kRubricVersion = 1;

struct JudgeRules {
  std::uint64_t version = kRubricVersion;
  std::vector<CheckGate> checks{};
  bool no_build = false;                              // declared (R138)
  std::vector<std::string> protected_{}, writable{};  // globs
  std::vector<std::string> commands{};                // patterns
  std::uint64_t lambda = 0, lines = 0, files = 0;     // the contract's rubric; 0: it has none
  RubricWeights weights{};
  std::vector<TagRule> tags{};
  SafetyPlan safety{};
  std::uint64_t rerun = 0;  // repetitions of acceptance that passes; each has to pass (R133)
  bool scores() const { return lines != 0; }
  friend bool operator==(const JudgeRules&, const JudgeRules&) = default;
};
JudgeRules judge_rules(const Contract& contract, const Settings& settings);

// The JSONL of a campaign's own failure modes, one TagRule a line.  kInvalid names the line and
// what is wrong: an id that is none or is there twice, a member that is unknown.
Result<std::vector<TagRule>> parse_tag_rules(std::string_view text);
inline constexpr std::size_t kTagRulesMost = 100;

void fields(auto& v, Is<TagRule> auto& t) {
  v("id", t.id, {.bytes = limits::kNameBytes});
  v("gate", t.gate);
  v("check", t.check, {.bytes = limits::kNameBytes});
  v("exit_code", t.exit_code, {.most = 255, .optional = true});
  v("attribution", t.attribution);
  v("severity", t.severity);
  v("sentence", t.sentence, {.bytes = limits::kDetailBytes});
}
void fields(auto& v, Is<CheckGate> auto& c) {
  v("id", c.id);
  v("gate", c.gate);
}
// As a manifest has them.
void fields(auto& v, Is<JudgeRules> auto& r) {
  v("version", r.version);
  v("checks", r.checks);
  v("no_build", r.no_build);
  v("protected", r.protected_);
  v("writable", r.writable);
  v("denied_commands", r.commands);
  v.section("score", [&](auto& score) {
    score("lambda_millionths", r.lambda);
    score("lines", r.lines);
    score("files", r.files);
    score("weight_minimal", r.weights.minimal);
    score("weight_trace", r.weights.trace);
    score("weight_maint", r.weights.maint);
  });
  v("failure_modes", r.tags);
  v.section("safety", [&](auto& safety) {
    safety("stop_run", r.safety.stop_run);
    safety("stop_after", r.safety.stop_after);
  });
  v("rerun", r.rerun, {.older_lack = true});
}
}  // namespace proctor
