#include "coordinator/shell/bundles.h"

namespace proctor {

Bundles::Bundles(const Campaign& campaign, const std::string& id) {
  Settings settings = settings_of(campaign);
  settings.campaign = id;
  settings_ = digest_of(settings);
  bytes_.emplace(settings_, make_bundle(settings));
  for (const Contract& c : campaign.contracts)
    bytes_.emplace(c.digest, make_bundle(c, campaign.folder / "contracts"));
  for (const Method& m : campaign.methods) bytes_.emplace(m.digest, make_bundle(m));
}

const std::string* Bundles::find(const Digest& digest) const {
  const auto it = bytes_.find(digest);
  return it == bytes_.end() ? nullptr : &it->second;
}

}  // namespace proctor
