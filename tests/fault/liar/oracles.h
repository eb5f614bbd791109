#pragma once
// What must hold when a campaign is over in which one worker lied.
#include <set>
#include <string>
#include <vector>

#include "tests/fault/liar/lies.h"

namespace proctor::liar {

// A sentence for each violation.  Reads the campaign's journal and folders.
// `begun`: attempts of the liar of which a coordinator had pieces.
std::vector<std::string> judge(const fs::path& scene, const Played& played,
                               const Liar::Workers& honest, const std::set<AttemptId>& begun);
// Of runs/.incoming, at any time: how much lies there, and of which attempts.
struct Incoming {
  std::uint64_t files = 0, bytes = 0;
  std::set<AttemptId> attempts;
};
Incoming incoming_of(const fs::path& folder);
// Was it ever granted, to anybody?
bool was_granted(const fs::path& folder, const AttemptId& attempt);

}  // namespace proctor::liar
