// What a coordinator keeps of the run directories that workers send: only what says what its result
// says, and nothing in the place of what is there.
#include "coordinator/shell/worker_files.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <functional>

#include "common/base/limits.h"
#include "common/trace/archive.h"
#include "common/trace/event.h"
#include "common/trace/run_report.h"
#include "tests/unit/trace/sample_run.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

using State = ArchiveStore::Kept::State;

const WorkerId kWorker("w1"), kOther("w2");
const ArchiveStore::Identity kIdentity{"quickstart-1", "fix-parser/reference/r1"};

// One run directory as a worker has it, its archive and what its result says.
struct Sent {
  explicit Sent(const fs::path& place, const std::optional<JudgeRules>& rules = std::nullopt) {
    write_sample_run(place / "run", rules);
    if (rules) edit(place, [](RunReport& r) { r.facts.emplace().agent_exit = 3; });
    const RunReport said = pack(place);
    if (!said.facts) return;
    result.facts = *said.facts;
    add_judged(result.facts, said);
  }
  // Its report was changed by somebody who keeps everything else consistent.
  Sent(const fs::path& place, const std::function<void(RunReport&)>& change) {
    write_sample_run(place / "run");
    edit(place, change);
    pack(place);
  }
  // Its events are told by somebody else.
  Sent(const fs::path& place, const std::function<void(RunRecorder&, RunReport&)>& tell) {
    RunRecorder run = RunRecorder::create(place / "run").value();
    RunReport r = sample_report();
    tell(run, r);
    REQUIRE(run.finish(r).ok());
    pack(place);
  }
  static void edit(const fs::path& place, const std::function<void(RunReport&)>& change) {
    const fs::path file = place / "run/report.json";
    RunReport r = parse_report(read_file(file, kReportBytes).value()).value();
    change(r);
    REQUIRE(write_file(file, report_bytes(r), Durability::kLazy).ok());
  }
  RunReport pack(const fs::path& place) {
    const std::string report = read_file(place / "run/report.json", kReportBytes).value();
    const auto packed = pack_archive(place / "run", place / "archive");
    REQUIRE(packed.ok());
    bytes = read_file(place / "archive", limits::kArchiveBytes).value();
    RunReport said = parse_report(report).value();
    result.epoch = Epoch(1);
    result.attempt = said.attempt;
    result.outcome = said.outcome;
    result.termination = said.termination;
    result.usage = said.usage;
    result.started_ms = said.started_ms;
    result.finished_ms = said.finished_ms;
    result.report = sha256(report);
    result.archive = packed->digest;
    result.archive_bytes = packed->bytes;
    return said;
  }
  wire::ArchiveChunk chunk(std::uint64_t offset = 0, std::uint64_t size = ~std::uint64_t{0}) const {
    return {Epoch(1), result.attempt, result.archive,
            offset,   bytes.size(),   bytes.substr(offset, size)};
  }
  std::string bytes;
  wire::ResultMessage result;
};

struct Desk {
  Sent sent(const std::optional<JudgeRules>& rules = std::nullopt) const {
    const fs::path place = dir.path() / "sender";
    REQUIRE(make_dirs(place).ok());
    return Sent(place, rules);
  }
  Sent forged(const std::function<void(RunReport&)>& change) const {
    const fs::path place = dir.path() / "sender";
    REQUIRE(make_dirs(place).ok());
    return {place, change};
  }
  fs::path target() const { return folder.attempt(kIdentity.run_name, AttemptNo(2)); }
  // What is kept in its place, and what lies in part.
  bool kept() const { return fs::exists(target()) || fs::exists(target().string() + ".tar.zst"); }
  std::size_t in_part() const {
    if (!fs::exists(folder.incoming())) return 0;
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder.incoming()), fs::directory_iterator()));
  }

  TempDir dir = TempDir::create("archives").value();
  StateFolder folder{dir.path() / "campaign"};
  ArchiveStore store{folder};
};

}  // namespace

