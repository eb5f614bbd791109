#pragma once
// The pure rules of nested budget envelopes (MONEY 1-7; DISTRIBUTED B).
// Two-phase like a bank: reserve -> settle | void.  No I/O; the Redis adapter gives the same
// answers through one atomic script (redis_ledger.h), and a differential test holds them together.
// Not thread-safe.  An operation that returns an Error has changed nothing.
//
// Invariants, checked after every mutation of the scopes that it touches: for every scope 0 <=
// spent, 0 <= reserved, spent + reserved <= cap; reserved(scope) = sum of the asks of its pending
// reservations; one terminal per reservation; a denial sticks to its id; the same id with other
// contents is an error.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "common/base/ids.h"
#include "common/base/money.h"
#include "common/base/result.h"
#include "common/base/words.h"

namespace proctor {
// Index of an envelope in the campaign's table (global, stage:x, task:y).  The run's own envelope
// is its ask.
using ScopeId = Strong<struct ScopeIdTag, std::uint32_t>;

struct ScopeSpec {
  std::string name;  // "global", "stage:pilot", "task:json-lib"
  MicroUsd cap;
};
// An envelope that other campaigns use too (SharedBook): what they have taken of it.
struct Elsewhere {
  MicroUsd held;            // spent or reserved by them, or by what of them is not known
  bool may_return = false;  // not all of it is spent: a denial is not the last word
  friend bool operator==(const Elsewhere&, const Elsewhere&) = default;
};
struct ScopeBalance {
  MicroUsd cap, spent, reserved;
  Elsewhere elsewhere{};
  MicroUsd free() const {
    return std::max(MicroUsd::zero(), cap - spent - reserved - elsewhere.held);
  }
};

// Which ask of an attempt: a denied ask is final for its id, a later one has a new sequence.
struct AskId {
  AttemptId attempt;
  std::uint32_t seq = 0;
  friend bool operator==(const AskId&, const AskId&) = default;
  friend auto operator<=>(const AskId&, const AskId&) = default;
};
std::string to_string(const AskId& id);  // "17.2.0"

struct ReserveOp {
  AskId id;
  MicroUsd ask;
  std::vector<ScopeId> scopes;  // 1 to 8, from the outermost
};
struct SettleOp {
  AskId id;
  MicroUsd actual;  // what was metered; above the ask it is cut to the ask and reported as overrun
};
struct VoidOp {
  AskId id;
};
// The journal holds how this reservation ended: drop the stored answer, it is not asked for again.
struct ForgetOp {
  AskId id;
};
using LedgerOp = std::variant<ReserveOp, SettleOp, VoidOp, ForgetOp>;

inline constexpr std::size_t kScopesPerReservation = 8;

struct ReserveAnswer {
  enum class Kind { kGranted, kDenied };
  Kind kind = Kind::kDenied;
  ScopeId short_scope;    // kDenied: the outermost scope that was short
  MicroUsd short_by;      // and by how much
  bool replayed = false;  // the stored answer to an id seen before
  bool later = false;     // kDenied: other campaigns hold what is short, and it may come back
  friend bool operator==(const ReserveAnswer&, const ReserveAnswer&) = default;
};
struct SettleAnswer {
  MicroUsd charged;
  MicroUsd overrun;  // actual above the ask, not charged to any envelope, flagged
  bool replayed = false;
  friend bool operator==(const SettleAnswer&, const SettleAnswer&) = default;
};
// The answer to one LedgerOp, in the order of the variant; Unit answers VoidOp and ForgetOp.
using LedgerAnswer = std::variant<ReserveAnswer, SettleAnswer, Unit, Error>;

class Ledger {
 public:
  explicit Ledger(std::vector<ScopeSpec> scopes);

  // As a journal has it: `spent` by scope and the reservations still open.  kInvalid: not one spent
  // amount per scope, or an ask that reserve() refuses.  kCorrupt: the numbers pass a cap, or a
  // reservation stands twice.
  static Result<Ledger> restored(std::vector<ScopeSpec> scopes,
                                 const std::vector<ReserveOp>& pending,
                                 const std::vector<MicroUsd>& spent);

  // kInvalid: negative or oversized ask, no, repeated or unknown scopes.  kConflict: the id with
  // other contents.  A denial is an answer, not an Error.
  Result<ReserveAnswer> reserve(const ReserveOp& op);
  // kNotFound: no such reservation.  kConflict: it ended otherwise (denied, voided, other amount).
  Result<SettleAnswer> settle(const SettleOp& op);
  Status cancel(const VoidOp& op);

  // Forgets the stored answers of one finished reservation, once it cannot be repeated.  Unknown
  // ids are fine.  Requires: it is not pending (that would lose the money it holds).
  void forget(const AskId& id);
  // A declared deviation.  Requires: an amount, not below the cap that holds.
  void raise(ScopeId scope, MicroUsd cap);
  // Spent beside all reservations, durable elsewhere already.  kCorrupt: it does not fit.
  Status book(ScopeId scope, MicroUsd amount);
  // The part that other campaigns have taken of it: counts for every reserve() from now on.
  void set_elsewhere(ScopeId scope, Elsewhere elsewhere);
  // An answer that the keeper gave before and says again (its `replayed`), of an id that is new
  // here: what others held then is not known any more, so it stands if this campaign's own part
  // fits.  Requires: replayed.
  Result<ReserveAnswer> adopt(const ReserveOp& op, const ReserveAnswer& told);
  // One of the above; forgetting a pending reservation answers kConflict here.
  LedgerAnswer apply(const LedgerOp& op);

