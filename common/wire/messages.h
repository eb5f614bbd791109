#pragma once
// Messages between coordinator and workers (schemas/wire.md): each with its members in their order
// in its bytes, their bounds, and the version since which they exist (base/fields.h).  Data only;
// the bytes are made in codec.h.
// Level-triggered: a worker's Sync states the whole truth and heals every lost message.
// A list is bounded: who has more sends several messages, or in a Sync the first ones and the rest
// next time.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/digest.h"
#include "common/base/fields.h"
#include "common/base/ids.h"
#include "common/base/money.h"
#include "common/contract/call_limits.h"
#include "common/contract/cost_model.h"
#include "common/score/outcome.h"
#include "common/wire/bounds.h"

namespace proctor::wire {
// That of the newest message or member, or of the newest counter of a Usage.
inline constexpr std::uint32_t kVersion = std::max(13U, kUsageCounters.back().since);

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
  // Its agent's milestones: acceptance cycles of its own that passed (R190).
  std::uint64_t milestones = 0;
};
void fields(auto& v, Is<RunningAttempt> auto& r) {
  v("attempt", r.attempt);
  v("stage", r.stage, up_to(Stage::kUploading));
  v("sandbox_started", r.sandbox_started);
  v("usage", r.usage);
  v("milestones", r.milestones, {.most = kUsageCountMax, .since = 3});
}

struct Sync {
  WorkerId worker;
  BootId boot;
  std::string version;                // of the worker's build
  Epoch epoch_seen;                   // 0: none yet
  std::uint32_t slots = 0;            // how many attempts it may hold at once; 0 while draining
  std::vector<std::string> features;  // "sandbox:bubblewrap", "workspace:overlay", ...
  std::vector<RunningAttempt> running;
  std::vector<AttemptId> unacked;  // results in the spool
  // About its share of the campaign's rates (contract/call_limits.h); 0 and nothing: it
  // asks none.
  std::uint64_t ticket = 0;            // of this Sync: grows within one boot
  std::uint64_t obeyed = 0;            // the ticket of the last reply whose shares it took over
  std::vector<std::uint64_t> calls{};  // granted in its last minute, by bucket
  // The campaign of all the above; empty: it knows of none yet.  Attempts' numbers repeat
  // between campaigns.
  std::string campaign{};
  // Assigned to it, not started, and never will be: they cost nothing.
  std::vector<AttemptId> declined{};
  // Providers of models that had no room for its calls, and for how long.
  std::vector<ProviderHold> holds{};
};
void fields(auto& v, Is<Sync> auto& m) {
  v("worker", m.worker, kName);
  v("boot", m.boot, kAnyNumber);
  v("version", m.version, kName);
  v("epoch_seen", m.epoch_seen, kAnyNumber);
  v("slots", m.slots, {.most = limits::kSlotsMax});
  Rule features = kName;
  features.items = v.version() < 6 ? kFeaturesMaxUntil5 : kFeaturesMax;
  v("features", m.features, features);
  v("running", m.running, {.items = limits::kSlotsMax});
  v("unacked", m.unacked, kBatch);
  v("ticket", m.ticket, since(4, kAnyNumber));
  v("obeyed", m.obeyed, since(4, kAnyNumber));
  v("calls", m.calls, kCounts);
  v("campaign", m.campaign, {.bytes = limits::kNameBytes, .since = 5});
  v("declined", m.declined, since(6, kBatch));
  v("holds", m.holds, kHolds);
}

struct Progress {
  Epoch epoch;
  std::vector<RunningAttempt> running;
};
void fields(auto& v, Is<Progress> auto& m) {
  v("epoch", m.epoch, kAnyNumber);
  v("running", m.running, {.items = limits::kSlotsMax});
}

struct Want {  // bundles it needs before it can start what it was assigned
  std::vector<Digest> digests;
};
void fields(auto& v, Is<Want> auto& m) {
  v("digests", m.digests, kBatch);
}

