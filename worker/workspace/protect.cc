#include "worker/workspace/protect.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <set>

#include "common/base/text.h"
#include "worker/git/object_db.h"
#include "worker/workspace/beneath.h"
#include "worker/workspace/copy_tree.h"
#include "worker/workspace/snapshot.h"

namespace proctor {
using beneath::Missing;

Status take_away(int root, const std::string& path) {
  PROCTOR_TRY(const Seen now, look(root, path));
  return now.parent ? beneath::remove(now.parent->dir.get(), now.parent->name) : ok_status();
}

namespace {
// With the time of every file of a checkout.
Status put_back(const ObjectDb& db, int root, const std::string& path, const FileState& was) {
  PROCTOR_TRY(const std::string bytes, db.blob(was.id));
  PROCTOR_TRY(const auto parent, beneath::open_parent(root, path, Missing::kMakeAndReplace));
  if (was.mode == git_mode::kSymlink) {
    return beneath::write_link(parent.dir.get(), parent.name, bytes);
  }
  PROCTOR_CHECK_OK(beneath::write_file(parent.dir.get(), parent.name, bytes,
                                       was.mode == git_mode::kExecutable ? 0755 : 0644));
  return stamp(parent.dir.get(), parent.name);
}

// Mode 0: the snapshot has nothing there.
Result<FileState> entry_of(const ObjectDb& db, const ScanInput& scan, std::string_view path) {
  PROCTOR_TRY(const auto found, scan.folders->entry_at(db, scan.tree, path));
  return found ? FileState{found->mode, found->id} : FileState{};
}

bool is_folder(const FileState& was) {
  return was.mode == git_mode::kTree || was.mode == git_mode::kGitlink;
}

// As the snapshot has a file or link; mode 0: it has none there.
Result<FileState> file_at(const ObjectDb& db, const ScanInput& scan, std::string_view path) {
  PROCTOR_TRY(const FileState was, entry_of(db, scan, path));
  return is_folder(was) ? FileState{} : was;
}

// Folders that neither the snapshot nor `made` has go with the last of what they held: an empty one
// is a package to Python.
Status take_empty_folders(const ObjectDb& db, const ScanInput& scan, int root,
                          const std::vector<std::string>& changed,
                          const std::vector<std::string>& made = {}) {
  std::set<std::string> left;
  const auto add_folder_of = [&left](const std::string& path) {
    if (const std::size_t slash = path.rfind('/'); slash != std::string::npos)
      left.insert(path.substr(0, slash));
  };
  for (const std::string& path : changed) add_folder_of(path);
  while (!left.empty()) {
    // The last one has none of the others below it.
    const std::string at = std::move(left.extract(std::prev(left.end())).value());
    if (std::ranges::binary_search(made, at + '/')) continue;
    PROCTOR_TRY(const FileState was, entry_of(db, scan, at));
    PROCTOR_TRY(const Seen now, look(root, at));
    if (is_folder(was) || (now.st && !now.is_folder())) continue;
    if (now.st && ::unlinkat(now.parent->dir.get(), now.parent->name.c_str(), AT_REMOVEDIR) != 0) {
      // In a folder that the candidate's programs have closed it does no more than they can anyway.
      constexpr std::array kStays{ENOTEMPTY, EEXIST, EBUSY, EACCES, EPERM};
      if (std::ranges::find(kStays, errno) != kStays.end()) continue;
      if (errno != ENOENT) return errno_error("remove " + printable(at), errno);
    }
    add_folder_of(at);
  }
  return ok_status();
}

// By path, as the snapshot has them.
using Wrong = std::map<std::string, FileState>;
Result<Wrong> find_changed(ObjectDb& db, const RestoreInput& input) {
  ScanInput scan = input.scan;
  scan.contents = false;
  scan.wanted = [&](const std::string& path, bool folder) -> Result<bool> {
    return folder ? input.paths.reaches(path) : input.paths.covers(path);
  };
  PROCTOR_TRY(const ChangeSet changes, scan_changes(db, scan));
  Wrong out;
  for (const auto& [path, change] : changes.changed)
    if (input.paths.covers(path)) out.emplace(path, change.was);
  for (const std::string& path : changes.refused) {
    if (!input.paths.covers(path)) continue;
    PROCTOR_TRY(out[path], file_at(db, scan, path));
  }
  return out;
}

std::vector<std::string> paths_of(const Wrong& wrong) {
  std::vector<std::string> out;
  for (const auto& [path, was] : wrong) out.push_back(path);
  return out;
}
}  // namespace

Result<std::vector<std::string>> changed_paths(ObjectDb& db, const RestoreInput& input) {
  PROCTOR_TRY(const Wrong wrong, find_changed(db, input));
  return paths_of(wrong);
}

Result<std::vector<std::string>> restore_paths(ObjectDb& db, const RestoreInput& input) {
  PROCTOR_TRY(const Wrong wrong, find_changed(db, input));
  PROCTOR_TRY(const UniqueFd root, beneath::open_root(input.dir.string()));
  // What the snapshot does not have goes first: it may stand where a folder must be.
  for (const auto& [path, was] : wrong)
    if (was.mode == 0) PROCTOR_CHECK_OK(take_away(root.get(), path));
  for (const auto& [path, was] : wrong)
    if (was.mode != 0) PROCTOR_CHECK_OK(put_back(db, root.get(), path, was));
  std::vector<std::string> changed = paths_of(wrong);
  PROCTOR_CHECK_OK(take_empty_folders(db, input.scan, root.get(), changed));
  return changed;
}

namespace {
using beneath::Parent;

// This many files are named of a folder that goes as a whole.
constexpr std::size_t kNamedOfFolder = 1000;
constexpr int kNamedDepth = 16;
class Protector {
 public:
  // `kept`: the folder in.made.at; -1: there is none.
  Protector(ObjectDb& db, const ProtectInput& in, int root, int kept)
      : db_(db), in_(in), root_(root), kept_(kept) {}

