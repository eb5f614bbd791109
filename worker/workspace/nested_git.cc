#include "worker/workspace/nested_git.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "common/base/text.h"
#include "worker/git/object_db.h"
#include "worker/workspace/beneath.h"

namespace proctor {
namespace {

bool is_folder(int dir, const std::string& name) {
  struct stat st {};
  return ::fstatat(dir, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

// No deeper than the snapshot.
Status walk(int dir, int tree, const std::string& prefix, std::vector<std::string>& out) {
  PROCTOR_TRY(const std::vector<std::string> inside, beneath::names(dir));
  for (const std::string& name : inside) {
    if (is_dot_git(name)) {
      if (!prefix.empty()) out.push_back(prefix + name);
      continue;
    }
    if (!is_folder(dir, name) || !is_folder(tree, name)) continue;
    PROCTOR_TRY(const UniqueFd below, beneath::open_dir(dir, name));
    PROCTOR_TRY(const UniqueFd tree_below, beneath::open_dir(tree, name));
    PROCTOR_CHECK_OK(walk(below.get(), tree_below.get(), prefix + name + '/', out));
  }
  return ok_status();
}

}  // namespace

bool is_of_git(std::string_view path) {
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    if (is_dot_git(path.substr(0, slash))) return true;
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
  }
  return false;
}

Result<std::vector<std::string>> nested_git(const fs::path& dir, const fs::path& tree) {
  PROCTOR_TRY(const UniqueFd top, beneath::open_root(dir.string()));
  PROCTOR_TRY(const UniqueFd tree_top, beneath::open_root(tree.string()));
  std::vector<std::string> out;
  PROCTOR_CHECK_OK(walk(top.get(), tree_top.get(), "", out));
  std::ranges::sort(out);
  return out;
}

}  // namespace proctor
