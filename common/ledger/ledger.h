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
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "common/base/ids.h"
#include "common/base/money.h"
#include "common/base/result.h"

namespace proctor {

// Index of an envelope in the campaign's table (global, stage:x, task:y).  The run's own envelope
// is its ask.
using ScopeId = Strong<struct ScopeIdTag, std::uint32_t>;

struct ScopeSpec {
  std::string name;  // "global", "stage:pilot", "task:json-lib"
  MicroUsd cap;
};
// Of an envelope that other campaigns use too (shared_book.h): what they have taken of it.
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
// The journal holds how this reservation ended: drop the stored answer, nobody will ask again.
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
// Of one LedgerOp, in the order of the variant; Unit answers VoidOp and ForgetOp.
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

  // Forgets the stored answers of one finished reservation, once nobody can repeat it.  Unknown
  // ids are fine.  Requires: it is not pending (that would lose the money it holds).
  void forget(const AskId& id);
  // A declared deviation.  Requires: an amount, not below the cap that holds.
  void raise(ScopeId scope, MicroUsd cap);
  // Spent beside all reservations, durable elsewhere already.  kCorrupt: it does not fit.
  Status book(ScopeId scope, MicroUsd amount);
  // What other campaigns have taken of it: counts for every reserve() from now on.
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

}  // namespace proctor
