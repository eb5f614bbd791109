#include "worker/workspace/lives.h"

#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "worker/workspace/bounded_disk.h"
#include "worker/workspace/overlay.h"

namespace proctor {
namespace {

constexpr const char* kLock = ".lock";

Status bury(const fs::path& dir) {
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(dir, ec)) {
    if (!entry.is_directory()) continue;
    PROCTOR_CHECK_OK(unmount(entry.path() / "merged"));
    PROCTOR_CHECK_OK(unmount_bounded(entry.path()));
  }
  return remove_tree(dir);
}

// Those of an owner but for `mine`; the names of the ones that somebody holds.
Result<std::vector<std::string>> bury_lives(const fs::path& owner_dir, const fs::path& mine) {
  PROCTOR_TRY(const FileLock owner, FileLock::acquire(owner_dir / kLock));
  std::vector<std::string> living;
  std::vector<fs::path> others;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(owner_dir, ec)) {
    if (entry.is_directory()) others.push_back(entry.path());
  }
  if (ec) return errno_error("list " + owner_dir.string(), ec.value());
  for (const fs::path& dir : others) {
    if (dir == mine || !FileLock::try_acquire(dir / kLock).ok()) {
      living.push_back(dir.filename().string());
      continue;
    }
    PROCTOR_CHECK_OK(bury(dir));
  }
  return living;
}

// The owner's name without what its root's place adds to it; empty: nothing is added.
std::string_view placeless(std::string_view owner) {
  constexpr std::size_t kHash = 12;
  const std::size_t dash = owner.rfind('-');
  const bool hashed = dash != std::string_view::npos && owner.size() - dash - 1 == kHash &&
                      owner.find_first_not_of("0123456789abcdef", dash + 1) == owner.npos;
  return hashed ? owner.substr(0, dash) : std::string_view();
}

}  // namespace

Result<Life> Life::begin(const fs::path& owner_dir) {
  // Until the new folder is locked nobody may take it for a dead one.
  PROCTOR_TRY(const FileLock owner, FileLock::acquire(owner_dir / kLock));
  std::string name = (owner_dir / "life-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) return errno_error("make " + name, errno);
  PROCTOR_TRY(FileLock lock, FileLock::acquire(fs::path(name) / kLock));
  spread_subfolders(name);
  return Life(name, std::move(lock));
}

Life::~Life() {
  if (dir_.empty()) return;
  std::error_code ec;
  fs::remove(dir_ / kLock, ec);
  fs::remove(dir_, ec);  // only when empty
}

Status Life::stay() {
  if (std::error_code ec; fs::exists(dir_ / kLock, ec)) return ok_status();
  PROCTOR_TRY(const FileLock owner, FileLock::acquire(dir_.parent_path() / kLock));
  PROCTOR_TRY(lock_, FileLock::acquire(dir_ / kLock));
  return ok_status();
}

Result<fs::path> Life::take_over(const fs::path& dir) const {
  const fs::path owner_dir = dir_.parent_path(), life = dir.parent_path();
  std::error_code ec;
  if (life.parent_path() != owner_dir || life == dir_ || !fs::is_directory(dir, ec))
    return Error{Errc::kNotFound, "no folder of an earlier life: " + dir.string()};
  PROCTOR_TRY(const FileLock owner, FileLock::acquire(owner_dir / kLock));
  if (const auto dead = FileLock::try_acquire(life / kLock); !dead.ok()) return dead.error();
  const fs::path mine = dir_ / (life.filename().string() + "-" + dir.filename().string());
  // What is mounted below moves with it: only a mount's own place cannot be renamed.
  fs::rename(dir, mine, ec);
  if (ec) return errno_error("take over " + dir.string(), ec.value());
  return mine;
}

Result<std::vector<std::string>> Life::bury_the_dead() const {
  const fs::path owner_dir = dir_.parent_path();
  const std::string own = owner_dir.filename().string();
  std::vector<fs::path> before;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(owner_dir.parent_path(), ec)) {
    const std::string other = entry.path().filename().string();
    if (entry.is_directory() && other != own && !placeless(own).empty() &&
        placeless(other) == placeless(own))
      before.push_back(entry.path());
  }
  for (const fs::path& dir : before) {
    PROCTOR_TRY(const std::vector<std::string> living, bury_lives(dir, {}));
    if (living.empty()) PROCTOR_CHECK_OK(remove_tree(dir));
  }
  return bury_lives(owner_dir, dir_);
}

}  // namespace proctor
