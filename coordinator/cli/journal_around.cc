#include "coordinator/cli/journal_around.h"

#include <algorithm>
#include <iterator>

#include "common/ledger/redis_ledger.h"
#include "coordinator/cli/redis_access.h"
#include "coordinator/journal/journal_reader.h"
#include "coordinator/shell/behind.h"

namespace proctor::cli {
namespace {

// The campaign's own Redis ended with its coordinator: only a configured one remembers.
Result<std::optional<LedgerHeld>> held_by_redis(const FrozenCampaign& frozen) {
  const bool none =
      frozen.campaign.ledger == Campaign::LedgerKind::kJournal || frozen.campaign.redis.empty();
  if (none) return std::optional<LedgerHeld>();
  PROCTOR_TRY(RedisEndpoint endpoint, redis_endpoint(frozen.campaign.redis));
  PROCTOR_TRY(RedisLedger ledger,
              RedisLedger::open({.endpoint = std::move(endpoint), .campaign = frozen.id}));
  return ledger.held();
}

}  // namespace

Result<Around> look_around(const FrozenCampaign& frozen) {
  Around out;
  const Result<std::optional<LedgerHeld>> held = held_by_redis(frozen);
  if (!held.ok()) out.unasked = held.error().detail;
  const std::vector<Evidence> evidence = evidence_of(frozen.folder, frozen.plan, 0);
  PROCTOR_TRY(JournalReader reader, JournalReader::open(frozen.folder.journal()));
  PROCTOR_TRY(const RestoredState state, reader.load());
  out.problems = unknown_evidence(evidence, state);
  if (!held.ok() || !*held) return out;
  std::ranges::move(unknown_money(**held, state), std::back_inserter(out.problems));
  if (state.last_epoch.raw() < (*held)->epoch.raw() + kEpochsBeyond) out.asks = (*held)->asks;
  return out;
}

}  // namespace proctor::cli
