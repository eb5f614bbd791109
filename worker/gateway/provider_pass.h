#pragma once
// A call's word with the worker's other calls of the same provider (provider_streak.h).  Whatever
// becomes of the call, it is said how it ended.  One thread.
#include <chrono>
#include <string>

#include "worker/gateway/call_record.h"
#include "worker/gateway/provider_connection.h"

namespace proctor {

class ProviderPass {
 public:
  // All outlive it; `run` is only told from others.
  ProviderPass(ProviderPool& pool, const ModelAccess& access, ProviderStreak::Run run)
      : pool_(pool), access_(access), run_(run) {}
  ProviderPass(const ProviderPass&) = delete;
  ProviderPass& operator=(const ProviderPass&) = delete;
  ~ProviderPass();

  // Zero: the call may be made.  Its provider had no room (why() says it), or fails.
  std::chrono::milliseconds wait();
  std::string why() const {
    return place_ == 0 ? "a provider that failed" : "a provider without room";
  }
  // It is made although it should wait.
  void go() { begun_ = true; }
  // `cut`: by us, for its agent had ended.  `floods`: the run asks for so much that a want of room
  // says nothing to others.
  void end(const CallRecord& call, bool cut, bool floods);

 private:
  ProviderPool& pool_;
  const ModelAccess& access_;
  const ProviderStreak::Run run_;
  bool begun_ = false, probe_ = false;
  std::uint32_t place_ = 0;  // in the order of those that a hold kept; 0: none did
};

}  // namespace proctor
