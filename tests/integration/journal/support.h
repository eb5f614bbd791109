#pragma once
// Facts and folders for the journal's tests.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "common/base/files.h"
#include "coordinator/journal/journal.h"
#include "coordinator/journal/journal_reader.h"

namespace proctor::test {

template <class T>
T must(Result<T> result) {
  if (!result.ok()) FAIL(result.error().detail);
  return std::move(result).value();
}
template <class T>
Error error_of(const Result<T>& result) {
  REQUIRE_FALSE(result.ok());
  return result.error();
}

inline MicroUsd micro(std::int64_t n) {
  return MicroUsd::from_micros(n);
}
inline AttemptId attempt(std::uint32_t run, std::uint32_t no = 1) {
  return {RunId(run), AttemptNo(no)};
}
inline WallTime at(std::int64_t ms) {
  return WallTime(1'790'000'000'000 + ms);
}

inline AttemptResult result_of(AttemptId id, RunOutcome outcome = RunOutcome::kSuccess) {
  AttemptResult r;
  r.attempt = id;
  r.outcome = outcome;
  r.rationale = "all checks passed";
  r.report = sha256("report " + to_string(id));
  r.archive = sha256("archive " + to_string(id));
  r.archive_bytes = 123'456;
  r.usage = {1'000, 60'000, 5'000, 42'000, 17, 120'000, 8'000, 31, 123'456};
  r.usage.priced_micros = 987'654;
  r.usage.overruns = 1;
  r.facts.agent_exit = 0;
  r.facts.patch = "whitespace";
  r.facts.violations = 1;
  r.facts.violated = "refused: dev/fifo";
  r.facts.cap = "tokens";
  r.facts.not_judged = true;
  r.started_ms = at(0).raw();
  r.finished_ms = at(66'000).raw();
  r.sets_outcome = true;
  r.at = at(66'010);
  return r;
}

// The whole life of one run that succeeds.
inline std::vector<JournalWrite> life_of(std::uint32_t run) {
  const AttemptId id = attempt(run);
  return {AttemptIntent{id, 0, micro(5'000'000), at(1)},
          AttemptGranted{id, WorkerId("worker-" + std::to_string(run % 4)), BootId(7), at(2)},
          result_of(id),
          AttemptSettled{id,
                         micro(1'234'567),
                         {micro(1'000'000), micro(200'000), micro(0), micro(34'567)},
                         micro(0),
                         at(66'020)}};
}

inline std::vector<JournalWrite> two_scopes() {
  return {ScopeDefined{ScopeId(0), "global", micro(100'000'000)},
          ScopeDefined{ScopeId(1), "task:a", micro(7'000'000)}};
}

struct Folder {
  TempDir dir = must(TempDir::create("journal"));
  fs::path file = dir.path() / "journal.db";
  std::unique_ptr<Journal> open() const { return must(Journal::open(file)); }
};

}  // namespace proctor::test
