// The money and the caps of one run: by example, and as properties with an auditor that shares no
// code with the meter.
#include "worker/core/run_meter.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <limits>

#include "common/contract/cost_model_parser.h"
#include "tests/support/price_table.h"

namespace proctor {
namespace {

using testing::price_table;

// 1 micro-dollar per token of "m", 2 per token of any other, 10 per tool call and millisecond-free.
MeterPlan plan(std::int64_t ask) {
  MeterPlan p;
  p.prices = price_table(
      "llm_request,token,0.000001,,m\nllm_request,token,0.000002,,*\ntool_call,call,0.00001,,\n"
      "search,query,0.0000005,,\n");
  p.ask = MicroUsd::from_micros(ask);
  p.caps.wall = std::chrono::milliseconds(1000);
  return p;
}

MeterReserve call(std::string id, std::uint64_t input, std::uint64_t output,
                  std::string model = "m") {
  return {std::move(id),
          {std::string(kLlmRequest), "", std::move(model)},
          {input, output},
          Witness::kSelfReported};
}
MeterReserve tool(std::string id, std::uint64_t ms = 0) {
  return {std::move(id), {std::string(kToolCall)}, {.ms = ms}, Witness::kSelfReported};
}

const Instant kNow{};

// "granted 5", "denied tokens 7 final: ...", "charged 5 overrun", "released", "error: ...".
std::string said(const Result<MeterAnswer>& r) {
  if (!r.ok()) return "error: " + r.error().detail;
  if (const auto* g = std::get_if<MeterGranted>(&*r))
    return "granted " + std::to_string(g->held.micros()) + (g->defaulted ? " by default" : "");
  if (const auto* d = std::get_if<MeterDenied>(&*r))
    return "denied " + d->cap + " " + std::to_string(d->short_by) + (d->final ? " final" : "") +
           ": " + d->reason;
  if (const auto* c = std::get_if<MeterCharged>(&*r))
    return "charged " + std::to_string(c->charged.micros()) + (c->overrun ? " overrun" : "");
  return "released";
}

}  // namespace

TEST_SUITE("meter") {
  TEST_CASE("a call is reserved at its worst case and charged at what it came to") {
    RunMeter m(plan(1000));
    CHECK(said(m.reserve(call("a", 100, 200), kNow)) == "granted 300");
    CHECK(m.held() == MicroUsd::from_micros(300));
    CHECK(said(m.charge({"a", {100, 50}})) == "charged 150");
    CHECK(m.spent() == MicroUsd::from_micros(150));
    CHECK(m.held() == MicroUsd::zero());
    CHECK(m.usage().priced_micros == 150);
    CHECK(m.usage().reported_micros == 150);
    CHECK(m.usage().reported_tokens == 150);
    CHECK(m.usage().model_calls == 1);
    CHECK(said(m.reserve(call("b", 100, 200, "other"), kNow)) == "granted 600 by default");
    CHECK(said(m.release({"b"})) == "released");
    CHECK(m.usage().defaulted == 0);
    CHECK(said(m.reserve({"c", {.type = "search", .unit = "query"}, {.units = 3}}, kNow)) ==
          "granted 2");
    CHECK(said(m.charge({"c", {.units = 1}})) == "charged 1");
    CHECK(m.usage().other_micros == 1);
    CHECK(price(plan(0).prices, m.usage()).total() == m.spent());
  }

  TEST_CASE("a meter that goes on begins at the ceiling of the one before") {
    MeterPlan p = plan(10'000);
    p.caps.tokens = 1000;
    RunMeter before(p);
    REQUIRE(before.start_program().has_value());
    CHECK(said(before.reserve(call("a", 100, 200), kNow)) == "granted 300");
    CHECK(said(before.charge({"a", {100, 50}})) == "charged 150");
    CHECK(said(before.reserve(call("b", 200, 100), kNow)) == "granted 300");
    RunMeter m(p);
    m.go_on(before.ceiling(), Millis(400));
    CHECK(m.spent() == MicroUsd::from_micros(150 + 300 + 10));
    CHECK(m.used(Cap::kTokens) == 450);
    CHECK(m.used(Cap::kModelCalls) == 2);
    CHECK(m.used(Cap::kToolCalls) == 1);
    // What was open is charged already, whatever it came to.
    CHECK(said(m.charge({"b", {1, 1}})) == "charged 0");
    CHECK(said(m.release({"unheard of"})) == "released");
    CHECK(said(m.reserve(call("c", 500, 40), kNow)) == "granted 540");
    CHECK(said(m.reserve(call("d", 10, 1), kNow)).starts_with("denied tokens 1"));
    m.program_ended({Millis(900), Millis(5), 7});
    m.agent_gone();
    CHECK(m.usage().agent_ms == 900);
    CHECK(m.usage().model_calls == 3);
    CHECK(m.usage().tool_calls == 1);
  }

  TEST_CASE("the ceiling is what is charged if nobody says anything any more") {
    RunMeter m(plan(10'000));
    const auto all = [&] { return price(plan(0).prices, m.ceiling()).total(); };
    CHECK(m.ceiling() == m.usage());
    static_cast<void>(m.reserve(call("a", 100, 200), kNow));
    static_cast<void>(m.reserve(call("b", 10, 20, "other"), kNow));
    static_cast<void>(m.reserve(tool("c", 50), kNow));
    static_cast<void>(m.reserve({"d", {.type = "search", .unit = "query"}, {.units = 3}}, kNow));
    static_cast<void>(m.reserve({"e", {std::string(kAcceptanceCycle)}, {.ms = 5}}, kNow));
    CHECK(all() == MicroUsd::from_micros(300 + 60 + 10 + 2));
    CHECK(m.ceiling().failed_cycles == 1);
    CHECK(m.usage().model_calls == 0);
    static_cast<void>(m.charge({"a", {100, 50}}));
    CHECK(all() == MicroUsd::from_micros(150 + 60 + 10 + 2));
    static_cast<void>(m.release({"b"}));
    CHECK(all() == MicroUsd::from_micros(150 + 10 + 2));
    const Usage before = m.ceiling();
    m.agent_gone();
    CHECK(m.usage() == before);
    CHECK(m.ceiling() == before);
  }

  TEST_CASE("a call that the fleet's rate holds back is denied with the time to wait") {
    MeterPlan p = plan(1000);
    p.caps.calls_per_minute = 2;
    std::vector<std::string> asked;
    std::optional<CallWait> wait = CallWait{Millis(700), "rates.calls_per_minute: enough"};
    p.gate = [&](const ActionName& action, Instant) {
      asked.push_back(action.type + action.model);
      return wait;
    };
    RunMeter m(std::move(p));
    const auto denied = m.reserve(call("a", 1, 1), kNow);
    REQUIRE(denied.ok());
    const auto& no = std::get<MeterDenied>(*denied);
    CHECK(no.cap == "calls_per_minute");
    CHECK(no.retry_after_ms == 700);
    CHECK(!no.final);
    CHECK(no.reason == "rates.calls_per_minute: enough");
    CHECK(m.held() == MicroUsd::zero());
    wait.reset();
    CHECK(said(m.reserve(call("b", 1, 1), kNow)) == "granted 2");
    CHECK(said(m.reserve(tool("c"), kNow)) == "granted 10");
    // What something else forbids takes nothing of the fleet's.
    CHECK(std::get<MeterDenied>(*m.reserve(call("d", 1, 1), kNow)).reason ==
          "2 calls in the last minute, as many as the cap allows");
    CHECK(std::get<MeterDenied>(*m.reserve(call("e", 5000, 1), kNow)).cap == "usd");
    CHECK(asked == std::vector<std::string>{"llm_requestm", "llm_requestm", "tool_call"});
  }

  TEST_CASE("every operation has one effect by its id") {
    RunMeter m(plan(1000));
    const std::string granted = said(m.reserve(call("a", 1, 1), kNow));
    CHECK(said(m.reserve(call("a", 1, 1), kNow)) == granted);
    CHECK(m.held() == MicroUsd::from_micros(2));
    CHECK(said(m.reserve(call("a", 1, 2), kNow)) ==
          "error: id: \"a\" was used for another reservation");
    CHECK(said(m.charge({"a", {1, 0}})) == "charged 1");
    CHECK(said(m.charge({"a", {1, 0}})) == "charged 1");
    CHECK(said(m.charge({"a", {1, 1}})) == "error: id: \"a\" was charged with other amounts");
    CHECK(said(m.release({"a"})) == "error: id: \"a\" was charged");
    CHECK(said(m.reserve(call("a", 1, 1), kNow)) == granted);
    CHECK(said(m.release({"nobody"})) == "error: id: nothing is reserved as \"nobody\"");
    CHECK(said(m.charge({"nobody", {}})) == "error: id: nothing is reserved as \"nobody\"");
    CHECK(said(m.reserve(call("b", 1, 1), kNow)) == "granted 2");
    CHECK(said(m.release({"b"})) == "released");
    CHECK(said(m.release({"b"})) == "released");
    CHECK(said(m.charge({"b", {1, 1}})) == "error: id: \"b\" was released");
    CHECK(m.spent() == MicroUsd::from_micros(1));
  }

  TEST_CASE("what costs more than was reserved is cut to it and flagged") {
    RunMeter m(plan(1000));
    CHECK(said(m.reserve(call("a", 10, 10), kNow)) == "granted 20");
    CHECK(said(m.charge({"a", {10, 5'000'000}})) == "charged 20 overrun");
    CHECK(m.spent() == MicroUsd::from_micros(20));
    CHECK(m.usage().output_tokens == 10);
    CHECK(m.usage().overruns == 1);
  }

  TEST_CASE("tokens are counted by kind, and calls by how they were charged") {
    RunMeter m(plan(1'000));
    CHECK(said(m.reserve(call("a", 100, 50), kNow)) == "granted 150");
    Amount actual{80, 40};
    actual.cache_read = 30;
    actual.cache_write = 60;  // more than there is left: cut to it
    actual.reasoning = 10;
    // What was written into a cache unasked, and has no price of its own, costs what input does.
    CHECK(said(m.charge({"a", actual})) == "charged 120");
    CHECK(said(m.reserve(call("b", 10, 10), kNow)) == "granted 20");
    CHECK(m.ceiling().ceiling_calls == 1);
    CHECK(m.ceiling().ceiling_micros == 20);
    CHECK(m.usage().ceiling_calls == 0);
    CHECK(said(m.charge({"b", {}, true})) == "charged 20");
    CHECK(said(m.reserve(call("c", 10, 10), kNow)) == "granted 20");
    MeterCharge free{"c", {7, 3}};
    free.replayed = true;
    CHECK(said(m.charge(free)) == "charged 0");
    m.count_calls({.refused = 2, .waited_ms = 70, .clamped = 1});
    m.count_calls({.refused = 1});
    const Usage& u = m.usage();
    CHECK(u.cached_input == 30);
    CHECK(u.cache_written == 50);
    CHECK(u.reasoning_tokens == 10);
    CHECK(u.ceiling_calls == 1);
    CHECK(u.ceiling_micros == 20);
    CHECK(u.replayed_calls == 1);
    CHECK(u.model_calls == 3);
    CHECK(u.input_tokens == 97);
    CHECK(u.defaulted == 1);
    CHECK(u.priced_micros == 140);
    CHECK(u.refused_calls == 3);
    CHECK(u.waited_ms == 70);
    CHECK(u.clamped_calls == 1);
    CHECK(m.ceiling() == m.usage());
  }

  TEST_CASE("a cap that is reached denies everything from then on and says why") {
    MeterPlan p = plan(1'000'000);
    p.caps.tokens = 100;
    RunMeter m(p);
    CHECK(said(m.reserve(call("huge", 100, 1), kNow)) ==
          "denied tokens 1: 101 is more than the cap of 100 on tokens");
    CHECK_FALSE(m.stop());
    CHECK(said(m.reserve(call("a", 60, 0), kNow)) == "granted 60");
    CHECK(said(m.reserve(call("b", 60, 0), kNow)) ==
          "denied tokens 20: the cap of 100 on tokens is taken up by open reservations");
    CHECK_FALSE(m.stop());
    CHECK(said(m.charge({"a", {60, 0}})) == "charged 60");
    const std::string why = "budget_exceeded: tokens: 60 of 100 used, the next call needs 60";
    CHECK(said(m.reserve(call("c", 60, 0), kNow)) == "denied tokens 20 final: " + why);
    REQUIRE(m.stop());
    CHECK(m.stop()->cap == "tokens");
    CHECK(said(m.reserve(tool("d"), kNow)) == "denied tokens 0 final: " + why);
    CHECK(said(m.reserve(call("b", 60, 0), kNow)) ==  // a denial sticks to its id
          "denied tokens 20: the cap of 100 on tokens is taken up by open reservations");
  }

  TEST_CASE("each cap has its count and a cap of zero allows none") {
    const auto run = [](Cap cap, const MeterReserve& request) {
      MeterPlan p = plan(1000);
      set_cap(p.caps, cap, 0);
      RunMeter m(p);
      return said(m.reserve(request, kNow)).substr(0, 24);
    };
    CHECK(run(Cap::kModelCalls, call("a", 0, 0)) == "denied model_calls 1 fin");
    CHECK(run(Cap::kToolCalls, tool("a")) == "denied tool_calls 1 fina");
    CHECK(run(Cap::kActive, tool("a", 5)) == "denied active 5 final: b");
    CHECK(run(Cap::kInstalls, {"a", {std::string(kDependencyInstall)}, {}}) ==
          "denied dependency_instal");
    CHECK(run(Cap::kFailedCycles, {"a", {std::string(kAcceptanceCycle)}, {}}) ==
          "denied failed_acceptance");
    CHECK(run(Cap::kUsd, call("a", 1, 0)) == "denied usd 1 final: budg");
    CHECK(run(Cap::kCallsPerMinute, tool("a")) == "denied calls_per_minute ");
    MeterPlan p = plan(1000);
    p.caps.failed_acceptance_cycles = 1;
    RunMeter m(p);
    for (const char* id : {"a", "b", "c"}) {
      CHECK(said(m.reserve({id, {std::string(kAcceptanceCycle)}, {}}, kNow)) == "granted 0");
      CHECK(said(m.charge({id, {.failed = *id == 'c'}})) == "charged 0");
    }
    CHECK(m.usage().failed_cycles == 1);
    CHECK(m.milestones() == 2);
    CHECK_FALSE(m.stop());
    CHECK(said(m.reserve({"d", {std::string(kAcceptanceCycle)}, {}}, kNow)) ==
          "denied failed_acceptance_cycles 1 final: budget_exceeded: failed_acceptance_cycles: 1 "
          "of 1 used, the next call needs 1");
  }

  TEST_CASE("the rate refuses for a while and never stops a run") {
    MeterPlan p = plan(1'000'000);
    p.caps.calls_per_minute = 2;
    RunMeter m(p);
    const auto after = [](std::int64_t ms) { return Instant(Millis(ms)); };
    CHECK(said(m.reserve(tool("a"), after(0))) == "granted 10");
    CHECK(said(m.reserve(tool("b"), after(20'000))) == "granted 10");
    const auto denied = m.reserve(tool("c"), after(30'000));
    REQUIRE(denied.ok());
    CHECK(std::get<MeterDenied>(*denied).retry_after_ms == 30'000);
    CHECK_FALSE(m.stop());
    CHECK(said(m.reserve(tool("d"), after(60'000))) == "granted 10");
  }

  TEST_CASE("the headroom for acceptance is nobody's to spend until the agent is gone") {
    MeterPlan p = plan(1000);
    p.prices =
        price_table("sandbox,minute,0.006,,\nllm_request,token,0.000001,,\nrun,run,0.0001,,\n");
    p.headroom.acceptance_ms = 5000;  // 500 micro-dollars
    RunMeter m(p);
    CHECK(m.spent() == MicroUsd::from_micros(100));
    CHECK(m.headroom() == MicroUsd::from_micros(500));
    CHECK(m.start_program() == Millis(1000));
    CHECK(m.held() == MicroUsd::from_micros(100));
    CHECK(said(m.reserve(call("a", 200, 0), kNow)) == "granted 200");
    CHECK(said(m.reserve(call("b", 101, 0), kNow)) ==
          "denied usd 1: the cap of 0.001 USD on usd is taken up by open reservations");
    CHECK(said(m.reserve(call("c", 301, 0), kNow)) ==
          "denied usd 1 final: budget_exceeded: usd: 0.0007 USD of 0.001 USD spent or kept for "
          "acceptance, the next call needs 0.000301 USD");
    m.program_ended({Millis(1000), Millis(5), 77});
    m.agent_gone();
    CHECK(m.spent() == MicroUsd::from_micros(400));  // "a" at its ceiling: nobody said otherwise
    CHECK(m.headroom() == MicroUsd::from_micros(500));
    m.executed(MeterPhase::kAcceptance, {Millis(5000), Millis(0), 0});
    CHECK(m.spent() == MicroUsd::from_micros(900));
    CHECK(m.headroom() == MicroUsd::zero());
    CHECK(m.overrun() == MicroUsd::zero());
    m.executed(MeterPhase::kAcceptance, {Millis(2000), Millis(0), 0});
    CHECK(m.spent() == MicroUsd::from_micros(1000));
    CHECK(m.overrun() == MicroUsd::from_micros(100));
    CHECK(m.usage().memory_peak == 77);
    CHECK(said(m.reserve(call("late", 1, 0), kNow)) ==
          "error: the agent's part of the run is over");
  }

  TEST_CASE("the time of a program is what can be paid for") {
    MeterPlan p = plan(1000);
    p.prices = price_table("sandbox,minute,0.06,,\n");  // 1 micro-dollar a millisecond
    p.headroom.acceptance_ms = 600;
    {
      RunMeter m(p);
      CHECK(m.start_program() == Millis(400));
      m.program_ended({Millis(400), Millis(0), 0});
      REQUIRE(m.time_is_up(true));
      CHECK(m.stop()->cap == "usd");
    }
    p.headroom.acceptance_ms = 1000;
    {
      RunMeter m(p);
      CHECK_FALSE(m.start_program());
      CHECK(m.stop()->reason ==
            "budget_exceeded: usd: 0.001 USD of 0.001 USD spent or kept for acceptance, the next "
            "call needs 0.000001 USD");
    }
    p.headroom.acceptance_ms = 0;
    {
      RunMeter m(p);
      CHECK(m.start_program() == Millis(1000));
      m.program_ended({Millis(1000), Millis(0), 0});
      CHECK_FALSE(m.time_is_up(true));
      CHECK(m.time_is_up(false)->cap == "wall");
    }
    p.caps.tool_calls = 0;
    RunMeter m(p);
    CHECK_FALSE(m.start_program());
    CHECK(m.stop()->cap == "tool_calls");
  }

  TEST_CASE("what makes no sense is refused with the reason and changes nothing") {
    RunMeter m(plan(1000));
    const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    CHECK(said(m.reserve(call("", 1, 1), kNow)) == "error: id: expected 1 to 100 bytes");
    CHECK(said(m.reserve(call(std::string(101, 'x'), 1, 1), kNow)) ==
          "error: id: expected 1 to 100 bytes");
    CHECK(said(m.reserve(call("a", most, 1), kNow)) == "error: a quantity above 1000000000000");
    CHECK(said(m.reserve({"a", {"", "", "", ""}, {}}, kNow)) == "error: action: expected a name");
    CHECK(said(m.reserve({"a", {.type = "search", .unit = "page"}, {.units = 1}}, kNow)) ==
          "error: no price for \"search,page\": the price table has neither that row nor a default "
          "row *,*");
    CHECK(said(m.reserve({"a", {.type = "search"}, {.units = 1}}, kNow)) ==
          "error: unit: expected that of the price table for search");
    CHECK(said(m.reserve({"a", {.type = "tool_call", .model = "m"}, {}}, kNow)) ==
          "error: model: only llm_request has one");
    CHECK(said(m.reserve(call("a", 1, 1), kNow)) == "granted 2");
    CHECK(said(m.charge({"a", {most, 0}})) == "error: a quantity above 1000000000000");
    CHECK(m.held() == MicroUsd::from_micros(2));
    CHECK(m.open_reservations() == 1);
  }

  // The auditor knows the answers only: it adds up what was granted and charged.
  TEST_CASE("no client gets more than there is whatever it says") {
    CHECK(rc::check("hostile client", [] {
      const auto small = [](std::uint64_t most) {
        return *rc::gen::inRange<std::uint64_t>(0, most);
      };
      MeterPlan p = plan(static_cast<std::int64_t>(small(3000)));
      p.headroom.setup_ms = small(5);
      if (small(2) == 0) p.caps.tokens = small(500);
      if (small(2) == 0) p.caps.model_calls = small(6);
      if (small(2) == 0) p.caps.tool_calls = small(6);
      if (small(3) == 0) p.caps.usd = MicroUsd::from_micros(static_cast<std::int64_t>(small(2000)));
      RunMeter m(p);
      std::map<std::string, std::int64_t> open, paid;
      std::uint64_t tokens = 0;
      Usage before;
      bool stopped = false;
      if (small(2) == 0 && m.start_program()) {
        if (small(2) == 0) m.program_ended({Millis(static_cast<Millis::rep>(small(2000))), {}, 0});
      }
      const std::uint64_t own_calls = m.usage().tool_calls;
      for (std::uint64_t i = 0; i < 60; ++i) {
        const std::string id = "id" + std::to_string(small(12));
        const Amount amount{small(200), small(200)};
        switch (small(5)) {
          case 0:
          case 1: {
            MeterReserve r = small(3) == 0 ? tool(id)
                                           : call(id, amount.input_tokens, amount.output_tokens,
                                                  small(4) == 0 ? "x" : "m");
            const auto answer = m.reserve(r, kNow);
            if (!answer.ok() || open.contains(id) || paid.contains(id)) break;
            if (const auto* g = std::get_if<MeterGranted>(&*answer)) {
              RC_ASSERT(!m.stop());
              open[id] = g->held.micros();
            }
            if (const auto* d = std::get_if<MeterDenied>(&*answer)) stopped = stopped || d->final;
            break;
          }
          case 2:
          case 3: {
            const auto answer = m.charge({id, amount});
            if (!answer.ok() || !open.contains(id)) break;
            const std::int64_t micros = std::get<MeterCharged>(*answer).charged.micros();
            RC_ASSERT(micros <= open[id]);
            paid[id] = micros;
            open.erase(id);
            break;
          }
          default:
            if (m.release({id}).ok() && open.contains(id)) {
              open.erase(id);
              paid[id] = 0;
            }
        }
        m.check();
        std::int64_t held = 0, spent = 0;
        for (const auto& [name, micros] : open) held += micros;
        for (const auto& [name, micros] : paid) spent += micros;
        RC_ASSERT(held <= m.held().micros());
        RC_ASSERT(spent <= m.spent().micros() + 1);
        RC_ASSERT((m.spent() + m.held() + m.headroom()).micros() <=
                  std::min(p.ask, p.caps.usd.value_or(p.ask)).micros());
        RC_ASSERT(m.open_reservations() == open.size());
        const Usage& now = m.usage();
        RC_ASSERT(before.priced_micros <= now.priced_micros);
        RC_ASSERT(before.input_tokens <= now.input_tokens);
        RC_ASSERT(before.tool_calls <= now.tool_calls);
        before = now;
        tokens = now.input_tokens + now.output_tokens;
        if (p.caps.tokens) RC_ASSERT(tokens <= *p.caps.tokens);
        if (p.caps.model_calls) RC_ASSERT(now.model_calls <= *p.caps.model_calls);
        if (p.caps.tool_calls) RC_ASSERT(now.tool_calls <= std::max(own_calls, *p.caps.tool_calls));
        if (stopped) RC_ASSERT(m.stop().has_value());
      }
      m.agent_gone();
      RC_ASSERT(m.open_reservations() == 0u);
    }));
  }
}

}  // namespace proctor
