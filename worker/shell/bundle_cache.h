#pragma once
// BundleCache: contracts, methods and settings by digest, on disk under ROOT/<campaign>/<digest>,
// the last few also in memory.  By campaign, because a contract's bundle also names the folder it
// came from, which its digest does not cover.  Nothing is stored that does not open under its
// digest, and what no longer does is removed, so that it is asked for again.  Blocking;
// thread-safe.
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "common/base/files.h"
#include "common/base/result.h"
#include "common/contract/bundle.h"
#include "common/contract/campaign.h"

namespace proctor {

class BundleCache {
 public:
  enum class Kind { kContract, kMethod, kSettings };
  explicit BundleCache(fs::path root) : root_(std::move(root)) {}

  // From now on it holds the bundles of this campaign.
  void enter(const std::string& campaign);
  bool holds(const Digest& digest) const;
  // kInvalid or kCorrupt: the bytes are not what the digest names.
  Status put(Kind kind, const Digest& digest, const std::string& bytes);
  Result<std::shared_ptr<const ContractBundle>> contract(const Digest& digest);
  Result<std::shared_ptr<const Method>> method(const Digest& digest);
  Result<std::shared_ptr<const Settings>> settings(const Digest& digest);

 private:
  template <class T, class Open>
  Result<std::shared_ptr<const T>> get(std::map<Digest, std::shared_ptr<const T>>& memory,
                                       const Digest& digest, Open open);
  fs::path path(const Digest& digest) const;

  fs::path root_;
  std::string campaign_ = "none";
  mutable std::mutex mutex_;
  std::map<Digest, std::shared_ptr<const ContractBundle>> contracts_;
  std::map<Digest, std::shared_ptr<const Method>> methods_;
  std::map<Digest, std::shared_ptr<const Settings>> settings_;
};

}  // namespace proctor
