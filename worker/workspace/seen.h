#pragma once
// What stands at a path below a folder in which strangers have written.  No component of the way
// is followed if it is a link.  Blocking; thread-safe.  Fails with errno_error.
#include <sys/stat.h>

#include <optional>
#include <string>

#include "common/base/result.h"
#include "worker/workspace/beneath.h"

namespace proctor {

struct Seen {
  std::optional<beneath::Parent> parent;  // none: nor is there a folder for it
  std::optional<struct stat> st;          // none: nothing is there
  bool is_file() const { return st && S_ISREG(st->st_mode); }
  bool is_link() const { return st && S_ISLNK(st->st_mode); }
  bool is_folder() const { return st && S_ISDIR(st->st_mode); }
};
Result<Seen> look(int root, const std::string& path);

// Was it last changed long enough ago that a later write would have a later time?  The clock of
// files moves a few milliseconds at a time.
bool is_settled(const struct stat& st);
// Two files, or two links: do they say the same?
Result<bool> say_the_same(const Seen& a, const Seen& b);

}  // namespace proctor
