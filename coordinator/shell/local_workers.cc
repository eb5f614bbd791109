#include "coordinator/shell/local_workers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <algorithm>
#include <cerrno>
#include <thread>

#include "common/base/file_lock.h"
#include "common/base/log.h"
#include "common/base/system_clock.h"

namespace proctor {
namespace {
bool are_one(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}
}  // namespace

Result<PlacedFolder> PlacedFolder::open(const fs::path& path) {
  UniqueFd fd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return errno_error("open " + path.string(), errno);
  return PlacedFolder(path, std::move(fd));
}

bool PlacedFolder::is_in_place() const {
  struct stat held {
  }, there{};
  return ::fstat(fd_.get(), &held) == 0 && ::stat(path_.c_str(), &there) == 0 &&
         are_one(held, there);
}

fs::path PlacedFolder::now_at() const {
  std::error_code ec;
  fs::path at = fs::read_symlink("/proc/self/fd/" + std::to_string(fd_.get()), ec);
  struct stat held {
  }, there{};
  // The kernel writes " (deleted)" behind one that was removed, which nothing is named.
  if (ec || ::fstat(fd_.get(), &held) != 0 || ::stat(at.c_str(), &there) != 0 ||
      !are_one(held, there))
    return {};
  return at;
}

namespace {
constexpr std::chrono::milliseconds kFirstBackoff(1'000), kLongestBackoff(30'000);
// A worker that ends so soon after its start, so often, will not do better the next time.
constexpr std::chrono::seconds kSoon(10);
constexpr std::uint32_t kEarlyEnds = 5;

// The worker of the same build, else the one on PATH.
std::string worker_program() {
  std::error_code ec;
  const fs::path self = fs::read_symlink("/proc/self/exe", ec);
  if (!ec) {
    const fs::path beside = self.parent_path() / "proctor-worker";
    if (fs::exists(beside, ec)) return beside.string();
  }
  return "proctor-worker";
}

// The value behind an option that a process was started with; empty: none, or no such process.
std::string told_to(pid_t pid, std::string_view option) {
  const Result<std::string> line =
      read_file("/proc/" + std::to_string(pid) + "/cmdline", std::size_t{1} << 20);
  const std::string begin = std::string(1, '\0').append(option) + '\0';
  const std::size_t at = line.ok() ? line->find(begin) : std::string::npos;
  if (at == std::string::npos) return "";
  return line->substr(at + begin.size(), line->find('\0', at + begin.size()) - at - begin.size());
}
}  // namespace

Result<LocalWorkers> LocalWorkers::start(const LocalWorkersSpec& spec) {
  LocalWorkers out;
  out.folder_ = spec.folder;
  PROCTOR_TRY(out.place_, PlacedFolder::open(spec.folder.campaign));
  PROCTOR_CHECK_OK(make_private_dirs(spec.folder.logs()));
  for (std::uint32_t i = 1; i <= spec.workers; ++i) {
    const std::string name = spec.folder.worker_prefix() + std::to_string(i);
    CommandSpec command;
    command.argv = {worker_program(),
                    "--connect",
                    spec.endpoint,
                    "--name",
                    name,
                    fmt::format("--slots={}", spec.slots),
                    fmt::format("--beside={}", spec.workers - 1),
                    "--root",
                    spec.folder.worker_root().string(),
                    "--give-up-after",
                    "600"};
    command.argv.insert(command.argv.end(), spec.extra.begin(), spec.extra.end());
    out.workers_.push_back({name, std::move(command), std::nullopt, Clock::now(), spec.backoff});
    Local& w = out.workers_.back();
    out.end_stray(w);
    if (out.orphan_works(w)) {
      log::info("worker " + name + " still works, started by an earlier coordinator: it goes on");
    } else {
      PROCTOR_CHECK_OK(out.begin(w));
    }
  }
  return out;
}

Status LocalWorkers::begin(Local& w) const {
  w.begun = Clock::now();
  PROCTOR_CHECK_OK(check_own_file(log_of(w)));  // a pipe there would be waited for
  PROCTOR_TRY(w.child, Child::start(w.command, log_of(w), Child::Lifetime::kIndependent));
  return ok_status();
}

bool LocalWorkers::orphan_works(const Local& w) const {
  if (!is_there(lock_of(w))) return false;
  const Result<HostLock> lock = HostLock::take(lock_of(w));
  return !lock.ok() && lock.error().code == Errc::kConflict;
}

bool LocalWorkers::orphan_works() const {
  return std::ranges::any_of(workers_, [&](const Local& w) { return !w.child && orphan_works(w); });
}

void LocalWorkers::tend() {
  if (has_moved()) return;  // they would make its folders anew
  for (Local& w : workers_) {
    if (w.given_up || Clock::now() < w.next) continue;
    if (w.child) {
      const std::optional<int> code = w.child->poll();
      if (!code || *code == 0) continue;
      constexpr int kOfSignals = 128;  // somebody ended it: that says nothing of the next one
      const bool early = *code < kOfSignals && Clock::now() - w.begun < kSoon + w.backoff / 2;
      w.early = early ? w.early + 1 : 0;
      if (w.early == kEarlyEnds) {
        w.given_up = true;
        log::error("worker " + w.name + " ended as soon as it had begun, " +
                   std::to_string(kEarlyEnds) + " times, the last time with exit code " +
                   std::to_string(*code) + ": it is not started again; " + log_of(w).string() +
                   " says why");
        continue;
      }
      log::warn("worker " + w.name + " ended with exit code " + std::to_string(*code) + " (see " +
                log_of(w).string() + "); it is started again");
    } else if (orphan_works(w)) {
      continue;
    } else {
      log::info("worker " + w.name + " of an earlier coordinator has ended; a new one is started");
    }
    w.next = Clock::now() + w.backoff;
    w.backoff = std::min(w.backoff * 2, kLongestBackoff);
    if (const Status begun = begin(w); !begun.ok())
      log::warn("worker " + w.name + ": " + begun.error().detail);
  }
}

bool LocalWorkers::all_given_up() const {
  return !workers_.empty() && std::ranges::all_of(workers_, &Local::given_up);
}

// Ends a worker of this name that an earlier coordinator started, if one still waits for it: the
// campaign ended before it came back, and ours of that name could not start beside it.
void LocalWorkers::end_orphan(const Local& w, const std::vector<int>& signals) const {
  constexpr std::chrono::seconds kWithin(10);
  for (const int signal : signals) {
    if (!orphan_works(w)) return;
    const std::optional<pid_t> pid = HostLock::last_holder(lock_of(w));
    if (!pid) return;
    // A pid may have been given to somebody else since.
    if (told_to(*pid, "--name") != w.name) return;
    ::kill(*pid, signal);
    const auto until = Clock::now() + kWithin;
    while (orphan_works(w) && Clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

bool LocalWorkers::has_moved() const {
  return place_ && !place_->is_in_place();
}

// An orphan that was started where the folder was before knocks there, for ten minutes.
void LocalWorkers::end_stray(const Local& w) const {
  if (!orphan_works(w)) return;
  const std::optional<pid_t> pid = HostLock::last_holder(lock_of(w));
  std::error_code ec;
  if (!pid || fs::equivalent(told_to(*pid, "--root"), folder_.worker_root(), ec)) return;
  log::info("worker " + w.name + " still works where this folder was before: it is ended");
  end_orphan(w, {SIGTERM, SIGKILL});
}

// It was killed and nobody starts it any more: what it left would stay.
void LocalWorkers::clean_up_after(const Local& w) const {
  constexpr std::chrono::milliseconds kWithin(30'000);
  CommandSpec command;
  command.argv = {worker_program(), "--clean-up", "--name",
                  w.name,           "--root",     folder_.worker_root().string()};
  const Status log = check_own_file(log_of(w));
  Result<Child> child =
      log.ok() ? Child::start(command, log_of(w), Child::Lifetime::kIndependent) : log.error();
  if (!child.ok() || child->wait(kWithin) != 0)
    log::warn("what worker " + w.name + " left could not be removed; see " + log_of(w).string());
}

std::vector<std::string> LocalWorkers::wait_for_all(std::chrono::milliseconds time) {
  const auto until = Clock::now() + time;
  for (;;) {
    std::vector<std::string> left;
    for (Local& w : workers_)
      if (w.child && !w.child->poll()) left.push_back(w.name);
    if (left.empty() || until <= Clock::now()) return left;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// Together, so that many workers that hang take no longer than one.
void LocalWorkers::end_children() {
  constexpr std::chrono::milliseconds kQuietly(1'000), kLeave(4'000), kGrace(10'000);
  const std::string since = to_rfc3339(wall_now());
  const auto tell = [&](const std::vector<std::string>& left, const std::string& then) {
    log::info(fmt::format(
        "the campaign's loop has ended; waiting since {} for local workers {} to leave; {}", since,
        fmt::join(left, ", "), then));
  };
  // One that had not met the coordinator before the end was not told to leave by it.
  for (Local& w : workers_)
    if (w.child && !w.child->poll()) w.child->signal(SIGINT);
  std::vector<std::string> left = wait_for_all(kQuietly);
  if (left.empty()) return;
  tell(left, "in 4 s they are told to stop what they do");
  left = wait_for_all(kLeave);
  if (left.empty()) return;
  tell(left, "told to stop what they do; in 10 s they are killed");
  for (Local& w : workers_)
    if (w.child && !w.child->poll()) w.child->signal(SIGTERM);
  left = wait_for_all(kGrace);
  if (left.empty()) return;
  tell(left, "killed now; their logs are in " + folder_.logs().string());
  for (Local& w : workers_)
    if (w.child && !w.child->poll()) w.child->stop(std::chrono::milliseconds(0));
}

void LocalWorkers::stop() {
  constexpr std::chrono::milliseconds kOrphanLeaves(5'000);
  end_children();
  const bool moved = has_moved();  // then they have looked for what they made where it was
  if (moved) folder_.campaign = place_->now_at();
  if (folder_.campaign.empty()) return workers_.clear();
  for (Local& w : workers_) {
    if (w.child && w.child->poll() == 0 && !moved) continue;
    // An orphan was told to drain as well, and leaves like the others.
    if (orphan_works(w))
      log::info("waiting since " + to_rfc3339(wall_now()) + " for worker " + w.name +
                ", which an earlier coordinator started; in 5 s it is told to stop");
    const auto until = Clock::now() + kOrphanLeaves;
    while (orphan_works(w) && Clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    end_orphan(w, {SIGINT, SIGINT, SIGKILL});  // leave, cancel, go
    clean_up_after(w);
  }
  workers_.clear();
}

Status LocalWorkers::end_left(const StateFolder& folder) {
  LocalWorkers left;
  left.folder_ = folder;
  for (const fs::path& entry : paths_in(folder.worker_homes()))
    if (std::string name = entry.filename().string(); name.starts_with(folder.worker_prefix()))
      left.workers_.push_back({std::move(name), {}, std::nullopt, Clock::now(), kFirstBackoff});
  for (const Local& w : left.workers_) {
    if (left.orphan_works(w))
      log::info("worker " + w.name + " of one that was killed is told to stop what it does");
    left.end_orphan(w, {SIGTERM, SIGKILL});
    left.clean_up_after(w);
    PROCTOR_CHECK_OK(remove_tree(folder.worker_homes() / w.name));
  }
  left.workers_.clear();
  return ok_status();
}
}  // namespace proctor
