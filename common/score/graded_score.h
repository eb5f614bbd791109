#pragma once
// The graded score of an attempt that passed all gates (R141-R145; EVIDENCE 8.2): never a number
// for one that did not, and no sum with the gates.  Pure; any thread.
#include <cstdint>
#include <optional>
#include <string>

#include "common/base/fields.h"
#include "common/base/json.h"
#include "common/contract/rubric.h"

namespace proctor {
// A patch is rated by this, which the events say of it.
struct ScoreFacts {
  std::uint64_t lines = 0, files = 0;            // touched lines, changed files
  bool traced = false;                           // every artifact is there
  std::uint64_t maint_passed = 0, maint_of = 0;  // checks that rate it
};

struct GradedScore {
  double minimal = 0;  // exp(-lambda d), d = max(lines / envelope, files / envelope)
  double trace = 0;    // 1 or 0
  double maint = 0;    // the share of its checks that passed; 0 with weight 0 where it has none
  // Without a maint check its weight is shared by the others in proportion.
  double weight_minimal = 0, weight_trace = 0, weight_maint = 0;
  double s = 0;  // the sum of weight times dimension in this order, in [0, 1]
  friend bool operator==(const GradedScore&, const GradedScore&) = default;
};
inline constexpr Rule kDigits{.digits = true};
void fields(auto& v, Is<GradedScore> auto& g) {
  v("s", g.s, kDigits);
  v("minimal", g.minimal, kDigits);
  v("trace", g.trace, kDigits);
  v("maint", g.maint, kDigits);
  v.section("weights", [&](auto& weights) {
    weights("minimal", g.weight_minimal, kDigits);
    weights("trace", g.weight_trace, kDigits);
    weights("maint", g.weight_maint, kDigits);
  });
}

// Requires: rules.scores().
GradedScore graded_score(const JudgeRules& rules, const ScoreFacts& facts);
// The same dimensions under other weights, for sensitivity.
double weighted(const GradedScore& score, const RubricWeights& weights);
// With 12 significant digits, as files have it (AttemptFacts::score).
std::string score_text(double s);

// reports/gated_rubric_schema.json: gates, outcomes, evidence, weights, required artifacts (R155).
Json rubric_schema(const RubricWeights& weights);
}  // namespace proctor
