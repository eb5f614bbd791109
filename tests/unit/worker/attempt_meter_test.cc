// Whose reservation is whose: an agent at its socket, and the worker that reserves for it.
#include "worker/shell/attempt_meter.h"

#include <doctest/doctest.h>

#include "common/contract/cost_model_parser.h"

using namespace proctor;

namespace {

// 1 micro-dollar for a token of input, 10 for one of output.
constexpr const char* kPrices =
    "action_type,unit,unit_price,provider,model\n"
    "llm_request,input_token,0.000001,acme,m\nllm_request,output_token,0.00001,acme,m\n"
    "tool_call,call,0.000001,,\n";

MeterPlan plan() {
  Diagnostics out;
  MeterPlan p;
  p.prices = parse_cost_model(kPrices, "p.csv", out);
  REQUIRE(out.text() == "");
  p.ask = MicroUsd::from_micros(10'000);
  return p;
}

struct Meter {
  AttemptMeter meter{plan(),
                     "t/m/r1",
                     {[](const Usage&, std::uint64_t) {}, [](const Json&) { return 1; },
                      [](const MeterStop&, std::uint64_t) {}, [] {},
                      [] { return std::pair(std::string(), std::uint64_t{0}); },
                      [] { return Instant(Millis(0)); }}};
  static MeterFit call(const std::string& id) {
    MeterFit fit;
    fit.request.id = id;
    fit.request.action = {std::string(kLlmRequest), "acme", "m", ""};
    fit.request.most.input_tokens = 100;
    fit.request.most.output_tokens = 50;
    fit.request.witness = Witness::kMeasured;
    fit.least = 1;
    return fit;
  }
  std::string say(const std::string& line) { return meter.answer(line + "\n"); }
};

bool is_refused(const std::string& line) {
  return line.find("\"error\"") != std::string::npos;
}

}  // namespace

TEST_SUITE("attempt meter") {
  TEST_CASE("an agent can neither give back nor charge what its gateway's call has reserved") {
    for (const char* line : {R"({"op":"release","id":"gw-0-1.0"})",
                             R"({"op":"charge","id":"gw-0-1.0","input_tokens":1})"}) {
      CAPTURE(line);
      Meter m;
      REQUIRE(m.meter.act_for_agent(Meter::call("gw-0-1.0")).ok());
      CHECK(is_refused(m.say(line)));
      const auto charged = m.meter.act_for_agent(MeterCharge{"gw-0-1.0", {100, 50}});
      REQUIRE_MESSAGE(charged.ok(), charged.error().detail);
      CHECK(std::get<MeterCharged>(*charged).charged.micros() == 600);
      CHECK(m.meter.usage().model_calls == 1);
    }
  }

  TEST_CASE("... nor what a tool has that the worker runs for it") {
    Meter m;
    MeterReserve tool;
    tool.id = "tool-t1.0";
    tool.action.type = kToolCall;
    tool.witness = Witness::kMeasured;
    REQUIRE(m.meter.act(tool).ok());
    CHECK(is_refused(m.say(R"({"op":"release","id":"tool-t1.0"})")));
    CHECK(m.meter.act(MeterCharge{"tool-t1.0", {}}).ok());
    CHECK(m.meter.usage().tool_calls == 1);
  }

  TEST_CASE("a name that an agent has taken before is in nobody's way") {
    Meter m;
    CHECK_FALSE(is_refused(m.say(
        R"({"op":"reserve","id":"gw-0-1.0","action":"llm_request","provider":"acme","model":"m","input_tokens":1})")));
    const auto granted = m.meter.act_for_agent(Meter::call("gw-0-1.0"));
    REQUIRE_MESSAGE(granted.ok(), granted.error().detail);
    CHECK(std::holds_alternative<MeterGranted>(*granted));
  }
}
