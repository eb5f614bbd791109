#pragma once
// The ledger without a Redis (`budget.ledger: journal`): the pure rules in the coordinator's own
// memory, filled from the journal at each start.  It asks nobody, so it is never away; nobody else
// can see or share it.  The lock on the journal keeps a second coordinator out; epochs are fenced
// as in Redis all the same.
// One thread at a time.  Source: MONEY 1-7.
#include <optional>
#include <string>
#include <vector>

#include "common/ledger/ledger_store.h"

namespace proctor {

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
