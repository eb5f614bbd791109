#pragma once
// Changes: what differs between a workspace and its snapshot, and which paths are protected.
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/files.h"
#include "common/base/result.h"
#include "worker/git/object_db.h"
#include "worker/workspace/copy_tree.h"
#include "worker/workspace/overlay.h"

namespace proctor {
// The paths that `policy.protected` speaks for: those that its globs cover, further ones by their
// names, and the byte code and libraries that Python would load in the place of such a source.
// A look-up among names takes the logarithm of their number.  Pure; no failures.
class ProtectedPaths {
 public:
  explicit ProtectedPaths(const std::vector<std::string>& globs,
                          std::vector<std::string> names = {});

  bool covers(std::string_view path) const;
  // May something below the folder be covered?
  bool reaches(std::string_view folder) const;

 private:
  bool has(std::string_view path) const;
  bool has_below(std::string_view folder) const;  // with its '/'; "": the root
  std::vector<std::string> globs_, names_;        // names_: sorted
};

// Differences are read from the upper layer of an overlay (cost: what was changed) and the layer
// that its setup left, or from a whole copy.  The workspace's own .git is not looked at, no symlink
// is followed and nothing is executed.  One thread; blocking.  Fails with kExhausted beyond the
// limits alone, kUnavailable for want of descriptors or memory, else like the file system and
// ObjectDb.

inline constexpr std::size_t kChangedFilesMax = 200'000;
inline constexpr std::size_t kChangedDepthMax = 100;
inline constexpr std::size_t kChangedNamesBytes = std::size_t{32} << 20;  // all paths together
inline constexpr std::size_t kChangedPathBytes = 3500;  // PATH_MAX, less what is before and behind

struct FileState {
  std::uint32_t mode = 0;  // 0: not there
  ObjectId id{};           // of its content
};
struct Change {
  FileState was, now;  // now.id is written to the ObjectDb
};

struct ChangeSet {
  std::map<std::string, Change> changed;  // by path; files and links only
  // Left as in the snapshot, for they are not representable: devices, sockets, FIFOs, set-id files,
  // nested repositories' .git, files inside an unexpanded submodule.  Paths, sorted.
  std::vector<std::string> refused;
  // By a strict look: folders that nobody but strangers have made, or that are too deep to be
  // looked into, and folders of the snapshot that are closed to some.
  std::vector<std::string> planted, closed;
};

// A look at protected paths alone: every file and link of the layers that is not vouched for is
// named as changed, without being read, ignored by git or not.
struct StrictLook {
  const ProtectedPaths& paths;
  const std::vector<std::string>& made;  // by the setup of the untouched snapshot; see MadeUnder
  const CopiedFiles& vouched;            // as they were when they were last found right
};

struct ScanInput {
  fs::path dir;                         // the upper layer, or the whole copy
  WorkspaceKind kind;                   // of an overlay: `dir` is its upper layer
  fs::path setup{};                     // a further layer of that kind below it; empty: none
  std::string part{};                   // of a copy: this path alone is there; empty: all of it
  const CopiedFiles* copied = nullptr;  // of a copy: what need not be read again
  ObjectId tree;                        // of the snapshot
  TreeCache* folders = nullptr;         // of snapshots; not null
  std::uint64_t content_max = 0;        // bytes of changed files, all together
  // false: say which files differ without keeping what they hold; new ones are not even read.
  bool contents = true;
  // Asked for paths that the snapshot does not have; false leaves them (and what is below) out.
  std::function<Result<bool>(const std::string& path, bool folder)> wanted{};
  std::vector<std::string>* new_folders = nullptr;  // takes those that `wanted` wants, with a '/'
  const StrictLook* strict = nullptr;  // instead of `contents` and `wanted`; null: none
};

// `db` holds the snapshot's objects and takes the new ones.
Result<ChangeSet> scan_changes(ObjectDb& db, const ScanInput& input);

// Trees of the changed files alone, as they were and as they are, written to the ObjectDb: they
// differ as the whole trees do, at the cost of what was changed.
struct ChangedTrees {
  ObjectId before, after;
};
Result<ChangedTrees> write_changed(ObjectDb& db, const ChangeSet& changes);
}  // namespace proctor
