#pragma once
// Messages between coordinator and workers (schemas/wire.md).  Data only; bytes: codec.h.
// Level-triggered: a worker's Sync states the whole truth and heals every lost message.
// A list holds at most limits::kBatchItems items (`running`: kSlotsMax): who has more sends several
// messages, or in a Sync the first ones and the rest next time.  The other bounds: codec.h.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/digest.h"
#include "common/base/ids.h"
#include "common/contract/call_limits.h"
#include "common/contract/cost_model.h"
#include "common/score/outcome.h"

namespace proctor::wire {
inline constexpr std::uint32_t kVersion = 11;
inline constexpr std::uint32_t kOldestVersion =
    1;  // that is read: spools and meter books keep messages
// The oldest that a coordinator serves.  Before it workers knew nothing of shares of rates and of
// standing still, so that a campaign's limits would not hold.
inline constexpr std::uint32_t kOldestServed = 4;

enum class Stage : std::uint8_t {  // of a running attempt
  kAssigned,
  kPreparing,
  kAgent,
  kExtracting,
  kAcceptance,
  kPackaging,
  kUploading
};

// From worker to coordinator.

struct RunningAttempt {
  AttemptId attempt;
  Stage stage = Stage::kAssigned;
  bool sandbox_started = false;  // blame for a lost worker needs it
  Usage usage;
  // Since 3.  Its agent's milestones: acceptance cycles of its own that passed (R190).
  std::uint64_t milestones = 0;
};
struct Sync {
  WorkerId worker;
  BootId boot;
  std::string version;                // of the worker's build
  Epoch epoch_seen;                   // 0: none yet
  std::uint32_t slots = 0;            // how many attempts it may hold at once; 0 while draining
  std::vector<std::string> features;  // "sandbox:bubblewrap", "workspace:overlay", ...
  std::vector<RunningAttempt> running;
  std::vector<AttemptId> unacked;  // results in the spool
  // Since 4.  About its share of the campaign's rates (contract/call_limits.h); 0 and nothing: it
  // asks none.
  std::uint64_t ticket = 0;            // of this Sync: grows within one boot
  std::uint64_t obeyed = 0;            // the ticket of the last reply whose shares it took over
  std::vector<std::uint64_t> calls{};  // granted in its last minute, by bucket
  // Since 5.  The campaign of all the above; empty: it knows of none yet.  Attempts' numbers repeat
  // between campaigns.
  std::string campaign{};
  // Since 6.  Assigned to it, not started, and never will be: they cost nothing.
  std::vector<AttemptId> declined{};
  // Since 11.  Providers of models that had no room for its calls, and for how long.
  std::vector<ProviderHold> holds{};
};
struct Progress {
  Epoch epoch;
  std::vector<RunningAttempt> running;
};
struct Want {  // bundles it needs before it can start what it was assigned
  std::vector<Digest> digests;
};
struct ArchiveChunk {  // part of a run directory's archive, before the Result that names it
  Epoch epoch;
  AttemptId attempt;
  Digest archive;
  std::uint64_t offset = 0;
  std::uint64_t total = 0;
  std::string bytes;
};
struct ResultMessage {
  Epoch epoch;  // the one it was assigned under
  AttemptId attempt;
  RunOutcome outcome = RunOutcome::kInvalid;
  Termination termination = Termination::kCompleted;
  std::string rationale;        // for people, bounded
  bool infrastructure = false;  // the host failed, not the agent: a new attempt may be made
  Digest report;                // of report.json
  Digest archive;               // zeros and size 0: there is none (null sandbox)
  std::uint64_t archive_bytes = 0;
  Usage usage;
  std::int64_t started_ms = 0;  // wall time, for people
  std::int64_t finished_ms = 0;
  // Since 4.  With `infrastructure`: not this host, a provider of models had no room (HTTP 429,
  // 503, 529): tried again later, and no mark against the worker.
  bool overload = false;
  // Since 7.  With `infrastructure` and without `overload`: whose failure it looks like, and the
  // failure in words that are equal where it was the same one.  Empty of kHost.
  Fault fault = Fault::kHost;
  std::string cause;
};
struct Leave {  // an orderly goodbye: nothing is running here any more
  WorkerId worker;
  BootId boot;
  // Since 6.  Results that its spool still holds: brought by its next life, if there is one.
  std::vector<AttemptId> spooled{};
};

// From coordinator to worker.

struct SyncReply {
  Epoch epoch;
  std::string campaign;  // its id: a worker keeps spools of several apart
  std::uint32_t next_sync_ms = 0;
  std::vector<AttemptId> cancel;  // running there and not wanted any more
  std::vector<AttemptId> acked;   // of `unacked`: durable here, the spool may drop them
  std::vector<AttemptId> resend;  // of `unacked`: send (again) archive and result
  bool drain = false;             // finish what runs, then Leave
  // Since 3.  Running there: their agents must go (the dominance rule), what they left is judged.
  std::vector<AttemptId> stop{};
  // Since 4.  Calls it may grant in any minute, by bucket, until kRateLease after the Sync of this
  // ticket went out; no shares: no word about rates.  The ticket is of the Sync that is answered.
  std::uint64_t ticket = 0;
  std::vector<std::uint64_t> shares{};
  // Since 4.  The desired state of everything that runs there: it stands still, and its clocks too.
  bool suspended = false;
  // Since 9.  Runs that wait and that this worker could take beside those that it was assigned;
  // nullopt: an older coordinator does not say.  A worker of several campaigns gives out its slots
  // by it.
  std::optional<std::uint32_t> demand{};
  // Since 11.  As in a Sync, from other workers.
  std::vector<ProviderHold> holds{};
};
struct Assignment {
  AttemptId attempt;
  std::string run_name;  // task/method/rN
  Digest contract;
  Digest method;
  std::uint32_t replicate = 0;
  std::uint32_t seed = 0;   // of this run, from the plan
  MicroUsd ask;             // reserved for it: it may not spend more
  std::uint32_t stage = 0;  // index into the stages of the settings
};
struct Assign {
  Epoch epoch;
  Digest settings;  // bundle: campaign-wide caps, prices, sigma
  std::vector<Assignment> runs;
};
struct Bundle {       // contract, method or settings by digest; see contract/bundle.h
  Digest digest;      // of the whole
  std::string bytes;  // the whole (total 0), or the part that begins at `offset`
  std::uint64_t offset = 0;
  std::uint64_t total = 0;  // 0: not in parts; else the size of the whole
};
struct Ack {
  std::vector<AttemptId> results;  // durable: the spool may drop them
};
struct ChunkAck {
  AttemptId attempt;
  std::uint64_t next_offset = 0;  // everything below it is on disk
};
struct Cancel {
  Epoch epoch;
  std::vector<AttemptId> attempts;
  std::string reason;
};
struct Refuse {  // and nothing else will be said to this peer
  std::string reason;
};

using Message = std::variant<Sync, Progress, Want, ArchiveChunk, ResultMessage, Leave, SyncReply,
                             Assign, Bundle, Ack, ChunkAck, Cancel, Refuse>;

// How a worker's Sync says, among its features, that the meter books of an earlier life of its are
// whole: whatever that life began is running or unacknowledged in this Sync, so what it does not
// mention never began.
inline std::string books_feature(BootId life) {
  return "books:" + std::to_string(life.raw());
}

inline bool has_books_of(const Sync& sync, BootId life) {
  return std::ranges::find(sync.features, books_feature(life)) != sync.features.end();
}

// Makes of a result what is left once it cannot be checked: its evidence was lost, damaged,
// refused, or never came.  It decides no outcome and names no evidence, and a new attempt may be
// made.  Usage, times and identity stay.  Pure; any thread.
inline void lose_evidence(ResultMessage& result, std::string why) {
  result.outcome = RunOutcome::kInvalid;
  result.termination = Termination::kInfrastructure;
  result.infrastructure = true;
  result.overload = false;
  result.fault = Fault::kHost;
  result.cause.clear();
  result.rationale = std::move(why);
  result.report = result.archive = Digest();
  result.archive_bytes = 0;
}
}  // namespace proctor::wire
