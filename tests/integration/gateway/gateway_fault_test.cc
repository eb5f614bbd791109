// The faults of an operator or a provider are never the failure of an agent.
#include "tests/integration/gateway/gateway_scene.h"
#include "tests/support/json_tools.h"

using namespace proctor;
using namespace proctor::testing;
using Then = ProviderSays::Then;

namespace {

// Nothing is waited for longer than a test needs, and each class is tried once more.
void be_quick(const GatewayScene& g) {
  g.scene.edit(g.scene.folder() / "campaign.yaml", "strata: [language, type]",
               "infrastructure_retries: 1\nretries: {backoff: 50ms, overload: 1, "
               "overload_backoff: 50ms}\nstrata: [language, type]");
}

// Without the line breaks of a terminal's width.
std::string flat(const std::string& text) {
  std::string out;
  for (const char c : text)
    if (c != '\n' && (c != ' ' || !out.ends_with(' '))) {
      out += c;
    } else if (!out.ends_with(' ')) {
      out += ' ';
    }
  return out;
}

std::int64_t attempts_that(const GatewayScene& g, const std::string& where) {
  return g.scene.number("SELECT count(*) FROM attempts WHERE " + where);
}

}  // namespace

TEST_SUITE("gateway campaign") {
  TEST_CASE("a provider that fails every call makes no failure of the agent, and is named") {
    struct Row {
      const char* what;
      int status;
      Then then;
      const char* told;
      const char* body = "{}";
    };
    for (const Row& row :
         {Row{"refuses the key", 401, Then::kGoOn, "does not take the operator's key"},
          Row{"forbids", 403, Then::kGoOn, "its provider answers 403"},
          Row{"is broken", 500, Then::kGoOn, "its provider answers 500"},
          Row{"says nothing", 200, Then::kCloseFirst, "its model could not be had: "},
          Row{"is a page", 200, Then::kGoOn, "its provider answers 200, and it is no JSON object",
              "<html>It works!</html>"},
          Row{"says an error as an answer", 200, Then::kGoOn,
              "its provider answers 200, and it is an error: overloaded",
              R"({"error": {"message": "overloaded"}})"}}) {
      CAPTURE(row.what);
      const GatewayScene g(shape_of("2 500 plain", "0.50"), [&](const auto&, std::size_t) {
        ProviderSays says{.status = row.status, .body = row.body};
        says.then = row.then;
        return says;
      });
      be_quick(g);
      const CommandOutcome done = g.run();
      INFO(done.out << done.err);
      // The agent wrote the right file all the same: it is not judged by it.
      CHECK(attempts_that(g, "outcome = 'success' OR outcome = 'failure'") == 0);
      CHECK(attempts_that(g, "termination = 'agent_unavailable' AND infrastructure = 1") == 2);
      CHECK(done.exit_code == 1);
      CHECK(contains(done.err, row.told));
      CHECK(contains(done.err, "came to no verdict"));
      const CommandOutcome report = g.scene.run("report");
      CHECK_MESSAGE(contains(report.out, "1 of 1 run (1 for want of a model)"), report.out);
      CHECK(contains(flat(report.out), row.told));
      CHECK(contains(flat(g.scene.run("status").out), row.told));
      CHECK(contains(g.scene.run("explain", {"add/agent/r1"}).out, row.told));
      CHECK(g.scene.number("SELECT count(*) FROM notes WHERE kind = 'worker_quarantined'") == 0);
      CHECK(g.scene.run("verify").exit_code == 0);
      g.has_no_key();
    }
  }

  TEST_CASE("a provider without room for any call is an overload") {
    const GatewayScene g(shape_of("1 500 plain", "0.50"), [](const auto&, std::size_t) {
      return ProviderSays{.status = 429, .headers = "retry-after: 0\r\n", .body = "{}"};
    });
    be_quick(g);
    const CommandOutcome done = g.run();
    INFO(done.out << done.err);
    CHECK(done.exit_code == 1);
    CHECK(attempts_that(g, "rationale LIKE 'a provider of models had no room%'") == 2);
    CHECK(attempts_that(g, "termination = 'model_overloaded' AND infrastructure = 2") == 2);
    CHECK(attempts_that(g, "outcome = 'success' OR outcome = 'failure'") == 0);
    CHECK(contains(done.err, "a provider of models had no room"));
  }

  TEST_CASE(
      "a provider whose room ends in the middle is no failure of the agent, and tried later") {
    for (const bool lasts : {false, true}) {
      CAPTURE(lasts);
      const GatewayScene g(shape_of("2 500 plain", "0.50"), [lasts](const auto&, std::size_t call) {
        // Each attempt makes two calls.
        return call == 1 || (lasts && call == 3)
                   ? ProviderSays{.status = 429, .headers = "retry-after: 0\r\n", .body = "{}"}
                   : chat_answer("add them", 20, 30);
      });
      be_quick(g);
      const CommandOutcome done = g.run();
      INFO(done.out << done.err);
      CHECK(done.exit_code == (lasts ? 1 : 0));
      CHECK(attempts_that(g, "termination = 'model_overloaded'") == (lasts ? 2 : 1));
      CHECK(attempts_that(g, "outcome = 'success'") == (lasts ? 0 : 1));
      CHECK(g.scene.run("verify").exit_code == 0);
      const Json row = read_json(g.scene.run("report", {"--json"}).out)["rows"][0];
      CHECK(row["model_overloaded"] == (lasts ? 1 : 0));
      CHECK(row["agent_unavailable"] == 0);
      CHECK(row["model_use"]["busy_calls"] == (lasts ? 2 : 1));
      const std::string explained = g.scene.run("explain", {"add/agent/r1"}).out;
      CHECK_MESSAGE(contains(explained, "its provider answers 429"), explained);
    }
  }

  TEST_CASE("after an outage an agent that ended well is judged, and one that did not is not") {
    for (const bool well : {true, false}) {
      const GatewayScene g(shape_of(well ? "2 500 plain" : "2 500 plain; exit 1", "0.50"),
                           [](const auto&, std::size_t call) {
                             return call == 0 ? chat_answer("add them", 20, 30)
                                              : ProviderSays{.status = 500, .body = "{}"};
                           });
      be_quick(g);
      const CommandOutcome done = g.run();
      INFO(done.out << done.err);
      CHECK(done.exit_code == (well ? 0 : 1));
      CHECK(attempts_that(g, "outcome = 'success'") == (well ? 1 : 0));
      CHECK((attempts_that(g, "termination = 'agent_unavailable'") == 0) == well);
    }
  }

  TEST_CASE("errors of a provider cost nothing, and the run goes on behind them") {
    const GatewayScene g(shape_of("2 500 patient", "0.05"), [](const auto&, std::size_t call) {
      return 0 < call && call < 9 ? ProviderSays{.status = 500, .body = "{}"}
                                  : chat_answer("add them", 20, 30);
    });
    const CommandOutcome done = g.run();
    INFO(done.out << done.err);
    CHECK(done.exit_code == 0);
    CHECK(attempts_that(g, "outcome = 'success'") == 1);
    CHECK(g.provider.heard().size() == 10);
    CHECK(g.charged() == 2 * (20 + 300));
    const Json metered = report_of(g)["usage"]["metered"];
    CHECK(metered["failed_calls"] == 8);
    CHECK(metered["busy_calls"] == 0);
  }

  TEST_CASE("a cap that a provider's errors used up is no failure of the agent, and tried again") {
    const GatewayScene g(shape_of("100 500 patient", "0.03"), [](const auto&, std::size_t call) {
      // Each attempt makes seven calls.
      return call % 7 == 0 ? chat_answer("add them", 20, 30)
                           : ProviderSays{.status = 500, .body = "{}"};
    });
    g.scene.edit(g.models(), "output_floor: 100", "output_floor: 100, errors_are_free: false");
    be_quick(g);
    const CommandOutcome done = g.run();
    INFO(done.out << done.err);
    CHECK(attempts_that(g, "outcome = 'success' OR outcome = 'failure'") == 0);
    CHECK(attempts_that(g, "termination = 'agent_unavailable' AND infrastructure = 1") == 2);
    CHECK(contains(done.err, "calls that nobody answered used up its cap on usd"));
    CHECK(g.charged("WHERE attempt = 1") <= 30'000);
    CHECK(g.scene.run("verify").exit_code == 0);
  }

  TEST_CASE("a key that is refused in the middle is the operator's, whatever was answered before") {
    const GatewayScene g(shape_of("2 500 plain", "0.50"), [](const auto&, std::size_t call) {
      return call == 0 ? chat_answer("add them", 20, 30)
                       : ProviderSays{.status = 401, .body = "{}"};
    });
    be_quick(g);
    const CommandOutcome done = g.run();
    INFO(done.out << done.err);
    CHECK(attempts_that(g, "termination = 'agent_unavailable'") == 2);
    CHECK(contains(done.err, "does not take the operator's key"));
  }

  TEST_CASE("a key that is not there is found before anything begins") {
    const GatewayScene g(shape_of("1 500 plain", "0.50"),
                         [](const auto&, std::size_t) { return chat_answer("x", 1, 1); });
    g.scene.write(g.models(), "models:\n  big: {url: \"" + g.provider.url() +
                                  "\", key_variable: PROCTOR_TEST_NO_KEY, api: [chat]}\n");
    const std::string told =
        "method agent needs the model big: the variable PROCTOR_TEST_NO_KEY has no key: export "
        "PROCTOR_TEST_NO_KEY";
    const CommandOutcome checked = g.scene.run("check", {"--models", g.models().string()});
    CHECK(checked.exit_code == 0);
    CHECK_MESSAGE(contains(checked.out, "note: " + told), checked.out);
    const CommandOutcome refused = g.run();
    CHECK(refused.exit_code == 2);
    CHECK_MESSAGE(contains(refused.err, told), refused.err);
    CHECK_FALSE(fs::exists(g.scene.folder() / "registration.json"));
    const CommandOutcome tried =
        g.scene.run("try", {"add", "agent", "--models", g.models().string()});
    CHECK(tried.exit_code == 2);
    CHECK_MESSAGE(contains(tried.err, told), tried.err);
    CHECK(g.provider.heard().empty());
  }
}
