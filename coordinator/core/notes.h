#pragma once
// Notes of the journal: facts as JSON with sorted keys, both ways.  Pure.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/result.h"
#include "common/ledger/ledger.h"
#include "common/pilot/stage_check.h"
#include "coordinator/core/failures.h"
#include "coordinator/core/records.h"

namespace proctor {
// Kinds of notes that are no fact's own Fact::kNote.
// A worker failed too often in a row and gets nothing for a while, or may try again.  By itself: an
// operator's quarantine is a note of the act.
inline constexpr const char* kNoteWorkerQuarantined = "worker_quarantined";
inline constexpr const char* kNoteWorkerReleased = "worker_released";
// It did its work again: its quarantines so far are in no row with later ones.
inline constexpr const char* kNoteWorkerRecovered = "worker_recovered";
inline constexpr const char* kNotePoison = "poison";           // a run was convicted
inline constexpr const char* kNoteShared = "shared_envelope";  // a SharedFact

// "0-5 7 9-12": ascending, without repetition.
std::string ranges_of(const std::vector<RunId>& runs);
Result<std::vector<RunId>> runs_of(std::string_view ranges);
// "3.1 4.2".
std::string list_of_attempts(const std::vector<AttemptId>& attempts);
Result<std::vector<AttemptId>> attempts_in(std::string_view list);

// An operator's act, the runs it changed as ranges.
struct OperatorFact {
  static constexpr const char* kNote = "operator";
  OperatorAct act;  // `runs`: those that it changed
  // Of kRequeue and kApprove: failures of these attempts and of earlier ones count no longer.
  std::vector<AttemptId> forgiven{};
  // Of kRequeue: results that were their runs' outcome and decide nothing any more.
  std::vector<AttemptId> set_aside{};
  BootId boot{};  // of kKick: the life of the worker that is not let in again
};
void fields(auto& v, Is<OperatorFact> auto& f) {
  using Kind = OperatorActKind;
  auto& a = f.act;
  v("act", a.kind);
  v("by", a.by);
  v("reason", a.reason);
  v("selected", a.selected, kOptional);
  v("runs", AsText{a.runs, ranges_of, runs_of}, kOptional);
  v("forgiven", AsText{f.forgiven, list_of_attempts, attempts_in}, kOptional);
  v("invalid", a.invalid, kOptional);
  v("set_aside", AsText{f.set_aside, list_of_attempts, attempts_in}, kOptional);
  v("worker", a.worker, kOptional);
  if (a.kind == Kind::kPause) v("now", a.now, kLater);
  if (a.kind == Kind::kKick) v("boot", AsText{f.boot, text_of_boot, boot_in});
  v("stage", a.stage, a.kind == Kind::kApproveStage ? Rule{} : kOptional);
  if (a.kind == Kind::kApproveStage) {
    v("digest", a.digest);
    v.require(Digest::from_hex(a.digest).ok(), "digest", "expected 64 lower-case hex digits");
  }
  v("criterion", a.criterion, kOptional);
  v("mode", a.mode, kOptional);
  if (a.kind != Kind::kRaise) return;
  v("scope", a.scope);
  v("to", a.to);
}

// A decision of the scheduler itself about a worker; an operator's word is an OperatorFact.
struct WorkerJudged {
  static constexpr const char* kNote = kNoteWorkerQuarantined;  // or as its verdict says
  enum class Verdict : std::uint8_t {
    kQuarantined,  // it failed too often in a row: it gets nothing for a while
    kReleased,     // it is tried again
    kRecovered,    // it did its work again: its quarantines so far are in no row with later ones
  };
  WorkerId worker;
  Verdict verdict = Verdict::kQuarantined;
  std::uint32_t nth = 0;  // kQuarantined: in a row, from 1; 0 in notes of before: not known
  Millis wait{0};         // kQuarantined: for how long, where the life that said it goes on
  std::string reason{};   // kQuarantined
  WallTime at;
};
// The kind of its note.
constexpr auto words(WorkerJudged::Verdict) {
  using enum WorkerJudged::Verdict;
  return std::to_array<Word<WorkerJudged::Verdict>>({{kNoteWorkerQuarantined, kQuarantined},
                                                     {kNoteWorkerReleased, kReleased},
                                                     {kNoteWorkerRecovered, kRecovered}});
}
void fields(auto& v, Is<WorkerJudged> auto& f) {
  v("worker", f.worker);
  if (f.verdict != WorkerJudged::Verdict::kQuarantined) return;
  v("for_ms", f.wait, kLater);
  v("nth", f.nth, kLater);
  v("reason", f.reason, kLater);
}

// A worker is there, or is there in a new life.  Changes no state.
struct WorkerJoined {
  static constexpr const char* kNote = "worker_joined";
  static constexpr const char* kNoteAgain = "worker_restarted";
  WorkerId worker;
  std::uint32_t slots = 0;
  bool again = false;  // its note is of kind kNoteAgain
  WallTime at;
};
void fields(auto& v, Is<WorkerJoined> auto& f) {
  v("worker", f.worker);
  v("slots", f.slots);
}

// No attempt of the run is left, and the campaign says that a person decides then (R107): it waits
// until it is approved or cancelled.
struct RunEscalated {
  static constexpr const char* kNote = "escalated";
  RunId run;
  std::string reason{};
  WallTime at;
};
void fields(auto& v, Is<RunEscalated> auto& f) {
  v("reason", f.reason, kLater);
}

// A stage's gate in the notes beside the acts of people (OperatorFact): how the stages before it
// were judged, and that it was opened.

// The stages before it are over, and this is what they came to.
struct StageChecked {
  static constexpr const char* kNote = "stage_checked";
  std::string stage;
  Json check;          // StageCheck::canonical()
  Digest digest;       // of that text: what people approve; a reader compares it
  bool holds = false;  // every criterion does
  WallTime at;
};
void fields(auto& v, Is<StageChecked> auto& f) {
  v("stage", f.stage);
  v("check", f.check);
  v("digest", f.digest);
}

struct StageOpened {
  static constexpr const char* kNote = "stage_opened";
  std::string stage;
  Digest digest;                // of the check that it was opened by
  std::vector<std::string> by;  // who had approved that, by name; empty: nobody had to
  WallTime at;
};
void fields(auto& v, Is<StageOpened> auto& f) {
  v("stage", f.stage);
  v("digest", f.digest);
  v("by", f.by);
}

// A fact that is a note of the kind Fact::kNote.
template <class Fact>
concept Noted = requires {
  Fact::kNote;
};

// Bytes that are not UTF-8 are replaced.
template <Noted Fact>
Note note_of(const Fact& fact);
// Requires: the note is of that kind.  kCorrupt names the member.
template <Noted Fact>
Result<Fact> fact_of(const Note& note);

// The notes that the scheduler reads again in its next life, in order.
inline constexpr std::array<const char*, 10> kSchedulerNotes{
    OperatorFact::kNote,  LossJudged::kNote, kNoteWorkerQuarantined, kNoteWorkerReleased,
    kNoteWorkerRecovered, FaultFact::kNote,  RunEscalated::kNote,    StageChecked::kNote,
    StageOpened::kNote,   SafetySeen::kNote};
// Facts that the scheduler's next life reads again.  What each changes is in scheduler_facts.cc,
// and nowhere else.
using StandingFact = std::variant<OperatorFact, LossJudged, FaultFact, WorkerJudged, RunEscalated,
                                  StageChecked, StageOpened, SafetySeen>;
// Of a note whose kind is one of kSchedulerNotes.
Result<StandingFact> standing_fact_of(const Note& note);

// A journal's knowledge of a shared envelope in the notes (kind kNoteShared).  One note says of
// another member how much it may hold at most, or that it has left and what it spent; or of this
// campaign itself how much of the envelope is its own to use.  The last one of each counts.
Note note_of(const SharedFact& fact, WallTime at);
Result<SharedFact> shared_fact_of(const Note& note);

// What they come to, for the campaign `self`.
Result<SharedBook> shared_book_of(std::string self, const std::vector<Note>& notes);
}  // namespace proctor
