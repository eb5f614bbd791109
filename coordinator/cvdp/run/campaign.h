#pragma once
// A dataset as a campaign: contracts, contexts and a campaign.yaml in a folder.
// Private to the program.
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "coordinator/cvdp/dataset/import.h"
#include "coordinator/cvdp/run/dataset_file.h"

namespace proctor::cli {

struct ImportOptions {
  std::string file;
  std::string campaign;
  Selection selection;
  cvdp::ImportSettings settings;
  // Of a campaign.yaml that is not there yet.
  std::string methods = "[noop, reference]";
  std::uint32_t replicates = 1;
  bool include_golden = false, include_harness = false;  // an agent sees them too
  std::uint64_t global_usd = 1000;
  std::string run_usd = "1.00";
};
struct Imported {
  std::size_t written = 0;  // contracts
  struct LeftOut {
    std::string id, category, difficulty, why;
  };
  std::vector<LeftOut> left_out;  // told on standard error too
  std::uint64_t errors = 0;       // records that are none
};
// campaign.yaml of a dataset, or of the answers that a judge is asked about.
std::string cvdp_campaign_text(const std::string& name, const ImportOptions& options);
// The price table of a campaign, from a file of somebody's.
Status take_prices(const fs::path& table, const fs::path& campaign);
// kConflict: the campaign is frozen.
Result<Imported> import_problems(const ImportOptions& options);

}  // namespace proctor::cli
