#include "coordinator/cli/evidence_text.h"

#include <doctest/doctest.h>

#include "common/trace/event.h"
#include "common/trace/evidence.h"
#include "common/trace/payloads.h"
#include "coordinator/cli/report_files.h"

using namespace proctor;
using namespace proctor::cli;

TEST_SUITE("calls of models") {
  TEST_CASE("what is refused and not listed is counted, with why") {
    TracedModels told;
    CHECK(calls_text(told) == "  no call of a model went through the gateway\n");
    told.unlisted = {2, 2, 0};
    CHECK(calls_text(told) ==
          "  no call of a model went through the gateway\n"
          "  2 more refused before they were calls, which no event lists: 2 without the run's "
          "token\n");
    TracedCall& call = told.calls.emplace_back();
    call.number = 4;
    call.refused = {{"status", 401}, {"why", "used up"}, {"route", "chat"}};
    told.unlisted = {4, 1, 1};
    const std::string text = calls_text(told);
    CHECK_MESSAGE(text.find("call 4: used up\n") != std::string::npos, text);
    CHECK_MESSAGE(text.find("  4 more refused before they were calls") != std::string::npos, text);
    CHECK_MESSAGE(text.find("2 after its last word") != std::string::npos, text);
    CHECK(to_json(told.unlisted)["refused"] == 4);
  }

  TEST_CASE("calls that go by no gateway are where their meter wrote them") {
    TracedModels told;
    told.metered = 2;
    const std::string text = calls_text(told);
    CHECK_MESSAGE(text.find("its meter granted 2, and") != std::string::npos, text);
  }

  TEST_CASE("runs of acceptance that passed are counted from the last time it was judged anew") {
    const TempDir temp = TempDir::create("repeated").value();
    const fs::path dir = temp.path() / "attempt";
    CHECK(passes_before(dir) == 0);
    RunRecorder run = RunRecorder::create(dir).value();
    const auto passes = [&](const auto& kind, const auto&... values) {
      REQUIRE(run.event(kind.type, kind.actor, kind.json(values...)).ok());
      REQUIRE(run.flush().ok());
      return passes_before(dir);
    };
    constexpr std::uint64_t kOnce = 1, kTwice = 2, kOf = 3;
    CHECK(passes(events::kRepeated, kOnce, kOf) == 0);  // no log is read without its folder
    REQUIRE(make_dirs(dir / repeated_dir(kAcceptanceDir, 1)).ok());
    CHECK(passes(events::kRepeated, kTwice, kOf) == 2);
    CHECK(passes(events::kJudgedAgain, kOnce, "the disk was full") == 0);
    CHECK(passes(events::kRepeated, kOnce, kOf) == 1);
    REQUIRE(write_file(dir / kEventsFile, "{}\n").ok());
    CHECK(passes_before(dir) == 0);
  }

  TEST_CASE("alerts of mere words hide no violation, and those left out are counted") {
    const TempDir temp = TempDir::create("alerts").value();
    const fs::path dir = temp.path() / "attempt";
    CHECK(seen_in(dir, "t/m/r1").empty());
    RunRecorder run = RunRecorder::create(dir).value();
    const auto alert = [&](std::string_view code, const Json& signals) {
      REQUIRE(run.event(events::kAlert.type, events::kAlert.actor,
                        events::kAlert.json(std::string(code), signals, "agent", std::nullopt))
                  .ok());
      REQUIRE(run.flush().ok());
    };
    const auto command = [&](const std::string& form, const std::string& segment) {
      alert(events::kOsRisk, to_json(events::CommandSeen{"rm", form, segment, "process"}));
    };
    for (int i = 0; i < 12; ++i) command("text", "rm " + std::to_string(i % 11));
    alert(events::kNetworkDenied, to_json(events::CallSeen{"connect", "x:44"}));
    command("executed", "rm -rf /");
    const std::vector<PageFacts::Seen> seen = seen_in(dir, "t/m/r1");
    using enum PageFacts::Seen::Kind;
    REQUIRE(seen.size() == 10);
    CHECK(seen[0] == PageFacts::Seen{"t/m/r1", "command: rm", "executed", "rm -rf /", kCritical});
    CHECK(seen[1] == PageFacts::Seen{"t/m/r1", "network: x:44", "", "x:44", kOther});
    CHECK(seen[2] == PageFacts::Seen{"t/m/r1", "command: rm", "text", "rm 0", kWords});
    CHECK(seen[9].more == 3);
  }

  TEST_CASE("a violation with many alerts hides no other, and a program that ran again is shown") {
    const TempDir temp = TempDir::create("alerts").value();
    const fs::path dir = temp.path() / "attempt";
    RunRecorder run = RunRecorder::create(dir).value();
    const auto alert = [&](std::string_view code, const Json& signals) {
      REQUIRE(run.event(events::kAlert.type, events::kAlert.actor,
                        events::kAlert.json(std::string(code), signals, "agent", std::nullopt))
                  .ok());
    };
    const auto ran = [&](const std::string& pattern, const std::string& segment) {
      alert(events::kOsRisk, to_json(events::CommandSeen{pattern, "executed", segment, "process"}));
    };
    const auto segments = [&] {
      REQUIRE(run.flush().ok());
      std::string out;
      for (const PageFacts::Seen& seen : seen_in(dir, "t/m/r1")) {
        out += seen.segment + ", ";
        if (seen.more != 0) out += std::to_string(seen.more);
      }
      return out;
    };
    ran("off", "env off");
    for (int i = 0; i < 3; ++i) ran("off", "off");
    CHECK(segments() == "env off, off, off, off, ");
    for (int i = 0; i < 50; ++i) ran("off", "off " + std::to_string(i));
    for (int i = 0; i < 25; ++i) alert(events::kEscape, to_json(events::CallSeen{"mount", "m"}));
    for (int i = 0; i < 25; ++i) ran("unshare", "unshare " + std::to_string(i));
    alert(events::kNetworkDenied, to_json(events::CallSeen{"connect", "x:44"}));
    CHECK(segments() ==
          "env off, m, unshare 0, off, unshare 1, unshare 2, unshare 3, off 0, "
          "unshare 4, x:44, 71");
  }
}
