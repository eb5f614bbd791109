#pragma once
// Whether the model of a run could be had at all, by how its calls ended: what the operator or a
// provider did wrong is never the agent's failure (docs/gateway.md, "When a model cannot be had").
// Pure; one thread.
#include <chrono>
#include <cstdint>
#include <deque>
#include <utility>

#include "common/score/outcome.h"
#include "worker/gateway/call_record.h"

namespace proctor {

class ModelWatch {
 public:
  using Millis = std::chrono::milliseconds;
  // `earlier`: an earlier life of this worker served the run, and nobody knows what was answered.
  explicit ModelWatch(bool earlier) : answered_(earlier) {}

  // A stream has begun to say something, and its agent reads it: `take` says how it ends.
  void begun() { ++streams_; }
  // A call has ended.  `cut`: by us, for its agent had ended.  `evidence`: its event, 0: none.
  void take(const CallRecord& call, bool cut, std::uint64_t evidence);
  // A call that was not cut has been settled, by a clock of the worker; `under_way` calls of the
  // run were, it among them.
  void charged(const CallRecord& call, std::uint64_t under_way = 1, Millis now = Millis(0));
  // The run may make no further call, by this cap.
  void capped(const MeterDenied& no);
  // No call can be made any more, whatever the agent does: a key, a book.
  void refused(std::string why, std::uint64_t evidence);

  // The gateway refused the run's first request, so what the agent does by itself never began.
  void barred(const std::string& why) {
    failed("its gateway does not pass its first request: " + why, false, 0);
  }

  // Since the last answer the run asked for so much that its provider's failure may be its doing.
  bool floods() const { return flooded_; }
  // Was a call answered, as far as anybody knows?
  bool answered() const { return answered_ || 0 < streams_; }
  // Empty `why`: it was had, or nobody asked for it.  Where calls were answered, and since the last
  // of them its provider failed or had no room (busy): so, unless the run may be the cause.
  ModelLack lack() const;

 private:
  void weigh(const CallRecord& call, std::uint64_t under_way, Millis now);
  void failed(std::string why, bool busy, std::uint64_t evidence);
  bool answered_;
  std::uint64_t streams_ = 0;  // under way, and begun
  ModelLack refused_, failed_, eaten_;
  ModelLack tail_;  // its provider's failure since the last answer; a want of room before others
  bool flooded_ = false;
  std::deque<Millis> ends_;          // the latest calls, as many as matter
  std::uint64_t most_answered_ = 0;  // bytes and tokens of output that an answered call asked for
  // The sums of calls that were not answered.
  std::uint64_t lost_micros_ = 0, lost_tokens_ = 0, lost_calls_ = 0;
};

}  // namespace proctor
