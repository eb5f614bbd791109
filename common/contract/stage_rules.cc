#include "common/contract/stage_rules.h"

#include "common/base/money.h"

namespace proctor {
namespace {

std::string list_of(const std::vector<StageCriterion>& criteria) {
  std::string out;
  for (const StageCriterion& c : criteria) {
    const std::string parameter = parameter_of(c);
    out += (out.empty() ? "" : ", ") + std::string(word_of(c.is)) +
           (parameter.empty() ? "" : " " + parameter);
  }
  return out.empty() ? "none" : out;
}

}  // namespace

std::string_view word_of(StagePredicate predicate) {
  for (const auto& [word, value] : kStagePredicates)
    if (value == predicate) return word;
  return "";
}

std::string parameter_of(const StageCriterion& c) {
  switch (c.is) {
    case StagePredicate::kClosed:
      return c.stage;
    case StagePredicate::kInvalidShare:
    case StagePredicate::kInfrastructureShare:
      return format_usd(MicroUsd::from_micros(c.millionths));  // millionths of one, as of a dollar
    case StagePredicate::kCompleteOrStopped:
    case StagePredicate::kEndpointComputable:
    case StagePredicate::kSpendWithin:
      break;
  }
  return "";
}

std::string describe(const StageRules& rules) {
  return "entry " + list_of(rules.entry) + "; exit " + list_of(rules.exit) + "; approval of " +
         std::to_string(rules.approvals());
}

}  // namespace proctor
