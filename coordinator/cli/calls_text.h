#pragma once
// Calls of models as a table, for `explain --calls` and `cassette`.  Pure.
#include <string>
#include <vector>

#include "common/trace/model_calls.h"

namespace proctor::cli {

// One line a call; what agents and providers said is escaped.
std::string calls_text(const TracedModels& told);
Json unlisted_json(const UnlistedRefusals& unlisted);
Json calls_json(const std::vector<TracedCall>& calls);
Json trips_json(const std::vector<TracedTrip>& trips);
std::string cassette_list(const std::vector<CassetteCall>& calls);

}  // namespace proctor::cli
