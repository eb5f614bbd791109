#pragma once
// Where a coordinator that was started with `--listen tcp://127.0.0.1:0` listens.
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "tests/support/campaign_scene.h"

namespace proctor::testing {

inline std::string endpoint_of(const CampaignScene& scene, const std::string& life = "proctor") {
  constexpr std::string_view kMark = "listening on tcp://127.0.0.1:";
  REQUIRE_MESSAGE(eventually([&] { return contains(scene.said(life), kMark); }), scene.said(life));
  const std::string said = scene.said(life);
  const std::size_t at = said.find(kMark) + kMark.size();
  return "tcp://127.0.0.1:" + std::to_string(std::atoi(said.c_str() + at));
}

}  // namespace proctor::testing
