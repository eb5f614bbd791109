#include "worker/workspace/ignore_rules.h"

#include <git2.h>

#include <algorithm>
#include <array>

#include "common/base/owned.h"
#include "common/base/text.h"
#include "worker/git/object_db.h"
#include "worker/workspace/snapshot.h"

namespace proctor {
namespace {

using GitRepository = Owned<git_repository, git_repository_free>;

constexpr std::array<std::string_view, 5> kFolders = {"__pycache__", ".pytest_cache", ".mypy_cache",
                                                      ".ruff_cache", "node_modules"};

// Also inside of such a folder.
bool is_common_product(std::string_view path, bool folder) {
  for (std::string_view rest = path;;) {
    const std::size_t end = rest.find('/');
    const std::string_view name = rest.substr(0, end);
    const bool last = end == std::string_view::npos;
    if ((!last || folder) && std::ranges::find(kFolders, name) != kFolders.end()) return true;
    if (last) return !folder && (name.ends_with(".pyc") || name == ".DS_Store");
    rest.remove_prefix(end + 1);
  }
}

}  // namespace

struct IgnoreRules::State {
  GitRepository repository;
};

IgnoreRules::IgnoreRules(const Snapshot& snapshot, std::vector<std::string> kept)
    : work_(snapshot.tree_dir),
      git_(snapshot_git_layer(snapshot) / ".git"),
      kept_(std::move(kept)) {}
IgnoreRules::~IgnoreRules() = default;

Result<bool> IgnoreRules::ignored(const std::string& path, bool folder) {
  if (folder ? any_glob_reaches(kept_, path) : any_glob_covers(kept_, path)) return false;
  if (is_common_product(path, folder)) return true;
  if (!state_) {
    start_libgit2();
    auto state = std::make_unique<State>();
    int rc = git_repository_open_ext(OutPtr(state->repository), git_.c_str(),
                                     GIT_REPOSITORY_OPEN_NO_SEARCH, nullptr);
    if (rc == 0) rc = git_repository_set_workdir(state->repository.get(), work_.c_str(), 0);
    if (rc != 0) return libgit2_error("ignore rules", rc);
    state_ = std::move(state);
  }
  int ignored = 0;
  const std::string asked = folder ? path + '/' : path;
  const int rc = git_ignore_path_is_ignored(&ignored, state_->repository.get(), asked.c_str());
  if (rc != 0) return libgit2_error("ignore rules", rc);
  return ignored != 0;
}

}  // namespace proctor
