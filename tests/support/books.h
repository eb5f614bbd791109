#pragma once
// The oracles of a campaign that is over: journal, report, run directories and `proctor verify`
// tell the same story, and no envelope was passed.
#include "tests/support/campaign_scene.h"

namespace proctor::testing {

struct Expected {
  std::int64_t runs = 0;    // of the plan
  std::int64_t parked = 0;  // of them
  // Attempts of each run: exactly one unless something was lost on purpose.
  enum class Attempts { kOneEach, kAny } attempts = Attempts::kOneEach;
};

void check_books(const CampaignScene& scene, const Expected& expected);

// One run each of what must fail (noop, a program that breaks off) and of what must succeed
// (reference, a solver): runs the campaign, and checks its verdicts and its books.
CampaignShape judged_shape();
void run_judged(const CampaignScene& scene);

}  // namespace proctor::testing
