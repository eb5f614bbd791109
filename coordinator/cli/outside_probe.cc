#include "coordinator/cli/outside_probe.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "common/base/apply.h"
#include "common/base/digest.h"
#include "common/base/files.h"
#include "common/base/git_program.h"
#include "common/base/owned.h"
#include "common/images/image_store.h"
#include "coordinator/cli/engine_probe.h"

namespace proctor::cli {
namespace {

constexpr std::chrono::milliseconds kGitTimeout(120'000);

// A scratch folder that is locked for as long as it is used.  Those of killed checks are removed:
// their locks are free.  The lock on the parent is for the moment in which a new one has none yet.
class Scratch {
 public:
  static Result<Scratch> create() {
    std::error_code ec;
    const fs::path parent = fs::temp_directory_path(ec);
    if (ec) return errno_error("temporary folder", ec.value());
    const UniqueFd turn = open_folder(parent);
    if (!turn.valid()) return errno_error("open " + parent.string(), errno);
    if (takes_turn(turn)) sweep(parent);
    PROCTOR_TRY(TempDir dir, TempDir::create(kPrefix, parent));
    UniqueFd lock = open_folder(dir.path());
    if (!lock.valid() || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
      return errno_error("lock " + dir.path().string(), errno);
    return Scratch(std::move(dir), std::move(lock));
  }
  const fs::path& path() const { return dir_.path(); }

 private:
  static constexpr const char* kPrefix = "proctor-check";
  Scratch(TempDir dir, UniqueFd lock) : lock_(std::move(lock)), dir_(std::move(dir)) {}
  static UniqueFd open_folder(const fs::path& path) {
    return UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  }
  // Anybody may lock this folder for as long as he likes: then nothing is swept.
  static bool takes_turn(const UniqueFd& folder) {
    for (int i = 0; i < 100; ++i) {
      if (::flock(folder.get(), LOCK_EX | LOCK_NB) == 0) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  static void sweep(const fs::path& parent) {
    std::error_code ec;
    std::vector<fs::path> abandoned;
    for (fs::directory_iterator it(parent, ec), end; !ec && it != end; it.increment(ec)) {
      if (!it->path().filename().string().starts_with(std::string(kPrefix) + ".")) continue;
      const UniqueFd fd = open_folder(it->path());
      struct stat st {};
      if (fd.valid() && ::fstat(fd.get(), &st) == 0 && st.st_uid == ::geteuid() &&
          ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0)
        abandoned.push_back(it->path());
    }
    for (const fs::path& at : abandoned) (void)remove_tree(at);
  }
  UniqueFd lock_;
  TempDir dir_;  // goes first
};

// A line that moves on a terminal, once it takes longer than anybody waits without asking.
class Progress {
 public:
  explicit Progress(std::size_t all) : all_(all) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() {
    if (shown_) std::fputs("\r\x1b[K", stderr);
  }
  void one_more() {
    constexpr std::chrono::milliseconds kSilent(1'000), kEvery(200);
    ++done_;
    const auto now = std::chrono::steady_clock::now();
    if (!terminal_ || now - begun_ < kSilent || now - last_ < kEvery) return;
    last_ = now;
    shown_ = true;
    std::fprintf(stderr, "\r\x1b[Klooking at reference patches: %zu of %zu", done_, all_);
    std::fflush(stderr);
  }

 private:
  using Clock = std::chrono::steady_clock;
  const bool terminal_ = ::isatty(STDERR_FILENO) == 1;
  const std::size_t all_;
  const Clock::time_point begun_ = Clock::now();
  Clock::time_point last_{};
  std::size_t done_ = 0;
  bool shown_ = false;
};

class RealProbe : public OutsideProbe {
 public:
  RealProbe(std::vector<std::string>& unasked, std::size_t patches)
      : unasked_(unasked), progress_(patches) {}
  Status commit_exists(const std::string& source, const fs::path& base,
                       const std::string& commit) const override {
    PROCTOR_TRY(const GitSource from, parse_source(source, base));
    PROCTOR_TRY(const fs::path found, repository(from, commit));
    return ok_status();
  }
  Status image_resolves(const std::string& image) const override {
    // Workers here run it from the store, without an engine.
    const auto store = ImageStore::open(default_image_store());
    if (store.ok() && store->find(image).ok()) return ok_status();
    return engine_has(image);
  }
  Status base_resolves(const std::string& image) const override {
    Status status = engine_has(image);
    // "name@sha256:ID" is the engine's own spelling only for what came from a registry.
    if (!status.ok() && image.find('@') != std::string::npos)
      status = engine_has(image.substr(image.find('@') + 1));
    return status;
  }
  Status engine_has(const std::string& image) const {
    Status status = engine_has_image(image);
    if (!status.ok() && status.error().code == Errc::kUnavailable)
      unasked_.push_back(status.error().detail);
    return status;
  }
  Status patch_applies(const Repository& of, const fs::path& base,
                       const std::string& patch) const override {
    progress_.one_more();
    PROCTOR_TRY(const GitSource from, parse_source(of.source, base));
    PROCTOR_TRY(const fs::path repo, repository(from, of.commit));
    const auto [known, is_new] = applied_.try_emplace(
        {repo.string() + '\n' + of.commit + (of.submodules ? "+" : ""), sha256(patch)},
        ok_status());
    if (is_new) known->second = look_whether(repo, from, of, patch);
    return known->second;
  }

 private:
  // One commit as an index of a repository of our own, to which patches are applied.
  struct Tree {
    Scratch scratch;
    std::string commit;
    fs::path objects;  // of the repository that has the commit
    fs::path git_dir() const { return scratch.path() / "git"; }
    fs::path index() const { return scratch.path() / "index"; }
    std::string id{};  // of its files
    Result<std::string> git(std::vector<std::string> args, const fs::path& on = {}) const {
      CommandSpec spec = apply_git(git_dir(), std::move(args));
      (*spec.env)["GIT_INDEX_FILE"] = (on.empty() ? index() : on).string();
      return run_for_output(spec);
    }
    // Blobs that are absent, as those of a partial clone, are no matter here.
    Result<std::string> tree_of(const fs::path& on) const {
      return git({"write-tree", "--missing-ok"}, on);
    }
  };

  // Made once for all contracts of a commit: a process and a folder less for each of thousands.
  Result<const Tree*> tree(const fs::path& repo, const GitSource& from, const Repository& of,
                           bool submodules) const {
    const auto key = std::pair(repo.string(), of.commit + (submodules ? "+" : ""));
    if (const auto known = trees_.find(key); known != trees_.end()) return &known->second;
    PROCTOR_TRY(std::string objects, git(repo, {"rev-parse", "--git-path", "objects"}));
    while (objects.ends_with('\n')) objects.pop_back();
    PROCTOR_TRY(Scratch scratch, Scratch::create());
    Tree made{std::move(scratch), of.commit, objects};
    PROCTOR_CHECK_OK(prepare_apply(made.git_dir(), made.objects, of.commit, made.index()));
    if (submodules) PROCTOR_CHECK_OK(add_submodules(made, from));
    PROCTOR_TRY(made.id, made.tree_of(made.index()));
    return &trees_.emplace(key, std::move(made)).first->second;
  }

  // Puts the files of submodules into the index, as they are in a worker's tree.
  Status add_submodules(const Tree& tree, const GitSource& from) const {
    const std::string files = (tree.scratch.path() / "files").string();
    PROCTOR_CHECK_OK(git({}, {"init", "-q", files}));
    PROCTOR_CHECK_OK(write_file(files + "/.git/objects/info/alternates",
                                tree.objects.string() + "\n", Durability::kLazy));
    std::string said;
    for (const std::vector<std::string>& args :
         {std::vector<std::string>{"config", "remote.origin.url", from.address},
          {"read-tree", tree.commit},
          {"checkout-index", "-q", "--", ".gitmodules"},
          {"submodule", "--quiet", "update", "--init", "--recursive"},
          {"submodule", "--quiet", "foreach", "--recursive",
           "printf '%s\\0%s\\0%s\\0' \"$displaypath\" \"$sha1\" \"$(cd \"$(git "
           "rev-parse --git-path objects)\" && pwd)\""}}) {
      PROCTOR_TRY(said, git({}, args, &from, files));
    }
    std::vector<std::string> each;  // path, commit and objects of one after the other
    for (std::size_t at = 0, end; (end = said.find('\0', at)) != std::string::npos; at = end + 1)
      each.push_back(said.substr(at, end - at));
    std::string alternates = tree.objects.string() + "\n";
    for (std::size_t i = 2; i < each.size(); i += 3) alternates += each[i] + "\n";
    PROCTOR_CHECK_OK(
        write_file(tree.git_dir() / "objects/info/alternates", alternates, Durability::kLazy));
    for (std::size_t i = 2; i < each.size(); i += 3) {
      PROCTOR_CHECK_OK(tree.git({"update-index", "--force-remove", "--", each[i - 2]}));
      PROCTOR_CHECK_OK(tree.git({"read-tree", "--prefix=" + each[i - 2] + "/", each[i - 1]}));
    }
    return ok_status();
  }

  // As a worker does it.  Submodules are fetched only for a patch that does not fit without them.
  Status look_whether(const fs::path& repo, const GitSource& from, const Repository& of,
                      const std::string& patch) const {
    PROCTOR_TRY(const Tree* at, tree(repo, from, of, false));
    Status fits = changes(*at, patch);
    if (fits.ok() || fits.error().code != Errc::kInvalid || !of.submodules) return fits;
    PROCTOR_TRY(at, tree(repo, from, of, true));
    return changes(*at, patch);
  }

  static Status changes(const Tree& at, const std::string& patch) {
    const fs::path index = at.scratch.path() / "patched";
    std::error_code ec;
    fs::copy_file(at.index(), index, fs::copy_options::overwrite_existing, ec);
    if (ec) return errno_error("copy " + at.index().string(), ec.value());
    PROCTOR_TRY(const AppliedPatch applied,
                apply_diff(at.git_dir(), {{}, nullptr, index},
                           {at.objects, {}, at.commit, at.scratch.path()}, patch));
    PROCTOR_TRY(const std::string patched, at.tree_of(index));
    if (patched != at.id) return ok_status();
    return Error{Errc::kInvalid, patch.empty() ? "it is empty" : "it changes nothing"};
  }
  // A git directory on this machine that holds the commit.  URLs and bundles are fetched into a
  // scratch repository, once.
  Result<fs::path> repository(const GitSource& from, const std::string& commit) const {
    const std::pair key{from.location, commit};
    const auto known = found_.find(key);
    if (known != found_.end()) return known->second;
    Result<fs::path> found = look(from, commit);
    found_.emplace(key, found);
    return found;
  }

  Result<fs::path> look(const GitSource& from, const std::string& commit) const {
    std::error_code ec;
    if (from.local && !fs::exists(from.location, ec))
      return Error{Errc::kNotFound, "there is no repository at " + from.shown};
    if (from.local && fs::is_directory(from.location, ec)) {
      Result<std::string> dir = git({}, {"-C", from.location, "rev-parse", "--absolute-git-dir"});
      if (!dir.ok()) return Error{Errc::kInvalid, from.shown + " is not a git repository"};
      std::string text = *dir;
      while (!text.empty() && text.back() == '\n') text.pop_back();
      if (!git(text, {"cat-file", "-e", commit + "^{commit}"}).ok())
        return Error{Errc::kNotFound, from.shown + " has no commit " + commit};
      PROCTOR_CHECK_OK(has_all_files(text, commit));
      return fs::path(text);
    }
    PROCTOR_TRY(Scratch scratch, Scratch::create());
    const fs::path dir = scratch.path() / "repo.git";
    PROCTOR_CHECK_OK(git({}, {"init", "-q", "--bare", dir.string()}));
    const std::string remote = GitProgram::kRemote;
    if (!git(dir, {"fetch", "-q", "--depth", "1", remote, commit}, &from).ok())
      if (const auto all = git(dir, {"fetch", "-q", remote, "+refs/*:refs/*"}, &from); !all.ok())
        return Error{Errc::kUnavailable, "fetch " + from.shown + ": " + all.error().detail};
    if (!git(dir, {"cat-file", "-e", commit + "^{commit}"}).ok())
      return Error{Errc::kNotFound, from.shown + " has no commit " + commit};
    scratches_.push_back(std::move(scratch));
    return dir;
  }

  // Its output.  In the folder `in`, where that is not empty.
  Result<std::string> git(const fs::path& git_dir, std::vector<std::string> args,
                          const GitSource* remote = nullptr, const fs::path& in = {}) const {
    if (!git_) {
      PROCTOR_TRY(Scratch home, Scratch::create());
      PROCTOR_TRY(git_, GitProgram::create(home.path()));
      scratches_.push_back(std::move(home));
    }
    CommandSpec spec = git_->command(git_dir, std::move(args), remote);
    if (!in.empty()) spec.cwd = in;
    spec.timeout = kGitTimeout;
    return git_->run(spec);
  }

  // A partial clone leaves out files until somebody looks at them, and gives none to a worker.
  Status has_all_files(const std::string& git_dir, const std::string& commit) const {
    if (!git(git_dir,
             {"config", "--get-regexp", "^(extensions\\.partialclone|remote\\..*\\.promisor)$"})
             .ok())
      return ok_status();
    PROCTOR_TRY(const std::string lacking, git(git_dir, {"rev-list", "--objects", "--no-walk",
                                                         "--quiet", "--missing=print", commit}));
    if (lacking.empty()) return ok_status();
    return Error{Errc::kInvalid, git_dir + " is a partial clone, which lacks files of commit " +
                                     commit + ": `git fetch --refetch --no-filter` there"};
  }

  std::vector<std::string>& unasked_;
  // Answers of this one check; it is used by one thread.
  mutable std::map<std::pair<std::string, std::string>, Result<fs::path>> found_;
  mutable std::optional<GitProgram> git_;
  mutable std::vector<Scratch> scratches_;
  mutable std::map<std::pair<std::string, std::string>, Tree> trees_;
  mutable std::map<std::pair<std::string, Digest>, Status> applied_;
  mutable Progress progress_;
};

}  // namespace

std::unique_ptr<OutsideProbe> make_outside_probe(std::vector<std::string>& unasked,
                                                 std::size_t patches) {
  return std::make_unique<RealProbe>(unasked, patches);
}

}  // namespace proctor::cli
