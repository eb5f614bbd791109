#pragma once
// MeterServer: the metering socket of one attempt.  Accepts a few clients on a Unix socket in a
// folder of its own, which the agent's sandbox shows read-only at kMeterAt, and answers each line
// through its Meter.  Decides nothing.
//
// Its clients are foreign code.  A line, a client's unread answers, the number of clients and the
// lines of a second are bounded; who floods waits, who stalls waits for nobody but himself, who
// breaks the framing is told why and cut off.  Nothing a client does ends the server or the run.
// One thread of its own, from start() to the destructor; the Meter's functions are called there.
// Errors: kUnavailable, the socket cannot be had.
#include <memory>
#include <string>
#include <string_view>

#include "common/base/files.h"
#include "common/base/result.h"

namespace proctor {
inline constexpr const char* kMeterAt = "/proctor/meter";
inline constexpr const char* kMeterSocket = "/proctor/meter/socket";
inline constexpr std::size_t kMeterClientsMax = 16;
inline constexpr std::size_t kMeterLinesPerSecond = 2'000;

class MeterServer {
 public:
  class Meter {
   public:
    virtual ~Meter() = default;
    // The line that answers a line, both without and with its '\n'.
    virtual std::string answer(std::string_view line) = 0;
    // About every 200 ms.  What every client is told unasked, "" for nothing.
    virtual std::string tick() = 0;
  };

  // Makes the socket in `dir`, which exists and holds nothing else.  `meter` outlives the server.
  static Result<std::unique_ptr<MeterServer>> start(const fs::path& dir, Meter& meter);
  MeterServer(const MeterServer&) = delete;
  MeterServer& operator=(const MeterServer&) = delete;
  // Cuts every client off and joins the thread: nothing is answered any more.
  ~MeterServer();

 private:
  struct Impl;
  explicit MeterServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};
}  // namespace proctor