  // In any order: what must be there makes its folders, and what must not goes with all below it.
  Status settle(const std::string& path) {
    PROCTOR_TRY(const Seen now, look(root_, path));
    if (const auto file = in_.placed.find(path); file != in_.placed.end())
      return settle_placed(path, now, file->second);
    if (0 <= kept_ && std::ranges::binary_search(in_.made.paths, path))
      return settle_made(path, now);
    PROCTOR_TRY(const FileState was, file_at(db_, in_.scan, path));
    return was.mode != 0 ? settle_snapshot(path, now, was) : settle_nothing(path, now);
  }

  // A folder that nobody but the candidate made.
  Status uproot(const std::string& path) {
    PROCTOR_TRY(const Seen now, look(root_, path));
    if (!now.st) return ok_status();
    name_inside(now.parent->dir.get(), now.parent->name, path, 0, done_.size() + kNamedOfFolder);
    return take_away(root_, path);
  }

  Status open_to_all(const std::string& path) {
    PROCTOR_TRY(const Seen now, look(root_, path));
    if (!now.is_folder()) return ok_status();
    constexpr mode_t kOpen = 0755;
    if (::fchmodat(now.parent->dir.get(), now.parent->name.c_str(), kOpen, 0) != 0)
      return errno_error("open " + printable(path), errno);
    done_.push_back(path);
    return ok_status();
  }

  std::vector<std::string> take() {
    std::ranges::sort(done_);
    done_.erase(std::unique(done_.begin(), done_.end()), done_.end());
    return std::move(done_);
  }

 private:
  // Other bits say nothing to its owner, who runs the checks.
  static bool is_alike(const struct stat& st, mode_t mode) {
    constexpr mode_t kOfOwner = 07500;
    return (st.st_mode & kOfOwner) == (mode & kOfOwner) && st.st_nlink == 1;
  }

  static bool is_fresh(const struct stat& st, const FileState& was) {
    const mode_t mode = was.mode == git_mode::kExecutable ? 0755 : 0644;
    return (S_ISLNK(st.st_mode) || (st.st_mode & 07777U) == mode) &&
           st.st_mtim.tv_sec == kCheckoutTime && st.st_mtim.tv_nsec == 0;
  }

  Status settle_nothing(const std::string& path, const Seen& now) {
    if (!now.st) return ok_status();
    done_.push_back(path);
    return take_away(root_, path);
  }

  Status settle_snapshot(const std::string& path, const Seen& now, const FileState& was) {
    PROCTOR_TRY(const bool right, is_of_snapshot(now, was));
    if (!right) done_.push_back(path);
    if (right && is_fresh(*now.st, was)) {
      vouch(path, now);
      return ok_status();
    }
    return put_back(db_, root_, path, was);
  }

  Result<bool> is_of_snapshot(const Seen& now, const FileState& was) {
    const bool link = was.mode == git_mode::kSymlink;
    if (!now.st || !(link ? S_ISLNK(now.st->st_mode) : S_ISREG(now.st->st_mode))) return false;
    if (!link && !is_alike(*now.st, was.mode == git_mode::kExecutable ? 0755 : 0644)) return false;
    PROCTOR_TRY(const std::uint64_t size, db_.size(was.id));
    if (size != static_cast<std::uint64_t>(now.st->st_size)) return false;
    const Parent& at = *now.parent;
    PROCTOR_TRY(const std::string bytes, link ? beneath::read_link(at.dir.get(), at.name)
                                              : beneath::read_file(at.dir.get(), at.name, size));
    return hash_object(ObjectType::kBlob, bytes) == was.id;
  }

  Status settle_placed(const std::string& path, const Seen& now, const PlacedFile& file) {
    if (now.is_file() && is_alike(*now.st, file.mode) &&
        static_cast<std::uint64_t>(now.st->st_size) == file.bytes.size()) {
      PROCTOR_TRY(const std::string bytes,
                  beneath::read_file(now.parent->dir.get(), now.parent->name, file.bytes.size()));
      if (bytes == file.bytes) return ok_status();
    }
    done_.push_back(path);
    PROCTOR_TRY(const Parent parent, beneath::open_parent(root_, path, Missing::kMakeAndReplace));
    return beneath::write_file(parent.dir.get(), parent.name, file.bytes, file.mode);
  }

