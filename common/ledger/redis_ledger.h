#pragma once
// The ledger in Redis, and what its scripts read and answer.
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/base/result.h"
#include "common/ledger/ledger.h"
#include "common/ledger/ledger_store.h"
#include "common/ledger/redis_connection.h"

namespace proctor {
// The text of ledger.lua, rebuild.lua and shared.lua, put into the binary by CMake.
extern const std::string_view kLedgerScript;
extern const std::string_view kRebuildScript;
extern const std::string_view kSharedScript;

// The input and the answers of the ledger's scripts (ledger.lua, rebuild.lua): a batch as
// MessagePack, rows and envelopes as text, one line an answer.  Pure; any thread.  Bytes from Redis
// are hostile until parsed: kCorrupt with what was found.
//
// Source: MONEY 1-7; msgpack.org (str, array, float 64).

// Whole micro-dollars in decimal, as stored.
std::string micros(MicroUsd m);

// "0,1,7": the scopes of a reservation, as stored.
std::string scope_list(const std::vector<ScopeId>& scopes);

// The batch as ledger.lua's third argument.
std::string packed(const std::vector<LedgerOp>& batch);

// Decimal, 0 to kLedgerMax, nothing around it; false: anything else.
bool read_number(std::string_view text, std::int64_t* out);

// One line of ledger.lua's answer to `op`.  A refusal of the ledger is an Error inside the answer.
Result<LedgerAnswer> read_answer(const LedgerOp& op, std::string_view line);

// "cap spent reserved" of an envelope.
Result<ScopeBalance> read_balance(std::string_view text);

// "o held returns": the first line of a batch that touched a shared envelope.
Result<Elsewhere> read_elsewhere(std::string_view line);

// The hash of a shared envelope (shared.lua), sorted by field.  Empty: there is none.
Result<SharedView> read_shared(const std::vector<std::pair<std::string, std::string>>& fields);

// kCorrupt: Redis answered what our scripts never do.
Error bad_reply(std::string_view what);

// So many differences between Redis and the journal are named, the others counted.
inline constexpr std::size_t kDifferencesMost = 20;

// With it another client of the same life works under the coordinator's epoch.
struct LedgerLease {
  Epoch epoch;
  std::string token;
  std::string server;  // run_id of the Redis that was filled
};

// The ledger in Redis: the answers of ledger.h through one atomic script per batch (ledger.lua).
// Owns one connection, opened at the first call and again after a loss.  Blocking, one thread at a
// time: it lives on the coordinator's ledger thread.
//
// One object per life of the coordinator: a random token beside the epoch tells two coordinators
// that took the same epoch (a copied campaign folder) apart.
//
// Errors of every call: kUnavailable, redis is away or refuses for now (repeat the same batch: all
// operations are idempotent by id); kConflict "fenced", a newer coordinator owns the campaign:
// stop; kNotFound, redis restarted or was emptied: what it holds may be old, call begin_epoch
// again; kInvalid, wrong settings of the server; kCorrupt, stored bytes are not ours.  None of them
// left a partial effect, save a lost connection, after which the batch took place wholly or not at
// all.
//
// Source: DISTRIBUTED B3, B6, B7; docs/architecture.md, MONEY 1-7.
class RedisLedger final : public LedgerStore {
 public:
  struct Options {
    RedisEndpoint endpoint;
    std::string campaign;  // id: keys are "proctor:{id}:head", ":scopes" and ":rows"
    std::chrono::milliseconds timeout{5'000};
    std::string shared{};  // name of an envelope shared with others; key "proctor:{shared:NAME}"
    std::string label{};   // of this member, for people
  };
  // kInvalid: a campaign id that is empty, longer than a name or holds a brace or control byte.
  static Result<RedisLedger> open(Options options);

  // Connects if it is not; says early what is wrong with the server.
  Status connect() override;

  // It does not report bytes that no ledger of ours writes; begin_epoch() does.
  Result<std::optional<LedgerHeld>> held() override;

  // Takes the campaign under this epoch and rebuilds its envelopes: `spent` by scope and the
  // pending reservations, both from the journal.  Everything stored before is deleted.  Repeatable.
  // kConflict: the stored epoch is newer.  kCorrupt: the journal's own numbers pass a cap.
  // The value: where Redis held something else than the journal says, one line each (the first
  // kDifferencesMost and their number).  Told, never adopted; nothing when Redis was empty.
  Result<std::vector<std::string>> begin_epoch(Epoch epoch, const std::vector<ScopeSpec>& scopes,
                                               const std::vector<ReserveOp>& pending,
                                               const std::vector<MicroUsd>& spent) override;

  // After begin_epoch: lets other objects, threads and hosts work beside this one.  They are fenced
  // as it is, and kNotFound tells them to wait for a new lease.
  LedgerLease lease() const { return {epoch_, token_, home_}; }
  void join(LedgerLease lease);

  // The server, once connected: for the log.  "redis 7.0.15, user default, persistence none,
  // ..."
  std::string describe() const override;

  // One answer per operation, in order; at most kLedgerBatch.
  Result<std::vector<LedgerAnswer>> apply(Epoch epoch, const std::vector<LedgerOp>& batch) override;

  // All that Redis holds of the campaign at one instant, as it stands there: for an auditor, who
  // needs no epoch.  Each sorted by field; empty where Redis holds nothing.  `shared`: the parts of
  // all members, where this campaign shares an envelope.
  using Fields = std::vector<std::pair<std::string, std::string>>;
  struct Stored {
    Fields head, scopes, rows, shared;
  };
  Result<Stored> read_all();

  void share(SharedPart part) override { part_ = std::move(part); }
  Elsewhere elsewhere() const override { return elsewhere_; }
  Result<SharedView> tend(Epoch epoch, std::uint64_t noted, MicroUsd limit) override;
  Status leave(Epoch epoch) override;
  // Needs no epoch: who looks in from outside may ask it too.
  Result<SharedView> shared() override;
  // A person's word that no campaign but `known` ever spent from it: Redis has it from now on.
  // kConflict: it has it already.
  Status found(MicroUsd cap, const std::vector<SharedMember>& known);
  // Its journal, in which no coordinator writes, says that this member holds no more than `spent`
  // and is none any more.  kNotFound: Redis does not have the envelope.
  Status tell_left(const SharedMember& member);

  // All envelopes at one instant, by scope id.
  Result<std::vector<ScopeBalance>> snapshot() override;

 private:
  RedisLedger(Options options, std::string token);
  Status load_scripts();
  Result<RedisReply> run(std::string* sha, std::string_view script,
                         const std::vector<std::string>& args);
  Status rebuild_step(std::vector<std::string> args);
  Result<RedisReply> run_shared(const std::vector<std::string>& args);
  Status report_part(Epoch epoch, const std::vector<ScopeSpec>& scopes, const ScopeBalance& part);
  Status shared_refusal(std::string_view answer, MicroUsd cap) const;
  Status refusal(std::string_view answer) const;
  Result<Fields> stored(const std::string& key);
  Result<std::vector<std::string>> differences(const std::vector<ScopeSpec>& scopes,
                                               const std::vector<ScopeBalance>& journal,
                                               const std::vector<ReserveOp>& pending);

  Options options_;
  std::string token_;
  Epoch epoch_;
  std::string head_key_, scopes_key_, rows_key_, shared_key_;
  std::optional<SharedPart> part_;
  Elsewhere elsewhere_;
  std::optional<RedisConnection> connection_;
  std::string ledger_sha_, rebuild_sha_, shared_sha_;
  std::string home_;  // run_id of the server that begin_epoch filled; empty: none
};
}  // namespace proctor
