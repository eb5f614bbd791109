#pragma once
// From a campaign's folder to a Campaign: campaign.yaml, the contracts it lists (every
// contracts/*.yaml unless it says otherwise), pilot_cost_model.csv and, if it is there,
// pilot_cost_model_inputs.json.  Everything that can be known without leaving the folder is
// checked, and every error is reported.  Facts from outside (repositories, images, whether a patch
// applies) come through OutsideProbe.
#include <filesystem>

#include "common/base/result.h"
#include "common/contract/campaign.h"
#include "common/contract/document.h"
#include "common/contract/file_source.h"

namespace proctor {
// The contract as far as it could be read; it is whole, and has its digest, only if `out` did not
// grow.  Files are read from `files`.  The same function reads what arrives in a bundle, so that a
// worker refuses what an operator's check refuses.  Pure.
Contract parse_contract(const Document& document, const FileSource& files, Diagnostics& out);

// Reads the contract's folder and nothing else.  `shown` is the file's name in diagnostics.
// nullopt when not even a tree could be read.
std::optional<Contract> load_contract(const std::filesystem::path& file, const std::string& shown,
                                      Diagnostics& out);

inline constexpr const char* kCampaignFile = "campaign.yaml";
inline constexpr const char* kCostModelFile = "pilot_cost_model.csv";
inline constexpr const char* kFailureModesFile = "failure_modes.jsonl";

// Reads the folder, and nothing else.  kInvalid when `out` grew: the details are there.
Result<Campaign> load_campaign(const std::filesystem::path& folder, Diagnostics& out);

// campaign.yaml alone: the contracts are named, not read.
struct CampaignText {
  struct Pattern {
    std::string path;  // relative to the campaign; "*" and "?" may be in its last component
    Mark at;
  };
  Campaign campaign;
  std::vector<Pattern> contracts;
};
CampaignText parse_campaign(const Document& document, const FileSource& files, Diagnostics& out);

// Checks that bind the parts of a campaign together: ids are unique, strata are there, caps nest
// and suffice for one run of each task.  Pure.  Contracts without a digest had errors of their own
// and are looked at only for their ids.
void check_campaign(const Campaign& campaign, Diagnostics& out);
// The campaign's own failure modes, each against the contracts: one that no check could ever assert
// is not registered.  A campaign that is registered already goes on with it.  Pure.
void check_own_modes(const Campaign& campaign, Diagnostics& out);

// Facts outside the campaign's folder.  Implemented by whoever has git and an engine.
class OutsideProbe {
 public:
  virtual ~OutsideProbe() = default;
  // `base`: the folder against which a relative source resolves.
  virtual Status commit_exists(const std::string& source, const std::filesystem::path& base,
                               const std::string& commit) const = 0;
  virtual Status image_resolves(const std::string& image) const = 0;
  // The base of an image that is built: by a Docker Engine, whatever a store of images has.
  virtual Status base_resolves(const std::string& image) const { return image_resolves(image); }
  // kInvalid, with the reason: a worker could not apply it to the commit, or it would change
  // nothing.
  virtual Status patch_applies(const Repository& repository, const std::filesystem::path& base,
                               const std::string& patch) const = 0;
};

void check_outside(const Campaign& campaign, const OutsideProbe& probe, Diagnostics& out);
}  // namespace proctor
