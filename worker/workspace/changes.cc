#include "worker/workspace/changes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <algorithm>
#include <cerrno>
#include <optional>
#include <set>
#include <span>

#include "common/base/text.h"
#include "worker/workspace/beneath.h"

namespace proctor {
namespace {
constexpr std::string_view kCache = "__pycache__";

struct Split {
  std::string_view folder;  // with its '/', or empty
  std::string_view name;
};
Split split(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return {"", path};
  return {path.substr(0, slash + 1), path.substr(slash + 1)};
}

bool is_cache(std::string_view folder) {
  return folder == "__pycache__/" || folder.ends_with("/__pycache__/");
}

// The source that Python takes such a file for, as a path; empty: it loads none of this name.
std::string source_of(std::string_view path) {
  const auto [folder, name] = split(path);
  const bool byte_code = name.ends_with(".pyc") || name.ends_with(".pyo");
  if (!byte_code && !name.ends_with(".so")) return {};
  std::string_view home = folder;
  if (byte_code && is_cache(folder)) home.remove_suffix(kCache.size() + 1);
  return std::string(home) + std::string(name.substr(0, name.find('.'))) + ".py";
}
}  // namespace

ProtectedPaths::ProtectedPaths(const std::vector<std::string>& globs,
                               std::vector<std::string> names)
    : globs_(globs), names_(std::move(names)) {
  std::ranges::sort(names_);
}

bool ProtectedPaths::has(std::string_view path) const {
  return std::ranges::binary_search(names_, path) || any_glob_covers(globs_, path);
}

bool ProtectedPaths::covers(std::string_view path) const {
  if (has(path)) return true;
  const std::string source = source_of(path);
  return !source.empty() && has(source);
}

bool ProtectedPaths::has_below(std::string_view folder) const {
  const auto name = std::ranges::lower_bound(names_, folder);
  return (name != names_.end() && name->starts_with(folder)) || any_glob_reaches(globs_, folder);
}

bool ProtectedPaths::reaches(std::string_view folder) const {
  const std::string inside = std::string(folder) + '/';
  if (has_below(inside)) return true;
  if (!is_cache(inside)) return false;
  return has_below(std::string_view(inside).substr(0, inside.size() - kCache.size() - 1));
}

namespace {
// One folder as its layers show it, the topmost first; more than one only over a setup layer.
struct Layer {
  UniqueFd fd;
  bool setup = false;  // what the setup of the untouched snapshot made
  int get() const { return fd.get(); }
};
using Pile = std::vector<Layer>;
using Below = std::span<const Layer>;

class Scanner {
 public:
  Scanner(ObjectDb& db, const ScanInput& in) : db_(db), in_(in) {}

  Status all() {
    Pile roots;
    for (const fs::path* dir : {&in_.dir, &in_.setup}) {
      if (dir->empty()) continue;
      PROCTOR_TRY(UniqueFd root, beneath::open_root(dir->string()));
      roots.push_back({std::move(root), dir == &in_.setup});
    }
    if (!in_.part.empty()) return part(roots.front().get());
    return folder(roots, &in_.tree, "", !is_overlay(in_.kind), 0);
  }
  bool is_beyond() const { return beyond_; }
  ChangeSet take() {
    std::sort(out_.refused.begin(), out_.refused.end());
    return std::move(out_);
  }

 private:
  // `full`: `dirs` show everything there is, so what they lack is deleted.
  Status folder(const Pile& dirs, const ObjectId* lower_tree, const std::string& prefix, bool full,
                std::size_t depth) {
    if (kChangedDepthMax < depth)
      return beyond("nested deeper than " + std::to_string(kChangedDepthMax) + " folders");
    if (kChangedPathBytes < prefix.size())
      return beyond("a path of more than " + std::to_string(kChangedPathBytes) + " bytes");
    TreeCache::Folder snapshot = std::make_shared<const std::vector<GitTreeEntry>>();
    if (lower_tree != nullptr) {
      PROCTOR_TRY(snapshot, in_.folders->folder(db_, *lower_tree));
    }
    const std::vector<GitTreeEntry>& lower = *snapshot;
    std::set<std::string> seen;
    for (std::size_t d = 0; d < dirs.size(); ++d) {
      PROCTOR_TRY(const std::vector<std::string> inside, beneath::names(dirs[d].get()));
      for (const std::string& name : inside) {
        if (prefix.empty() && name == ".git") continue;
        if (!seen.insert(name).second) continue;  // the layer above has the say
        const auto it = std::ranges::lower_bound(lower, name, {}, &GitTreeEntry::name);
        const GitTreeEntry* low = it != lower.end() && it->name == name ? &*it : nullptr;
        PROCTOR_CHECK_OK(entry(Below(dirs).subspan(d), name, prefix, low, full, depth));
      }
    }
    if (!full) return ok_status();
    for (const GitTreeEntry& e : lower)
      if (!seen.contains(e.name)) PROCTOR_CHECK_OK(deleted(prefix + e.name, e));
    return ok_status();
  }

