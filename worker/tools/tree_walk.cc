#include "worker/tools/tree_walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>

#include "common/base/files.h"
#include "worker/workspace/beneath.h"

namespace proctor {
namespace {

constexpr std::size_t kEntriesMost = 50'000, kVisitedMost = 500'000;

WalkedEntry::Kind kind_of_mode(mode_t mode) {
  if (S_ISREG(mode)) return WalkedEntry::Kind::kFile;
  if (S_ISDIR(mode)) return WalkedEntry::Kind::kFolder;
  return S_ISLNK(mode) ? WalkedEntry::Kind::kLink : WalkedEntry::Kind::kOther;
}

class Walk {
 public:
  explicit Walk(const OnEntry& on) : on_(on) {}
  bool all() const { return all_; }

  // False: no more.
  bool go(int dir, const std::string& path, std::size_t depth) {
    const auto inside = entries_of(dir);
    if (!inside.ok()) {
      all_ = false;
      return true;
    }
    all_ = all_ && !inside->more;
    for (const WalkedEntry& entry : inside->entries) {
      const std::string at = path.empty() ? entry.name : path + "/" + entry.name;
      if (kVisitedMost < ++visited_ || !on_(dir, entry, at)) {
        all_ = false;
        return false;
      }
      if (entry.kind != WalkedEntry::Kind::kFolder || depth <= 1) continue;
      const auto below = beneath::open_dir(dir, entry.name);
      if (!below.ok()) {
        all_ = false;
        continue;
      }
      if (!go(below->get(), at, depth - 1)) return false;
    }
    return true;
  }

 private:
  const OnEntry& on_;
  std::size_t visited_ = 0;
  bool all_ = true;
};

}  // namespace

Result<FolderEntries> entries_of(int dir) {
  UniqueFd copy(::openat(dir, ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!copy.valid()) return errno_error("list folder", errno);
  const auto close_dir = [](DIR* d) { ::closedir(d); };
  const std::unique_ptr<DIR, decltype(close_dir)> stream(::fdopendir(copy.get()), close_dir);
  if (!stream) return errno_error("list folder", errno);
  (void)copy.release();  // the stream has it
  FolderEntries out;
  while (const dirent* e = ::readdir(stream.get())) {
    const std::string_view name(static_cast<const char*>(e->d_name));
    if (name == "." || name == ".." || name == ".git") continue;
    if (out.entries.size() == kEntriesMost) {
      out.more = true;
      break;
    }
    struct stat st {};
    if (::fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) continue;  // it has gone
    out.entries.push_back(
        {std::string(name), kind_of_mode(st.st_mode), static_cast<std::uint64_t>(st.st_size)});
  }
  std::sort(out.entries.begin(), out.entries.end(),
            [](const WalkedEntry& a, const WalkedEntry& b) { return a.name < b.name; });
  return out;
}

Result<UniqueFd> open_folder(int root, const std::string& path) {
  if (path.empty()) {
    UniqueFd out(::openat(root, ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!out.valid()) return errno_error("open folder", errno);
    return out;
  }
  PROCTOR_TRY(beneath::Parent parent, beneath::open_parent(root, path, beneath::Missing::kFail));
  return beneath::open_dir(parent.dir.get(), parent.name);
}

Result<bool> walk_tree(int root, const std::string& path, std::size_t depth, const OnEntry& on) {
  PROCTOR_TRY(const UniqueFd dir, open_folder(root, path));
  Walk walk(on);
  walk.go(dir.get(), path, depth);
  return walk.all();
}

}  // namespace proctor
