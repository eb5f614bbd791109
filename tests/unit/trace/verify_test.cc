#include "common/trace/verify.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "common/trace/evidence.h"
#include "common/trace/run_report.h"
#include "sample_run.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

struct Sample {
  TempDir temp;
  fs::path dir;
  Digest digest;

  Sample() : temp(TempDir::create("verify").value()), dir(temp.path() / "run") {
    digest = write_sample_run(dir);
  }
  std::string read(const std::string& file) const { return *read_file(dir / file, 1 << 20); }
  void write(const std::string& file, std::string_view bytes) const {
    REQUIRE(write_file(dir / file, bytes, Durability::kLazy).ok());
  }
  std::vector<std::string> problems(bool with_digest = true) const {
    const VerifyResult r = verify_run(dir, with_digest ? std::optional(digest) : std::nullopt);
    std::vector<std::string> out;
    for (const VerifyProblem& p : r.problems) out.push_back(to_string(p));
    return out;
  }
  // Writes a report that was changed by somebody who keeps everything else consistent.
  void forge(const std::function<void(RunReport&)>& change) {
    RunReport r = *parse_report(read("report.json"));
    change(r);
    write("report.json", report_bytes(r));
  }
};

bool mentions(const std::vector<std::string>& problems, std::string_view text) {
  return std::ranges::any_of(
      problems, [text](const std::string& p) { return p.find(text) != std::string::npos; });
}

}  // namespace

