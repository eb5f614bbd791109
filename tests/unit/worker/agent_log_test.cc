// What an agent's calls may take of its run's event log.
#include "worker/shell/run_events.h"

#include <doctest/doctest.h>

#include "common/trace/evidence.h"

using namespace proctor;

namespace {

struct Log {
  TempDir dir = TempDir::create("agent-log").value();
  RunRecorder recorder = RunRecorder::create(dir.path() / "run").value();
  Log() { REQUIRE(recorder.write_manifest(Json::object()).ok()); }
  // How many events of this type there are.
  std::size_t count(std::string_view type) {
    REQUIRE(recorder.flush().ok());
    const std::string bytes = read_file(recorder.dir() / kEventsFile, kEventLogBytes).value();
    const std::string member = "\"type\":\"" + std::string(type) + "\"";
    std::size_t n = 0;
    for (std::size_t at = bytes.find(member); at != std::string::npos;
         at = bytes.find(member, at + 1))
      ++n;
    return n;
  }
};

const Json kCall = {{"text", std::string(1'000, 'x')}};

}  // namespace

TEST_SUITE("agent log") {
  TEST_CASE(
      "an agent whose calls would fill the log must go, once, and the rest is for its judge") {
    Log log;
    AgentLog agent({10'000, 1'000, 20'000, 1'000});
    std::size_t told = 0;
    for (int i = 0; i < 100; ++i) {
      const auto noted = agent.note(log.recorder, "model.request", Actor::kAgent, kCall);
      REQUIRE(noted.ok());
      CHECK(noted->seq != 0);
      if (noted->full.empty()) continue;
      ++told;
      CHECK(noted->full.starts_with("the agent was stopped at the limit of what is recorded"));
      CHECK(noted->evidence == noted->seq + 1);
      CHECK(10'000 <= log.recorder.length().bytes);
      CHECK(log.recorder.length().bytes < 12'000);
    }
    CHECK(told == 1);
    CHECK(log.count("trace.full") == 1);
    // What it had begun is told to its end, and then nothing more.
    CHECK(20'000 <= log.recorder.length().bytes);
    CHECK(log.recorder.length().bytes < 22'000);
    CHECK(log.recorder.event("acceptance", Actor::kHarness, kCall).ok());
  }

  TEST_CASE("many short events are a full log, too") {
    Log log;
    AgentLog agent({1'000'000, 10, 1'000'000, 20});
    std::size_t told = 0;
    for (int i = 0; i < 50; ++i)
      told +=
          agent.note(log.recorder, "workspace.state", Actor::kHarness, Json::object())->full.empty()
              ? 0
              : 1;
    CHECK(told == 1);
    CHECK(log.recorder.length().events == 20);
  }

  TEST_CASE("an event that is longer than any may be is the agent's end, and no broken trace") {
    Log log;
    AgentLog agent;
    const Json much = {{"text", std::string(limits::kEventBytes, 'x')}};
    const auto noted = agent.note(log.recorder, "tool.result", Actor::kHarness, much);
    REQUIRE(noted.ok());
    CHECK(noted->full.ends_with("its event tool.result is too long"));
    CHECK(noted->seq == noted->evidence);
    CHECK(log.count("trace.full") == 1);
    CHECK(agent.note(log.recorder, "tool.result", Actor::kHarness, much)->full.empty());
    CHECK(log.count("trace.full") == 1);
  }

  TEST_CASE("what is left of a log behind its agent is enough for all of its checks") {
    const AgentLog::Bounds bounds;
    CHECK(bounds.bytes < bounds.bytes_most);
    CHECK((std::size_t{64} << 20) <= kEventLogBytes - bounds.bytes_most);
    CHECK(100'000 <= kEventsMax - bounds.events_most);
  }
}
