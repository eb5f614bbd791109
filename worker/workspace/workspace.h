#pragma once
// Workspaces: the tree of one pinned commit, writable for one run, at the cost of what is changed.
// A commit is checked out once per host into a read-only tree; a workspace is an overlay on it,
// or a copy where no kind of overlay works.  Blocking; call from slot threads.
// One Workspace belongs to one thread at a time; the store is thread-safe.
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/apply.h"
#include "common/base/files.h"
#include "common/base/namespaces.h"
#include "common/base/result.h"
#include "common/contract/contract.h"
#include "worker/workspace/bounded_disk.h"
#include "worker/workspace/copy_tree.h"
#include "worker/workspace/overlay.h"
#include "worker/workspace/removal.h"
#include "worker/workspace/setup_layer.h"
#include "worker/workspace/tree_state.h"

namespace proctor {
// A checked-out commit, ready to be used as the lower layer of workspaces.
struct Snapshot {
  fs::path tree_dir;                              // read-only checkout, no .git
  std::string commit;                             // observed
  std::string tree;                               // tree id recomputed from the object store (R047)
  std::map<std::string, std::string> submodules;  // path -> commit, nested ones too (R043)
  // Files that pin what it depends on, wherever they lie, by path, with the SHA-256 of their bytes
  // (R044); of more than these, or of longer paths together, the first: a manifest is read whole.
  static constexpr std::size_t kLockfilesListed = 1000, kLockfilePathBytes = std::size_t{256} << 10;
  std::map<std::string, std::string> lockfiles;
  // Objects of the mirror it was made from, which knows other commits: for merges on the host
  // alone.
  fs::path mirror_objects{};
};

// The agent's change (candidate patch, delta): a git diff with binary hunks.
struct Patch {
  std::string diff;  // `git apply`-able; empty: nothing changed
  std::uint64_t files = 0, insertions = 0, deletions = 0;
  std::vector<std::string> paths;    // touched, relative, sorted
  std::vector<std::string> refused;  // devices, sockets: left out; set-id files: without that mark
  // Files of `paths` that have conflict markers and had none: "PATH:LINE" of the first; sorted.
  std::vector<std::string> conflicts;
  // New files and folders (with a '/') that git ignores and the contract does not keep; sorted, and
  // how many there are in all.
  static constexpr std::size_t kLeftOutListed = 1000;
  std::vector<std::string> left_out;
  std::uint64_t left_out_count = 0;
  std::optional<proctor::apart::Use> apart{};  // of the process of its own that made it
};

// Paths, protected ones and git's own, that the setup of the untouched snapshot made or changed.
struct MadeUnder {
  std::vector<std::string> paths;  // sorted; new folders end in '/'
  fs::path at{};                   // a folder that holds them; what is not there was removed
};

// A file that is the contract's own.
struct PlacedFile {
  std::string_view bytes;  // must outlive its use
  std::uint32_t mode = 0644;
};

// A copy of dir(), or of one path of it, to which programs of the candidate's have written.
struct TreeCopy {
  fs::path dir;        // its paths are those of the workspace
  std::string part;    // the one that is there, with all below it; empty: everything
  CopiedFiles& known;  // by path of the workspace: as they were copied, or found right since
};

// A folder of the host as commands see it, and what its paths begin with where they are told.
struct SeenAt {
  std::string at;
  fs::path dir;
  std::string told{};
};

// A workspace that a killed life of this worker left mounted, because its agent still works.
struct LeftWorkspace {
  fs::path dir;        // of its overlay
  std::string volume;  // empty: it has none, for the agent's container sees copies
};

// The fate of links and files where put_file needs a folder.
enum class Way { kRefused, kCleared };

class Workspace {
 public:
  virtual ~Workspace() = default;  // as close()
  // Unmounts and removes everything, and says what that took.  It is the last call.
  virtual RemovalCost close() { return {}; }
  // How a later life finds it; none: a copy, which only this life can read.
  virtual std::optional<LeftWorkspace> left_to_others() const { return std::nullopt; }
  virtual WorkspaceKind kind() const = 0;
  // The merged tree on the host; what bubblewrap binds.  Holds a one-commit .git (no remotes, tags,
  // reflogs, alternates or later objects).
  virtual const fs::path& dir() const = 0;
  // Whose it is, if not the worker's: who runs a command in it has to be that user, and whoever
  // writes into dir() has to act as him.
  virtual std::shared_ptr<const OwnUser> user() const { return nullptr; }
  // Where on this host the changes go, and what lay there before them: for the limit on disk.
  struct Written {
    fs::path dir;
    std::uint64_t bytes_before = 0, files_before = 0;
    // The files that setup made lie in a layer of its own, which `dir` may hide parts of; empty: it
    // does not.
    fs::path below{};
    std::uint64_t bytes_below = 0, files_below = 0;
  };
  virtual Written written() const = 0;
  // The bounded disk that all of it is on.
  struct Bounded {
    fs::path beside;        // a folder on it for what else commands of this workspace write
    std::uint64_t entries;  // files and folders that it has room for
  };
  virtual std::optional<Bounded> bounded() const { return std::nullopt; }
  // Have its commands reached the end of that disk?  Then a little room is made for what is still
  // to be done by us.  Requires: nothing runs in it.
  virtual bool used_up() { return false; }
  // For a layer: everything that was written, in a folder that the caller moves away.  Requires:
  // nothing uses the workspace, which is good for nothing but its end afterwards.  After an error
  // it is as it was, but for its volume, which the next docker_volume() makes again.
  virtual Result<fs::path> surrender() = 0;
  // Lays what setup made below all that was changed, as if setup had run before it.  False: they
  // touch the same paths, or this kind cannot; it is then as it was.  Before docker_volume() only.
  virtual Result<bool> lay_below(const SetupLayer& layer) = 0;
  // A named Docker volume of the same tree (local driver, labelled), made on first call and
  // removed with the workspace.  Host-side calls below stay valid between containers.
  virtual Result<std::string> docker_volume() = 0;
  // Everything that differs from the snapshot, apart from .git and from new files that git ignores
  // but for those that globs of `kept` cover.  Never executes anything the agent planted (hooks,
  // filters, config).  kExhausted beyond `bytes_max` and the limits of changes.h, kInvalid where a
  // file cannot be read: both by what lies there.
  virtual Result<Patch> extract_patch(std::size_t bytes_max,
                                      const std::vector<std::string>& kept = {}) = 0;
  // Applies a diff made by extract_patch or `git diff --binary`, by the first rung of the ladder
  // that takes it (apply.h; never with fuzz).  kInvalid with the failed hunk when none does; the
  // workspace is then unchanged.
  virtual Result<AppliedPatch> apply(const std::string& diff) = 0;
  // Replaces one file (parents made; symlinks and files on the way refused, or removed).  For
  // protected files.
  virtual Status put_file(const std::string& relative, std::string_view bytes, std::uint32_t mode,
                          Way way = Way::kRefused) = 0;
  // Puts every path of the snapshot that matches one of the globs or is one of `names` back as it
  // was, and removes such paths that the snapshot does not have.  The changed ones, sorted.
  virtual Result<std::vector<std::string>> restore(const std::vector<std::string>& globs,
                                                   const std::vector<std::string>& names = {}) = 0;
  // The same after setup or a check of the candidate's: nothing is left under the globs and in the
  // places of `placed` (by path) but what the snapshot, `made` and `placed` put there, as they did,
  // whatever git ignores.  The changed ones, sorted; of a folder that nobody but the candidate
  // made, its first files.
  virtual Result<std::vector<std::string>> restore_again(
      const std::vector<std::string>& globs, const MadeUnder& made,
      const std::map<std::string, PlacedFile>& placed) = 0;
  // The same in a copy, of what the copy is to have.
  virtual Result<std::vector<std::string>> restore_copy(
      const TreeCopy& copy, const std::vector<std::string>& globs, const MadeUnder& made,
      const std::map<std::string, PlacedFile>& placed) = 0;
  // Before a check: the workspace's .git as the snapshot and `made` left it, and no other in
  // folders of the snapshot that `made` does not name, for git would obey what a candidate wrote
  // there.  Nor, where a folder of the snapshot has become a link, where that leads among `places`,
  // of which the first is this workspace.  The paths that were put back or removed, sorted: honest
  // commands leave their index, so nobody is blamed for it.
  virtual Result<std::vector<std::string>> restore_git(const MadeUnder& made,
                                                       const std::vector<SeenAt>& places = {}) = 0;
  // Paths that setup made under the globs and of git's own; `keep`: a folder, not there yet, that
  // takes copies of them; empty: nobody needs them.
  virtual Result<MadeUnder> made_under(const std::vector<std::string>& globs,
                                       const fs::path& keep) = 0;
  // Is what lies below it still whole (tree_state.h)?  kUnavailable: somebody deleted it, and what
  // a program in it said is nobody's word.  A copy needs none of it.
  virtual Status whole(TreeMark::Look look) const = 0;
  // The paths under the globs that differ from the snapshot; sorted.
  virtual Result<std::vector<std::string>> changed_under(const std::vector<std::string>& globs) = 0;
};

// The audience of a workspace, beside this process and what it starts; kOwnUser: nobody, and it may
// belong to a user of its own.
enum class ShownTo { kNobody, kDockerEngine, kOwnUser };

class WorkspaceStore {
 public:
  virtual ~WorkspaceStore() = default;
  // Mirrors the repository if it is not, checks the commit out if it is not.  Cross-process lock;
  // a pinned commit that is there is never fetched again.  `base` resolves relative sources.
  virtual Result<Snapshot> snapshot(const Repository& repository, const fs::path& base) = 0;
  // `label` (an attempt id with a phase: "17.2-agent") names folders and volumes.
  // `setup`: what it made of this snapshot is there already.  `bound`: where the store's disks are
  // bounded, what there must be room for.  Without kDockerEngine docker_volume() may fail.
  virtual Result<std::unique_ptr<Workspace>> create(const Snapshot& snapshot,
                                                    const std::string& label,
                                                    const SetupLayer* setup = nullptr,
                                                    const DiskBound& bound = {},
                                                    ShownTo shown = ShownTo::kNobody) = 0;
  // Layers that setups made, of all workers of the root.
  virtual const SetupLayers& layers() const = 0;
  // After something was made: what was used longest ago may have to go.
  virtual void make_room() const = 0;
  // The kind of those that create() makes, but for the few trees that its overlays cannot show.
  virtual WorkspaceKind kind(ShownTo shown = ShownTo::kNobody) const = 0;
  virtual bool bounds_disks() const = 0;
  // Can its workspaces have users of their own?
  virtual bool has_own_users() const { return false; }
  // Removes what earlier lives of this worker left: mounts, folders, volumes; but for `keep`, which
  // are this life's from now on, until adopt() or the end.  Once, before the first workspace.
  virtual Status clean_up(const std::vector<LeftWorkspace>& keep = {}) = 0;
  // One that clean_up() kept, as its agent left it.  kNotFound: there is nothing of it.
  virtual Result<std::unique_ptr<Workspace>> adopt(const Snapshot& snapshot,
                                                   const std::string& label,
                                                   const LeftWorkspace& left) = 0;
};

// Makes the patches of trees that take long, see extract.h: `path extract` calls
// extract_as_asked().
struct Extractor {
  fs::path path{};  // empty: all are made in this process
  std::chrono::seconds cpu{60};
  std::uint64_t memory = std::uint64_t{2} << 30;
};

struct WorkspaceStoreOptions {
  fs::path root;                        // of mirrors/, trees/, layers/, disks/, workspaces/
  std::string owner;                    // worker name, in labels
  std::optional<WorkspaceKind> kind{};  // none: the first of kWorkspaceKinds that works
  std::string docker_socket;            // empty: docker_volume() is kUnavailable
  // The room that mirrors, trees and layers may take; the least recently used go when a new one is
  // made.  0: all.
  std::uint64_t cache_max = 0;
  // Every workspace on a file system of its own that ends where its bound does.  kUnavailable where
  // this host cannot.
  bool bounded_disks = false;
  Extractor extractor{};
  Remover remover{};
};
Result<std::unique_ptr<WorkspaceStore>> open_workspace_store(const WorkspaceStoreOptions& options);
}  // namespace proctor
