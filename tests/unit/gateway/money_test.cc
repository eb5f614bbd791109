// The part of the meter that a gateway uses: the largest limit that fits, settled once.
#include <doctest/doctest.h>

#include <random>

#include "common/contract/cost_model.h"
#include "common/contract/cost_model_parser.h"
#include "worker/core/run_meter.h"

using namespace proctor;

namespace {

CostModel table(const std::string& rows) {
  Diagnostics out;
  CostModel model = parse_cost_model(
      "action_type,unit,unit_price,provider,model,tier,above,region,notes\n" + rows, "t", out);
  if (!out.empty()) FAIL(out.text());
  return model;
}

const std::string kRows =
    "llm_request,input_token,0.000004,,m,,,,\n"
    "llm_request,output_token,0.00002,,m,,,,\n"
    "llm_request,cache_read_token,0.0000004,,m,,,,\n"
    "llm_request,cache_write_token,0.000005,,m,,,,\n";

RunMeter meter(std::int64_t usd_micros, const std::string& rows = kRows) {
  MeterPlan plan;
  plan.prices = table(rows);
  plan.ask = MicroUsd::from_micros(usd_micros);
  return RunMeter(plan);
}

MeterFit call(const std::string& id, std::uint64_t input, std::uint64_t output,
              std::uint64_t least) {
  MeterFit fit;
  fit.request.id = id;
  fit.request.action = {.type = "llm_request", .model = "m"};
  fit.request.witness = Witness::kMeasured;
  fit.request.most.input_tokens = input;
  fit.request.most.output_tokens = output;
  fit.least = least;
  return fit;
}

}  // namespace

