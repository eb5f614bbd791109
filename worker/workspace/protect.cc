#include "worker/workspace/protect.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>

#include "common/base/text.h"
#include "worker/git/object_db.h"
#include "worker/workspace/beneath.h"
#include "worker/workspace/copy_tree.h"
#include "worker/workspace/snapshot.h"

namespace proctor {
using beneath::Missing;

Status put_back(const ObjectDb& db, int root, const std::string& path, const GitTreeEntry& entry) {
  PROCTOR_TRY(const std::string bytes, db.blob(entry.id));
  PROCTOR_TRY(const auto parent, beneath::open_parent(root, path, Missing::kMakeAndReplace));
  if (entry.mode == git_mode::kSymlink) {
    return beneath::write_link(parent.dir.get(), parent.name, bytes);
  }
  PROCTOR_CHECK_OK(beneath::write_file(parent.dir.get(), parent.name, bytes,
                                       entry.mode == git_mode::kExecutable ? 0755 : 0644));
  const timespec times[2] = {{kCheckoutTime, 0}, {kCheckoutTime, 0}};
  if (::utimensat(parent.dir.get(), parent.name.c_str(), times, AT_SYMLINK_NOFOLLOW) == 0)
    return ok_status();
  return errno_error("set time of " + printable(path), errno);
}

Status take_away(int root, const std::string& path) {
  auto parent = beneath::open_parent(root, path, Missing::kFail);
  // Gone already: its folder was removed before it.
  if (!parent.ok() &&
      (parent.error().code == Errc::kNotFound || parent.error().code == Errc::kInvalid)) {
    return ok_status();
  }
  if (!parent.ok()) return std::move(parent).error();
  return beneath::remove(parent->dir.get(), parent->name);
}

Result<std::vector<std::string>> changed_paths(ObjectDb& db, const RestoreInput& input,
                                               std::vector<std::string>* new_folders) {
  ScanInput scan = input.scan;
  const ProtectedPaths paths_of(input.globs);
  scan.contents = false;
  scan.new_folders = new_folders;
  scan.wanted = [&](const std::string& path, bool folder) -> Result<bool> {
    return folder ? paths_of.reaches(path) : paths_of.covers(path);
  };
  PROCTOR_TRY(const ChangeSet changes, scan_changes(db, scan));
  std::vector<std::string> paths;
  for (const auto& [path, change] : changes.changed) paths.push_back(path);
  paths.insert(paths.end(), changes.refused.begin(), changes.refused.end());
  std::erase_if(paths, [&](const std::string& p) { return !paths_of.covers(p); });
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  return paths;
}

Result<std::vector<std::string>> restore_paths(ObjectDb& db, const RestoreInput& input) {
  PROCTOR_TRY(const std::vector<std::string> paths, changed_paths(db, input));
  std::vector<std::string> done;
  PROCTOR_TRY(const UniqueFd root, beneath::open_root(input.dir.string()));
  std::vector<std::pair<std::string, GitTreeEntry>> back;
  // What the snapshot does not have goes first: it may stand where a folder must be.
  for (const std::string& path : paths) {
    auto entry = entry_at(db, input.scan.tree, path);
    done.push_back(path);
    if (entry.ok() && entry->mode != git_mode::kTree && entry->mode != git_mode::kGitlink) {
      back.emplace_back(path, std::move(entry).value());
    } else if (entry.ok() || entry.error().code == Errc::kNotFound) {
      PROCTOR_CHECK_OK(take_away(root.get(), path));
    } else {
      return std::move(entry).error();
    }
  }
  for (const auto& [path, entry] : back) PROCTOR_CHECK_OK(put_back(db, root.get(), path, entry));
  return done;
}

namespace {
using beneath::Parent;

// This many files are named of a folder that goes as a whole.
constexpr std::size_t kNamedOfFolder = 1000;
constexpr int kNamedDepth = 16;
class Protector {
 public:
  // `kept`: the folder in.made.at; not valid: there is none.
  Protector(ObjectDb& db, const ProtectInput& in, int root, int kept)
      : db_(db), in_(in), root_(root), kept_(kept) {}

  Status settle_missing(const std::string& path) {
    PROCTOR_TRY(const Seen now, look(root_, path));
    return now.st ? ok_status() : settle(path);
  }

