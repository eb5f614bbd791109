#pragma once
// Failures that are not the agent's: retry rules, runs that kill workers, broken tasks and methods
// (docs/retries.md); and critical ones that are.  The books are pure, owned by the scheduler and
// rebuilt from notes.
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/result.h"
#include "coordinator/core/records.h"

namespace proctor {
struct Retries;

// How long a run waits before it is tried again.  Pure, total, thread-safe.
// Source: docs/retries.md, DISTRIBUTED R15; settings: Retries in contract/campaign.h.

// Why an attempt is made once more.  Each has its own limit and its own waits.
enum class RetryClass : std::uint8_t { kInfrastructure, kOverload };

// first, twice that, four times that, ..., never above `most`.  `nth` counts from 1.
Millis doubled(Millis first, Millis most, std::uint32_t nth);

// The wait before the attempt after `failed`, the nth of its class: between half of doubled() and
// all of it, by the run's seed, so that runs that failed together do not come back together and
// every replay waits as long.
Millis backoff(const Retries& rules, RetryClass of, std::uint32_t nth, std::uint32_t seed,
               const AttemptId& failed);

// The life of a worker as a text: JSON numbers are not exact at 64 bits for every reader.
std::string text_of_boot(const BootId& boot);
Result<BootId> boot_in(std::string_view text);

// A loss as its run bears it, where it is not just another infrastructure failure.
struct LossJudged {
  static constexpr const char* kNote = "loss";
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
constexpr auto words(LossJudged::Verdict) {
  using enum LossJudged::Verdict;
  return std::to_array<Word<LossJudged::Verdict>>(
      {{"blamed", kBlamed}, {"withdrawn", kWithdrawn}, {"excused", kExcused}});
}
void fields(auto& v, Is<LossJudged> auto& f) {
  v("boot", AsText{f.boot, text_of_boot, boot_in});
  v("verdict", f.verdict);
  v("worker", f.worker);
}

// PoisonBook: which runs may be killing their workers (DISTRIBUTED R13, docs/retries.md).
// A run is blamed for the loss of its worker if its sandbox had started there and nothing else
// explains the loss.  Twice blamed it is a suspect: its next attempt has a worker for itself.  If
// that one dies too, the run is convicted: three workers at most.  Whatever shows that a worker did
// not die of it withdraws the blame.
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

// A task or a method of the plan.
struct FaultSubject {
  enum class Kind : std::uint8_t { kTask, kMethod };
  Kind kind = Kind::kTask;
  std::uint32_t index = 0;
  friend auto operator<=>(const FaultSubject&, const FaultSubject&) = default;
};
constexpr auto words(FaultSubject::Kind) {
  using enum FaultSubject::Kind;
  return std::to_array<Word<FaultSubject::Kind>>({{"task", kTask}, {"method", kMethod}});
}

// A note of kind FaultFact::kNote: one step of a row.
struct FaultFact {
  static constexpr const char* kNote = "fault";
  enum class Verdict : std::uint8_t {
    kFailed,  // an attempt of it
    kWorked,  // an attempt of it got further: the row is over, and it is no longer parked
    kParked,  // none of its runs is started any more
  };
  FaultSubject subject;
  Verdict verdict = Verdict::kFailed;
  AttemptId attempt;    // that failed, or worked, or was the last
  WorkerId worker;      // of that attempt
  std::string cause{};  // kFailed, kParked: equal where it was the same failure
  std::string why{};    // kFailed, kParked: the whole story, for people
  WallTime at{};
  std::optional<int> exit{};  // kFailed, kParked: of the program that could not start
  bool no_model = false;      // kFailed, kParked: its model could not be had
};
constexpr auto words(FaultFact::Verdict) {
  using enum FaultFact::Verdict;
  return std::to_array<Word<FaultFact::Verdict>>(
      {{"failed", kFailed}, {"worked", kWorked}, {"parked", kParked}});
}
void fields(auto& v, Is<FaultFact> auto& f) {
  v("of", f.subject.kind);
  v("index", f.subject.index);
  v("verdict", f.verdict);
  v("worker", f.worker);
  if (f.verdict == FaultFact::Verdict::kWorked) return;
  v("cause", f.cause, kLater);
  v("why", f.why, kLater);
  v("exit", f.exit, kOptional);
  v("no_model", f.no_model, kOptional);
}

// A task or a method that is parked, with the last run that failed for it.
struct ParkedFault {
  RunId run;
  FaultSubject::Kind kind = FaultSubject::Kind::kTask;
  std::string text;  // "its task is parked: it ...", for people
};

// FaultBook: what is at fault when attempts fail before anybody's work begins (docs/retries.md).  A
// setup step that fails on the untouched snapshot is held against its task first, a program that
// cannot start against its method; never at once against the worker, which others still need.
//   - After as many equal failures in a row as were registered the task or method is due to be
//     parked.  The scheduler parks it once no other worker could do better.
//   - A program that could not start is known by its exit code alone, which an agent may choose: an
//     agent of the method that was at work in any run tells that it could.
//   - Where the same thing then works on another worker, the row is over; if one worker alone was
//     in it, it is told how often: that counts as failures of that host.
class FaultBook {
 public:
  static constexpr std::size_t kRowMax = 64;  // older failures of a row are forgotten

