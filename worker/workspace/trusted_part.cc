#include "worker/workspace/trusted_part.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "common/base/parse.h"
#include "common/base/text.h"
#include "worker/git/object_db.h"
#include "worker/workspace/beneath.h"
#include "worker/workspace/changes.h"

namespace proctor {
namespace {
constexpr const char* kGitHead = "HEAD";
constexpr std::array<std::string_view, 3> kBeside{"objects", "refs", "commondir"};

// S_IFDIR, S_IFLNK...; 0: nothing is there.
mode_t kind_of(int dir, const std::string& name) {
  struct stat st {};
  return ::fstatat(dir, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_mode & S_IFMT : 0;
}

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// Is a folder with these names a repository without the name ".git"?  Git asks for HEAD, objects
// and refs, the latter two also by way of commondir.
bool looks_bare(const std::vector<std::string>& names) {
  return has(names, kGitHead) &&
         std::ranges::any_of(kBeside, [&](std::string_view name) { return has(names, name); });
}

// Is a folder of the snapshot one, by files that are not its?
Result<bool> became_bare(std::vector<std::string> inside, int tree) {
  if (!has(inside, kGitHead)) return false;
  PROCTOR_TRY(const std::vector<std::string> snapshot, beneath::names(tree));
  inside.insert(inside.end(), snapshot.begin(), snapshot.end());
  return !has(snapshot, kGitHead) && looks_bare(inside);
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

Result<std::vector<std::string>> nested_git(const fs::path& dir, const fs::path& tree,
                                            std::vector<std::string>* links) {
  PROCTOR_TRY(const UniqueFd top, beneath::open_root(dir.string()));
  PROCTOR_TRY(const UniqueFd tree_top, beneath::open_root(tree.string()));
  std::vector<std::string> out;
  PROCTOR_CHECK_OK(walk(top.get(), tree_top.get(), "", out, links));
  std::ranges::sort(out);
  return out;
}

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

// Names that git would take for a repository in this very folder.
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
    if (kind_of(tree, name) != S_IFDIR) continue;
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

namespace {
using beneath::Missing;
using beneath::Parent;

// An overlay shows a file of its lower layers with that file's own times until somebody writes to
// it, and nobody can set the time of a change.
bool is_the_layers_own(const struct stat& now, const struct stat& then) {
  return now.st_mode == then.st_mode && now.st_size == then.st_size &&
         same_time(now.st_mtim, then.st_mtim) && same_time(now.st_ctim, then.st_ctim);
}

Result<Seen> look_if_there(const UniqueFd& root, const std::string& path) {
  if (!root.valid()) return Seen{};
  return look(root.get(), path);
}

// Names that a folder has on either side.
Status add_names(const Seen& folder, std::set<std::string>& out) {
  if (!folder.is_folder()) return ok_status();
  PROCTOR_TRY(const UniqueFd open,
              beneath::open_dir(folder.parent->dir.get(), folder.parent->name));
  PROCTOR_TRY(const std::vector<std::string> inside, beneath::names(open.get()));
  out.insert(inside.begin(), inside.end());
  return ok_status();
}

class Lister {
 public:
  Lister(const UniqueFd& root, const UniqueFd& before) : root_(root), before_(before) {}

  Status entry(const std::string& path, std::size_t depth) {
    if (kChangedDepthMax < depth || kChangedFilesMax <= out_.size())
      return Error{Errc::kExhausted, printable(path) + ": too much, or nested too deep"};
    PROCTOR_TRY(const Seen now, look_if_there(root_, path));
    PROCTOR_TRY(const Seen then, look_if_there(before_, path));
    if (!now.st && !then.st) return ok_status();
    if (now.is_folder()) {
      if (!then.is_folder()) out_.push_back(path + '/');
      std::set<std::string> inside;
      PROCTOR_CHECK_OK(add_names(now, inside));
      PROCTOR_CHECK_OK(add_names(then, inside));
      for (const std::string& name : inside) PROCTOR_CHECK_OK(entry(path + '/' + name, depth + 1));
      return ok_status();
    }
    if (now.st && then.st && is_the_layers_own(*now.st, *then.st)) return ok_status();
    if ((now.is_file() && then.is_file()) || (now.is_link() && then.is_link())) {
      PROCTOR_TRY(const bool same, say_the_same(now, then));
      if (same && now.st->st_mode == then.st->st_mode) return ok_status();
    }
    out_.push_back(path);
    return ok_status();
  }

  std::vector<std::string> take() {
    std::ranges::sort(out_);
    return std::move(out_);
  }

 private:
  const UniqueFd& root_;
  const UniqueFd& before_;
  std::vector<std::string> out_;
};

class Restorer {
 public:
  Restorer(const UniqueFd& root, const UniqueFd& before, const UniqueFd& kept,
           const MadeUnder& made, CopiedFiles& known)
      : root_(root), before_(before), kept_(kept), made_(made), known_(known) {}

  // Who looks for the path goes through a link on its way, which leads to a candidate's folder.
  Status clear_way(const std::string& path) {
    for (std::size_t slash = path.find('/'); slash != std::string::npos;
         slash = path.find('/', slash + 1)) {
      const std::string above = path.substr(0, slash);
      PROCTOR_TRY(const Seen now, look_if_there(root_, above));
      if (!now.st || now.is_folder()) continue;
      done_.push_back(above);
      PROCTOR_CHECK_OK(beneath::remove(now.parent->dir.get(), now.parent->name));
    }
    return ok_status();
  }

  // Goes no deeper than what is to be there does.
  Status entry(const std::string& path) {
    PROCTOR_TRY(const Seen now, look_if_there(root_, path));
    if (is_made(path + '/')) return folder(path, now, Seen{});
    const bool by_setup = is_made(path);
    PROCTOR_TRY(const Seen then, look_if_there(by_setup ? kept_ : before_, path));
    if (then.is_folder() && !by_setup) return folder(path, now, then);
    if (then.is_file() || then.is_link()) return file(path, now, then);
    if (!now.st) return ok_status();
    done_.push_back(path);
    return beneath::remove(now.parent->dir.get(), now.parent->name);
  }

  std::vector<std::string> take() {
    std::ranges::sort(done_);
    return std::move(done_);
  }

 private:
  bool is_made(const std::string& path) const {
    return kept_.valid() && std::ranges::binary_search(made_.paths, path);
  }

  Status folder(const std::string& path, const Seen& now, const Seen& then) {
    constexpr mode_t kModeBits = 07777;
    const mode_t mode = then.is_folder() ? then.st->st_mode & kModeBits : kFolderMode;
    const bool is_open = now.is_folder() && ((now.st->st_mode & S_IRWXU) == S_IRWXU ||
                                             (now.st->st_mode & kModeBits) == mode);
    if (!is_open) {
      done_.push_back(path);
      PROCTOR_TRY(const Parent to,
                  beneath::open_parent(root_.get(), path, Missing::kMakeAndReplace));
      if (!now.is_folder()) PROCTOR_CHECK_OK(beneath::remove(to.dir.get(), to.name));
      if (::mkdirat(to.dir.get(), to.name.c_str(), mode | S_IRWXU) != 0 && errno != EEXIST)
        return errno_error("make " + printable(path), errno);
      if (::fchmodat(to.dir.get(), to.name.c_str(), mode | S_IRWXU, 0) != 0)
        return errno_error("open " + printable(path), errno);
    }
    PROCTOR_TRY(const Seen there, look_if_there(root_, path));
    std::set<std::string> inside;
    PROCTOR_CHECK_OK(add_names(there, inside));
    PROCTOR_CHECK_OK(add_names(then, inside));
    const std::string prefix = path + '/';
    for (auto it = std::ranges::lower_bound(made_.paths, prefix);
         kept_.valid() && it != made_.paths.end() && it->starts_with(prefix); ++it) {
      const std::string below = it->substr(prefix.size());
      if (!below.empty()) inside.insert(below.substr(0, below.find('/')));
    }
    for (const std::string& name : inside) PROCTOR_CHECK_OK(entry(prefix + name));
    return ok_status();
  }

  Status file(const std::string& path, const Seen& now, const Seen& then) {
    if (now.st && (is_the_layers_own(*now.st, *then.st) || looks_like(known_, path, *now.st)))
      return ok_status();
    PROCTOR_TRY(const bool same, say_the_same(now, then));
    if (same && now.st->st_mode == then.st->st_mode) {
      if (is_settled(*now.st)) known_[path] = {now.st->st_ino, now.st->st_size, now.st->st_ctim};
      return ok_status();
    }
    done_.push_back(path);
    return copy_over(then, root_.get(), path);
  }

  static constexpr mode_t kFolderMode = 0755;
  const UniqueFd& root_;
  const UniqueFd& before_;
  const UniqueFd& kept_;
  const MadeUnder& made_;
  CopiedFiles& known_;
  std::vector<std::string> done_;
};
}  // namespace

Result<std::vector<std::string>> list_part(const fs::path& dir, const TrustedPart& part) {
  PROCTOR_TRY(const UniqueFd root, beneath::open_root(dir.string()));
  PROCTOR_TRY(const UniqueFd before, beneath::open_if_there(part.before));
  Lister lister(root, before);
  PROCTOR_CHECK_OK(lister.entry(part.path, 0));
  return lister.take();
}

Result<std::vector<std::string>> put_part_back(const fs::path& dir, const TrustedPart& part,
                                               const MadeUnder& made, CopiedFiles& known) {
  PROCTOR_TRY(const UniqueFd root, beneath::open_root(dir.string()));
  PROCTOR_TRY(const UniqueFd before, beneath::open_if_there(part.before));
  PROCTOR_TRY(const UniqueFd kept, beneath::open_if_there(made.at));
  Restorer restorer(root, before, kept, made, known);
  PROCTOR_CHECK_OK(restorer.clear_way(part.path));
  PROCTOR_CHECK_OK(restorer.entry(part.path));
  return restorer.take();
}

Result<std::vector<std::string>> put_all_back(const fs::path& dir, const fs::path& before,
                                              CopiedFiles& known) {
  std::set<std::string> inside;
  for (const fs::path& side : {dir, before}) {
    PROCTOR_TRY(const UniqueFd root, beneath::open_if_there(side));
    if (!root.valid()) continue;
    PROCTOR_TRY(const std::vector<std::string> names, beneath::names(root.get()));
    inside.insert(names.begin(), names.end());
  }
  std::vector<std::string> out;
  for (const std::string& name : inside) {
    PROCTOR_TRY(const std::vector<std::string> done,
                put_part_back(dir, {name, before}, MadeUnder{}, known));
    out.insert(out.end(), done.begin(), done.end());
  }
  return out;
}
}  // namespace proctor
