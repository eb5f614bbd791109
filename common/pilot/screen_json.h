#pragma once
// reports/flakiness.json: what the screen counted of each contract, so that a task whose contract
// is still the same is not run again.  Numbers with a fraction are text.  Pure.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/pilot/screen.h"

namespace proctor {

inline constexpr std::size_t kScreenBytes = std::size_t{64} << 20;

struct ScreenResults {
  std::string campaign;  // its name
  ScreenSettings settings;
  std::vector<ScreenTask> tasks;
  std::int64_t usd_micros = 0;  // of the last time that something was run
};

std::string to_json_text(const ScreenResults& results);
// kInvalid: not such a file.
Result<ScreenResults> parse_screen(std::string_view text);

// Of `earlier`, what was counted of a contract, judged by `settings`; nothing: it has to be run.
// Tolerances and bound may be others than they were; how often each state was judged may not.
std::optional<ScreenTask> still_holds(const ScreenResults& earlier, const Contract& contract,
                                      const ScreenSettings& settings);

}  // namespace proctor
