#include "worker/git/tree_list.h"

#include "common/base/text.h"

namespace proctor {
namespace {

struct Walk {
  const ObjectDb& db;
  std::vector<ListedEntry>& out;
  std::vector<ObjectId>* trees;
  std::size_t folders = 0;

  Status visit(const ObjectId& tree, const std::string& prefix, std::size_t depth) {
    if (kTreeDepthMax < depth) return Error{Errc::kExhausted, "tree: nested too deep"};
    if (kTreeFilesMax < ++folders) return Error{Errc::kExhausted, "tree: too many folders"};
    if (trees != nullptr) trees->push_back(tree);
    PROCTOR_TRY(const std::vector<GitTreeEntry> entries, db.tree(tree));
    for (const GitTreeEntry& e : entries) {
      std::string path = prefix + e.name;
      if (kTreePathBytes < path.size()) {
        return Error{Errc::kExhausted, "tree: path too long: " + printable(path, 80)};
      }
      if (e.mode == git_mode::kTree) {
        PROCTOR_CHECK_OK(visit(e.id, path + '/', depth + 1));
        continue;
      }
      if (kTreeFilesMax <= out.size()) return Error{Errc::kExhausted, "tree: too many files"};
      out.push_back({std::move(path), e.mode, e.id});
    }
    return ok_status();
  }
};

}  // namespace

Result<std::vector<ListedEntry>> list_tree(const ObjectDb& db, const ObjectId& tree,
                                           std::vector<ObjectId>* trees) {
  std::vector<ListedEntry> out;
  Walk walk{db, out, trees};
  PROCTOR_CHECK_OK(walk.visit(tree, "", 0));
  return out;
}

Result<GitTreeEntry> entry_at(const ObjectDb& db, const ObjectId& tree, std::string_view path) {
  ObjectId at = tree;
  while (true) {
    const std::size_t slash = path.find('/');
    const std::string_view name = path.substr(0, slash);
    Result<std::vector<GitTreeEntry>> listed = db.tree(at);
    // A tree that is named and cannot be read (a host without descriptors) is no path that is not
    // there, for which a caller would take away what stands in its place.
    if (!listed.ok() && listed.error().code == Errc::kNotFound)
      return Error{Errc::kUnavailable, listed.error().detail};
    PROCTOR_TRY(std::vector<GitTreeEntry> entries, std::move(listed));
    GitTreeEntry* found = nullptr;
    for (GitTreeEntry& e : entries) {
      if (e.name == name) found = &e;
    }
    if (found == nullptr) return Error{Errc::kNotFound, "no " + printable(path)};
    if (slash == std::string_view::npos) return std::move(*found);
    if (found->mode != git_mode::kTree) return Error{Errc::kNotFound, "no " + printable(path)};
    at = found->id;
    path.remove_prefix(slash + 1);
  }
}

}  // namespace proctor
