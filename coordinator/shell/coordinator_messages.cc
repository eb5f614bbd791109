// Words of workers, from bytes to events.  Everything here is hostile until decoded and bound to a
// worker that has said its name.
#include <fmt/format.h>

#include "common/base/ids.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "common/wire/codec.h"
#include "common/wire/messages.h"
#include "coordinator/core/roster.h"
#include "coordinator/journal/legacy_text.h"
#include "coordinator/shell/coordinator.h"
#include "coordinator/shell/coordinator_loop.h"
#include "coordinator/shell/loop_guards.h"

namespace proctor {
// Of what waits for the file thread: pieces of archives, of a megabyte each, and archives that are
// complete.  Beyond it senders wait for their turn.
constexpr std::size_t kFilesWaitingMax = 64;
constexpr std::size_t kBundlePart = std::size_t{1} << 20;
// Workers write the rules of a verdict into each manifest since this version of the protocol.
constexpr std::uint32_t kJudgedSince = 13;
// Who asks again for a bundle asks with each Sync until it is there; on one connection nothing is
// lost, so for a while it is on its way.
constexpr Millis kBundleUnderWay{15'000};
// libzmq takes a pipe down after it has told of it; a killed child is a zombie a moment later.
constexpr std::chrono::milliseconds kUntilGone(100);

// What strangers can cause, so not more of it than somebody can read.
void Coordinator::warn(const std::string& text) {
  if (spoken_.allows()) log::warn(text);
}

bool Coordinator::refuse_version(std::size_t port, const wire::PeerMessage& from) {
  const std::uint32_t version = wire::peek_version(from.bytes);
  const std::uint32_t oldest = options_.judged ? kJudgedSince : wire::kOldestServed;
  if (version == 0 || (oldest <= version && wire::is_served(version))) return false;
  const wire::Refuse refusal = wire::wrong_version(version, oldest);
  warn("refused a worker: " + refusal.reason);
  ports_[port]->send(from.peer, wire::encode(refusal));
  return true;
}

template <class M>
void Coordinator::on_message(std::size_t, const wire::PeerMessage&, M) {
  warn("a peer sent a message only a coordinator may send");
}

const WorkerId* Coordinator::worker_of(std::size_t port, const std::string& routing_id) const {
  const auto it = by_routing_id_.find({port, routing_id});
  return it == by_routing_id_.end() ? nullptr : &it->second;
}

// A key speaks for the worker it is registered as and for nobody else; a name that a living worker
// has is refused to a second one.
bool Coordinator::may_use_name(std::size_t port, const wire::PeerMessage& from,
                               const wire::Sync& m) {
  const std::string& name = m.worker.raw();
  const auto refuse = [&](const std::string& why) {
    warn("refused worker " + printable(name) + ": " + why);
    ports_[port]->send(from.peer, wire::encode(wire::Refuse{why}));
    return false;
  };
  if (!is_worker_name(name)) return refuse("a worker's name is " + std::string(kWorkerNameRule));
  if (!from.user.empty() && name != from.user)
    return refuse("its key is registered as " + from.user);
  const auto it = peers_.find(m.worker);
  if (it == peers_.end()) {
    const auto full = [&] {
      return kRosterMax <= peers_.size() || connections_max_ <= by_routing_id_.size();
    };
    if (full()) forget_silent_peers();
    if (kRosterMax <= peers_.size())
      return refuse(std::to_string(peers_.size()) + " workers are connected already");
    if (full() && worker_of(port, from.peer) == nullptr)
      return refuse(fmt::format(
          "{} workers are connected already, and more do not fit: the coordinator may open {} "
          "files (ulimit -n); start it again with a higher hard limit",
          by_routing_id_.size(), open_files_limit()));
    return core_->takes_name(m.worker) ||
           refuse(fmt::format("{} workers are known already, some of them drained or in "
                              "quarantine (proctor release takes them back)",
                              core_->roster().names()));
  }
  if (it->second.boot == m.boot) return true;
  const Seat seat = seat_of(it->second, m);
  return seat == Seat::kFree ||
         (seat == Seat::kTaken && refuse("a worker of that name is connected"));
}

// Of a name that another life of a worker wants.  A link that stays open says nothing of who was
// behind it: whether the earlier life goes on is known once it speaks, or does not.  Until then the
// later one gets no answer, and asks again.
Coordinator::Seat Coordinator::seat_of(Peer& peer, const wire::Sync& rival) {
  constexpr std::size_t kRivalsMost = 8;
  const Instant now = mono_now();
  const Millis silence = 3 * sync_interval_of(peers_.size());
  if (peer.last + silence <= now || !ports_[peer.port]->probe(peer.routing_id)) return Seat::kFree;
  if (kRivalsMost <= peer.rivals.size() && !peer.rivals.contains(rival.boot)) peer.rivals.clear();
  const auto [since, is_new] = peer.rivals.emplace(rival.boot, now);
  if (is_new)
    warn(
        fmt::format("worker {} has come anew and its earlier life has not gone: it waits until "
                    "that has been silent for {} s",
                    rival.worker.raw(), std::chrono::ceil<std::chrono::seconds>(silence).count()));
  return since->second < peer.last ? Seat::kTaken : Seat::kUnknown;
}

// Another life of it, or another connection.
bool Coordinator::arrives(std::size_t port, const wire::PeerMessage& from,
                          const wire::Sync& m) const {
  const auto it = peers_.find(m.worker);
  return it == peers_.end() || it->second.boot != m.boot || it->second.port != port ||
         it->second.routing_id != from.peer;
}

void Coordinator::heard_from(std::size_t port, const wire::PeerMessage& from, const wire::Sync& m) {
  Peer& peer = peers_[m.worker];
  if (peer.port != port || peer.routing_id != from.peer) {
    if (!peer.routing_id.empty()) by_routing_id_.erase({peer.port, peer.routing_id});
    peer = {.port = port, .routing_id = from.peer, .version = {}, .boot = {}, .last = {}};
    by_routing_id_[{port, from.peer}] = m.worker;
  }
  peer.boot = m.boot;
  peer.version = wire::peek_version(from.bytes);
  peer.last = mono_now();
  std::erase_if(peer.bundles,
                [&](const auto& b) { return b.second + kBundleUnderWay <= peer.last; });
}

void Coordinator::forget_silent_peers() {
  const Instant now = mono_now();
  std::erase_if(peers_, [&](const auto& entry) {
    const Peer& peer = entry.second;
    if (now < peer.last + limits::kLease) return false;
    by_routing_id_.erase({peer.port, peer.routing_id});
    return true;
  });
}

// A ROUTER tells that somebody went, not who.
void Coordinator::look_who_is_gone() {
  if (std::exchange(looking_who_is_gone_, true)) return;
  loop_->gone_timer.expires_after(kUntilGone);
  loop_->gone_timer.async_wait([this](boost::system::error_code ec) {
    if (ec) return;
    looking_who_is_gone_ = false;
    std::vector<WorkerDisconnected> gone;
    for (const auto& [id, peer] : peers_)
      if (!ports_[peer.port]->probe(peer.routing_id)) gone.push_back({id, peer.boot});
    for (const WorkerDisconnected& e : gone) feed(e);
    if (!gone.empty() && !outcome_ && options_.on_worker_gone) options_.on_worker_gone();
  });
}

// A file system that hangs gets one look, not one a second.
void Coordinator::look_who_may_join() {
  if (!allow_thread_ || std::exchange(looking_who_may_join_, true)) return;
  allow_thread_->post([this] {
    AllowFiles::Change change = allow_files_.look();
    if (change.list) zap_->replace(*change.list);
    boost::asio::post(
        io_, [this, change = std::move(change)]() mutable { may_join(std::move(change)); });
  });
}

void Coordinator::may_join(AllowFiles::Change change) {
  looking_who_may_join_ = false;
  for (const std::string& mistake : change.mistakes)
    log::warn("allow-list: " + printable(mistake, limits::kDetailBytes));
  if (!change.list) return;
  log::info("the allow-list has changed: " + std::to_string(change.list->size()) +
            " workers may join");
  std::vector<WorkerDisconnected> gone;
  for (const auto& [id, peer] : peers_)
    if (options_.listen[peer.port].security == CoordinatorOptions::Listen::Security::kCurve &&
        !zap_->lists(id.raw()))
      gone.push_back({id, peer.boot});
  for (const WorkerDisconnected& e : gone) {
    log::warn("the key of worker " + e.worker.raw() + " is off the allow-list: it is not heard");
    feed(e);
  }
}

// Its words are dropped from now on: it gets nothing new.
void Coordinator::key_is_gone(std::size_t port, const std::string& routing_id) {
  const WorkerId* worker = worker_of(port, routing_id);
  warn("a key that is off the allow-list was used by " +
       (worker == nullptr ? to_hex(routing_id) : "worker " + worker->raw()));
  if (worker != nullptr) feed(WorkerDisconnected{*worker, peers_.at(*worker).boot});
}

template <>
void Coordinator::on_message(std::size_t port, const wire::PeerMessage& from, wire::Sync m) {
  if (!may_use_name(port, from, m)) return;
  // Its epochs and attempts are another campaign's.  Once it has heard of ours it Syncs again.
  if (!m.campaign.empty() && m.campaign != options_.campaign) {
    ports_[port]->send(from.peer, wire::encode(greeting(), wire::peek_version(from.bytes)));
    return;
  }
  // Its word alone, and nobody's word ends a campaign.
  if (epoch_ < m.epoch_seen) return refuse_epoch(port, from, m);
  if (arrives(port, from, m) && !floods_.takes_arrival(m.worker))
    return warn("worker " + m.worker.raw() + " comes and goes too often: not heard for a while");
  heard_from(port, from, m);
  feed(WorkerSynced{std::move(m)});
}

void Coordinator::refuse_epoch(std::size_t port, const wire::PeerMessage& from,
                               const wire::Sync& m) {
  const std::string why = fmt::format(
      "it has seen epoch {} of this campaign, and this coordinator is of epoch {}: a newer one was "
      "started over another copy of the journal, or the worker is wrong",
      m.epoch_seen.raw(), epoch_.raw());
  ports_[port]->send(from.peer, wire::encode(wire::Refuse{why}));
  // Once of each: it will say so again and again.
  if (kRosterMax <= epoch_refused_.size() || !epoch_refused_.insert(m.worker).second) return;
  log::error("refused worker " + m.worker.raw() + ": " + why);
  const Json detail = {{"reason", why}, {"worker", m.worker.raw()}};
  journal_->append({Note{wall_now(), "worker_refused", {}, {}, detail.dump()}}, [](Status) {});
}

template <>
void Coordinator::on_message(std::size_t port, const wire::PeerMessage& from, wire::Progress m) {
  if (const WorkerId* w = worker_of(port, from.peer); w != nullptr && m.epoch == epoch_)
    feed(ProgressReceived{*w, std::move(m)});
}

template <>
void Coordinator::on_message(std::size_t port, const wire::PeerMessage& from, wire::Want m) {
  const WorkerId* worker = worker_of(port, from.peer);
  if (worker == nullptr) return;
  Peer& peer = peers_.at(*worker);
  for (const Digest& digest : m.digests) {
    const std::string* bytes = bundles_.find(digest);
    if (bytes == nullptr) {
      warn("a worker wants " + digest.short_hex() + ", which this campaign does not have");
      continue;
    }
    if (!peer.bundles.emplace(digest, mono_now()).second) continue;
    if (!send_bundle(peer, digest, *bytes)) peer.bundles.erase(digest);  // it will ask again
  }
}

bool Coordinator::send_bundle(const Peer& to, const Digest& digest, const std::string& bytes) {
  const bool whole = bytes.size() <= kBundlePart;
  for (std::size_t at = 0; at < bytes.size(); at += kBundlePart) {
    const wire::Bundle part{.digest = digest,
                            .bytes = bytes.substr(at, kBundlePart),
                            .offset = at,
                            .total = whole ? 0 : bytes.size()};
    if (!ports_[to.port]->send(to.routing_id, wire::encode(part, to.version))) return false;
  }
  return true;
}

template <>
void Coordinator::on_message(std::size_t port, const wire::PeerMessage& from,
                             wire::ArchiveChunk m) {
  const WorkerId* worker = worker_of(port, from.peer);
  if (worker == nullptr || epoch_ < m.epoch) return;
  // Nothing touches the disk for an attempt that is not this worker's, or has its result already.
  if (!core_->awaits(*worker, m.attempt)) {
    // Its worker asked what becomes of it while its result was being recorded, and was told to send
    // it again: the two crossed, and all of it is here.
    if (m.attempt.run.raw() < options_.plan->size() &&
        is_there(options_.folder.attempt(run_name(m.attempt.run), m.attempt.no)))
      return;
    return warn(fmt::format("worker {} sent an archive of attempt {}, which nobody awaits of it",
                            worker->raw(), to_string(m.attempt)));
  }
  feed(EvidenceHeard{*worker, m.attempt});
  if (kFilesWaitingMax < files_->waiting()) return;
  const std::uint64_t run = m.attempt.run.raw();
  files_->post(run, [this, worker = *worker, m = std::move(m)] {
    Result<std::uint64_t> next = archives_.put(worker, m);
    if (!next.ok())
      return log::error("archive of attempt " + to_string(m.attempt) + ": " + next.error().detail);
    boost::asio::post(io_, [this, worker, attempt = m.attempt, next = *next] {
      send(worker, wire::ChunkAck{attempt, next});
    });
  });
}

template <>
void Coordinator::on_message(std::size_t port, const wire::PeerMessage& from,
                             wire::ResultMessage m) {
  const WorkerId* worker = worker_of(port, from.peer);
  if (worker == nullptr) return;
  if (!m.has_facts) m.facts = journal::facts_in(m.outcome, m.termination, m.rationale);
  m.facts.fault = m.fault;
  // Whose attempt it is, is asked before its archive is looked at; what the core does not await it
  // refuses, or acknowledges once more.
  if (m.archive_bytes == 0 || epoch_ < m.epoch || !core_->awaits(*worker, m.attempt))
    return feed(ResultReceived{*worker, std::move(m)});
  feed(EvidenceHeard{*worker, m.attempt});
  finish_archive(*worker, std::move(m));
}

void Coordinator::finish_archive(const WorkerId& worker, wire::ResultMessage m) {
  if (kFilesWaitingMax < files_->waiting()) return;  // its next Sync offers it again
  if (!unpacking_.insert(m.attempt).second) return;
  const std::uint64_t run = m.attempt.run.raw();
  ArchiveStore::Identity identity{
      options_.campaign,
      run_name(m.attempt.run),
      core_->granted_at(m.attempt),
      wall_now(),
      [this](const Usage& usage) { return price(core_->settings().cost_model, usage); },
      std::cref(bundles_.rules()),
      options_.judged};
  files_->post(run, [this, worker, m = std::move(m), identity = std::move(identity)]() mutable {
    ArchiveStore::Kept kept = archives_.finish(worker, m, identity);
    const std::uint64_t have = archives_.have(worker, m.attempt);
    boost::asio::post(io_,
                      [this, worker, have, m = std::move(m), kept = std::move(kept)]() mutable {
                        unpacking_.erase(m.attempt);
                        archive_finished(worker, std::move(m), kept, have);
                      });
  });
}

void Coordinator::archive_finished(const WorkerId& worker, wire::ResultMessage m,
                                   const ArchiveStore::Kept& kept, std::uint64_t have) {
  using State = ArchiveStore::Kept::State;
  switch (kept.state) {
    case State::kWhole:
      return feed(ResultReceived{worker, std::move(m)});
    case State::kMissing:
    case State::kDamaged:  // it has none of it then
      return send(worker, wire::ChunkAck{m.attempt, have});
    case State::kHost:  // disk full, say: its next Sync offers it again
      return log::error("archive of attempt " + to_string(m.attempt) + ": " + kept.why);
    case State::kRefused:
      break;
  }
  // Not a run directory, or one that says something else than its result: neither is believed, and
  // the worker that sent them has failed.
  warn("worker " + worker.raw() + " sent evidence of attempt " + to_string(m.attempt) +
       " that is not kept: " + printable(kept.why));
  wire::lose_evidence(m,
                      "its evidence was refused: " + printable(kept.why, limits::kDetailBytes / 2));
  feed(ResultReceived{worker, std::move(m)});
}

template <>
void Coordinator::on_message(std::size_t port, const wire::PeerMessage& from, wire::Leave m) {
  const WorkerId* worker = worker_of(port, from.peer);
  if (worker == nullptr || *worker != m.worker) return;
  WorkerLeft left{m.worker, m.boot};
  if (6 <= wire::peek_version(from.bytes))
    left.spooled = std::set<AttemptId>(m.spooled.begin(), m.spooled.end());
  feed(left);
  by_routing_id_.erase({port, from.peer});
  peers_.erase(m.worker);
  if (outcome_ && peers_.empty()) io_.stop();
}

void Coordinator::receive(std::size_t port, wire::PeerMessage message) {
  const std::string& speaker = message.user.empty() ? message.peer : message.user;
  if (!floods_.takes(port, speaker, wire::peek_kind(message.bytes))) return;
  Result<wire::Message> decoded = wire::decode(message.bytes);
  if (!decoded.ok()) {
    warn("garbage from a peer" + (message.user.empty() ? "" : " (" + message.user + ")") + ": " +
         printable(decoded.error().detail));
    refuse_version(port, message);
    return;
  }
  if (refuse_version(port, message)) return;
  std::visit([&](auto&& m) { on_message(port, message, std::forward<decltype(m)>(m)); },
             std::move(decoded).value());
}
}  // namespace proctor
