#include "worker/sandbox/host_lack.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "common/base/log.h"
#include "common/base/owned.h"
#include "common/base/parse.h"
#include "common/base/text.h"
#include "worker/sandbox/bubblewrap.h"
#include "worker/sandbox/init/lacks.h"
#include "worker/sandbox/spec_rules.h"

namespace proctor {
namespace {
constexpr std::size_t kLocksMost = std::size_t{256} << 10;
constexpr std::size_t kElsewhereMost = 100'000;

// "fe:00:131", the numbers of the device in hexadecimal.
std::optional<HeldLock> parse_inode(std::string_view word) {
  unsigned major_number = 0, minor_number = 0;
  std::uint64_t inode = 0;
  if (!take_number(word, major_number, 16) || !take_word(word, ":") ||
      !take_number(word, minor_number, 16) || !take_word(word, ":") || !take_number(word, inode))
    return std::nullopt;
  return HeldLock{makedev(major_number, minor_number), inode};
}

// "1: FLOCK  ADVISORY  WRITE 3481 fe:00:131 0 EOF"; "1: -> FLOCK ..." waits.
std::optional<HeldLock> parse_line(std::string_view line) {
  constexpr std::size_t kKindAt = 1, kInodeAt = 5;
  std::optional<HeldLock> out;
  for (std::size_t word = 0; !line.empty(); ++word) {
    const std::size_t end = std::min(line.find(' '), line.size());
    const std::string_view text = line.substr(0, end);
    if (word == kKindAt && text != "FLOCK") return std::nullopt;
    if (word == kInodeAt) return parse_inode(text);
    line.remove_prefix(end);
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  }
  return out;
}

// Locks that are not on anything in a place: of every host's databases and queues, looked for once.
class Elsewhere {
 public:
  std::set<HeldLock> not_known(const fs::path& place, const std::set<HeldLock>& locks) {
    const std::lock_guard lock(mutex_);
    std::set<HeldLock> out;
    for (const HeldLock& l : locks)
      if (!known_.contains({place.string(), l})) out.insert(l);
    return out;
  }
  void learn(const fs::path& place, const std::set<HeldLock>& locks) {
    const std::lock_guard lock(mutex_);
    if (kElsewhereMost < known_.size()) known_.clear();
    for (const HeldLock& l : locks) known_.insert({place.string(), l});
  }

