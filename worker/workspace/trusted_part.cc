#include "worker/workspace/trusted_part.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "common/base/text.h"
#include "worker/workspace/beneath.h"
#include "worker/workspace/changes.h"
#include "worker/workspace/seen.h"

namespace proctor {
namespace {

using beneath::Missing;
using beneath::Parent;

bool at_same_time(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

// An overlay shows a file of its lower layers with that file's own times until somebody writes to
// it, and nobody can set the time of a change.
bool is_the_layers_own(const struct stat& now, const struct stat& then) {
  return now.st_mode == then.st_mode && now.st_size == then.st_size &&
         at_same_time(now.st_mtim, then.st_mtim) && at_same_time(now.st_ctim, then.st_ctim);
}

Result<UniqueFd> open_if_there(const fs::path& dir) {
  if (dir.empty()) return UniqueFd();
  auto opened = beneath::open_root(dir.string());
  if (opened.ok() || opened.error().code != Errc::kNotFound) return opened;
  return UniqueFd();
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
    PROCTOR_TRY(const Parent to, beneath::open_parent(root_.get(), path, Missing::kMakeAndReplace));
    PROCTOR_CHECK_OK(beneath::remove(to.dir.get(), to.name));
    return copy_one(then.parent->dir.get(), then.parent->name, to.dir.get(), to.name);
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
  PROCTOR_TRY(const UniqueFd before, open_if_there(part.before));
  Lister lister(root, before);
  PROCTOR_CHECK_OK(lister.entry(part.path, 0));
  return lister.take();
}

Result<std::vector<std::string>> put_part_back(const fs::path& dir, const TrustedPart& part,
                                               const MadeUnder& made, CopiedFiles& known) {
  PROCTOR_TRY(const UniqueFd root, beneath::open_root(dir.string()));
  PROCTOR_TRY(const UniqueFd before, open_if_there(part.before));
  PROCTOR_TRY(const UniqueFd kept, open_if_there(made.at));
  Restorer restorer(root, before, kept, made, known);
  PROCTOR_CHECK_OK(restorer.clear_way(part.path));
  PROCTOR_CHECK_OK(restorer.entry(part.path));
  return restorer.take();
}

Result<std::vector<std::string>> put_all_back(const fs::path& dir, const fs::path& before,
                                              CopiedFiles& known) {
  std::set<std::string> inside;
  for (const fs::path& side : {dir, before}) {
    PROCTOR_TRY(const UniqueFd root, open_if_there(side));
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
