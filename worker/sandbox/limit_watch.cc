#include "worker/sandbox/limit_watch.h"

#include <algorithm>

#include "worker/sandbox/disk_use.h"

namespace proctor {

LimitWatch::LimitWatch(const SandboxSpec& spec, Host host) : spec_(&spec), host_(std::move(host)) {
  if (sockets_watched(spec)) sockets_.emplace(socket_share(spec.memory_bytes), host_.sockets);
}

std::optional<LimitWatch::Passed> LimitWatch::look(std::chrono::steady_clock::time_point now) {
  constexpr std::chrono::milliseconds kPeriod{90};
  constexpr int kRestFactor = 10;
  // Most commands end before there is anything to be seen.
  if (!next_) next_ = now + kPeriod;
  if (now < *next_) return std::nullopt;
  if (0 < spec_->cpu.count())
    if (const auto used = host_.cpu_time(); used && spec_->cpu < *used) return Passed::kCpu;
  if (host_.memory && 0 < spec_->memory_bytes && spec_->memory_bytes < host_.memory())
    return Passed::kMemory;
  if (sockets_ && sockets_->passed(host_.inside)) return Passed::kMemory;
  if (!spec_->disk.places.empty() && disk_limit_passed(spec_->disk, host_.inside()))
    return Passed::kDisk;
  const auto cost = std::chrono::steady_clock::now() - now;
  next_ = now + std::max<std::chrono::steady_clock::duration>(kPeriod, kRestFactor * cost);
  return std::nullopt;
}

}  // namespace proctor
