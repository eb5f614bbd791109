#include "worker/meter/meter_protocol.h"

#include <doctest/doctest.h>

#include "common/base/json.h"
#include "common/contract/cost_model_parser.h"

namespace proctor {
namespace {

std::string refusal(const std::string& line) {
  const auto r = parse_meter_request(line);
  return r.ok() ? "accepted" : r.error().detail;
}

}  // namespace

TEST_SUITE("meter") {
  TEST_CASE("a request is what its line says") {
    const auto r = parse_meter_request(
        R"({"op":"reserve","id":"c1","run":"t/m/r1","action":"llm_request","provider":"p",)"
        R"("model":"m/1","input_tokens":12,"output_tokens":34})");
    REQUIRE(r.ok());
    CHECK(r->run == "t/m/r1");
    const auto& reserve = std::get<MeterReserve>(r->operation);
    CHECK(reserve.action == ActionName{"llm_request", "p", "m/1"});
    CHECK(reserve.most == Amount{12, 34});
    CHECK(reserve.witness == Witness::kSelfReported);
    const auto charge =
        parse_meter_request(R"({"op":"charge","id":"c1","ms":7,"quantity":3,"failed":true})");
    REQUIRE(charge.ok());
    CHECK(std::get<MeterCharge>(charge->operation).actual ==
          Amount{.units = 3, .ms = 7, .failed = true});
    CHECK(std::holds_alternative<MeterRelease>(
        parse_meter_request(R"({"op":"release","id":"x"})")->operation));
    CHECK(parse_meter_request(R"({"op":"status"})").ok());
  }

  TEST_CASE("what is no request is refused with the exact reason") {
    const std::string number = "expected a whole number from 0 to 1000000000000";
    const std::pair<const char*, std::string> rows[] = {
        {R"({"op":"reserve","id":"a","action":"tool_call","ms":-1})", "ms: " + number},
        {R"({"op":"reserve","id":"a","action":"tool_call","ms":1e300})", "ms: " + number},
        {R"({"op":"reserve","id":"a","action":"tool_call","ms":1.5})", "ms: " + number},
        {R"({"op":"reserve","id":"a","action":"tool_call","ms":1000000000001})", "ms: " + number},
        {R"({"op":"reserve","id":"a","action":"tool_call","ms":"5"})", "ms: " + number},
        {R"({"op":"reserve","id":"a","action":"tool_call","ms":null})", "ms: " + number},
        {R"({"op":"reserve","id":"a","action":"tool_call","failed":true})",
         "\"failed\": an unknown key here"},
        {R"({"op":"charge","id":"a","failed":1})", "failed: expected true or false"},
        {R"({"op":"charge","id":"a","action":"tool_call"})", "\"action\": an unknown key here"},
        {R"({"op":"charge","id":"a","input_token":1})", "\"input_token\": an unknown key here"},
        {R"({"op":"charge"})", "id: expected one of your own for each reservation"},
        {R"({"op":"charge","id":""})", "id: expected 1 to 100 bytes on one line"},
        {R"({"op":"charge","id":"a\nb"})", "id: expected 1 to 100 bytes on one line"},
        {R"({"op":"charge","id":7})", "id: expected a text"},
        {R"({"op":"reserve","id":"a"})", "action: expected the name of one"},
        {R"({"op":"spend","id":"a"})", "op: expected reserve, charge, release or status"},
        {R"({})", "op: expected reserve, charge, release or status"},
        {R"([1])", "expected an object"},
    };
    for (const auto& [line, expected] : rows) {
      CAPTURE(line);
      CHECK(refusal(line) == expected);
    }
    for (const std::string line :
         {"", "x", "{", R"({"op":"status"}x)", R"({"op":"status","op":"status"})",
          "{\"op\":\"\xff\"}", R"({"op":"charge","id":"a","ms":NaN})"}) {
      CAPTURE(line);
      CHECK(refusal(line).starts_with("not JSON: "));
    }
    const auto with_id = [](std::size_t bytes) {
      return R"({"op":"charge","id":")" + std::string(bytes, 'i') + R"("})";
    };
    CHECK(parse_meter_request(with_id(100)).ok());
    CHECK(refusal(with_id(101)) == "id: expected 1 to 100 bytes on one line");
    CHECK(refusal(R"({"op":"status","run":")" + std::string(301, 'r') + R"("})") ==
          "run: expected 1 to 300 bytes on one line");
    CHECK(refusal(std::string(kMeterLineBytes + 1, ' ')) == "a line longer than 65536 bytes");
    CHECK(refusal(std::string(1000, '[')).starts_with("not JSON: "));
  }

  TEST_CASE("answers are lines of JSON whatever was asked") {
    CHECK(meter_line("a", MeterGranted{MicroUsd::from_micros(12), false}) ==
          "{\"answer\":\"granted\",\"id\":\"a\",\"usd\":\"0.000012\"}\n");
    CHECK(meter_line("a", MeterCharged{MicroUsd::from_micros(12), true}) ==
          "{\"answer\":\"charged\",\"id\":\"a\",\"overrun\":true,\"usd\":\"0.000012\"}\n");
    CHECK(meter_line("a", MeterReleased{}) == "{\"answer\":\"released\",\"id\":\"a\"}\n");
    CHECK(meter_error_line("", "\xff\n") ==
          "{\"answer\":\"error\",\"reason\":\"\\\\xff\\\\x0a\"}\n");
    const auto denied = parse_json(meter_line("a", MeterDenied{"tokens", 5, 0, true, "why"}));
    REQUIRE(denied.ok());
    CHECK(denied->at("cap") == "tokens");
    CHECK(denied->at("short_by") == 5);
    CHECK(denied->at("final") == true);
    MeterPlan plan;
    plan.prices = fallback_cost_model();
    plan.ask = MicroUsd::from_micros(5000);
    plan.caps.tokens = 7;
    const auto status = parse_json(meter_status_line(RunMeter(plan)));
    REQUIRE(status.ok());
    CHECK(status->at("usd").at("limit") == "0.005000");
    CHECK(status->at("caps").at("tokens").at("limit") == 7);
    CHECK(status->at("stopped") == false);
  }
}

}  // namespace proctor
