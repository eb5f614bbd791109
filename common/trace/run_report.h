#pragma once
// The report of one attempt, and the times that it may have.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/digest.h"
#include "common/base/fields.h"
#include "common/base/ids.h"
#include "common/base/json.h"
#include "common/base/limits.h"
#include "common/base/result.h"
#include "common/contract/cost_model.h"
#include "common/score/graded_score.h"
#include "common/score/outcome.h"
#include "common/score/taxonomy.h"

namespace proctor {
// Which times an attempt may say of itself: one rule for what arrives and for `proctor verify`.
// Pure; any thread.

// Clocks of workers and coordinators differ, and are put right now and then.
inline constexpr std::int64_t kClockSlackMs = 24LL * 3'600'000;

// Why these are not the times of an attempt; empty: they may be.  A time of 0 is not known.  Where
// its result came before it was granted, the coordinator's clock was set back in between, and
// either time may be of before or after that.
std::string wrong_times(std::int64_t started_ms, std::int64_t finished_ms,
                        WallTime granted = WallTime(0), WallTime received = WallTime(0));

// report.json: what one attempt ended as, bound to its evidence (R053, R054, R111, R116, R191).
// Data and its one spelling: canonical JSON (RFC 8785) and a final '\n', so that the digest of a
// report is what `sha256sum report.json` prints.  Pure; every field is described in
// docs/run-directory.md and schemas/report.schema.json.

// Bounds of each list of texts, and of texts with what printable() adds where it cuts them.
inline constexpr std::size_t kReportItems = 10'000;
inline constexpr std::size_t kReportTextBytes = limits::kDetailBytes + 18;
inline constexpr std::size_t kReportCommandBytes = (std::size_t{64} << 10) + 18;

struct CheckReport {
  std::string id{};
  std::string kind{}, gate{};
  std::optional<CheckOutcome> outcome{};  // nothing: it never ran
  int exit_code = 0;
  std::uint64_t wall_ms = 0;
  std::string why{};  // one line: the failing test, the limit that was hit
  // how it was run and read
  std::string command{};
  std::uint64_t timeout_ms = 0;
  std::string reader{};  // exit_code, junit, tap
  std::string ended{};   // exited, signalled, timed_out, memory, disk, cpu, cancelled, not_run
  std::uint64_t passed = 0, failed = 0, skipped = 0;  // tests in the result file
  std::uint64_t absent = 0;                           // required tests that did not run
  std::vector<std::string> failing{};                 // required or failing ids, bounded
  // Digests of acceptance/<id>/stdout, stderr and results; nullopt where there is no such file.
  // RunRecorder::finish fills what is left empty.
  std::optional<Digest> stdout_digest{}, stderr_digest{}, result_digest{};
  friend bool operator==(const CheckReport&, const CheckReport&) = default;
};
void fields(auto& v, Is<CheckReport> auto& c) {
  v("id", c.id);
  v("kind", c.kind);
  v("gate", c.gate);
  v("outcome", c.outcome);
  v("exit_code", c.exit_code);
  v("wall_ms", c.wall_ms, kAside);
  v("why", c.why);
  v("command", c.command, {.bytes = kReportCommandBytes, .aside = true});
  v("timeout_ms", c.timeout_ms, kAside);
  v("reader", c.reader, kAside);
  v("ended", c.ended);
  v.section("tests", [&](auto& tests) {
    tests("passed", c.passed, kAside);
    tests("failed", c.failed, kAside);
    tests("skipped", c.skipped, kAside);
    tests("absent", c.absent, kOptional);
  });
  v("failing", c.failing, {.items = kReportItems});
  v("stdout", c.stdout_digest, kAside);
  v("stderr", c.stderr_digest, kAside);
  v("results", c.result_digest, kAside);
}

// The name among the checks of services that did not get ready for the check they were to serve:
// where the candidate's code was among them.
std::string services_check(std::string_view check);
// The outcomes by which decide() goes.  Checks that a failed setup or failed services kept from
// running have no outcome of their own: theirs decides.  Else one that never ran is evidence that
// is missing.  A check that only rates a patch (gate maint) is not among them.
std::vector<std::optional<CheckOutcome>> deciding_outcomes(const std::vector<CheckReport>& checks);

// One of patch, build, functional, safety (R131-R140).
struct GateReport {
  std::string gate;
  std::string outcome;  // pass, fail, error, not_run
  std::string why;
  // Events of the trace that it rests on; none in reports of before 2026-12.
  std::vector<std::uint64_t> evidence{};
  friend bool operator==(const GateReport&, const GateReport&) = default;
};
void fields(auto& v, Is<GateReport> auto& g) {
  v("gate", g.gate);
  v("outcome", g.outcome);
  v("why", g.why);
  v("evidence", g.evidence, kOptional);
}

// Somebody or something acted on the run while it went on (R053, R093).
struct Intervention {
  std::uint64_t seq = 0;  // its event
  std::string action{};   // throttle, stop, request_refused, cancel, ...
  std::string cause{};    // the breaker or monitor, or the operator's reason
  friend bool operator==(const Intervention&, const Intervention&) = default;
};
void fields(auto& v, Is<Intervention> auto& i) {
  v("seq", i.seq);
  v("action", i.action);
  v("cause", i.cause);
}

// A file of the run directory, report.json apart.
struct EvidenceFile {
  std::string path;  // relative, '/'-separated
  std::uint64_t bytes = 0;
  Digest digest;
  friend bool operator==(const EvidenceFile&, const EvidenceFile&) = default;
};
void fields(auto& v, Is<EvidenceFile> auto& f) {
  v("path", f.path);
  v("bytes", f.bytes);
  v("digest", f.digest);
}

// How the candidate patch fitted.
void fields(auto& v, Is<PatchEnd> auto& p) {
  v("rung", p.rung);
  v("refused", p.refused);
  v("conflict_markers", p.conflicts, {.items = kReportItems});
}

// The use of an attempt as the files of its worker hold it: what was metered is one level deeper.
template <class U>
struct MeteredForm {
  U& usage;
  bool empty() const { return metered_said(usage) == 0; }
};
template <class U>
void fields(auto& v, const MeteredForm<U>& metered) {
  std::size_t said = metered_said(metered.usage);
  if constexpr (requires { v.has(""); })
    for (std::size_t size = said + 1; size <= kMeteredCounters.size(); ++size)
      if (is_metered_size(size) && v.has(kMeteredCounters[size - 1].name)) said = size;
  for (std::size_t i = kUnmetered; i < kUnmetered + said; ++i)
    v(kUsageCounters[i].name, metered.usage.*kUsageCounters[i].member);
}
template <class U>
struct UsageForm {
  U& usage;
};
template <class U>
UsageForm(U&) -> UsageForm<U>;
template <class U>
void fields(auto& v, const UsageForm<U>& form) {
  U& u = form.usage;
  for (std::size_t i = 0; i < kUnmetered; ++i)
    v(kUsageCounters[i].name, u.*kUsageCounters[i].member);
  // A report of before there were meters has none.
  v("metered", MeteredForm<U>{u}, kOptional);
}

void fields(auto& v, Is<Cost> auto& c) {
  v("model_micros", c.model);
  v("execution_micros", c.execution);
  v("human_micros", c.human);
  v("overhead_micros", c.overhead);
  v.follows("total_micros", c.total());
}

// The members that say of a report and of a manifest which attempt it is of.
void identity_fields(auto& v, auto& of) {
  v("campaign", of.campaign);
  v("run_name", of.run_name);
  v("run", of.attempt.run);
  v("attempt", of.attempt.no);
  v("task", of.task);
  v("method", of.method);
  v("replicate", of.replicate);
  v("contract", of.contract);
  v("method_digest", of.method_digest);
}

struct RunReport {
  // identity
  std::string campaign;  // its id
  std::string run_name;  // task/method/rN
  AttemptId attempt;
  std::string task, method;
  std::uint32_t replicate = 0;
  Digest contract, method_digest;
  std::string commit, tree;
  // ending
  RunOutcome outcome = RunOutcome::kInvalid;
  Termination termination = Termination::kCompleted;
  std::string rationale;
  std::uint64_t evidence_seq = 0;  // event that triggered the termination
  // Members of what `rationale` says for people.  Reports of before 2026-12 have none.
  std::optional<AttemptFacts> facts{};
  std::vector<CheckReport> checks;
  std::vector<GateReport> gates;
  PatchEnd application{};  // how the candidate patch fitted; empty: there was none to apply
  std::vector<std::string> violations;  // protected paths changed, files refused
  // Where all gates pass and the contract has a rubric (R141).
  std::optional<GradedScore> score{};
  std::vector<Tag> tags{};  // failure modes, with evidence (R148)
  std::vector<Intervention> interventions{};
  std::vector<std::string> deviations;  // from the protocol: another seed (R072)
  std::uint64_t failed_cycles = 0;      // failed acceptance cycles of the agent (R159, R191)
  bool replayable = true;               // false: a phase had the network (R075)
  // what it cost
  Usage usage;
  Cost cost;
  Digest cost_model;
  std::string cost_model_version;  // "file" or the fallback's id (R116)
  std::string configuration{};  // 16 hex digits of its class (manifest.h); empty: an older worker
  // evidence
  Digest manifest, patch;
  std::uint64_t events = 0;                      // length of the chain: a cut tail shows
  Digest head;                                   // of the chain
  std::vector<EvidenceFile> files;               // sorted by path; every file but report.json
  std::int64_t started_ms = 0, finished_ms = 0;  // wall time, for people
  friend bool operator==(const RunReport&, const RunReport&) = default;
};
void fields(auto& v, Is<RunReport> auto& r) {
  v.follows("format", "proctor-report-1");
  v.section("identity", [&](auto& identity) {
    identity_fields(identity, r);
    identity("commit", r.commit);
    identity("tree", r.tree);
  });
  v("outcome", r.outcome);
  v.follows("status", r.outcome == RunOutcome::kInvalid ? "invalid" : "scorable");
  v.section("termination", [&](auto& ending) {
    ending("code", r.termination);
    ending("evidence_seq", r.evidence_seq);
    ending("rationale", r.rationale);
  });
  v("facts", r.facts, kOptional);
  v("checks", r.checks);
  v("gates", r.gates);
  v("patch", r.application, kOptional);  // a report of before there were rungs has none
  v("violations", r.violations, {.items = kReportItems});
  v("score", r.score, kOptional);
  v("tags", r.tags, {.items = kReportItems, .optional = true});
  v("interventions", r.interventions, {.items = kReportItems, .optional = true});
  v("deviations", r.deviations, {.items = kReportItems});
  v("failed_cycles", r.failed_cycles);
  v("replayable", r.replayable);
  v("usage", UsageForm{r.usage});
  v("cost", r.cost);
  v.section("cost_model", [&](auto& prices) {
    prices("digest", r.cost_model);
    prices("version", r.cost_model_version);
  });
  v("configuration", r.configuration, kOptional);
  v.section("evidence", [&](auto& evidence) {
    evidence("manifest", r.manifest);
    evidence("patch", r.patch);
    evidence("events", r.events);
    evidence("head", r.head);
    evidence("files", r.files);
  });
  v("started_ms", r.started_ms);
  v("finished_ms", r.finished_ms);
}

inline constexpr std::size_t kReportBytes = std::size_t{32} << 20;

// The bytes of report.json.  Never fails: text that is not UTF-8 or too long is made printable and
// cut, numbers beyond 2^53 - 1 are written as that.
std::string report_bytes(const RunReport& report);
// Strict: exactly the bytes report_bytes would write.  kInvalid names the field.
Result<RunReport> parse_report(std::string_view bytes);

// As in the report.
Json to_json(const CheckReport& check);
}  // namespace proctor
