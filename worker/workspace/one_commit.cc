#include "worker/workspace/one_commit.h"

#include <fcntl.h>
#include <git2.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/base/owned.h"
#include "common/base/text.h"
#include "worker/workspace/checkout.h"

namespace proctor {
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

}  // namespace proctor
