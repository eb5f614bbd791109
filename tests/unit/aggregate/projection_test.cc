#include "coordinator/aggregate/projection.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "common/base/json.h"

using namespace proctor;

namespace {

MicroUsd usd(std::int64_t n) {
  return MicroUsd::from_micros(n);
}

ExpectedAction action(const char* type, const char* unit, CostCategory category,
                      std::uint64_t micro_units, std::uint64_t pico) {
  return {type, unit, "", "", micro_units, pico, ExpectedAction::Price::kRow, category};
}

// The worked example of docs/budgets.md.  Two tasks, two methods, two replicates: eight runs, each
// with a cap of 1.00.  By hand:
//   noop      2.5 minutes x 0.01                                        = 0.025      a run
//             + 1 run x 0.001                                           = 0.001
//   agent     10 minutes x 0.01 = 0.10, 120000 tokens x 0.000003 = 0.36,
//             0.25 reviewer's minutes x 0.80 = 0.20, 1 run x 0.001      = 0.661      a run
//   lost      0.02 attempts x 1.00                                      = 0.020      a run
// A run of noop: 0.046, of agent: 0.681.  All: 4 x 0.046 + 4 x 0.681 = 2.908.
//   model     4 x 0.36                                                  = 1.44
//   execution 4 x 0.025 + 4 x 0.10 + 8 x 0.02                           = 0.66
//   human     4 x 0.20                                                  = 0.80
//   overhead  8 x 0.001                                                 = 0.008
ProjectionInput example_campaign() {
  ProjectionInput in;
  in.campaign = "pilot";
  in.prices = "pilot_cost_model.csv 12ab34cd56ef";
  in.inputs = "98fe76dc54ba";
  in.scopes = {{"global", usd(5'000'000)},
               {"stage:main", usd(5'000'000)},
               {"task:a", usd(1'700'000)},
               {"task:b", usd(4'000'000)}};
  in.usages = {
      {action("sandbox", "minute", CostCategory::kExecution, 2'500'000, 10'000'000'000),
       action("run", "run", CostCategory::kOverhead, 1'000'000, 1'000'000'000)},
      {action("sandbox", "minute", CostCategory::kExecution, 10'000'000, 10'000'000'000),
       action("llm_request", "input_token", CostCategory::kModel, 120'000'000'000, 3'000'000),
       action("human", "minute", CostCategory::kHuman, 250'000, 800'000'000'000),
       action("run", "run", CostCategory::kOverhead, 1'000'000, 1'000'000'000)}};
  const MicroUsd ask = usd(1'000'000);
  in.kinds = {{"main", "a", "noop", {0, 1, 2}, ask, 0},
              {"main", "a", "agent", {0, 1, 2}, ask, 1},
              {"main", "b", "noop", {0, 1, 3}, ask, 0},
              {"main", "b", "agent", {0, 1, 3}, ask, 1}};
  for (const std::uint32_t replicate : {1U, 2U})
    for (const std::uint32_t kind : {0U, 1U, 2U, 3U}) in.runs.push_back({kind, replicate});
  in.lost_micro = 20'000;
  in.attempts_max = 4;
  in.slots = 6;
  return in;
}

}  // namespace

TEST_SUITE("projection") {
  TEST_CASE("the worked example gives the amounts computed by hand") {
    const ProjectionInput in = example_campaign();
    const Projection p = project(in);
    CHECK(p.has_expected);
    CHECK(p.per_run == std::vector<MicroUsd>{usd(46'000), usd(681'000), usd(46'000), usd(681'000)});
    CHECK(p.by_category[0] == usd(1'440'000));
    CHECK(p.by_category[1] == usd(660'000));
    CHECK(p.by_category[2] == usd(800'000));
    CHECK(p.by_category[3] == usd(8'000));
    REQUIRE(p.envelopes.size() == 4);
    const EnvelopeProjection& global = p.envelopes[0];
    CHECK(global.expected == usd(2'908'000));
    CHECK(global.runs == 8);
    CHECK(global.at_caps == usd(8'000'000));
    // Task a lets 1.70 through and b 4.00; global would let 5.00.
    CHECK(global.at_most == usd(5'000'000));
    CHECK(p.envelopes[2].expected == usd(1'454'000));
    CHECK(p.envelopes[2].at_caps == usd(4'000'000));
    CHECK(p.envelopes[2].at_most == usd(1'700'000));
    CHECK(p.envelopes[3].at_most == usd(4'000'000));
    // 1.70 / 1.00: one run of a; 4.00 / 1.00: four of b; together five, and global holds five.
    CHECK(p.envelopes[2].at_once == 1);
    CHECK(p.envelopes[3].at_once == 4);
    CHECK(global.at_once == 5);
    CHECK(p.above_cap.empty());

    // In the plan's order a has spent 0.046, then 0.727; the third run, r2 of noop, would
    // need 1.727 of 1.70: it is the fifth of the plan, after four that were paid for.
    REQUIRE(p.binds_expected);
    CHECK(p.binds_expected->scope == 2);
    CHECK(p.binds_expected->run == 4);
    CHECK(p.binds_expected->ran_before == 4);
    CHECK(p.binds_expected->short_by == usd(27'000));
    CHECK(p.envelopes[2].parked_expected == 2);
    CHECK(p.envelopes[3].parked_expected == 0);
    // With whole caps it is the second run: 1.00 + 1.00 of 1.70.
    REQUIRE(p.binds_at_caps);
    CHECK(p.binds_at_caps->scope == 2);
    CHECK(p.binds_at_caps->run == 1);
    CHECK(p.binds_at_caps->ran_before == 1);
    CHECK(p.binds_at_caps->short_by == usd(300'000));
    CHECK(p.envelopes[2].parked_at_caps == 3);
  }

  TEST_CASE("without inputs only the worst case is known") {
    ProjectionInput in = example_campaign();
    in.usages.clear();
    in.inputs.clear();
    in.lost_micro = 0;
    const Projection p = project(in);
    CHECK(!p.has_expected);
    CHECK(!p.envelopes[0].expected);
    CHECK(!p.binds_expected);
    CHECK(p.binds_at_caps);
    const std::string text = render_projection_text(in, p);
    CHECK(text.find("there is no pilot_cost_model_inputs.json") != std::string::npos);
    CHECK(text.find("If runs cost what is expected") == std::string::npos);
    const Json json = *parse_json(render_projection_json(in, p));
    CHECK(json["expected_by_category"].is_null());
    CHECK(json["envelopes"][0]["expected"].is_null());
    CHECK(json["envelopes"][0]["at_most"]["micro_usd"] == 5'000'000);
    CHECK(!comparison(in, MoneyInput{}));
  }

  TEST_CASE("amounts are exact and rounded up once") {
    ProjectionInput in = example_campaign();
    in.lost_micro = 0;
    // A third of a millionth of a dollar for each of eight runs: 2.4 millionths, shown as 3.
    in.usages = {{action("a", "u", CostCategory::kExecution, 300'000, 1'000'000)}};
    for (auto& kind : in.kinds) kind.usage = 0;
    const Projection p = project(in);
    CHECK(p.envelopes[0].expected == usd(3));
    CHECK(p.by_category[1] == usd(3));
    CHECK(p.envelopes[2].expected == usd(2));                             // 1.2
    CHECK(p.per_run[0] == usd(1));                                        // 0.3
    for (const ProjectionLine& l : p.lines) CHECK(l.expected == usd(1));  // 0.6
  }

  TEST_CASE("the table and the text hold what the example gives") {
    const ProjectionInput in = example_campaign();
    const Projection p = project(in);
    const std::string csv = render_projection_csv(in, p);
    CHECK(csv.find("envelope,task:a,,,,,,,,,4,,,,1.454000,1.700000,4.000000,1.700000,1,2,3\n") !=
          std::string::npos);
    CHECK(csv.find("category,human,,,,,,,,human,8,,,,0.800000,,,,,,\n") != std::string::npos);
    CHECK(csv.find("action,a/agent,main,a,agent,llm_request,input_token,,,model,2,120000,0.000003,"
                   "row,0.720000,,,,,,\n") != std::string::npos);
    CHECK(csv.find("action,b/noop,main,b,noop,lost_attempt,attempt,,,execution,2,0.02,1.000000,row,"
                   "0.040000,,,,,,\n") != std::string::npos);
    const std::string text = render_projection_text(in, p);
    CHECK(
        text.find("task:a binds first: a/noop/r2, number 4 of the plan, is parked short by 0.027, "
                  "with 4 runs paid for; 2 of 8 runs are parked at the end (task:a: 2).") !=
        std::string::npos);
    CHECK(text.find("take 6 runs, its money admits 5. Workers will wait for money") !=
          std::string::npos);
    const Json json = *parse_json(render_projection_json(in, p));
    CHECK(json["binds_first"]["expected"]["envelope"] == "task:a");
    CHECK(json["envelopes"][2]["parked"]["at_caps"] == 3);
  }

  TEST_CASE("a run that is expected to cost more than its cap is named and stopped by it") {
    ProjectionInput in = example_campaign();
    for (auto& kind : in.kinds) kind.ask = usd(300'000);
    in.scopes[2].cap = usd(900'000);
    const Projection p = project(in);
    CHECK(p.above_cap == std::vector<std::uint32_t>{1, 3});
    CHECK(render_projection_text(in, p).find("a run of a under agent is expected to cost") !=
          std::string::npos);
    // Charged are its cap of 0.30 and what is beside it, 0.20 human and 0.006 lost, not the 0.461
    // of the attempt.  So task a has 2 x 0.032 + 0.506 = 0.57 spent before its last run, which asks
    // for 0.30 of 0.90; with 0.667 for the run before it would be short.
    CHECK(!p.binds_expected);
  }

  TEST_CASE("the observed cost stands beside the projection of the runs that were paid for") {
    const ProjectionInput in = example_campaign();
    MoneyInput money;
    for (const auto& s : in.scopes) money.scopes.push_back({s.name, s.cap});
    for (std::uint32_t r = 0; r < 8; ++r) {
      const auto& kind = in.kinds[in.runs[r].kind];
      money.runs.push_back({"run", kind.task, kind.method, {}, {0, 1, kind.path[2]}, kind.ask});
    }
    MoneyInput::Attempt a;
    a.run = 1;  // a/agent/r1, of which 0.681 is expected
    a.no = 1;
    a.money = MoneyInput::Attempt::Money::kSettled;
    a.ask = usd(1'000'000);
    a.charged = usd(500'000);
    a.cost.model = usd(450'000);
    a.cost.execution = usd(50'000);
    a.granted_at = a.settled_at = WallTime(1);
    money.attempts.push_back(a);
    const auto c = comparison(in, money);
    REQUIRE(c);
    CHECK(c->runs == 8);
    CHECK(c->paid == 1);
    const auto row = [&](const std::string& name) {
      for (const ComparisonRow& r : c->rows)
        if (r.name == name) return r;
      FAIL(name);
      return ComparisonRow{};
    };
    CHECK(row("all").expected == usd(2'908'000));
    CHECK(row("all").of_paid == usd(681'000));
    CHECK(row("all").actual == usd(500'000));
    CHECK(row("all").ratio_thousandths == 734);     // 0.500 / 0.681 = 0.7342
    CHECK(row("model").ratio_thousandths == 1250);  // 0.45 / 0.36
    CHECK(row("human").actual == usd(0));
    CHECK(row("task:a").actual == usd(500'000));
    CHECK(row("task:b").of_paid == usd(0));
    CHECK(!row("task:b").ratio_thousandths);
  }

  TEST_CASE("no projection promises more than the envelopes hold") {
    CHECK(rc::check("projection", [] {
      ProjectionInput in;
      const auto cap = [] { return usd(*rc::gen::inRange<std::int64_t>(0, 40)); };
      in.scopes = {{"global", cap()},
                   {"stage:s", cap()},
                   {"stage:t", cap()},
                   {"task:a", cap()},
                   {"task:b", cap()}};
      in.usages = {{action("a", "u", CostCategory::kExecution,
                           *rc::gen::inRange<std::uint64_t>(0, 9'000'000), 1'000'000)}};
      for (const std::uint32_t stage : {1U, 2U})
        for (const std::uint32_t task : {3U, 4U})
          in.kinds.push_back(
              {"", "", "", {0, stage, task}, usd(*rc::gen::inRange<std::int64_t>(0, 9)), 0});
      in.attempts_max = *rc::gen::inRange<std::uint32_t>(1, 4);
      const auto n = *rc::gen::inRange<std::size_t>(0, 30);
      for (std::size_t i = 0; i < n; ++i)
        in.runs.push_back({*rc::gen::inRange<std::uint32_t>(0, 4), 1});
      const Projection p = project(in);

      // An adversary that spends as much as the rules allow, attempt by attempt, kind by kind from
      // any of them on, never passes at_most.
      std::vector<std::int64_t> spent(in.scopes.size());
      const auto first = *rc::gen::inRange<std::uint32_t>(0, 4);
      for (std::uint32_t turn = 0; turn < 4; ++turn)
        for (std::uint32_t again = 0; again < in.attempts_max; ++again)
          for (const auto& run : in.runs) {
            if (run.kind != (first + turn) % 4) continue;
            const auto& kind = in.kinds[run.kind];
            bool fits = true;
            for (const auto s : kind.path)
              fits = fits && spent[s] + kind.ask.micros() <= in.scopes[s].cap.micros();
            if (fits)
              for (const auto s : kind.path) spent[s] += kind.ask.micros();
          }
      std::int64_t parked = 0;
      for (std::size_t s = 0; s < in.scopes.size(); ++s) {
        const EnvelopeProjection& e = p.envelopes[s];
        RC_ASSERT(spent[s] <= e.at_most.micros());
        RC_ASSERT(e.at_most <= e.cap);
        RC_ASSERT(e.at_once <= e.runs);
        std::int64_t least = 9;
        for (const auto& kind : in.kinds) least = std::min(least, kind.ask.micros());
        RC_ASSERT(static_cast<std::int64_t>(e.at_once) * least <= e.cap.micros());
        RC_ASSERT(e.at_most.micros() <= e.at_caps.micros() * in.attempts_max);
        parked += static_cast<std::int64_t>(e.parked_at_caps);
      }
      RC_ASSERT((0 < parked) == p.binds_at_caps.has_value());
      RC_ASSERT(p.envelopes[0].runs == in.runs.size());
      // Stages partition the runs, tasks do: their sums differ from the whole by rounding alone.
      const auto sum = [&](std::size_t a, std::size_t b) {
        return p.envelopes[a].expected->micros() + p.envelopes[b].expected->micros() -
               p.envelopes[0].expected->micros();
      };
      RC_ASSERT((0 <= sum(1, 2) && sum(1, 2) <= 1));
      RC_ASSERT((0 <= sum(3, 4) && sum(3, 4) <= 1));
    }));
  }
}
