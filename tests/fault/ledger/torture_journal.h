#pragma once
// What the coordinator's journal is to the ledger, for 64 clients in one process: the pending
// reservations and the spend that a rebuild restores, the lease under which the clients work, and
// the record of everything that was said, for the auditor.
//
// A client holds `work` shared from before it asks until its answers are booked; a rebuild holds
// it alone.  So a rebuild never misses an answer that somebody has seen.
#include <atomic>
#include <fstream>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "common/base/files.h"
#include "common/ledger/redis_ledger.h"

namespace proctor::torture {

struct Said {
  std::int64_t begun_ns = 0, ended_ns = 0;
  std::uint64_t epoch = 0, generation = 0;
  LedgerOp op;
  std::string answer;
};

class Journal {
 public:
  explicit Journal(std::vector<ScopeSpec> scopes);

  std::shared_mutex work;
  // Under `work`, shared or alone:
  LedgerLease lease;
  std::uint64_t generation = 0;  // counts the rebuilds

  // Under `work`, shared.  An end is intended before it is sent, as the coordinator's journal holds
  // a result before it settles: whether Redis took it or not, a rebuild books it.  Without this the
  // money that an unanswered end gave back, and that somebody else was granted, would count twice.
  void intend(const LedgerOp& op);
  // `about`: what was reserved, where another client may have asked and not booked it yet.
  void book(const LedgerOp& op, const LedgerAnswer& answer, const ReserveOp* about);
  bool ended_before(const AskId& id, std::uint64_t generation);
  // Under `work`, alone: begins `epoch` on `ledger` and publishes its lease.
  Status rebuild(RedisLedger& ledger, Epoch epoch);

  const std::vector<ScopeSpec>& scopes() const { return scopes_; }
  // What rebuilds booked from intents alone, for the record.
  const std::vector<Said>& booked() const { return booked_; }
  std::size_t pending() { return pending_.size(); }

 private:
  std::vector<ScopeSpec> scopes_;
  std::mutex mutex_;
  std::map<AskId, ReserveOp> pending_;
  std::map<AskId, std::uint64_t> ended_;  // in which generation
  std::map<AskId, LedgerOp> intents_;
  std::vector<Said> booked_;
  std::vector<MicroUsd> spent_;
};

std::int64_t now_ns();
std::string text_of(const LedgerAnswer& answer);
// One line: client, times, epoch, generation, operation, answer; fields parted by tabs.
void write_line(std::ofstream& out, int client, const Said& said);
// The campaign's three keys as JSON.
std::string dump(RedisConnection& connection, const std::string& campaign);

}  // namespace proctor::torture
