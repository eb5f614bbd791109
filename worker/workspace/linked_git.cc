#include "worker/workspace/linked_git.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <optional>
#include <set>
#include <system_error>

#include "common/base/limits.h"
#include "common/base/parse.h"
#include "worker/git/object_db.h"
#include "worker/workspace/beneath.h"
#include "worker/workspace/nested_git.h"

namespace proctor {
namespace {

constexpr int kLinksMax = 40;  // as the kernel

using Names = std::deque<std::string>;

Names names_of(std::string_view path) {
  Names out;
  while (!path.empty()) {
    const std::string_view name = take_until(path, '/');
    if (!name.empty() && name != ".") out.emplace_back(name);
  }
  return out;
}

std::string joined(Names::const_iterator from, Names::const_iterator to) {
  std::string out;
  for (; from != to; ++from) out += out.empty() ? *from : '/' + *from;
  return out;
}

// A folder of one of the places; `path` is below it and has no link in it.
struct Where {
  std::size_t place = 0;
  std::string path;
};

std::optional<Where> place_of(const Names& names, const std::vector<SeenAt>& places) {
  for (std::size_t i = 0; i < places.size(); ++i) {
    const Names at = names_of(places[i].at);
    if (at.size() <= names.size() && std::equal(at.begin(), at.end(), names.begin()))
      return Where{i, joined(names.begin() + static_cast<std::ptrdiff_t>(at.size()), names.end())};
  }
  return std::nullopt;
}

// The kernel's own folders lead back to anywhere: /proc/self/root, /proc/self/cwd, /dev/fd.
bool is_kernels(const std::string& top) {
  return top == "proc" || top == "dev" || top == "sys";
}

// As a command would come there; none: nowhere, or out of all places.  `astray`: through a folder
// of the kernel's, where nobody can say what a command would find.
std::optional<Where> resolved(const std::string& path, const std::vector<SeenAt>& places,
                              bool& astray) {
  Names left = names_of(path), done;
  int links = 0;
  while (!left.empty()) {
    const std::string name = left.front();
    left.pop_front();
    if (name == "..") {
      if (!done.empty()) done.pop_back();
      continue;
    }
    done.push_back(name);
    if (done.size() == 1 && is_kernels(name)) {
      astray = true;
      return std::nullopt;
    }
    const std::optional<Where> here = place_of(done, places);
    if (!here || here->path.empty()) continue;
    const fs::path file = places[here->place].dir / here->path;
    struct stat st {};
    if (::lstat(file.c_str(), &st) != 0) return std::nullopt;
    if (!S_ISLNK(st.st_mode)) continue;
    std::error_code ec;
    const std::string target = fs::read_symlink(file, ec).string();
    if (ec || target.empty() || kLinksMax < ++links) return std::nullopt;
    done.pop_back();
    if (target.front() == '/') done.clear();
    Names more = names_of(target);
    left.insert(left.begin(), more.begin(), more.end());
  }
  return place_of(done, places);
}

// What git would take for a repository in this very folder.
Status look_in(const SeenAt& place, const std::string& path, const fs::path& tree,
               std::set<std::string>& out) {
  const std::string prefix = path.empty() ? "" : path + '/';
  PROCTOR_TRY(const UniqueFd root, beneath::open_root(place.dir.string()));
  PROCTOR_TRY(const auto parent, beneath::open_parent(root.get(), prefix + std::string(kDotGit),
                                                      beneath::Missing::kFail));
  PROCTOR_TRY(const std::vector<std::string> inside, beneath::names(parent.dir.get()));
  for (const std::string& name : inside)
    if (is_dot_git(name)) out.insert(prefix + name);
  std::error_code ec;
  if (looks_bare(inside) && !fs::exists(fs::symlink_status(tree / path / kGitHead, ec)))
    out.insert(prefix + kGitHead);
  return ok_status();
}

// The folder and all below it, as the snapshot has them.
Status folders_of(int tree, const std::string& path, std::vector<std::string>& out) {
  out.push_back(path);
  PROCTOR_TRY(const std::vector<std::string> inside, beneath::names(tree));
  for (const std::string& name : inside) {
    struct stat st {};
    if (::fstatat(tree, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(st.st_mode))
      continue;
    PROCTOR_TRY(const UniqueFd below, beneath::open_dir(tree, name));
    PROCTOR_CHECK_OK(folders_of(below.get(), path + '/' + name, out));
  }
  return ok_status();
}

}  // namespace

Result<std::vector<std::vector<std::string>>> linked_git(const std::vector<std::string>& links,
                                                         const fs::path& tree,
                                                         const std::vector<SeenAt>& places) {
  std::vector<std::set<std::string>> found(places.size()), looked(places.size());
  for (const std::string& link : links) {
    PROCTOR_TRY(const UniqueFd at, beneath::open_root((tree / link).string()));
    std::vector<std::string> folders;
    PROCTOR_CHECK_OK(folders_of(at.get(), link, folders));
    for (const std::string& folder : folders) {
      bool astray = false;
      const auto where = resolved(places.front().at + '/' + folder, places, astray);
      if (astray) found.front().insert(link);
      if (!where) continue;
      // Git goes up from there; the top of the workspace has its own, which is put back.
      const SeenAt& place = places[where->place];
      const fs::path own = where->place == 0 ? tree : fs::path("/nonexistent");
      for (std::string path = where->path; where->place != 0 || !path.empty();) {
        if (!looked[where->place].insert(path).second) break;
        struct stat st {};
        if (::lstat((place.dir / path).c_str(), &st) == 0 && S_ISDIR(st.st_mode))
          PROCTOR_CHECK_OK(look_in(place, path, own, found[where->place]));
        if (path.empty()) break;
        const std::size_t slash = path.rfind('/');
        path.resize(slash == std::string::npos ? 0 : slash);
      }
    }
  }
  std::vector<std::vector<std::string>> out;
  for (const auto& paths : found) out.emplace_back(paths.begin(), paths.end());
  return out;
}

}  // namespace proctor
