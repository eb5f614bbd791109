#include "worker/gateway/call_record.h"

#include <algorithm>
#include <array>

#include "common/base/json_fields.h"
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

bool CallMachine::may_try_again() const {
  return state_ < State::kSent;  // half a request cannot be billed; a whole one may have run
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
  if (may_try_again()) return settle({});
  if (state_ == State::kRelaying) {
    if (!is_ok(status_)) return settle(by_status());
    return settle({Settlement::How::kCeiling, {}, "no_usage"});
  }
  return settle({Settlement::How::kCeiling, {}, "unknown"});
}

namespace {
// Under `name`, as far as they fit, and how many do not.
void put_told(JsonWriter& event, const std::string& name, const std::vector<ToolTold>& told) {
  Json list = Json::array();
  std::size_t bytes = 0, left_out = 0;
  for (const ToolTold& t : told) {
    JsonWriter one;
    one("id", printable(t.id, 200));
    one("name", printable(t.name, 100), kOptional);
    one("digest", t.digest);
    one("bytes", t.bytes);
    Json written = one.take();
    bytes += written.dump().size();  // as it is written: a byte may need six
    if (kToldBytes < bytes)
      ++left_out;
    else
      list.push_back(std::move(written));
  }
  if (!told.empty()) event(name.c_str(), list);
  event((name + "_left_out").c_str(), left_out, kOptional);
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
    JsonWriter edit;
    edit("member", s.member);
    edit("why", s.why);
    if (Json written = edit.take(); edits.empty() || edits.back() != written)
      edits.push_back(std::move(written));
  }
  JsonWriter v;
  v("call", r.number);
  v("route", r.api);
  v("model", r.model);
  v("stream", r.stream);
  v("bytes", r.bytes);
  v("digest", r.digest);
  v("sent_digest", r.sent_digest);
  v("stored_digest", r.stored_digest, kOptional);
  v("key", r.key, kOptional);
  v("kept", r.kept);
  if (r.kept && r.pieces_list.empty()) v("pieces", r.pieces);
  if (r.kept) v("pieces_list", r.pieces_list, kOptional);
  put_told(v, "tool_results", r.results);
  v("edits", edits);
  v.section("client", [&](JsonWriter& client) {
    client("user_agent", printable(r.user_agent, 200));
    client("retry_count", printable(r.retry_count, 20), kOptional);
  });
  v.section("ceiling", [&](JsonWriter& ceiling) {
    ceiling("input", r.ceiling.input);
    ceiling("output", r.output);
    ceiling("asked", r.ceiling.asked);
    ceiling("limit", r.limit);
    ceiling("micros", r.ceiling_micros);
    if (!r.delta) return;
    ceiling("bytes", r.widest_input);
    ceiling("delta", *r.delta);
    ceiling("rule", r.ceiling.input < r.widest_input ? "delta" : "bytes");
  });
  v("waited_ms", r.waited_ms);
  v("waited_for", printable(r.waited_for, 200), kOptional);
  return v.take();
}

Json refused_json(const CallRecord& r, int status, const Refusal& refusal) {
  JsonWriter v;
  v("call", r.number);
  v("route", r.api);
  v("status", status);
  v("why", printable(refusal.text, 500));
  v("code", refusal.code);
  v("final", refusal.cause == Refusal::Cause::kFinal);
  return v.take();
}

std::string overrun_words(const CallRecord& r, const Amount& billed) {
  return "the provider billed " + std::to_string(billed.input_tokens) + " tokens of input and " +
         std::to_string(billed.output_tokens) + " of output, reserved were " +
         std::to_string(r.ceiling.input) + " and " + std::to_string(r.output);
}

Json response_json(const CallRecord& r) {
  JsonWriter v;
  v("call", r.number);
  v("status", r.status);
  v("settled", r.settled.how);
  v("flag", r.settled.flag, kOptional);
  v("charged_micros", r.charged_micros);
  v("overrun", r.overrun, kOptional);
  v("bytes", r.answer_bytes);
  v("digest", r.answer_digest);
  v("stored_digest", r.answer_stored_digest, kOptional);
  v("kept", r.answer_kept);
  v("streamed", r.streamed, kOptional);
  put_told(v, "tool_calls", r.tool_calls);
  v("replayed", r.replayed, kOptional);
  v("first_byte_us", r.first_byte_us);
  v("wall_us", r.wall_us);
  v("tries", r.tries);
  v("client_gone", r.client_gone);
  if (r.facts.usage)
    v.section("usage", [&u = *r.facts.usage](JsonWriter& usage) {
      usage("input_tokens", u.input_tokens);
      usage("output_tokens", u.output_tokens);
      usage("cache_read", u.cache_read);
      usage("cache_write", u.cache_write);
      usage("cache_write_long", u.cache_write_long);
      usage("reasoning", u.reasoning);
    });
  v("usage_raw", printable(r.facts.raw_usage, 4096), kOptional);
  v("finish", printable(r.facts.finish, 100), kOptional);
  v("provider_id", printable(r.facts.id, 200), kOptional);
  if (r.asked_wait) v("retry_after_ms", *r.asked_wait);
  v("key_status", r.key_status, kOptional);
  v("why", printable(r.why, 300), kOptional);
  return v.take();
}
}  // namespace proctor
