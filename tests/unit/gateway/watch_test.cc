// Whether a run's model could be had, by how its calls ended.
#include <doctest/doctest.h>

#include "worker/gateway/session_shared.h"

using namespace proctor;

namespace {

CallRecord call(int status, const std::string& why = "") {
  CallRecord out;
  out.status = status;
  out.why = why;
  return out;
}

ModelLack after(const std::vector<CallRecord>& calls, bool earlier = false) {
  ModelWatch watch(earlier);
  std::uint64_t seq = 10;
  for (const CallRecord& c : calls) watch.take(c, false, seq++);
  return watch.lack();
}

}  // namespace

TEST_SUITE("gateway watch") {
  TEST_CASE("only where no call was answered are failures of a provider the run's end") {
    struct Row {
      const char* what;
      std::vector<CallRecord> calls;
      const char* why;
      bool busy;
    };
    CallRecord counted = call(404), keyless = call(0, "the variable K has no key"),
               over = call(200), revoked = call(401), barred = call(403);
    revoked.key_refused = barred.key_refused = true;  // our own question was refused, too
    counted.api = ModelApi::kCountTokens;
    keyless.unasked = true;
    over.overrun = true;
    CallRecord left = call(500);
    left.client_gone = true;
    over.why = "billed more";
    for (const Row& row :
         {Row{"none was made", {}, "", false},
          Row{"answered", {call(200)}, "", false},
          Row{"answered, then broken", {call(200), call(500)}, "its provider answers 500", false},
          Row{"answered, then half", {call(200), call(200, "cut")}, "cut", false},
          Row{"answered, then left alone", {call(200), left}, "", false},
          Row{"broken between answers", {call(200), call(500), call(0, "x"), call(200)}, "", false},
          Row{"refused after an answer", {call(200), call(404)}, "", false},
          Row{"answered, then no room", {call(200), call(429)}, "its provider answers 429", true},
          Row{"no room between answers", {call(200), call(503), call(200)}, "", false},
          Row{"no room, then worse",
              {call(200), call(529), call(500), call(400)},
              "its provider answers 529",
              true},
          Row{"broken, then answered", {call(502), call(200)}, "", false},
          Row{"billed above its ceiling", {over}, "", false},
          Row{"broken", {call(500)}, "its provider answers 500", false},
          Row{"nobody there", {call(0, "connect: refused")}, "connect: refused", false},
          Row{"a stream that broke off", {call(200, "cut")}, "cut", false},
          Row{"no such address or name", {call(404)}, "its provider answers 404", false},
          Row{"busy", {call(500), call(429)}, "its provider answers 429", true},
          Row{"busy, then broken", {call(503), call(500)}, "its provider answers 500", false},
          Row{"malformed by the agent", {call(400), call(422)}, "", false},
          Row{"an endpoint without a count", {counted}, "", false},
          Row{"refused",
              {call(401)},
              "its provider answers 401: it does not take the "
              "operator's key or account",
              false},
          Row{"its key refused after an answer",
              {call(200), revoked},
              "its provider answers 401: it does not take the operator's key or account",
              false},
          Row{"its account barred after an answer",
              {call(200), barred},
              "its provider answers 403: it does not take the operator's key or account",
              false},
          Row{"one call refused after an answer", {call(200), call(401)}, "", false},
          Row{"refused and then answered, which no client sees",
              {call(401), call(200)},
              "its provider answers 401: it does not take the operator's key or account",
              false},
          Row{"forbidden from the first call on",
              {call(403), call(403)},
              "its provider answers 403: it does not take the operator's key or account",
              false},
          Row{"what it asked is forbidden, after an answer", {call(200), call(403)}, "", false},
          Row{"forbidden, then answered", {call(403), call(200)}, "", false},
          Row{"malformed, then forbidden",
              {call(400), call(403)},
              "its provider answers 403: it does not take the operator's key or account",
              false},
          Row{"no key", {keyless}, "the variable K has no key", false}}) {
      CAPTURE(row.what);
      const ModelLack lack = after(row.calls);
      CHECK(lack.why == row.why);
      CHECK(lack.busy == row.busy);
    }
    CHECK(after({call(500), call(500)}).evidence == 11);
    CHECK(after({call(401), call(401)}).evidence == 10);
  }

  TEST_CASE("who has read of a stream was answered, unless its provider breaks it") {
    CallRecord stream = call(200);
    stream.begun = true;
    for (const int provoked : {401, 403, 429, 500}) {
      CAPTURE(provoked);
      ModelWatch leaves(false);
      leaves.begun();
      CHECK(leaves.answered());
      leaves.take(call(provoked), false, 1);
      leaves.take(stream, true, 2);
      CHECK(leaves.lack().why.empty());
      ModelWatch first(false);
      if (provoked != 401) first.take(call(provoked), false, 1);
      first.begun();
      first.take(stream, true, 2);
      CHECK(first.lack().why.empty());
    }
    CallRecord broken = call(200, "the stream ended before its last event");
    broken.begun = true;
    ModelWatch watch(false);
    watch.begun();
    watch.take(broken, false, 1);
    CHECK_FALSE(watch.answered());
    CHECK(watch.lack().why == "the stream ended before its last event");
  }

  TEST_CASE("a first request that the gateway does not pass is a lack until a call is answered") {
    ModelWatch watch(false);
    watch.barred("input: no");
    CHECK(watch.lack().why == "its gateway does not pass its first request: input: no");
    CHECK_FALSE(watch.lack().busy);
    watch.take(call(400), false, 1);
    CHECK_FALSE(watch.lack().why.empty());
    watch.take(call(200), false, 2);
    CHECK(watch.lack().why.empty());
    ModelWatch later(true);
    later.barred("input: no");
    CHECK(later.lack().why.empty());
  }

  TEST_CASE("a cap is eaten where it would hold the next call but for those without an answer") {
    using How = Settlement::How;
    const auto lost = [](int status, How how, std::uint64_t micros) {
      CallRecord out = call(status);
      out.settled.how = how;
      out.charged_micros = micros;
      out.ceiling.input = 70;
      out.output = 30;
      return out;
    };
    const CallRecord broken = lost(0, How::kCeiling, 60), free = lost(500, How::kReleased, 0),
                     answered = lost(200, How::kUsage, 60);
    CallRecord left = broken;
    left.client_gone = true;
    const auto eaten = [](const std::vector<CallRecord>& calls, const MeterDenied& no) {
      ModelWatch watch(false);
      for (const CallRecord& c : calls) {
        watch.charged(c);
        watch.take(c, false, 3);
      }
      watch.capped(no);
      return watch.lack().eaten;
    };
    const auto no = [](const char* cap, std::uint64_t short_by) {
      return MeterDenied{cap, short_by, 0, true, "budget_exceeded"};
    };
    CHECK(eaten({answered, broken, broken}, no("usd", 120)));
    CHECK_FALSE(eaten({answered, broken, broken}, no("usd", 121)));
    CHECK(eaten({answered, broken, broken}, no("tokens", 200)));
    CHECK_FALSE(eaten({answered, broken, broken}, no("tokens", 201)));
    CHECK(eaten({answered, broken, broken}, no("model_calls", 2)));
    CHECK_FALSE(eaten({answered, broken, broken}, no("model_calls", 3)));
    CHECK_FALSE(eaten({answered, broken, broken}, no("tool_calls", 1)));
    CHECK_FALSE(eaten({answered, broken, broken}, no("usd", 0)));  // stopped for something else
    for (const CallRecord& none : {answered, free, left})
      CHECK_FALSE(eaten({none, none}, no("usd", 1)));
    ModelWatch watch(true);
    watch.charged(broken);
    watch.take(broken, false, 8);
    watch.capped(no("usd", 5));
    CHECK(
        watch.lack().why ==
        "calls that nobody answered used up its cap on usd; the last: its provider did not answer");
    CHECK(watch.lack().evidence == 8);
  }

  TEST_CASE("a run that may have made its provider's want of room itself is judged") {
    using std::chrono::milliseconds;
    ModelWatch watch(false);
    const auto ends = [&](const CallRecord& call, std::uint64_t at_once, milliseconds now) {
      watch.charged(call, at_once, now);
      watch.take(call, false, 2);
    };
    const auto anew = [&] {
      watch = ModelWatch(false);
      ends(call(200), 1, milliseconds(0));
    };
    CallRecord full = call(429);
    for (const std::uint64_t at_once : {4, 5}) {
      anew();
      ends(full, at_once, milliseconds(1));
      CHECK(watch.lack().busy == (at_once == 4));
      ends(full, 1, milliseconds(2));
      CHECK(watch.lack().busy == (at_once == 4));  // it ran against it then
      CHECK(watch.floods() == (at_once == 5));
      ends(call(200), 1, milliseconds(3));
      ends(full, 1, milliseconds(4));
      CHECK(watch.lack().busy);
    }
    for (const int apart : {900, 1'000}) {
      anew();
      for (int i = 1; i < 200; ++i) ends(full, 1, milliseconds(i * apart));
      CHECK(watch.lack().busy == (apart == 1'000));
    }
    CallRecord answered = call(200);
    answered.widest_input = 250'000;
    for (const std::uint64_t asked : {400'000, 400'001, 500'000, 500'001}) {
      CAPTURE(asked);
      full.widest_input = asked - 1'000;
      full.output = 1'000;
      anew();
      ends(full, 1, milliseconds(1));
      CHECK(watch.lack().busy == (asked == 400'000));
      ends(answered, 1, milliseconds(2));
      ends(full, 1, milliseconds(3));
      CHECK(watch.lack().busy == (asked != 500'001));
    }
    // Before any answer there is nothing to gain: it had no model (decision 96).
    watch = ModelWatch(false);
    ends(full, 9, milliseconds(0));
    CHECK(watch.lack().busy);
    anew();
    watch.take(call(429), true, 2);
    CHECK_FALSE(watch.lack().busy);
  }

  TEST_CASE("what was cut with its agent, and what an earlier life heard, is held against nobody") {
    ModelWatch watch(false);
    watch.take(call(0, "stopped"), true, 1);
    CHECK(watch.lack().why.empty());
    CHECK(after({call(500)}, true).later);
    CHECK(after({call(403)}, true).why.empty());
    CHECK(after({call(401)}, true).why.empty());
    CallRecord revoked = call(401);
    revoked.key_refused = true;
    CHECK_FALSE(after({revoked}, true).why.empty());
  }
}
