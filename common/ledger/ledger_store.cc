#include "common/ledger/ledger_store.h"

#include <utility>

namespace proctor {
Status JournalLedger::check_epoch(Epoch epoch) const {
  if (rules_ && epoch < epoch_) {
    return Error{Errc::kConflict, "ledger: fenced, another coordinator holds it under epoch " +
                                      std::to_string(epoch_.raw())};
  }
  return ok_status();
}

Result<std::vector<std::string>> JournalLedger::begin_epoch(Epoch epoch,
                                                            const std::vector<ScopeSpec>& scopes,
                                                            const std::vector<ReserveOp>& pending,
                                                            const std::vector<MicroUsd>& spent) {
  PROCTOR_TRY(Ledger filled, Ledger::restored(scopes, pending, spent));
  PROCTOR_CHECK_OK(check_epoch(epoch));
  rules_.emplace(std::move(filled));
  epoch_ = epoch;
  return std::vector<std::string>{};
}

Result<std::vector<LedgerAnswer>> JournalLedger::apply(Epoch epoch,
                                                       const std::vector<LedgerOp>& batch) {
  PROCTOR_ASSERT(batch.size() <= kLedgerBatch);
  if (batch.empty()) return std::vector<LedgerAnswer>{};
  PROCTOR_CHECK_OK(check_epoch(epoch));
  if (!rules_ || epoch_ < epoch) {
    return Error{Errc::kNotFound, "ledger: not there under this epoch; fill it from the journal"};
  }
  std::vector<LedgerAnswer> answers;
  answers.reserve(batch.size());
  for (const LedgerOp& op : batch) answers.push_back(rules_->apply(op));
  return answers;
}

Result<std::vector<ScopeBalance>> JournalLedger::snapshot() {
  if (!rules_) return Error{Errc::kNotFound, "ledger: no epoch has begun"};
  std::vector<ScopeBalance> out;
  for (std::uint32_t i = 0; i < rules_->scopes().size(); ++i)
    out.push_back(rules_->balance(ScopeId(i)));
  return out;
}
}  // namespace proctor
