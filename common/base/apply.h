#pragma once
// Applies a patch that somebody hands in, all of it or nothing, with `git apply` under a
// configuration and a repository of our own: whatever .git, .gitattributes, hooks or settings there
// are, nothing is executed and no content is converted.  git refuses paths that are absolute, leave
// the folder, pass a symlink or enter .git.  Blocking.  Used by workers and by `proctor check`, so
// that both have one answer.
// A patch that does not fit as it is gets two more tries, told by the rung of what is returned:
// with white space of its context ignored, and merged over the contents that its `index` lines
// name.  The merge is made in a repository of its own, and its result is applied exactly, so that
// every byte that reaches the target came by the first rung's rules.
// Fails with kInvalid and git's words (which file, which line) when it does not apply, or when it
// moves the commit of a submodule, which is no file; kExhausted or kUnavailable when the disk
// failed half-way (a folder must then be thrown away).
#include <string>
#include <string_view>
#include <vector>

#include "common/base/files.h"
#include "common/base/namespaces.h"
#include "common/base/result.h"
#include "common/base/words.h"

namespace proctor {
// How a diff was made to fit: the strictest way that does.
enum class ApplyRung {
  kExact,
  kWhitespace,  // white space of its context ignored
  kThreeWay,    // merged over the contents that it names as what it was made from
};
constexpr auto words(ApplyRung) {
  return std::to_array<Word<ApplyRung>>({{"exact", ApplyRung::kExact},
                                         {"whitespace", ApplyRung::kWhitespace},
                                         {"three_way", ApplyRung::kThreeWay}});
}

struct AppliedPatch {
  ApplyRung rung = ApplyRung::kExact;
  std::vector<std::string> tried{};  // mends, then what was wrong on each rung above
};

// The start of a merge.
struct MergeBase {
  fs::path objects;  // of the snapshot
  fs::path others;   // where contents of other commits may be found; empty: nowhere
  std::string tree;  // id of the tree (or commit) that was there before anybody changed it
  fs::path work;     // a folder of ours for what the merge makes
};

// The files to patch: of a folder, or of an index.
struct PatchTarget {
  fs::path folder;                // empty: `index`
  const OwnUser* user = nullptr;  // whose the folder is; null: ours
  fs::path index;                 // its blobs are in the scratch repository or in its alternates
};

// `scratch`: a folder of ours for the repository under which patches are applied; made when
// missing.
Status prepare_apply(const fs::path& scratch);
// The same with `index` as it is at `commit`, whose objects are in the folder `objects`.
Status prepare_apply(const fs::path& scratch, const fs::path& objects, const std::string& commit,
                     const fs::path& index);
Result<AppliedPatch> apply_diff(const fs::path& scratch, const PatchTarget& target,
                                const MergeBase& base, const std::string& diff);

// `git ARGS` with `git_dir` as its repository, in the environment in which patches are applied:
// no settings of the system's, the user's or the repository's attributes.
CommandSpec apply_git(const fs::path& git_dir, std::vector<std::string> args);

// The patch as it was meant, where only one thing can be: with its last newline, and with hunk
// headers that count the lines below them.  Each mend is added to `mends`.  Pure.
std::string mended_patch(std::string diff, std::vector<std::string>& mends);
}  // namespace proctor
