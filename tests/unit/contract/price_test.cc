// The price table as agents' single actions meet it, and the arithmetic as properties.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <limits>

#include "common/base/text.h"
#include "common/contract/cost_model_parser.h"
#include "common/contract/fields.h"
#include "tests/support/price_table.h"

namespace proctor {
namespace {

__extension__ typedef unsigned __int128 Wide;

using testing::price_table;
std::string row_errors(const std::string& rows) {
  Diagnostics out;
  static_cast<void>(
      parse_cost_model("action_type,unit,unit_price,provider,model\n" + rows, "p.csv", out));
  return out.text();
}
std::uint64_t output_price(const CostModel& m, std::string provider, std::string model) {
  const auto t = find_tariff(m, {"llm_request", std::move(provider), std::move(model)});
  return t.ok() ? t->output_token : std::numeric_limits<std::uint64_t>::max();
}

}  // namespace

TEST_SUITE("contract") {
  TEST_CASE("prices are exact to the twelfth digit however many zeros follow") {
    CHECK(*parse_price("0.000000000001") == 1);
    CHECK(*parse_price("0.0000000000010000000000000000000000000") == 1);
    CHECK(*parse_price("000000000000000000000000000000000000001") == 1'000'000'000'000);
    CHECK(*parse_price("1000000.000000000000000000000000") == kPicoUsdMax);
    for (const char* bad :
         {"", ".", "0.0000000000001", "0.00000000000100000000000000000001", "1000000.000000000001",
          "-1", "1e-6", "NaN", "inf", "1,5", " 1", "1.", "123456789012345678901234567890"}) {
      CAPTURE(bad);
      CHECK_FALSE(parse_price(bad).ok());
    }
  }

  TEST_CASE("a model is priced by the rows that fit it best") {
    const CostModel m = price_table(
        "llm_request,token,0.000001,,\n"
        "llm_request,token,0.000002,acme,\n"
        "llm_request,token,0.000003,,big\n"
        "llm_request,token,0.000004,acme,big\n"
        "llm_request,token,0.000009,,*\n");
    CHECK(output_price(m, "acme", "big") == 4'000'000);
    CHECK(output_price(m, "other", "big") == 3'000'000);
    CHECK(output_price(m, "", "big") == 3'000'000);
    CHECK(output_price(m, "acme", "small") == 2'000'000);
    const auto unknown = find_tariff(m, {"llm_request", "other", "small"});
    REQUIRE(unknown.ok());
    CHECK(unknown->output_token == 9'000'000);
    CHECK(unknown->defaulted);
    CHECK(find_tariff(m, {"llm_request"})->defaulted);
  }

  TEST_CASE("an unknown model or unit is refused unless a default row is declared") {
    const CostModel named = price_table("llm_request,token,0.000003,,big\nsearch,query,0.5,,\n");
    const auto refused = find_tariff(named, {"llm_request", "acme", "tiny\n"});
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().detail ==
          "no price for the model \"tiny\\x0a\" of the provider \"acme\": the price table has "
          "neither "
          "llm_request rows for it nor a default row (llm_request with the model *)");
    CHECK_FALSE(find_tariff(named, {"llm_request"}).ok());
    CHECK(find_tariff(named, {.type = "search", .unit = "query"})->unit == 500'000'000'000);
    const auto unit = find_tariff(named, {.type = "search", .unit = "page"});
    REQUIRE_FALSE(unit.ok());
    CHECK(unit.error().detail ==
          "no price for \"search,page\": the price table has neither that row nor a default row "
          "*,*");
    const CostModel general = price_table("llm_request,token,0.000003,,\n*,*,1,,\n");
    CHECK(output_price(general, "any", "model") == 3'000'000);  // it names no model: all are known
    CHECK_FALSE(find_tariff(general, {"llm_request", "", "x"})->defaulted);
    CHECK(find_tariff(general, {.type = "search", .unit = "page"})->defaulted);
    CHECK_FALSE(find_tariff(price_table("run,run,1,,\n"), {"llm_request"}).ok());
    CHECK(find_tariff(fallback_cost_model(), {"llm_request", "", "x"}).ok());
    CHECK(fallback_cost_model().abstract());
    CHECK_FALSE(general.abstract());
  }

  TEST_CASE("mistakes in rows that name models are named with their line") {
    CHECK(row_errors("llm_request,token,1,,a\nllm_request,token,2,,a\n") ==
          "p.csv:3:1: unit: found llm_request,token of \"/a\" as in line 2, expected each "
          "action_type and unit once\n");
    CHECK(row_errors("llm_request,token,1,,a\nllm_request,token,2,x,a\n") == "");
    CHECK(row_errors("llm_request,input_token,1,,a\n") ==
          "p.csv:2:1: unit: found input_token of \"/a\" without output_token, expected a row for "
          "each of the two, or one for token\n");
    CHECK(row_errors("*,minute,1,,\n") ==
          "p.csv:2:1: unit: found *,minute, expected *,* for the default row, or two words\n");
    CHECK(row_errors("run,run,1,,big\n") ==
          "p.csv:2:1: model: found \"/big\", expected nothing: only llm_request rows name a "
          "model\n");
    CHECK(row_errors("llm_request,token,1,acme,*\n") ==
          "p.csv:2:1: provider: found \"acme\", expected nothing beside the model *: there is one "
          "default row for models\n");
    CHECK(row_errors("run,run,,,\n") ==
          "p.csv:2:1: unit_price: found \"\", expected a non-negative decimal with at most 12 "
          "digits after the point\n");
    CHECK(row_errors("llm_request,token,1,," + std::string(101, 'm') + "\n")
              .find("expected a name on one line, of at most 100 bytes") != std::string::npos);
  }

  TEST_CASE("every price comes back from its text") {
    CHECK(rc::check("format and parse", [](std::uint64_t n, std::uint8_t zeros) {
      const std::uint64_t pico = n % (kPicoUsdMax + 1);
      std::string text = format_decimal(pico, kPriceDigits);
      if (text.find('.') != std::string::npos) text += std::string(zeros, '0');
      const auto back = parse_price(text);
      RC_ASSERT(back.ok());
      RC_ASSERT(*back == pico);
    }));
  }

  TEST_CASE("one amount is the exact product rounded up once") {
    CHECK(rc::check("price of a tariff", [](std::uint64_t a, std::uint64_t b, std::uint64_t c) {
      const Tariff t{a % (kPicoUsdMax + 1), b % (kPicoUsdMax + 1), c % 1000};
      const Quantities q{1, b % (kUsageCountMax + 1), a % (kUsageCountMax + 1)};
      const Wide exact = Wide{t.call} * q.calls + Wide{t.input_token} * q.input_tokens +
                         Wide{t.output_token} * q.output_tokens;
      const Wide micros = (exact + 999'999) / 1'000'000;
      const auto got = static_cast<Wide>(price(t, q).micros());
      const auto most = static_cast<Wide>(kLedgerMax.micros());
      RC_ASSERT(got == (micros < most ? micros : most));
    }));
  }

  TEST_CASE("parts never cost less than the whole and no further part costs more than its price") {
    const CostModel m = fallback_cost_model();
    CHECK(rc::check("subadditive", [&](std::uint32_t a, std::uint32_t b, std::uint32_t c) {
      const auto usage = [](std::uint32_t x, std::uint32_t y) {
        Usage u;
        u.setup_ms = x % 100'000;
        u.agent_ms = y % 77'777;
        u.tool_calls = x % 13;
        u.input_tokens = y;
        u.output_tokens = x;
        u.model_calls = 5;
        u.stored_bytes = y;
        u.priced_micros = x % 1000;
        u.priced_calls = 2;
        u.priced_input = y / 2;
        u.other_micros = y % 100;
        return u;
      };
      const Usage first = usage(a, b), more = usage(b, c);
      Usage both = first;
      both.setup_ms += more.setup_ms;
      both.agent_ms += more.agent_ms;
      both.tool_calls += more.tool_calls;
      both.input_tokens += more.input_tokens;
      both.output_tokens += more.output_tokens;
      both.model_calls += more.model_calls;
      both.stored_bytes += more.stored_bytes;
      both.priced_micros += more.priced_micros;
      both.priced_calls += more.priced_calls;
      both.priced_input += more.priced_input;
      both.other_micros += more.other_micros;
      const MicroUsd whole = price(m, both).total();
      RC_ASSERT(price(m, first).total() <= whole);
      RC_ASSERT(whole <= price(m, first).total() + further_price(m, more).total());
    }));
  }
}

}  // namespace proctor
