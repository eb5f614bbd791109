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

}  // namespace proctor::testing
