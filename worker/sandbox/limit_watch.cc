#include "worker/sandbox/limit_watch.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "common/base/system_clock.h"
#include "worker/sandbox/disk_use.h"

namespace proctor {
namespace {

using std::chrono::nanoseconds;

constexpr std::chrono::milliseconds kPeriod{90};

}  // namespace

LimitWatch::LimitWatch(const SandboxSpec& spec, Host host)
    : spec_(&spec),
      host_(std::move(host)),
      sockets_(socket_share(spec.memory_bytes), host_.sockets) {}

LimitWatch::~LimitWatch() {
  for (std::jthread& thread : threads_) thread.request_stop();
}

std::vector<LimitWatch::Kind> LimitWatch::kinds() {
  using Stop = const std::stop_token&;
  std::vector<Kind> out;
  if (0 < spec_->cpu.count())
    out.push_back({Passed::kCpu, [this](Stop) {
                     const auto used = host_.cpu_time();
                     return used && spec_->cpu < *used;
                   }});
  if (host_.memory && 0 < spec_->memory_bytes)
    out.push_back({Passed::kMemory, [this](Stop) {
                     const auto held = host_.memory();
                     return held && spec_->memory_bytes < *held;
                   }});
  if (sockets_watched(*spec_))
    out.push_back({Passed::kMemory, [this](Stop) { return sockets_.passed(host_.inside); }});
  if (disk_watched(*spec_)) {
    // What has names is found without the many descriptors that something else may have open.
    for (const DiskLook::Where where : {DiskLook::Where::kNamed, DiskLook::Where::kEverywhere}) {
      const auto look = std::make_shared<DiskLook>(spec_->disk, where);
      out.push_back({Passed::kDisk,
                     [this, look](Stop stop) { return look->passed(host_.inside, stop); },
                     [look] { return look->may_have_passed(); }});
    }
  }
  return out;
}

void LimitWatch::begin() {
  found_fd_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  for (Kind& kind : kinds())
    threads_.emplace_back(
        [this, kind = std::move(kind)](const std::stop_token& stop) { keep_looking(kind, stop); });
}

std::optional<LimitWatch::Passed> LimitWatch::look(std::chrono::steady_clock::time_point now) {
  if (!first_) first_ = now + kPeriod;
  if (threads_.empty() && *first_ <= now) begin();
  const int found = found_;
  if (found == kNothing) return std::nullopt;
  return static_cast<Passed>(found);
}

void LimitWatch::pause(bool on) {
  const std::lock_guard lock(mutex_);
  paused_ = on;
  changed_.notify_all();
}

void LimitWatch::keep_looking(const Kind& kind, const std::stop_token& stop) {
  for (;;) {
    const nanoseconds before = thread_cpu_time();
    if (kind.passed(stop) && !stop.stop_requested()) {
      int nothing = kNothing;
      found_.compare_exchange_strong(nothing, static_cast<int>(kind.what));
      const std::uint64_t one = 1;
      [[maybe_unused]] const ssize_t n = ::write(found_fd_.get(), &one, sizeof one);
      return;
    }
    if (!rest(stop, thread_cpu_time() - before, kind)) return;
  }
}

bool LimitWatch::rest(const std::stop_token& stop, nanoseconds cost, const Kind& kind) {
  constexpr int kRestFactor = 10;
  using Clock = std::chrono::steady_clock;
  const auto begun = Clock::now();
  const nanoseconds least = std::max<nanoseconds>(kPeriod, cost),
                    most = std::max<nanoseconds>(kPeriod, kRestFactor * cost);
  for (nanoseconds until = kind.hurry ? least : most;; until = std::min(most, until + kPeriod)) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait_until(lock, stop, begun + until, [] { return false; });
      changed_.wait(lock, stop, [this] { return !paused_; });
    }
    if (stop.stop_requested()) return false;
    if (most <= Clock::now() - begun || (kind.hurry && kind.hurry())) return true;
  }
}

}  // namespace proctor
