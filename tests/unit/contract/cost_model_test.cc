#include <doctest/doctest.h>

#include <limits>

#include "common/contract/cost_model_parser.h"

namespace proctor {
namespace {

std::string errors(std::string_view csv) {
  Diagnostics out;
  static_cast<void>(parse_cost_model(csv, "p.csv", out));
  return out.text();
}
constexpr std::string_view kHeader = "action_type,unit,unit_price,notes\n";

}  // namespace

TEST_SUITE("contract") {
  TEST_CASE("a price table keeps what it does not know") {
    Diagnostics out;
    const CostModel m = parse_cost_model(
        "unit_price,unit,extra,action_type\n0.000000000001,token,x,llm_request\n"
        "0.5,output_token,,llm_request\n2,gigabyte-day,,cold_storage\n1000000,minute,,"
        "sandbox\n",
        "p.csv", out);
    CHECK(out.text() == "");
    CHECK(m.rows.size() == 4);
    CHECK(m.input_token == 1);
    CHECK(m.output_token == 500'000'000'000);
    CHECK(m.stored_gigabyte == 0);
    CHECK(m.sandbox_minute == kPicoUsdMax);
  }

  TEST_CASE("every mistake in a price table is named with its line") {
    struct Row {
      std::string csv;
      const char* expected;
    };
    const std::string head(kHeader);
    const Row rows[] = {
        {"",
         "p.csv:1:1: document: found no header, expected the columns action_type, unit, "
         "unit_price, notes\n"},
        {"action_type,unit,price\n",
         "p.csv:1:1: unit_price: found no such column, expected a header with action_type, unit "
         "and "
         "unit_price\n"},
        {"action_type,units,unit_price\n",
         "p.csv:1:1: unit: found no such column, expected a header with action_type, unit and "
         "unit_price (did you mean \"unit\"?)\n"},
        {"unit,action_type,unit,unit_price\n",
         "p.csv:1:1: unit: found the column a second time, expected each column once\n"},
        {head + "sandbox,minute,-0.01,\n",
         "p.csv:2:1: unit_price: found \"-0.01\", expected a non-negative decimal with at most 12 "
         "digits after the point\n"},
        {head + "sandbox,minute,abc,\nrun,run,1e9,\n",
         "p.csv:2:1: unit_price: found \"abc\", expected a non-negative decimal with at most 12 "
         "digits after the point\n"
         "p.csv:3:1: unit_price: found \"1e9\", expected a non-negative decimal with at most 12 "
         "digits after the point\n"},
        {head + "sandbox,minute,123456789012345678901234567890,\n",
         "p.csv:2:1: unit_price: found \"123456789012345678901234567890\", expected at most "
         "1000000\n"},
        {head + "sandbox,minute,0.1234567890123,\n",
         "p.csv:2:1: unit_price: found \"0.1234567890123\", expected a non-negative decimal with "
         "at "
         "most 12 digits after the point\n"},
        {head + "sandbox,minute,1,\nrun,run,1,\nsandbox,minute,2,\n",
         "p.csv:4:1: unit: found sandbox,minute as in line 2, expected each action_type and unit "
         "once\n"},
        {head + "sandbox,minute\n",
         "p.csv:2:1: document: found 2 fields, expected 4, as in the "
         "header\n"},
        {head + "\n\nSand Box,minute,1,\n",
         "p.csv:4:1: action_type: found \"Sand Box\", expected a word: a-z, 0-9, \"_\" and \"-\", "
         "beginning with a letter\n"},
        {head + "sandbox,minutes,1,\nllm_request,input_tokens,1,\nhuman,hour,1,\nweb,hour,1,\n",
         "p.csv:2:1: unit: found minutes of sandbox, which nothing counts, expected minute (did "
         "you mean \"minute\"?)\n"
         "p.csv:3:1: unit: found input_tokens of llm_request, which nothing counts, expected call, "
         "token, input_token, output_token, cache_read_token, cache_write_token, "
         "cache_write_long_token, reasoning_token (did you mean \"input_token\"?)\n"
         "p.csv:4:1: unit: found hour of human, which nothing counts, expected minute\n"},
        {head + "sandbox,\"minute,1,\n",
         "p.csv:2:1: document: found a quoted field is not closed, expected CSV\n"},
        {head + "sandbox,minute,1,\xFF\n",
         "p.csv:1:1: document: found bytes that are not UTF-8, or control characters, expected "
         "UTF-8 text\n"},
    };
    for (const Row& row : rows) {
      CAPTURE(row.csv);
      CHECK(errors(row.csv) == row.expected);
    }
  }

  TEST_CASE("each category is multiplied exactly and rounded up once") {
    CostModel m;
    m.input_token = 400'000;  // 0.4 micro-dollars
    m.output_token = 400'000;
    m.sandbox_minute = 60'000'000'000;  // 1 micro-dollar per millisecond
    m.stored_gigabyte = 1;
    Usage u;
    CHECK(price(m, u).total() == MicroUsd::zero());
    u.input_tokens = 1;
    CHECK(price(m, u).model == MicroUsd::from_micros(1));
    u.output_tokens = 1;  // 0.8, not twice a rounded 0.4
    CHECK(price(m, u).model == MicroUsd::from_micros(1));
    u.input_tokens = 4;  // 2.0 exactly
    CHECK(price(m, u).model == MicroUsd::from_micros(2));
    u.setup_ms = u.agent_ms = u.acceptance_ms = 1;
    CHECK(price(m, u).execution == MicroUsd::from_micros(3));
    u.stored_bytes = 1;
    CHECK(price(m, u).overhead == MicroUsd::from_micros(1));
    m.run = 2'000'001;
    u.stored_bytes = 0;
    CHECK(price(m, u).overhead == MicroUsd::from_micros(3));
    CHECK(price(m, u).total() == MicroUsd::from_micros(8));
  }

  TEST_CASE("usage beyond all measure is charged at the ceiling") {
    CostModel m;
    Usage u;
    m.sandbox_minute = m.tool_call = m.model_call = m.input_token = m.output_token =
        m.stored_gigabyte = m.run = kPicoUsdMax;
    u.setup_ms = u.agent_ms = u.acceptance_ms = u.tool_calls = u.input_tokens = u.output_tokens =
        u.model_calls = u.stored_bytes = std::numeric_limits<std::uint64_t>::max();
    const Cost most = price(m, u);
    CHECK(most.model == kLedgerMax);
    CHECK(most.execution == kLedgerMax);
    CHECK(most.overhead == kLedgerMax);
    CHECK(most.human == MicroUsd::zero());
    m.model_call = 1;
    m.input_token = m.output_token = 0;
    u.model_calls = 1'000'001;
    CHECK(price(m, u).model == MicroUsd::from_micros(2));
  }

  TEST_CASE("the fallback is constant under its version") {
    const CostModel m = fallback_cost_model();
    CHECK(m.version == "fallback-1");
    // A change of any coefficient is a new version, not a new meaning of this one (R113).
    CHECK(m.digest.hex() == "5b25b3afecb21b30c7adda94e517970ab177b81f2d21d034bceaecda88f75d8e");
    CHECK(m.tool_call == 500'000'000);
    CHECK(m.run == 1'000'000'000);
  }
}

}  // namespace proctor
