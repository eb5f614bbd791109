#include "worker/shell/bundle_cache.h"

#include <system_error>

#include "common/base/limits.h"

namespace proctor {
namespace {

constexpr std::size_t kInMemory = 32;  // of each kind: the tasks under way and their neighbours

Status opens(BundleCache::Kind kind, const std::string& bytes, const Digest& digest) {
  switch (kind) {
    case BundleCache::Kind::kContract:
      PROCTOR_CHECK_OK(open_contract_bundle(bytes, digest));
      return ok_status();
    case BundleCache::Kind::kMethod:
      PROCTOR_CHECK_OK(open_method_bundle(bytes, digest));
      return ok_status();
    case BundleCache::Kind::kSettings:
      PROCTOR_CHECK_OK(open_settings_bundle(bytes, digest));
      return ok_status();
  }
  PROCTOR_ASSERT(false);
}

}  // namespace

fs::path BundleCache::path(const Digest& digest) const {
  const std::lock_guard lock(mutex_);
  return root_ / campaign_ / digest.hex();
}

void BundleCache::enter(const std::string& campaign) {
  const std::lock_guard lock(mutex_);
  campaign_ = campaign;
  contracts_.clear();
  methods_.clear();
  settings_.clear();
}

bool BundleCache::holds(const Digest& digest) const {
  std::error_code error;
  return fs::is_regular_file(path(digest), error);
}

Status BundleCache::put(Kind kind, const Digest& digest, const std::string& bytes) {
  PROCTOR_CHECK_OK(opens(kind, bytes, digest));
  const fs::path file = path(digest);
  PROCTOR_CHECK_OK(make_dirs(file.parent_path()));
  return write_file(file, bytes, Durability::kLazy, 0600);  // opened again under its digest
}

template <class T, class Open>
Result<std::shared_ptr<const T>> BundleCache::get(
    std::map<Digest, std::shared_ptr<const T>>& memory, const Digest& digest, Open open) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = memory.find(digest); it != memory.end()) return it->second;
  }
  PROCTOR_TRY(const std::string bytes, read_file(path(digest), limits::kContractBundleBytes));
  Result<T> opened = open(bytes, digest);
  if (!opened.ok()) {
    std::error_code ignored;
    fs::remove(path(digest), ignored);
    return Error{Errc::kCorrupt,
                 "cached bundle " + digest.short_hex() + ": " + opened.error().detail};
  }
  auto value = std::make_shared<const T>(std::move(opened).value());
  const std::lock_guard lock(mutex_);
  if (kInMemory <= memory.size()) memory.clear();
  memory.emplace(digest, value);
  return value;
}

Result<std::shared_ptr<const ContractBundle>> BundleCache::contract(const Digest& digest) {
  return get(contracts_, digest, open_contract_bundle);
}

Result<std::shared_ptr<const Method>> BundleCache::method(const Digest& digest) {
  return get(methods_, digest, open_method_bundle);
}

Result<std::shared_ptr<const Settings>> BundleCache::settings(const Digest& digest) {
  return get(settings_, digest, open_settings_bundle);
}

}  // namespace proctor
