#pragma once
// Shared bare mirrors: one per repository source and host, fetched once under a lock between
// processes.  A pinned commit that is present is never fetched again, even if its source is gone.
// Owns the folder it is given: <root>/<sha256 of the source>/repo.git, .lock and fetches.log (one
// line per fetch, for people).  Blocking.  Thread-safe.
// Fails with kNotFound (no such path, unknown commit), kInvalid (not a repository, empty, wrong
// kind of object, access denied), kCorrupt (a local repository git cannot read), kUnavailable.

#include "common/base/files.h"
#include "common/base/git_program.h"
#include "common/base/result.h"
#include "worker/git/object_db.h"

namespace proctor {
class MirrorStore {
 public:
  static Result<MirrorStore> create(const fs::path& root);

  // Makes sure that the mirror of `source` holds `commit`; the value is the mirror's object folder.
  Result<fs::path> ensure(const GitSource& source, const ObjectId& commit) const;

  // The LFS content that `commit` points to, into the mirror, by git-lfs.  kUnavailable: it is not
  // installed, or the server does not answer.
  Status fetch_lfs(const GitSource& source, const ObjectId& commit) const;
  // After something read from it was damaged: looks at every object, and where that finds damage
  // sets the mirror aside (as damaged.git, until the next one), so that ensure() fetches anew.
  // true: it did.
  Result<bool> set_aside_if_damaged(const GitSource& source) const;

  const GitProgram& git() const { return git_; }
  const fs::path& root() const { return root_; }

 private:
  MirrorStore(fs::path root, GitProgram git) : root_(std::move(root)), git_(std::move(git)) {}
  Status init_mirror(const fs::path& dir) const;
  Status set_aside(const fs::path& dir) const;
  Status fetch(const GitSource& source, const ObjectId& commit, const fs::path& mirror_dir) const;
  fs::path root_;
  GitProgram git_;
};
}  // namespace proctor