  // What a copy has at `in_.part` and below; a link on the way to it is not followed.
  Status part(int root) {
    PROCTOR_TRY(const auto lower, in_.folders->entry_at(db_, in_.tree, in_.part));
    const GitTreeEntry* low = lower ? &*lower : nullptr;
    PROCTOR_TRY(Seen now, look(root, in_.part));
    if (!now.st) return low != nullptr ? deleted(in_.part, *low) : ok_status();
    const std::string& name = now.parent->name;
    Pile above;
    above.push_back({std::move(now.parent->dir)});
    const std::string prefix = in_.part.substr(0, in_.part.size() - name.size());
    const auto depth = static_cast<std::size_t>(std::ranges::count(prefix, '/'));
    return entry(above, name, prefix, low, true, depth);
  }

  Error beyond(const std::string& what) {
    beyond_ = true;
    return Error{Errc::kExhausted, "workspace: " + what};
  }

  Status put(const std::string& path, const Change& change) {
    if (in_.strict != nullptr && !in_.strict->paths.covers(path)) return ok_status();
    if (kChangedFilesMax <= out_.changed.size())
      return beyond("more than " + std::to_string(kChangedFilesMax) + " changed files");
    names_ += path.size() + 1;
    if (kChangedNamesBytes < names_)
      return beyond("changed files whose names take more than " +
                    std::to_string(kChangedNamesBytes) + " bytes");
    out_.changed[path] = change;
    return ok_status();
  }

  Status deleted(const std::string& path, const GitTreeEntry& e) {
    if (e.mode == git_mode::kGitlink) return ok_status();  // an empty folder: git does not mind
    if (e.mode != git_mode::kTree) return put(path, {{e.mode, e.id}, {}});
    PROCTOR_TRY(const std::vector<GitTreeEntry> entries, db_.tree(e.id));
    for (const GitTreeEntry& below : entries)
      PROCTOR_CHECK_OK(deleted(path + '/' + below.name, below));
    return ok_status();
  }

  Status refuse(const std::string& path) {
    if (kChangedFilesMax <= out_.refused.size()) return beyond("too many refused files");
    names_ += path.size() + 1;
    if (kChangedNamesBytes < names_) return beyond("too many refused files");
    out_.refused.push_back(path);
    return ok_status();
  }