TEST_SUITE("trace") {
  TEST_CASE("an untouched run directory has no problem") {
    const Sample s;
    CHECK(s.problems() == std::vector<std::string>{});
    CHECK(s.problems(false) == std::vector<std::string>{});
    const VerifyResult r = verify_run(s.dir, s.digest);
    CHECK(r.files == 10);
    CHECK(r.events == 5);
  }

  TEST_CASE("an empty folder of a phase that never began is no problem and any other is") {
    const Sample s;
    REQUIRE(make_dirs(s.dir / "agent").ok());
    CHECK(s.problems() == std::vector<std::string>{});
    REQUIRE(make_dirs(s.dir / "other").ok());
    CHECK(mentions(s.problems(), "a folder that the report does not know"));
    fs::remove(s.dir / "other");
    for (const char* planted : {"acceptance/build/deep", "acceptance/none", "acceptance-more"}) {
      REQUIRE(make_dirs(s.dir / planted).ok());
      CHECK(mentions(s.problems(), std::string(planted) + ": a folder that the report"));
      fs::remove(s.dir / planted);
    }
    CHECK(s.problems().empty());
  }

  TEST_CASE("a report says the configuration class of its manifest, or none") {
    Sample s;
    CHECK(manifest_of(s.dir).value().task == "fix-parser");
    s.forge([&](RunReport& r) { r.configuration = configuration_word(*manifest_of(s.dir)); });
    CHECK(s.problems(false).empty());
    CHECK(manifest_of(s.dir / "agent").error().code == Errc::kNotFound);
  }

  TEST_CASE("a changed byte is found in every file") {
    const Sample s;
    std::size_t changed = 0;
    const std::vector<TreeEntry> entries = list_tree(s.dir).value();
    for (const TreeEntry& entry : entries) {
      if (entry.folder) continue;
      const std::string whole = s.read(entry.path);
      // Of the long files every 31st byte, for the time it takes; event_test and run_report_test
      // go through every byte of a chain and of a report.
      const std::size_t step = whole.size() < 300 ? 1 : 31;
      for (std::size_t i = 0; i < whole.size(); i += step) {
        std::string broken = whole;
        broken[i] = static_cast<char>(broken[i] ^ 1);
        s.write(entry.path, broken);
        CAPTURE(entry.path);
        CAPTURE(i);
        CHECK_FALSE(verify_run(s.dir, s.digest).ok());
        ++changed;
      }
      s.write(entry.path, whole + "\n");
      CHECK_FALSE(verify_run(s.dir, s.digest).ok());
      s.write(entry.path, whole);
    }
    CHECK(250 < changed);
    CHECK(s.problems().empty());
  }

  TEST_CASE("a log that was cut at any line is found and named") {
    const Sample s;
    const std::string log = s.read("events.jsonl");
    for (std::size_t n = 0; n < log.size(); ++n) {
      if (n != 0 && log[n - 1] != '\n') continue;
      s.write("events.jsonl", log.substr(0, n));
      CHECK(mentions(s.problems(), "whole events where 5 were recorded"));
    }
    s.write("events.jsonl", log.substr(0, log.size() - 1));
    CHECK(mentions(s.problems(), "events.jsonl:5: the last line has no end"));
  }

  TEST_CASE("the first broken line of the chain is named") {
    const Sample s;
    std::string log = s.read("events.jsonl");
    const std::size_t at = log.find("agent.start");
    log.replace(at, 11, "agent.stork");
    s.write("events.jsonl", log);
    CHECK(mentions(s.problems(), "events.jsonl:2: hash is not that of the event"));
  }

  TEST_CASE("added and removed files are found") {
    const Sample s;
    s.write("acceptance/build/core", "x");
    CHECK(mentions(s.problems(), "acceptance/build/core: a file that the report does not know"));
    fs::remove(s.dir / "acceptance/build/core");
    fs::create_directory(s.dir / "extra");
    CHECK(mentions(s.problems(), "extra: a folder that the report does not know"));
    fs::remove(s.dir / "extra");
    CHECK(s.problems().empty());
    fs::create_symlink("report.json", s.dir / "link");
    CHECK(mentions(s.problems(), "neither a regular file nor a folder"));
    fs::remove(s.dir / "link");
    fs::remove(s.dir / "acceptance/build/stderr");
    CHECK(mentions(s.problems(), "acceptance/build/stderr: missing"));
    fs::remove(s.dir / "report.json");
    CHECK(mentions(s.problems(), "report.json"));
  }

  TEST_CASE("a report that contradicts its evidence is found without its digest") {
    struct Row {
      std::function<void(RunReport&)> change;
      const char* expected;
    };
    const std::vector<Row> rows{
        {[](RunReport& r) { r.task = "other"; }, "manifest.json: identity: task"},
        {[](RunReport& r) { r.attempt.no = AttemptNo(9); }, "identity: attempt"},
        {[](RunReport& r) { r.tree = "f00"; }, "identity: tree"},
        {[](RunReport& r) { r.contract = {}; }, "identity: contract"},
        {[](RunReport& r) { r.cost_model = {}; }, "identity: cost_model"},
        {[](RunReport& r) { r.configuration = "0123456789abcdef"; },
         "configuration: not the class of manifest.json"},
        {[](RunReport& r) { r.outcome = RunOutcome::kFailure; },
         "outcome: failure where the checks make it success"},
        {[](RunReport& r) { r.checks[0].outcome.reset(); },
         "outcome: success where the checks make it invalid"},
        {[](RunReport& r) { r.checks[0].outcome = CheckOutcome::kFail; }, "checks make it failure"},
        {[](RunReport& r) { r.checks.clear(); }, "checks make it invalid"},
        {[](RunReport& r) { r.checks[1].result_digest.reset(); },
         "the report of the check says that there is none"},
        {[](RunReport& r) { r.checks[0].stdout_digest = sha256("x"); },
         "digest is not the digest of stdout of the report"},
        {[](RunReport& r) { r.checks[1].id = "build"; }, "two have the id build"},
        {[](RunReport& r) { r.manifest = sha256("x"); }, "manifest"},
        {[](RunReport& r) { r.manifest = {}; }, "a run without a manifest is invalid"},
        {[](RunReport& r) { r.patch = {}; }, "patch.diff: the report says that there is none"},
        {[](RunReport& r) { r.patch = sha256("x"); }, "patch.diff: digest is not"},
        {[](RunReport& r) { r.head = {}; }, "the head of the chain"},
        {[](RunReport& r) { r.events = 2; }, "5 whole events where 2 were recorded"},
        {[](RunReport& r) { r.evidence_seq = 5; }, "points behind the last event"},
        {[](RunReport& r) { r.files.pop_back(); }, "a file that the report does not know"},
        {[](RunReport& r) { r.files[0].path = "../../etc/passwd"; }, "cannot be listed"},
        {[](RunReport& r) { r.files.push_back(r.files[0]); }, "cannot be listed"},
    };
    for (std::size_t i = 0; i < rows.size(); ++i) {
      CAPTURE(i);
      Sample s;
      s.forge(rows[i].change);
      const std::vector<std::string> problems = s.problems(false);
      CAPTURE(problems.size());
      CHECK(mentions(problems, rows[i].expected));
    }
  }

  TEST_CASE("times that cannot be an attempt's are a problem") {
    const std::pair<std::int64_t, std::int64_t> rows[] = {
        {0, 253'402'300'799'000}, {-5, 10}, {1'770'000'003'000, 1'770'000'000'000}};
    for (const auto& row : rows) {
      const std::int64_t started = row.first, finished = row.second;
      CAPTURE(started);
      Sample s;
      s.forge([&](RunReport& r) {
        r.started_ms = started;
        r.finished_ms = finished;
      });
      CHECK(mentions(s.problems(false), "ed_ms: "));
    }
    constexpr std::int64_t kNow = 1'770'000'000'000, kDay = 86'400'000;
    const WallTime at(kNow);
    CHECK(wrong_times(kNow, kNow, at, at).empty());
    CHECK(wrong_times(kNow - kDay, kNow + kDay, at, at).empty());
    CHECK_FALSE(wrong_times(kNow - kDay - 1, kNow, at, at).empty());
    CHECK_FALSE(wrong_times(kNow, kNow + kDay + 1, at, at).empty());
    CHECK(wrong_times(1, kNow + kDay + 1).empty());  // nobody knows the bounds
    // The coordinator's clock was set back by years while it ran: the journal itself says so.
    const WallTime before(kNow - 3'000 * kDay);
    CHECK(wrong_times(kNow, kNow, at, before).empty());
    CHECK(wrong_times(before.raw(), kNow, at, before).empty());
    CHECK_FALSE(wrong_times(kNow, kNow + kDay + 1, at, before).empty());
    CHECK_FALSE(wrong_times(before.raw() - kDay - 1, kNow, at, before).empty());
  }

  TEST_CASE("each check's event is held against the report") {
    struct Row {
      std::function<std::vector<Json>(std::vector<Json>)> events;  // what the forger tells
      const char* expected;
    };
    const auto with = [](std::size_t at, const char* key, const Json& value) {
      return [=](std::vector<Json> told) {
        told[at][key] = value;
        return told;
      };
    };
    const std::vector<Row> rows{
        {[](const auto&) { return std::vector<Json>{}; }, "no acceptance event of check build"},
        {[](auto told) { return std::vector<Json>{told[0]}; },
         "no acceptance event of check unit/tests (R058)"},
        {[](auto told) {
           return std::vector<Json>{told[0], told[1], told[1]};
         },
         "a second acceptance event of check unit/tests"},
        {with(0, "outcome", "fail"), "of check build has another outcome than the report"},
        {with(1, "exit_code", 1), "of check unit/tests has another exit_code"},
        {with(0, "stdout", sha256("x").hex()), "of check build has another stdout"},
        {with(0, "id", "lint"), "of check lint, which the report does not know"},
        {with(0, "id", 3), "an acceptance event names no check"},
    };
    for (const Row& row : rows) {
      // All digests and the chain are made again: only the words differ.
      const TempDir t = TempDir::create("verify").value();
      const RunReport report = sample_report();
      std::vector<Json> told;
      for (const CheckReport& check : report.checks) told.push_back(to_json(check));
      RunRecorder run = RunRecorder::create(t.path() / "run").value();
      REQUIRE(run.write_manifest(sample_manifest()).ok());
      for (const Json& payload : row.events(told))
        REQUIRE(run.event("acceptance", Actor::kHarness, payload).ok());
      for (int i = 0; i < 3; ++i) REQUIRE(run.event("tick", Actor::kMonitor, Json::object()).ok());
      for (const CheckReport& check : report.checks) {
        const fs::path folder = run.check_dir(check.id).value();
        REQUIRE(write_file(folder / "stdout", "ok\n", Durability::kLazy).ok());
      }
      const Digest digest = run.finish(report).value();
      std::vector<std::string> problems;
      for (const VerifyProblem& p : verify_run(t.path() / "run", digest).problems)
        problems.push_back(to_string(p));
      CAPTURE(row.expected);
      CHECK(mentions(problems, row.expected));
    }
  }

  TEST_CASE("checks that pass on the untouched tree are no success of a patch that was refused") {
    Sample s;
    s.forge([](RunReport& r) {
      r.outcome = RunOutcome::kFailure;
      r.gates[0] = {"patch", "fail", "unreadable: line 3"};
    });
    CHECK(s.problems(false) == std::vector<std::string>{});
    s.forge([](RunReport& r) { r.outcome = RunOutcome::kSuccess; });
    CHECK(mentions(s.problems(false), "outcome: success where the checks make it failure"));
    // Said to have markers and refused at once: the checks saw the untouched tree.
    s.forge([](RunReport& r) { r.application = {"", "line 3", {"a.py:1"}}; });
    CHECK(mentions(s.problems(false), "outcome: success where the checks make it failure"));
    // Beside markers alone they saw the tree with them.
    s.forge([](RunReport& r) {
      r.application = {"exact", "", {"a.py:1"}};
      r.gates[0].why = "conflict markers: a.py:1";
    });
    CHECK(s.problems(false) == std::vector<std::string>{});
  }

  TEST_CASE(
      "checks that a failed setup kept from running decide nothing and nothing else does so") {
    struct Row {
      const char* id;
      CheckOutcome outcome;
      const char* ended;
      RunOutcome expected;
    };
    for (const Row& row :
         {Row{"setup", CheckOutcome::kFail, "exited", RunOutcome::kFailure},
          Row{"setup", CheckOutcome::kError, "timed_out", RunOutcome::kAcceptanceError},
          Row{"setup", CheckOutcome::kPass, "exited", RunOutcome::kInvalid},
          Row{"setup", CheckOutcome::kFail, "not_run", RunOutcome::kInvalid},
          Row{"build", CheckOutcome::kFail, "exited", RunOutcome::kInvalid}}) {
      RunReport r = sample_report();
      REQUIRE(2 <= r.checks.size());
      for (CheckReport& check : r.checks) {
        check.outcome.reset();
        check.ended = "not_run";
      }
      r.checks[0].id = row.id;
      r.checks[0].outcome = row.outcome;
      r.checks[0].ended = row.ended;
      CHECK(decide(true, deciding_outcomes(r.checks)) == row.expected);
      r.checks[1].ended = "exited";  // it ran, and its outcome is missing
      CHECK(decide(true, deciding_outcomes(r.checks)) == RunOutcome::kInvalid);
    }
  }

  TEST_CASE("a check that failed services kept from running decides nothing, and any other does") {
    RunReport r = sample_report();
    REQUIRE(2 <= r.checks.size());
    for (CheckReport& check : r.checks) {
      check.outcome = CheckOutcome::kPass;
      check.ended = "exited";
    }
    r.checks[0].outcome.reset();
    r.checks[0].ended = "not_run";
    CHECK(decide(true, deciding_outcomes(r.checks)) == RunOutcome::kInvalid);
    CheckReport services = r.checks[1];
    services.id = services_check(r.checks[0].id);
    services.outcome = CheckOutcome::kFail;
    r.checks.push_back(services);
    CHECK(decide(true, deciding_outcomes(r.checks)) == RunOutcome::kFailure);
    r.checks.back().outcome = CheckOutcome::kPass;  // then nothing kept it from running
    CHECK(decide(true, deciding_outcomes(r.checks)) == RunOutcome::kInvalid);
    r.checks.back().outcome = CheckOutcome::kFail;
    r.checks.back().id = services_check(r.checks[1].id);  // another's
    CHECK(decide(true, deciding_outcomes(r.checks)) == RunOutcome::kInvalid);
  }

  TEST_CASE("a check that rates a patch decides no outcome") {
    RunReport r = sample_report();
    CheckReport rates = r.checks[0];
    rates.id = "short";
    rates.gate = "maint";
    for (const std::optional<CheckOutcome> outcome :
         {std::optional(CheckOutcome::kFail), std::optional(CheckOutcome::kError),
          std::optional<CheckOutcome>()}) {
      rates.outcome = outcome;
      r.checks.resize(2);
      r.checks.push_back(rates);
      CHECK(decide(true, deciding_outcomes(r.checks)) == RunOutcome::kSuccess);
    }
    r.checks[1].outcome = CheckOutcome::kFail;
    CHECK(decide(true, deciding_outcomes(r.checks)) == RunOutcome::kFailure);
  }

  TEST_CASE("the cost is computed again when the prices are known") {
    Sample s;
    const RunReport r = *parse_report(s.read("report.json"));
    CHECK(verify_run(s.dir, s.digest, [&](const Usage& u) {
            CHECK(u == r.usage);
            return r.cost;
          }).ok());
    CHECK_FALSE(verify_run(s.dir, s.digest, [](const Usage&) { return Cost{}; }).ok());
  }

  TEST_CASE("a manifest that misses a field makes a scored run a problem") {
    const TempDir t = TempDir::create("verify").value();
    ManifestInputs m = sample_inputs();
    m.tree_observed = "f00";
    RunReport r = sample_report();
    r.tree = "f00";
    r.evidence_seq = 0;
    for (const RunOutcome outcome : {RunOutcome::kSuccess, RunOutcome::kInvalid}) {
      const fs::path dir = t.path() / std::string(to_string(outcome));
      RunRecorder run = RunRecorder::create(dir).value();
      REQUIRE(run.write_manifest(make_manifest(m)).ok());
      r.outcome = outcome;
      r.checks.resize(1);
      REQUIRE(run.event("acceptance", Actor::kHarness, to_json(r.checks[0])).ok());
      const Result<Digest> digest = run.finish(r);
      REQUIRE(digest.ok());
      const VerifyResult v = verify_run(dir, *digest);
      CHECK(v.ok() == (outcome == RunOutcome::kInvalid));
      if (!v.ok())
        CHECK(v.problems[0].what.find("differs from the expected tree") != std::string::npos);
    }
  }

  TEST_CASE("a run that never came to its manifest verifies as invalid only") {
    const TempDir t = TempDir::create("verify").value();
    RunRecorder run = RunRecorder::create(t.path() / "run").value();
    REQUIRE(run.event("prepare.failed", Actor::kHarness, {{"why", "no mirror"}}).ok());
    RunReport r = sample_report();
    r.outcome = RunOutcome::kInvalid;
    r.termination = Termination::kInfrastructure;
    r.evidence_seq = 0;
    r.checks.clear();
    const Result<Digest> digest = run.finish(r);
    REQUIRE(digest.ok());
    const VerifyResult v = verify_run(t.path() / "run", *digest);
    for (const VerifyProblem& p : v.problems) MESSAGE(to_string(p));
    CHECK(v.ok());
  }
}
