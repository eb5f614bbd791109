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
  const ProviderStreak::May may = pool_.may_call(access_, run_);
  begun_ = may.wait.count() == 0;
  probe_ = may.probe;
  return may.wait;
}

void ProviderPass::end(const CallRecord& call, bool cut) {
  if (!std::exchange(begun_, false)) return;
  pool_.call_ended(access_, run_, end_of(call, cut), probe_);
}

}  // namespace proctor
