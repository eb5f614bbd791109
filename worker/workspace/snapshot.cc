#include "worker/workspace/snapshot.h"

#include <fcntl.h>
#include <git2.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "common/base/digest.h"
#include "common/base/file_lock.h"
#include "common/base/git_program.h"
#include "common/base/owned.h"
#include "common/base/text.h"
#include "worker/git/lfs.h"
#include "worker/git/submodules.h"
#include "worker/workspace/beneath.h"
#include "worker/workspace/cache.h"
#include "worker/workspace/tree_state.h"

namespace proctor {
Status stamp(int dir, const std::string& name) {
  const timespec times[2] = {{kCheckoutTime, 0}, {kCheckoutTime, 0}};
  if (::utimensat(dir, name.c_str(), times, AT_SYMLINK_NOFOLLOW) == 0) return ok_status();
  return errno_error("set time of " + printable(name), errno);
}

namespace {
constexpr std::uint64_t kFileBytes = std::uint64_t{2} << 30;

// Blobs byte for byte: no filters, no line-end conversion, no attributes.  A gitlink becomes an
// empty folder, as in a clone without submodules.  Writes consecutive entries of one folder without
// walking from the root again.
class Writer {
 public:
  Writer(const ObjectDb& db, int root) : db_(db), root_(root) {}

  Status write(const ListedEntry& e) {
    const std::size_t slash = e.path.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : e.path.substr(0, slash);
    const std::string name = slash == std::string::npos ? e.path : e.path.substr(slash + 1);
    if (!at_.valid() || folder != folder_) {
      PROCTOR_TRY(auto parent, beneath::open_parent(root_, e.path, beneath::Missing::kMake));
      at_ = std::move(parent.dir);
      folder_ = folder;
    }
    if (e.mode == git_mode::kGitlink) {
      if (::mkdirat(at_.get(), name.c_str(), 0755) != 0) return errno_error("make folder", errno);
      return ok_status();
    }
    PROCTOR_TRY(const std::string bytes, db_.blob(e.id));
    if (e.mode == git_mode::kSymlink) {
      if (bytes.empty() || bytes.find('\0') != std::string::npos) {
        return Error{Errc::kInvalid, "symlink " + printable(e.path) + ": bad target"};
      }
      if (::symlinkat(bytes.c_str(), at_.get(), name.c_str()) != 0) {
        return errno_error("link " + printable(e.path), errno);
      }
      return stamp(at_.get(), name);
    }
    return write_blob(name, bytes, e.mode == git_mode::kExecutable ? 0755 : 0644);
  }

