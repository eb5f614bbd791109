#include "tests/fault/liar/honest.h"

#include "common/base/result.h"

namespace proctor::liar {
namespace {
constexpr std::chrono::milliseconds kSyncEvery(60), kSendAgain(400);
constexpr std::uint64_t kLongestRunMs = 25;
}  // namespace

Honest::Honest(Network& network, std::string name, const wire::KeyPair& key, const Played& played,
               fs::path scratch, std::uint64_t seed)
    : name_(std::move(name)),
      played_(played),
      scratch_(std::move(scratch)),
      random_(seed),
      boot_(random_.any()),
      peer_(network, key, [this](wire::Message m) { on(std::move(m)); }) {}

std::vector<wire::RunningAttempt> Honest::running() const {
  std::vector<wire::RunningAttempt> out;
  for (const auto& [id, work] : works_) {
    if (work.stage != Stage::kRunning) continue;
    wire::RunningAttempt r;
    r.attempt = id;
    r.stage = wire::Stage::kAgent;
    r.sandbox_started = true;
    out.push_back(r);
  }
  return out;
}

void Honest::sync() {
  wire::Sync m;
  m.worker = WorkerId(name_);
  m.boot = boot_;
  m.version = "honest";
  m.epoch_seen = epoch_;
  m.slots = 1;
  m.features = {"sandbox:bubblewrap"};
  m.running = running();
  for (const auto& [id, work] : works_)
    if (work.stage == Stage::kDelivering) m.unacked.push_back(id);
  m.campaign = epoch_ == Epoch(0) ? "" : kCampaignId;
  if (peer_.say(m)) next_sync_ = Clock::now() + kSyncEvery;
}

// The archive from there on, in one piece or several; the result after its last.
void Honest::send_from(Work& work, std::uint64_t offset) {
  work.sent = Clock::now();
  const Evidence& e = work.said;
  if (offset < e.archive.size()) {
    const std::size_t piece = 1 + random_.below(e.archive.size());
    peer_.say(wire::ArchiveChunk{work.epoch, e.result.attempt, e.result.archive, offset,
                                 e.archive.size(), e.archive.substr(offset, piece)});
    return;
  }
  peer_.say(e.result);
}

Status Honest::tick() {
  const auto now = Clock::now();
  if (!peer_.is_up()) {
    was_up_ = false;
    return ok_status();
  }
  bool news = !was_up_;
  was_up_ = true;
  std::vector<Work*> ended;
  for (auto& [id, work] : works_) {
    if (work.stage == Stage::kRunning && work.ends <= now) {
      Claim claim;
      claim.attempt = id;
      claim.epoch = work.epoch;
      claim.outcome = random_.one_in(3)   ? RunOutcome::kSuccess
                      : random_.one_in(4) ? RunOutcome::kAcceptanceError
                                          : RunOutcome::kFailure;
      claim.rationale = "honest word of " + name_;
      claim.usage.agent_ms = 1 + random_.below(1000);
      claim.usage.tool_calls = random_.below(20);
      PROCTOR_TRY(work.said, make_evidence(played_, claim, scratch_ / name_));
      work.stage = Stage::kDelivering;
      ended.push_back(&work);
    } else if (work.stage == Stage::kDelivering && work.sent + kSendAgain <= now) {
      ended.push_back(&work);
    }
  }
  // The Sync that names a result goes before it.
  if (news || !ended.empty() || next_sync_ <= now) sync();
  for (Work* work : ended) send_from(*work, 0);
  return ok_status();
}

void Honest::on(wire::Message message) {
  std::visit(Overload{[&](const wire::SyncReply& m) {
                        epoch_ = m.epoch;
                        drained_ = drained_ || m.drain;
                        for (const AttemptId& id : m.cancel)
                          if (works_.contains(id) && works_.at(id).stage != Stage::kAcked)
                            complaints_.push_back("attempt " + to_string(id) + " of " + name_ +
                                                  " was not wanted any more");
                        for (const AttemptId& id : m.acked)
                          if (works_.contains(id)) works_.at(id).stage = Stage::kAcked;
                        for (const AttemptId& id : m.resend)
                          if (const auto it = works_.find(id);
                              it != works_.end() && it->second.stage == Stage::kDelivering &&
                              it->second.sent + kSyncEvery <= Clock::now())
                            send_from(it->second, 0);
                      },
                      [&](const wire::Assign& m) {
                        if (m.epoch < epoch_) return;
                        epoch_ = m.epoch;
                        for (const wire::Assignment& run : m.runs) {
                          if (works_.contains(run.attempt)) continue;
                          Work& work = works_[run.attempt];
                          work.assigned = run;
                          work.epoch = m.epoch;
                          work.ends = Clock::now() +
                                      std::chrono::milliseconds(random_.below(kLongestRunMs));
                        }
                        peer_.say(wire::Progress{epoch_, running()});
                      },
                      [&](const wire::ChunkAck& m) {
                        if (const auto it = works_.find(m.attempt);
                            it != works_.end() && it->second.stage == Stage::kDelivering)
                          send_from(it->second, m.next_offset);
                      },
                      [&](const wire::Ack& m) {
                        for (const AttemptId& id : m.results)
                          if (works_.contains(id)) works_.at(id).stage = Stage::kAcked;
                      },
                      [&](const wire::Cancel& m) {
                        complaints_.push_back(name_ + " was told to cancel: " + m.reason);
                      },
                      [&](const wire::Refuse& m) {
                        complaints_.push_back(name_ + " was refused: " + m.reason);
                      },
                      [](const auto&) {}},
             message);
}

void Honest::leave() {
  peer_.say(wire::Leave{WorkerId(name_), boot_});
}

}  // namespace proctor::liar
