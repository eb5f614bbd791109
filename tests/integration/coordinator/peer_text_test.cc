// What a worker writes for people is shown to people, and moves nothing on their terminals.
#include "tests/integration/coordinator/raw_worker.h"
#include "tests/support/books.h"

using namespace proctor;
using namespace proctor::testing;
using namespace std::chrono_literals;

namespace {

constexpr const char* kBad = "it\x1b]0;owned\x07 \xe2\x80\xae\x7f\xc2\x9b broke\nERROR not mine";

void check_clean(const std::string& text) {
  CAPTURE(text);
  for (const char* raw : {"\x1b", "\x07", "\xe2\x80\xae", "\x7f", "\xc2\x9b", "\nERROR not mine"})
    CHECK_FALSE(contains(text, raw));
}

}  // namespace

TEST_SUITE("coordinator") {
  TEST_CASE("no text of a worker reaches a terminal as it is") {
    const CampaignScene scene(gated_shape(1));
    Child serve = scene.start("serve", {"--listen", "tcp://127.0.0.1:0", "--insecure-loopback"});
    constexpr std::string_view kMark = "listening on tcp";
    REQUIRE(eventually([&] { return contains(scene.said(), std::string(kMark)); }));
    const std::string said = scene.said();
    const std::size_t at = said.find(kMark) + kMark.size() - 3;
    RawNetwork network;
    RawWorker worker(network, said.substr(at, said.find_first_of(" \n,", at) - at));
    REQUIRE(network.until([&] { return worker.connected; }));
    wire::Sync sync = RawWorker::sync("w1");
    sync.slots = 1;
    sync.version = "9\xe2\x80\xae";
    sync.features.emplace_back("sandbox:\xe2\x80\xae");
    REQUIRE(worker.say(sync));
    REQUIRE(network.until([&] { return !worker.assigned.empty(); }));
    sync.epoch_seen = worker.assigned[0].epoch;
    sync.campaign = kBad;  // of another one: introduced, and nothing more
    REQUIRE(worker.say(sync));
    wire::ResultMessage result;
    result.epoch = worker.assigned[0].epoch;
    result.attempt = worker.assigned[0].runs[0].attempt;
    result.termination = Termination::kInfrastructure;
    result.infrastructure = true;
    result.rationale = kBad;
    REQUIRE(worker.say(result));
    REQUIRE(eventually([&] {
      return scene.number("SELECT count(*) FROM attempts WHERE rationale LIKE '%broke%'") == 1;
    }));
    const std::string run = worker.assigned[0].runs[0].run_name;
    for (const auto& [command, more] :
         std::vector<std::pair<std::string, std::vector<std::string>>>{{"status", {}},
                                                                       {"status", {"--json"}},
                                                                       {"explain", {run}},
                                                                       {"explain", {run, "--json"}},
                                                                       {"story", {}},
                                                                       {"story", {"--json"}}}) {
      CAPTURE(command);
      const CommandOutcome shown = scene.run(command, more);
      CHECK_MESSAGE(shown.exit_code == 0, shown.err);
      check_clean(shown.out + shown.err);
      if (command == "explain" && more.size() == 1) {
        CHECK_MESSAGE(contains(shown.out, "it\\x1b]0;owned\\x07"), shown.out);
      }
    }
    check_clean(scene.said());
    CHECK(serve.running());
  }
}
