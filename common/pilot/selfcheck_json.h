#pragma once
// reports/selfcheck.json: what was found of each contract, and with which settings, so that a task
// whose contract is still the same is not run again.  Numbers with a fraction are text.  Pure.
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/pilot/selfcheck.h"

namespace proctor {

inline constexpr std::size_t kSelfcheckBytes = std::size_t{64} << 20;

struct SelfcheckResults {
  std::string campaign;  // its name
  SelfcheckSettings settings;
  std::vector<SelfcheckTask> tasks;
  std::int64_t usd_micros = 0;  // of the last time that something was run
};

std::string to_json_text(const SelfcheckResults& results);
// kInvalid: not such a file.
Result<SelfcheckResults> parse_selfcheck(std::string_view text);

// Of `earlier`, what still holds of a contract; nothing: it has to be run.  What could not run may
// run now, though nothing in the contract changed.
const SelfcheckTask* still_holds(const SelfcheckResults& earlier, const Contract& contract,
                                 const SelfcheckSettings& settings);

}  // namespace proctor
