#include "coordinator/shell/loop_guards.h"

#include <sys/resource.h>
#include <algorithm>
#include <limits>

#include "common/base/files.h"
#include "common/wire/asio.h"
#include "common/wire/codec.h"
#include "coordinator/shell/state_folder.h"

namespace proctor {
constexpr std::size_t kInPassing = 80;
constexpr std::size_t kFilesMost = 1'000'000;  // for limits that are none

void raise_open_files() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == files.rlim_max) return;
  files.rlim_cur = files.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &files);
}

std::size_t open_files_limit() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return kFilesMost;
  return static_cast<std::size_t>(std::min<rlim_t>(files.rlim_cur, kFilesMost));
}

std::size_t connections_that_fit() {
  const std::size_t open = kInPassing + paths_in("/proc/self/fd").size();
  const std::size_t limit = open_files_limit();
  return open < limit ? limit - open : 0;
}

bool FloodGuard::takes(std::size_t port, const std::string& speaker, std::uint64_t kind) {
  using namespace wire;
  if (kind == kKindOf<ResultMessage> || kind == kKindOf<ArchiveChunk> || kind == kKindOf<Leave>)
    return true;
  Heard& heard = heard_[{port, speaker}];
  const bool takes = kind == kKindOf<Sync>       ? ++heard.syncs <= kSyncs
                     : kind == kKindOf<Progress> ? ++heard.progress <= kProgress
                     : kind == kKindOf<Want>     ? ++heard.wants <= kWants
                                                 : ++heard.garbage <= kGarbage;
  refused_ += takes ? 0 : 1;
  return takes;
}

bool FloodGuard::takes_arrival(const WorkerId& worker) {
  const bool takes = ++arrivals_[worker] <= kArrivals;
  refused_ += takes ? 0 : 1;
  return takes;
}

void FloodGuard::next_second() {
  heard_.clear();
  if (++seconds_ < 60) return;
  seconds_ = 0;
  arrivals_.clear();
}

using std::chrono::microseconds;

void LagBook::keep(microseconds late) {
  constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
  const auto us =
      static_cast<std::uint32_t>(std::clamp<std::int64_t>(late.count(), std::int64_t{0}, kMost));
  if (last_.size() < kKept) return last_.push_back(us);
  last_[next_] = us;
  next_ = (next_ + 1) % kKept;
}

void LagBook::late_by(microseconds late) {
  if (kStall < late) stalled_ += late;
  keep(late);
  std::size_t missed = 0;
  for (microseconds rest = late - kEvery; microseconds(0) < rest && missed < kKept;
       rest -= kEvery) {
    keep(rest);
    ++missed;
  }
}

LagFigures LagBook::figures() const {
  LagFigures out;
  out.stalled_ms = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(stalled_).count());
  if (last_.empty()) return out;
  std::vector<std::uint32_t> sorted = last_;
  std::ranges::sort(sorted);
  const auto at = [&](std::size_t percent) {
    return static_cast<double>(sorted[(sorted.size() - 1) * percent / 100]) / 1'000.0;
  };
  out.p50_ms = at(50);
  out.p99_ms = at(99);
  out.max_ms = at(100);
  return out;
}

struct LoopLag::Timer {
  boost::asio::steady_timer timer;
};

LoopLag::LoopLag(boost::asio::io_context& io) : timer_(new Timer{boost::asio::steady_timer(io)}) {
  wait();
}

LoopLag::~LoopLag() = default;

void LoopLag::wait() {
  timer_->timer.expires_after(LagBook::kEvery);
  timer_->timer.async_wait([this](boost::system::error_code ec) {
    if (ec) return;
    book_.late_by(std::chrono::duration_cast<microseconds>(
        boost::asio::steady_timer::clock_type::now() - timer_->timer.expiry()));
    wait();
  });
}
}  // namespace proctor