  // `dirs`: the layer that has it, then those below.
  Status entry(Below dirs, const std::string& name, const std::string& prefix,
               const GitTreeEntry* low, bool full, std::size_t depth) {
    const std::string path = prefix + name;
    const int dir = dirs.front().get();
    struct stat st {};
    if (::fstatat(dir, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0)
      return errno_error("look at " + printable(path), errno);
    if (removed(st)) return low == nullptr ? ok_status() : deleted(path, *low);
    if (in_.strict != nullptr && passed_over(dirs, path, low, st)) return ok_status();
    if (is_dot_git(name)) return refuse(path);
    if (S_ISDIR(st.st_mode)) return sub_folder(dirs, name, path, low, full, depth);
    const bool marked = S_ISREG(st.st_mode) && (st.st_mode & (S_ISUID | S_ISGID)) != 0;
    const bool plain = S_ISREG(st.st_mode) && !(marked && in_.strict != nullptr);
    if (low != nullptr && low->mode == git_mode::kGitlink) return refuse(path);
    if (!plain && !S_ISLNK(st.st_mode)) {
      // What must be there again when the stranger is gone.
      if (in_.strict != nullptr && low != nullptr) PROCTOR_CHECK_OK(deleted(path, *low));
      return refuse(path);
    }
    // No patch can hold the mark, and every patch the content.
    if (marked) PROCTOR_CHECK_OK(refuse(path));
    return file(dir, name, path, low, st);
  }

  // The layers of one folder, from its topmost down to the one that hides what is below.
  Result<Pile> open_pile(Below dirs, const std::string& name, bool& hides) const {
    Pile out;
    for (const Layer& dir : dirs) {
      struct stat st {};
      if (!out.empty()) {
        if (::fstatat(dir.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
          if (errno == ENOENT) continue;
          return errno_error("look at " + printable(name), errno);
        }
        hides = !S_ISDIR(st.st_mode);
        if (hides) break;
      }
      PROCTOR_TRY(UniqueFd child, beneath::open_dir(dir.get(), name));
      hides = is_opaque(child.get(), in_.kind);
      out.push_back({std::move(child), dir.setup});
      if (hides) break;
    }
    return out;
  }

  Status sub_folder(Below dirs, const std::string& name, const std::string& path,
                    const GitTreeEntry* low, bool full, std::size_t depth) {
    bool hides = false;
    if (in_.strict != nullptr && is_planted(path, low, depth)) return plant(path, low);
    PROCTOR_TRY(const Pile pile, open_pile(dirs, name, hides));
    if (low != nullptr && low->mode == git_mode::kGitlink) return refuse_inside(pile, path);
    const bool was_folder = low != nullptr && low->mode == git_mode::kTree;
    if (low != nullptr && !was_folder) PROCTOR_CHECK_OK(deleted(path, *low));
    if (in_.strict != nullptr) {
      // What is protected and was not planted is the contract's or the setup's own.
      const bool expected = was_folder || in_.strict->paths.covers(path);
      PROCTOR_CHECK_OK(look_at_mode(pile.front().get(), path, expected));
    } else if (!was_folder) {
      PROCTOR_TRY(const bool wanted, in_.wanted(path, true));
      if (!wanted) return ok_status();
      if (in_.new_folders != nullptr) in_.new_folders->push_back(path + '/');
    }
    return folder(pile, was_folder ? &low->id : nullptr, path + '/', full || hides, depth + 1);
  }

  Status refuse_inside(const Pile& dirs, const std::string& path) {
    std::set<std::string> seen;
    for (const Layer& dir : dirs) {
      PROCTOR_TRY(const std::vector<std::string> inside, beneath::names(dir.get()));
      for (const std::string& name : inside) {
        if (!seen.insert(name).second) continue;
        struct stat st {};
        if (::fstatat(dir.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0)
          return errno_error("look at " + printable(path), errno);
        if (!removed(st)) PROCTOR_CHECK_OK(refuse(path + '/' + name));
      }
    }
    return ok_status();
  }

  // Of a strict look: nothing that it is asked for, or as it must be.
  bool passed_over(Below dirs, const std::string& path, const GitTreeEntry* low,
                   const struct stat& st) const {
    if (S_ISDIR(st.st_mode)) return !in_.strict->paths.reaches(path);
    // Something else may stand where a folder of protected files must be.
    if (!in_.strict->paths.covers(path)) return low == nullptr || low->mode != git_mode::kTree;
    return dirs.front().setup || looks_like(in_.strict->vouched, path, st) || untouched(path, st);
  }

  bool is_planted(const std::string& path, const GitTreeEntry* low, std::size_t depth) const {
    if (low != nullptr && low->mode == git_mode::kTree) return false;
    if (kChangedDepthMax <= depth) return true;
    if (!in_.strict->paths.covers(path)) return false;
    return !std::ranges::binary_search(in_.strict->made, path + '/');
  }

  Status plant(const std::string& path, const GitTreeEntry* low) {
    if (low != nullptr) PROCTOR_CHECK_OK(deleted(path, *low));
    if (kChangedFilesMax <= out_.planted.size()) return beyond("too many new folders");
    out_.planted.push_back(path);
    return ok_status();
  }

  // A folder that cannot be read hides its tests as well as one that is gone.
  Status look_at_mode(int dir, const std::string& path, bool expected) {
    constexpr mode_t kOpen = 0500;
    struct stat st {};
    if (::fstat(dir, &st) != 0) return errno_error("look at " + printable(path), errno);
    if (expected && (st.st_mode & kOpen) != kOpen) out_.closed.push_back(path);
    return ok_status();
  }

  bool removed(const struct stat& st) const { return is_overlay(in_.kind) && is_whiteout(st); }

  bool untouched(const std::string& path, const struct stat& st) const {
    return in_.copied != nullptr && looks_like(*in_.copied, path, st);
  }

  Status file(int dir, const std::string& name, const std::string& path, const GitTreeEntry* low,
              const struct stat& st) {
    const bool was_folder = low != nullptr && low->mode == git_mode::kTree;
    if (was_folder) PROCTOR_CHECK_OK(deleted(path, *low));
    if (in_.strict != nullptr) return put(path, {{}, {git_mode::kBlob}});
    if (low == nullptr || was_folder) {
      PROCTOR_TRY(const bool wanted, in_.wanted(path, false));
      if (!wanted) return ok_status();
    } else if (untouched(path, st)) {
      return ok_status();
    }
    const bool link = S_ISLNK(st.st_mode);
    Change change;
    if (low != nullptr && !was_folder) change.was = {low->mode, low->id};
    if (!in_.contents) {
      PROCTOR_TRY(const bool differs, differs_by_size(was_folder ? nullptr : low, st));
      if (differs) return put(path, {change.was, {git_mode::kBlob}});
    }
    PROCTOR_TRY(const std::string bytes,
                link ? beneath::read_link(dir, name) : read_content(dir, name, path));
    change.now.mode = link                           ? git_mode::kSymlink
                      : (st.st_mode & S_IXUSR) != 0U ? git_mode::kExecutable
                                                     : git_mode::kBlob;
    change.now.id = hash_object(ObjectType::kBlob, bytes);
    if (change.was.id == change.now.id && change.was.mode == change.now.mode) return ok_status();
    if (in_.contents) {
      PROCTOR_TRY(change.now.id, db_.write(ObjectType::kBlob, bytes));
    }
    return put(path, change);
  }

  // Without contents: is a look at the sizes enough to know?  (A new file always differs.)
  Result<bool> differs_by_size(const GitTreeEntry* low, const struct stat& st) {
    if (low == nullptr) return true;
    PROCTOR_TRY(const std::uint64_t size, db_.size(low->id));
    return size != static_cast<std::uint64_t>(st.st_size);
  }

  Result<std::string> read_content(int dir, const std::string& name, const std::string& path) {
    // Without contents the size is that of a git object, which has its own limit.
    if (!in_.contents) return beneath::read_file(dir, name, std::uint64_t{4} << 30);
    auto bytes = beneath::read_file(dir, name, in_.content_max - used_);
    if (!bytes.ok() && bytes.error().code == Errc::kExhausted) {
      return beyond("changed files hold more than " + std::to_string(in_.content_max) +
                    " bytes, at " + printable(path));
    }
    if (bytes.ok()) used_ += bytes->size();
    return bytes;
  }

  ObjectDb& db_;
  const ScanInput& in_;
  ChangeSet out_;
  bool beyond_ = false;  // a limit
  std::uint64_t used_ = 0;
  std::size_t names_ = 0;
};

using Changes = std::map<std::string, Change>;
using Side = FileState Change::*;

// One side of the changes below one prefix, from `at` on, which moves past them; none: nothing was
// or is there.
Result<std::optional<ObjectId>> write_side(ObjectDb& db, Changes::const_iterator& at,
                                           const Changes& all, const std::string& prefix,
                                           Side side) {
  std::vector<GitTreeEntry> entries;
  while (at != all.end() && at->first.starts_with(prefix)) {
    const std::size_t slash = at->first.find('/', prefix.size());
    std::string name = at->first.substr(prefix.size(), slash - prefix.size());
    if (slash != std::string::npos) {
      const std::string folder = prefix + name + '/';
      PROCTOR_TRY(const std::optional<ObjectId> id, write_side(db, at, all, folder, side));
      if (id) entries.push_back({git_mode::kTree, std::move(name), *id});
      continue;
    }
    const FileState& file = at->second.*side;
    if (file.mode != 0) entries.push_back({file.mode, std::move(name), file.id});
    ++at;
  }
  if (entries.empty()) return std::optional<ObjectId>();
  PROCTOR_TRY(const ObjectId id, db.write_tree(std::move(entries)));
  return std::optional<ObjectId>(id);
}

Result<ObjectId> write_side(ObjectDb& db, const Changes& all, Side side) {
  auto at = all.begin();
  PROCTOR_TRY(const std::optional<ObjectId> id, write_side(db, at, all, "", side));
  if (id) return *id;
  return db.write_tree({});
}
}  // namespace

Result<ChangeSet> scan_changes(ObjectDb& db, const ScanInput& input) {
  Scanner scanner(db, input);
  const Status seen = scanner.all();
  // Our own want of descriptors or memory says nothing about what was left.
  if (!seen.ok() && seen.error().code == Errc::kExhausted && !scanner.is_beyond())
    return Error{Errc::kUnavailable, seen.error().detail};
  if (!seen.ok()) return seen.error();
  return scanner.take();
}

Result<ChangedTrees> write_changed(ObjectDb& db, const ChangeSet& changes) {
  PROCTOR_TRY(const ObjectId before, write_side(db, changes.changed, &Change::was));
  PROCTOR_TRY(const ObjectId after, write_side(db, changes.changed, &Change::now));
  return ChangedTrees{before, after};
}
}  // namespace proctor
