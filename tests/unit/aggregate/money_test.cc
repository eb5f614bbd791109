#include "coordinator/aggregate/money.h"

#include <doctest/doctest.h>

#include "common/base/json.h"
#include "common/contract/cost_model.h"

using namespace proctor;

namespace {

using Attempt = MoneyInput::Attempt;

MicroUsd micros(std::int64_t n) {
  return MicroUsd::from_micros(n);
}

constexpr std::int64_t kBegin = 1'700'000'000'000;

// Two tasks under two methods, one run each: 0 a/x, 1 a/y, 2 b/x, 3 b/y.  Every ask is 1'000'000.
MoneyInput campaign() {
  MoneyInput in;
  in.campaign = "pilot-1";
  in.now = WallTime(kBegin + 100'000);
  in.running = true;
  in.strata_keys = {"language"};
  in.scopes = {{"global", micros(10'000'000)},
               {"stage:main", micros(10'000'000)},
               {"task:a", micros(2'000'000)},
               {"task:b", micros(5'000'000)}};
  const auto run = [&](const char* task, const char* method, std::uint32_t scope) {
    in.runs.push_back({std::string(task) + "/" + method + "/r1",
                       task,
                       method,
                       {std::string(task) == "a" ? "go" : "c"},
                       {0, 1, scope},
                       micros(1'000'000)});
  };
  run("a", "x", 2);
  run("a", "y", 2);
  run("b", "x", 3);
  run("b", "y", 3);
  return in;
}

Attempt settled(std::uint32_t run, std::int64_t charged, std::int64_t overrun = 0) {
  Attempt a;
  a.run = run;
  a.no = 1;
  a.money = Attempt::Money::kSettled;
  a.ask = micros(1'000'000);
  a.charged = micros(charged);
  a.overrun = micros(overrun);
  a.cost.execution = micros(charged + overrun - 1);
  a.cost.overhead = micros(1);
  a.granted_at = WallTime(kBegin);
  a.settled_at = WallTime(kBegin + 50'000);
  return a;
}

Attempt out(std::uint32_t run, Attempt::Money money = Attempt::Money::kOut) {
  Attempt a;
  a.run = run;
  a.no = 1;
  a.money = money;
  a.ask = micros(1'000'000);
  a.granted_at = WallTime(kBegin + 10'000);
  return a;
}

const EnvelopeMoney& envelope(const MoneyView& view, const std::string& name) {
  for (const EnvelopeMoney& e : view.envelopes)
    if (e.name == name) return e;
  FAIL(name);
  return view.envelopes.front();
}

MoneyInput busy() {
  MoneyInput in = campaign();
  in.attempts = {settled(0, 700'001, 5), out(2), out(3, Attempt::Money::kAtRisk)};
  in.parked = {{1, 2, micros(200'001)}};
  return in;
}

}  // namespace

TEST_SUITE("aggregate") {
  TEST_CASE("each amount is in the envelopes of its run and in no other") {
    const MoneyView view = build_money(busy());
    const EnvelopeMoney& global = envelope(view, "global");
    CHECK(global.spent == micros(700'001));
    CHECK(global.reserved == micros(2'000'000));
    CHECK(global.at_risk == micros(1'000'000));
    CHECK(global.free() == micros(7'299'999));
    const EnvelopeMoney& a = envelope(view, "task:a");
    CHECK(a.spent == micros(700'001));
    CHECK(a.reserved == micros(0));
    CHECK(envelope(view, "task:b").spent == micros(0));
    CHECK(envelope(view, "task:b").reserved == micros(2'000'000));
    CHECK(view.overrun == micros(5));
  }

  TEST_CASE("tasks stand inside the only stage") {
    MoneyInput in = busy();
    CHECK(envelope(build_money(in), "task:a").depth == 2);
    in.scopes.push_back({"stage:more", micros(1)});
    CHECK(envelope(build_money(in), "task:a").depth == 1);
  }

  TEST_CASE("an envelope names what its parked runs would need") {
    MoneyInput in = busy();
    in.scopes[2].cap = micros(1'500'000);
    const EnvelopeMoney a = envelope(build_money(in), "task:a");
    CHECK(a.parked == 1);
    CHECK(a.short_least == micros(200'001));
    CHECK(a.short_most == micros(200'001));
    // free 799'999, one run asks 1'000'000
    CHECK(a.wanted == micros(200'001));
  }

  TEST_CASE("the rate is of the last ten minutes and foretells the end") {
    const MoneyView view = build_money(busy());
    const EnvelopeMoney& global = envelope(view, "global");
    // 700'001 in 100 seconds
    CHECK(global.per_hour == micros(700'001LL * 36));
    REQUIRE(global.used_up_at);
    CHECK(global.used_up_at->raw() == kBegin + 100'000 + 9'299'999LL * 100'000 / 700'001);
    CHECK_FALSE(envelope(view, "task:b").per_hour);
  }

  TEST_CASE("what was spent long ago foretells nothing") {
    MoneyInput in = busy();
    in.now = WallTime(kBegin + 3'600'000);
    CHECK_FALSE(envelope(build_money(in), "global").per_hour);
  }

  TEST_CASE("a campaign that does not run has a rate and no end") {
    MoneyInput in = busy();
    in.running = false;
    const MoneyView view = build_money(in);
    CHECK(envelope(view, "global").per_hour == micros(700'001LL * 72));
    CHECK_FALSE(envelope(view, "global").used_up_at);
  }

  TEST_CASE("groups add up to what is spent and reserved") {
    const MoneyInput in = busy();
    for (const MoneyBy by : {MoneyBy::kMethod, MoneyBy::kStratum, MoneyBy::kTask}) {
      MicroUsd spent, reserved;
      std::uint64_t parked = 0, runs = 0;
      for (const MoneyGroup& g : group_money(in, by)) {
        spent = spent + g.spent;
        reserved = reserved + g.reserved;
        parked += g.parked;
        runs += g.runs;
      }
      CHECK(spent == micros(700'001));
      CHECK(reserved == micros(2'000'000));
      CHECK(parked == 1);
      CHECK(runs == 3);
    }
    MicroUsd metered;
    for (const MoneyGroup& g : group_money(in, MoneyBy::kCategory)) metered = metered + g.spent;
    CHECK(metered == micros(700'006));
    CHECK(group_money(in, MoneyBy::kStratum).front().name == "language=c");
  }

  TEST_CASE("a raise is refused with the amount that would do") {
    MoneyInput in = busy();
    in.scopes[2].cap = micros(1'500'000);
    const auto why = [&](const char* scope, std::int64_t to) {
      const Status s = check_raise(in, scope, micros(to));
      return s.ok() ? std::string() : s.error().detail;
    };
    CHECK(why("task:a", 1'700'001) == "");
    CHECK(why("global", 10'000'001) == "");
    CHECK(why("task:a", 700'000) ==
          "raise task:a to 0.70 USD: 0.700001 USD are spent there and 0.00 reserved, together "
          "0.700001");
    CHECK(why("task:a", 1'500'000) == "raise task:a to 1.50 USD: its cap is 1.50 USD already");
    CHECK(why("task:a", 1'700'000) ==
          "raise task:a to 1.70 USD: none of the runs parked there could start; that needs at "
          "least 1.700001 USD (0.700001 spent, 0.00 reserved, 1.00 for one run)");
    CHECK(why("task:a", 10'000'001) ==
          "raise task:a to 10.000001 USD: the envelope around it, global, holds only 10.00 USD; "
          "raise that first");
    CHECK(why("task:c", 1) ==
          "there is no envelope \"task:c\" (did you mean task:a?); this campaign has global, "
          "stage:main, task:a, task:b");
  }

  TEST_CASE("what others hold of a shared envelope is in the amount that would do") {
    MoneyInput in = campaign();
    in.scopes.push_back({"shared:lab", micros(9'100'000)});
    for (MoneyInput::Run& run : in.runs) run.path.push_back(4);
    // 8.25 of 9.10 are others': two runs of 1.00 were refused, each 0.15 short.
    in.parked = {{0, 4, micros(150'000)}, {1, 4, micros(150'000)}};
    const EnvelopeMoney lab = envelope(build_money(in), "shared:lab");
    CHECK(lab.elsewhere == micros(8'250'000));
    CHECK(lab.cap + lab.wanted == micros(10'250'000));
    CHECK(check_raise(in, "shared:lab", micros(9'249'999)).error().detail ==
          "raise shared:lab to 9.249999 USD: none of the runs parked there could start; that needs "
          "at least 9.25 USD (0.00 spent, 0.00 reserved, 8.25 held by the campaigns that share it, "
          "1.00 for one run)");
    CHECK(check_raise(in, "shared:lab", micros(9'250'000)).ok());
  }

  TEST_CASE("the first cap of an envelope that was raised twice is the registered one") {
    MoneyInput in = busy();
    in.raises = {{2, micros(1), micros(2), WallTime(kBegin)},
                 {2, micros(2), micros(3), WallTime(1)}};
    CHECK(envelope(build_money(in), "task:a").declared_cap == micros(1));
    CHECK_FALSE(envelope(build_money(in), "global").declared_cap);
  }

  TEST_CASE("the JSON is exact to the micro-dollar") {
    const MoneyInput in = busy();
    const auto parsed =
        parse_json(render_money_json(build_money(in), "method", group_money(in, MoneyBy::kMethod)));
    REQUIRE(parsed.ok());
    const Json& global = (*parsed)["envelopes"][0];
    CHECK(global["spent"]["micro_usd"] == 700'001);
    CHECK(global["spent"]["usd"] == "0.700001");
    CHECK(global["at_risk"]["micro_usd"] == 1'000'000);
    CHECK((*parsed)["envelopes"][2]["denied"]["runs"] == 1);
    CHECK((*parsed)["envelopes"][2]["denied"]["short_most"]["micro_usd"] == 200'001);
    CHECK((*parsed)["groups"][0]["name"] == "x");
  }

  TEST_CASE("the text has a bar for each envelope and says what is parked") {
    const std::string text = render_money_text(build_money(busy()));
    CHECK(text.find("[##++??..............]") != std::string::npos);
    CHECK(text.find("task:a: 1 run is parked, short by 0.200001 USD") != std::string::npos);
    CHECK(text.find("used up at 2023-") != std::string::npos);
  }

  TEST_CASE("what runs has metered is shown beside what is reserved and is never more") {
    MoneyInput in = busy();
    const auto shown = [&] {
      const auto parsed = parse_json(render_money_json(build_money(in), "", {}));
      REQUIRE(parsed.ok());
      return (*parsed)["envelopes"][0]["metered"];
    };
    CHECK(shown().is_null());  // nobody runs who knows
    in.scopes[0].metered = micros(123'456);
    CHECK(shown()["micro_usd"] == 123'456);
    CHECK(render_money_text(build_money(in)).find(" 0.123456 ") != std::string::npos);
    in.scopes[0].metered = micros(900'000'000);
    CHECK(shown()["micro_usd"] == build_money(in).envelopes[0].reserved.micros());
  }

  TEST_CASE("amounts of the built-in prices are units and nowhere dollars") {
    MoneyInput in = busy();
    in.unit = money_word(true);
    CHECK(render_money_text(build_money(in)).find("; amounts in units\n") != std::string::npos);
    const std::string all = render_money_text(build_money(in)) + render_burndown_svg(in) +
                            check_raise(in, "task:a", micros(700'000)).error().detail;
    CHECK(all.find("USD") == std::string::npos);
    const auto parsed = parse_json(render_money_json(build_money(in), "", {}));
    CHECK((*parsed)["unit"] == "units");
    CHECK(money_word(false) == "USD");
  }

  TEST_CASE("the picture has the caps and a raise as a step") {
    MoneyInput in = busy();
    const std::string before = render_burndown_svg(in);
    CHECK(before.find("cap 10.00 USD") != std::string::npos);
    CHECK(before.find(">task:a<") != std::string::npos);
    CHECK(before.find("time since 2023-") != std::string::npos);
    in.raises = {{0, micros(5'000'000), micros(10'000'000), WallTime(kBegin + 60'000)}};
    CHECK(render_burndown_svg(in) != before);
    CHECK(render_burndown_svg(in) == render_burndown_svg(in));
    // Nothing happened yet: still a picture.
    CHECK(render_burndown_svg(campaign()).ends_with("</svg>\n"));
  }

  TEST_CASE("the picture keeps a peak of one instant to its instant") {
    MoneyInput in = campaign();
    // Granted and settled within one pixel column; then nothing for the rest of the time.
    Attempt a = settled(0, 100'000);
    a.settled_at = WallTime(kBegin + 1);
    in.attempts = {a, settled(1, 100'000)};
    in.attempts[1].granted_at = in.attempts[1].settled_at = WallTime(kBegin + 100'000);
    const std::string svg = render_burndown_svg(in);
    // 10 USD are 120 pixels upward from 200: 1.00 is 12 of them and 0.10 is 1.
    CHECK_MESSAGE(svg.find("M130 200 H130 V188 H131 V199 H770") != std::string::npos, svg);
  }

  TEST_CASE("reviews are spent in their run's envelopes and are human cost") {
    MoneyInput in = campaign();
    in.attempts = {settled(0, 300'000)};
    in.reviews = {{0, micros(200'000), WallTime(kBegin + 60'000)},
                  {2, micros(50'000), WallTime(kBegin + 70'000)}};
    const MoneyView view = build_money(in);
    CHECK(envelope(view, "global").spent == micros(550'000));
    CHECK(envelope(view, "task:a").spent == micros(500'000));
    CHECK(envelope(view, "task:b").spent == micros(50'000));
    const auto categories = group_money(in, MoneyBy::kCategory);
    CHECK(categories[2].name == "human");
    CHECK(categories[2].spent == micros(250'000));
    CHECK(categories[2].attempts == 2);
    const auto tasks = group_money(in, MoneyBy::kTask);
    CHECK(tasks[0].spent == micros(500'000));
    CHECK(tasks[1].spent == micros(50'000));
    // People's time has no rate: what is foretold is from attempts alone.
    MoneyInput without = in;
    without.reviews.clear();
    CHECK(envelope(view, "global").per_hour == envelope(build_money(without), "global").per_hour);
    CHECK(render_burndown_svg(in) != render_burndown_svg(without));
  }

  TEST_CASE("a review fits or every envelope that is short says by how much") {
    MoneyInput in = campaign();
    in.attempts = {settled(0, 900'000), out(1)};  // task a: 0.9 spent and 1.0 reserved of 2.0
    CHECK(check_review(in, 0, micros(100'000)).empty());
    const auto where = check_review(in, 0, micros(100'001));
    REQUIRE(where.size() == 1);
    CHECK(where[0].scope == "task:a");
    CHECK(where[0].short_by == micros(1));
    CHECK(where[0].raise_to == micros(2'000'001));
    // The raise that is advised is one that is not refused.
    CHECK(check_raise(in, "task:a", where[0].raise_to).ok());
    in.parked.push_back({1, 2, micros(1)});
    in.attempts.pop_back();
    const auto parked = check_review(in, 0, micros(1'100'001));
    REQUIRE(parked.size() == 1);
    CHECK(check_raise(in, "task:a", parked[0].raise_to).ok());
    CHECK(check_review(in, 0, micros(10'000'000)).size() == 3);
  }

  TEST_CASE("envelopes across the tree stand below it and hold what lies in them") {
    MoneyInput in = busy();
    in.scopes.push_back({"method:x", micros(1'500'000)});
    in.scopes.push_back({"stratum:language=c", micros(4'000'000)});
    in.runs[0].path.push_back(4);
    in.runs[2].path = {0, 1, 3, 4, 5};
    in.runs[3].path.push_back(5);
    in.parked = {{0, 4, micros(200'001)}};
    in.alerts = {{4, 50, micros(750'001), micros(1'500'000), WallTime(kBegin + 1)}};
    in.dominant = {{WallTime(kBegin + 2), "b/x/r1: attempt 1 has used much"}};
    const MoneyView view = build_money(in);
    const EnvelopeMoney& x = envelope(view, "method:x");
    CHECK(x.across);
    CHECK(x.depth == 1);
    CHECK(x.spent == micros(700'001));
    CHECK(x.reserved == micros(1'000'000));
    CHECK(x.parked == 1);
    CHECK(envelope(view, "stratum:language=c").reserved == micros(2'000'000));
    CHECK_FALSE(envelope(view, "task:a").across);
    const std::string text = render_money_text(view);
    const std::size_t below = text.find("across the tree:");
    REQUIRE(below != std::string::npos);
    CHECK(text.find("task:b") < below);
    CHECK(below < text.find("method:x"));
    CHECK(text.find("method:x: 50 % of 1.50 USD were spent at ") != std::string::npos);
    CHECK(text.find("b/x/r1: attempt 1 has used much") != std::string::npos);
    const auto json = parse_json(render_money_json(view, "", {}));
    REQUIRE(json.ok());
    CHECK((*json)["envelopes"][4]["across"] == true);
    CHECK((*json)["envelopes"][4]["alerts"][0]["percent"] == 50);
    CHECK((*json)["dominant"].size() == 1);
    CHECK(check_raise(in, "method:x", micros(10'000'001)).error().code == Errc::kInvalid);
    CHECK(check_raise(in, "method:x", micros(3'000'000)).ok());
    CHECK(render_burndown_svg(in).find("method:x") != std::string::npos);
  }
}
