#pragma once
// Where the coordinator keeps a campaign's envelopes while it works: in Redis (redis_ledger.h), or
// in its own memory (JournalLedger).  Neither is the record; both are filled from the journal
// under an epoch and give the same answers to the same operations (a differential test).
// One thread at a time.
#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/result.h"
#include "common/ledger/ledger.h"

namespace proctor {
inline constexpr std::size_t kLedgerBatch = 1024;  // operations of one call

// Things that an earlier life left in a store.
struct LedgerHeld {
  Epoch epoch;              // it was filled under
  std::vector<AskId> asks;  // whose answers it keeps
  MicroUsd spent;           // of the outermost envelope
};

// The cap of a shared envelope that a campaign may have beside the others'.
enum class SharedCap {
  kEqual,     // at a start
  kNotLower,  // ... of a campaign in whose journal an operator has raised it
  kAny,       // when the envelope is filled again: caps may have been raised meanwhile
};
constexpr auto words(SharedCap) {
  using enum SharedCap;
  return std::to_array<Word<SharedCap>>(
      {{"equal", kEqual}, {"not lower", kNotLower}, {"any", kAny}});
}
// This campaign's part of an envelope that it shares (ledger.h): where it is in its own
// table, and what its journal knows.
struct SharedPart {
  ScopeId scope;
  MicroUsd limit;
  std::vector<SharedMember> known;
  SharedCap cap = SharedCap::kAny;
};

class LedgerStore {
 public:
  virtual ~LedgerStore() = default;

  // Says early what is wrong; repeatable.  kUnavailable: not there now, try again.
  virtual Status connect() = 0;
  // For the log, once connected.
  virtual std::string describe() const = 0;

  // The contents before begin_epoch() replaces them, as far as they can be read; nullopt: it is
  // empty, or keeps nothing from one life to the next.
  virtual Result<std::optional<LedgerHeld>> held() { return std::optional<LedgerHeld>(); }

  // Takes the campaign under this epoch: envelopes, what was spent by scope, and the pending
  // reservations, all of the journal.  Everything held before is replaced.  Repeatable.
  // kConflict: a newer epoch holds it.  kCorrupt: the journal's own numbers pass a cap.
  // The value: where the store held something else than the journal says, one line each.
  virtual Result<std::vector<std::string>> begin_epoch(Epoch epoch,
                                                       const std::vector<ScopeSpec>& scopes,
                                                       const std::vector<ReserveOp>& pending,
                                                       const std::vector<MicroUsd>& spent) = 0;

  // One answer per operation, in order; at most kLedgerBatch.  kNotFound: nothing is held under
  // this epoch, begin it.  kConflict: a newer epoch has.
  virtual Result<std::vector<LedgerAnswer>> apply(Epoch epoch,
                                                  const std::vector<LedgerOp>& batch) = 0;

  // Five calls for a campaign that shares an envelope; kInvalid for others.

  // The part that every begin_epoch() after this reports.  begin_epoch() then answers kNotFound
  // too: Redis does not have the envelope, and this campaign may not bring it back; and kInvalid:
  // the others have another cap.
  virtual void share(SharedPart) {}
  // The part that others took of it, as the last apply() counted.
  virtual Elsewhere elsewhere() const { return {}; }
  // Says that it is here, up to which change its journal knows the members, and its limit.
  virtual Result<SharedView> tend(Epoch, std::uint64_t /*noted*/, MicroUsd /*limit*/) {
    return not_shared();
  }
  // Says that its part is settled, and stays so before the next begin_epoch().
  virtual Status leave(Epoch) { return not_shared(); }
  // The envelope as it is; without members and cap: Redis does not have it.
  virtual Result<SharedView> shared() { return not_shared(); }

  // All envelopes at one instant, by scope id.  kNotFound: no epoch has begun.
  virtual Result<std::vector<ScopeBalance>> snapshot() = 0;

 protected:
  LedgerStore() = default;
  LedgerStore(const LedgerStore&) = default;
  LedgerStore(LedgerStore&&) = default;
  LedgerStore& operator=(const LedgerStore&) = default;
  LedgerStore& operator=(LedgerStore&&) = default;
  static Error not_shared() {
    return {Errc::kInvalid, "ledger: no envelope of this campaign is shared"};
  }
};

// The ledger without a Redis (`budget.ledger: journal`): the pure rules in the coordinator's own
// memory, filled from the journal at each start.  It needs no other program, so it is never away;
// no other program can see or share it.  The lock on the journal keeps a second coordinator out;
// epochs are fenced as in Redis all the same.  Source: MONEY 1-7.
class JournalLedger final : public LedgerStore {
 public:
  Status connect() override { return ok_status(); }
  std::string describe() const override {
    return "ledger: in this process, filled from the journal (budget.ledger: journal); no Redis";
  }
  Result<std::vector<std::string>> begin_epoch(Epoch epoch, const std::vector<ScopeSpec>& scopes,
                                               const std::vector<ReserveOp>& pending,
                                               const std::vector<MicroUsd>& spent) override;
  Result<std::vector<LedgerAnswer>> apply(Epoch epoch, const std::vector<LedgerOp>& batch) override;
  Result<std::vector<ScopeBalance>> snapshot() override;

 private:
  Status check_epoch(Epoch epoch) const;

  Epoch epoch_;
  std::optional<Ledger> rules_;
};
}  // namespace proctor
