#include "worker/gateway/call_record.h"

#include "common/base/text.h"

namespace proctor {

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
              {"route", to_string(r.api)},
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
  return {{"call", r.number},     {"route", to_string(r.api)},
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
