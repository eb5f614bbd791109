#pragma once
// A call's word with the worker's other calls of the same provider (provider_streak.h).  Whatever
// becomes of the call, it is said how it ended.  One thread.
#include <chrono>
#include <string>

#include "worker/gateway/call_record.h"
#include "worker/gateway/upstream.h"

namespace proctor {

class ProviderPass {
 public:
  // All outlive it; `run` is only told from others.
  ProviderPass(UpstreamPool& pool, const ModelAccess& access, ProviderStreak::Run run)
      : pool_(pool), access_(access), run_(run) {}
  ProviderPass(const ProviderPass&) = delete;
  ProviderPass& operator=(const ProviderPass&) = delete;
  ~ProviderPass();

  // Zero: the call may be made.
  std::chrono::milliseconds wait();
  // It is made although it should wait.
  void go() { begun_ = true; }
  // `cut`: by us, for its agent had ended.
  void end(const CallRecord& call, bool cut);

 private:
  UpstreamPool& pool_;
  const ModelAccess& access_;
  const ProviderStreak::Run run_;
  bool begun_ = false, probe_ = false;
};

}  // namespace proctor
