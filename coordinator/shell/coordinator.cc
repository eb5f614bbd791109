#include "coordinator/shell/coordinator.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <iterator>

#include "common/base/log.h"
#include "common/base/system_clock.h"
#include "common/base/version.h"
#include "common/wire/codec.h"
#include "coordinator/core/roster.h"
#include "coordinator/journal/host_key.h"
#include "coordinator/journal/journal_reader.h"
#include "coordinator/journal/owner_lock.h"
#include "coordinator/shell/behind.h"
#include "coordinator/shell/coordinator_loop.h"
#include "coordinator/shell/kept_list.h"
#include "coordinator/shell/open_files.h"
#include "coordinator/shell/restore.h"

namespace proctor {
namespace {

constexpr std::chrono::seconds kGoodbye(3);
// Each result waits for two syncs of a disk, which takes several of them in the time of one.
constexpr std::size_t kArchiveLanes = 8;

Time now() {
  return {mono_now(), wall_now()};
}

}  // namespace

Coordinator::Coordinator(CoordinatorOptions options)
    : options_(std::move(options)),
      loop_(std::make_unique<Loop>()),
      io_(loop_->io),
      bundles_(*options_.definition, options_.campaign),
      archives_(options_.folder),
      allow_files_(options_.folder),
      begun_(wall_now()) {}

Coordinator::~Coordinator() {
  control_.reset();
  allow_thread_.reset();
  ledger_.reset();  // their callbacks post to the loop: they end before it does
  files_.reset();
  if (journal_) (void)journal_->close();
  ports_.clear();
}

Result<std::unique_ptr<Coordinator>> Coordinator::open(CoordinatorOptions options) {
  std::unique_ptr<Coordinator> out(new Coordinator(std::move(options)));
  PROCTOR_CHECK_OK(out->begin());
  return out;
}

Status Coordinator::begin() {
  PROCTOR_CHECK_OK(make_private_dirs(options_.folder.state()));
  std::error_code ec;  // its socket and keys are for us alone
  fs::permissions(options_.folder.state(), fs::perms::owner_all, ec);
  if (ec) return errno_error("chmod " + options_.folder.state().string(), ec.value());
  PROCTOR_TRY(journal_, Journal::open(options_.folder.journal()));
  PROCTOR_CHECK_OK(mark_living());
  if (options_.open_ledger) {
    PROCTOR_TRY(options_.ledger, options_.open_ledger());
  }
  PROCTOR_TRY(const RestoredState state, load_journal());
  for (const MetaSet& m : state.meta)
    if (m.key == kMetaCampaign && m.value != options_.campaign)
      return Error{Errc::kConflict, "the journal is of campaign " + m.value + ", this is " +
                                        options_.campaign + ": the registration has changed"};
  LedgerStart ledger;
  PROCTOR_CHECK_OK(restore(state, ledger));
  std::vector<JournalWrite> first;
  first.push_back(MetaSet{kMetaCampaign, options_.campaign});
  // Its journal was taken away: what comes is another run of what was registered once.
  const bool is_new =
      std::ranges::find(state.meta, kMetaCampaign, &MetaSet::key) == state.meta.end();
  if (is_new && has_begun_here(options_.campaign))
    first.push_back(MetaSet{kMetaRunAgain, to_rfc3339(wall_now())});
  PROCTOR_TRY(std::optional<MetaSet> kept, kept_fact(options_.folder, state.meta));
  if (kept) first.push_back(*std::move(kept));
  for (std::uint32_t i = 0; i < ledger.scopes.size(); ++i)
    first.push_back(ScopeDefined{ScopeId(i), ledger.scopes[i].name, ledger.scopes[i].cap});
  first.push_back(EpochBegun{epoch_, host_name(), ::getpid(), std::string(kVersion), wall_now()});
  PROCTOR_CHECK_OK(journal_->append_and_wait(std::move(first)));
  PROCTOR_CHECK_OK(mark_living());  // of a first life
  // A list that cannot be written costs no run.
  if (const Status s = remember_begun(options_.campaign); !s.ok())
    log::warn("the list of campaigns that have begun here: " + s.error().detail);
  PROCTOR_CHECK_OK(start_ledger(std::move(ledger)));
  files_ = std::make_unique<TaskLanes>("archives", kArchiveLanes);
  PROCTOR_TRY(control_,
              ControlServer::open(io_, options_.folder.control(),
                                  [this](const std::string& line, ControlServer::Reply reply) {
                                    on_control(line, std::move(reply));
                                  }));
  return bind_ports();
}

Status Coordinator::mark_living() {
  if (living_) return ok_status();
  PROCTOR_TRY(living_, LivingMark::take(options_.campaign, options_.folder.campaign,
                                        options_.folder.journal()));
  return ok_status();
}

// All of it, if nothing around it knows more.  What is around is read first: were another
// coordinator at work, it would know less, not more.
Result<RestoredState> Coordinator::load_journal() {
  PROCTOR_CHECK_OK(options_.ledger->connect());
  PROCTOR_TRY(const std::optional<LedgerHeld> held, options_.ledger->held());
  auto evidence = std::async(std::launch::async, [this] {
    // A clock that was set back an hour hides nothing.
    constexpr std::int64_t kSlackMs = 3'600'000;
    auto reader = JournalReader::open(options_.folder.journal());
    const auto last = reader.ok() ? reader->last_fact() : std::optional<WallTime>();
    const std::int64_t since = last.ok() && *last ? (*last)->raw() - kSlackMs : 0;
    return evidence_of(options_.folder, *options_.plan, since);
  });
  Result<RestoredState> state = journal_->load();
  const std::vector<Evidence> found = evidence.get();
  if (!state.ok()) return state;
  std::vector<std::string> behind = unknown_evidence(found, *state);
  if (held)
    for (std::string& problem : unknown_money(*held, *state)) behind.push_back(std::move(problem));
  if (!behind.empty()) return behind_error(options_.folder, behind);
  return state;
}

// The scheduler and the ledger as the journal has them.
Status Coordinator::restore(const RestoredState& state, LedgerStart& ledger) {
  PROCTOR_TRY(RestoredCore restored,
              restore_core(*options_.definition, *options_.plan, options_.removed,
                           options_.scheduler, state, options_.campaign));
  epoch_ = restored.ledger.epoch;
  ledger = std::move(restored.ledger);
  core_ = std::move(restored.scheduler);
  ended_before_ = core_->counts().ended_total();
  // What an earlier life of ours heard of an attempt lies here still, in part or whole.
  heard_before_ = archives_.in_part();
  std::error_code ec;
  for (const RestoredAttempt& a : state.attempts)
    if (a.state == AttemptState::kGranted &&
        fs::exists(options_.folder.attempt(run_name(a.attempt.run), a.attempt.no), ec))
      heard_before_.emplace_back(a.worker, a.attempt);
  return ok_status();
}

Status Coordinator::start_ledger(LedgerStart start) {
  LedgerThread::Callbacks callbacks;
  callbacks.answered = [this](std::vector<LedgerThread::Answered> answers) {
    boost::asio::post(
        io_, [this, moved = std::move(answers)]() mutable { on_ledger(std::move(moved)); });
  };
  callbacks.away = [this](const std::string& why) {
    boost::asio::post(io_, [this, why] {
      ledger_away_ = why;
      ledger_away_since_ = wall_now();
      log::warn("Redis is away: " + why + "; nothing new is started until it is back");
      journal_->append({Note{wall_now(), "redis_away", {}, {}, why}}, [](Status) {});
    });
  };
  callbacks.back = [this] {
    boost::asio::post(io_, [this] {
      ledger_away_.clear();
      log::info("Redis is back");
      journal_->append({Note{wall_now(), "redis_back", {}, {}, ""}}, [](Status) {});
    });
  };
  callbacks.failed = [this](Error e) {
    boost::asio::post(io_, [this, e = std::move(e)] { fail("ledger: " + e.detail); });
  };
  shares_ = start.shared.has_value();
  callbacks.differs = [this](const std::string& what) {
    boost::asio::post(io_, [this, what] { on_ledger_differs(what); });
  };
  callbacks.elsewhere = [this](Elsewhere held) {
    boost::asio::post(io_, [this, held] { on_elsewhere(held); });
  };
  callbacks.note = [this](std::vector<SharedFact> what) {
    boost::asio::post(io_,
                      [this, moved = std::move(what)]() mutable { note_shared(std::move(moved)); });
  };
  PROCTOR_TRY(ledger_,
              LedgerThread::start(options_.ledger, std::move(start), std::move(callbacks)));
  return ok_status();
}

Result<Coordinator::Port::Options> Coordinator::port_options(
    const CoordinatorOptions::Listen& listen) {
  using Security = CoordinatorOptions::Listen::Security;
  Port::Options port;
  port.type = Port::Type::kRouter;
  port.attach = Port::Attach::kBind;
  port.endpoint = listen.endpoint;
  port.insecure_loopback = listen.security == Security::kInsecureLoopback;
  // For each worker.  To one that does not read: then send() says no and its next Sync heals that.
  port.send_hwm = 1'024;
  // From one that talks faster than we listen: then it waits.  Most have a few hundred bytes.
  port.receive_hwm = 256;
  port.message_bytes_max = wire::kPlainFrameBytes;  // the largest that a worker has to send
  if (listen.security != Security::kCurve) return port;
  if (!options_.keys) return Error{Errc::kInvalid, "no key pair for " + listen.endpoint};
  if (!zap_) {
    PROCTOR_TRY(wire::AllowList allow, allow_files_.read());
    PROCTOR_TRY(
        zap_, wire::ZapHandler::start(loop_->zmq, std::move(allow), [](const std::string& reason) {
          log::warn_seldom("refused a connection: " + reason);
        }));
    allow_thread_ = std::make_unique<TaskThread>("allow-list");
  }
  port.curve_server = Port::CurveServer{*options_.keys, zap_};
  return port;
}

Status Coordinator::bind_ports() {
  for (std::size_t i = 0; i < options_.listen.size(); ++i) {
    PROCTOR_TRY(Port::Options port_options_i, port_options(options_.listen[i]));
    Result<std::unique_ptr<Port>> port = Port::open(
        io_, loop_->zmq, std::move(port_options_i),
        [this, i](wire::PeerMessage m) { receive(i, std::move(m)); },
        [this, i](Port::Link link, const std::string& detail) {
          if (link == Port::Link::kRefused && !detail.empty())
            log::warn_seldom("refused a connection: " + detail);
          if (link == Port::Link::kRevoked) key_is_gone(i, detail);
          if (link == Port::Link::kDown) look_who_is_gone();
        });
    if (!port.ok()) return in_context("listen on " + options_.listen[i].endpoint, port.error());
    // Whoever may write to the socket is a worker.
    constexpr std::string_view kIpc = "ipc://";
    const std::string& at = options_.listen[i].endpoint;
    if (at.starts_with(kIpc) && ::chmod(at.c_str() + kIpc.size(), kPrivateFile) != 0)
      return errno_error("chmod " + at.substr(kIpc.size()), errno);
    ports_.push_back(std::move(port).value());
  }
  connections_max_ = connections_that_fit();
  return ok_status();
}

std::vector<std::string> Coordinator::endpoints() const {
  std::vector<std::string> out;
  for (const auto& p : ports_) out.push_back(p->bound_endpoint());
  return out;
}

Coordinator::Outcome Coordinator::run() {
  boost::asio::signal_set signals(io_, SIGINT, SIGTERM);
  std::function<void()> wait_for_signal = [&] {
    signals.async_wait([&](boost::system::error_code ec, int) {
      if (ec) return;
      ask_to_stop();
      wait_for_signal();
    });
  };
  wait_for_signal();
  for (const Command& c : core_->start(now())) std::visit([this](const auto& x) { perform(x); }, c);
  for (const auto& [worker, attempt] : std::exchange(heard_before_, {}))
    feed(EvidenceHeard{worker, attempt});
  tick();
  io_.run();
  leave_shared();
  files_.reset();
  if (outcome_ && outcome_->end == End::kComplete) {  // pieces that were sent twice
    if (const Status cleared = archives_.clear(); !cleared.ok()) log::warn(cleared.error().detail);
  }
  if (options_.on_status) options_.on_status(snapshot());
  std::error_code ec;
  if (fs::exists(options_.folder.journal(), ec))  // else it was moved away
    (void)write_file(options_.folder.status(), to_json(snapshot()), Durability::kLazy);
  if (!outcome_) outcome_ = Outcome{End::kFailed, "the loop ended by itself"};
  return *outcome_;
}

void Coordinator::ask_to_stop() {
  ++stops_;
  if (outcome_) return io_.stop();
  if (2 < stops_) {  // as if it were killed, which loses nothing
    log::warn("interrupted a third time: ending at once; what runs is found by the next life");
    outcome_ = Outcome{End::kStopped, ""};
    return io_.stop();
  }
  if (stops_ == 1) {
    log::info("stopping: running attempts are finished, none is started (again to cancel them)");
    journal_->append({Note{wall_now(), "drain", {}, {}, "signal"}}, [](Status) {});
    feed(DrainAsked{});
    if (!outcome_ && 0 < core_->counts().active)
      log::info("stopping: it waits for " + wound_down());
  } else {
    log::info("cancelling what runs");
    journal_->append({Note{wall_now(), "cancel", {}, {}, "signal"}}, [](Status) {});
    feed(CancelAsked{});
  }
}

// ---------------------------------------------------------------- commands

void Coordinator::feed(const Event& e) {
  if (outcome_ && outcome_->end == End::kFailed) return;
  for (const Command& c : core_->on(e, now())) std::visit([this](const auto& x) { perform(x); }, c);
}

void Coordinator::perform(const Persist& c) {
  written_ = c.seq;
  steps_.asked(c.seq, c.writes.size());
  journal_->append(c.writes, [this, seq = c.seq](Status s) {
    if (!s.ok()) {
      boost::asio::post(io_, [this, why = s.error().detail] { fail("journal: " + why); });
      return;
    }
    durable_ = seq;  // one post carries every commit since the last
    post_durable();
  });
}

void Coordinator::post_durable() {
  if (!durable_posted_.exchange(true)) boost::asio::post(io_, [this] { on_durable(); });
}

void Coordinator::on_durable() {
  durable_posted_ = false;
  const std::uint64_t durable = durable_;
  while (!held_voids_.empty() && held_voids_.front().first <= durable) {
    ledger_->submit(std::move(held_voids_.front().second));
    held_voids_.pop_front();
  }
  if (const auto seq = steps_.next(durable)) feed(Persisted{*seq});
  if (steps_.has_more(durable)) post_durable();  // after whoever else waits for the loop
}

template <class Ops>
static std::vector<LedgerOp> as_ops(const Ops& ops) {
  return {ops.begin(), ops.end()};
}
void Coordinator::perform(const Reserve& c) {
  ledger_->submit(as_ops(c.ops));
}
void Coordinator::perform(const Settle& c) {
  ledger_->submit(as_ops(c.ops));
}
// What is given back may be another campaign's a moment later: the journal knows it first.  Of an
// envelope that is only ours the journal's order says the same.
void Coordinator::perform(const VoidReservations& c) {
  if (shares_ && durable_ < written_)
    held_voids_.emplace_back(written_, as_ops(c.ops));
  else
    ledger_->submit(as_ops(c.ops));
}
void Coordinator::perform(const Forget& c) {
  std::vector<LedgerOp> ops;
  for (const AskId& id : c.ids) ops.push_back(ForgetOp{id});
  ledger_->submit(std::move(ops));
}

void Coordinator::on_ledger(std::vector<LedgerThread::Answered> answers) {
  const bool under_way = !ledger_said_.empty();
  std::move(answers.begin(), answers.end(), std::back_inserter(ledger_said_));
  if (!under_way) hear_ledger();
}

// In the ledger's order, and not more in one turn of the loop than is done in a few milliseconds.
void Coordinator::hear_ledger() {
  constexpr std::size_t kAnswersPerTurn = 500;
  Reserved reserved;
  Settled settled;
  Voided voided;
  std::optional<Elsewhere> elsewhere;
  for (std::size_t n = 0; n < kAnswersPerTurn && !ledger_said_.empty() && !elsewhere; ++n) {
    auto said = std::move(ledger_said_.front());
    ledger_said_.pop_front();
    if (const auto* held = std::get_if<Elsewhere>(&said)) {
      elsewhere = *held;
      break;
    }
    const auto a = std::get<LedgerThread::Answered>(std::move(said));
    if (const auto* error = std::get_if<Error>(&a.answer))
      return fail("ledger: " + error->detail);  // it contradicts us: stop rather than go on wrongly
    if (const auto* r = std::get_if<ReserveOp>(&a.op))
      reserved.answers.push_back({r->id, std::get<ReserveAnswer>(a.answer)});
    else if (const auto* s = std::get_if<SettleOp>(&a.op))
      settled.answers.push_back({s->id, std::get<SettleAnswer>(a.answer)});
    else if (const auto* v = std::get_if<VoidOp>(&a.op))
      voided.ids.push_back(v->id);
  }
  if (!settled.answers.empty()) feed(settled);
  if (!voided.ids.empty()) feed(voided);
  if (!reserved.answers.empty()) feed(reserved);
  if (elsewhere) feed(ElsewhereHeld{*elsewhere});
  if (!ledger_said_.empty()) boost::asio::post(io_, [this] { hear_ledger(); });
}

void Coordinator::perform(const AssignRuns& c) {
  for (std::size_t begin = 0; begin < c.runs.size(); begin += limits::kBatchItems) {
    wire::Assign m;
    m.epoch = epoch_;
    m.settings = bundles_.settings();
    const std::size_t end = std::min(c.runs.size(), begin + limits::kBatchItems);
    for (std::size_t i = begin; i < end; ++i) {
      const RunId run = c.runs[i].attempt.run;
      const PlanRow& row = options_.plan->row(run);
      const Method* method = options_.definition->find_method(options_.plan->method(run));
      PROCTOR_ASSERT(method != nullptr);
      m.runs.push_back({c.runs[i].attempt, run_name(run), options_.plan->task(run).digest,
                        method->digest, row.replicate, row.seed, c.runs[i].ask, row.stage});
    }
    send(c.worker, m);
  }
}

// A list on the wire has limits::kBatchItems items at most.
template <class Send>
static void in_batches(const std::vector<AttemptId>& all, const Send& send_batch) {
  for (std::size_t begin = 0; begin < all.size(); begin += limits::kBatchItems) {
    const auto from = all.begin() + static_cast<std::ptrdiff_t>(begin);
    const std::size_t n = std::min(all.size() - begin, limits::kBatchItems);
    send_batch(std::vector<AttemptId>(from, from + static_cast<std::ptrdiff_t>(n)));
  }
}
void Coordinator::perform(const AckResults& c) {
  in_batches(c.attempts,
             [&](std::vector<AttemptId> batch) { send(c.worker, wire::Ack{std::move(batch)}); });
}
void Coordinator::perform(const CancelAttempts& c) {
  in_batches(c.attempts, [&](std::vector<AttemptId> batch) {
    send(c.worker, wire::Cancel{epoch_, std::move(batch), c.reason});
  });
}
void Coordinator::perform(const ReplySync& c) {
  wire::SyncReply reply = c.reply;
  reply.epoch = epoch_;
  reply.campaign = options_.campaign;
  // So many Syncs a second at most, however many workers there are (DISTRIBUTED R8).
  reply.next_sync_ms = static_cast<std::uint32_t>(sync_interval_of(peers_.size()).count());
  reply.drain = reply.drain || outcome_.has_value();
  send(c.worker, reply);
}
void Coordinator::perform(const ArmTimer& c) {
  loop_->timer.expires_after(std::max(c.at - mono_now(), Millis(0)));
  loop_->timer.async_wait([this](boost::system::error_code ec) {
    if (!ec) feed(TimerFired{});
  });
}
void Coordinator::perform(const Alert& c) {
  if (!c.noted && !spoken_.allows()) return;
  log::warn(c.run ? run_name(*c.run) + ": " + c.text : c.text);
  if (c.noted) return;
  journal_->append({Note{wall_now(), "alert", {}, {}, c.text}}, [](Status) {});
}
void Coordinator::perform(const CampaignEnded& c) {
  if (outcome_) return;
  outcome_ = Outcome{c.complete ? End::kComplete : c.at_gate ? End::kAtGate : End::kStopped, ""};
  for (const Scheduler::UnderWay& u : core_->under_way(1))
    log::warn("ending without " + run_name(u.run) +
              (u.worker.raw().empty() ? "" : " on " + u.worker.raw()) +
              (1 < core_->counts().active ? " and others" : "") +
              ": its worker is silent; the next life waits for it, or charges it as lost");
  say_goodbye();
}

wire::SyncReply Coordinator::greeting() const {
  wire::SyncReply reply;
  reply.epoch = epoch_;
  reply.campaign = options_.campaign;
  reply.next_sync_ms = static_cast<std::uint32_t>(limits::kSyncInterval.count());
  return reply;
}

// Workers are told to leave; after that, or a short while, the loop ends.
void Coordinator::say_goodbye() {
  wire::SyncReply reply = greeting();
  reply.drain = true;
  for (const auto& [id, peer] : peers_) send(id, reply);
  if (peers_.empty() && !(options_.awaited && options_.awaited())) return io_.stop();
  loop_->goodbye_timer.expires_after(kGoodbye);
  loop_->goodbye_timer.async_wait([this](boost::system::error_code ec) {
    if (!ec) io_.stop();
  });
}

void Coordinator::fail(const std::string& why) {
  if (outcome_ && outcome_->end == End::kFailed) return;
  log::error(why);
  outcome_ = Outcome{End::kFailed, why};
  io_.stop();
}

void Coordinator::send(const WorkerId& worker, const wire::Message& message) {
  const auto it = peers_.find(worker);
  if (it == peers_.end()) return;  // it will Sync
  if (!ports_[it->second.port]->send(it->second.routing_id,
                                     wire::encode(message, it->second.version)))
    log::debug("a " + std::string(wire::kind_name(message)) + " to " + worker.raw() +
               " was not sent; its next Sync heals that");
}

}  // namespace proctor
