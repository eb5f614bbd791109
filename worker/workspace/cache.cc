#include "worker/workspace/cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "common/base/folder_tree.h"

namespace proctor {
std::vector<std::string> to_evict(std::vector<CachedItem> items, std::uint64_t bytes_max) {
  std::uint64_t total = 0;
  for (const CachedItem& item : items) total += item.bytes;
  std::sort(items.begin(), items.end(), [](const CachedItem& a, const CachedItem& b) {
    return std::tie(a.used_ms, a.name) < std::tie(b.used_ms, b.name);
  });
  std::vector<std::string> out;
  for (const CachedItem& item : items) {
    if (total <= bytes_max) break;
    if (item.in_use) continue;
    total -= item.bytes;
    out.push_back(item.name);
  }
  return out;
}

namespace {
constexpr const char* kUse = "use";
constexpr const char* kDotUse = ".use";
constexpr const char* kDotNew = ".new";

void touch(const fs::path& file) {
  const UniqueFd fd(
      ::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kPrivateFile));
  if (fd.valid()) (void)::futimens(fd.get(), nullptr);
}

std::int64_t used_ms(const fs::path& stamp, const fs::path& otherwise) {
  struct stat st {};
  if (::lstat(stamp.c_str(), &st) != 0 && ::lstat(otherwise.c_str(), &st) != 0) return 0;
  constexpr std::int64_t kMillis = 1000, kNanosInMilli = 1'000'000;
  return st.st_mtim.tv_sec * kMillis + st.st_mtim.tv_nsec / kNanosInMilli;
}

fs::path use_of(const fs::path& tree) {
  return tree.string() + kDotUse;
}

struct Found {
  CachedItem item;
  fs::path dir;
};

// Trees, and the layers that setup left: both are locked and stamped beside their folder.
constexpr const char* kKept[] = {"trees", "layers"};

// Half of something, whose maker was killed, is removed.
Result<std::vector<Found>> kept_of(const fs::path& root) {
  std::vector<Found> out;
  std::error_code ec;
  for (const char* kind : kKept) {
    for (const auto& entry : fs::directory_iterator(root / kind, ec)) {
      const fs::path& dir = entry.path();
      if (!entry.is_directory()) continue;
      if (dir.extension() == kDotNew) {
        const auto making = FileLock::try_acquire(fs::path(dir).replace_extension(".lock"));
        if (making.ok()) PROCTOR_CHECK_OK(remove_tree(dir));
        continue;
      }
      out.push_back({{kind + ("/" + dir.filename().string()), folder_use(dir).bytes,
                      used_ms(use_of(dir), dir), !FileLock::try_acquire(use_of(dir)).ok()},
                     dir});
    }
  }
  return out;
}

std::vector<Found> mirrors_of(const fs::path& root, bool in_use) {
  std::vector<Found> out;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(root / "mirrors", ec)) {
    const fs::path& dir = entry.path();
    if (!fs::is_directory(dir / "repo.git")) continue;
    out.push_back({{"mirrors/" + dir.filename().string(), folder_use(dir).bytes,
                    used_ms(dir / kUse, dir), in_use},
                   dir});
  }
  return out;
}

// Under the lock of its makers too: nobody makes it while it goes.
Status remove_one(const fs::path& root, const Found& found) {
  if (found.dir.parent_path() != root / "mirrors") {
    PROCTOR_TRY(const FileLock making, FileLock::try_acquire(found.dir.string() + ".lock"));
    PROCTOR_TRY(const FileLock use, FileLock::try_acquire(use_of(found.dir)));
    return remove_tree(found.dir);
  }
  PROCTOR_TRY(const FileLock fetching, FileLock::try_acquire(found.dir / "lock"));
  for (const char* part : {"repo.git", "damaged.git", "new.git"})
    PROCTOR_CHECK_OK(remove_tree(found.dir / part));
  return ok_status();
}
}  // namespace

Result<FileLock> use_tree(const fs::path& tree) {
  PROCTOR_TRY(FileLock lock, FileLock::share(use_of(tree)));
  std::error_code ec;
  if (!fs::is_directory(tree, ec))
    return Error{Errc::kUnavailable, tree.parent_path().filename().string() + "/" +
                                         tree.filename().string() + " was evicted"};
  touch(use_of(tree));
  return lock;
}

Result<FileLock> use_mirrors(const fs::path& mirrors) {
  return FileLock::share(mirrors / kDotUse);
}

void touch_mirror(const fs::path& mirror) {
  touch(mirror / kUse);
}

Result<CacheReport> make_room(const fs::path& root, std::uint64_t bytes_max) {
  CacheReport report;
  std::error_code ec;
  if (!fs::is_directory(root, ec)) return Error{Errc::kNotFound, root.string() + ": no such root"};
  PROCTOR_CHECK_OK(make_dirs(root / "mirrors"));
  auto no_reader = FileLock::try_acquire(root / "mirrors" / kDotUse);
  PROCTOR_TRY(std::vector<Found> all, kept_of(root));
  for (Found& mirror : mirrors_of(root, !no_reader.ok())) all.push_back(std::move(mirror));
  std::vector<CachedItem> items;
  std::map<std::string, const Found*> by_name;
  for (const Found& found : all) {
    items.push_back(found.item);
    by_name[found.item.name] = &found;
    ++report.items;
    report.bytes += found.item.bytes;
    if (found.item.in_use) ++report.in_use;
    if (no_reader.ok()) PROCTOR_CHECK_OK(remove_tree(found.dir / "damaged.git"));
  }
  for (const std::string& name : to_evict(std::move(items), bytes_max)) {
    const Found& found = *by_name.at(name);
    const Status removed = remove_one(root, found);
    if (!removed.ok() && removed.error().code == Errc::kConflict) {
      ++report.in_use;  // since just now
      continue;
    }
    PROCTOR_CHECK_OK(removed);
    ++report.removed;
    report.removed_bytes += found.item.bytes;
  }
  return report;
}
}  // namespace proctor
