#pragma once
// PoisonBook: which runs may be killing their workers (DISTRIBUTED R13, docs/retries.md).
// A run is blamed for the loss of its worker if its sandbox had started there and nothing else
// explains the loss.  Twice blamed it is a suspect: its next attempt has a worker for itself.  If
// that one dies too, the run is convicted: three workers at most.  Whatever shows that a worker did
// not die of it withdraws the blame.  Pure; owned by the scheduler; rebuilt from notes.
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/result.h"
#include "coordinator/core/records.h"

namespace proctor {

// What a loss means for its run, where it is not just another infrastructure failure.
struct LossJudged {
  enum class Verdict : std::uint8_t {
    kBlamed,     // its worker died while it ran
    kWithdrawn,  // and did not die of it: it was heard of again
    kExcused,    // the operator took the worker away: no failure at all
  };
  AttemptId attempt;
  Verdict verdict = Verdict::kBlamed;
  WorkerId worker;
  BootId boot;
  WallTime at;
};

Note note_of(const LossJudged& fact);
Result<LossJudged> loss_of(const Note& note);  // kCorrupt names the field

class PoisonBook {
 public:
  static constexpr std::size_t kSuspectAfter = 2;
  static constexpr std::size_t kConvictAfter = 3;
  struct Blame {
    AttemptNo attempt;
    WorkerId worker;
    BootId boot;
  };

  void blame(const AttemptId& attempt, const WorkerId& worker, BootId boot);
  // The worker lives on in that life: whom it was blamed on, and no longer is.
  std::vector<AttemptId> heard_of(const WorkerId& worker, BootId boot);
  bool withdraw(const AttemptId& attempt);  // false: it was not blamed
  // An attempt ended otherwise than with its worker: what was held against it (it may have outlived
  // one) and earlier ones is void.
  void survived(const AttemptId& attempt);
  // A person wants it tried again: it stays a suspect, one loss away from conviction.
  void pardon(RunId run);
  // It has ended: nobody asks about it, and it costs no look, until it is in line again.
  void rest(RunId run);
  void wake(RunId run);
  std::vector<RunId> awake() const;

  const std::vector<Blame>& blames(RunId run) const;
  bool is_suspect(RunId run) const { return kSuspectAfter <= blames(run).size(); }
  bool is_over(RunId run) const { return kConvictAfter <= blames(run).size(); }

 private:
  std::map<RunId, std::vector<Blame>> blamed_, resting_;  // never an empty list
};

// "its worker died 3 times under it (w0, w1, w0), the last time with nothing else there"
std::string describe_poison(const std::vector<PoisonBook::Blame>& blames);

}  // namespace proctor