  Status settle_made(const std::string& path, const Seen& now) {
    PROCTOR_TRY(Seen kept, look(kept_, path));
    if (!kept.is_file() && !kept.is_link()) kept.st.reset();
    if (!kept.st) return settle_nothing(path, now);
    PROCTOR_TRY(const bool same, say_the_same(now, kept));
    if (same && now.st->st_mode == kept.st->st_mode) {
      vouch(path, now);
      return ok_status();
    }
    done_.push_back(path);
    return copy_over(kept, root_, path);
  }

  // Under an overlay the scan sees the same file: its inode is that of its layer.
  void vouch(const std::string& path, const Seen& now) {
    if (is_settled(*now.st)) in_.vouched[path] = {now.st->st_ino, now.st->st_size, now.st->st_ctim};
  }

  void name_inside(int dir, const std::string& name, const std::string& path, int depth,
                   std::size_t most) {
    const auto child = beneath::open_dir(dir, name);
    const auto inside = child.ok() ? beneath::names(child->get()) : child.error();
    if (!inside.ok() || inside->empty() || kNamedDepth <= depth) {
      if (done_.size() < most) done_.push_back(path);
      return;
    }
    for (const std::string& n : *inside) {
      if (most <= done_.size()) return;
      struct stat st {};
      if (::fstatat(child->get(), n.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
        name_inside(child->get(), n, path + '/' + n, depth + 1, most);
      else
        done_.push_back(path + '/' + n);
    }
  }

  ObjectDb& db_;
  const ProtectInput& in_;
  int root_;
  int kept_;
  std::vector<std::string> done_;
};
}  // namespace

void add_folders_of(const std::string& path, std::vector<std::string>& out) {
  for (std::size_t slash = path.find('/'); slash != std::string::npos;
       slash = path.find('/', slash + 1))
    out.push_back(path.substr(0, slash + 1));
}

Result<std::vector<std::string>> protect_paths(ObjectDb& db, const ProtectInput& input) {
  // Folders that hold what the contract places are nobody's plant.
  std::vector<std::string> made = input.made.paths, names;
  for (const auto& [path, file] : input.placed) {
    add_folders_of(path, made);
    names.push_back(path);
  }
  for (const std::string& path : input.made.paths) add_folders_of(path, made);
  std::ranges::sort(made);
  made.erase(std::unique(made.begin(), made.end()), made.end());
  const ProtectedPaths paths(input.globs, std::move(names));
  const StrictLook strict{paths, made, input.vouched};
  ScanInput scan = input.scan;
  scan.contents = false;
  scan.strict = &strict;
  PROCTOR_TRY(const ChangeSet seen, scan_changes(db, scan));
  auto changed = [&]() -> Result<std::vector<std::string>> {
    PROCTOR_TRY(const UniqueFd root, beneath::open_root(input.dir.string()));
    PROCTOR_TRY(const UniqueFd kept, beneath::open_if_there(input.made.at));
    Protector out(db, input, root.get(), kept.get());
    for (const std::string& path : seen.planted) PROCTOR_CHECK_OK(out.uproot(path));
    for (const std::string& path : seen.refused)
      if (paths.covers(path)) PROCTOR_CHECK_OK(out.settle(path));
    for (const auto& [path, change] : seen.changed) PROCTOR_CHECK_OK(out.settle(path));
    for (const std::string& path : input.made.paths) {
      if (path.ends_with('/')) continue;
      PROCTOR_TRY(const Seen now, look(root.get(), path));
      if (!now.st) PROCTOR_CHECK_OK(out.settle(path));
    }
    for (const auto& [path, file] : input.placed) PROCTOR_CHECK_OK(out.settle(path));
    for (const std::string& path : seen.closed) PROCTOR_CHECK_OK(out.open_to_all(path));
    std::vector<std::string> done = out.take();
    PROCTOR_CHECK_OK(take_empty_folders(db, input.scan, root.get(), done, made));
    return done;
  }();
  // Behind the scan it is our own want of descriptors or room, which says nothing of what was left.
  if (!changed.ok() && changed.error().code == Errc::kExhausted)
    return Error{Errc::kUnavailable, changed.error().detail};
  return changed;
}

Status keep_made(const fs::path& dir, const std::vector<std::string>& paths, const fs::path& keep) {
  PROCTOR_CHECK_OK(remove_tree(keep));  // of an earlier life
  PROCTOR_CHECK_OK(make_dirs(keep));
  PROCTOR_TRY(const UniqueFd from, beneath::open_root(dir.string()));
  PROCTOR_TRY(const UniqueFd to, beneath::open_root(keep.string()));
  for (const std::string& path : paths) {
    if (path.ends_with('/')) continue;
    PROCTOR_TRY(const Seen now, look(from.get(), path));
    if (!now.is_file() && !now.is_link()) continue;
    PROCTOR_CHECK_OK(copy_over(now, to.get(), path));
  }
  return ok_status();
}
}  // namespace proctor
