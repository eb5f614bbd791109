#include "coordinator/shell/coordinator.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cmath>
#include <future>
#include <iterator>

#include "common/base/log.h"
#include "common/base/result.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "common/base/version.h"
#include "common/contract/cost_model.h"
#include "common/wire/asio.h"
#include "common/wire/codec.h"
#include "coordinator/core/events.h"
#include "coordinator/core/notes.h"
#include "coordinator/core/roster.h"
#include "coordinator/journal/host_key.h"
#include "coordinator/journal/journal_reader.h"
#include "coordinator/shell/behind.h"
#include "coordinator/shell/campaign_view.h"
#include "coordinator/shell/coordinator_loop.h"

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
  for (const RestoredAttempt& a : state.attempts)
    if (a.state == AttemptState::kGranted &&
        is_there(options_.folder.attempt(run_name(a.attempt.run), a.attempt.no)))
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
  if (is_there(options_.folder.journal()))  // else it was moved away
    (void)write_file(options_.folder.status(), status_text(snapshot()), Durability::kLazy);
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

// Commands of the core.

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

// Questions of an operator at the control socket: words to an event, the core's answer to words.

namespace {
using Verdict = ControlAnswer::Verdict;

std::string not_understood(const Error& error) {
  return encode(ControlAnswer{Verdict::kInvalid, error.detail, {}});
}
}  // namespace

void Coordinator::on_control(const std::string& line, ControlServer::Reply reply) {
  const Result<ControlRequest> request = parse_control_request(line);
  if (!request.ok()) return reply(not_understood(request.error()));
  if (outcome_)
    return reply(encode(ControlAnswer{Verdict::kUnavailable, "the campaign is ending", {}}));
  if (request->act == kActExplain) return reply(encode(explained(*request)));
  const Result<OperatorAct> act = act_of(*request, names_of(*options_.plan, *core_), wall_now());
  if (!act.ok()) return reply(not_understood(act.error()));
  // From here on it is done, whoever still listens.
  if (request->taken && !reply.first(kTakenLine))
    return log::info("operator " + printable(act->by) + ": " + request->act +
                     " was withdrawn before it was heard: nothing is done");
  const std::uint64_t ticket = ++last_ticket_;
  asked_.emplace(ticket, std::move(reply));
  log::info("operator " + printable(act->by) + ": " + request->act);
  feed(OperatorAsked{ticket, *act});
}

void Coordinator::perform(const Answer& c) {
  log::info("operator's act: " + c.answer.text);
  const auto asked = asked_.extract(c.ticket);
  if (asked.empty()) return;
  ControlAnswer answer{verdict_of(c.answer.verdict), c.answer.text, {}};
  if (c.answer.short_of_money) answer.explanation = {{"code", kCodeShort}};
  asked.mapped()(encode(answer));
}

ControlAnswer Coordinator::explained(const ControlRequest& request) const {
  const Result<RunId> run = find_run(*options_.plan, request.runs);
  if (!run.ok()) return {Verdict::kInvalid, run.error().detail, {}};
  const Explanation why = core_->why(*run);
  return {Verdict::kDone, why.text, to_json(why)};
}

// The coordinator's part in an envelope that campaigns share (ledger.h): what its journal has
// to know before Redis may rely on it.

namespace {
std::string described(const SharedFact& fact) {
  return std::visit(
      Overload{[](const SharedMember& m) {
                 const std::string who = fmt::format("campaign {} ({}) ", m.id, printable(m.name));
                 if (m.state == SharedMember::State::kLeft)
                   return who + fmt::format("has left, {} spent", format_usd(m.spent));
                 return who + fmt::format("may hold up to {}", format_usd(m.ceiling));
               },
               [](const SharedLimit& own) {
                 return fmt::format("all members know of this campaign; it may hold up to {} of it",
                                    format_usd(own.limit));
               }},
      fact);
}
}  // namespace

// Two arithmetics that disagree cannot both be trusted with money: what runs is paid for as the
// rules say, and nothing new starts until a person has looked.
void Coordinator::perform(const RaiseCaps& c) {
  ledger_->raise(c.scopes, c.reviewed);
}

void Coordinator::on_elsewhere(Elsewhere held) {
  const bool under_way = !ledger_said_.empty();
  ledger_said_.emplace_back(held);
  if (!under_way) hear_ledger();
}

void Coordinator::on_ledger_differs(const std::string& what) {
  if (outcome_) return;
  log::error("the ledger contradicts its rules: " + what +
             ". Nothing more is started; what runs is finished and charged by the rules. Compare "
             "with proctor verify, then go on with proctor resume");
  journal_->append({Note{wall_now(), "ledger_differs", {}, {}, what},
                    Note{wall_now(), "drain", {}, {}, "the ledger contradicts its rules"}},
                   [](Status) {});
  feed(DrainAsked{});
}

