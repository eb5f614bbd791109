#include "worker/workspace/fuse_overlay.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <string>

#include "common/base/own_mounts.h"
#include "common/base/text.h"

namespace proctor {
namespace {

using Clock = std::chrono::steady_clock;

// Characters that mean something in its options.
constexpr std::string_view kSpecial = ",:\\";
constexpr std::size_t kSaidBytes = 4096;
constexpr std::chrono::seconds kMountMost{20};
constexpr std::chrono::milliseconds kPoll{1};

Result<std::string> options_of(const OverlayDirs& dirs) {
  for (const fs::path* p : {&dirs.setup, &dirs.git, &dirs.tree, &dirs.upper, &dirs.work})
    if (p->string().find_first_of(kSpecial) != std::string::npos)
      return Error{Errc::kInvalid, "fuse-overlayfs: path with one of , : \\: " + p->string()};
  // What was written is in the upper layer at once, and nothing of it need survive a power loss.
  // Everybody: the user in a sandbox may be another; the kernel checks modes.
  return "lowerdir=" + (dirs.setup.empty() ? "" : dirs.setup.string() + ":") + dirs.git.string() +
         ":" + dirs.tree.string() + ",upperdir=" + dirs.upper.string() +
         ",workdir=" + dirs.work.string() +
         ",writeback=0,volatile,nosuid,nodev,default_permissions,allow_other";
}

// In a user namespace our rights end at exec(2); a server mounts by itself and needs this one.
void let_children_mount() {
  if (!has_own_mounts()) return;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  if (::syscall(SYS_capget, &header, &data[0]) != 0) return;
  data[CAP_SYS_ADMIN / 32].inheritable |= 1U << (CAP_SYS_ADMIN % 32);
  if (::syscall(SYS_capset, &header, &data[0]) != 0) return;
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0);
}

bool mounted(const OverlayDirs& dirs) {
  struct stat here {
  }, above{};
  return ::stat(dirs.merged.c_str(), &here) == 0 &&
         ::stat(dirs.merged.parent_path().c_str(), &above) == 0 && here.st_dev != above.st_dev;
}

}  // namespace

FuseServers::FuseServers() : thread_([this] { run(); }) {}

FuseServers::~FuseServers() {
  {
    const std::lock_guard guard(mutex_);
    ending_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void FuseServers::run() {
  let_children_mount();
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return ending_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const Job job = std::move(jobs_.front());
    jobs_.pop();
    lock.unlock();
    job();
    lock.lock();
  }
}

Result<Child> FuseServers::mount(const OverlayDirs& dirs, const fs::path& log) {
  PROCTOR_TRY(const std::string options, options_of(dirs));
  CommandSpec spec;
  spec.argv = {"fuse-overlayfs", "-f", "-o", options, dirs.merged.string()};
  spec.cwd = "/";
  spec.env.emplace();  // none of ours
  std::promise<Result<Child>> started;
  {
    const std::lock_guard guard(mutex_);
    jobs_.push(
        [&] { started.set_value(Child::start(spec, log, Child::Lifetime::kDiesWithParent)); });
  }
  wake_.notify_one();
  PROCTOR_TRY(Child server, started.get_future().get());
  for (const auto until = Clock::now() + kMountMost; Clock::now() < until && server.running();) {
    if (mounted(dirs)) return server;
    std::this_thread::sleep_for(kPoll);
  }
  const auto said = read_file(log, kSaidBytes);
  return Error{Errc::kUnavailable,
               "fuse-overlayfs does not mount: " + (said.ok() ? printable(*said) : "")};
}

}  // namespace proctor
