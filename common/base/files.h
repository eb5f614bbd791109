#pragma once
// Files as values: read whole within a bound, replace whole or not at all.
#include <filesystem>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace proctor {
namespace fs = std::filesystem;

// "what: No such file or directory" with the Errc a caller can act on (ENOENT kNotFound,
// ENOSPC/EDQUOT kExhausted, EROFS/EACCES/EINVAL kInvalid, the rest kUnavailable).
Error errno_error(std::string_view what, int error_number);

// The bytes of a regular file of at most `bytes_max`.  kNotFound, kExhausted (larger), kInvalid
// (not a regular file).
Result<std::string> read_file(const fs::path& path, std::size_t bytes_max);

// Modes of files: for their owner alone, and for whoever may enter the folder.
inline constexpr unsigned kPrivateFile = 0600, kOpenFile = 0644;

enum class Durability { kLazy, kSync };
// A name that write_file may have for a temporary file, and takes over from who was killed.  No
// name that comes from outside may be one, in a folder in which write_file writes.
bool is_temporary_name(std::string_view name);
// Replaces `path` as a whole: temporary file beside it, fsync (kSync), rename, fsync of the folder.
// After an error the old file is as it was.  `mode` holds whatever the umask is: what is written
// for others, a sandbox's user or a person's editor, says so.
Status write_file(const fs::path& path, std::string_view bytes,
                  Durability durability = Durability::kSync, unsigned mode = kPrivateFile);

// fsync of a file, or of a folder: the names in it.
Status sync_path(const fs::path& path);

// rename(2): what is at `to` is replaced if that can be done at once.
Status rename_path(const fs::path& from, const fs::path& to);

// mkdir -p.
Status make_dirs(const fs::path& dir);
// The same, of folders that nobody but their owner enters (0700), whatever the umask is.  Those
// that are there already stay as they are.
Status make_private_dirs(const fs::path& dir);
// Tells ext4 that the subfolders of `dir` have nothing to do with each other, so that it places
// them apart (chattr +T): folders that come and go by the thousand otherwise share one block group,
// whose just-freed inodes every new file must step over.  A hint: no effect elsewhere.
void spread_subfolders(const fs::path& dir);
// rm -rf that follows no symlink and makes read-only folders writable first.  Absent is fine.
Status remove_tree(const fs::path& dir);

// Is `relative` a path that stays under the folder it is joined to: not empty, not absolute, no
// "." or ".." component, no empty component, no NUL?  Judged as text; symlinks are the caller's.
bool is_safe_relative(std::string_view relative);

// A new folder under `parent` (default: the system's), removed with everything in it at the end.
class TempDir {
 public:
  static Result<TempDir> create(std::string_view prefix = "proctor", const fs::path& parent = {});
  TempDir(TempDir&& other) noexcept;
  TempDir& operator=(TempDir&& other) noexcept;
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir();
  const fs::path& path() const { return path_; }
  // Keeps the folder.
  fs::path release();

 private:
  explicit TempDir(fs::path path) : path_(std::move(path)) {}
  fs::path path_;
};
}  // namespace proctor
