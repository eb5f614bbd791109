#pragma once
// What workers ask for by digest: contracts, methods and the campaign's settings.  Built once.
#include <map>
#include <string>

#include "common/contract/bundle.h"
#include "common/contract/campaign.h"

namespace proctor {

class Bundles {
 public:
  // `id` is the campaign's.
  Bundles(const Campaign& campaign, const std::string& id);
  const Digest& settings() const { return settings_; }
  // nullptr: nothing here has that digest.
  const std::string* find(const Digest& digest) const;

 private:
  Digest settings_;
  std::map<Digest, std::string> bytes_;
};

}  // namespace proctor