 private:
  std::mutex mutex_;
  std::set<std::pair<std::string, HeldLock>> known_;
};

// Takes what is found out of `sought`.
void look_below(const fs::path& place, std::set<HeldLock>& sought, std::vector<fs::path>& found) {
  const auto look = [&](const fs::path& path) {
    struct stat st {};
    if (::lstat(path.c_str(), &st) == 0 && 0 < sought.erase({st.st_dev, st.st_ino}))
      found.push_back(path);
  };
  look(place);
  std::error_code ec;
  if (!fs::is_directory(fs::symlink_status(place, ec))) return;
  using Walk = fs::recursive_directory_iterator;
  for (Walk it(place, fs::directory_options::skip_permission_denied, ec), end;
       !ec && it != end && !sought.empty(); it.increment(ec))
    look(it->path());
}
}  // namespace

std::set<HeldLock> parse_locks(std::string_view words, std::size_t most) {
  std::set<HeldLock> out;
  if (most <= words.size()) {
    words = words.substr(0, words.substr(0, most).rfind('\n') + 1);
    out.insert(kMoreLocks);
  }
  while (!words.empty())
    if (const auto lock = parse_line(take_until(words, '\n'))) out.insert(*lock);
  return out;
}

std::set<HeldLock> locks_held() {
  const UniqueFd fd(::open("/proc/locks", O_RDONLY | O_CLOEXEC));
  std::string words(kLocksMost, '\0');
  std::size_t had = 0;
  while (fd.valid() && had < kLocksMost) {
    const ssize_t n = ::read(fd.get(), words.data() + had, kLocksMost - had);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    had += static_cast<std::size_t>(n);
  }
  words.resize(had);
  return parse_locks(words, kLocksMost);
}

std::vector<fs::path> locked_among(const std::vector<fs::path>& places,
                                   const std::set<HeldLock>& locks) {
  static Elsewhere elsewhere;
  std::vector<fs::path> out;
  for (const fs::path& place : places) {
    struct stat st {};
    if (::lstat(place.c_str(), &st) != 0) continue;
    std::set<HeldLock> sought = elsewhere.not_known(place, locks);
    std::erase_if(sought, [&](const HeldLock& l) { return l.device != st.st_dev; });
    if (sought.empty()) continue;
    look_below(place, sought, out);
    elsewhere.learn(place, sought);
  }
  std::sort(out.begin(), out.end());
  return out;
}

namespace {
constexpr std::chrono::milliseconds kTimeout{30'000};
constexpr std::uint64_t kMemory = std::uint64_t{256} << 20;
constexpr std::uint32_t kProcesses = 16;
constexpr std::size_t kSaidMost = std::size_t{4} << 10;

// Those lines that are none of `before`, as words.
std::string listed(const std::string& text, const std::string& before) {
  std::string out;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string line(take_until(rest, '\n'));
    if (before.find(line + "\n") != std::string::npos) continue;
    out += (out.empty() ? "" : ", ") + line;
  }
  return out;
}

// A process with these rights is refused nothing.
bool drop_rights() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  return ::syscall(SYS_capset, &header, none) == 0;
}

void reap(pid_t pid) {
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

// A context for asynchronous input and output takes some 40 ms to end (an RCU grace period), and a
// process does not end before: nobody's start waits for that.
std::string ask_in_child() {
  int said[2];
  if (::pipe2(said, O_CLOEXEC) != 0) return {};
  UniqueFd read(said[0]), write(said[1]);
  const pid_t pid = ::fork();
  if (pid == 0) {
    const int exit_code = drop_rights() ? say_what_lacks(said[1]) : 1;
    ::close(said[1]);  // all is said, and the kernel takes its time to end what was asked for
    ::_exit(exit_code);
  }
  write.reset();
  if (pid < 0) return {};
  std::string out;
  std::array<char, 256> bytes{};
  for (ssize_t n = 0; 0 < (n = ::read(read.get(), bytes.data(), bytes.size())) || errno == EINTR;) {
    if (0 < n) out.append(bytes.data(), static_cast<std::size_t>(n));
    errno = 0;
  }
  static const std::jthread reaper(reap, pid);
  return out;
}

// That is how this host is.
const std::set<HeldLock>& locks_before() {
  static const std::set<HeldLock> before = locks_held();
  return before;
}

bool has_own_inodes(const SandboxEngine& engine) {
  const auto limits = engine.enforcement();
  const auto inodes = limits.find("inodes");
  return inodes != limits.end() && inodes->second == "own";
}

// One runs nothing, and the other has a kernel of its own.
bool lacks_nothing(const SandboxEngine& engine) {
  return engine.kind() == SandboxKind::kNull || engine.enforcement().contains("kernel");
}

// What another's command may have found locked, now or before it began, of what all are shown.
void add_locked(const SandboxEngine& engine, const SandboxSpec& like,
                const std::set<HeldLock>& earlier, std::string& out) {
  std::vector<fs::path> places = engine.shared_places();
  const bool own = has_own_inodes(engine);
  for (const SandboxMount& mount : like.mounts)
    if (!mount.writable && !(mount.shared && own)) places.push_back(mount.host);
  if (places.empty()) return;
  std::set<HeldLock> locks = locks_held();
  locks.insert(earlier.begin(), earlier.end());
  for (const HeldLock& before : locks_before()) locks.erase(before);
  if (locks.empty()) return;
  // A host's list may be long for a program that no sandbox has to do with: where inodes are each
  // sandbox's own, what was not looked at is no sandbox's lock on anything that this one is shown.
  if (0 < locks.erase(kMoreLocks) && !own)
    out.append(out.empty() ? "" : ", ").append("locks few enough to look at (see /proc/locks)");
  for (const fs::path& path : locked_among(places, locks))
    out.append(out.empty() ? "" : ", ").append("an unlocked ").append(printable(path.string()));
}
}  // namespace

Result<std::string> host_lack(SandboxEngine& engine, const SandboxSpec& like,
                              const fs::path& scratch, std::stop_token cancel,
                              const std::set<HeldLock>& earlier) {
  const SandboxKind kind = engine.kind();
  if (lacks_nothing(engine)) return std::string();
  SandboxSpec spec;
  spec.label = like.label + "-lacks";
  spec.image = like.image;
  spec.user = like.user;
  spec.hold = like.hold;
  spec.workspace = scratch / "workspace";
  spec.memory_bytes = kMemory;
  spec.processes = kProcesses;
  PROCTOR_CHECK_OK(make_dirs(spec.workspace));
  ExecSpec exec;
  exec.timeout = kTimeout;
  exec.stdout_file = scratch / "stdout";
  exec.stderr_file = scratch / "stderr";
  exec.output_max = kSaidMost;
  const std::string init = runs_images(kind) ? kContainerInitAt : kBubblewrapInitAt;
  if (like.program) {  // by the same user; its image may hold no shell
    spec.program = {{init}, {"--lacks"}, "/"};
  } else {
    exec.command = "exec " + init + " --lacks";
  }
  PROCTOR_TRY(auto sandbox, engine.open(spec));
  PROCTOR_TRY(const ExecOutcome outcome, sandbox->run(exec, std::move(cancel)));
  if (outcome.end == ExecOutcome::End::kCancelled) return std::string();
  if (outcome.end != ExecOutcome::End::kExited || outcome.exit_code != 0)
    return Error{Errc::kUnavailable, "an empty command did not succeed in a sandbox of this host"};
  PROCTOR_TRY(const std::string said, read_file(exec.stdout_file, kSaidMost));
  PROCTOR_CHECK_OK(remove_tree(scratch));
  std::string out = listed(said, host_lack_before());
  add_locked(engine, like, earlier, out);
  return out;
}

std::set<HeldLock> locks_to_know(const SandboxEngine& engine) {
  // What else such an engine shows is of one run alone.
  if (lacks_nothing(engine) || has_own_inodes(engine)) return {};
  return locks_held();
}

const std::string& host_lack_before() {
  (void)locks_before();
  static const std::string before = [] {
    std::string said = ask_in_child();
    if (!said.empty()) log::warn("this host has no more of: " + listed(said, ""));
    return said;
  }();
  return before;
}
}  // namespace proctor