struct ArchiveChunk {  // part of a run directory's archive, before the Result that names it
  Epoch epoch;
  AttemptId attempt;
  Digest archive;
  std::uint64_t offset = 0;
  std::uint64_t total = 0;
  std::string bytes;
};
void fields(auto& v, Is<ArchiveChunk> auto& m) {
  v("epoch", m.epoch, kAnyNumber);
  v("attempt", m.attempt);
  v("archive", m.archive);
  v("offset", m.offset, {.most = limits::kArchiveBytes});
  v("total", m.total, {.most = limits::kArchiveBytes});
  v("bytes", m.bytes, {.bytes = limits::kChunkBytes, .text = Rule::Text::kBytes});
  v.require(fits(m.offset, m.bytes.size(), m.total), "bytes", "end behind `total`");
}

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
  // With `infrastructure`: not this host, a provider of models had no room (HTTP 429,
  // 503, 529): tried again later, and no mark against the worker.
  bool overload = false;
  // With `infrastructure` and without `overload`: whose failure it looks like, and the
  // failure in words that are equal where it was the same one.  Empty of kHost.
  Fault fault = Fault::kHost;
  std::string cause;
  // Of a worker that knows them; else only the rationale says them.  `fault` is not among them.
  bool has_facts = true;
  AttemptFacts facts{};
};
void fields(auto& v, Is<ResultMessage> auto& m) {
  v("epoch", m.epoch, kAnyNumber);
  v("attempt", m.attempt);
  v("outcome", m.outcome, up_to(RunOutcome::kInvalid));
  Termination told = m.termination, last = Termination::kInfrastructure;
  for (const auto& [end, since, before] : kLaterEnds) {
    if (since <= v.version())
      last = end;
    else if (told == end)
      told = before;
  }
  v("termination", told, up_to(last));
  keep(m.termination, told);
  v("rationale", m.rationale, kProse);
  v("infrastructure", m.infrastructure);
  v("report", m.report);
  v("archive", m.archive);
  v("archive_bytes", m.archive_bytes, {.most = limits::kArchiveBytes});
  v.require((m.archive == Digest()) == (m.archive_bytes == 0), "archive_bytes",
            "size and digest disagree on whether there is an archive");
  v("usage", m.usage);
  v("started_ms", m.started_ms, {.most = kWallMsMax});
  v("finished_ms", m.finished_ms, {.most = kWallMsMax});
  v("overload", m.overload, since(4));
  v.require(m.infrastructure || !m.overload, "overload", "is a kind of `infrastructure`");
  v("fault", m.fault, since(7, up_to(Fault::kAgent)));
  v("cause", m.cause, since(7, kProse));
  const bool of_somebody = m.fault != Fault::kHost;
  v.require(!of_somebody || (m.infrastructure && !m.overload), "fault",
            "is a kind of `infrastructure`");
  v.require(of_somebody != m.cause.empty(), "cause", "is said of a task or an agent");
  if (v.version() < 12) return keep(m.has_facts, false);
  v("has_facts", m.has_facts);
  const int exit = m.facts.agent_exit.value_or(-1);
  std::uint32_t code = 0 <= exit && exit < 256 ? static_cast<std::uint32_t>(exit) + 1 : 0;
  v("agent_exit", code, {.most = 256});  // 0: none; else one more
  if (code != 0) keep(m.facts.agent_exit, static_cast<int>(code) - 1);
  other_fields(v, m.facts);
  if (13 <= v.version()) judged_fields(v, m.facts);
  v.require(!m.facts.no_model || m.fault == Fault::kAgent, "no_model", "is said of an agent");
  v.require(!m.facts.not_judged || m.outcome == RunOutcome::kInvalid, "not_judged",
            "is said of an invalid run");
}

struct Leave {  // an orderly goodbye: nothing is running here any more
  WorkerId worker;
  BootId boot;
  // Results that its spool still holds: brought by its next life, if there is one.
  std::vector<AttemptId> spooled{};
};
void fields(auto& v, Is<Leave> auto& m) {
  v("worker", m.worker, kName);
  v("boot", m.boot, kAnyNumber);
  v("spooled", m.spooled, since(6, kBatch));
}

// From coordinator to worker.

struct SyncReply {
  Epoch epoch;
  std::string campaign;  // its id: a worker keeps spools of several apart
  std::uint32_t next_sync_ms = 0;
  std::vector<AttemptId> cancel;  // running there and not wanted any more
  std::vector<AttemptId> acked;   // of `unacked`: durable here, the spool may drop them
  std::vector<AttemptId> resend;  // of `unacked`: send (again) archive and result
  bool drain = false;             // finish what runs, then Leave
  // Running there: their agents must go (the dominance rule), what they left is judged.
  std::vector<AttemptId> stop{};
  // Calls it may grant in any minute, by bucket, until kRateLease after the Sync of this
  // ticket went out; no shares: no word about rates.  The ticket is of the Sync that is answered.
  std::uint64_t ticket = 0;
  std::vector<std::uint64_t> shares{};
  // The desired state of everything that runs there: it stands still, and its clocks too.
  bool suspended = false;
  // Runs that wait and that this worker could take beside those that it was assigned;
  // nullopt: an older coordinator does not say.  A worker of several campaigns gives out its slots
  // by it.
  std::optional<std::uint32_t> demand{};
  // As in a Sync, from other workers.
  std::vector<ProviderHold> holds{};
};
void fields(auto& v, Is<SyncReply> auto& m) {
  v("epoch", m.epoch, kAnyNumber);
  v("campaign", m.campaign, kName);
  v("next_sync_ms", m.next_sync_ms, {.most = kNextSyncMsMax});
  v("cancel", m.cancel, kBatch);
  v("acked", m.acked, kBatch);
  v("resend", m.resend, kBatch);
  v("drain", m.drain);
  v("stop", m.stop, since(3, kBatch));
  v("ticket", m.ticket, since(4, kAnyNumber));
  v("shares", m.shares, kCounts);
  v("suspended", m.suspended, since(4));
  v("demand", m.demand, {.most = kDemandMax, .since = 9});
  v("holds", m.holds, kHolds);
}

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
void fields(auto& v, Is<Assignment> auto& r) {
  v("attempt", r.attempt);
  v("run_name", r.run_name, {.bytes = kRunNameBytes, .text = Rule::Text::kName});
  v("contract", r.contract);
  v("method", r.method);
  v("replicate", r.replicate);
  v("seed", r.seed);
  v("ask", r.ask, {.most = kLedgerMax.micros()});
  v("stage", r.stage, since(2));
}

