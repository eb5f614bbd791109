#pragma once
// LoopLag: how late an Asio loop is.  Every 20 ms it asks to be called and looks how much later it
// was: that long any message, timer or signal would have waited too.
//
// A loop that stood still for a second missed fifty calls.  Each counts with its own lateness, or
// the worst second would weigh as little as one good moment (G. Tene's "coordinated omission").
// All on the loop's thread; the loop outlives it.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace boost::asio {
class io_context;
}

namespace proctor {

struct LagFigures {
  double p50_ms = 0, p99_ms = 0, max_ms = 0;  // of the last minute
  std::uint64_t stalled_ms = 0;               // in sum, of stops of more than kStall, ever
  friend bool operator==(const LagFigures&, const LagFigures&) = default;
};

// The numbers alone.
class LagBook {
 public:
  static constexpr std::chrono::microseconds kEvery{20'000};
  static constexpr std::chrono::microseconds kStall{10'000};
  static constexpr std::size_t kKept = 3'000;  // a minute's
  void late_by(std::chrono::microseconds late);
  LagFigures figures() const;

 private:
  void keep(std::chrono::microseconds late);
  std::vector<std::uint32_t> last_;  // microseconds; a ring once it is full
  std::size_t next_ = 0;
  std::chrono::microseconds stalled_{0};
};

class LoopLag {
 public:
  explicit LoopLag(boost::asio::io_context& io);
  ~LoopLag();
  LagFigures figures() const { return book_.figures(); }

 private:
  struct Timer;
  void wait();
  std::unique_ptr<Timer> timer_;
  LagBook book_;
};

}  // namespace proctor
