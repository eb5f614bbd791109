#pragma once
// Facts of a small campaign, for journals that are damaged: some are in the file, later ones still
// in its log.
#include <vector>

#include "coordinator/core/records.h"

namespace proctor::fuzz {

inline std::vector<JournalWrite> life_of(std::uint32_t run) {
  const AttemptId id{RunId(run), AttemptNo(1)};
  const WallTime at(1'790'000'000'000 + run);
  AttemptResult result;
  result.attempt = id;
  result.outcome = RunOutcome::kSuccess;
  result.rationale = "all checks passed";
  result.report = sha256("report");
  result.usage.agent_ms = 60'000;
  result.usage.overruns = 1;
  result.sets_outcome = true;
  result.at = at;
  const MicroUsd charged = MicroUsd::from_micros(1000);
  return {AttemptIntent{id, 0, MicroUsd::from_micros(5000), at},
          AttemptGranted{id, WorkerId("w1"), BootId(7), at}, result,
          AttemptSettled{id, charged, Cost{.execution = charged}, MicroUsd::from_micros(0), at}};
}

inline std::vector<JournalWrite> first_facts() {
  std::vector<JournalWrite> out{
      MetaSet{kMetaCampaign, "c-1"}, MetaSet{kMetaRegistration, sha256("r").hex()},
      MetaSet{kMetaPlan, sha256("p").hex()},
      ScopeDefined{ScopeId(0), "global", MicroUsd::from_micros(100'000'000)},
      EpochBegun{Epoch(1), "host", 17, "0.1.0", WallTime(1'790'000'000'000)}};
  for (std::uint32_t run = 0; run < 20; ++run)
    for (JournalWrite& fact : life_of(run)) out.push_back(std::move(fact));
  return out;
}

inline std::vector<JournalWrite> later_facts() {
  const WallTime at(1'790'000'001'000);
  const AttemptId lost{RunId(21), AttemptNo(1)};
  std::vector<JournalWrite> out = life_of(20);
  out.push_back(AttemptIntent{lost, 0, MicroUsd::from_micros(5000), at});
  out.push_back(AttemptGranted{lost, WorkerId("w2"), BootId(8), at});
  out.push_back(AttemptLost{lost, "the worker is gone", at});
  out.push_back(Note{at, "worker_lost", RunId(21), AttemptNo(1), "{\"worker\":\"w2\"}"});
  out.push_back(RunParked{RunId(22), ScopeId(0), MicroUsd::from_micros(7), at});
  out.push_back(RunReviewed{1, RunId(3), 1500, MicroUsd::from_micros(9), "ada", "read it", at});
  return out;
}

}  // namespace proctor::fuzz