void Coordinator::note_shared(std::vector<SharedFact> what) {
  std::vector<JournalWrite> writes;
  for (const SharedFact& fact : what) {
    log::info("shared envelope: " + described(fact));
    writes.emplace_back(note_of(fact, wall_now()));
  }
  journal_->append(std::move(writes), [this, what = std::move(what)](Status s) {
    if (!s.ok()) return;  // whoever waits for the same journal ends this life
    boost::asio::post(io_, [this, what] { ledger_->noted(what); });
  });
}

// After a clean end nothing of it is reserved, and nothing will be before its next life: the others
// need not wait for it.  The journal first: from then on it brings no envelope back.
void Coordinator::leave_shared() {
  if (!shares_ || !outcome_ || outcome_->end == End::kFailed) return;
  for (const ScopeBalance& b : core_->balances())
    if (b.reserved != MicroUsd::zero()) return;
  const Status noted =
      journal_->append_and_wait({note_of(SharedLimit{MicroUsd::zero()}, wall_now())});
  if (noted.ok()) ledger_->leave();
}

// The coordinator's word on itself, once a second.

namespace {
constexpr std::chrono::seconds kStatusEvery(1);
constexpr std::int64_t kFirstWorkerMs = 5'000;  // a campaign's own workers have joined by then
// `here`: runs that have ended in this life of ours.
void foretell(StatusSnapshot& s, std::uint64_t here) {
  const std::uint64_t left = s.queued + s.active;
  const bool over = s.state == "complete" || s.state == "stopped" || s.state.starts_with("failed");
  if (!over && left == 0 && 0 < s.held) s.eta_waits = "a person (proctor approve or cancel)";
  if (over || left == 0) return;
  if (s.gate && s.active == 0 && s.in_backoff == 0 && s.queued == s.gate->behind) {
    s.eta_waits = "stage " + s.gate->stage + ", which " + s.gate->text;
    return;
  }
  // What follows "running; " stands in the line already, and says of whom the runs wait.
  const bool runs = s.state == "running" || s.state.starts_with("running; ");
  if (s.active == 0 && !runs) {
    s.eta_waits = s.state.starts_with("paused") ? "proctor unpause" : s.state;
    return;
  }
  if (s.active == 0 && !s.ready) {
    s.eta_waits = s.workers.empty() ? "a first worker" : "a worker that takes work";
    return;
  }
  if (s.active == 0 && s.state != "running") {
    s.eta_waits = "a worker that can run what is left";
    return;
  }
  if (s.active == 0 && s.in_backoff == s.queued) {
    s.eta_waits = "runs to be tried again";
    return;
  }
  if (here == 0) return;
  const double each = static_cast<double>(s.at.raw() - s.begun.raw()) / static_cast<double>(here);
  // Of a count of n events the rate lies within 1.96 / sqrt(n) of what was seen, with 95 %.
  const double off = 1.96 / std::sqrt(static_cast<double>(here));
  const auto after = [&](double factor) {
    return static_cast<std::int64_t>(each * static_cast<double>(left) * factor);
  };
  s.eta_ms = after(1);
  s.eta_low_ms = after(1 / (1 + off));
  if (off < 1) s.eta_high_ms = after(1 / (1 - off));
}
}  // namespace

void Coordinator::tick() {
  const StatusSnapshot status = snapshot();
  if (options_.on_status) options_.on_status(status);
  write_status(status);
  look_who_may_join();
  constexpr std::uint64_t kForgetEvery = 60;  // seconds
  if (++ticks_ % kForgetEvery == 0) forget_silent_peers();
  floods_.next_second();
  if (const std::uint64_t held_back = spoken_.next_second(); 0 < held_back)
    log::warn(std::to_string(held_back) + " more warnings and alerts were not written down");
  loop_->status_timer.expires_after(kStatusEvery);
  loop_->status_timer.async_wait([this](boost::system::error_code ec) {
    if (!ec) tick();
  });
}

// A disk that hangs gets one of them, not one a second.
void Coordinator::write_status(StatusSnapshot status) {
  if (writing_status_->exchange(true)) return;
  files_->post(
      0, [path = options_.folder.status(), status = std::move(status), writing = writing_status_] {
        (void)write_file(path, status_text(status), Durability::kLazy);
        *writing = false;
      });
}

