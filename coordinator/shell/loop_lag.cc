#include "coordinator/shell/loop_lag.h"

#include <algorithm>
#include <limits>

#include "common/wire/asio.h"

namespace proctor {

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
