#include "worker/git/mirror.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include "common/base/file_lock.h"
#include "common/base/log.h"
#include "common/base/owned.h"
#include "common/base/text.h"

namespace proctor {
namespace {
Error context_of(const GitSource& source, Error e) {
  return in_context("repository " + printable(source.shown), std::move(e));
}

// Is the commit there, as a commit?  kNotFound: not there.
Status check_present(const fs::path& objects, const ObjectId& commit) {
  struct stat st {};
  if (::stat(objects.c_str(), &st) != 0) return errno_error("mirror", errno);
  PROCTOR_TRY(const ObjectDb db, ObjectDb::open({objects}));
  if (!db.has(commit)) {
    return Error{Errc::kNotFound, "commit " + commit.hex() + " is not in the repository"};
  }
  PROCTOR_TRY(const ObjectId tree, db.tree_of_commit(commit));
  PROCTOR_TRY(const ObjectType type, db.type(tree));
  if (type != ObjectType::kTree) return Error{Errc::kCorrupt, "the commit's tree is not a tree"};
  return ok_status();
}

// A git that was killed leaves its lock files.  We hold the mirror's lock, so none is running.
void remove_stale_locks(const fs::path& repo) {
  std::error_code ec;
  for (fs::recursive_directory_iterator it(repo, ec), end; !ec && it != end; it.increment(ec)) {
    if (it->path().filename() == "objects") it.disable_recursion_pending();
    if (it->path().extension() == ".lock") fs::remove(it->path(), ec);
  }
}

void log_fetch(const fs::path& dir, const GitSource& source, std::string_view what) {
  UniqueFd fd(::open((dir / "fetches.log").c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC,
                     kPrivateFile));
  const std::string line = std::string(what) + " from " + printable(source.shown) + "\n";
  (void)!::write(fd.get(), line.data(), line.size());
}

// git takes a file that is no bundle for a link to a repository, and complains about that.
Status check_bundle(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string line;
  std::getline(file, line);
  if (line == "# v2 git bundle" || line == "# v3 git bundle") return ok_status();
  return Error{Errc::kInvalid, "not a git repository or bundle"};
}

// A local source is looked at before git is: its own words for these are long and vary.
Status check_local(const GitSource& source, const GitProgram& git) {
  std::error_code ec;
  const fs::file_status status = fs::status(source.location, ec);
  if (status.type() == fs::file_type::not_found) return Error{Errc::kNotFound, "no such path"};
  if (status.type() == fs::file_type::regular) return check_bundle(source.location);
  if (status.type() != fs::file_type::directory) {
    return Error{Errc::kInvalid, "neither a folder nor a .bundle file"};
  }
  // `ls-remote` judges the folder exactly as fetch will.
  PROCTOR_TRY(const CommandOutcome seen,
              run_command(git.command({}, {"ls-remote", "--", source.location})));
  if (seen.success()) {
    if (seen.out.empty()) return Error{Errc::kInvalid, "the repository is empty: no commit yet"};
    return ok_status();
  }
  const std::string words = git_words(seen);
  if (words.find("does not appear to be a git repository") != std::string::npos) {
    return Error{Errc::kInvalid, "not a git repository"};
  }
  return Error{Errc::kCorrupt, "git cannot read it: " + words};
}

bool mentions(const std::string& words, std::initializer_list<const char*> phrases) {
  for (const char* p : phrases) {
    if (words.find(p) != std::string::npos) return true;
  }
  return false;
}

Error judge_failed_fetch(const GitSource& source, const std::string& words) {
  if (mentions(words, {"mismatched algorithms", "unsupported object format"})) {
    return Error{Errc::kInvalid, "SHA-256 repositories are not supported"};
  }
  if (mentions(words, {"does not look like a v2 or v3 bundle", "does not appear to be a git"})) {
    return Error{Errc::kInvalid, "not a git repository or bundle"};
  }
  if (source.local && mentions(words, {"promisor remote"})) {
    return Error{Errc::kInvalid,
                 "a partial clone, which lacks files: `git fetch --refetch "
                 "--no-filter` in " +
                     source.shown};
  }
  if (mentions(words, {"No space left", "Disk quota"})) {
    return Error{Errc::kExhausted, "git fetch: " + words};
  }
  if (source.local) return Error{Errc::kCorrupt, "git cannot read it: " + words};
  if (mentions(words, {"not found", "does not exist"})) {
    return Error{Errc::kNotFound, "git fetch: " + words};
  }
  if (mentions(words, {"Authentication failed", "could not read Username", "Permission denied",
                       "could not read Password"})) {
    return Error{Errc::kInvalid, "git fetch: " + words};
  }
  return Error{Errc::kUnavailable, "git fetch: " + words};
}
}  // namespace

Result<MirrorStore> MirrorStore::create(const fs::path& root) {
  PROCTOR_CHECK_OK(make_dirs(root));
  PROCTOR_TRY(GitProgram git, GitProgram::create(root / "home"));
  return MirrorStore(root, std::move(git));
}

Result<fs::path> MirrorStore::ensure(const GitSource& source, const ObjectId& commit) const {
  const fs::path dir = root_ / source.key;
  fs::path objects = dir / "repo.git" / "objects";
  const Status early = check_present(objects, commit);
  if (early.ok()) return objects;
  const auto damaged = [](const Status& s) { return !s.ok() && s.error().code == Errc::kCorrupt; };
  if (early.error().code != Errc::kNotFound && !damaged(early))
    return context_of(source, early.error());
  if (auto home = GitProgram::create(root_ / "home"); !home.ok())  // deleted with its root
    return std::move(home).error();
  PROCTOR_TRY(const FileLock lock, FileLock::acquire(dir / "lock"));
  const Status now = check_present(objects, commit);
  if (now.ok()) return objects;  // somebody was faster
  if (damaged(now)) {
    log::warn("mirror of " + printable(source.shown) + ": " + now.error().detail +
              ": set aside and fetched anew");
    PROCTOR_CHECK_OK(set_aside(dir));
  }
  if (Status s = fetch(source, commit, dir); !s.ok()) {
    return context_of(source, std::move(s).error());
  }
  return objects;
}

Status MirrorStore::set_aside(const fs::path& dir) const {
  PROCTOR_CHECK_OK(remove_tree(dir / "damaged.git"));
  std::error_code ec;
  fs::rename(dir / "repo.git", dir / "damaged.git", ec);
  if (ec) return errno_error("set aside " + dir.string(), ec.value());
  return ok_status();
}

Result<bool> MirrorStore::set_aside_if_damaged(const GitSource& source) const {
  const fs::path dir = root_ / source.key;
  std::error_code ec;
  if (!fs::exists(dir / "repo.git", ec)) return false;
  PROCTOR_TRY(const FileLock lock, FileLock::acquire(dir / "lock"));
  PROCTOR_TRY(const CommandOutcome seen,
              run_command(git_.command(dir / "repo.git", {"fsck", "--full", "--no-dangling",
                                                          "--no-progress", "--no-reflogs"})));
  if (seen.success()) return false;
  log::warn("mirror of " + printable(source.shown) + " is damaged: " + git_words(seen) +
            ": set aside and fetched anew");
  PROCTOR_CHECK_OK(set_aside(dir));
  return true;
}

Status MirrorStore::fetch_lfs(const GitSource& source, const ObjectId& commit) const {
  const fs::path dir = root_ / source.key;
  PROCTOR_TRY(const FileLock lock, FileLock::acquire(dir / "lock"));
  PROCTOR_TRY(const CommandOutcome there, run_command(git_.command({}, {"lfs", "version"})));
  if (!there.success()) return Error{Errc::kUnavailable, "git-lfs is not installed on this host"};
  PROCTOR_TRY(const CommandOutcome outcome,
              run_command(git_.command(
                  dir / "repo.git", {"lfs", "fetch", GitProgram::kRemote, commit.hex()}, &source)));
  log_fetch(dir, source, "lfs " + commit.hex());
  if (outcome.success()) return ok_status();
  return Error{Errc::kUnavailable, "git lfs fetch: " + git_words(outcome)};
}

Status MirrorStore::init_mirror(const fs::path& dir) const {
  if (fs::exists(dir / "repo.git")) return ok_status();
  PROCTOR_CHECK_OK(remove_tree(dir / "new.git"));
  const std::string fresh = (dir / "new.git").string();
  PROCTOR_TRY(const std::string out,
              git_.run(git_.command({}, {"init", "--quiet", "--bare", "--template=", fresh})));
  std::error_code ec;
  fs::rename(fresh, dir / "repo.git", ec);
  if (ec) return errno_error("make mirror", ec.value());
  return ok_status();
}

Status MirrorStore::fetch(const GitSource& source, const ObjectId& commit,
                          const fs::path& mirror_dir) const {
  if (source.local) PROCTOR_CHECK_OK(check_local(source, git_));
  const fs::path repo = mirror_dir / "repo.git";
  const bool first = !fs::exists(repo);
  PROCTOR_CHECK_OK(init_mirror(mirror_dir));
  remove_stale_locks(repo);
  // A first fetch takes the branches and tags, since most pins are on them; a later one asks for
  // the commit.  Each falls back to the other, then to every reference there is.
  const std::vector<std::string> branches = {"+refs/heads/*:refs/heads/*",
                                             "+refs/tags/*:refs/tags/*"};
  const std::vector<std::string> pin = {commit.hex() + ":refs/proctor/" + commit.hex()};
  const std::vector<std::string> all = {"+refs/*:refs/remotes/all/*"};
  const std::array<const std::vector<std::string>*, 3> plan = {first ? &branches : &pin,
                                                               first ? &pin : &branches, &all};
  std::string words;
  bool reached = false;
  for (const auto* refspecs : plan) {
    // No remote is recorded, so a token in the URL never reaches the mirror's configuration.
    std::vector<std::string> args = {"fetch",
                                     "--quiet",
                                     "--no-tags",
                                     "--no-auto-gc",
                                     "--update-shallow",
                                     "--no-write-fetch-head",
                                     "--no-recurse-submodules",
                                     "--",
                                     GitProgram::kRemote};
    args.insert(args.end(), refspecs->begin(), refspecs->end());
    PROCTOR_TRY(const CommandOutcome outcome,
                run_command(git_.command(repo, std::move(args), &source)));
    log_fetch(mirror_dir, source, refspecs->front());
    const bool by_id = refspecs == &pin;
    if (outcome.success()) reached = true;
    if (!outcome.success() && !by_id) words = git_words(outcome);
    const Status present = check_present(repo / "objects", commit);
    if (present.ok() || present.error().code != Errc::kNotFound) return present;
    // A server that cannot be reached will not be reached with other refspecs either.
    if (!outcome.success() && !by_id && !source.local) break;
  }
  if (!reached) return judge_failed_fetch(source, words);
  return Error{Errc::kNotFound, "commit " + commit.hex() + " is not in the repository"};
}
}  // namespace proctor
