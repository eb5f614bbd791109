#include "worker/git/submodules.h"

#include <algorithm>

#include "common/base/parse.h"
#include "common/base/text.h"
#include "worker/git/object_db.h"

namespace proctor {
namespace {
// path -> url of every entry of .gitmodules.  git parses its own format; includes stay off.
Result<std::map<std::string, std::string>> read_gitmodules(const GitProgram& git,
                                                           const fs::path& git_dir,
                                                           const ObjectId& blob) {
  PROCTOR_TRY(const std::string out,
              git.run(git.command(
                  git_dir, {"config", "--no-includes", "-z", "--blob", blob.hex(), "--list"})));
  std::map<std::string, std::string> paths;
  std::map<std::string, std::string> urls;
  for (std::string_view rest = out; !rest.empty();) {
    const std::string_view item = take_until(rest, '\0');
    const std::size_t line = item.find('\n');
    const std::string_view key = item.substr(0, line);
    const std::size_t dot = key.rfind('.');
    if (line == std::string_view::npos || dot == std::string_view::npos) continue;
    const std::string name(key.substr(0, dot));
    const std::string value(item.substr(line + 1));
    if (key.substr(dot) == ".path") paths[name] = value;
    if (key.substr(dot) == ".url") urls[name] = value;
  }
  std::map<std::string, std::string> by_path;
  for (const auto& [name, path] : paths) {
    if (const auto it = urls.find(name); it != urls.end()) by_path[path] = it->second;
  }
  return by_path;
}

struct Graft {
  const MirrorStore& mirrors;
  const fs::path& scratch;
  std::vector<fs::path>& objects;
  std::map<std::string, ObjectId>& taken;
  std::size_t count = 0;

  // `at`: where in the whole tree, with a slash at its end.
  Result<ObjectId> run(const GitSource& source, const ObjectId& commit, const std::string& at,
                       std::size_t depth) {
    if (kSubmoduleDepthMax < depth) return Error{Errc::kExhausted, "submodules: nested too deep"};
    PROCTOR_TRY(const fs::path own, mirrors.ensure(source, commit));
    if (std::find(objects.begin(), objects.end(), own) == objects.end()) objects.push_back(own);
    PROCTOR_TRY(ObjectDb plain, ObjectDb::open({own}));
    PROCTOR_TRY(const ObjectId tree, plain.tree_of_commit(commit));
    PROCTOR_TRY(const std::vector<ListedEntry> entries, list_tree(plain, tree));
    std::map<std::string, ObjectId> links;
    for (const ListedEntry& e : entries) {
      if (e.mode == git_mode::kGitlink) links[e.path] = e.id;
    }
    if (links.empty()) return tree;
    std::map<std::string, std::string> urls;
    if (const auto file = TreeCache().entry_at(plain, tree, ".gitmodules"); file.ok() && *file) {
      PROCTOR_TRY(urls, read_gitmodules(mirrors.git(), own.parent_path(), (*file)->id));
    }
    std::map<std::string, ObjectId> replaced;
    for (const auto& [path, id] : links) {
      const std::string what = "submodule " + printable(path);
      if (kSubmodulesMax < ++count) return Error{Errc::kExhausted, "too many submodules"};
      const auto url = urls.find(path);
      if (url == urls.end()) return Error{Errc::kInvalid, what + ": no url in .gitmodules"};
      auto from = resolve_submodule_url(source, url->second);
      if (!from.ok()) return in_context(what, from.error());
      // A repository on the network must not make this host read its own folders.
      if (from->local && !source.local) {
        return Error{Errc::kInvalid, what + ": a local path in a remote repository's .gitmodules"};
      }
      auto sub = run(*from, id, at + path + '/', depth + 1);
      if (!sub.ok()) return in_context(what, sub.error());
      replaced[path] = *sub;
      taken[at + path] = id;
    }
    PROCTOR_TRY(ObjectDb db, ObjectDb::open(objects, scratch));
    return replace_in_tree(db, tree, ObjectType::kTree, replaced);
  }
};
}  // namespace

Result<ObjectId> graft_submodules(const MirrorStore& mirrors, const GitSource& source,
                                  const ObjectId& commit, const fs::path& scratch,
                                  std::vector<fs::path>& objects,
                                  std::map<std::string, ObjectId>& taken) {
  Graft graft{mirrors, scratch, objects, taken};
  return graft.run(source, commit, "", 0);
}
}  // namespace proctor