// "2 runs (a/b/r1 on w1, ...)": what stands between us and the end.
std::string Coordinator::wound_down() const {
  constexpr std::size_t kShown = 3;
  const std::vector<Scheduler::UnderWay> first_ones = core_->under_way(kShown);
  // Of a run that was cancelled before its attempt is still on the way.
  const std::uint64_t active = std::max<std::uint64_t>(core_->counts().active, first_ones.size());
  if (active == 0) return "workers to hand over what they have";
  std::string out = counted(active, "run") + " (";
  bool first = true;
  std::string silent;
  for (const Scheduler::UnderWay& u : first_ones) {
    out += (first ? "" : ", ") + run_name(u.run);
    if (!u.worker.raw().empty()) out += " on " + u.worker.raw();
    first = false;
    const auto w = core_->roster().find(u.worker);
    if (w && core_->roster().at(*w).suspect && silent.empty())
      silent = fmt::format(
          "; worker {} has not been heard of since {}: proctor kick {} {} gives up "
          "what it had",
          u.worker.raw(), to_rfc3339(core_->roster().at(*w).since),
          options_.folder.campaign.string(), u.worker.raw());
  }
  if (kShown < active) out += " and " + std::to_string(active - kShown) + " more";
  out += stops_ < 2 ? "); interrupt again to cancel" : "); they are being cancelled";
  return out + silent;
}

// The first of them by name of a state, those who need somebody before those who are at work, and
// these before those who are gone; the others are counted.
void Coordinator::list_workers(StatusSnapshot& s) const {
  const Roster& roster = core_->roster();
  std::vector<WorkerIndex> all;
  for (WorkerIndex i = 0; i < roster.size(); ++i)
    if (roster.has_place(i)) all.push_back(i);
  const auto before = [&](WorkerIndex a, WorkerIndex b) {
    const WorkerState &x = roster.at(a), &y = roster.at(b);
    if (x.present != y.present) return x.present;
    if (x.takes_new() != y.takes_new()) return y.takes_new();
    return x.id < y.id;
  };
  constexpr std::ptrdiff_t kShown = StatusSnapshot::kWorkersShown;
  if (StatusSnapshot::kWorkersShown < all.size())
    std::partial_sort(all.begin(), all.begin() + kShown, all.end(), before);
  for (const WorkerIndex i : all) {
    const WorkerState& w = roster.at(i);
    const std::string state = standing(w);
    if (state == "ready") s.ready = true;
    if (s.workers.size() == StatusSnapshot::kWorkersShown) {
      ++s.workers_more[state.substr(0, state.find(':'))];
      continue;
    }
    s.workers.push_back({w.id.raw(), w.slots, w.held, state,
                         capability::describe_offer(w.has, core_->plan().things), w.since,
                         core_->stands_until(i).value_or(WallTime(0))});
  }
}

StatusSnapshot Coordinator::snapshot() const {
  StatusSnapshot s;
  s.campaign = options_.campaign;
  s.unit = money_word(options_.scheduler.cost_model);
  s.pid = ::getpid();
  s.at = wall_now();
  s.begun = begun_;
  tell_campaign(s, *core_, [this](RunId run) { return run_name(run); });
  if (outcome_)
    s.state = outcome_->end == End::kComplete ? "complete"
              : outcome_->end == End::kStopped || outcome_->end == End::kAtGate
                  ? "stopped"
                  : "failed: " + outcome_->why;
  else if (!ledger_away_.empty())
    s.state = "waiting for Redis since " + to_rfc3339(ledger_away_since_) + ": " + ledger_away_;
  else
    s.state = core_->draining() ? "draining" : core_->paused() ? paused_words(*core_) : "running";
  if (const std::string waiting = core_->waiting_for_workers(); !outcome_ && !waiting.empty())
    s.state += "; " + waiting;
  // Runs that were parked are asked for once more, which takes a worker: they wait like the rest.
  const std::uint64_t wanted = s.queued - (s.gate ? s.gate->behind : 0);
  if (!outcome_ && !core_->draining() && core_->roster().slots() == 0 && 0 < wanted &&
      begun_.raw() + kFirstWorkerMs <= s.at.raw())
    s.state += "; " + std::to_string(wanted) + (wanted == 1 ? " run waits" : " runs wait") +
               " for a worker, and none is here: start a proctor-worker that connects to " +
               endpoints().back() + ", or stop and go on with --workers 1";
  list_workers(s);
  s.lag = lag_.figures();
  s.floods = floods_.refused();
  if (!outcome_ && core_->draining())
    s.eta_waits = wound_down();
  else
    foretell(s, s.done() - ended_before_);
  return s;
}
}  // namespace proctor
