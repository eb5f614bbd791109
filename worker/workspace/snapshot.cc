#include "worker/workspace/snapshot.h"

#include <map>

#include "common/base/file_lock.h"
#include "common/base/text.h"
#include "worker/git/lfs.h"
#include "worker/git/object_db.h"
#include "worker/git/submodules.h"
#include "worker/workspace/cache.h"
#include "worker/workspace/checkout.h"
#include "worker/workspace/one_commit.h"
#include "worker/workspace/tree_mark.h"

namespace proctor {
namespace {

constexpr std::size_t kSmallFile = 4096;

struct Content {
  std::vector<fs::path> objects;
  ObjectId tree;
};

Status build_tree(const GitProgram& git, const Content& content, const fs::path& dir) {
  PROCTOR_TRY(const ObjectDb db, ObjectDb::open(content.objects));
  PROCTOR_TRY(const std::vector<ListedEntry> entries, list_tree(db, content.tree));
  const fs::path work = dir / "work";
  PROCTOR_CHECK_OK(make_dirs(work));
  PROCTOR_CHECK_OK(write_checkout(db, entries, work));
  std::map<std::string, ObjectId> gitlinks;
  for (const ListedEntry& e : entries) {
    if (e.mode == git_mode::kGitlink) gitlinks[e.path] = e.id;
  }
  // Two ids: of the objects (content.tree) and of the files just written.  They must agree.
  PROCTOR_TRY(const ObjectId seen, hash_checkout(work, gitlinks));
  if (seen != content.tree) {
    return Error{Errc::kCorrupt,
                 "checkout hashes to " + seen.hex() + " and not to its tree " + content.tree.hex()};
  }
  PROCTOR_CHECK_OK(make_dirs(dir / "git"));
  return make_one_commit_repository(
      {git, content.objects, content.tree, work, dir / "git" / ".git"});
}

// Beside the tree: "<commit> <path>" and a NUL for each; a path may hold anything else.
constexpr const char* kSubmodules = "submodules";
constexpr std::size_t kSubmodulesBytes = std::size_t{1} << 20;

Status write_submodules(const fs::path& dir, const std::map<std::string, ObjectId>& submodules) {
  std::string text;
  for (const auto& [path, commit] : submodules) {
    text += commit.hex() + " " + path;
    text += '\0';
  }
  return write_file(dir / kSubmodules, text, Durability::kLazy);
}

Result<std::map<std::string, std::string>> read_submodules(const fs::path& dir) {
  PROCTOR_TRY(const std::string text, read_file(dir / kSubmodules, kSubmodulesBytes));
  std::map<std::string, std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t space = text.find(' ', at);
    const std::size_t end = text.find('\0', at);
    if (end == std::string::npos || end < space)
      return Error{Errc::kCorrupt, (dir / kSubmodules).string() + ": not as it was written"};
    out[text.substr(space + 1, end - space - 1)] = text.substr(at, space - at);
    at = end + 1;
  }
  return out;
}

}  // namespace

Result<TreeStore> TreeStore::create(const fs::path& root) {
  PROCTOR_CHECK_OK(make_dirs(root));
  auto boot = read_file("/proc/sys/kernel/random/boot_id", kSmallFile);
  return TreeStore(root, boot.ok() ? *boot : std::string("unknown\n"));
}

// A tree of an earlier boot is made again: it was renamed into place without fsync, so after a
// power failure its files may be empty.  That costs once per boot; syncing would cost each time.
bool TreeStore::ready(const fs::path& dir) const {
  const auto boot = read_file(dir / kTreeSentinel, kSmallFile);
  std::error_code ec;
  return boot.ok() && *boot == boot_ && fs::exists(dir / kSubmodules, ec);
}

Result<Snapshot> TreeStore::snapshot(const MirrorStore& mirrors, const Repository& repository,
                                     const fs::path& base) const {
  Result<Snapshot> made = make_snapshot(mirrors, repository, base);
  if (made.ok() || made.error().code != Errc::kCorrupt) return made;
  // A crash or a disk may have damaged the mirror; hashes are verified where objects are read.
  PROCTOR_TRY(const GitSource source, parse_source(repository.source, base));
  PROCTOR_TRY(const bool renewed, mirrors.set_aside_if_damaged(source));
  return renewed ? make_snapshot(mirrors, repository, base) : made;
}

