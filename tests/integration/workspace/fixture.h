#pragma once
// Repositories, stores and trees for the workspace tests.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "common/base/files.h"
#include "common/base/namespaces.h"
#include "common/base/subprocess.h"
#include "worker/workspace/overlay.h"
#include "worker/workspace/workspace.h"

namespace proctor::testing {

inline std::string git(const fs::path& dir, std::vector<std::string> args) {
  CommandSpec spec;
  spec.argv = {"git",
               "-c",
               "user.name=t",
               "-c",
               "user.email=t@t",
               "-c",
               "protocol.file.allow=always",
               "-c",
               "init.defaultBranch=main",
               "-c",
               "core.autocrlf=false"};
  spec.argv.insert(spec.argv.end(), args.begin(), args.end());
  spec.cwd = dir;
  auto out = run_for_output(spec);
  if (!out.ok()) {
    std::string all;
    for (const auto& a : args) all += " " + a;
    FAIL("git" << all << ": " << out.error().detail);
  }
  std::string text = *out;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

inline void put(const fs::path& path, std::string_view bytes, unsigned mode = 0644) {
  const Status made = make_dirs(path.parent_path());
  REQUIRE_MESSAGE(made.ok(), (made.ok() ? "" : made.error().detail));
  REQUIRE(write_file(path, bytes, Durability::kLazy, mode).ok());
}

inline std::string slurp(const fs::path& path) {
  auto bytes = read_file(path, std::size_t{64} << 20);
  return bytes.ok() ? *bytes : "<" + bytes.error().detail + ">";
}

// Everything git would track: path -> "mode content".
inline std::map<std::string, std::string> tree_of(const fs::path& dir) {
  std::map<std::string, std::string> out;
  for (auto it = fs::recursive_directory_iterator(dir); it != fs::recursive_directory_iterator();
       ++it) {
    const std::string path = it->path().lexically_relative(dir).string();
    if (path == ".git") {
      it.disable_recursion_pending();
      continue;
    }
    struct stat st {};
    REQUIRE(::lstat(it->path().c_str(), &st) == 0);
    if (S_ISLNK(st.st_mode)) out[path] = "link " + fs::read_symlink(it->path()).string();
    if (S_ISREG(st.st_mode)) {
      out[path] = std::string((st.st_mode & S_IXUSR) != 0 ? "exec " : "file ") + slurp(it->path());
    }
  }
  return out;
}

constexpr const char* kLfsContent = "weights, as it were\n";
// One file under LFS, its content beside the repository as git-lfs keeps it; the commit.
inline std::string make_lfs_repo(const fs::path& dir) {
  REQUIRE(make_dirs(dir).ok());
  git(dir, {"init", "-q"});
  git(dir, {"lfs", "install", "--local"});
  put(dir / ".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
  put(dir / "data/model.bin", kLfsContent);
  put(dir / "plain.txt", "plain\n");
  git(dir, {"add", "-A"});
  git(dir, {"commit", "-qm", "with a large file"});
  REQUIRE(git(dir, {"cat-file", "-p", "HEAD:data/model.bin"}).starts_with("version https://"));
  return git(dir, {"rev-parse", "HEAD"});
}

struct Repo {
  fs::path dir;
  std::string commit;
  Repository pinned() const {
    Repository r;
    r.source = dir.string();
    r.commit = commit;
    return r;
  }
};

// A small repository with every kind of entry, and a later commit that must never be seen.
inline Repo make_repo(const fs::path& dir) {
  REQUIRE(make_dirs(dir).ok());
  git(dir, {"init", "-q"});
  put(dir / "README.md", "hello\nworld\n");
  put(dir / "src/main.py", "print(1)\nprint(2)\nprint(3)\n");
  put(dir / "src/deep/er/file.txt", "deep\n");
  put(dir / "run.sh", "#!/bin/sh\necho run\n", 0755);
  put(dir / "crlf.txt", "a\r\nb\r\n");
  put(dir / "bin.dat", std::string("\0\1\2\xff\n\0", 6));
  put(dir / "empty", "");
  put(dir / "name with space", "x\n");
  put(dir / "new\nline", "x\n");
  put(dir / "latin\xe9", "x\n");
  put(dir / "tests/test_a.py", "assert True\n");
  put(dir / "tests/data/x.txt", "data\n");
  put(dir / ".gitignore", "build/\n*.log\n!keep.log\n");
  put(dir / ".gitattributes", "* text=auto\n*.txt eol=crlf\nsrc/*.py filter=evil ident\n");
  fs::create_symlink("README.md", dir / "link");
  fs::create_symlink("/nowhere/at all", dir / "src/dangling");
  git(dir, {"-c", "core.safecrlf=false", "add", "-A"});
  git(dir, {"commit", "-qm", "first"});
  Repo repo{dir, git(dir, {"rev-parse", "HEAD"})};
  put(dir / "answer.txt", "the secret answer line\n");
  git(dir, {"add", "-A"});
  git(dir, {"commit", "-qm", "later"});
  git(dir, {"tag", "v2"});
  return repo;
}

inline std::unique_ptr<WorkspaceStore> open_store(const fs::path& root,
                                                  std::optional<WorkspaceKind> kind = {},
                                                  const std::string& owner = "w1") {
  WorkspaceStoreOptions options;
  options.root = root;
  options.owner = owner;
  options.kind = kind;
  auto store = open_workspace_store(options);
  REQUIRE_MESSAGE(store.ok(), (store.ok() ? "" : store.error().detail));
  return std::move(store).value();
}

inline Snapshot snapshot_of(WorkspaceStore& store, const Repository& repository) {
  auto snapshot = store.snapshot(repository, "/");
  REQUIRE_MESSAGE(snapshot.ok(), (snapshot.ok() ? "" : snapshot.error().detail));
  return *snapshot;
}

inline std::unique_ptr<Workspace> create(WorkspaceStore& store, const Snapshot& snapshot,
                                         const std::string& label,
                                         const SetupLayer* setup = nullptr,
                                         ShownTo shown = ShownTo::kNobody) {
  auto ws = store.create(snapshot, label, setup, {}, shown);
  REQUIRE_MESSAGE(ws.ok(), (ws.ok() ? "" : ws.error().detail));
  return std::move(ws).value();
}

// What lies in this workspace, as the layer of a setup; the workspace is used up.
inline Result<SetupLayer> keep_setup(WorkspaceStore& store, std::unique_ptr<Workspace> workspace,
                                     const fs::path& home, const Digest& key) {
  PROCTOR_TRY(const SetupMaking making, store.layers().begin(key));
  SetupLayer made;
  made.steps = Json::array();
  PROCTOR_TRY(const fs::path work, workspace->surrender());
  return making.keep(work, home, std::move(made));
}

inline Patch extract(Workspace& ws) {
  auto patch = ws.extract_patch(std::size_t{64} << 20);
  REQUIRE_MESSAGE(patch.ok(), (patch.ok() ? "" : patch.error().detail));
  return *patch;
}

inline TempDir temp_dir() {
  auto dir = TempDir::create("ws");
  REQUIRE(dir.ok());
  return std::move(dir).value();
}

// The kinds that whoever runs this can have here; says by name which overlays are left out.
inline std::vector<WorkspaceKind> kinds(const fs::path& scratch) {
  const bool root = ::geteuid() == 0;
  std::string left_out;
  if (const Status own = root ? ok_status() : enter_own_mounts(); !own.ok())
    left_out = " (" + own.error().detail + ")";
  std::vector<WorkspaceKind> out;
  for (const WorkspaceKind kind : kWorkspaceKinds) {
    if (kind == (root ? WorkspaceKind::kUserOverlay : WorkspaceKind::kOverlay)) continue;
    const Status probe = probe_workspaces(scratch, kind);
    if (probe.ok()) out.push_back(kind);
    if (!probe.ok() && is_overlay(kind))
      MESSAGE("left out: " << to_string(kind) << " workspaces are NOT tested on this machine: "
                           << probe.error().detail << left_out);
  }
  return out;
}

// A file system whose files can share blocks.
class XfsDisk {
 public:
  explicit XfsDisk(const fs::path& dir) : image_(dir / "xfs.img"), at_(dir / "xfs") {
    constexpr std::uint64_t kBytes = std::uint64_t{1} << 30;  // a hole, most of it
    put(image_, "");
    fs::create_directory(at_);
    fs::resize_file(image_, kBytes);
    mounted_ = ::geteuid() == 0 && run({"mkfs.xfs", "-q", "-m", "reflink=1", image_.string()}) &&
               run({"mount", "-o", "loop", image_.string(), at_.string()});
  }
  XfsDisk(const XfsDisk&) = delete;
  XfsDisk& operator=(const XfsDisk&) = delete;
  ~XfsDisk() {
    if (mounted_) run({"umount", "-d", at_.string()});
  }
  explicit operator bool() const { return mounted_; }
  const fs::path& path() const { return at_; }

 private:
  static bool run(std::vector<std::string> argv) {
    CommandSpec spec;
    spec.argv = std::move(argv);
    return run_for_output(spec).ok();
  }
  fs::path image_, at_;
  bool mounted_ = false;
};

// kinds(), and copies that share blocks where `scratch` has none and a file system for them can be
// mounted: test(kind, folder).
template <class Test>
void on_every_kind(const fs::path& scratch, const Test& test) {
  const std::vector<WorkspaceKind> here = kinds(scratch);
  for (const WorkspaceKind kind : here) test(kind, scratch, ShownTo::kNobody);
  if (open_store(scratch / "store")->has_own_users())
    test(WorkspaceKind::kOverlay, scratch, ShownTo::kOwnUser);
  else
    MESSAGE("left out: no workspaces of a user of their own");
  if (std::ranges::count(here, WorkspaceKind::kReflink) != 0) return;
  const XfsDisk xfs(scratch);
  if (xfs)
    test(WorkspaceKind::kReflink, xfs.path(), ShownTo::kNobody);
  else
    MESSAGE("left out: no XFS for workspaces of kind reflink");
}

}  // namespace proctor::testing
