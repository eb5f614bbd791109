#pragma once
// Files that decide what trusted programs do, put back before a check: repositories that git would
// obey, a home.
#include <string>
#include <string_view>
#include <vector>

#include "common/base/files.h"
#include "common/base/result.h"
#include "worker/workspace/copy_tree.h"
#include "worker/workspace/workspace.h"

namespace proctor {
// Repositories that somebody has put into folders of a snapshot: git, called there, would obey
// their settings.  Blocking; thread-safe.  Fails with errno_error.

inline constexpr std::string_view kDotGit = ".git";
// Is it such a folder, or below one, the top one's too?
bool is_of_git(std::string_view path);

// Paths named ".git" in `dir` (the upper layer of an overlay, or a whole tree) whose folder is one
// of `tree`, the snapshot's checkout; not the one at the top.  And "HEAD" there, where such a
// folder is a bare repository by files that the snapshot does not have: without it it is none.
// Sorted.  In an upper layer a path may also say that one was removed.  `links`: takes the folders
// of the snapshot that are links in `dir`; null: nobody asks.
Result<std::vector<std::string>> nested_git(const fs::path& dir, const fs::path& tree,
                                            std::vector<std::string>* links = nullptr);

// Folders of a snapshot that a candidate has replaced by links: git, called there, looks for its
// repository where the link leads and above, and would obey it.  Requires: nothing runs in these
// folders meanwhile.  Blocking; thread-safe.  Fails like the file system.

// For each of `places`, of which the first is the workspace: what is named ".git" in a folder to
// which a link leads or above it, and "HEAD" of what is a bare repository there; sorted.  `links`:
// paths of the workspace, folders in `tree`.  Where a link leads is read as commands read it; who
// leads out of all places leads to what no command finds as it was left; a link that leads through
// /proc, /dev or /sys, by which every place is to be reached again, is named itself.
Result<std::vector<std::vector<std::string>>> linked_git(const std::vector<std::string>& links,
                                                         const fs::path& tree,
                                                         const std::vector<SeenAt>& places);

// A folder or file that is no part of the snapshot's tree but decides what trusted programs do:
// git's own folder, and a home.  Before a check it is as it was when none but trusted commands had
// run, whatever the candidate's left there.  Links are removed and never followed.  Blocking; one
// thread.  Fails with kExhausted beyond the limits of changes.h, else like the file system.
struct TrustedPart {
  std::string path;  // below the folder that candidates write to
  fs::path before;   // a folder that has the path as it was at first; empty: nothing was there
};

// The differences of `dir` from `before`, in the words of MadeUnder::paths; sorted.
Result<std::vector<std::string>> list_part(const fs::path& dir, const TrustedPart& part);

// Makes it what `before` has and what `made` made of that.  Says what was put back or removed,
// sorted; of a folder that goes as a whole, its name alone; a link on the way goes.  `known`: files
// by path, as they were when they were last found right; more are added.
Result<std::vector<std::string>> put_part_back(const fs::path& dir, const TrustedPart& part,
                                               const MadeUnder& made, CopiedFiles& known);

// The same for all that is in a folder.
Result<std::vector<std::string>> put_all_back(const fs::path& dir, const fs::path& before,
                                              CopiedFiles& known);
}  // namespace proctor
