#pragma once
// The calls of models of one run, for `proctor explain`.
#include <optional>
#include <string>

#include "coordinator/cli/campaign_files.h"

namespace proctor::cli {

// A table for each attempt that left evidence here.
Result<std::string> explain_calls(const FrozenCampaign& frozen, RunId run);
// All by the attempt's number; `unlisted` is what was refused and is none of the calls.
struct ExplainedCalls {
  Json calls = Json::object(), breakers = Json::object(), unlisted = Json::object();
};
Result<ExplainedCalls> explain_calls_json(const FrozenCampaign& frozen, RunId run);
// What was said in the call of that number, of the last attempt that has one.
Result<std::string> explain_call(const FrozenCampaign& frozen, RunId run, std::uint64_t number);

}  // namespace proctor::cli
