#include "common/contract/stages.h"

#include "common/base/money.h"

namespace proctor {
std::string_view to_string(StageOrder order) {
  for (const auto& [word, value] : kStageOrders)
    if (value == order) return word;
  return "";
}

std::string describe(const StageDraw& draw) {
  std::string out = "every task";
  if (draw.per_stratum) out = std::to_string(*draw.per_stratum) + " of each stratum";
  for (std::size_t i = 0; i < draw.tasks.size(); ++i)
    out = (i == 0 ? "" : out + " ") + draw.tasks[i];
  out += ", ";
  if (!draw.replicates) out += "the campaign's replicates";
  if (draw.replicates)
    out +=
        std::to_string(*draw.replicates) + (*draw.replicates == 1 ? " replicate" : " replicates");
  return out + ", by " + std::string(to_string(draw.order));
}

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