TEST_SUITE("gateway money") {
  TEST_CASE("a call gets as much output as there is money for, and no more") {
    RunMeter m = meter(10'000);  // a cent
    // 1000 tokens of input at 5 (they may be written) = 5000; 5000 are left for 250 of output.
    const auto answer = m.fit(call("a", 1000, 32'000, 100), Instant{});
    REQUIRE(answer.ok());
    const auto* granted = std::get_if<MeterGranted>(&*answer);
    REQUIRE(granted != nullptr);
    CHECK(granted->output_tokens == 250);
    CHECK(granted->held.micros() == 10'000);
    // Held money may come back: not final.
    const auto denied = m.fit(call("b", 10, 100, 100), Instant{});
    CHECK_FALSE(std::get<MeterDenied>(*denied).final);
    CHECK(m.charge({"a", {.input_tokens = 1000, .output_tokens = 10, .cache_read = 900}}).ok());
    CHECK(m.spent().micros() == 100 * 4 + 360 + 200);
    CHECK(m.open_reservations() == 0);
    CHECK(m.fit(call("a", 10, 100, 100), Instant{}).ok());  // the id is forgotten
  }

  TEST_CASE("a call that cannot fit at its least reaches the cap, also one larger than all of it") {
    RunMeter m = meter(10'000);
    const auto denied = m.fit(call("a", 3000, 100, 100), Instant{});
    REQUIRE(std::holds_alternative<MeterDenied>(*denied));
    CHECK(std::get<MeterDenied>(*denied).final);
    CHECK(m.stop());
  }

  TEST_CASE("several samples and what is billed beside them are counted") {
    RunMeter m = meter(100'000);
    MeterFit fit = call("a", 0, (1000 + 50) * 4, 10);
    fit.samples = 4;
    fit.beside = 50;
    const auto answer = m.fit(fit, Instant{});
    CHECK(std::get<MeterGranted>(*answer).output_tokens == 1050 * 4);
    CHECK(m.held().micros() == 1050 * 4 * 20);
  }

  TEST_CASE("unknown cost is all that was reserved, whoever settles it") {
    RunMeter m = meter(1'000'000);
    REQUIRE(m.fit(call("a", 1000, 500, 1), Instant{}).ok());
    const MicroUsd held = m.held();
    CHECK(m.charge({"a", {}, true}).ok());
    CHECK(m.spent() == held);
    REQUIRE(m.fit(call("b", 1000, 500, 1), Instant{}).ok());
    m.agent_gone();
    CHECK(m.spent() == held + held);
    CHECK_FALSE(m.charge({"b", {}}).ok());
  }

  TEST_CASE("thresholds, tiers and regions have prices of their own") {
    const CostModel t = table(kRows +
                              "llm_request,input_token,0.000008,,m,,1000,,\n"
                              "llm_request,output_token,0.00003,,m,,1000,,\n"
                              "llm_request,input_token,0.00001,,m,fast,,,\n"
                              "llm_request,output_token,0.00005,,m,fast,,,\n"
                              "llm_request,input_token,0.0000044,,m,,,us,\n"
                              "llm_request,output_token,0.000022,,m,,,us,\n");
    const auto tariff = find_tariff(t, {.type = "llm_request", .model = "m"});
    REQUIRE(tariff.ok());
    CHECK(price(*tariff, {1, 1000, 100}).micros() == 4000 + 2000);
    CHECK(price(*tariff, {1, 1001, 100}).micros() == 8008 + 3000);  // the whole call
    // What is not named there costs in proportion: reading 0.4 becomes 0.8.
    Quantities read{1, 2000, 0};
    read.cache_read = 2000;
    CHECK(price(*tariff, read).micros() == 1600);
    CHECK(worst_price(*tariff, {1, 1001, 100}, CacheUse::kNone).micros() == 10'010 + 3000);
    CHECK(worst_price(*tariff, {1, 1000, 100}, CacheUse::kNone).micros() == 5000 + 2000);
    const auto fast = find_tariff(t, {.type = "llm_request", .model = "m", .tier = "fast"});
    CHECK(price(*fast, {1, 100, 10}).micros() == 1000 + 500);
    const auto us = find_tariff(t, {.type = "llm_request", .model = "m", .region = "us"});
    CHECK(price(*us, {1, 1000, 0}).micros() == 4400);
    CHECK_FALSE(find_tariff(t, {.type = "llm_request", .model = "m", .tier = "batch"}).ok());
  }

  TEST_CASE("a table from before has the numbers it had") {
    const CostModel t = table("llm_request,token,0.000002,,,,,,\nllm_request,call,0.001,,,,,,\n");
    const auto tariff = find_tariff(t, {.type = "llm_request", .model = "any"});
    REQUIRE(tariff.ok());
    CHECK(price(*tariff, {1, 100, 50}).micros() == 1000 + 300);
    Quantities cached{1, 100, 50};
    cached.cache_read = 90;
    cached.reasoning = 40;
    CHECK(price(*tariff, cached).micros() == 1000 + 300);
    CHECK(worst_price(*tariff, {1, 100, 50}, CacheUse::kNone).micros() == 1000 + 300);
  }

  TEST_CASE("no bill within the tokens that were reserved passes the money that was") {
    for (unsigned seed = 0; seed < 20'000; ++seed) {
      CAPTURE(seed);
      std::mt19937_64 random(seed);  // NOLINT: the same numbers every time are wanted
      const auto below = [&](std::uint64_t n) { return random() % n; };
      const auto price_or_none = [&] {
        return below(2) == 0 ? std::optional<std::uint64_t>() : below(20'000'000);
      };
      Tariff t{below(5'000'000), below(10'000'000), below(50'000'000)};
      t.cache_read = price_or_none();
      t.cache_write = price_or_none();
      t.cache_write_long = price_or_none();
      t.reasoning = price_or_none();
      for (std::uint64_t at = 100; at < 400 && below(2) == 0; at += 100) {
        Tariff step = t;
        step.above.clear();
        step.input_token += below(10'000'000);
        if (below(2) == 0) step.cache_write = price_or_none();
        t.above.emplace_back(at, prices_at(step, 0));
      }
      const Quantities most{1, below(500), below(500)};
      Quantities used{1, below(most.input_tokens + 1), below(most.output_tokens + 1)};
      // Parts may be larger than their whole: providers say what they like.
      for (std::uint64_t* part :
           {&used.cache_read, &used.cache_write, &used.cache_write_long, &used.reasoning})
        *part = below(3) == 0 ? 0 : below(600);
      for (const CacheUse cache : {CacheUse::kNone, CacheUse::kMinutes, CacheUse::kHours})
        REQUIRE(charged_price(t, used, cache) <= worst_price(t, most, cache));
    }
  }

  TEST_CASE("a write that nobody asked for and no row prices costs what input does") {
    const Tariff t{0, 1'000'000, 1'000'000};
    Quantities q{1, 100, 0};
    q.cache_write = 100;
    CHECK(charged_price(t, q, CacheUse::kNone).micros() == 100);
    CHECK(wrote_unpriced(t, 100, CacheUse::kNone));
    CHECK(charged_price(t, q, CacheUse::kMinutes).micros() == 200);  // asked for
    CHECK_FALSE(wrote_unpriced(t, 100, CacheUse::kMinutes));
    Tariff priced = t;
    priced.cache_write = 1'250'000;
    CHECK(charged_price(priced, q, CacheUse::kNone).micros() == 125);
    CHECK_FALSE(wrote_unpriced(priced, 100, CacheUse::kNone));
    // Nobody pays for hours who asked for minutes.
    Quantities hours{1, 100, 0};
    hours.cache_write_long = 100;
    priced.cache_write_long = 2'000'000;
    CHECK(charged_price(priced, hours, CacheUse::kMinutes).micros() == 125);
    CHECK(charged_price(priced, hours, CacheUse::kHours).micros() == 200);
  }

  TEST_CASE("a table in which a mistake would lower a ceiling is refused") {
    struct Row {
      std::string rows;
      const char* why;
    };
    const Row rows[] = {
        {kRows +
             "llm_request,input_token,0.000001,,m,,1000,,\nllm_request,output_token,1,,m,,1000,,\n",
         "falls above 1000"},
        {"llm_request,input_token,1,,m,,,,\nllm_request,output_token,1,,m,,,,\n"
         "llm_request,cache_read_token,2,,m,,,,\n",
         "costs more than an input_token"},
        {kRows + "llm_request,input_token,1,,m,fast,,,\n", "without output_token"},
        {kRows + "llm_request,cache_read_token,0,,m,fast,,,\n", "without input_token"},
        {"tool_call,call,1,,,fast,,,\n", "only llm_request rows"},
        {kRows + "llm_request,input_token,1,,m,,x,,\n", "a number of input tokens"}};
    for (const Row& row : rows) {
      CAPTURE(row.rows);
      Diagnostics out;
      parse_cost_model(
          "action_type,unit,unit_price,provider,model,tier,above,region,notes\n" + row.rows, "t",
          out);
      CHECK_MESSAGE(out.text().find(row.why) != std::string::npos, out.text());
    }
  }

  TEST_CASE("a call that reserved less than its bytes is paid from what is free, and no more") {
    const auto charged = [](RunMeter& m, std::uint64_t input) {
      const auto answer =
          m.charge({"a", {.input_tokens = input, .output_tokens = 10}, false, false, false, 1'500});
      REQUIRE(answer.ok());
      m.check();
      return std::get<MeterCharged>(*answer);
    };
    const auto granted = [](RunMeter& m) {
      return std::holds_alternative<MeterGranted>(*m.fit(call("a", 100, 10, 10), Instant{}));
    };
    RunMeter paid = meter(10'000);
    REQUIRE(granted(paid));
    MeterCharged c = charged(paid, 1'500);
    CHECK_FALSE(c.overrun);
    CHECK(c.charged.micros() == 1'500 * 4 + 200);
    CHECK(paid.usage().input_tokens == 1'500);
    RunMeter above = meter(10'000);
    REQUIRE(granted(above));
    c = charged(above, 1'600);
    CHECK(c.overrun);
    CHECK(c.charged.micros() == 1'500 * 4 + 200);
    RunMeter poor = meter(1'000);
    REQUIRE(granted(poor));
    c = charged(poor, 1'500);
    CHECK(c.overrun);
    CHECK(c.charged.micros() == 1'000);
    CHECK(poor.spent() == poor.limit());
    MeterPlan plan;
    plan.prices = table(kRows);
    plan.ask = MicroUsd::from_micros(10'000);
    plan.caps.tokens = 500;
    RunMeter few(plan);
    REQUIRE(granted(few));
    c = charged(few, 1'500);
    CHECK(c.overrun);
    CHECK(few.used(Cap::kTokens) == 500);
  }

  TEST_CASE("no order of calls and charges passes the cap") {
    for (unsigned seed = 0; seed < 300; ++seed) {
      std::mt19937 random(seed);  // NOLINT: the same numbers every time are wanted
      RunMeter m = meter(50'000);
      std::vector<std::pair<std::string, std::uint64_t>> open;
      for (int step = 0; step < 60; ++step) {
        if (open.empty() || random() % 2 == 0) {
          const std::string id = std::to_string(step);
          const auto answer = m.fit(call(id, random() % 1500, 1 + random() % 3000, 1), Instant{});
          REQUIRE(answer.ok());
          if (const auto* g = std::get_if<MeterGranted>(&*answer))
            open.emplace_back(id, g->output_tokens);
        } else {
          const auto [id, output] = open.back();
          open.pop_back();
          switch (random() % 4) {
            case 0:
              CHECK(m.release({id}).ok());
              break;
            case 1:
              CHECK(m.charge({id, {}, true}).ok());
              break;
            case 2:  // ... which its bytes allow, and its reservation by earlier calls did not
              CHECK(m.charge({id,
                              {.input_tokens = random() % 9000, .output_tokens = output},
                              false,
                              false,
                              false,
                              random() % 9000})
                        .ok());
              break;
            default:  // also more than was reserved
              CHECK(m.charge({id, {.input_tokens = random() % 4000, .output_tokens = output + 7}})
                        .ok());
          }
        }
        m.check();
        CHECK(m.spent() + m.held() <= m.limit());
      }
      m.agent_gone();
      CHECK(m.spent() <= m.limit());
      CHECK(m.held() == MicroUsd::zero());
    }
  }
}