  // In any order: what must be there makes its folders, and what must not goes with all below it.
  Status settle(const std::string& path) {
    PROCTOR_TRY(const Seen now, look(root_, path));
    if (const auto file = in_.placed.find(path); file != in_.placed.end())
      return settle_placed(path, now, file->second);
    if (0 <= kept_ && std::ranges::binary_search(in_.made.paths, path))
      return settle_made(path, now);
    auto entry = entry_at(db_, in_.scan.tree, path);
    if (!entry.ok() && entry.error().code != Errc::kNotFound) return std::move(entry).error();
    if (entry.ok() && entry->mode != git_mode::kTree && entry->mode != git_mode::kGitlink)
      return settle_snapshot(path, now, *entry);
    return settle_nothing(path, now);
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

  static bool is_fresh(const struct stat& st, const GitTreeEntry& entry) {
    const mode_t mode = entry.mode == git_mode::kExecutable ? 0755 : 0644;
    return (S_ISLNK(st.st_mode) || (st.st_mode & 07777U) == mode) &&
           st.st_mtim.tv_sec == kCheckoutTime && st.st_mtim.tv_nsec == 0;
  }

  Status settle_nothing(const std::string& path, const Seen& now) {
    if (!now.st) return ok_status();
    done_.push_back(path);
    return take_away(root_, path);
  }

  Status settle_snapshot(const std::string& path, const Seen& now, const GitTreeEntry& entry) {
    PROCTOR_TRY(const bool right, is_of_snapshot(now, entry));
    if (!right) done_.push_back(path);
    if (right && is_fresh(*now.st, entry)) {
      vouch(path, now);
      return ok_status();
    }
    return put_back(db_, root_, path, entry);
  }

  Result<bool> is_of_snapshot(const Seen& now, const GitTreeEntry& entry) {
    const bool link = entry.mode == git_mode::kSymlink;
    if (!now.st || !(link ? S_ISLNK(now.st->st_mode) : S_ISREG(now.st->st_mode))) return false;
    if (!link && !is_alike(*now.st, entry.mode == git_mode::kExecutable ? 0755 : 0644))
      return false;
    PROCTOR_TRY(const std::uint64_t size, db_.size(entry.id));
    if (size != static_cast<std::uint64_t>(now.st->st_size)) return false;
    const Parent& at = *now.parent;
    PROCTOR_TRY(const std::string bytes, link ? beneath::read_link(at.dir.get(), at.name)
                                              : beneath::read_file(at.dir.get(), at.name, size));
    return hash_object(ObjectType::kBlob, bytes) == entry.id;
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
    PROCTOR_TRY(const bool right, is_as_kept(now, kept));
    if (right) {
      vouch(path, now);
      return ok_status();
    }
    done_.push_back(path);
    PROCTOR_TRY(const Parent to, beneath::open_parent(root_, path, Missing::kMakeAndReplace));
    PROCTOR_CHECK_OK(beneath::remove(to.dir.get(), to.name));
    return copy_one(kept.parent->dir.get(), kept.parent->name, to.dir.get(), to.name);
  }

  static Result<bool> is_as_kept(const Seen& now, const Seen& kept) {
    if (!now.st || now.st->st_mode != kept.st->st_mode) return false;
    return say_the_same(now, kept);
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

Result<ChangeSet> look_strictly(ObjectDb& db, const RestoreInput& input, const MadeUnder& made,
                                const CopiedFiles& vouched) {
  const ProtectedPaths paths(input.globs);
  const StrictLook strict{paths, made.paths, vouched};
  ScanInput scan = input.scan;
  scan.contents = false;
  scan.strict = &strict;
  return scan_changes(db, scan);
}
}  // namespace

Result<std::vector<std::string>> protect_paths(ObjectDb& db, const ProtectInput& input) {
  // Folders that hold what the contract places are nobody's plant.
  MadeUnder made = input.made;
  const auto add_folders_of = [&made](const std::string& path) {
    for (std::size_t slash = path.find('/'); slash != std::string::npos;
         slash = path.find('/', slash + 1))
      made.paths.push_back(path.substr(0, slash + 1));
  };
  for (const auto& [path, file] : input.placed) add_folders_of(path);
  for (const std::string& path : input.made.paths) add_folders_of(path);
  std::ranges::sort(made.paths);
  made.paths.erase(std::unique(made.paths.begin(), made.paths.end()), made.paths.end());
  PROCTOR_TRY(
      const ChangeSet seen,
      look_strictly(db, RestoreInput{input.dir, input.scan, input.globs}, made, input.vouched));
  PROCTOR_TRY(const UniqueFd root, beneath::open_root(input.dir.string()));
  const ProtectedPaths paths(input.globs);
  UniqueFd kept;
  if (!input.made.at.empty()) {
    auto opened = beneath::open_root(input.made.at.string());
    if (opened.ok())
      kept = std::move(opened).value();
    else if (opened.error().code != Errc::kNotFound)
      return std::move(opened).error();
  }
  Protector out(db, input, root.get(), kept.valid() ? kept.get() : -1);
  for (const std::string& path : seen.planted) PROCTOR_CHECK_OK(out.uproot(path));
  for (const std::string& path : seen.refused)
    if (paths.covers(path)) PROCTOR_CHECK_OK(out.settle(path));
  for (const auto& [path, change] : seen.changed) PROCTOR_CHECK_OK(out.settle(path));
  for (const std::string& path : input.made.paths)
    if (!path.ends_with('/')) PROCTOR_CHECK_OK(out.settle_missing(path));
  for (const auto& [path, file] : input.placed)
    if (paths.covers(path)) PROCTOR_CHECK_OK(out.settle(path));
  for (const std::string& path : seen.closed) PROCTOR_CHECK_OK(out.open_to_all(path));
  return out.take();
}

Result<MadeUnder> list_made(ObjectDb& db, const RestoreInput& input) {
  MadeUnder out;
  std::vector<std::string> folders;
  PROCTOR_TRY(out.paths, changed_paths(db, input, &folders));
  out.paths.insert(out.paths.end(), folders.begin(), folders.end());
  std::ranges::sort(out.paths);
  return out;
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
    PROCTOR_TRY(const Parent parent, beneath::open_parent(to.get(), path, Missing::kMake));
    PROCTOR_CHECK_OK(
        copy_one(now.parent->dir.get(), now.parent->name, parent.dir.get(), parent.name));
  }
  return ok_status();
}
}  // namespace proctor
