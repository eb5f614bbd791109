#pragma once
// The pure rules of nested budget envelopes (ARCHITECTURE section 5; DISTRIBUTED.md B).
// Two-phase like a bank: reserve -> settle | void.  No I/O; the Redis adapter gives the same
// answers through one atomic script (redis_ledger.h), and a differential test holds them together.
//
// Invariants, checked after every mutation: for every scope 0 <= spent, 0 <= reserved,
// spent + reserved <= cap; reserved(scope) = sum of the asks of its pending reservations; one
// terminal per reservation; a denial sticks to its id; the same id with other contents is an error.
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/base/ids.h"
#include "common/base/money.h"
#include "common/base/result.h"

namespace proctor {

// Index of an envelope in the campaign's table (global, stage:x, task:y).  The run's own envelope is its ask.
using ScopeId = Strong<struct ScopeIdTag, std::uint32_t>;

struct ScopeSpec {
  std::string name;  // "global", "stage:pilot", "task:json-lib"
  MicroUsd cap;
};
struct ScopeBalance {
  MicroUsd cap, spent, reserved;
  MicroUsd free() const { return cap - spent - reserved; }
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

struct ReserveAnswer {
  enum class Kind { kGranted, kDenied };
  Kind kind = Kind::kDenied;
  ScopeId short_scope;  // kDenied: the outermost scope that was short
  MicroUsd short_by;    // and by how much
  bool replayed = false;  // the stored answer to an id seen before
};
struct SettleAnswer {
  MicroUsd charged;
  MicroUsd overrun;  // actual above the ask, not charged to any envelope, flagged
  bool replayed = false;
};

class Ledger {
 public:
  explicit Ledger(std::vector<ScopeSpec> scopes);

  // kInvalid: negative or oversized ask, unknown scope.  kConflict: the id with other contents.
  Result<ReserveAnswer> reserve(const ReserveOp& op);
  // kNotFound: no such reservation.  kConflict: it ended otherwise (voided, other amount).
  Result<SettleAnswer> settle(const SettleOp& op);
  Status cancel(const VoidOp& op);

  // Forgets the stored answers of one finished reservation, once nobody can repeat it.
  void forget(const AskId& id);

  const std::vector<ScopeSpec>& scopes() const { return specs_; }
  ScopeBalance balance(ScopeId scope) const;
  std::size_t open_reservations() const { return open_; }
  void check() const;

 private:
  enum class State : std::uint8_t { kPending, kDenied, kSettled, kVoided };
  struct Row {
    State state = State::kPending;
    MicroUsd ask, actual;
    std::vector<ScopeId> scopes;
    ScopeId short_scope;
    MicroUsd short_by;
  };
  std::vector<ScopeSpec> specs_;
  std::vector<ScopeBalance> balances_;
  struct AskHash {
    std::size_t operator()(const AskId& id) const {
      return std::hash<AttemptId>{}(id.attempt) * 31 + id.seq;
    }
  };
  std::unordered_map<AskId, Row, AskHash> rows_;  // looked up by id only, never iterated
  std::size_t open_ = 0;
};

}  // namespace proctor
