#pragma once
// What an operator may ask of a running campaign, as plain data.  The command line says it over the
// control socket, the shell turns names into ids, the scheduler decides, and the journal keeps it
// as a note (kNoteOperator) so that the next life of the coordinator stands by it.
//
// Every act but a review, which is booked as often as it is asked for, is idempotent: asked again
// it changes nothing and says so.  Pure data; any thread.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/money.h"
#include "common/ledger/ledger.h"

namespace proctor {

enum class OperatorActKind : std::uint8_t {
  kPause,       // start nothing; `now`: what runs is suspended too
  kUnpause,     // and what was suspended goes on
  kDrain,       // of `worker`, or of the campaign: what runs is finished, nothing is started there
  kCancel,      // `runs`: stop them; those that had not ended never start (until requeued)
  kRequeue,     // `runs`: cancelled, parked or waiting for a back-off: in line again, now; or those
                // that ended `invalid`, within the attempts that were registered
  kApprove,     // `runs`: that wait for a person's decision (R107) go on
  kQuarantine,  // `worker` gets nothing new until it is released
  kRelease,     // `worker`: neither drained nor in quarantine any more
  kKick,        // `worker`: is told to leave, its attempts are lost
  kRaise,       // `scope` gets the cap `to` (R163): a declared deviation
  kReview,      // a person's `milli_minutes` on one of `runs` that has ended (R158)
  kApproveStage,  // `stage` may begin, by what the stages before it came to (gate_book.h)
  kWaive,         // `criterion` of `stage` need not hold: a declared deviation
  kCloseStage,    // `runs` of `stage` are cancelled, and none of it begins any more: likewise
};

struct OperatorAct {
  OperatorActKind kind = OperatorActKind::kPause;
  std::vector<RunId> runs{};  // ascending; of kCancel, kRequeue, kApprove, kCloseStage
  std::string selected{};     // the words that named them: "method noop"; for the record
  WorkerId worker{};          // empty: the campaign
  bool now = false;           // of kPause
  bool invalid = false;       // of kRequeue: those of `runs` that ended invalid, and no others
  ScopeId scope{};            // of kRaise
  MicroUsd to{};              // of kRaise
  std::uint64_t milli_minutes = 0;  // of kReview; `reason` is its note
  std::string by{};                 // who, never empty
  std::string reason{};             // may be empty where it need not be said (control_words.cc)
  WallTime at{};
  std::string stage{};      // of kApproveStage, kWaive, kCloseStage
  std::string criterion{};  // kWaive: as in "entry invalid_share 0.05"; its word may do
  // Of kApproveStage: of the check that is meant, or its first digits; the note has it whole.
  std::string digest{};
};
inline constexpr const char* kNoteOperator = "operator";

// What came of an act, in one sentence for whoever asked.
struct OperatorAnswer {
  enum class Verdict : std::uint8_t {
    kDone,       // durable when this is told
    kUnchanged,  // it was so already
    kRefused,    // nothing has changed; `text` says why
  };
  Verdict verdict = Verdict::kDone;
  std::string text;
  bool short_of_money = false;  // of kRefused: an envelope is short
};

}  // namespace proctor
