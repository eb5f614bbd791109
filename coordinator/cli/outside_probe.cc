#include "coordinator/cli/outside_probe.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <map>
#include <set>
#include <thread>

#include "common/base/digest.h"
#include "common/base/files.h"
#include "common/base/subprocess.h"
#include "common/base/unique_fd.h"
#include "common/images/image_store.h"
#include "coordinator/cli/engine_probe.h"

namespace proctor::cli {
namespace {

constexpr std::chrono::milliseconds kGitTimeout(120'000);

// git as a tool only: no system or user settings, no prompts, nothing of the repository executed.
CommandSpec git(std::vector<std::string> args) {
  CommandSpec spec;
  spec.argv = {"git",
               "-c",
               "safe.directory=*",
               "-c",
               "core.hooksPath=/dev/null",
               "-c",
               "core.fsmonitor=false",
               "-c",
               "protocol.ext.allow=never"};
  spec.argv.insert(spec.argv.end(), args.begin(), args.end());
  spec.timeout = kGitTimeout;
  return spec;
}

bool is_url(const std::string& source) {
  return source.find("://") != std::string::npos ||
         (source.find(':') != std::string::npos && source.find('/') != 0 && source[0] != '.');
}

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
    PROCTOR_TRY(const fs::path found, repository(source, base, commit));
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
  Result<bool> patch_applies(const std::string& source, const fs::path& base,
                             const std::string& commit, const std::string& patch) const override {
    progress_.one_more();
    PROCTOR_TRY(const fs::path repo, repository(source, base, commit));
    if (patch.empty()) return true;  // changes nothing
    const auto [known, is_new] =
        applied_.try_emplace({repo.string() + '\n' + commit, sha256(patch)}, false);
    if (is_new) known->second = look_whether(repo, commit, patch);
    return known->second;
  }

 private:
  // One tree as an index, that patches are held against without changing it, and room for what a
  // merge makes, which is written there and not into the repository.
  struct Tree {
    Scratch scratch;
    fs::path repository;
    std::string index() const { return (scratch.path() / "index").string(); }
    CommandSpec git_with(const std::string& index, std::vector<std::string> args) const {
      args.insert(args.begin(), {"--git-dir", repository.string()});
      CommandSpec spec = git(std::move(args));
      spec.argv.insert(spec.argv.begin(), {"env", "GIT_INDEX_FILE=" + index});
      return spec;
    }
  };

  // Made once for all contracts of a commit: a process and a folder less for each of thousands.
  Result<const Tree*> tree(const fs::path& repo, const std::string& commit) const {
    const auto key = std::pair(repo.string(), commit);
    if (const auto known = trees_.find(key); known != trees_.end()) return &known->second;
    PROCTOR_TRY(Scratch scratch, Scratch::create());
    Tree made{std::move(scratch), repo};
    PROCTOR_TRY(const std::string ignored,
                run_for_output(made.git_with(made.index(), {"read-tree", commit})));
    return &trees_.emplace(key, std::move(made)).first->second;
  }

  // By the rungs by which a worker applies it (worker/workspace/apply.h).
  Result<bool> look_whether(const fs::path& repo, const std::string& commit,
                            const std::string& patch) const {
    PROCTOR_TRY(const Tree* const at, tree(repo, commit));
    for (const std::vector<std::string>& rung :
         {std::vector<std::string>{"apply", "--cached", "--check", "-"},
          {"apply", "--cached", "--check", "--ignore-whitespace", "-"}}) {
      CommandSpec apply = at->git_with(at->index(), rung);
      apply.stdin_bytes = patch;
      PROCTOR_TRY(const CommandOutcome outcome, run_command(apply));
      if (outcome.success()) return true;
    }
    return merges(*at, patch);
  }

  static Result<bool> merges(const Tree& at, const std::string& patch) {
    const std::string made = (at.scratch.path() / "objects").string();
    const std::string index = at.index() + ".merged";
    PROCTOR_CHECK_OK(make_dirs(made));
    std::error_code ec;
    fs::copy_file(at.index(), index, fs::copy_options::overwrite_existing, ec);
    if (ec) return errno_error("copy " + at.index(), ec.value());
    CommandSpec apply = at.git_with(index, {"apply", "--cached", "--3way", "-"});
    apply.argv.insert(apply.argv.begin() + 1,
                      {"GIT_OBJECT_DIRECTORY=" + made,
                       "GIT_ALTERNATE_OBJECT_DIRECTORIES=" + (at.repository / "objects").string()});
    apply.stdin_bytes = patch;
    PROCTOR_TRY(const CommandOutcome outcome, run_command(apply));
    return outcome.success();
  }

  // A git directory on this machine that holds the commit.  URLs and bundles are fetched into a
  // scratch repository, once.
  Result<fs::path> repository(const std::string& source, const fs::path& base,
                              const std::string& commit) const {
    const std::pair key{is_url(source) ? source : (base / source).lexically_normal().string(),
                        commit};
    const auto known = found_.find(key);
    if (known != found_.end()) return known->second;
    Result<fs::path> found = look(source, base, commit);
    found_.emplace(key, found);
    return found;
  }

  Result<fs::path> look(const std::string& source, const fs::path& base,
                        const std::string& commit) const {
    const bool url = is_url(source);
    const fs::path path = url ? fs::path(source) : base / source;
    std::error_code ec;
    if (!url && !fs::exists(path, ec))
      return Error{Errc::kNotFound, "there is no repository at " + path.string()};
    if (!url && fs::is_directory(path, ec)) {
      Result<std::string> dir =
          run_for_output(git({"-C", path.string(), "rev-parse", "--absolute-git-dir"}));
      if (!dir.ok()) return Error{Errc::kInvalid, path.string() + " is not a git repository"};
      std::string text = *dir;
      while (!text.empty() && text.back() == '\n') text.pop_back();
      PROCTOR_TRY(const CommandOutcome has,
                  run_command(git({"--git-dir", text, "cat-file", "-e", commit + "^{commit}"})));
      if (!has.success()) return Error{Errc::kNotFound, path.string() + " has no commit " + commit};
      return fs::path(text);
    }
    PROCTOR_TRY(Scratch scratch, Scratch::create());
    const std::string dir = (scratch.path() / "repo.git").string();
    PROCTOR_TRY(const std::string made, run_for_output(git({"init", "-q", "--bare", dir})));
    const std::string from = url ? source : path.string();
    PROCTOR_TRY(const CommandOutcome by_id,
                run_command(git({"--git-dir", dir, "fetch", "-q", "--depth", "1", from, commit})));
    if (!by_id.success()) {
      PROCTOR_TRY(const CommandOutcome all,
                  run_command(git({"--git-dir", dir, "fetch", "-q", from, "+refs/*:refs/*"})));
      if (!all.success())
        return Error{Errc::kUnavailable, "fetch " + source + ": " + all.describe()};
    }
    PROCTOR_TRY(const CommandOutcome has,
                run_command(git({"--git-dir", dir, "cat-file", "-e", commit + "^{commit}"})));
    if (!has.success()) return Error{Errc::kNotFound, source + " has no commit " + commit};
    scratches_.push_back(std::move(scratch));
    return fs::path(dir);
  }

  std::vector<std::string>& unasked_;
  // Answers of this one check; it is used by one thread.
  mutable std::map<std::pair<std::string, std::string>, Result<fs::path>> found_;
  mutable std::vector<Scratch> scratches_;
  mutable std::map<std::pair<std::string, std::string>, Tree> trees_;
  mutable std::map<std::pair<std::string, Digest>, Result<bool>> applied_;
  mutable Progress progress_;
};

}  // namespace

std::unique_ptr<OutsideProbe> make_outside_probe(std::vector<std::string>& unasked,
                                                 std::size_t patches) {
  return std::make_unique<RealProbe>(unasked, patches);
}

}  // namespace proctor::cli
