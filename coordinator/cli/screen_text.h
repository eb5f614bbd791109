#pragma once
// What `proctor screen` says to people: a line for each task, what to do about those that are not
// stable, and what a stable one may still do.  Pure.
#include <functional>
#include <string>
#include <vector>

#include "common/pilot/screen.h"

namespace proctor::cli {

// `campaign` as it was typed, `options` as they are typed for some settings, a blank before each;
// `runs`: how many the campaign has of each task.
using ScreenOptions = std::function<std::string(const ScreenSettings&)>;
std::string screen_text(const std::vector<ScreenTask>& tasks, const ScreenSettings& settings,
                        const std::string& campaign, const ScreenOptions& options,
                        std::uint64_t runs);

// That so few repeats can make no task stable; empty: they can.
std::string too_few_repeats(const ScreenSettings& settings);

}  // namespace proctor::cli
