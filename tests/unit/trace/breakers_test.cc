// Circuit breakers as folds over events: when each trips, with what, and that it is found again in
// a trace.
#include "common/trace/breakers.h"

#include <doctest/doctest.h>

#include "common/trace/verify.h"

using namespace proctor;

namespace {

Breakers only(const std::string& code, const Breakers::Rule& rule) {
  Breakers out;
  out.rules[code] = rule;
  return out;
}

// Drives a fold, and keeps what it said as a trace would.
class Run {
 public:
  explicit Run(const Breakers& breakers) : fold_(breakers) {
    Json rules = Json::object();
    for (const auto& [code, rule] : breakers.rules) rules[code] = rule;
    keep("gateway.open", {{"breakers", rules}});
  }
  std::vector<BreakerTrip> on(const std::string& type, Json payload) {
    payload["at_ms"] = at_ms;
    keep(type, payload);
    std::vector<BreakerTrip> trips = fold_.on(type, payload);
    for (const BreakerTrip& trip : trips) {
      keep("monitor.alert", alert_json(trip, fold_.stage()));
      keep("monitor.intervention", intervention_json(trip, trace.back().seq));
    }
    return trips;
  }
  std::vector<BreakerTrip> state(const std::string& digest) {
    return on("workspace.state", {{"digest", digest}, {"files", 1}, {"bytes", 1}});
  }
  std::vector<BreakerTrip> call(const std::string& key, const Json& tools = Json::array()) {
    ++calls_;
    auto trips = on("model.request", {{"call", calls_}, {"key", key}});
    for (BreakerTrip& t :
         on("model.response", {{"call", calls_}, {"status", 200}, {"tool_calls", tools}}))
      trips.push_back(std::move(t));
    return trips;
  }
  std::vector<BreakerTrip> tool(const std::string& name, bool ok, std::uint64_t wall_ms = 1,
                                const std::string& arguments = "a") {
    const std::string id = std::to_string(++tools_);
    auto trips = on("tool.call", {{"id", id}, {"tool", name}, {"arguments_digest", arguments}});
    for (BreakerTrip& t : on("tool.result", {{"id", id}, {"ok", ok}, {"wall_ms", wall_ms}}))
      trips.push_back(std::move(t));
    return trips;
  }
  std::vector<std::string> verified(const std::vector<TraceEvent>& events) const {
    std::vector<std::string> out;
    BreakerAudit audit([&](std::string_view, std::string what, std::uint64_t line) {
      out.push_back(std::to_string(line) + ": " + what);
    });
    for (std::size_t i = 0; i < events.size(); ++i) audit.on(events[i], i + 1);
    return out;
  }

  BreakerFold& fold() { return fold_; }
  void keep(const std::string& type, const Json& payload) {
    TraceEvent event;
    event.seq = trace.size();
    event.type = type;
    event.payload = payload;
    trace.push_back(std::move(event));
  }
  std::vector<TraceEvent> trace;
  std::uint64_t at_ms = 0;

 private:
  BreakerFold fold_;
  std::uint64_t calls_ = 0, tools_ = 0;
};

bool is(const std::vector<BreakerTrip>& trips, const std::string& code, BreakerAction action) {
  return trips.size() == 1 && trips[0].code == code && trips[0].action == action;
}

}  // namespace