TEST_SUITE("archives") {
  TEST_CASE("a run directory that says what its result says is kept, once it is whole") {
    Desk at;
    const Sent sent = at.sent();
    CHECK(at.store.finish(kWorker, sent.result, kIdentity).state == State::kMissing);
    const std::uint64_t half = sent.bytes.size() / 2;
    CHECK(at.store.put(kWorker, sent.chunk(0, half)).value() == half);
    CHECK(at.store.finish(kWorker, sent.result, kIdentity).state == State::kMissing);
    // A piece from elsewhere is told where to go on.
    CHECK(at.store.put(kWorker, sent.chunk(half + 1)).value() == half);
    CHECK(at.store.put(kWorker, sent.chunk(half)).value() == sent.bytes.size());
    CHECK_FALSE(at.kept());
    const auto kept = at.store.finish(kWorker, sent.result, kIdentity);
    CHECK_MESSAGE(kept.state == State::kWhole, kept.why);
    CHECK(fs::exists(at.target() / "report.json"));
    CHECK(at.in_part() == 0);
    // Said again, with nothing sent again.
    CHECK(at.store.finish(kWorker, sent.result, kIdentity).state == State::kWhole);
  }

  TEST_CASE("evidence that says something else than its result is refused and nothing is kept") {
    struct Row {
      const char* what;
      std::function<void(wire::ResultMessage&, ArchiveStore::Identity&)> lie;
    };
    const Row rows[] = {
        {"another report", [](auto& r, auto&) { r.report = sha256("other"); }},
        {"another campaign", [](auto&, auto& i) { i.campaign = "other"; }},
        {"another run", [](auto&, auto& i) { i.run_name = "fix-parser/noop/r1"; }},
        {"another attempt", [](auto& r, auto&) { r.attempt.no = AttemptNo(3); }},
        {"another outcome", [](auto& r, auto&) { r.outcome = RunOutcome::kFailure; }},
        {"another termination", [](auto& r, auto&) { r.termination = Termination::kAgentTimeout; }},
        {"another usage", [](auto& r, auto&) { r.usage.cpu_ms += 1; }},
        {"another beginning", [](auto& r, auto&) { r.started_ms += 1; }},
        {"another end", [](auto& r, auto&) { r.finished_ms += 1; }},
        {"before it was granted",
         [](auto& r, auto& i) { i.granted = WallTime(r.started_ms + 25 * 3'600'000); }},
        {"after it came",
         [](auto& r, auto& i) { i.now = WallTime(r.finished_ms - 25 * 3'600'000); }},
        {"another price",
         [](auto&, auto& i) {
           i.price = [](const Usage&) {
             Cost cost;
             cost.model = MicroUsd::from_micros(1);
             return cost;
           };
         }},
    };
    for (const Row& row : rows) {
      CAPTURE(row.what);
      Desk at;
      Sent sent = at.sent();
      ArchiveStore::Identity identity = kIdentity;
      row.lie(sent.result, identity);
      REQUIRE(at.store.put(kWorker, sent.chunk()).ok());
      const auto kept = at.store.finish(kWorker, sent.result, identity);
      CHECK(kept.state == State::kRefused);
      CHECK_FALSE(kept.why.empty());
      CHECK_FALSE(fs::exists(at.folder.runs() / "fix-parser"));
      // That it had begun is known until the journal has the result; not a byte of it is kept.
      CHECK(at.store.in_part().size() == 1);
      CHECK(at.store.have(kWorker, sent.result.attempt) == 0);
    }
  }

  TEST_CASE("what verify would hold against evidence is held against it when it comes") {
    struct Row {
      const char* why;
      std::function<void(RunReport&)> change;
    };
    const Row rows[] = {
        {"started_ms: not a time",
         [](RunReport& r) {
           r.started_ms = 0;
           r.finished_ms = 253'402'300'799'000;
         }},
        {"finished_ms: before started_ms", [](RunReport& r) { r.finished_ms = r.started_ms - 1; }},
        {"the checks make it", [](RunReport& r) { r.outcome = RunOutcome::kFailure; }},
        {"a run without a manifest is invalid", [](RunReport& r) { r.manifest = Digest(); }},
        {"a file that the report does not know", [](RunReport& r) { r.files.pop_back(); }},
        {"report.json is of", [](RunReport& r) { r.method = "noop"; }},
        {"other facts", [](RunReport& r) { r.facts.emplace().violations = 3; }},
        {"other facts", [](RunReport& r) { r.facts.emplace().fault = Fault::kTask; }},
    };
    for (const Row& row : rows) {
      CAPTURE(row.why);
      Desk at;
      const Sent sent = at.forged(row.change);
      REQUIRE(at.store.put(kWorker, sent.chunk()).ok());
      const auto kept = at.store.finish(kWorker, sent.result, kIdentity);
      CHECK(kept.state == State::kRefused);
      CHECK_MESSAGE(kept.why.find(row.why) != std::string::npos, kept.why);
      CHECK_FALSE(at.kept());
    }
  }

  TEST_CASE(
      "evidence without the rules of its verdict is refused where it is registered with them") {
    JudgeRules rules;
    rules.checks = {{"build", Gate::kBuild}, {"unit/tests", Gate::kFunctional}};
    for (const bool has_rules : {true, false}) {
      for (const bool judged : {true, false}) {
        CAPTURE(has_rules);
        CAPTURE(judged);
        Desk at;
        const Sent sent = has_rules ? at.sent(rules) : at.sent();
        ArchiveStore::Identity identity = kIdentity;
        identity.judged = judged;
        REQUIRE(at.store.put(kWorker, sent.chunk()).ok());
        const auto kept = at.store.finish(kWorker, sent.result, identity);
        const bool right = has_rules || !judged;  // as old as a worker that may lack them
        CHECK_MESSAGE(kept.state == (right ? State::kWhole : State::kRefused), kept.why);
        CHECK(at.kept() == right);
      }
    }
    // Facts that nothing compares with the report would let gates and violations out.
    for (const bool silent : {true, false}) {
      CAPTURE(silent);
      Desk at;
      Sent sent = at.sent(rules);
      REQUIRE(!sent.result.facts.gates.empty());
      if (silent)
        sent.result.has_facts = false;
      else
        sent.result.facts.gates = "";
      ArchiveStore::Identity identity = kIdentity;
      identity.judged = true;
      REQUIRE(at.store.put(kWorker, sent.chunk()).ok());
      CHECK(at.store.finish(kWorker, sent.result, identity).state == State::kRefused);
    }
  }

  TEST_CASE("a run that never came to its manifest has no rules, whoever sends it") {
    Desk at;
    const fs::path place = at.dir.path() / "sender";
    REQUIRE(make_dirs(place).ok());
    const Sent sent(place, [](RunRecorder& run, RunReport& r) {
      REQUIRE(run.event("prepare.failed", Actor::kHarness, {{"why", "no mirror"}}).ok());
      r.outcome = RunOutcome::kInvalid;
      r.termination = Termination::kInfrastructure;
      r.evidence_seq = 0;
      r.checks.clear();
    });
    ArchiveStore::Identity identity = kIdentity;
    identity.judged = true;
    REQUIRE(at.store.put(kWorker, sent.chunk()).ok());
    const auto kept = at.store.finish(kWorker, sent.result, identity);
    CHECK_MESSAGE(kept.state == State::kWhole, kept.why);
  }

  TEST_CASE("a result's facts and those of its report differ in where a text is cut alone") {
    for (const bool has_facts : {true, false}) {
      Desk at;
      Sent sent = at.forged([](RunReport& r) {
        r.facts.emplace().agent_exit = 3;
        r.facts->violated = "protected: a";
      });
      sent.result.has_facts = has_facts;  // false: an older worker's are read out of its words
      if (has_facts) sent.result.facts.agent_exit = 3;
      REQUIRE(at.store.put(kWorker, sent.chunk()).ok());
      CHECK(at.store.finish(kWorker, sent.result, kIdentity).state == State::kWhole);
    }
  }

  TEST_CASE("whose pieces of which attempts are here is known to the next life") {
    Desk at;
    const Sent sent = at.sent();
    CHECK(at.store.in_part().empty());
    // Told of, and not a byte of it is here.
    CHECK(at.store.finish(WorkerId("told"), sent.result, kIdentity).state == State::kMissing);
    CHECK(at.store.in_part() ==
          std::vector<std::pair<WorkerId, AttemptId>>{{WorkerId("told"), sent.result.attempt}});
    fs::remove_all(at.folder.incoming());
    REQUIRE(at.store.put(kWorker, sent.chunk(0, 10)).ok());
    const WorkerId odd("w.part-2");
    REQUIRE(at.store.put(odd, sent.chunk(0, 10)).ok());
    REQUIRE(make_dirs(at.folder.incoming() / "noise").ok());
    auto found = at.store.in_part();
    std::ranges::sort(found);
    CHECK(found == std::vector<std::pair<WorkerId, AttemptId>>{{odd, sent.result.attempt},
                                                               {kWorker, sent.result.attempt}});
  }

  TEST_CASE("what is kept stays as it is, whatever is said or sent of it afterwards") {
    Desk at;
    const Sent sent = at.sent();
    REQUIRE(at.store.put(kWorker, sent.chunk()).ok());
    REQUIRE(at.store.finish(kWorker, sent.result, kIdentity).state == State::kWhole);
    const std::string report = read_file(at.target() / "report.json", kReportBytes).value();
    // The same archive with another word about it.
    wire::ResultMessage lie = sent.result;
    lie.outcome = RunOutcome::kFailure;
    CHECK(at.store.finish(kWorker, lie, kIdentity).state == State::kRefused);
    // Bytes that are no archive, and those of another run.
    const std::string noise = "noise";
    wire::ResultMessage false_one = sent.result;
    false_one.archive = sha256(noise);
    false_one.archive_bytes = noise.size();
    REQUIRE(at.store.put(kOther, {Epoch(1), sent.result.attempt, {}, 0, noise.size(), noise}).ok());
    CHECK(at.store.finish(kOther, false_one, kIdentity).state == State::kRefused);
    CHECK(read_file(at.target() / "report.json", kReportBytes).value() == report);
    CHECK(at.store.finish(kWorker, sent.result, kIdentity).state == State::kWhole);
    CHECK(at.in_part() == 1);  // of who was refused
  }

  TEST_CASE("bytes that are not those that were promised are dropped") {
    Desk at;
    Sent sent = at.sent();
    sent.bytes.back() = static_cast<char>(~sent.bytes.back());
    REQUIRE(at.store.put(kWorker, sent.chunk()).ok());
    CHECK(at.store.finish(kWorker, sent.result, kIdentity).state == State::kDamaged);
    CHECK(at.store.have(kWorker, sent.result.attempt) == 0);
    CHECK_FALSE(at.kept());
  }

  TEST_CASE("pieces of one worker never meet those of another, and none is beyond the bound") {
    Desk at;
    const Sent sent = at.sent();
    REQUIRE(at.store.put(kWorker, sent.chunk(0, 10)).ok());
    CHECK(at.store.have(kOther, sent.result.attempt) == 0);
    REQUIRE(at.store.put(kOther, {Epoch(1), sent.result.attempt, {}, 0, 4, "lies"}).ok());
    CHECK(at.store.have(kWorker, sent.result.attempt) == 10);
    CHECK(at.store.put(kWorker, sent.chunk(10)).value() == sent.bytes.size());
    CHECK(at.store.finish(kWorker, sent.result, kIdentity).state == State::kWhole);
    wire::ArchiveChunk large = sent.chunk();
    large.total = limits::kArchiveBytes + 1;
    CHECK_FALSE(at.store.put(kOther, large).ok());
    large.total = large.bytes.size() - 1;
    CHECK_FALSE(at.store.put(kOther, large).ok());
  }

  TEST_CASE("an interrupted call's leavings give way to the evidence") {
    Desk at;
    const Sent sent = at.sent();
    REQUIRE(make_dirs(at.target()).ok());
    REQUIRE(write_file(at.target() / "half", "x", Durability::kLazy).ok());
    REQUIRE(at.store.put(kWorker, sent.chunk()).ok());
    CHECK(at.store.finish(kWorker, sent.result, kIdentity).state == State::kWhole);
    CHECK_FALSE(fs::exists(at.target() / "half"));
    CHECK(fs::exists(at.target() / "report.json"));
    CHECK(at.in_part() == 0);
  }

  TEST_CASE("a pipe in the place of what came so far is refused, and nobody waits for it") {
    Desk at;
    const Sent sent = at.sent();
    const std::string part = to_string(sent.result.attempt) + "@" + kWorker.raw() + ".part";
    REQUIRE(make_dirs(at.folder.incoming()).ok());
    REQUIRE(::mkfifo((at.folder.incoming() / part).c_str(), 0600) == 0);
    CHECK(at.store.put(kWorker, sent.chunk()).error().code == Errc::kInvalid);
    CHECK(at.store.finish(kWorker, sent.result, kIdentity).state != State::kWhole);
  }
}
