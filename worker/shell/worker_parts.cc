#include "worker/shell/worker_parts.h"

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

bool BundleCache::holds(const Key& key) const {
  std::error_code error;
  return fs::is_regular_file(path(key), error);
}

Status BundleCache::put(Kind kind, const Key& key, const std::string& bytes) {
  PROCTOR_CHECK_OK(opens(kind, bytes, key.digest));
  const fs::path file = path(key);
  PROCTOR_CHECK_OK(make_private_dirs(file.parent_path()));
  return write_file(file, bytes, Durability::kLazy, 0600);  // opened again under its digest
}

template <class T, class Open>
Result<std::shared_ptr<const T>> BundleCache::get(Memory<T>& memory, const Key& key, Open open) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = memory.find(key); it != memory.end()) return it->second;
  }
  PROCTOR_TRY(const std::string bytes, read_file(path(key), limits::kContractBundleBytes));
  Result<T> opened = open(bytes, key.digest);
  if (!opened.ok()) {
    std::error_code ignored;
    fs::remove(path(key), ignored);
    return Error{Errc::kCorrupt,
                 "cached bundle " + key.digest.short_hex() + ": " + opened.error().detail};
  }
  auto value = std::make_shared<const T>(std::move(opened).value());
  const std::lock_guard lock(mutex_);
  if (kInMemory <= memory.size()) memory.clear();
  memory.emplace(key, value);
  return value;
}

Result<std::shared_ptr<const ContractBundle>> BundleCache::contract(const Key& key) {
  return get(contracts_, key, open_contract_bundle);
}

Result<std::shared_ptr<const Method>> BundleCache::method(const Key& key) {
  return get(methods_, key, open_method_bundle);
}

Result<std::shared_ptr<const Settings>> BundleCache::settings(const Key& key) {
  return get(settings_, key, open_settings_bundle);
}
}  // namespace proctor
