#include "coordinator/cli/campaign_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <thread>

#include "common/base/apply.h"
#include "common/base/digest.h"
#include "common/base/file_lock.h"
#include "common/base/files.h"
#include "common/base/git_program.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/owned.h"
#include "common/base/subprocess.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "common/contract/campaign_parser.h"
#include "common/images/image_store.h"
#include "coordinator/cli/campaign_notes.h"
#include "coordinator/cli/image_engine.h"
#include "coordinator/cli/model_check.h"
#include "coordinator/cli/money_files.h"
#include "coordinator/cli/open_journal.h"
#include "coordinator/cli/registered_files.h"
#include "coordinator/journal/sqlite.h"

namespace proctor::cli {
std::vector<std::pair<fs::path, std::string>> not_own_folders(std::span<const fs::path> folders) {
  std::vector<std::pair<fs::path, std::string>> out;
  for (const fs::path& path : folders) {
    std::error_code ec;
    const fs::file_status is = fs::symlink_status(path, ec);
    if (!fs::exists(is) || fs::is_directory(is)) continue;
    const bool leads = fs::is_symlink(is) && fs::is_directory(path, ec);
    out.emplace_back(path, what_lies_at(path) + ", where the campaign's own folder must be: " +
                               (leads ? "put the folder that it leads to in its place"
                                      : "remove it, or put the folder back"));
  }
  return out;
}

Status check_own_folders(std::span<const fs::path> folders) {
  for (const auto& [path, what] : not_own_folders(folders))
    return Error{Errc::kInvalid, printable(path.string(), 400) + ": " + what};
  return ok_status();
}

std::array<fs::path, 3> own_folders(const StateFolder& folder) {
  return {folder.runs(), folder.reports(), folder.state()};
}

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
    std::vector<fs::path> abandoned;
    for (const fs::path& entry : paths_in(parent)) {
      if (!entry.filename().string().starts_with(std::string(kPrefix) + ".")) continue;
      const UniqueFd fd = open_folder(entry);
      struct stat st {};
      if (fd.valid() && ::fstat(fd.get(), &st) == 0 && st.st_uid == ::geteuid() &&
          ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0)
        abandoned.push_back(entry);
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
    if (const auto known = found_.find(key); known != found_.end()) return known->second;
    return found_.emplace(key, look(from, commit)).first->second;
  }

