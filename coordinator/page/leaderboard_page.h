#pragma once
// A leaderboard as one file that needs nothing beside it and runs nothing.  Pure.
#include <string>

#include "coordinator/aggregate/leaderboard.h"

namespace proctor {

std::string render_leaderboard_html(const Leaderboard& board);

}  // namespace proctor
