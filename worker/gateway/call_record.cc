#include "worker/gateway/call_record.h"

#include <algorithm>
#include <array>

#include "common/base/result.h"
#include "common/base/text.h"

namespace proctor {
namespace {
constexpr int kOk = 200, kMultiple = 300;

bool is_ok(int status) {
  return kOk <= status && status < kMultiple;
}
}  // namespace

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

namespace {
// Under `name`, as far as they fit, and how many do not.
void put_told(Json& event, const std::string& name, const std::vector<ToolTold>& told) {
  if (told.empty()) return;
  Json& list = event[name] = Json::array();
  std::size_t bytes = 0, left_out = 0;
  for (const ToolTold& t : told) {
    Json one = {{"id", printable(t.id, 200)}, {"digest", t.digest}, {"bytes", t.bytes}};
    if (!t.name.empty()) one["name"] = printable(t.name, 100);
    bytes += one.dump().size();  // as it is written: a byte may need six
    if (kToldBytes < bytes)
      ++left_out;
    else
      list.push_back(std::move(one));
  }
  if (0 < left_out) event[name + "_left_out"] = left_out;
}
}  // namespace

bool is_unanswered(const CallRecord& r) {
  constexpr int kMultiple = 300, kServer = 500;
  if (r.unasked) return false;
  return r.status == 0 || kServer <= r.status ||
         (r.status < kMultiple && !r.why.empty() && !r.overrun);
}

MeterCharge charge_of(const CallRecord& r, const std::string& id, const Settlement& s,
                      bool charges) {
  const bool unknown = s.how == Settlement::How::kCeiling;
  if (r.replayed == 0) return {id, s.actual, unknown, false, false, r.widest_input};
  if (charges) return {id, s.actual, unknown, /*replayed=*/true, /*priced=*/true, r.widest_input};
  return {id, unknown ? Amount{} : s.actual, false, /*replayed=*/true};
}

Json request_json(const CallRecord& r) {
  Json edits = Json::array();
  for (const Splice& s : r.edits) {
    Json edit = {{"member", s.member}, {"why", s.why}};
    if (edits.empty() || edits.back() != edit) edits.push_back(std::move(edit));
  }
  Json out = {{"call", r.number},
              {"route", word_of(r.api)},
              {"model", r.model},
              {"stream", r.stream},
              {"bytes", r.bytes},
              {"digest", r.digest},
              {"sent_digest", r.sent_digest},
              {"kept", r.kept},
              {"edits", std::move(edits)},
              {"client", {{"user_agent", printable(r.user_agent, 200)}}},
              {"ceiling",
               {{"input", r.ceiling.input},
                {"output", r.output},
                {"asked", r.ceiling.asked},
                {"limit", r.limit},
                {"micros", r.ceiling_micros}}},
              {"waited_ms", r.waited_ms}};
  if (r.delta) {
    out["ceiling"]["bytes"] = r.widest_input;
    out["ceiling"]["delta"] = *r.delta;
    out["ceiling"]["rule"] = r.ceiling.input < r.widest_input ? "delta" : "bytes";
  }
  if (!r.key.empty()) out["key"] = r.key;
  if (r.kept && r.pieces_list.empty()) out["pieces"] = r.pieces;
  if (r.kept && !r.pieces_list.empty()) out["pieces_list"] = r.pieces_list;
  if (!r.stored_digest.empty()) out["stored_digest"] = r.stored_digest;
  put_told(out, "tool_results", r.results);
  if (!r.retry_count.empty()) out["client"]["retry_count"] = printable(r.retry_count, 20);
  if (!r.waited_for.empty()) out["waited_for"] = printable(r.waited_for, 200);
  return out;
}

Json refused_json(const CallRecord& r, int status, const Refusal& refusal) {
  return {{"call", r.number},     {"route", word_of(r.api)},
          {"status", status},     {"why", printable(refusal.text, 500)},
          {"code", refusal.code}, {"final", refusal.cause == Refusal::Cause::kFinal}};
}

std::string overrun_words(const CallRecord& r, const Amount& billed) {
  return "the provider billed " + std::to_string(billed.input_tokens) + " tokens of input and " +
         std::to_string(billed.output_tokens) + " of output, reserved were " +
         std::to_string(r.ceiling.input) + " and " + std::to_string(r.output);
}

Json response_json(const CallRecord& r) {
  Json out = {{"call", r.number},
              {"status", r.status},
              {"settled", to_string(r.settled.how)},
              {"charged_micros", r.charged_micros},
              {"bytes", r.answer_bytes},
              {"digest", r.answer_digest},
              {"kept", r.answer_kept},
              {"first_byte_us", r.first_byte_us},
              {"wall_us", r.wall_us},
              {"tries", r.tries},
              {"client_gone", r.client_gone}};
  if (!r.answer_stored_digest.empty()) out["stored_digest"] = r.answer_stored_digest;
  if (r.streamed) out["streamed"] = true;
  put_told(out, "tool_calls", r.tool_calls);
  if (0 < r.replayed) out["replayed"] = r.replayed;
  if (r.facts.usage) {
    const Amount& u = *r.facts.usage;
    out["usage"] = {{"input_tokens", u.input_tokens},   {"cache_read", u.cache_read},
                    {"cache_write", u.cache_write},     {"cache_write_long", u.cache_write_long},
                    {"output_tokens", u.output_tokens}, {"reasoning", u.reasoning}};
  }
  if (!r.facts.raw_usage.empty()) out["usage_raw"] = printable(r.facts.raw_usage, 4096);
  if (!r.facts.finish.empty()) out["finish"] = printable(r.facts.finish, 100);
  if (!r.facts.id.empty()) out["provider_id"] = printable(r.facts.id, 200);
  if (r.asked_wait) out["retry_after_ms"] = r.asked_wait->count();
  if (!r.settled.flag.empty()) out["flag"] = r.settled.flag;
  if (r.overrun) out["overrun"] = true;
  if (r.key_status != 0) out["key_status"] = r.key_status;
  if (!r.why.empty()) out["why"] = printable(r.why, 300);
  return out;
}
}  // namespace proctor
