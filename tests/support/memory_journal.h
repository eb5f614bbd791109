#pragma once
// MemoryJournal: the rows of coordinator/journal in memory, so that a simulated coordinator can be
// restored from any prefix of its facts.  It keeps what the SQL there keeps and judges nothing: the
// oracles of world_oracles.cc do.  A value: a copy is another journal.
#include <map>
#include <vector>

#include "coordinator/core/records.h"

namespace proctor::testing {

class MemoryJournal {
 public:
  void write(const JournalWrite& fact);
  RestoredState state() const;
  // The plan's envelopes with the caps that hold now.
  std::vector<ScopeSpec> caps(std::vector<ScopeSpec> planned) const;

 private:
  void put(const AttemptIntent& f);
  void put(const AttemptGranted& f);
  void put(const AttemptDenied& f);
  void put(const AttemptResult& f);
  void put(const AttemptSettled& f);
  void put(const AttemptVoided& f);
  void put(const AttemptLost& f);
  void put(const AttemptCancelled& f);
  void put(const RunParked& f);
  void put(const RunUnparked& f) { parked_.erase(f.run); }
  void put(const RunEnded& f);
  void put(const RunReopened& f);
  void put(const RunReviewed& f) { reviews_.push_back(f); }
  void put(const Note& f);
  void put(const EpochBegun&) {}
  void put(const MetaSet&) {}
  void put(const ScopeDefined& f) { caps_[f.scope] = f.cap; }

  std::map<AttemptId, RestoredAttempt> attempts_;
  std::map<RunId, ParkedRun> parked_;
  std::map<RunId, EndedRun> ended_;
  std::map<ScopeId, MicroUsd> caps_;
  std::vector<Note> standing_;
  std::vector<BudgetAlert> alerts_;
  std::vector<RunDominates> dominant_;
  std::vector<RunReviewed> reviews_;
};

}  // namespace proctor::testing
