// Whole campaigns of unmodified clients: real programs, a sandbox without a network, a provider of
// our own that keeps a bill of its own.
#include <csignal>
#include <cstdlib>

#include "tests/integration/coordinator/endpoint.h"
#include "tests/integration/gateway/gateway_scene.h"
#include "tests/support/books.h"
#include "tests/support/json_tools.h"

using namespace proctor;
using namespace proctor::testing;
using namespace std::chrono_literals;
using Then = ProviderSays::Then;

TEST_SUITE("gateway campaign") {
  TEST_CASE("an agent that knows nothing of us is capped, paid for and on the record") {
    const GatewayScene g(shape_of("3 500 plain", "0.50"),
                         [](const auto&, std::size_t) { return chat_answer("add them", 20, 30); });
    const CommandOutcome done = g.run();
    INFO(done.out << done.err);
    REQUIRE(done.exit_code == 0);
    CHECK(contains(done.out, "success"));
    REQUIRE(g.provider.heard().size() == 3);
    CHECK(contains(g.provider.heard()[0].head, kProviderKey));
    const Json usage = report_of(g)["usage"];
    CHECK(usage["model_calls"] == 3);
    CHECK(usage["input_tokens"] == 60);
    CHECK(usage["metered"]["priced_micros"] == g.bill(20, 30));
    const fs::path said = g.run_dir() / "agent/model/segments";
    CHECK(contains(g.scene.read(said), "add them"));
    const std::string trace = g.trace();
    CHECK(contains(trace, "gateway.open"));
    CHECK(contains(trace, "model.request"));
    CHECK(contains(trace, "\"settled\":\"usage\""));
    CHECK(contains(trace, "gateway.closed"));
    g.has_no_key();
    CHECK(g.scene.run("verify").exit_code == 0);
  }

  TEST_CASE("a cap that is reached in the middle ends the client at once, and nothing passes it") {
    const GatewayScene g(
        shape_of("100 1000 stream", "0.05"), [](const ProviderServer::Heard& h, std::size_t) {
          return chat_stream("x", 20, h.body["max_completion_tokens"].get<std::uint64_t>());
        });
    const CommandOutcome done = g.run();
    INFO(done.out << done.err);
    const Json report = report_of(g);
    CHECK(report["termination"]["code"] == "budget_exceeded");
    std::int64_t billed = 0;
    for (const auto& h : g.provider.heard())
      billed += 20 + 10 * h.body["max_completion_tokens"].get<std::int64_t>();
    CHECK(report["usage"]["metered"]["priced_micros"] == billed);
    CHECK(billed <= 50'000);
    CHECK(40'000 <= billed);  // the last call went out with a lower limit
    CHECK(contains(g.scene.read(g.run_dir() / "agent/stdout"), "budget_exceeded"));
    CHECK(contains(g.scene.read(g.run_dir() / "agent/stdout"), "200, 401]"));
    CHECK(contains(g.trace(), "\"final\":true"));
    g.has_no_key();
  }

  TEST_CASE("a provider that fails in the middle costs what was reserved, and the run is judged") {
    const GatewayScene g(shape_of("3 500 plain", "0.50"), [](const auto&, std::size_t call) {
      ProviderSays says = chat_answer("x", 20, 30);
      if (call == 1) says.then = Then::kCloseFirst;
      return says;
    });
    const CommandOutcome done = g.run();
    INFO(done.out << done.err);
    REQUIRE(done.exit_code == 0);
    const Json usage = report_of(g)["usage"];
    CHECK(usage["model_calls"] == 2);
    CHECK(g.bill(20, 30) <= usage["metered"]["priced_micros"].get<std::int64_t>());
    CHECK(contains(g.trace(), "\"settled\":\"ceiling\""));
  }

  TEST_CASE("a worker that is killed in mid-call has paid for it once, at its ceiling") {
    GatewayScene g(shape_of("1 500 plain", "0.50"), [](const auto&, std::size_t call) {
      ProviderSays says = chat_answer("x", 20, 30);
      if (call == 0) says.then = Then::kHangFirst;
      return says;
    });
    Child running = g.scene.start("run", {"--models", g.models().string()});
    REQUIRE(eventually([&] { return g.provider.heard().size() == 1; }));
    const auto workers = g.scene.workers();
    REQUIRE(workers.size() == 1);
    ::kill(workers[0], SIGKILL);
    REQUIRE(eventually([&] { return 2 <= g.provider.heard().size(); }));
    g.provider.release();
    const auto ended = running.wait(180s);
    INFO(g.scene.said());
    REQUIRE(ended.has_value());
    // 500 of output at 10, and a micro-dollar for each byte of the request and the ten beside it.
    const auto bytes =
        static_cast<std::int64_t>(read_json(g.provider.heard()[0].raw).dump().size());
    const std::int64_t first = g.charged("WHERE attempt = 1");
    CHECK(5'000 + bytes <= first);
    CHECK(first <= 5'200 + bytes);
    CHECK(g.charged() == first + 20 + 300);
  }

  TEST_CASE("an agent that repeats itself is ended by its breaker, and what it left is judged") {
    const GatewayScene g(shape_of("100 500 plain", "0.50"),
                         [](const auto&, std::size_t) { return chat_answer("again", 20, 30); });
    const fs::path yaml = g.scene.folder() / "campaign.yaml";
    g.scene.write(yaml,
                  g.scene.read(yaml) + "breakers: {identical_call: {throttle: 2, stop: 3}}\n");
    const CommandOutcome done = g.run();
    INFO(done.out << done.err << g.trace());
    REQUIRE(done.exit_code == 0);
    const Json report = report_of(g);
    CHECK(report["termination"]["code"] == "breaker");
    CHECK(contains(report["termination"].dump(), "identical_call"));
    CHECK(report["outcome"] == "success");
    // It stopped asking when it was refused, and was answered later before that.
    CHECK(3 <= g.provider.heard().size());
    CHECK(g.provider.heard().size() < 100);
    const std::string said = g.scene.read(g.run_dir() / "agent/stdout");
    CHECK(contains(said, "breaker: identical_call: "));
    CHECK(contains(said, ", 401]"));
    const std::string trace = g.trace();
    CHECK(contains(trace, "\"type\":\"workspace.state\""));
    CHECK(contains(trace, "\"action\":\"throttle\""));
    CHECK(contains(trace, "\"action\":\"stop\""));
    CHECK(contains(trace, "\"waited_for\":\"a breaker\""));
    CHECK(g.scene.run("verify").exit_code == 0);
    CHECK(contains(g.scene.run("report").out, "breaker"));
    const CommandOutcome explained =
        testing::proctor({"explain", g.scene.folder().string(), "add/agent/r1", "--calls"});
    INFO(explained.out << explained.err);
    CHECK(contains(explained.out, "identical_call: stop"));
    const CommandOutcome json = testing::proctor(
        {"explain", g.scene.folder().string(), "add/agent/r1", "--calls", "--json"});
    const Json trips = must(parse_json(json.out)).at("breakers").at("1");
    REQUIRE_FALSE(trips.empty());
    CHECK(trips.back().at("breaker") == "identical_call");
    CHECK(trips.back().at("action") == "stop");
    g.has_no_key();
  }

  TEST_CASE("a secret that an agent says to its model is in nothing that is kept") {
    const std::string secret = "a-secret-of-the-\"run\"";
    ::setenv("GATEWAY_TEST_SECRET", secret.c_str(), 1);
    const GatewayScene g(shape_of("1 500 plain", "0.50"),
                         [](const auto&, std::size_t) { return chat_answer("add", 20, 30); });
    g.scene.edit(g.scene.contract(), "environment:\n",
                 "environment:\n  secrets: [GATEWAY_TEST_SECRET]\n");
    g.scene.edit(g.scene.folder() / "agent.py", "\"how?\"",
                 "\"how? \" + os.environ[\"GATEWAY_TEST_SECRET\"]");
    const CommandOutcome done = g.run();
    ::unsetenv("GATEWAY_TEST_SECRET");
    INFO(done.out << done.err << g.trace());
    REQUIRE(done.exit_code == 0);
    CHECK(g.provider.heard().at(0).body.at("messages").at(0).at("content") == "how? " + secret);
    std::string kept = g.trace();
    kept += g.scene.read(g.run_dir() / "agent/model/segments");
    CHECK(contains(kept, "[redacted:secret GATEWAY_TEST_SECRET:"));
    CHECK_FALSE(contains(kept, "a-secret-of-the-"));
    CHECK(g.scene.run("verify").exit_code == 0);
  }

  TEST_CASE("what was recorded runs again without its provider, and names where it differs") {
    const std::string arguments = "2 500 stream";
    const GatewayScene first(shape_of(arguments, "0.50"), [](const auto&, std::size_t call) {
      return call == 0 ? chat_stream("add", 20, 30) : chat_stream("them", 21, 31);
    });
    REQUIRE(first.run().exit_code == 0);
    const std::string folder = first.scene.folder().string();
    const std::string calls = (first.scene.temp() / "calls.jsonl").string();
    const CommandOutcome recorded =
        testing::proctor({"cassette", "record", folder, "--output", calls});
    INFO(recorded.out << recorded.err);
    REQUIRE(recorded.exit_code == 0);
    CHECK(contains(recorded.out, "2 calls of 1 runs"));
    CHECK(contains(testing::proctor({"cassette", "record", folder, "-o", calls}).err, "--force"));
    CHECK(contains(testing::proctor({"cassette", "list", calls}).out, "add/agent/r1"));
    const CommandOutcome shown = testing::proctor({"cassette", "show", calls, "2"});
    CHECK(contains(shown.out, "how?"));
    // The provider streams a letter at a time, and what it sent is shown as it was sent.
    CHECK(contains(shown.out, R"("content":"t")"));
    CHECK(contains(shown.out, R"("content":"m")"));

    const auto silent = [](const auto&, std::size_t) { return ProviderSays{.status = 500}; };
    const auto play = [&](const GatewayScene& g) {
      g.scene.write(g.models(), "models: {big: {cassette: \"" + calls + "\", api: [chat]}}\n");
      return g.run();
    };
    const GatewayScene again(shape_of(arguments, "0.50"), silent);
    const CommandOutcome played = play(again);
    INFO(played.out << played.err);
    REQUIRE(played.exit_code == 0);
    CHECK(again.provider.heard().empty());
    const Json usage = report_of(again)["usage"];
    CHECK(usage["model_calls"] == 2);
    CHECK(usage["input_tokens"] == 41);
    CHECK(usage["metered"]["priced_micros"] == 0);
    CHECK(usage["metered"]["replayed_calls"] == 2);
    CHECK(again.scene.run("verify").exit_code == 0);
    const std::string run = "add/agent/r1", at = again.scene.folder().string();
    const CommandOutcome explained = testing::proctor({"explain", at, run, "--calls"});
    INFO(explained.out << explained.err);
    CHECK(contains(explained.out, "2 from a recording"));
    CHECK(contains(explained.out, "usage, replayed"));
    CHECK(contains(testing::proctor({"explain", at, run, "--call", "1"}).out, "==> answered <=="));
    CHECK(contains(again.scene.run("report").out, "Calls of models"));

    // One that charges what the provider would have been paid says all the same that none was.
    const GatewayScene paid(shape_of(arguments, "0.50"), silent);
    paid.scene.write(paid.models(), "models: {big: {cassette: \"" + calls +
                                        "\", api: [chat], cassette_charges: true}}\n");
    REQUIRE(paid.run().exit_code == 0);
    CHECK(report_of(paid)["usage"]["metered"]["replayed_calls"] == 2);
    CHECK(report_of(paid)["usage"]["metered"]["priced_micros"] != 0);

    const GatewayScene other(shape_of("1 501 stream", "0.50"), silent);
    const CommandOutcome differs = play(other);
    INFO(differs.out << differs.err);
    CHECK(contains(other.scene.read(other.run_dir() / "agent/stdout"),
                   "/max_completion_tokens differs: 501 here, 500 recorded"));
    CHECK(contains(other.trace(), "cassette.divergence"));
    CHECK(other.provider.heard().empty());
    CHECK(other.scene.run("verify").exit_code == 0);
  }

  TEST_CASE(
      "a provider that failed when it was recorded fails the run's model again, not its agent") {
    const auto broken = [](const auto&, std::size_t) { return ProviderSays{.status = 500}; };
    const GatewayScene first(shape_of("2 500 plain", "0.50"), broken);
    CHECK(first.run().exit_code == 1);
    const std::string calls = (first.scene.temp() / "calls.jsonl").string();
    const CommandOutcome recorded =
        testing::proctor({"cassette", "record", first.scene.folder().string(), "--output", calls});
    REQUIRE_MESSAGE(recorded.exit_code == 0, recorded.err);
    const GatewayScene again(shape_of("2 500 plain", "0.50"), broken);
    again.scene.write(again.models(),
                      "models: {big: {cassette: \"" + calls + "\", api: [chat]}}\n");
    const CommandOutcome played = again.run();
    CHECK_MESSAGE(played.exit_code == 1, played.err);
    CHECK(again.provider.heard().empty());
    CHECK(report_of(again)["termination"]["code"] == "agent_unavailable");
  }

  TEST_CASE("a recording that is missing or cut is refused by its name before anything starts") {
    const GatewayScene g(shape_of("1 500 plain", "0.50"),
                         [](const auto&, std::size_t) { return ProviderSays{}; });
    const std::string calls = (g.scene.temp() / "calls.jsonl").string();
    g.scene.write(g.models(), "models: {big: {cassette: \"" + calls + "\", api: [chat]}}\n");
    const auto refused = [&](const std::string& why) {
      for (const char* command : {"check", "run"}) {
        const CommandOutcome said = g.scene.run(command, {"--models", g.models().string()});
        INFO(command << said.out << said.err);
        CHECK(said.exit_code == 2);
        CHECK(contains(said.err, calls));
        CHECK(contains(said.err, why));
      }
    };
    refused("No such file");
    g.scene.write(calls, "{\"calls\":2,\"proctor_cassette\":1}\n");
    refused("holds 0 calls where its first line says 2");
    CHECK_FALSE(fs::exists(g.scene.folder() / "registration.json"));
  }

  TEST_CASE("a campaign whose model nobody can price or reach is refused before anything starts") {
    const GatewayScene g(shape_of("1 500 plain", "0.50"),
                         [](const auto&, std::size_t) { return ProviderSays{}; });
    CHECK(contains(g.scene.run("run").err, "local workers are told of none"));
    const CommandOutcome checked = g.scene.run("check", {"--models", g.models().string()});
    INFO(checked.out << checked.err);
    CHECK(checked.exit_code == 0);
    CHECK(contains(checked.out + checked.err, "may spend at most 0.50"));
    CHECK(contains(checked.out + checked.err, "cache_read_token"));
    g.scene.write(g.scene.folder() / "pilot_cost_model.csv",
                  "action_type,unit,unit_price,provider,model\n"
                  "llm_request,token,0.1,acme,other\n");
    const CommandOutcome unpriced = g.scene.run("check");
    CHECK(unpriced.exit_code != 0);
    CHECK(contains(unpriced.out + unpriced.err, "methods.agent.gateway.model"));
  }

  TEST_CASE("a model is called only for a campaign whose line in the worker's file names it") {
    // By its name, or by the variable of its key.
    for (const bool variable : {false, true}) {
      CAPTURE(variable);
      const GatewayScene g(shape_of("1 500 plain", "0.50"), [](const auto&, std::size_t) {
        return chat_answer("add them", 20, 30);
      });
      if (variable) {
        ::setenv("OF_ANOTHER", kProviderKey, 1);
        g.scene.edit(g.models(), "key_file: \"" + (g.scene.temp() / "key").string() + "\"",
                     "key_variable: OF_ANOTHER");
      }
      const fs::path file = g.scene.temp() / "coordinators";
      const auto allow = [&](const std::string& words) {
        g.scene.write(file, "one " + endpoint_of(g.scene) + " - 1 5 " + words + "\n");
      };
      Child serve = g.scene.start("serve", {"--listen", "tcp://127.0.0.1:0", "--insecure-loopback",
                                            "--models", g.models().string()});
      allow("SOMETHING,model:other");
      Child worker = g.scene.start_worker({"--connect-file", file.string(), "--insecure-loopback",
                                           "--slots", "1", "--models", g.models().string()},
                                          "w1");
      ::unsetenv("OF_ANOTHER");
      REQUIRE_MESSAGE(eventually([&] {
                        return contains(g.scene.said("w1"),
                                        "line in --connect-file does not name model big");
                      }),
                      (g.scene.said("w1") + g.scene.said()));
      CHECK(g.scene.ended() == 0);
      CHECK(g.provider.heard().empty());
      allow(variable ? "OF_ANOTHER" : "model:big");
      CHECK_MESSAGE(serve.wait(300s) == 0, (g.scene.said() + g.scene.said("w1")));
      CHECK(g.provider.heard().size() == 1);
      CHECK(g.scene.number("SELECT count(*) FROM attempts WHERE state = 'lost'") == 0);
      worker.signal(SIGTERM);
      CHECK_MESSAGE(worker.wait(180s) == 0, g.scene.said("w1"));
    }
  }
}
