#include "coordinator/cli/outside_probe.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <set>
#include <thread>

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

class RealProbe : public OutsideProbe {
 public:
  explicit RealProbe(std::vector<std::string>& unasked) : unasked_(unasked) {}
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
    PROCTOR_TRY(const fs::path repo, repository(source, base, commit));
    if (patch.empty()) return true;  // changes nothing
    PROCTOR_TRY(const Scratch scratch, Scratch::create());
    const std::string index = (scratch.path() / "index").string();
    const auto with_index = [&](std::vector<std::string> args) {
      args.insert(args.begin(), {"--git-dir", repo.string()});
      CommandSpec spec = git(std::move(args));
      spec.argv.insert(spec.argv.begin(), {"env", "GIT_INDEX_FILE=" + index});
      return spec;
    };
    // What a merge makes is written to the scratch folder, and nothing into the repository.
    const std::string made = (scratch.path() / "objects").string();
    PROCTOR_CHECK_OK(make_dirs(made));
    // The rungs by which a worker applies it (worker/workspace/apply.h).
    for (std::vector<std::string> rung : {std::vector<std::string>{"apply", "--cached", "--check"},
                                          {"apply", "--cached", "--check", "--ignore-whitespace"},
                                          {"apply", "--cached", "--3way"}}) {
      PROCTOR_TRY(const std::string ignored, run_for_output(with_index({"read-tree", commit})));
      const bool merges = rung.back() == "--3way";
      rung.emplace_back("-");
      CommandSpec apply = with_index(std::move(rung));
      if (merges)
        apply.argv.insert(apply.argv.begin() + 1,
                          {"GIT_OBJECT_DIRECTORY=" + made,
                           "GIT_ALTERNATE_OBJECT_DIRECTORIES=" + (repo / "objects").string()});
      apply.stdin_bytes = patch;
      PROCTOR_TRY(const CommandOutcome outcome, run_command(apply));
      if (outcome.success()) return true;
    }
    return false;
  }

 private:
  // A git directory on this machine that holds the commit.  URLs and bundles are fetched into a
  // scratch repository, once.
  Result<fs::path> repository(const std::string& source, const fs::path& base,
                              const std::string& commit) const {
    const auto known = found_.find({source, commit});
    if (known != found_.end()) return known->second;
    Result<fs::path> found = look(source, base, commit);
    found_.emplace(std::pair{source, commit}, found);
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
};

}  // namespace

std::unique_ptr<OutsideProbe> make_outside_probe(std::vector<std::string>& unasked) {
  return std::make_unique<RealProbe>(unasked);
}

}  // namespace proctor::cli
