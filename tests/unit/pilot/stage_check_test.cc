// What stages came to, held against criteria.
#include "common/pilot/stage_check.h"

#include <doctest/doctest.h>

using namespace proctor;
using Value = StageAnswer::Value;

namespace {

StageFacts facts() {
  StageFacts f;
  f.methods = {{"agent", 20, 1}, {"noop", 20, 0}};
  f.attempts = 42;
  f.infrastructure = 2;
  f.spent = MicroUsd::from_micros(7'500'000);
  f.cap = f.registered = MicroUsd::from_micros(8'000'000);
  return f;
}

StageAnswer ask(const StageFacts& f, StagePredicate is, std::uint32_t millionths = 0) {
  StageFacts of = f;
  of.rules.exit = {{is, "", millionths}};
  return check_exit(of).front();
}

}  // namespace

TEST_SUITE("pilot") {
  TEST_CASE("a share is compared exactly, in every method, and unknown where nothing ended") {
    StageFacts f = facts();
    CHECK(ask(f, StagePredicate::kInvalidShare, 50'000).value == Value::kYes);  // 1 of 20 is 0.05
    CHECK(ask(f, StagePredicate::kInvalidShare, 49'999).value == Value::kNo);
    CHECK(ask(f, StagePredicate::kInvalidShare, 50'000).text ==
          "invalid: agent 1 of 20, noop 0 of 20");
    f.methods[1].ended = 0;
    CHECK(ask(f, StagePredicate::kInvalidShare, 1'000'000).value == Value::kUnknown);
    CHECK(ask(f, StagePredicate::kInvalidShare, 0).value == Value::kNo);  // the other says so
    CHECK(ask(f, StagePredicate::kInfrastructureShare, 47'620).value == Value::kYes);
    CHECK(ask(f, StagePredicate::kInfrastructureShare, 47'619).value == Value::kNo);
    f.attempts = 0;
    CHECK(ask(f, StagePredicate::kInfrastructureShare, 0).value == Value::kUnknown);
  }

  TEST_CASE("a stage is over when nothing of it is open, whatever became of its runs") {
    StageFacts f = facts();
    f.parked = 1;
    f.cancelled = 2;
    CHECK(ask(f, StagePredicate::kCompleteOrStopped).value == Value::kYes);
    CHECK(ask(f, StagePredicate::kCompleteOrStopped).text ==
          "40 runs ended, 1 parked, 2 cancelled");
    f.open = 1;
    CHECK(ask(f, StagePredicate::kCompleteOrStopped).value == Value::kNo);
  }

  TEST_CASE("what was spent is within what was registered, whatever the envelope was raised to") {
    StageFacts f = facts();
    CHECK(ask(f, StagePredicate::kSpendWithin).value == Value::kYes);
    f.cap = MicroUsd::from_micros(9'000'000);
    CHECK(ask(f, StagePredicate::kSpendWithin).value == Value::kYes);
    CHECK(ask(f, StagePredicate::kSpendWithin).text ==
          "7.50 of 8.00, and its envelope was raised to 9.00");
    f.spent = f.registered;
    CHECK(ask(f, StagePredicate::kSpendWithin).value == Value::kYes);
    f.spent = MicroUsd::from_micros(8'000'001);
    CHECK(ask(f, StagePredicate::kSpendWithin).value == Value::kNo);
  }

  TEST_CASE("a waived criterion opens, of its own side alone, and only where it does not hold") {
    const std::vector<StageCriterion> entry = {{StagePredicate::kInvalidShare, "", 0}};
    StageFacts f = facts();
    f.rules.exit = entry;
    const auto check = [&](const std::set<std::string>& waived) {
      return check_entry("c", "full", entry, "limited", {{"limited", f}}, waived);
    };
    f.waived = {"entry invalid_share 0.00"};
    CHECK(check_exit(f).front().value == Value::kNo);
    f.waived = {"exit invalid_share 0.00"};
    CHECK(check_exit(f).front().value == Value::kWaived);
    CHECK_FALSE(check(f.waived).holds());
    CHECK_FALSE(check({"entry invalid_share 0.05"}).holds());
    const StageCheck both = check({"entry invalid_share 0.00"});
    CHECK(both.holds());
    CHECK(both.predicates[0].value == Value::kYes);
    CHECK(both.predicates[0].text.find("invalid_share of its exit: waived") != std::string::npos);
    CHECK(both.predicates[1].value == Value::kWaived);
    CHECK(check_holds(parse_json(both.canonical()).value()).value());
    f.methods[0].invalid = 0;
    CHECK(check_exit(f).front().value == Value::kYes);
  }

  TEST_CASE("an endpoint is computable where every task came to a verdict under every method") {
    StageFacts f = facts();
    CHECK(ask(f, StagePredicate::kEndpointComputable).value == Value::kYes);
    f.without_verdict = {"perl-ini under agent"};
    f.without_verdict_total = 3;
    const StageAnswer a = ask(f, StagePredicate::kEndpointComputable);
    CHECK(a.value == Value::kNo);
    CHECK(a.text == "perl-ini under agent and 2 more have no run that came to a verdict");
    // All of its tasks were taken out, with runs that had ended and without.
    StageFacts nothing;
    nothing.methods = {{"agent"}, {"noop"}};
    nothing.removed = 8;
    nothing.no_task = true;
    CHECK(ask(nothing, StagePredicate::kEndpointComputable).value == Value::kUnknown);
    for (std::uint64_t StageFacts::*member :
         {&StageFacts::open, &StageFacts::parked, &StageFacts::cancelled}) {
      StageFacts one = nothing;
      one.no_task = false;
      one.*member = one.without_verdict_total = 1;
      CHECK(ask(one, StagePredicate::kEndpointComputable).value == Value::kNo);
    }
  }

  TEST_CASE("a stage is closed when it is over and its exit holds, and unknown is not yes") {
    StageFacts f = facts();
    f.rules.exit = {{StagePredicate::kInvalidShare, "", 50'000}};
    const auto closed = [&] {
      return check_entry("c", "full", {}, "limited", {{"limited", f}}).predicates.front();
    };
    CHECK(closed().value == Value::kYes);
    f.methods[0].invalid = 2;
    CHECK(closed().value == Value::kNo);
    CHECK(closed().text.find("invalid_share of its exit: no, invalid: agent 2 of 20") !=
          std::string::npos);
    f.methods[0] = {"agent", 0, 0};
    CHECK(closed().value == Value::kUnknown);
    CHECK_FALSE(check_entry("c", "full", {}, "limited", {{"limited", f}}).holds());
    f.open = 1;
    CHECK(closed().value == Value::kNo);
  }

  TEST_CASE("the same facts have the same digest, and any other fact another") {
    const auto check = [](const StageFacts& f, const std::string& campaign = "pilot-a") {
      const std::vector<StageCriterion> entry = {{StagePredicate::kInvalidShare, "", 50'000}};
      return check_entry(campaign, "full", entry, "limited", {{"limited", f}});
    };
    const StageCheck one = check(facts());
    CHECK(one.holds());
    CHECK(one.canonical() ==
          R"({"campaign":"pilot-a","format":"proctor-stage-check-1","predicates":[)"
          R"({"facts":{"cancelled":0,"ended":40,"open":0,"parked":0,"removed":0},"name":"closed",)"
          R"("parameter":"limited","text":"40 runs ended","value":"yes"},)"
          R"({"facts":{"agent":{"ended":20,"invalid":1},"noop":{"ended":20,"invalid":0}},)"
          R"("name":"invalid_share","parameter":"0.05",)"
          R"("text":"invalid: agent 1 of 20, noop 0 of 20","value":"yes"}],)"
          R"("side":"entry","stage":"full"})");
    CHECK(one.digest() == sha256(one.canonical()));
    CHECK(check(facts()).digest() == one.digest());
    CHECK(check(facts(), "pilot-b").digest() != one.digest());
    StageFacts parked = facts();
    parked.parked = 1;
    CHECK(check(parked).digest() != one.digest());
    CHECK(check_holds(parse_json(one.canonical()).value()).value());
    CHECK_FALSE(check_holds(Json::array()).ok());
  }
}
