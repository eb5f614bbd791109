#include "common/trace/event.h"

#include <doctest/doctest.h>

#include <sstream>

#include "common/trace/evidence.h"
#include "sample_run.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

TempDir temp() {
  Result<TempDir> t = TempDir::create("trace");
  REQUIRE(t.ok());
  return std::move(t).value();
}

std::vector<TraceEvent> read_events(const fs::path& dir) {
  const Result<std::string> bytes = read_file(dir / "events.jsonl", 1 << 20);
  REQUIRE(bytes.ok());
  std::istringstream in(*bytes);
  EventChain chain;
  std::vector<TraceEvent> out;
  for (std::string line; std::getline(in, line);) {
    Result<TraceEvent> e = chain.accept(line);
    REQUIRE(e.ok());
    out.push_back(*e);
  }
  return out;
}

}  // namespace

TEST_SUITE("trace") {
  TEST_CASE("a finished run directory holds what its report says") {
    const TempDir t = temp();
    const fs::path dir = t.path() / "run";
    const Digest digest = write_sample_run(dir);
    const std::string bytes = *read_file(dir / "report.json", 1 << 20);
    CHECK(sha256(bytes) == digest);
    const Result<RunReport> r = parse_report(bytes);
    REQUIRE(r.ok());
    CHECK(r->manifest == sha256(*read_file(dir / "manifest.json", 1 << 20)));
    CHECK(r->patch == sha256(*read_file(dir / "patch.diff", 1 << 20)));
    CHECK(r->events == 5);
    CHECK(read_events(dir).size() == 5);
    REQUIRE(r->checks.size() == 2);
    CHECK(r->checks[0].stdout_digest == sha256("ok\n"));
    CHECK(r->checks[0].stderr_digest == sha256(""));
    CHECK_FALSE(r->checks[0].result_digest);
    CHECK(r->checks[1].result_digest == sha256("1..1\nok 1 - a\n"));
    std::vector<std::string> paths;
    for (const EvidenceFile& f : r->files) {
      paths.push_back(f.path);
      CHECK(f.digest == sha256(*read_file(dir / f.path, 1 << 20)));
    }
    CHECK(paths == std::vector<std::string>{
                       "acceptance/build/result.json", "acceptance/build/stderr",
                       "acceptance/build/stdout", "acceptance/unit%2Ftests/result.json",
                       "acceptance/unit%2Ftests/results", "acceptance/unit%2Ftests/stderr",
                       "acceptance/unit%2Ftests/stdout", "events.jsonl", "manifest.json",
                       "patch.diff"});
  }

  TEST_CASE("the same run written twice is the same bytes") {
    const TempDir t = temp();
    CHECK(write_sample_run(t.path() / "a") == write_sample_run(t.path() / "b"));
  }

  TEST_CASE("time grows strictly even when the clock stands still or goes back") {
    const TempDir t = temp();
    const std::vector<std::uint64_t> ticks{500, 500, 500, 400, 501, 700, 690};
    std::size_t next = 0;
    Result<RunRecorder> run = RunRecorder::create(t.path() / "run", [&] { return ticks[next++]; });
    REQUIRE(run.ok());
    for (std::size_t i = 0; i < ticks.size(); ++i)
      CHECK(*run->event("tick", Actor::kMonitor, Json::object()) == i);
    REQUIRE(run->flush().ok());
    std::vector<std::uint64_t> seen;
    for (const TraceEvent& e : read_events(run->dir())) seen.push_back(e.t);
    CHECK(seen == std::vector<std::uint64_t>{0, 1, 2, 3, 4, 200, 201});
  }

  TEST_CASE("a refused event leaves the chain whole") {
    const TempDir t = temp();
    Result<RunRecorder> run = RunRecorder::create(t.path() / "run");
    REQUIRE(run.ok());
    CHECK(*run->event("a", Actor::kHarness, Json::object()) == 0);
    CHECK_FALSE(run->event("b", Actor::kHarness, {{"x", 1.5}}).ok());
    CHECK_FALSE(run->event("No", Actor::kHarness, Json::object()).ok());
    CHECK(*run->event("c", Actor::kHarness, Json::object()) == 1);
    REQUIRE(run->flush().ok());
    CHECK(read_events(run->dir()).size() == 2);
  }

  TEST_CASE("the order of a run directory is kept") {
    const TempDir t = temp();
    Result<RunRecorder> run = RunRecorder::create(t.path() / "run");
    REQUIRE(run.ok());
    CHECK_FALSE(run->event("agent.act", Actor::kAgent, Json::object()).ok());
    REQUIRE(run->write_manifest(sample_manifest()).ok());
    CHECK_FALSE(run->write_manifest(sample_manifest()).ok());
    CHECK(run->event("agent.act", Actor::kAgent, Json::object()).ok());
    REQUIRE(run->write_patch("").ok());
    CHECK_FALSE(run->write_patch("").ok());
    REQUIRE(run->finish(RunReport{}).ok());
    CHECK_FALSE(run->finish(RunReport{}).ok());
    CHECK_FALSE(run->event("late", Actor::kHarness, Json::object()).ok());
    CHECK_FALSE(run->check_dir("late").ok());
  }

  TEST_CASE("an empty patch is of what could not be read, of what it cannot hold, or of nothing") {
    const TempDir t = temp();
    const auto recorded = [&](const char* name, const Json& mutation) {
      Result<RunRecorder> run = RunRecorder::create(t.path() / name);
      REQUIRE(run.ok());
      REQUIRE(run->write_manifest(sample_manifest()).ok());
      REQUIRE(run->write_patch("").ok());
      REQUIRE(run->event("mutation", Actor::kHarness, mutation).ok());
      REQUIRE(run->flush().ok());
      return run->dir();
    };
    const fs::path deep = recorded("deep", {{"unreadable", "nested deeper"}});
    REQUIRE_FALSE(patch_of(deep).ok());
    CHECK(patch_of(deep).error().code == Errc::kCorrupt);
    CHECK(patch_of(deep).error().detail.ends_with(": nested deeper"));
    const Json listed = Json::array({"left", "right"});
    const fs::path pipes = recorded("pipes", {{"refused", {{"count", 2}, {"listed", listed}}}});
    CHECK(patch_of(pipes).value() == "");
    CHECK(refused_paths(pipes).value() == std::vector<std::string>{"left", "right"});
    const fs::path nothing = recorded("nothing", Json::object());
    CHECK(patch_of(nothing).value() == "");
    CHECK(refused_paths(nothing).value().empty());
    const fs::path odd = recorded("odd", {{"files", "1"}, {"unreadable", "nested deeper"}});
    REQUIRE_FALSE(patch_of(odd).ok());
    CHECK(patch_of(odd).error().code == Errc::kCorrupt);
    REQUIRE_FALSE(refused_paths(odd).ok());
    CHECK(refused_paths(odd).error().code == Errc::kCorrupt);
    CHECK(patch_of(t.path()).error().code == Errc::kNotFound);
  }

  TEST_CASE("a folder that holds something is not a new run directory") {
    const TempDir t = temp();
    REQUIRE(write_file(t.path() / "x", "", Durability::kLazy).ok());
    const Result<RunRecorder> run = RunRecorder::create(t.path());
    REQUIRE_FALSE(run.ok());
    CHECK(run.error().code == Errc::kConflict);
  }

  TEST_CASE("a trace that a killed process left goes on where it is whole") {
    const TempDir t = temp();
    const fs::path dir = t.path() / "run", log = dir / kEventsFile;
    std::uint64_t clock = 500;
    RunRecorder::Mark mark;
    {
      Result<RunRecorder> run = RunRecorder::create(dir, [&] { return clock += 10; });
      REQUIRE(run.ok());
      REQUIRE(run->write_manifest(Json{{"a", 1}}).ok());
      REQUIRE(run->event("one", Actor::kHarness, Json::object()).ok());
      REQUIRE(run->flush().ok());
      mark = run->mark();
      REQUIRE(run->event("two", Actor::kAgent, Json::object()).ok());
    }
    // Killed while it wrote its report.
    REQUIRE(write_file(dir / ".proctor-0.new", "{").ok());
    REQUIRE(write_file(dir / kReportFile, "{}").ok());
    const std::string whole = read_file(log, 1 << 20).value();
    SUBCASE("all of it, without what was half written") {
      REQUIRE(write_file(log, whole + "{\"actor\":\"ag").ok());
      Result<RunRecorder> run =
          RunRecorder::reopen(dir, mark, RunRecorder::Keep::kAll, [&] { return clock += 10; });
      REQUIRE(run.ok());
      CHECK(run->event("three", Actor::kHarness, Json::object()).value() == 3);
      REQUIRE(run->finish(RunReport{}).ok());
      const std::vector<TraceEvent> events = read_events(dir);
      REQUIRE(events.size() == 4);
      CHECK(events[2].type == "two");
      CHECK(events[3].t == clock - 510);  // since the first event, in whichever process
    }
    SUBCASE("what the mark counts") {
      Result<RunRecorder> run = RunRecorder::reopen(dir, mark, RunRecorder::Keep::kMarked);
      REQUIRE(run.ok());
      CHECK(run->event("three", Actor::kHarness, Json::object()).value() == 2);
      REQUIRE(run->finish(RunReport{}).ok());
      CHECK(read_events(dir).at(2).type == "three");
      CHECK_FALSE(fs::exists(dir / ".proctor-0.new"));
    }
    SUBCASE("fewer than the mark counts: refused") {
      REQUIRE(write_file(log, whole.substr(0, whole.find('\n') + 1)).ok());
      const auto run = RunRecorder::reopen(dir, mark, RunRecorder::Keep::kAll);
      REQUIRE_FALSE(run.ok());
      CHECK(run.error().code == Errc::kCorrupt);
    }
  }

  TEST_CASE("a link among the evidence stops the report") {
    const TempDir t = temp();
    Result<RunRecorder> run = RunRecorder::create(t.path() / "run");
    REQUIRE(run.ok());
    const Result<fs::path> folder = run->check_dir("unit");
    REQUIRE(folder.ok());
    fs::create_symlink("/etc/hostname", *folder / "stdout");
    CHECK_FALSE(run->finish(RunReport{}).ok());
    CHECK_FALSE(fs::exists(run->dir() / "report.json"));
  }

  TEST_CASE("check ids become folder names that cannot meet or leave") {
    CHECK(check_dir_name("unit") == "unit");
    CHECK(check_dir_name("../x") == "%2E.%2Fx");
    CHECK(check_dir_name(".") == "%2E");
    CHECK(check_dir_name("") == "%");
    CHECK(check_dir_name("a b") == "a%20b");
    CHECK(check_dir_name("a%20b") == "a%2520b");
    const std::string a = check_dir_name(std::string(300, 'a') + "1");
    const std::string b = check_dir_name(std::string(300, 'a') + "2");
    CHECK(a != b);
    CHECK(a.size() < 200);
  }
}
