#include "worker/gateway/call_machine.h"

#include <algorithm>
#include <array>

#include "common/base/result.h"

namespace proctor {
namespace {

constexpr int kOk = 200, kMultiple = 300;

bool is_ok(int status) {
  return kOk <= status && status < kMultiple;
}

}  // namespace

std::string_view to_string(Settlement::How how) {
  using How = Settlement::How;
  switch (how) {
    case How::kReleased:
      return "released";
    case How::kUsage:
      return "usage";
    case How::kCeiling:
      return "ceiling";
    case How::kPartial:
      return "partial";
  }
  return "";
}

bool is_unbilled(int status) {
  constexpr std::array<int, 11> kUnbilled{400, 401, 403, 404, 408, 409, 413, 422, 429, 503, 529};
  return std::ranges::find(kUnbilled, status) != kUnbilled.end();
}

bool is_busy(int status) {
  constexpr int kTooMany = 429, kAway = 503, kOverloaded = 529;
  return status == kTooMany || status == kAway || status == kOverloaded;
}

void CallMachine::sending() {
  PROCTOR_ASSERT(state_ == State::kReserved);
  state_ = State::kSending;
}

void CallMachine::sent() {
  PROCTOR_ASSERT(state_ == State::kSending);
  state_ = State::kSent;
}

void CallMachine::answered(int status) {
  PROCTOR_ASSERT(state_ == State::kSent);
  status_ = status;
  state_ = State::kRelaying;
}

void CallMachine::client_gone() {
  if (state_ == State::kRelaying) state_ = State::kDraining;
}

bool CallMachine::may_try_again() const {
  switch (state_) {
    case State::kReserved:
    case State::kSending:  // half a request cannot be billed
      return true;
    case State::kSent:  // it may have run
    case State::kRelaying:
    case State::kDraining:
    case State::kSettled:
      return false;
  }
  return false;
}

void CallMachine::again() {
  PROCTOR_ASSERT(may_try_again());
  state_ = State::kReserved;
  status_ = 0;
}

Settlement CallMachine::settle(Settlement s) {
  PROCTOR_ASSERT(state_ != State::kSettled);
  state_ = State::kSettled;
  return s;
}

Settlement CallMachine::by_status() const {
  constexpr int kServer = 500;
  if (is_unbilled(status_) || (errors_are_free_ && kServer <= status_)) return {};
  return {Settlement::How::kCeiling, {}, "unknown"};
}

Settlement CallMachine::whole(const std::optional<Amount>& usage) {
  if (!is_ok(status_)) return settle(by_status());
  if (!usage) return settle({Settlement::How::kCeiling, {}, "no_usage"});
  return settle({Settlement::How::kUsage, *usage, ""});
}

Settlement CallMachine::cut(const std::optional<Amount>& begun,
                            const std::optional<Amount>& usage) {
  if (!is_ok(status_)) return settle(by_status());
  // Only where the input was said at the begin is it known; what it wrote until then may be all.
  const std::optional<Amount>& known = usage ? usage : begun;
  if (api_ != ModelApi::kMessages || !known)
    return settle({Settlement::How::kCeiling, {}, "partial"});
  Settlement out{Settlement::How::kPartial, *known, "partial"};
  out.actual.output_tokens = std::max(out.actual.output_tokens, output_granted_);
  return settle(out);
}

Settlement CallMachine::failed() {
  if (state_ == State::kReserved || state_ == State::kSending) return settle({});
  if (state_ == State::kRelaying || state_ == State::kDraining) {
    if (!is_ok(status_)) return settle(by_status());
    return settle({Settlement::How::kCeiling, {}, "no_usage"});
  }
  return settle({Settlement::How::kCeiling, {}, "unknown"});
}

}  // namespace proctor
