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

  struct Key {
    std::string campaign;
    Digest digest;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  bool holds(const Key& key) const;
  // kInvalid or kCorrupt: the bytes are not what the digest names.
  Status put(Kind kind, const Key& key, const std::string& bytes);
  Result<std::shared_ptr<const ContractBundle>> contract(const Key& key);
  Result<std::shared_ptr<const Method>> method(const Key& key);
  Result<std::shared_ptr<const Settings>> settings(const Key& key);

 private:
  template <class T>
  using Memory = std::map<Key, std::shared_ptr<const T>>;
  template <class T, class Open>
  Result<std::shared_ptr<const T>> get(Memory<T>& memory, const Key& key, Open open);
  fs::path path(const Key& key) const { return root_ / key.campaign / key.digest.hex(); }

  const fs::path root_;
  std::mutex mutex_;
  Memory<ContractBundle> contracts_;
  Memory<Method> methods_;
  Memory<Settings> settings_;
};

}  // namespace proctor