  Result<fs::path> look(const GitSource& from, const std::string& commit) const {
    if (from.local && !is_there(from.location))
      return Error{Errc::kNotFound, "there is no repository at " + from.shown};
    if (from.local && is_folder(from.location)) {
      Result<std::string> dir = git({}, {"-C", from.location, "rev-parse", "--absolute-git-dir"});
      if (!dir.ok()) return Error{Errc::kInvalid, from.shown + " is not a git repository"};
      while (dir->ends_with('\n')) dir->pop_back();
      if (!git(*dir, {"cat-file", "-e", commit + "^{commit}"}).ok())
        return Error{Errc::kNotFound, from.shown + " has no commit " + commit};
      PROCTOR_CHECK_OK(has_all_files(*dir, commit));
      return fs::path(*dir);
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

// Questions of `proctor check` to the world: real git and a real Docker Engine behind the contract
// room's OutsideProbe.
std::unique_ptr<OutsideProbe> make_outside_probe(std::vector<std::string>& unasked,
                                                 std::size_t patches) {
  return std::make_unique<RealProbe>(unasked, patches);
}

namespace {
Result<std::string> read_plan_file(const Campaign& campaign) {
  return read_file(StateFolder{campaign.folder}.plan(), limits::kPlanFileBytes);
}

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + printable(name, 400);
  return out;
}

std::vector<std::string> new_contracts(const Campaign& now, const Registration& registered) {
  std::vector<std::string> out;
  for (const Contract& c : now.contracts)
    if (!registered.contracts.contains(c.id))
      out.push_back(fs::path(c.origin.file).lexically_relative(now.folder).string() + " (new)");
  return out;
}

// `folder` as somebody typed it.
std::string way_out(const StateFolder& state, const fs::path& folder) {
  return "Put back what changed (git checkout" +
         (is_there(state.registered())
              ? ", or from the copies in " + state.registered().string() + ")"
              : std::string(")")) +
         ", or register what is there now as a campaign of its own: " +
         copy_command((folder.filename().empty() ? folder.parent_path() : folder).string());
}

Error does_not_match(const fs::path& folder, const StateFolder& state,
                     const Registration& registered, const std::vector<std::string>& came,
                     const std::vector<std::string>& differences) {
  std::string text = "the campaign differs from its registration:";
  for (const std::string& file : changed_since(state, registered, came))
    text += "\n  " + printable(file, 400);
  for (const std::string& d : differences) text += "\n  " + d;
  return Error{Errc::kConflict, text + "\n" + way_out(state, folder)};
}

// Of a campaign with errors: what of it is not as it was when it was registered, and had none.
std::string since_registered(const fs::path& folder, const fs::path& campaign) {
  const StateFolder state{campaign};
  const std::vector<std::string> files = changed_files(state);
  if (files.empty()) return "";
  return "; since it was registered these have changed: " + joined(files) + "\n" +
         way_out(state, folder);
}

Result<FrozenCampaign> frozen_of(Campaign campaign, Registration registered,
                                 const std::string& csv) {
  const StateFolder state{campaign.folder};
  PROCTOR_TRY(Plan plan, parse_plan(state.plan().filename().string(), csv, shape_of(campaign)));
  FrozenCampaign out{std::move(campaign), std::move(plan), std::move(registered), "", state, {}};
  out.id = campaign_id(out.registration);
  for (std::uint32_t r = 0; r < out.plan.size(); ++r) {
    const Method* method = out.campaign.find_method(out.plan.method(RunId(r)));
    if (is_removed(out.registration, out.plan.task(RunId(r)).id) ||
        (method != nullptr && !method->has_run(out.plan.run_name(RunId(r)))))
      out.removed.push_back(RunId(r));
  }
  return out;
}

// Somebody took the file away: it is drawn again, where that makes the registered one.
Status restore_plan(const fs::path& folder, const Campaign& campaign,
                    const Registration& registered) {
  const StateFolder state{campaign.folder};
  if (is_there(state.plan())) return ok_status();
  PROCTOR_TRY(const Plan drawn, draw_plan(shape_of(campaign)));
  const std::string csv = to_csv(drawn);
  if (sha256(csv) != registered.plan)
    return does_not_match(folder, state, registered, new_contracts(campaign, registered), {});
  PROCTOR_CHECK_OK(write_file(state.plan(), csv));
  log::warn(state.plan().string() + " was gone: it was drawn again, and is the registered one");
  return ok_status();
}

Result<FrozenCampaign> as_registered(const fs::path& folder, Campaign campaign,
                                     Registration registered) {
  const StateFolder state{campaign.folder};
  PROCTOR_TRY(const std::string csv, read_plan_file(campaign));
  PROCTOR_TRY(const Registration now, make_registration(campaign, sha256(csv), registered.at));
  const std::vector<std::string> differ = differences(registered, now);
  if (!differ.empty())
    return does_not_match(folder, state, registered, new_contracts(campaign, registered), differ);
  return frozen_of(std::move(campaign), std::move(registered), csv);
}

// From what was kept at the freeze, if that makes the registration again.
std::optional<FrozenCampaign> as_kept(const StateFolder& state, const Registration& registered) {
  std::optional<Campaign> kept = load_kept(state);
  if (!kept) return std::nullopt;
  Result<std::string> csv = read_file(state.plan(), limits::kPlanFileBytes);
  if (!csv.ok() || sha256(*csv) != registered.plan) {
    const Result<Plan> drawn = draw_plan(shape_of(*kept));
    if (!drawn.ok()) return std::nullopt;
    csv = to_csv(*drawn);
  }
  const Result<Registration> again = make_registration(*kept, sha256(*csv), registered.at);
  if (!again.ok() || !differences(registered, *again).empty()) return std::nullopt;
  Result<FrozenCampaign> out = frozen_of(std::move(*kept), registered, *csv);
  if (!out.ok()) return std::nullopt;
  return std::move(out).value();
}

void warn_of_changes(const fs::path& folder, const StateFolder& state,
                     const Registration& registered, const std::vector<std::string>& came) {
  static std::set<fs::path> told;  // a command may look more than once
  if (!told.insert(state.campaign).second) return;
  const std::vector<std::string> changed = changed_since(state, registered, came);
  std::fprintf(stderr,
               "warning: changed since the campaign was registered: %s. What follows is of the "
               "campaign as it was registered.\n%s\n",
               changed.empty() ? "how this version reads them" : joined(changed).c_str(),
               way_out(state, folder).c_str());
}
}  // namespace

// By their names where the files were kept.  The plan is drawn again and not kept; contracts that
// came are in no file that was.
std::vector<std::string> changed_since(const StateFolder& state, const Registration& registered,
                                       const std::vector<std::string>& came) {
  std::vector<std::string> out = changed_files(state, !registered.derived_from.empty());
  for (const fs::path& file : {state.plan(), state.registration()})
    if (!is_own_file(state.campaign, file.filename()))
      out.push_back(file.filename().string() + kNotItsOwn);
  const Result<std::string> plan = read_file(state.plan(), limits::kPlanFileBytes);
  if (!plan.ok() || sha256(*plan) != registered.plan)
    out.push_back(state.plan().filename().string() + (plan.ok() ? " (changed)" : " (gone)"));
  out.insert(out.end(), came.begin(), came.end());
  return out;
}

Error no_campaign(const std::string& folder) {
  constexpr std::size_t kLookedAt = 2'000;
  fs::path path(folder);
  if (path.filename().empty()) path = path.parent_path();
  const fs::path parent = path.parent_path();
  std::vector<std::string> there;
  std::error_code ec;
  std::size_t looked = 0;
  for (fs::directory_iterator it(parent.empty() ? "." : parent, ec), end;
       !ec && it != end && looked < kLookedAt; it.increment(ec), ++looked) {
    if (is_there(it->path() / kCampaignFile)) there.push_back(it->path().filename().string());
  }
  std::ranges::sort(there);
  const std::vector<std::string_view> names(there.begin(), there.end());
  const auto near = nearest_word(path.filename().string(), names);
  return {Errc::kNotFound, "there is no campaign at " + printable(folder) + ": it has no " +
                               kCampaignFile +
                               (near ? " (did you mean " + (parent / *near).string() + "?)" : "")};
}

Result<Campaign> load_checked(const fs::path& folder, Outside outside) {
  std::error_code ec;
  const fs::path absolute = fs::canonical(folder, ec);
  if (ec == std::errc::no_such_file_or_directory) return no_campaign(folder.string());
  if (ec) return errno_error("campaign " + folder.string(), ec.value());
  // A registered one that lost it is told of that below.
  if (!fs::exists(absolute / kCampaignFile, ec) &&
      !fs::exists(StateFolder{absolute}.registration(), ec))
    return no_campaign(folder.string());
  PROCTOR_CHECK_OK(check_own_folders(own_folders(StateFolder{absolute})));
  Diagnostics diagnostics;
  Result<Campaign> campaign = load_campaign(absolute, diagnostics);
  if (campaign.ok() && diagnostics.empty()) {
    Diagnostics noted;  // a registered one runs as it is
    const bool registered = is_there(StateFolder{absolute}.registration());
    check_own_modes(*campaign, registered ? noted : diagnostics);
    if (!noted.empty()) std::fputs(("note: never asserted: " + noted.text()).c_str(), stderr);
  }
  if (campaign.ok() && diagnostics.empty() && outside == Outside::kCheck) {
    // Without it no repository is one.
    if (find_on_path("git").empty())
      return Error{
          Errc::kUnavailable,
          "git is not on this host's PATH, and repositories are looked at with it: apt-get "
          "install git"};
    std::vector<std::string> unasked;
    check_outside(*campaign, *make_outside_probe(unasked, campaign->contracts.size()), diagnostics);
    // Nothing is wrong with the campaign then: it is the machine that lacks something.
    if (!unasked.empty() && diagnostics.count() == unasked.size())
      return Error{Errc::kUnavailable, unasked.back() + ", and " + std::to_string(unasked.size()) +
                                           " of the campaign's contracts name an image"};
  }
  if (!diagnostics.empty()) {
    std::fputs(diagnostics.text().c_str(), stderr);
    return Error{Errc::kInvalid, counted(diagnostics.count(), "error") + " in " + folder.string() +
                                     since_registered(folder, absolute)};
  }
  return campaign;
}

std::string not_judged_again(const FrozenCampaign& frozen, RunId run) {
  const auto& from = frozen.campaign.derived_from;
  const Method* const method = frozen.campaign.find_method(frozen.plan.method(run));
  if (!from || method == nullptr || method->has_run(frozen.plan.run_name(run))) return "";
  return "it was not judged again in this campaign; the original is in " + from->campaign +
         ", at " + frozen.folder.campaign.parent_path().parent_path().string();
}

Result<std::optional<Registration>> read_registration(const fs::path& folder) {
  const fs::path path = StateFolder{folder}.registration();
  Result<std::string> text = read_file(path, limits::kConfigFileBytes * 16);
  if (!text.ok() && text.error().code == Errc::kNotFound) return std::optional<Registration>();
  if (!text.ok()) return std::move(text).error();
  Result<Registration> parsed = parse_registration(*text);
  if (!parsed.ok()) return in_context(path.string(), std::move(parsed).error());
  return std::optional<Registration>(std::move(parsed).value());
}

Result<Digest> write_plan(const Campaign& campaign) {
  PROCTOR_TRY(const Plan plan, draw_plan(shape_of(campaign)));
  const std::string csv = to_csv(plan);
  PROCTOR_CHECK_OK(write_file(StateFolder{campaign.folder}.plan(), csv));
  return sha256(csv);
}

Status check_never_began(const StateFolder& state) {
  PROCTOR_TRY(std::optional<JournalReader> journal, begun_journal(state));
  if (!journal) return ok_status();
  PROCTOR_TRY(const std::vector<EpochBegun> lives, journal->epochs());
  if (lives.empty()) return ok_status();
  return Error{Errc::kConflict,
               fmt::format("{} is missing, but this campaign has begun, and what is registered now "
                           "would be another.\nTo go on:        put that file back\n"
                           "To begin afresh: proctor copy {} NEW",
                           state.registration().string(), state.campaign.string())};
}

Result<Registration> freeze(const Campaign& campaign) {
  PROCTOR_TRY(const std::string csv, read_plan_file(campaign));
  PROCTOR_TRY(const Plan plan, parse_plan("pilot_randomization_plan.csv", csv, shape_of(campaign)));
  PROCTOR_TRY(const std::optional<Registration> before, read_registration(campaign.folder));
  PROCTOR_TRY(Registration now, make_registration(campaign, sha256(csv), wall_now()));
  now.distrusted = distrusted_tasks(campaign);
  // What is registered runs; what is not yet can be mended.
  if (!before) {
    PROCTOR_CHECK_OK(check_never_began(StateFolder{campaign.folder}));
    PROCTOR_CHECK_OK(refuse_model_calls(campaign));
  } else {
    const std::vector<std::string> differ = differences(*before, now);
    if (!differ.empty())
      return does_not_match(campaign.folder, StateFolder{campaign.folder}, *before,
                            new_contracts(campaign, *before), differ);
    PROCTOR_CHECK_OK(keep_registered(campaign));
    return *before;
  }
  // Copies of an earlier registration, which somebody took away, are none of this one's.
  PROCTOR_CHECK_OK(remove_tree(StateFolder{campaign.folder}.registered()));
  PROCTOR_CHECK_OK(keep_registered(campaign));
  PROCTOR_CHECK_OK(write_file(StateFolder{campaign.folder}.registration(), to_json(now)));
  return now;
}

Result<FrozenCampaign> load_frozen(const fs::path& folder,
                                   const std::function<void(const std::string&)>& announce) {
  PROCTOR_TRY(Campaign campaign, load_checked(folder, Outside::kCheck));
  PROCTOR_TRY(std::optional<Registration> registered, read_registration(campaign.folder));
  if (!registered) {
    const StateFolder state{campaign.folder};
    if (!is_there(state.plan())) PROCTOR_CHECK_OK(write_plan(campaign));
    PROCTOR_TRY(registered, freeze(campaign));
    announce("registered the campaign as " + campaign_id(*registered) + " (" +
             state.registration().filename().string() + "): from now on nothing in it may change");
  }
  PROCTOR_CHECK_OK(restore_plan(folder, campaign, *registered));
  PROCTOR_TRY(FrozenCampaign frozen,
              as_registered(folder, std::move(campaign), std::move(*registered)));
  // Campaigns of earlier versions have no copies yet.
  PROCTOR_CHECK_OK(keep_registered(frozen.campaign));
  return frozen;
}

Result<FrozenCampaign> load_unchanged(const fs::path& folder) {
  PROCTOR_TRY(Campaign campaign, load_checked(folder, Outside::kSkip));
  PROCTOR_TRY(std::optional<Registration> registered, read_registration(campaign.folder));
  if (!registered) {
    PROCTOR_CHECK_OK(check_never_began(StateFolder{campaign.folder}));
    return Error{Errc::kNotFound, folder.string() +
                                      " is not registered yet: proctor plan --freeze " +
                                      folder.string() + ", or proctor run " + folder.string()};
  }
  return as_registered(folder, std::move(campaign), std::move(*registered));
}

Result<FrozenCampaign> load_registered(const fs::path& folder) {
  std::error_code ec;
  const StateFolder state{fs::canonical(folder, ec)};
  if (ec) return load_unchanged(folder);  // says why
  // Whoever loads one to look at it goes on to its journal.
  PROCTOR_CHECK_OK(check_journal_kinds(state.journal()));
  const Result<std::optional<Registration>> registered = read_registration(state.campaign);
  if (!registered.ok() || !*registered) return load_unchanged(folder);
  Diagnostics unsaid;
  Result<Campaign> now = load_campaign(state.campaign, unsaid);
  std::vector<std::string> came;
  if (now.ok() && unsaid.empty()) {
    came = new_contracts(*now, **registered);
    Result<FrozenCampaign> frozen = as_registered(folder, std::move(*now), **registered);
    if (frozen.ok()) return frozen;
  }
  std::optional<FrozenCampaign> kept = as_kept(state, **registered);
  if (!kept) return load_unchanged(folder);
  warn_of_changes(folder, state, **registered, came);
  return *std::move(kept);
}
}  // namespace proctor::cli
