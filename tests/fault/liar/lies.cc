#include "tests/fault/liar/lies.h"

#include <algorithm>

#include "common/base/result.h"
#include "common/wire/messages.h"

namespace proctor::liar {
namespace {

constexpr std::uint32_t kFar = 4'000'000'000;

std::vector<std::string> other_names(const Liar::Workers& others) {
  std::vector<std::string> out{"liar-x",
                               "liar2",
                               "lia",
                               "Liar",
                               "local-1",
                               "w\xe2\x80\xae"
                               "1",
                               "..",
                               "a b"};
  for (const auto& other : others) {
    out.push_back(other->name());
    out.push_back(other->name() + "-1");
  }
  return out;
}

}  // namespace

const char* to_string(Lie lie) {
  static constexpr const char* kNames[] = {
      "join",      "sync",        "other_name",     "epoch_ahead",   "progress",        "want",
      "chunk",     "bare_result", "garbage_result", "forged_result", "replayed_result", "fault",
      "take_back", "leave",       "wrong_way",      "garbage",       "old_version",     "burst",
      "reconnect"};
  static_assert(std::size(kNames) == std::size_t(Lie::kCount));
  return kNames[std::size_t(lie)];
}
const char* to_string(Target target) {
  static constexpr const char* kNames[] = {
      "never", "unmade", "others_running", "others_delivering", "others_acked", "own", "own_ended"};
  static_assert(std::size(kNames) == std::size_t(Target::kCount));
  return kNames[std::size_t(target)];
}
const char* to_string(Phase phase) {
  static constexpr const char* kNames[] = {"first_life", "before_others", "later_life", "over"};
  static_assert(std::size(kNames) == std::size_t(Phase::kCount));
  return kNames[std::size_t(phase)];
}

Liar::Liar(Network& network, const wire::KeyPair& key, const Played& played, const Workers& others,
           fs::path scratch, std::uint64_t seed, std::optional<Lie> without, Counters& counters)
    : played_(played),
      others_(others),
      scratch_(std::move(scratch)),
      random_(seed),
      without_(without),
      counters_(counters),
      boot_(random_.any()),
      first_(network, key, [this](wire::Message m) { on(std::move(m)); }),
      second_(network, key, [this](wire::Message m) { on(std::move(m)); }) {}

Status Liar::connect() {
  PROCTOR_CHECK_OK(first_.connect());
  return second_.connect();
}
void Liar::close() {
  first_.close();
  second_.close();
}

void Liar::on(wire::Message message) {
  std::visit(Overload{[&](const wire::SyncReply& m) {
                        epoch_ = std::max(epoch_, m.epoch);
                        campaign_ = m.campaign;
                      },
                      [&](const wire::Assign& m) {
                        epoch_ = std::max(epoch_, m.epoch);
                        digests_.push_back(m.settings);
                        for (const wire::Assignment& run : m.runs) {
                          own_[run.attempt] = m.epoch;
                          digests_.push_back(run.contract);
                        }
                      },
                      [&](const wire::Ack& m) {
                        for (const AttemptId& id : m.results)
                          if (own_.contains(id)) own_ended_.insert(id);
                      },
                      [&](const wire::ChunkAck& m) {
                        if (own_.contains(m.attempt)) begun_.insert(m.attempt);
                      },
                      [](const auto&) {}},
             message);
}

// First whose, so that what is rare is met as often as what is not.
Liar::Aim Liar::aim() {
  std::array<std::vector<AttemptId>, std::size_t(Target::kCount)> all;
  const auto add = [&](Target t, AttemptId id) { all[std::size_t(t)].push_back(id); };
  const std::uint32_t runs = played_.plan.size();
  add(Target::kNever, {RunId(runs + static_cast<std::uint32_t>(random_.below(3))), AttemptNo(1)});
  add(Target::kNever, {RunId(15'999'999), AttemptNo(1)});
  add(Target::kNever, {RunId(static_cast<std::uint32_t>(random_.below(runs))), AttemptNo(kFar)});
  std::set<AttemptId> made;
  for (const auto& other : others_) {
    for (const auto& [id, work] : other->works()) {
      made.insert(id);
      add(work.stage == Honest::Stage::kRunning      ? Target::kOthersRunning
          : work.stage == Honest::Stage::kDelivering ? Target::kOthersDelivering
                                                     : Target::kOthersAcked,
          id);
    }
  }
  for (const auto& [id, epoch] : own_) {
    made.insert(id);
    add(own_ended_.contains(id) ? Target::kOwnEnded : Target::kOwn, id);
  }
  for (std::uint32_t r = 0; r < runs; ++r)
    for (std::uint32_t no = 1; no <= 3; ++no)
      if (const AttemptId id{RunId(r), AttemptNo(no)}; !made.contains(id)) add(Target::kUnmade, id);
  // An attempt of the liar's own that has ended is there for a moment only: where there is one, it
  // is aimed at every other time.
  if (const auto& ended = all[std::size_t(Target::kOwnEnded)]; !ended.empty() && random_.one_in(2))
    return {Target::kOwnEnded, random_.of(ended)};
  for (;;) {
    const auto kind = static_cast<Target>(random_.below(std::size_t(Target::kCount)));
    if (const auto& of = all[std::size_t(kind)]; !of.empty()) return {kind, random_.of(of)};
  }
}

std::vector<AttemptId> Liar::some_attempts(const Aim& at) {
  std::vector<AttemptId> out{at.attempt};
  for (std::uint64_t n = random_.below(4); 0 < n; --n) out.push_back(aim().attempt);
  if (random_.one_in(3)) out.push_back(at.attempt);  // twice
  if (random_.one_in(40)) out.resize(4096, at.attempt);
  return out;
}

Epoch Liar::some_epoch() {
  switch (random_.below(6)) {
    case 0:
      return Epoch(0);
    case 1:
      return Epoch(epoch_.raw() == 0 ? 0 : epoch_.raw() - 1);
    case 2:
      return Epoch(epoch_.raw() + 1);
    case 3:
      return Epoch(random_.any());
    default:
      return epoch_;
  }
}

BootId Liar::some_boot() {
  if (random_.one_in(6)) boot_ = BootId(random_.any());
  if (random_.one_in(6)) return random_.of(others_)->boot();
  return random_.one_in(10) ? BootId(0) : boot_;
}

Digest Liar::some_digest() {
  if (!digests_.empty() && random_.one_in(2)) return random_.of(digests_);
  return random_.one_in(4) ? Digest() : sha256(random_.bytes(8));
}

Usage Liar::some_usage() {
  Usage u;
  u.agent_ms = random_.below(1'000);
  if (random_.one_in(3)) u.agent_ms = kUsageCountMax;
  if (random_.one_in(3)) u.priced_micros = random_.below(kUsageCountMax);
  if (random_.one_in(4)) u.model_calls = u.input_tokens = u.stored_bytes = kUsageCountMax;
  return u;
}

std::vector<wire::RunningAttempt> Liar::some_running(const Aim& at) {
  std::vector<wire::RunningAttempt> out;
  for (const AttemptId& id : some_attempts(at)) {
    wire::RunningAttempt r;
    r.attempt = id;
    r.stage = static_cast<wire::Stage>(random_.below(7));
    r.sandbox_started = random_.one_in(2);
    r.usage = some_usage();
    r.milestones = random_.below(3);
    out.push_back(r);
  }
  return out;
}

wire::Sync Liar::some_sync(const Aim& at) {
  wire::Sync m;
  m.worker = WorkerId(kLiarName);
  m.boot = some_boot();
  m.version = random_.one_in(5) ? "1\xe2\x80\xae" : "liar";
  m.epoch_seen = random_.one_in(3) ? Epoch(0) : epoch_;
  m.slots = static_cast<std::uint32_t>(random_.one_in(20) ? 4096 : random_.below(3));
  m.features = {"sandbox:bubblewrap"};
  if (random_.one_in(5)) m.features.resize(32, "sandbox:anything");
  if (!random_.one_in(3)) m.running = some_running(at);
  if (random_.one_in(2)) m.unacked = some_attempts(at);
  m.ticket = random_.one_in(2) ? random_.any() : 0;
  m.obeyed = random_.one_in(2) ? random_.any() : 0;
  if (random_.one_in(3)) m.calls.resize(random_.below(64), 1'000'000);
  if (random_.one_in(3))
    for (std::size_t i = 0; i < kHoldsMax; ++i)
      m.holds.push_back({"held-" + std::to_string(random_.any()), kHoldMsMax});
  m.campaign = random_.one_in(6)   ? std::string("another\x1b[2J")
               : random_.one_in(3) ? std::string()
                                   : campaign_;
  return m;
}

wire::ResultMessage Liar::some_result(const Aim& at) {
  wire::ResultMessage m;
  m.epoch = own_.contains(at.attempt) && !random_.one_in(4) ? own_.at(at.attempt) : some_epoch();
  m.attempt = at.attempt;
  m.outcome = random_.one_in(2) ? RunOutcome::kSuccess : static_cast<RunOutcome>(random_.below(4));
  m.termination =
      random_.one_in(2) ? Termination::kCompleted : static_cast<Termination>(random_.below(7));
  m.rationale = random_.one_in(3) ? "\x1b]0;mine\x07\xe2\x80\xae" : "a lie";
  m.infrastructure = random_.one_in(5);
  m.overload = m.infrastructure && random_.one_in(3);
  m.report = some_digest();
  m.usage = some_usage();
  return m;
}

wire::ArchiveChunk Liar::some_chunk(const Aim& at) {
  wire::ArchiveChunk m;
  m.epoch = some_epoch();
  m.attempt = at.attempt;
  m.archive = some_digest();
  m.bytes = random_.bytes(random_.one_in(30) ? 1'000'000 : random_.below(3'000));
  m.offset = random_.one_in(2) ? 0 : random_.below(5'000);
  m.total = random_.one_in(3) ? limits::kArchiveBytes : m.offset + m.bytes.size();
  return m;
}

Status Liar::send_forged(const Aim& at) {
  Claim claim;
  claim.attempt = at.attempt;
  claim.epoch = own_.contains(at.attempt) ? own_.at(at.attempt) : epoch_;
  claim.outcome = RunOutcome::kSuccess;
  claim.campaign = campaign_;
  claim.rationale = "forged";
  claim.without_rules = random_.one_in(4);
  if (played_.plan.size() <= at.attempt.run.raw()) claim.attempt.run = RunId(0);
  PROCTOR_TRY(Evidence e, make_evidence(played_, claim, scratch_ / "liar"));
  e.result.attempt = at.attempt;
  if (random_.one_in(4)) e.result.outcome = RunOutcome::kFailure;  // than its report says
  digests_.push_back(e.result.archive);
  Peer& peer = some_peer();
  const std::size_t half = e.archive.size() / 2;
  const auto piece = [&](std::size_t from, std::size_t size) {
    peer.say(wire::ArchiveChunk{e.result.epoch, at.attempt, e.result.archive, from,
                                e.archive.size(), e.archive.substr(from, size)});
  };
  piece(0, half);
  if (!random_.one_in(8)) piece(half, std::string::npos);
  peer.say(e.result);
  return ok_status();
}

wire::Message Liar::some_wrong_way(const Aim& at) {
  switch (random_.below(7)) {
    case 0:
      return wire::Ack{some_attempts(at)};
    case 1:
      return wire::Cancel{some_epoch(), some_attempts(at), "because"};
    case 2:
      return wire::ChunkAck{at.attempt, random_.below(limits::kArchiveBytes)};
    case 3:
      return wire::Refuse{"no"};
    case 4: {
      wire::Assign m;
      m.epoch = some_epoch();
      m.runs.push_back({at.attempt, "add/noop/r1", some_digest(), some_digest(), 1, 1, {}, 0});
      return m;
    }
    case 5:
      return wire::Bundle{some_digest(), "{}", 0, 0};
    default: {
      wire::SyncReply m;
      m.epoch = some_epoch();
      m.campaign = campaign_;
      m.drain = true;
      return m;
    }
  }
}

std::string Liar::some_garbage(const Aim& at) {
  if (random_.one_in(3)) return random_.bytes(1 + random_.below(200));
  std::string frame =
      random_.one_in(2) ? wire::encode(some_sync(at)) : wire::encode(some_result(at));
  if (random_.one_in(3)) frame.resize(1 + random_.below(frame.size()));
  for (std::uint64_t n = 1 + random_.below(4); 0 < n && !frame.empty(); --n)
    frame[random_.below(frame.size())] = static_cast<char>(random_.any());
  return frame;
}

Status Liar::tell(Lie lie, const Aim& at) {
  Peer& peer = some_peer();
  switch (lie) {
    case Lie::kJoin: {
      wire::Sync m = some_sync(at);
      m.boot = boot_;
      m.slots = 1 + static_cast<std::uint32_t>(random_.below(2));
      m.epoch_seen = epoch_;
      m.campaign = campaign_;
      m.running.clear();
      for (const auto& [id, epoch] : own_)
        if (!own_ended_.contains(id) && random_.one_in(2))
          m.running.push_back({id, wire::Stage::kAgent, true, {}, 0});
      first_.say(m);
      break;
    }
    case Lie::kSync:
      peer.say(some_sync(at));
      break;
    case Lie::kOtherName: {
      wire::Sync m = some_sync(at);
      m.worker = WorkerId(random_.of(other_names(others_)));
      peer.say(m);
      break;
    }
    case Lie::kEpochAhead: {
      wire::Sync m = some_sync(at);
      m.epoch_seen = Epoch(random_.one_in(2) ? UINT64_MAX : epoch_.raw() + 1);
      m.campaign = random_.one_in(2) ? std::string() : campaign_;
      peer.say(m);
      break;
    }
    case Lie::kProgress:
      peer.say(wire::Progress{some_epoch(), some_running(at)});
      break;
    case Lie::kWant: {
      wire::Want m;
      for (std::uint64_t n = random_.below(20); 0 < n; --n) m.digests.push_back(some_digest());
      if (random_.one_in(10)) m.digests.resize(4096, some_digest());
      peer.say(m);
      break;
    }
    case Lie::kChunk:
      peer.say(some_chunk(at));
      break;
    case Lie::kBareResult:
      peer.say(some_result(at));
      break;
    case Lie::kGarbageResult: {
      const std::string noise = random_.bytes(1 + random_.below(500));
      wire::ResultMessage m = some_result(at);
      m.archive = sha256(noise);
      m.archive_bytes = noise.size();
      peer.say(wire::ArchiveChunk{m.epoch, m.attempt, m.archive, 0, noise.size(), noise});
      peer.say(m);
      break;
    }
    case Lie::kForgedResult:
      return send_forged(at);
    case Lie::kReplayedResult: {
      const Honest& other = *random_.of(others_);
      for (const auto& [id, work] : other.works()) {
        if (work.stage == Honest::Stage::kRunning || random_.one_in(2)) continue;
        wire::ResultMessage m = work.said.result;
        if (random_.one_in(2)) m.attempt = at.attempt;
        if (random_.one_in(2)) m.outcome = static_cast<RunOutcome>(random_.below(4));
        if (random_.one_in(3)) m.epoch = some_epoch();
        if (random_.one_in(2))
          peer.say(wire::ArchiveChunk{m.epoch, m.attempt, m.archive, 0, work.said.archive.size(),
                                      work.said.archive});
        peer.say(m);
      }
      break;
    }
    case Lie::kFault: {
      wire::ResultMessage m = some_result(at);
      m.infrastructure = true;
      m.overload = false;
      m.outcome = RunOutcome::kInvalid;
      m.termination =
          random_.one_in(2) ? Termination::kAgentUnavailable : Termination::kInfrastructure;
      m.fault = random_.one_in(2) ? Fault::kTask : Fault::kAgent;
      m.cause = random_.one_in(4) ? "\x1b[2J" + random_.bytes(20) : "setup: exit 1";
      peer.say(m);
      break;
    }
    case Lie::kTakeBack: {
      wire::ArchiveChunk piece = some_chunk(at);
      piece.epoch = epoch_;
      first_.say(piece);
      wire::Sync m = some_sync(at);
      m.epoch_seen = epoch_;
      m.campaign = campaign_;
      m.running.clear();
      m.unacked.clear();
      if (random_.one_in(2)) {
        m.boot = boot_;
        m.declined = some_attempts(at);
      } else {  // or of a life that is over
        m.features.push_back(wire::books_feature(boot_));
        m.boot = boot_ = BootId(random_.any());
      }
      first_.say(m);
      break;
    }
    case Lie::kLeave: {
      const Honest& other = *random_.of(others_);
      peer.say(random_.one_in(2) ? wire::Leave{WorkerId(other.name()), other.boot()}
                                 : wire::Leave{WorkerId(kLiarName), some_boot()});
      break;
    }
    case Lie::kWrongWay:
      peer.say(some_wrong_way(at));
      break;
    case Lie::kGarbage:
      peer.say_bytes(some_garbage(at));
      break;
    case Lie::kOldVersion: {
      std::string frame = wire::encode(some_sync(at), 4);
      if (random_.one_in(2)) frame[1] = static_cast<char>(random_.below(100));
      peer.say_bytes(frame);
      break;
    }
    case Lie::kBurst: {
      std::string frame;
      switch (random_.below(5)) {
        case 0:
          frame = wire::encode(some_sync(at));
          break;
        case 1:
          frame = wire::encode(some_result(at));
          break;
        case 2:
          frame = wire::encode(wire::Progress{epoch_, some_running(at)});
          break;
        case 3:
          frame = wire::encode(some_chunk(at));
          break;
        default:
          frame = some_garbage(at);
      }
      for (int n = 0; n < 200 && peer.say_bytes(frame); ++n) {
      }
      break;
    }
    case Lie::kReconnect:
      return peer.connect();
    case Lie::kCount:
      break;
  }
  return ok_status();
}

Status Liar::lie(Phase phase) {
  const auto what = static_cast<Lie>(random_.below(std::size_t(Lie::kCount)));
  const Aim at = aim();
  if (what == without_) return ok_status();
  ++counters_.by_target[std::size_t(what)][std::size_t(at.kind)];
  ++counters_.by_phase[std::size_t(what)][std::size_t(phase)];
  return tell(what, at);
}

Status Liar::give_up() {
  const auto now = std::chrono::steady_clock::now();
  if (!giving_up_) {
    giving_up_ = true;
    close();
    boot_ = BootId(random_.any());
    next_ = now + std::chrono::milliseconds(120);
    return ok_status();
  }
  if (now < next_) return ok_status();
  next_ = now + std::chrono::milliseconds(120);
  if (!first_.is_up()) return first_.connect();
  wire::Sync m;
  m.worker = WorkerId(kLiarName);
  m.boot = boot_;
  m.version = "liar";
  m.epoch_seen = epoch_;
  m.features = {"sandbox:bubblewrap"};
  first_.say(m);
  leave();
  return ok_status();
}

void Liar::leave() {
  first_.say(wire::Leave{WorkerId(kLiarName), boot_});
}

}  // namespace proctor::liar
