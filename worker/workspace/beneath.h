#pragma once
// File operations that cannot leave a folder: each component is opened from the one above it with
// O_NOFOLLOW, so a symlink planted on the way is an error and never a way out.  For folders in
// which an agent has written.  Blocking; thread-safe.
// Fails with kInvalid (unsafe relative path, a symlink or a file where a folder must be), else
// errno_error.
#include <dirent.h>
#include <sys/stat.h>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/files.h"
#include "common/base/owned.h"
#include "common/base/result.h"

namespace proctor::beneath {
Result<UniqueFd> open_root(const std::string& dir);
// Invalid: nothing is there, or the path is empty.
Result<UniqueFd> open_if_there(const fs::path& dir);
// One step down.  As the owner without root's powers, a folder without permissions is given them.
Result<UniqueFd> open_dir(int dir, const std::string& name);

enum class Missing { kFail, kMake, kMakeAndReplace };
struct Parent {
  UniqueFd dir;
  std::string name;  // the last component
};
// The folder that holds `relative`.  kMake makes missing folders; kMakeAndReplace also removes
// whatever is not a folder on the way (a planted symlink goes, its target is not touched).
Result<Parent> open_parent(int root, std::string_view relative, Missing missing);

// Names in `dir` apart from "." and "..", sorted by bytes.
Result<std::vector<std::string>> names(int dir);

// Bytes of a regular file; kExhausted when larger.
Result<std::string> read_file(int dir, const std::string& name, std::uint64_t bytes_max);
Result<std::string> read_link(int dir, const std::string& name);

Status write_all(int fd, std::string_view bytes, const std::string& name);
// Replaces `name` as a whole (temporary file beside it, rename).  A folder there is removed first.
Status write_file(int dir, const std::string& name, std::string_view bytes, std::uint32_t mode);
Status write_link(int dir, const std::string& name, const std::string& target);
// rm -rf of one name; absent is fine.
Status remove(int dir, const std::string& name);
}  // namespace proctor::beneath

namespace proctor {
// The thing at a path below such a folder.  No component of the way is followed if it is a link.
// Fails with errno_error.
struct Seen {
  std::optional<beneath::Parent> parent;  // none: nor is there a folder for it
  std::optional<struct stat> st;          // none: nothing is there
  bool is_file() const { return st && S_ISREG(st->st_mode); }
  bool is_link() const { return st && S_ISLNK(st->st_mode); }
  bool is_folder() const { return st && S_ISDIR(st->st_mode); }
};
Result<Seen> look(int root, const std::string& path);

inline bool same_time(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}
// Was it last changed long enough ago that a later write would have a later time?  The clock of
// files moves a few milliseconds at a time.
bool is_settled(const struct stat& st);
// Two files, or two links: do they say the same?
Result<bool> say_the_same(const Seen& a, const Seen& b);
}  // namespace proctor