 private:
  Status write_blob(const std::string& name, std::string_view bytes, mode_t mode) {
    UniqueFd fd(::openat(at_.get(), name.c_str(),
                         O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    // EEXIST: two entries of one name, or a file system that folds case.
    if (!fd.valid()) return errno_error("write " + printable(name), errno);
    PROCTOR_CHECK_OK(beneath::write_all(fd.get(), bytes, name));
    if (::fchmod(fd.get(), mode) != 0) return errno_error("write " + printable(name), errno);
    return stamp(at_.get(), name);
  }

  const ObjectDb& db_;
  int root_;
  UniqueFd at_;
  std::string folder_;
};

Result<std::optional<GitTreeEntry>> hash_entry(int dir, const std::string& name,
                                               const std::string& path,
                                               const std::map<std::string, ObjectId>& gitlinks);

Result<std::vector<GitTreeEntry>> hash_folder(int dir, const std::string& prefix,
                                              const std::map<std::string, ObjectId>& gitlinks) {
  PROCTOR_TRY(const std::vector<std::string> inside, beneath::names(dir));
  std::vector<GitTreeEntry> entries;
  for (const std::string& name : inside) {
    if (prefix.empty() && name == ".git") continue;
    PROCTOR_TRY(auto entry, hash_entry(dir, name, prefix + name, gitlinks));
    if (entry) entries.push_back(std::move(*entry));
  }
  return entries;
}

Result<std::optional<GitTreeEntry>> hash_entry(int dir, const std::string& name,
                                               const std::string& path,
                                               const std::map<std::string, ObjectId>& gitlinks) {
  if (const auto link = gitlinks.find(path); link != gitlinks.end()) {
    return std::optional<GitTreeEntry>(GitTreeEntry{git_mode::kGitlink, name, link->second});
  }
  struct stat st {};
  if (::fstatat(dir, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
    return errno_error(printable(path), errno);
  }
  GitTreeEntry out{0, name, {}};
  if (S_ISDIR(st.st_mode)) {
    PROCTOR_TRY(const UniqueFd child, beneath::open_dir(dir, name));
    PROCTOR_TRY(std::vector<GitTreeEntry> entries, hash_folder(child.get(), path + '/', gitlinks));
    if (entries.empty()) return std::optional<GitTreeEntry>();
    out.mode = git_mode::kTree;
    out.id = hash_object(ObjectType::kTree, encode_tree(std::move(entries)));
  } else if (S_ISLNK(st.st_mode)) {
    PROCTOR_TRY(const std::string target, beneath::read_link(dir, name));
    out.mode = git_mode::kSymlink;
    out.id = hash_object(ObjectType::kBlob, target);
  } else if (S_ISREG(st.st_mode)) {
    PROCTOR_TRY(const std::string bytes, beneath::read_file(dir, name, kFileBytes));
    out.mode = (st.st_mode & S_IXUSR) != 0 ? git_mode::kExecutable : git_mode::kBlob;
    out.id = hash_object(ObjectType::kBlob, bytes);
  } else {
    return Error{Errc::kInvalid, printable(path) + ": neither file, link nor folder"};
  }
  return std::optional<GitTreeEntry>(std::move(out));
}
}  // namespace

// The repository that an agent sees: one commit whose tree is the snapshot and nothing else.  No
// remote, tag, reflog, alternate, hook, or object that the tree does not need, so no later commit
// can leak the answer.  Author, dates and message are fixed: the same tree gives the same commit.
// Built once per tree and shared by all its workspaces.  Blocking.
// Fails like ObjectDb, GitProgram and the file system.

struct OneCommitInput {
  const GitProgram& git;
  std::vector<fs::path> objects;  // where the tree's objects are; the first belongs to a mirror
  ObjectId tree;
  fs::path work;     // its checkout: the index takes its file times and sizes from here
  fs::path git_dir;  // to be made: ".../.git"
};
namespace {
using GitIndex = Owned<git_index, git_index_free>;

// checkStat=minimal: inode, ctime and owner differ between the copies of one checkout.  gc.auto=0:
// no git process may outlive the command that started it.
constexpr std::string_view kConfig =
    "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"
    "\tcheckStat = minimal\n\ttrustctime = false\n"
    "[gc]\n\tauto = 0\n"
    "[user]\n\tname = agent\n\temail = agent@localhost\n";

constexpr std::string_view kWho = "proctor <proctor@localhost> 1577836800 +0000\n";

std::string commit_bytes(const ObjectId& tree) {
  return "tree " + tree.hex() + "\nauthor " + std::string(kWho) + "committer " + std::string(kWho) +
         "\nsnapshot\n";
}

// `git pack-objects` reuses the mirror's deltas, which libgit2's packer would compute again.
Status pack(const OneCommitInput& in, const std::vector<ListedEntry>& entries,
            const std::vector<ObjectId>& trees, const fs::path& pack_dir) {
  std::vector<ObjectId> ids = trees;
  for (const ListedEntry& e : entries) {
    if (e.mode != git_mode::kGitlink) ids.push_back(e.id);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  CommandSpec spec = in.git.command(in.objects.front().parent_path(),
                                    {"pack-objects", "--quiet", (pack_dir / "pack").string()});
  std::string alternates;
  for (const fs::path& dir : in.objects) {
    if (!alternates.empty()) alternates += ':';
    alternates += dir.string();
  }
  (*spec.env)["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = alternates;
  for (const ObjectId& id : ids) spec.stdin_bytes += id.hex() + '\n';
  PROCTOR_TRY(const std::string name, in.git.run(spec));
  return ok_status();
}

Status write_index(const OneCommitInput& in, const std::vector<ListedEntry>& entries) {
  GitIndex index;
  int rc = git_index_open(OutPtr(index), (in.git_dir / "index").c_str());
  if (rc != 0) return libgit2_error("make index", rc);
  for (const ListedEntry& e : entries) {
    struct stat st {};
    if (::lstat((in.work / e.path).c_str(), &st) != 0) return errno_error("make index", errno);
    git_index_entry entry{};
    entry.mode = e.mode;
    entry.path = e.path.c_str();
    std::memcpy(entry.id.id, e.id.bytes.data(), e.id.bytes.size());
    if (e.mode != git_mode::kGitlink) {
      entry.mtime.seconds = static_cast<std::int32_t>(st.st_mtim.tv_sec);
      entry.ctime.seconds = entry.mtime.seconds;
      entry.file_size = static_cast<std::uint32_t>(st.st_size);
    }
    rc = git_index_add(index.get(), &entry);
    if (rc != 0) return libgit2_error("make index: " + printable(e.path), rc);
  }
  rc = git_index_write(index.get());
  if (rc != 0) return libgit2_error("make index", rc);
  return ok_status();
}
}  // namespace

Status make_one_commit_repository(const OneCommitInput& in) {
  start_libgit2();
  const fs::path objects = in.git_dir / "objects";
  for (const char* dir : {"objects/pack", "objects/info", "refs/heads", "refs/tags", "info"}) {
    PROCTOR_CHECK_OK(make_dirs(in.git_dir / dir));
  }
  PROCTOR_TRY(const ObjectDb from, ObjectDb::open(in.objects));
  std::vector<ObjectId> trees;
  PROCTOR_TRY(const std::vector<ListedEntry> entries, list_tree(from, in.tree, &trees));
  PROCTOR_CHECK_OK(pack(in, entries, trees, objects / "pack"));
  PROCTOR_TRY(ObjectDb own, ObjectDb::open({}, objects));
  PROCTOR_TRY(const ObjectId commit, own.write(ObjectType::kCommit, commit_bytes(in.tree)));
  const auto put = [&](const char* name, std::string_view bytes) {
    return write_file(in.git_dir / name, bytes, Durability::kLazy, kOpenFile);
  };
  PROCTOR_CHECK_OK(put("config", kConfig));
  PROCTOR_CHECK_OK(put("HEAD", "ref: refs/heads/main\n"));
  PROCTOR_CHECK_OK(put("refs/heads/main", commit.hex() + "\n"));
  return write_index(in, entries);
}

namespace {
constexpr std::size_t kSmallFile = 4096;

struct Content {
  std::vector<fs::path> objects;
  ObjectId tree;
};

// Lists beside the tree: "<digits> <path>" and a NUL for each; a path may hold anything else.
constexpr const char* kSubmodules = "submodules";
constexpr const char* kLockfiles = "lockfiles";
constexpr std::size_t kListBytes = std::size_t{8} << 20;
using PathList = std::map<std::string, std::string>;

Status write_list(const fs::path& file, const PathList& list) {
  std::string text;
  for (const auto& [path, digits] : list) {
    text += digits + " " + path;
    text += '\0';
  }
  return write_file(file, text, Durability::kLazy);
}

Result<PathList> read_list(const fs::path& file) {
  PROCTOR_TRY(const std::string text, read_file(file, kListBytes));
  PathList out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t space = text.find(' ', at);
    const std::size_t end = text.find('\0', at);
    if (end == std::string::npos || end < space)
      return Error{Errc::kCorrupt, file.string() + ": not as it was written"};
    out[text.substr(space + 1, end - space - 1)] = text.substr(at, space - at);
    at = end + 1;
  }
  return out;
}

// Names of files that pin what a tree depends on (R044); sorted.
constexpr std::array<std::string_view, 21> kLockNames = {"Cargo.lock",
                                                         "Gemfile.lock",
                                                         "Package.resolved",
                                                         "Pipfile.lock",
                                                         "bun.lock",
                                                         "composer.lock",
                                                         "deno.lock",
                                                         "flake.lock",
                                                         "go.sum",
                                                         "go.work.sum",
                                                         "gradle.lockfile",
                                                         "mix.lock",
                                                         "npm-shrinkwrap.json",
                                                         "package-lock.json",
                                                         "packages.lock.json",
                                                         "pdm.lock",
                                                         "pnpm-lock.yaml",
                                                         "poetry.lock",
                                                         "requirements.txt",
                                                         "uv.lock",
                                                         "yarn.lock"};
static_assert(std::ranges::is_sorted(kLockNames));

Result<PathList> lockfiles_of(const ObjectDb& db, const std::vector<ListedEntry>& entries) {
  std::map<std::string, ObjectId> found;
  for (const ListedEntry& e : entries) {
    const std::string_view name = std::string_view(e.path).substr(e.path.rfind('/') + 1);
    if ((e.mode == git_mode::kBlob || e.mode == git_mode::kExecutable) &&
        std::ranges::binary_search(kLockNames, name))
      found.emplace(e.path, e.id);
  }
  PathList out;
  std::size_t path_bytes = 0;
  for (const auto& [path, id] : found) {
    path_bytes += path.size();
    if (out.size() == Snapshot::kLockfilesListed || Snapshot::kLockfilePathBytes < path_bytes)
      break;
    PROCTOR_TRY(const std::string bytes, db.blob(id));
    out.emplace(path, sha256(bytes).hex());
  }
  return out;
}

Status build_tree(const GitProgram& git, const Content& content, const fs::path& dir) {
  PROCTOR_TRY(const ObjectDb db, ObjectDb::open(content.objects));
  PROCTOR_TRY(const std::vector<ListedEntry> entries, list_tree(db, content.tree));
  const fs::path work = dir / "work";
  PROCTOR_CHECK_OK(make_dirs(work));
  PROCTOR_TRY(const UniqueFd root, beneath::open_root(work.string()));
  Writer writer(db, root.get());
  std::map<std::string, ObjectId> gitlinks;
  for (const ListedEntry& e : entries) {
    PROCTOR_CHECK_OK(writer.write(e));
    if (e.mode == git_mode::kGitlink) gitlinks[e.path] = e.id;
  }
  // Two ids: of the objects (content.tree) and of the files just written.  They must agree.
  PROCTOR_TRY(std::vector<GitTreeEntry> written, hash_folder(root.get(), "", gitlinks));
  const ObjectId seen = hash_object(ObjectType::kTree, encode_tree(std::move(written)));
  if (seen != content.tree) {
    return Error{Errc::kCorrupt,
                 "checkout hashes to " + seen.hex() + " and not to its tree " + content.tree.hex()};
  }
  PROCTOR_TRY(const PathList lockfiles, lockfiles_of(db, entries));
  PROCTOR_CHECK_OK(write_list(dir / kLockfiles, lockfiles));
  PROCTOR_CHECK_OK(make_dirs(dir / "git"));
  return make_one_commit_repository(
      {git, content.objects, content.tree, work, dir / "git" / ".git"});
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
  return boot.ok() && *boot == boot_ && fs::exists(dir / kSubmodules, ec) &&
         fs::exists(dir / kLockfiles, ec);
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
  Snapshot out{dir / "work", commit.hex(), tree.hex(), {}, {}, objects};
  const auto made = [&]() -> Result<Snapshot> {
    PROCTOR_TRY(out.submodules, read_list(dir / kSubmodules));
    PROCTOR_TRY(out.lockfiles, read_list(dir / kLockfiles));
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
  PathList commits;
  for (const auto& [path, id] : submodules) commits.emplace(path, id.hex());
  PROCTOR_CHECK_OK(write_list(fresh / kSubmodules, commits));
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
