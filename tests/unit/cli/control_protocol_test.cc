#include "coordinator/shell/control_protocol.h"

#include <doctest/doctest.h>

#include "common/base/limits.h"
#include "coordinator/shell/campaign_view.h"

using namespace proctor;

namespace {

Plan small_plan() {
  PlanShape shape;
  shape.tasks = {{"add", Digest(), {}}, {"both", Digest(), {}}};
  shape.methods = {"both", "noop"};
  shape.stages = {{"pilot", 2}};
  auto plan = draw_plan(shape);
  REQUIRE(plan.ok());
  return std::move(*plan);
}

struct Names {
  Plan plan = small_plan();
  PlanView view = [] {
    PlanView v;
    v.scopes = {{"global", MicroUsd::from_micros(1)}, {"task:add", MicroUsd::from_micros(1)}};
    v.stages.resize(1);
    v.stages[0].name = "pilot";
    v.stages[0].rules.entry = {{StagePredicate::kClosed, "none", 0},
                               {StagePredicate::kInvalidShare, "", 50'000}};
    v.stages[0].rules.exit = {{StagePredicate::kSpendWithin, "", 0}};
    return v;
  }();
  ControlNames names{&plan, &view, {"build7", "local-1"}};
};

ControlRequest request_of(const std::string& act) {
  ControlRequest r;
  r.act = act;
  r.by = "Ada";
  return r;
}

std::string refused(const Names& n, const ControlRequest& r) {
  const auto act = act_of(r, n.names, WallTime(1));
  REQUIRE_FALSE(act.ok());
  return act.error().detail;
}

}  // namespace

TEST_SUITE("control protocol") {
  TEST_CASE("what is waived is a criterion that the stage has, whether it is over or not") {
    const Names n;
    ControlRequest r = request_of("waive");
    r.stage = "pilot";
    r.reason = "why";
    for (const char* word : {"invalid_share", "invalid_share 0.05", "entry invalid_share",
                             "entry invalid_share 0.05", "spend_within", "exit spend_within"}) {
      r.criterion = word;
      const auto act = act_of(r, n.names, WallTime(1));
      REQUIRE_MESSAGE(act.ok(), word);
      CHECK(act->criterion == word);
    }
    for (const char* word : {"closed", "closed none", "nonsense", "entry spend_within", ""}) {
      r.criterion = word;
      CHECK(refused(n, r).ends_with(
          "pilot \"entry invalid_share 0.05\", pilot \"exit spend_within\""));
    }
  }

  TEST_CASE("a request comes back as it was said") {
    ControlRequest r = request_of("pause");
    r.now = true;
    r.taken = true;
    r.reason = "a \"quoted\"\nline";
    const std::string line = encode(r);
    CHECK(line.find('\n') == line.size() - 1);
    const auto back = parse_control_request(std::string_view(line).substr(0, line.size() - 1));
    REQUIRE(back.ok());
    CHECK(back->act == "pause");
    CHECK(back->now);
    CHECK(back->taken);
    CHECK(back->reason == r.reason);
    CHECK(back->by == "Ada");
    ControlAnswer a{ControlAnswer::Verdict::kUnchanged, "it was so", Json{{"a", 1}}};
    const std::string told = encode(a);
    const auto heard = parse_control_answer(std::string_view(told).substr(0, told.size() - 1));
    REQUIRE(heard.ok());
    CHECK(heard->verdict == a.verdict);
    CHECK(heard->text == a.text);
    CHECK(heard->explanation == a.explanation);
  }

  TEST_CASE("hostile lines are refused and the mistake is named") {
    const struct {
      const char *line, *says;
    } rows[] = {{"", "request"},
                {"pause", "request"},
                {"[1]", "expected an object"},
                {"{}", "act"},
                {"{\"act\":1}", "request.act: expected text, found number"},
                {"{\"act\":\"pause\",\"now\":1}", "request.now: expected true or false"},
                {"{\"act\":\"pause\",\"when\":\"x\"}", "request.when: unknown field"},
                {"{\"act\":\"pause\",\"act\":\"drain\"}", "request"},
                {"{\"act\":[[[[1]]]]}", "request"},
                {"{\"act\":\"\xff\"}", "request"}};
    for (const auto& row : rows) {
      CAPTURE(row.line);
      const auto r = parse_control_request(row.line);
      REQUIRE_FALSE(r.ok());
      CHECK_MESSAGE(r.error().detail.find(row.says) != std::string::npos, r.error().detail);
    }
  }

  TEST_CASE("words name runs") {
    const Plan plan = small_plan();
    const auto count = [&](const char* words) { return select_runs(plan, words).value().size(); };
    CHECK(count("all") == 8);
    CHECK(count("add") == 4);
    CHECK(count("noop") == 4);
    CHECK(count("add/noop/r2") == 1);
    CHECK(count("task:both") == 4);
    CHECK(count("method:both") == 4);
    const auto runs = select_runs(plan, "method:both").value();
    CHECK(std::is_sorted(runs.begin(), runs.end()));
    for (const RunId run : runs) CHECK(plan.method(run) == "both");
    CHECK(select_runs(plan, "both").error().code == Errc::kInvalid);
    CHECK(select_runs(plan, "nop").error().detail.find("did you mean noop") != std::string::npos);
    CHECK(select_runs(plan, "add/noop/r3").error().code == Errc::kNotFound);
    CHECK(select_runs(plan, "task:noop").error().code == Errc::kNotFound);
    CHECK(select_runs(plan, "order:0-2,5").value() ==
          std::vector<RunId>{RunId(0), RunId(1), RunId(2), RunId(5)});
    for (const char* wrong : {"order:", "order:2-1", "order:1,1", "order:3,2", "order:99999999",
                              "order:-1", "order:1-", "order:x", "order:1;2", "order:0-4294967296"})
      CHECK_MESSAGE(select_runs(plan, wrong).error().code == Errc::kInvalid, wrong);
  }

  TEST_CASE("the run that was meant is named, each part of it corrected by itself") {
    const Plan plan = small_plan();
    const auto meant = [&](const char* name) { return find_run(plan, name).error().detail; };
    for (const char* wrong : {"ad/noop/r2", "add/nop/r2", "addd/noopp/r2", "add/noop/2"}) {
      CAPTURE(wrong);
      CHECK_MESSAGE(meant(wrong).find("(did you mean add/noop/r2?)") != std::string::npos,
                    meant(wrong));
    }
    CHECK(meant("add/noop").find("(did you mean add/noop/r1?)") != std::string::npos);
    CHECK(meant("elsewhere/noop/r1").find("runs are named TASK/METHOD/rN") != std::string::npos);
    CHECK(meant("/").find("the plan has no run /") == 0);
    CHECK(find_run(plan, "add/noop/r2").ok());
  }

  TEST_CASE("an act takes what it needs and nothing else") {
    const Names n;
    CHECK(act_of(request_of("pause"), n.names, WallTime(5))->at == WallTime(5));
    ControlRequest r = request_of("drain");
    CHECK(act_of(r, n.names, WallTime(1))->worker.raw().empty());
    r.worker = "build7";
    CHECK(act_of(r, n.names, WallTime(1))->worker == WorkerId("build7"));
    r.worker = "build8";
    CHECK(refused(n, r).find("did you mean build7") != std::string::npos);
    r = request_of("pause");
    r.worker = "build7";
    CHECK(refused(n, r) == "pause takes no worker");
    r = request_of("unpause");
    r.now = true;
    CHECK(refused(n, r) == "unpause takes no --now");
    r = request_of("cancel");
    r.runs = "all";
    CHECK(refused(n, r) == "cancel needs a reason: --reason TEXT");
    r.reason = " \t";
    CHECK(refused(n, r) == "cancel needs a reason: --reason TEXT");
    r.reason = "the key leaked";
    const auto cancel = act_of(r, n.names, WallTime(1));
    REQUIRE(cancel.ok());
    CHECK(cancel->runs.size() == 8);
    CHECK(cancel->selected == "all");
    r.by.clear();
    CHECK(refused(n, r).find("who asks") != std::string::npos);
    CHECK(refused(n, request_of("kick")).find("reason") != std::string::npos);
    CHECK(refused(n, request_of("quarantine")) == "quarantine: which worker?");
    CHECK(refused(n, request_of("pauze")).find("did you mean pause") != std::string::npos);
  }

  TEST_CASE("a raise names an envelope and an amount") {
    const Names n;
    ControlRequest r = request_of("raise");
    r.reason = "prices rose";
    r.scope = "task:add";
    r.to = "12.50";
    const auto raise = act_of(r, n.names, WallTime(1));
    REQUIRE(raise.ok());
    CHECK(raise->scope == ScopeId(1));
    CHECK(raise->to == MicroUsd::from_micros(12'500'000));
    r.to = "12.x";
    CHECK(refused(n, r).find("the new cap") != std::string::npos);
    r.to = "1";
    r.scope = "task:ad";
    CHECK(refused(n, r).find("did you mean task:add") != std::string::npos);
  }

  TEST_CASE("long and broken words are refused") {
    const Names n;
    ControlRequest r = request_of("pause");
    r.reason = std::string(limits::kDetailBytes + 1, 'x');
    CHECK(refused(n, r).find("reason: found 4097 bytes") != std::string::npos);
    r.reason = std::string("a\0b", 3);
    CHECK(refused(n, r) == "reason: expected UTF-8");
  }
}