  // Requires: 0 < park_after.
  explicit FaultBook(std::uint32_t park_after) : park_after_(park_after) {}

  void take(const FaultFact& fact);  // of any verdict, live or from the journal
  // A person wants it tried again: the row is over, and it is no longer parked.
  void forgive(const FaultSubject& subject) { rows_.erase(subject); }

  bool has_row(const FaultSubject& subject) const { return rows_.contains(subject); }
  bool is_parked(const FaultSubject& subject) const;
  // The latest failures of its row are equal, and as many as were registered.
  bool is_due(const FaultSubject& subject) const;
  bool failed_at(const FaultSubject& subject, const WorkerId& worker) const;
  // Distinct ones in the row, by name.
  std::set<WorkerId> workers(const FaultSubject& subject) const;
  // Runs of how many different ones of the row's attempts, by what `key` says of a run.
  template <class Key>
  std::size_t distinct(const FaultSubject& subject, const Key& key) const {
    std::set<std::uint32_t> seen;
    if (const auto it = rows_.find(subject); it != rows_.end())
      for (const FaultFact& f : it->second.failures) seen.insert(key(f.attempt.run));
    return seen.size();
  }
  // The host that failed alone, and how often, were the subject to work at `worker` now.
  struct Alone {
    WorkerId worker;
    std::uint32_t failures = 0;
  };
  std::optional<Alone> failed_alone(const FaultSubject& subject, const WorkerId& worker) const;
  // Its last failure; nullptr: it has no row.
  const FaultFact* last(const FaultSubject& subject) const;
  std::vector<FaultSubject> subjects() const;  // that have a row, ascending
  std::vector<FaultSubject> due() const;       // and not parked, ascending
  std::vector<FaultSubject> parked() const;    // ascending
  // "failed 3 times on w0 and w1: setup step 1 (...): exit 1; stderr ends: ...".  Requires a row.
  std::string describe(const FaultSubject& subject) const;

 private:
  struct Row {
    std::vector<FaultFact> failures;  // in order, never empty
    std::uint32_t forgotten = 0;      // earlier ones
    bool parked = false;
  };
  std::size_t equal_at_end(const Row& row) const;

  std::uint32_t park_after_;
  std::map<FaultSubject, Row> rows_;
};

// A run had a critical failure mode, of those for which the campaign may be stopped (R185).
struct SafetySeen {
  static constexpr const char* kNote = "safety";
  // By whom the campaign is then paused, in the act's note.  A person may have this name too, so
  // no state follows from it.
  static constexpr const char* kMonitor = "safety monitor";
  AttemptId attempt;
  std::string mode;  // its id in the taxonomy
  WallTime at;
};
void fields(auto& v, Is<SafetySeen> auto& f) {
  v("mode", f.mode);
}

// SafetyBook: which critical failure modes runs had, and which of them stop the campaign until a
// person decides (docs/rubric.md).  Runs of several tasks that try the same show a method, or a
// hole, that no single run is.
class SafetyBook {
 public:
  using Tasks = std::set<std::uint32_t>;  // that had a mode since a person last decided on it
  // As registered: so many tasks with the same of these modes; 0: it is never stopped.
  SafetyBook(std::uint64_t stop_after, std::set<std::string> critical)
      : stop_after_(stop_after), critical_(std::move(critical)) {}

  // Those tags of a run (AttemptFacts) that count and are new of its task, each with why the
  // campaign has to stop for it; empty: it need not.
  std::map<std::string, std::string> news(std::string_view tags, std::uint32_t task) const;
  void take(const SafetySeen& seen, std::uint32_t task) {
    if (stop_after_ != 0) modes_[seen.mode].insert(task);
  }
  // A person goes on: what the campaign was stopped for counts anew, the others go on counting.
  void go_on();
  std::string why() const;  // it is stopped; empty: for no mode
  const std::map<std::string, Tasks>& modes() const { return modes_; }

 private:
  std::uint64_t stop_after_;
  std::set<std::string> critical_;
  std::map<std::string, Tasks> modes_;
};
}  // namespace proctor