struct Assign {
  Epoch epoch;
  Digest settings;  // bundle: campaign-wide caps, prices, sigma
  std::vector<Assignment> runs;
};
void fields(auto& v, Is<Assign> auto& m) {
  v("epoch", m.epoch, kAnyNumber);
  v("settings", m.settings);
  v("runs", m.runs, kBatch);
}

struct Bundle {       // contract, method or settings by digest; see contract/bundle.h
  Digest digest;      // of the whole
  std::string bytes;  // the whole (total 0), or the part that begins at `offset`
  std::uint64_t offset = 0;
  std::uint64_t total = 0;  // 0: not in parts; else the size of the whole
};
void fields(auto& v, Is<Bundle> auto& m) {
  v("digest", m.digest);
  v("bytes", m.bytes, {.bytes = kBundlePartBytes, .text = Rule::Text::kBytes});
  v("offset", m.offset, {.most = limits::kContractBundleBytes});
  v("total", m.total, {.most = limits::kContractBundleBytes});
  const bool whole = m.total == 0 && m.offset == 0;
  v.require(whole || (m.total != 0 && fits(m.offset, m.bytes.size(), m.total)), "bytes",
            "end behind `total`");
}

struct Ack {
  std::vector<AttemptId> results;  // durable: the spool may drop them
};
void fields(auto& v, Is<Ack> auto& m) {
  v("results", m.results, kBatch);
}

struct ChunkAck {
  AttemptId attempt;
  std::uint64_t next_offset = 0;  // everything below it is on disk
};
void fields(auto& v, Is<ChunkAck> auto& m) {
  v("attempt", m.attempt);
  v("next_offset", m.next_offset, {.most = limits::kArchiveBytes});
}

struct Cancel {
  Epoch epoch;
  std::vector<AttemptId> attempts;
  std::string reason;
};
void fields(auto& v, Is<Cancel> auto& m) {
  v("epoch", m.epoch, kAnyNumber);
  v("attempts", m.attempts, kBatch);
  v("reason", m.reason, kProse);
}

struct Refuse {  // and nothing else will be said to this peer
  std::string reason;
};
void fields(auto& v, Is<Refuse> auto& m) {
  v("reason", m.reason, kProse);
}

// A kind of message: its number on the wire, and its name in errors and logs.  Numbers are never
// renumbered or reused; a retired kind keeps its own.
template <class M>
struct KindOf {
  std::uint32_t number;
  const char* name;
};
inline constexpr std::tuple kKinds{KindOf<Sync>{1, "Sync"},
                                   KindOf<Progress>{2, "Progress"},
                                   KindOf<Want>{3, "Want"},
                                   KindOf<ArchiveChunk>{4, "ArchiveChunk"},
                                   KindOf<ResultMessage>{5, "Result"},
                                   KindOf<Leave>{6, "Leave"},
                                   KindOf<SyncReply>{7, "SyncReply"},
                                   KindOf<Assign>{8, "Assign"},
                                   KindOf<Bundle>{9, "Bundle"},
                                   KindOf<Ack>{10, "Ack"},
                                   KindOf<ChunkAck>{11, "ChunkAck"},
                                   KindOf<Cancel>{12, "Cancel"},
                                   KindOf<Refuse>{13, "Refuse"}};
template <class M>
inline constexpr std::uint32_t kKindOf = std::get<KindOf<M>>(kKinds).number;

// One of them: what has no row above is no message.
template <class... M>
std::variant<M...> message_of(const std::tuple<KindOf<M>...>&);
using Message = decltype(message_of(kKinds));

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
  result.facts = {};
  result.rationale = std::move(why);
  result.report = result.archive = Digest();
  result.archive_bytes = 0;
}
}  // namespace proctor::wire