  const std::vector<ScopeSpec>& scopes() const { return specs_; }
  ScopeBalance balance(ScopeId scope) const;
  std::size_t open_reservations() const { return open_; }
  bool is_pending(const AskId& id) const;
  bool knows(const AskId& id) const { return rows_.contains(id); }
  std::vector<ReserveOp> pending() const;  // by id
  std::vector<MicroUsd> spent() const;     // by scope

 private:
  enum class State : std::uint8_t { kPending, kDenied, kSettled, kVoided };
  struct Row {
    State state = State::kPending;
    MicroUsd ask, actual;
    std::vector<ScopeId> scopes;
    ScopeId short_scope;
    MicroUsd short_by;
    bool later = false;
  };
  ReserveAnswer admit(const ReserveOp& op, ReserveAnswer answer);
  Status validate(const ReserveOp& op) const;
  Result<ReserveAnswer> replay(const ReserveOp& op, const Row& row) const;
  void check_after(const std::vector<ScopeId>& touched) const;

  std::vector<ScopeSpec> specs_;
  std::vector<ScopeBalance> balances_;
  struct AskHash {
    std::size_t operator()(const AskId& id) const {
      return std::hash<AttemptId>{}(id.attempt) * 31 + id.seq;
    }
  };
  std::unordered_map<AskId, Row, AskHash> rows_;  // never iterated but to be sorted
  std::size_t open_ = 0;
};

// An envelope that several campaigns on one Redis share, and what must be known of whom so that
// they never pass it together, whatever is killed or lost (docs/ledger.md, "Shared envelopes").
//
// Each campaign, a member, answers for its own part: its journal has it.  Redis adds the parts up
// and admits, in the step that also reserves.  All that only Redis knows may be lost, so every
// journal also knows the other members, and how much each may hold at most: its ceiling.  The
// rules:
//   1. a member reserves up to the ceiling that the journals of all other members know, its limit;
//      a new one has none until they do
//   2. a Redis that lost the envelope gets it back from a member with a limit, who names all that
//      its journal knows: each of them counts as its ceiling until it has told its part itself
//   3. who was never a member waits for one, or for a person's word that there is none
// So two members with limits always know each other, and no part is ever forgotten.
//
// SharedBook is what one member's journal knows.  Farewell is how a member ends.

// In Redis kHeard is "a", kUnheard "w", kLeft "l" (shared.lua).
struct SharedMember {
  enum class State { kHeard, kUnheard, kLeft };
  std::string id;    // of the campaign
  std::string name;  // for people: the campaign's name and its host
  State state = State::kUnheard;
  MicroUsd ceiling;          // it never holds more than this
  MicroUsd limit;            // how much of that all others know of; none: it is not a member yet
  MicroUsd spent, reserved;  // as it last said; of kUnheard: nothing is known
  std::uint64_t since = 0;   // the change of the members that others must know before it may more
  std::uint64_t noted = 0;   // up to which change its own journal knows the members
  std::int64_t seen_ms = 0;  // Unix time at which Redis heard of it
  // Its part of the envelope.
  MicroUsd held() const { return state == State::kUnheard ? ceiling : spent + reserved; }
};
constexpr auto words(SharedMember::State) {
  using enum SharedMember::State;
  return std::to_array<Word<SharedMember::State>>(
      {{"here", kHeard}, {"unheard", kUnheard}, {"left", kLeft}});
}

// The envelope as Redis has it at one instant.
struct SharedView {
  MicroUsd cap;  // the largest that a member's journal has
  std::uint64_t change = 0;
  std::vector<SharedMember> members;  // by id
  const SharedMember* find(std::string_view id) const;
  // The part that all but `id` take of it, and whether some of that may come back.
  Elsewhere elsewhere_of(std::string_view id) const;
};

// How much of a shared envelope is this campaign's own to use; none: it is no member.
struct SharedLimit {
  MicroUsd limit;
};
// A journal's note about a shared envelope: another member, or the limit.  The last of each counts.
using SharedFact = std::variant<SharedMember, SharedLimit>;

class SharedBook {
 public:
  // The book of a journal that says nothing yet.
  explicit SharedBook(std::string self) : self_(std::move(self)) {}

  // It is in the journal.  The only way in which a book changes, in this life and in the next one.
  void apply(const SharedFact& fact);

  const std::string& self() const { return self_; }
  MicroUsd limit() const { return limit_; }
  const std::map<std::string, SharedMember>& known() const { return known_; }

  // The others of whom the journal does not know what it has to.
  std::vector<SharedMember> news(const SharedView& view) const;
  // May the limit become the ceiling that Redis has?  All others know it, and it knows them.
  bool may_enter(const SharedView& view) const;
  // The facts that journal and book still lack; empty: they know all that they must.
  std::vector<SharedFact> to_note(const SharedView& view) const;

 private:
  std::string self_;
  MicroUsd limit_;
  std::map<std::string, SharedMember> known_;  // others, by id
};

// How a member leaves.  All that only Redis knows may be lost: were it lost right after the leave,
// those who stay would bring the envelope back with the leaver at its ceiling, and it does not come
// again to say less.  So it stays, a little, until the journals of all who are here know that it
// left, and says it again to a Redis that has forgotten.
class Farewell {
 public:
  enum class Step { kSay, kWait, kDone };
  explicit Farewell(std::string self) : self_(std::move(self)) {}
  // With what Redis has now; asked several times a second.
  Step next(const SharedView& view);

 private:
  // Sign of life of one that does not know yet: when Redis heard of it last, and for how many looks
  // not since.
  struct Sign {
    std::int64_t seen_ms = 0;
    int looks = 0;
  };
  std::string self_;
  std::map<std::string, Sign> awaited_;  // by id
};
}  // namespace proctor
