#pragma once
// The results of a campaign's stages, held against the criteria of the next one (docs/pilots.md,
// "Gates").  Pure: the same facts give the same check, the same bytes and the same digest, which is
// what people approve.
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/digest.h"
#include "common/base/fields.h"
#include "common/base/json.h"
#include "common/base/money.h"
#include "common/base/words.h"
#include "common/contract/stages.h"

namespace proctor {
// Facts of one stage, from the journal alone.
struct StageFacts {
  struct Method {
    std::string name;
    std::uint64_t ended = 0, invalid = 0;  // `invalid`: those of `ended`
  };
  StageRules rules{};
  std::vector<Method> methods{};                         // in the plan's order
  std::uint64_t open = 0;                                // runs that are not over
  std::uint64_t parked = 0, cancelled = 0, removed = 0;  // over without having ended, or taken out
  std::uint64_t attempts = 0, infrastructure = 0;        // `infrastructure`: those that it spoiled
  std::vector<std::string> without_verdict{};            // "TASK under METHOD", the first of them
  std::uint64_t without_verdict_total = 0;
  MicroUsd spent{}, cap{}, registered{};  // of its envelope; `cap`: as it is now
  std::set<std::string> waived{};         // as in "exit spend_within", "exit invalid_share 0.05"
  // An operator ended it before its time: tasks that did not end under every method are left out.
  bool closed = false;
  bool no_task = false;  // no task is left to ask for a verdict

  std::uint64_t ended() const;
};
// By the stage's name.
using StagesBefore = std::map<std::string, StageFacts>;

struct StageAnswer {
  // Unknown: a fact is missing.  Waived: one of these two, and an operator lets it pass.
  enum class Value : std::uint8_t { kYes, kNo, kUnknown, kWaived };
  std::string name, parameter;  // `parameter`: empty where there is none
  Value value = Value::kUnknown;
  std::string text;  // one sentence for people
  Json facts = Json::object();
  bool holds() const { return value == Value::kYes || value == Value::kWaived; }
  std::string label() const { return parameter.empty() ? name : name + " " + parameter; }
};
constexpr auto words(StageAnswer::Value) {
  using enum StageAnswer::Value;
  return std::to_array<Word<StageAnswer::Value>>(
      {{"yes", kYes}, {"no", kNo}, {"waived", kWaived}, {"unknown", kUnknown}});
}
void fields(auto& v, Is<StageAnswer> auto& a) {
  std::optional<std::string> parameter;
  if (!a.parameter.empty()) parameter = a.parameter;
  v("name", a.name);
  v("parameter", parameter);
  v("value", a.value);
  v("text", a.text);
  v("facts", a.facts);
}

struct StageCheck {
  std::string campaign, stage;
  std::vector<StageAnswer> predicates;
  bool holds() const;             // every answer does
  std::string canonical() const;  // RFC 8785
  Digest digest() const;
};
void fields(auto& v, Is<StageCheck> auto& c) {
  v("campaign", c.campaign);
  v.follows("format", "proctor-stage-check-1");
  v("predicates", c.predicates);
  v.follows("side", "entry");
  v("stage", c.stage);
}

// Entry of `stage`: that `previous` is closed, which is asked of every gate, and what `entry` asks
// for; `waived` of that ("entry invalid_share 0.05") need not hold.  `previous` is empty before the
// first stage.  Requires: `before` has `previous` and every stage that `entry` names.
StageCheck check_entry(const std::string& campaign, const std::string& stage,
                       const std::vector<StageCriterion>& entry, const std::string& previous,
                       const StagesBefore& before, const std::set<std::string>& waived = {});
// `exit` of a stage by itself.
std::vector<StageAnswer> check_exit(const StageFacts& stage);
// For a note: kCorrupt where it is no check.  Only what is needed to know whether it holds is read.
Result<bool> check_holds(const Json& check);
}  // namespace proctor
