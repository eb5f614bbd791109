#pragma once
// Repositories that somebody has put into folders of a snapshot: git, called there, would obey
// their settings.  Blocking; thread-safe.  Fails with errno_error.
#include <string>
#include <string_view>
#include <vector>

#include "common/base/files.h"
#include "common/base/result.h"

namespace proctor {

inline constexpr std::string_view kDotGit = ".git";
// Is it such a folder, or below one, the top one's too?
bool is_of_git(std::string_view path);

// Paths named ".git" in `dir` (the upper layer of an overlay, or a whole tree) whose folder is one
// of `tree`, the snapshot's checkout; not the one at the top.  And "HEAD" there, where such a
// folder is a bare repository by files that the snapshot does not have: without it it is none.
// Sorted. In an upper layer a path may also say that one was removed.  `links`: takes the folders
// of the snapshot that are links in `dir`; null: nobody asks.
Result<std::vector<std::string>> nested_git(const fs::path& dir, const fs::path& tree,
                                            std::vector<std::string>* links = nullptr);

inline constexpr const char* kGitHead = "HEAD";
// Is a folder with these names a repository without the name ".git"?
bool looks_bare(const std::vector<std::string>& names);

}  // namespace proctor
