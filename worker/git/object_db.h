#pragma once
// Git objects without a repository: commits, trees and blobs of one or several object folders,
// read with their hashes verified.  No configuration, index, attribute or reference of any
// repository is looked at, so nothing that a repository's owner planted can take effect.
// An ObjectDb belongs to one thread at a time.  Fails with kNotFound (no such object), kCorrupt
// (bytes that do not hash to their name, or do not parse).  Source: gitformat-* of the git manual.
#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/files.h"
#include "common/base/result.h"
#include "common/base/words.h"

struct git_odb;

namespace proctor {
// A SHA-1 object name.
struct ObjectId {
  std::array<std::uint8_t, 20> bytes{};
  // 40 lower-case hex digits, else kInvalid.  64 (SHA-256 repositories) are refused by name.
  static Result<ObjectId> from_hex(std::string_view hex);
  std::string hex() const;
  friend bool operator==(const ObjectId&, const ObjectId&) = default;
  friend auto operator<=>(const ObjectId&, const ObjectId&) = default;
};

enum class ObjectType { kCommit, kTree, kBlob, kTag };
constexpr auto words(ObjectType) {
  return std::to_array<Word<ObjectType>>({{"commit", ObjectType::kCommit},
                                          {"tree", ObjectType::kTree},
                                          {"blob", ObjectType::kBlob},
                                          {"tag", ObjectType::kTag}});
}

namespace git_mode {
inline constexpr std::uint32_t kTree = 0040000, kBlob = 0100644, kExecutable = 0100755,
                               kSymlink = 0120000, kGitlink = 0160000;
}

struct GitTreeEntry {
  std::uint32_t mode = 0;  // one of git_mode
  std::string name;
  ObjectId id;
  friend bool operator==(const GitTreeEntry&, const GitTreeEntry&) = default;
};

class ObjectDb {
 public:
  // An empty `writable` keeps what is written in memory, for the life of the object.
  static Result<ObjectDb> open(const std::vector<fs::path>& objects, const fs::path& writable = {});
  bool has(const ObjectId& id) const;
  Result<ObjectType> type(const ObjectId& id) const;
  Result<std::uint64_t> size(const ObjectId& id) const;
  Result<std::string> blob(const ObjectId& id) const;
  // In git's order.  Modes are normalised (100664 becomes 100644).  kInvalid for names that must
  // never become files: "", ".", "..", with '/', ".git" in any case.
  Result<std::vector<GitTreeEntry>> tree(const ObjectId& id) const;
  Result<ObjectId> tree_of_commit(const ObjectId& commit) const;

  Result<ObjectId> write(ObjectType type, std::string_view bytes);
  Result<ObjectId> write_tree(std::vector<GitTreeEntry> entries);

  git_odb* raw() const { return odb_.get(); }

 private:
  using Odb = std::unique_ptr<git_odb, void (*)(git_odb*)>;
  explicit ObjectDb(Odb odb) : odb_(std::move(odb)) {}
  Result<std::string> read(const ObjectId& id, ObjectType wanted) const;
  Odb odb_;
};

ObjectId hash_object(ObjectType type, std::string_view bytes);
// The bytes of a tree object: sorted as git sorts (a folder as if its name ended in '/').
std::string encode_tree(std::vector<GitTreeEntry> entries);
bool is_dot_git(std::string_view name);

// Starts libgit2 once for the process: strict hashes, no configuration files, no owner checks
// (every repository it opens is our own).  Called by everything here that needs it.
void start_libgit2();
// The last libgit2 error of this thread as ours.
Error libgit2_error(std::string_view what, int code);

// A commit's whole tree as a flat list, submodules grafted in when asked.  Reads objects only.
// Fails like ObjectDb, and with kExhausted beyond the limits below (a tree can be a bomb: ten
// levels of ten names for one same subtree are 10^10 files).

inline constexpr std::size_t kTreeFilesMax = 2'000'000;
inline constexpr std::size_t kTreeDepthMax = 100;
inline constexpr std::size_t kTreePathBytes = 4000;  // PATH_MAX less what is before it

struct ListedEntry {
  std::string path;  // relative, '/' between components, any other byte possible
  std::uint32_t mode = 0;
  ObjectId id;
};

// Everything under `tree` that is not a folder, in git's order.  With `trees`, the ids of every
// tree met (the root too) are added to it.
Result<std::vector<ListedEntry>> list_tree(const ObjectDb& db, const ObjectId& tree,
                                           std::vector<ObjectId>* trees = nullptr);

// `tree` with other contents at these paths: blobs in regular files, trees in place of gitlinks. An
// entry of another kind by the same name stays as it is.
Result<ObjectId> replace_in_tree(ObjectDb& db, const ObjectId& tree, ObjectType type,
                                 const std::map<std::string, ObjectId>& contents,
                                 const std::string& prefix = "");

// Folders of snapshots that were read before: workspaces of one tree are asked about the same ones,
// and to read one costs its decompression and its hash.  A folder is named by its content, so what
// is kept is never stale.  Thread-safe.
class TreeCache {
 public:
  using Folder = std::shared_ptr<const std::vector<GitTreeEntry>>;
  // Its entries in the order of names (git's own has a folder where it were with a '/').
  Result<Folder> folder(const ObjectDb& db, const ObjectId& id);
  // The entry at `path`, of components with '/' between them, below `tree`; empty: there is none.
  // kUnavailable: a folder on the way is named and cannot be read.
  Result<std::optional<GitTreeEntry>> entry_at(const ObjectDb& db, const ObjectId& tree,
                                               std::string_view path);

 private:
  std::mutex mutex_;
  std::map<ObjectId, Folder> known_;
  std::size_t entries_ = 0;  // in all of them
};
}  // namespace proctor
