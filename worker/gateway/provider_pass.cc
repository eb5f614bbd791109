#include "worker/gateway/provider_pass.h"

#include <utility>

namespace proctor {
namespace {

using End = ProviderStreak::End;

// A provider that has no room for us (429) or refuses us is there.
End end_of(const CallRecord& call, bool cut) {
  if (call.unasked || cut) return End::kUnknown;
  // Not every endpoint can count, and one that cannot is none the worse for it.
  if (call.api == ModelApi::kCountTokens) return End::kUnknown;
  return is_unanswered(call) ? End::kFailed : End::kAnswered;
}

}  // namespace

ProviderPass::~ProviderPass() {
  if (begun_) pool_.call_ended(access_, run_, End::kUnknown, probe_);
}

std::chrono::milliseconds ProviderPass::wait() {
  if (const auto held = pool_.held(access_, place_); 0 < held.count()) return held;
  const ProviderStreak::May may = pool_.may_call(access_, run_);
  begun_ = may.wait.count() == 0;
  probe_ = may.probe;
  return may.wait;
}

void ProviderPass::end(const CallRecord& call, bool cut, bool floods) {
  if (!std::exchange(begun_, false)) return;
  pool_.call_ended(access_, run_, end_of(call, cut), probe_);
  if (!is_busy(call.status)) {
    if (!call.unasked && !is_unanswered(call)) pool_.had_room(access_);
  } else if (!floods) {
    pool_.no_room(access_, call.asked_wait);
  }
}

}  // namespace proctor