Result<Snapshot> TreeStore::make_snapshot(const MirrorStore& mirrors, const Repository& repository,
                                          const fs::path& base) const {
  PROCTOR_TRY(const ObjectId commit, ObjectId::from_hex(repository.commit));
  PROCTOR_TRY(const GitSource source, parse_source(repository.source, base));
  PROCTOR_TRY(const FileLock reading, use_mirrors(mirrors.root()));
  PROCTOR_TRY(const fs::path objects, mirrors.ensure(source, commit));
  touch_mirror(objects.parent_path().parent_path());
  PROCTOR_TRY(const ObjectDb db, ObjectDb::open({objects}));
  PROCTOR_TRY(const ObjectId tree, db.tree_of_commit(commit));
  if (!repository.tree.empty() && repository.tree != tree.hex()) {
    return Error{Errc::kInvalid, "commit " + commit.hex() + " has tree " + tree.hex() +
                                     ", expected " + printable(repository.tree, 80)};
  }
  const std::string name = tree.hex() + (repository.submodules ? "-submodules" : "");
  const fs::path dir = root_ / name;
  Snapshot out{dir / "work", commit.hex(), tree.hex(), {}, objects};
  const auto made = [&]() -> Result<Snapshot> {
    PROCTOR_TRY(out.submodules, read_submodules(dir));
    return out;
  };
  if (ready(dir)) return made();
  PROCTOR_TRY(const FileLock lock, FileLock::acquire(root_ / (name + ".lock")));
  if (ready(dir)) return made();

  const fs::path fresh = root_ / (name + ".new");
  PROCTOR_CHECK_OK(remove_tree(fresh));  // of a killed maker
  PROCTOR_CHECK_OK(make_dirs(fresh / "scratch"));
  Content content{{objects}, tree};
  std::map<std::string, ObjectId> submodules;
  if (repository.submodules) {
    content.objects.clear();
    PROCTOR_TRY(content.tree, graft_submodules(mirrors, source, commit, fresh / "scratch",
                                               content.objects, submodules));
    content.objects.push_back(fresh / "scratch");
  }
  PROCTOR_TRY(const auto pointers, lfs_pointers(db, tree));
  if (!pointers.empty()) {
    Result<ObjectId> filled = fill_lfs(mirrors, source, commit, content.tree, pointers,
                                       content.objects, fresh / "scratch");
    if (!filled.ok()) {
      (void)remove_tree(fresh);
      return std::move(filled).error();
    }
    content.tree = *filled;
    if (!repository.submodules) content.objects.push_back(fresh / "scratch");
  }
  Status built = build_tree(mirrors.git(), content, fresh);
  if (!built.ok()) {
    (void)remove_tree(fresh);
    return in_context("tree " + tree.hex(), std::move(built).error());
  }
  PROCTOR_CHECK_OK(remove_tree(fresh / "scratch"));
  PROCTOR_CHECK_OK(write_file(fresh / "content", content.tree.hex(), Durability::kLazy));
  PROCTOR_CHECK_OK(write_submodules(fresh, submodules));
  PROCTOR_CHECK_OK(write_file(fresh / kTreeSentinel, boot_, Durability::kLazy));
  PROCTOR_CHECK_OK(remove_tree(dir));
  PROCTOR_CHECK_OK(rename_path(fresh, dir));
  return made();
}

fs::path snapshot_git_layer(const Snapshot& snapshot) {
  return snapshot.tree_dir.parent_path() / "git";
}

Result<ObjectId> snapshot_content(const Snapshot& snapshot) {
  PROCTOR_TRY(const std::string hex,
              read_file(snapshot.tree_dir.parent_path() / "content", kSmallFile));
  return ObjectId::from_hex(hex);
}

}  // namespace proctor
