#pragma once
// A first campaign for `proctor init DIR`, and the schemas that go with it.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace proctor {
// The texts of the schemas of campaign, contract and pilot_cost_model_inputs, for campaigns that
// are scaffolded where this source tree is not.
extern const std::string_view kCampaignSchema;
extern const std::string_view kContractSchema;
extern const std::string_view kCostInputsSchema;

// The files of a first campaign, for `proctor init DIR`.  A contract needs a git repository, so the
// campaign brings a script that makes a tiny one: the caller writes the files, runs
// `sh make-repo.sh` in the folder, and puts the commit id that it prints in place of
// kCommitPlaceholder in every file.  Then the campaign loads without a complaint and runs.  Pure.

inline constexpr std::string_view kCommitPlaceholder = "@COMMIT@";

// Pairs of relative path and content, in the order in which a reader should meet them.
// Requires: `name` is an id (load_campaign() refuses others).
std::vector<std::pair<std::string, std::string>> scaffold_files(std::string_view name);
}  // namespace proctor
