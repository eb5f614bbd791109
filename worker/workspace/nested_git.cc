#include "worker/workspace/nested_git.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "common/base/parse.h"
#include "common/base/text.h"
#include "worker/git/object_db.h"
#include "worker/workspace/beneath.h"

namespace proctor {
namespace {

constexpr std::array<std::string_view, 3> kBeside{"objects", "refs", "commondir"};

// S_IFDIR, S_IFLNK...; 0: nothing is there.
mode_t kind_of(int dir, const std::string& name) {
  struct stat st {};
  return ::fstatat(dir, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_mode & S_IFMT : 0;
}

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// Is a folder of the snapshot, by files that are not its, a repository without the name ".git"?
// Git asks for HEAD, objects and refs, the latter two also by way of commondir.
Result<bool> became_bare(const std::vector<std::string>& inside, int tree) {
  if (!has(inside, kGitHead)) return false;
  PROCTOR_TRY(const std::vector<std::string> snapshot, beneath::names(tree));
  if (has(snapshot, kGitHead)) return false;
  return std::ranges::any_of(
      kBeside, [&](std::string_view name) { return has(inside, name) || has(snapshot, name); });
}

// No deeper than the snapshot.
Status walk(int dir, int tree, const std::string& prefix, std::vector<std::string>& out,
            std::vector<std::string>* links) {
  PROCTOR_TRY(const std::vector<std::string> inside, beneath::names(dir));
  PROCTOR_TRY(const bool bare, became_bare(inside, tree));
  if (bare && !prefix.empty()) out.push_back(prefix + kGitHead);
  for (const std::string& name : inside) {
    if (is_dot_git(name)) {
      if (!prefix.empty()) out.push_back(prefix + name);
      continue;
    }
    const mode_t kind = kind_of(dir, name);
    if ((kind != S_IFDIR && kind != S_IFLNK) || kind_of(tree, name) != S_IFDIR) continue;
    if (kind == S_IFLNK) {
      if (links != nullptr) links->push_back(prefix + name);
      continue;
    }
    PROCTOR_TRY(const UniqueFd below, beneath::open_dir(dir, name));
    PROCTOR_TRY(const UniqueFd tree_below, beneath::open_dir(tree, name));
    PROCTOR_CHECK_OK(walk(below.get(), tree_below.get(), prefix + name + '/', out, links));
  }
  return ok_status();
}

}  // namespace

bool is_of_git(std::string_view path) {
  return std::ranges::any_of(split(path, '/'), is_dot_git);
}

bool looks_bare(const std::vector<std::string>& names) {
  return has(names, kGitHead) &&
         std::ranges::any_of(kBeside, [&](std::string_view name) { return has(names, name); });
}

Result<std::vector<std::string>> nested_git(const fs::path& dir, const fs::path& tree,
                                            std::vector<std::string>* links) {
  PROCTOR_TRY(const UniqueFd top, beneath::open_root(dir.string()));
  PROCTOR_TRY(const UniqueFd tree_top, beneath::open_root(tree.string()));
  std::vector<std::string> out;
  PROCTOR_CHECK_OK(walk(top.get(), tree_top.get(), "", out, links));
  std::ranges::sort(out);
  return out;
}

}  // namespace proctor