TEST_SUITE("breakers") {
  using Act = BreakerAction;

  TEST_CASE("the same request is answered later from one count on, and ends the run at another") {
    Run run(only("identical_call", {{"throttle", 4}, {"stop", 8}}));
    run.state("s1");
    for (int i = 0; i < 3; ++i) CHECK(run.call("k").empty());
    CHECK(run.fold().wait_seconds("k") == 0);
    CHECK(is(run.call("k"), "identical_call", Act::kThrottle));
    CHECK(run.fold().wait_seconds("k") == 2);
    CHECK(run.fold().wait_seconds("another") == 0);
    for (int i = 0; i < 3; ++i) CHECK(run.call("k").empty());
    CHECK(run.fold().wait_seconds("k") == 16);
    CHECK(is(run.call("k"), "identical_call", Act::kStop));
    CHECK(run.fold().stopped());
    CHECK(run.call("k").empty());
    CHECK(run.verified(run.trace).empty());
  }

  TEST_CASE("a change of the workspace makes the same request another one") {
    Run run(only("identical_call", {{"throttle", 4}, {"stop", 8}}));
    for (int i = 0; i < 50; ++i) {
      run.state("s" + std::to_string(i));
      CHECK(run.call("k").empty());
    }
  }

  TEST_CASE("what the model asks of tools is counted too, for conversations grow") {
    Run run(only("identical_call", {{"throttle", 4}, {"stop", 8}}));
    run.state("s1");
    const Json tools = Json::array({{{"name", "bash"}, {"digest", "d"}}});
    std::vector<BreakerTrip> trips;
    for (int i = 0; i < 8 && trips.empty(); ++i) trips = run.call(std::to_string(i), tools);
    REQUIRE(is(trips, "identical_call", Act::kThrottle));
    CHECK(trips[0].signals["tool"] == "bash");
    CHECK(run.fold().wait_seconds("a new one") == 2);
    CHECK(run.call("without tools").empty());
    CHECK(run.fold().wait_seconds("a new one") == 0);
  }

  TEST_CASE("a workspace that nobody could look at trips nothing that asks for it") {
    Run run(only("identical_call", {{"throttle", 2}, {"stop", 3}}));
    for (int i = 0; i < 9; ++i) CHECK(run.call("k").empty());
    run.state("s");
    run.state("");  // not any more
    for (int i = 0; i < 9; ++i) CHECK(run.call("k").empty());
  }

  TEST_CASE("calls that were not answered are none of the same") {
    Run run(only("identical_call", {{"throttle", 2}, {"stop", 3}}));
    run.state("s");
    for (std::uint64_t i = 1; i < 9; ++i) {
      run.on("model.request", {{"call", i}, {"key", "k"}});
      CHECK(run.on("model.response", {{"call", i}, {"status", 503}}).empty());
    }
  }

  TEST_CASE("no progress is told once, and ends the run at twice that") {
    Run run(only("no_progress", {{"model_calls", 3}, {"tool_calls", 0}, {"seconds", 0}}));
    run.state("s1");
    run.call("1"), run.call("2");
    CHECK(is(run.call("3"), "no_progress", Act::kNote));
    CHECK(run.call("4").empty());
    run.state("s2");
    run.call("5"), run.call("6");
    CHECK(is(run.call("7"), "no_progress", Act::kNote));
    run.state("s1");  // it has been there
    CHECK(run.call("8").empty());
    CHECK(run.call("9").empty());
    CHECK(is(run.call("10"), "no_progress", Act::kStop));
    CHECK(run.verified(run.trace).empty());
  }

  TEST_CASE("time without progress counts, but not while an agent only reads") {
    Run run(only("no_progress", {{"model_calls", 0}, {"tool_calls", 0}, {"seconds", 600}}));
    run.on("stage.changed", {{"to", "read"}});
    run.state("s1");
    run.at_ms = 10'000'000;
    CHECK(run.call("1").empty());
    run.on("stage.changed", {{"to", "write"}});
    CHECK(run.fold().stopped());
  }

  TEST_CASE("an expensive command that is repeated for nothing waits") {
    Run run(only("expensive_repeat", {{"seconds", 10}}));
    run.state("s1");
    CHECK(run.tool("shell", true, 11'000).empty());
    CHECK(is(run.tool("shell", true, 11'000), "expensive_repeat", Act::kThrottle));
    CHECK(run.fold().wait_seconds("") == 2);
    CHECK(run.tool("shell", true, 11'000).size() == 1);
    CHECK(run.fold().wait_seconds("") == 4);
    run.state("s2");
    CHECK(run.tool("shell", true, 11'000).empty());
    CHECK(run.tool("shell", true, 9'000).empty());
  }

  TEST_CASE("a burst of tool calls is slowed down") {
    Run run(only("burst", {{"tool_calls", 20}, {"seconds", 10}}));
    for (int i = 0; i < 20; ++i) CHECK(run.tool("search", true).empty());
    CHECK(is(run.tool("search", true), "burst", Act::kThrottle));
    Run slow(only("burst", {{"tool_calls", 20}, {"seconds", 10}}));
    for (int i = 0; i < 100; ++i) {
      slow.at_ms += 600;
      CHECK(slow.tool("search", true).empty());
    }
  }

  TEST_CASE("to and fro between two states in which a suite fails suspends writing, then stops") {
    Run run(only("oscillation", {{"rounds", 2}}));
    const auto fail_in = [&](const std::string& state) {
      run.state(state);
      return run.tool("run_tests", false);
    };
    CHECK(fail_in("A").empty());
    CHECK(fail_in("B").empty());
    CHECK(fail_in("A").empty());
    CHECK(is(fail_in("B"), "oscillation", Act::kSuspendWrites));
    CHECK(run.fold().writes_suspended());
    fail_in("A"), fail_in("B"), fail_in("A");
    CHECK(is(fail_in("B"), "oscillation", Act::kStop));
    CHECK(run.verified(run.trace).empty());

    Run better(only("oscillation", {{"rounds", 2}}));
    for (const char* state : {"A", "B", "C", "A", "B", "C", "A"}) {
      better.state(state);
      CHECK(better.tool("run_tests", false).empty());
    }
  }

  TEST_CASE("a suite that fails again without a change is slowed down, then ends the run") {
    Run run(only("failing_suite", {{"throttle", 3}, {"stop", 6}}));
    run.state("s");
    CHECK(run.tool("run_tests", false).empty());
    CHECK(run.tool("run_tests", false).empty());
    CHECK(is(run.tool("run_tests", false), "failing_suite", Act::kThrottle));
    run.tool("run_tests", false), run.tool("run_tests", false);
    CHECK(is(run.tool("run_tests", false), "failing_suite", Act::kStop));
  }

  TEST_CASE("edits that do not apply suspend writing until the agent has read") {
    Run run(only("failed_writes", {{"suspend", 5}, {"reads", 3}}));
    for (int i = 0; i < 4; ++i) run.tool("edit_file", false);
    run.tool("edit_file", true);
    for (int i = 0; i < 4; ++i) CHECK(run.tool("apply_patch", false).empty());
    CHECK(is(run.tool("apply_patch", false), "failed_writes", Act::kSuspendWrites));
    run.tool("read_file", true), run.tool("search", true);
    CHECK(run.fold().writes_suspended());
    run.tool("read_file", true);
    CHECK_FALSE(run.fold().writes_suspended());
  }

  TEST_CASE("dependencies that are installed again by the same lock files end the run") {
    Run run(only("reinstall", {{"throttle", 3}, {"stop", 5}}));
    const auto install = [&](const char* locks) {
      return run.on("dependency.install", {{"locks", locks}});
    };
    CHECK(install("l").empty());
    CHECK(install("other").empty());
    CHECK(install("l").empty());
    CHECK(is(install("l"), "reinstall", Act::kThrottle));
    CHECK(install("l").empty());
    CHECK(is(install("l"), "reinstall", Act::kStop));
  }

  TEST_CASE("calls that are refused in a row end the run, and one answer begins anew") {
    Run run(only("refused_streak", {{"stop", 20}}));
    for (int i = 0; i < 19; ++i)
      CHECK(run.on("model.refused", {{"call", 1}, {"final", false}}).empty());
    run.call("k");
    for (int i = 0; i < 19; ++i)
      CHECK(run.on("model.refused", {{"call", 1}, {"final", false}}).empty());
    CHECK(
        is(run.on("model.refused", {{"call", 1}, {"final", false}}), "refused_streak", Act::kStop));
  }

  TEST_CASE("a ceiling over the whole run counts every call, whatever changes") {
    Run run(only("run_ceiling", {{"model_calls", 3}, {"tool_calls", 0}, {"seconds", 0}}));
    for (int i = 0; i < 3; ++i) {
      run.state(std::to_string(i));
      CHECK(run.call(std::to_string(i)).empty());
    }
    CHECK(is(run.call("4"), "run_ceiling", Act::kStop));
    Run late(only("run_ceiling", {{"model_calls", 0}, {"tool_calls", 0}, {"seconds", 5}}));
    late.at_ms = 6'000;
    CHECK(is(late.call("1"), "run_ceiling", Act::kStop));
  }

  TEST_CASE("a trace that hides, invents or changes a trip is found") {
    Run run(only("identical_call", {{"throttle", 2}, {"stop", 3}}));
    run.state("s");
    run.call("k"), run.call("k"), run.call("k"), run.call("k");
    REQUIRE(run.verified(run.trace).empty());
    const auto at = [&](const std::string& type, int nth) {
      for (std::size_t i = 0; i < run.trace.size(); ++i)
        if (run.trace[i].type == type && nth-- == 0) return i;
      FAIL("no such event");
      return std::size_t{0};
    };
    auto hidden = run.trace;
    const auto first = hidden.begin() + static_cast<std::ptrdiff_t>(at("monitor.alert", 0));
    hidden.erase(first, first + 2);
    CHECK_FALSE(run.verified(hidden).empty());
    auto changed = run.trace;
    changed[at("monitor.alert", 1)].payload["signals"]["times"] = 7;
    CHECK(run.verified(changed).size() == 1);
    auto lenient = run.trace;
    lenient[at("monitor.intervention", 1)].payload["action"] = "note";
    CHECK(run.verified(lenient).size() == 1);
    auto invented = run.trace;
    invented.insert(invented.begin() + 2, run.trace[at("monitor.alert", 0)]);
    CHECK_FALSE(run.verified(invented).empty());
    auto looser = run.trace;
    looser[0].payload["breakers"]["identical_call"]["stop"] = 9;
    CHECK_FALSE(run.verified(looser).empty());
  }

  TEST_CASE("a breaker of another version and a parameter of another shape switch off no other") {
    const Json payload = {{"breakers",
                           {{"x", {{"note", "t"}}},
                            {"burst", {{"tool_calls", 2}, {"seconds", "t"}}},
                            {"oscillation", 1},
                            {"refused_streak", {{"stop", 3}}}}}};
    Breakers expected = only("burst", {{"tool_calls", 2}, {"seconds", 0}});
    expected.rules["refused_streak"] = {{"stop", 3}};
    CHECK(breakers_in(payload) == expected);
    CHECK_FALSE(breakers_in({{"breakers", "on"}}).any());
  }

  TEST_CASE("an intervention that names no breaker is another monitor's, whatever its shape") {
    Run run(only("identical_call", {{"throttle", 2}, {"stop", 3}}));
    run.keep("monitor.intervention", {{"action", "other"}, {"alert", "none"}});
    CHECK(run.verified(run.trace).empty());
    run.keep("monitor.intervention", {{"action", "stop"}, {"alert", 1}, {"breaker", "burst"}});
    CHECK(run.verified(run.trace).size() == 1);
  }

  TEST_CASE("without breakers nothing is counted") {
    Run run{Breakers{}};
    run.state("s");
    for (int i = 0; i < 100; ++i) CHECK(run.call("k").empty());
    CHECK(run.verified(run.trace).empty());
  }
}
