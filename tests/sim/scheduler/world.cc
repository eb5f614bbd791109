#include "tests/sim/scheduler/world.h"

#include "common/base/result.h"

namespace proctor::sim {
namespace {
constexpr std::int64_t kUsd = 1'000'000;
constexpr std::uint64_t kDay = 86'400'000;
MicroUsd micros(std::uint64_t n) {
  return MicroUsd::from_micros(static_cast<std::int64_t>(n));
}
}  // namespace

World::World(std::uint64_t seed, Exercised& exercised, Stages stages)
    : rng_(seed), seen_(exercised) {
  settings_.suspect_after = Millis(6'000);
  settings_.lease = Millis(20'000);
  settings_.reassign_after = Millis(4'000);
  settings_.infrastructure_retries =
      100;  // losses must not decide outcomes here, except in some seeds
  if (below(4) == 0) settings_.infrastructure_retries = 1;
  settings_.cost_model.tool_call = 1'000'000;  // one micro-dollar: usage is money, one to one
  settings_.retries.backoff = Millis(400);
  settings_.retries.overload_backoff = Millis(1'500);
  settings_.retries.backoff_max = Millis(6'000);
  settings_.retries.quarantine = Millis(4'000);
  settings_.retries.quarantine_max = Millis(15'000);
  settings_.retries.escalate = below(3) == 0;
  ranges_.drain_once = below(3) == 0;
  ranges_.books = below(2) == 0;
  if (below(3) == 0)
    ranges_ =
        Ranges{0, 0, 0, 0, 0, 0, 0, 0, 0, false, false, 0, 0, 0, 0, 1};  // some nights are quiet
  make_plan();
  if (stages == Stages::kStaged) add_stages();
  const std::uint64_t n = 1 + below(4);
  for (std::uint64_t i = 0; i < n; ++i) {
    SimWorker w;
    w.id = WorkerId("w" + std::to_string(i));
    w.boot = BootId(rng_());
    w.slots = static_cast<std::uint32_t>(1 + below(4));
    workers_.emplace(w.id, std::move(w));
  }
  // Where one run kills its workers nothing else does: else nobody could tell who is innocent.
  if (below(3) == 0) {
    poison_ = RunId(static_cast<std::uint32_t>(below(plan_.runs.size())));
    ranges_.worker_dies = ranges_.leaves = 0;
    constexpr std::uint64_t kShorterThanTwoLeases = 24'000;
    ranges_.cut_off_ms = std::min(ranges_.cut_off_ms, kShorterThanTwoLeases);
  }
  draw_faults(n);
  if (below(3) == 0) sick_ = WorkerId("w" + std::to_string(below(n)));
}

void World::make_plan() {
  const std::uint64_t tasks = 2 + below(6), runs = 20 + below(60);
  plan_.scopes.push_back({"global", micros(20 * kUsd + below(60) * kUsd)});
  plan_.scopes.push_back({"stage:one", micros(30 * kUsd + below(60) * kUsd)});
  plan_.stage_scopes = {ScopeId(1)};
  const bool across = below(2) == 0;
  strict_order_ = !across && below(2) == 0;
  for (std::uint64_t t = 0; t < tasks; ++t) {
    // Tight task envelopes let later tasks pass; without them the order is strict.
    const std::uint64_t cap = strict_order_ ? 1'000 : 5 + below(20);
    plan_.scopes.push_back({"task:" + std::to_string(t), micros(cap * kUsd)});
    const ScopeId scope(static_cast<std::uint32_t>(plan_.scopes.size() - 1));
    plan_.tasks.push_back({scope, micros((1 + below(3)) * kUsd), capability::kNull});
  }
  for (std::uint64_t t = 0; t < tasks; ++t) level_of_task_.emplace_back(below(2) == 0 ? "c" : "go");
  if (across) add_across(tasks);
  constexpr std::uint64_t kMethods = 3;
  for (std::uint64_t r = 0; r < runs; ++r)
    plan_.runs.push_back(
        {static_cast<std::uint32_t>(below(tasks)), 0, static_cast<std::uint16_t>(below(kMethods))});
  for (std::uint32_t s = 0; s < plan_.scopes.size(); ++s)
    scope_named_[plan_.scopes[s].name] = ScopeId(s);
  plan_.follows.assign(plan_.scopes.size(), false);
  plan_.follows[1] = below(2) == 0;
  settings_.watch.dominance.percent = 90;
  if (below(3) == 0) settings_.watch.dominance.action = BudgetWatch::Dominance::Action::kStop;
  seen_.runs += runs;
}

// Envelopes of two of the three methods and of one or two levels of a stratum, often the tightest.
void World::add_across(std::uint64_t tasks) {
  ++seen_.across;
  const auto add = [&](const std::string& name) {
    plan_.scopes.push_back({name, micros(4 * kUsd + below(20) * kUsd + below(kUsd))});
    return ScopeId(static_cast<std::uint32_t>(plan_.scopes.size() - 1));
  };
  plan_.method_scopes = {ScopeId(0), add("method:1"), add("method:2")};
  const ScopeId c = add("stratum:language=c");
  const ScopeId go = below(2) == 0 ? add("stratum:language=go") : ScopeId(0);
  for (std::uint64_t t = 0; t < tasks; ++t) {
    if (level_of_task_[t] == "c") plan_.tasks[t].strata.push_back(c);
    if (level_of_task_[t] == "go" && go != ScopeId(0)) plan_.tasks[t].strata.push_back(go);
  }
}

void World::fail(const std::string& what) const {
  if (why_.empty()) why_ = "at " + std::to_string(now_.time_since_epoch().count()) + " ms: " + what;
}

void World::at(Millis delay, std::function<void()> what) {
  agenda_.push({now_ + delay, order_++, std::move(what)});
}

bool World::run() {
  begin();
  while (goes_on()) step();
  if (why_.empty()) check_end();
  return why_.empty();
}

void World::begin() {
  constexpr Millis kFaultsStop(600'000);
  boot_coordinator();
  for (auto& [id, w] : workers_) at(some(500), [this, &w = w] { sync(w); });
  at(Millis(1'000), [this] { faults(); });
  at(kFaultsStop, [this] {
    faults_on_ = false;
    heal();
  });
  if (other_ != nullptr) tend();
}

void World::step() {
  constexpr Millis kGiveUp(6'000'000);
  const Action next = agenda_.top();
  agenda_.pop();
  now_ = next.at;
  if (Instant{} + kGiveUp < now_)
    fail("the campaign does not end" + stuck());
  else
    next.what();
}

std::string World::stuck() const {
  if (!core_) return ": there is no coordinator";
  for (std::uint32_t r = 0; r < plan_.runs.size(); ++r)
    if (const RunPhase p = core_->phase(RunId(r));
        p != RunPhase::kEnded && p != RunPhase::kParked && p != RunPhase::kCancelled)
      return ": run " + std::to_string(r) + ": " + to_json(core_->why(RunId(r))).dump();
  return ": all runs are at their end";
}

void World::faults() {
  at(Millis(1'000), [this] { faults(); });
  if (chance(ranges_.coordinator_dies) && core_) {
    ++seen_.coordinator_deaths;
    kill_coordinator();
    at(some(30'000), [this] { boot_coordinator(); });
  }
  if (ranges_.drain_once && below(30) == 0 && core_) {
    ranges_.drain_once = false;
    ++seen_.drains;
    const bool cancel = below(2) == 0;
    stopping_ = true;
    cancel ? feed(CancelAsked{}) : feed(DrainAsked{});
  }
  if (core_ && chance(ranges_.acts)) some_act();
  if (core_ && !plan_.stages.empty() && below(20) == 0) approve_next_stage();
  if (core_ && !ended_ && !plan_.stages.empty() && chance(ranges_.acts)) act_on_stage();
  if (chance(ranges_.clock_jumps)) {
    ++seen_.clock_jumps;
    wall_offset_ = some(2 * kDay) - Millis(kDay);
  }
  for (auto& [id, w] : workers_) {
    if (w.alive && !w.leaving && chance(ranges_.leaves)) {
      ++seen_.leaves;
      w.leaving = true;
    }
    if (w.alive && chance(ranges_.worker_dies)) {
      ++seen_.worker_deaths;
      socket_closed(w);
      kill_worker(w);
    } else if (chance(ranges_.partition)) {
      ++seen_.partitions;
      socket_closed(w);
      w.cut_off_until = now_ + some(ranges_.cut_off_ms);
    }
  }
}

// Told at once or late; a life of it that has come back since is not meant.
void World::socket_closed(const SimWorker& w) {
  if (!chance(ranges_.closed)) return;
  ++seen_.disconnected;
  at(some(3'000), [this, e = WorkerDisconnected{w.id, w.boot}] { feed(e); });
}

// ---------------------------------------------------------------- coordinator

void World::boot_coordinator() {
  ++coordinator_life_;
  epoch_ = Epoch(epoch_.raw() + 1);
  ended_ = complete_ = stopping_ = false;
  told_elsewhere_.reset();
  known_.clear();
  forgotten_.clear();
  denied_after_.clear();  // what was parked is asked once more
  boot_heard_.clear();
  standing_ = durable_standing_;
  assigned_now_.clear();
  not_before_.clear();
  again_at_once_.clear();
  steady_offset_ = some(kDay);
  core_ = std::make_unique<Scheduler>(plan_, settings_, epoch_);
  ledger_ =
      std::make_unique<Ledger>(plan_.scopes);  // rebuilt from the journal under a higher epoch
  written_ = journal_;
  if (const Status s = core_->restore(journal_.state()); !s.ok()) fail(s.error().detail);
  seen_.alerts_known += alerts_.size();
  alerts_at_boot_ = alerts_.size();
  std::map<ScopeId, MicroUsd> spent;
  for (const auto& [id, trail] : durable_) {
    if (!trail.at.settled) continue;
    for (const ScopeId s : envelopes_of(id.run)) spent[s] = spent[s] + trail.at.charged;
  }
  std::uint32_t n = 0;
  for (const auto& [scope, amount] : spent) {
    if (amount == MicroUsd::zero()) continue;
    const AskId id{{RunId(4'000'000'000u), AttemptNo(++n)}, 0};
    if (!ledger_->reserve({id, amount, {scope}}).ok() || !ledger_->settle({id, amount}).ok())
      fail("the journal holds more spend than the envelope");
  }
  for (const auto& [id, trail] : durable_) {
    using S = AttemptState;
    const auto s = trail.at.state;
    const bool pending = !trail.at.settled && (s == S::kGranted || s == S::kFinished ||
                                               s == S::kLost || s == S::kCancelled);
    if (!pending) continue;
    const auto answer = ledger_->reserve({{id, trail.at.seq}, trail.at.ask, envelopes_of(id.run)});
    if (!answer.ok() || answer->kind != ReserveAnswer::Kind::kGranted)
      fail("a pending reservation of the journal does not fit: " + to_string(id));
  }
  ledger_free_at_ = journal_free_at_ = now_;
  perform(core_->start(time()));
  compare_restored();
}

void World::kill_coordinator() {
  core_.reset();
  ++coordinator_life_;  // whatever was in flight inside the old process is gone
}

void World::feed(const Event& e) {
  if (!core_) return;
  const std::vector<Command> commands = core_->on(e, time());
  core_->check();
  check_commands(e, commands);
  perform(commands);
  compare_restored();
}

void World::perform(const std::vector<Command>& commands) {
  for (const Command& c : commands) {
    digest_ = (digest_ ^ c.index()) * 1099511628211ull;
    std::visit([this](const auto& x) { perform(x); }, c);
  }
}

void World::perform(const Persist& c) {
  for (const JournalWrite& w : c.writes) written_.write(w);
  const std::uint64_t life = coordinator_life_;
  journal_free_at_ = std::max(now_, journal_free_at_) + some(20);
  at(journal_free_at_ - now_, [this, life, c] { commit(life, c); });
}

void World::commit(std::uint64_t life, const Persist& c) {
  if (life != coordinator_life_) return;  // died before it was durable
  for (const JournalWrite& w : c.writes) {
    journal_.write(w);
    check_durable(w);
  }
  check_fault_rows();
  // Durable, and then perhaps dead before anybody hears of it.
  if (chance(ranges_.coordinator_dies) && below(20) == 0) {
    ++seen_.coordinator_deaths;
    kill_coordinator();
    at(some(10'000), [this] { boot_coordinator(); });
    return;
  }
  feed(Persisted{c.seq});
}

// One batch at the ledger, in order; sometimes its answer comes twice, as after a lost reply.
void World::ledger_turn(std::function<Event()> apply) {
  const std::uint64_t life = coordinator_life_;
  const bool slow = chance(ranges_.ledger_slow);
  if (slow) ++seen_.slow_answers;
  ledger_free_at_ = std::max(now_, ledger_free_at_) + (slow ? some(5'000) : some(10));
  at(ledger_free_at_ - now_, [this, life, apply = std::move(apply)] {
    if (life != coordinator_life_) return;  // an old epoch: refused whole
    Event answer = apply();
    if (chance(ranges_.lose)) {
      ++seen_.ledger_repeats;
      answer = apply();  // asked again: the stored answers
    }
    if (chance(ranges_.dies_on_answer) && below(4) == 0) {
      ++seen_.answers_lost;
      kill_coordinator();
      at(some(10'000), [this] { boot_coordinator(); });
      return;
    }
    feed(answer);
    if (life == coordinator_life_ && chance(ranges_.repeat)) feed(answer);
  });
}

void World::perform(const Reserve& c) {
  ledger_turn([this, c]() -> Event {
    Reserved out;
    if (other_ != nullptr) ledger_->set_elsewhere(*plan_.shared, elsewhere());
    for (const ReserveOp& op : c.ops) {
      const auto asked = durable_.find(op.id.attempt);
      if (asked == durable_.end() || asked->second.at.seq != op.id.seq)
        fail("asked before its intent was durable: " + to_string(op.id));
      if (op.scopes != envelopes_of(op.id.attempt.run) ||
          op.ask != plan_.task_of(op.id.attempt.run).ask)
        fail("asked for something else than the plan says: " + to_string(op.id));
      auto answer = ledger_->reserve(op);
      if (!answer.ok()) {
        fail("ledger refuses to reserve " + to_string(op.id) + ": " + answer.error().detail);
        continue;
      }
      if (answer->kind == ReserveAnswer::Kind::kDenied) {
        ++seen_.denials;
        told_elsewhere_.reset();
        if (plan_.shared == answer->short_scope)
          ++(answer->later ? seen_.denied_for_now : seen_.shared_denials);
        const std::string& scope = plan_.scopes[answer->short_scope.raw()].name;
        if (scope.starts_with("method:") || scope.starts_with("stratum:")) ++seen_.short_across;
        if (!answer->replayed) check_denied(op.id.attempt);
      }
      out.answers.push_back({op.id, *answer});
    }
    return out;
  });
}
void World::perform(const Settle& c) {
  ledger_turn([this, c]() -> Event {
    Settled out;
    for (const SettleOp& op : c.ops) {
      auto answer = ledger_->settle(op);
      if (!answer.ok())
        fail("ledger refuses to settle " + to_string(op.id) + ": " + answer.error().detail);
      else
        out.answers.push_back({op.id, *answer});
    }
    ++came_back_;
    return out;
  });
}
void World::perform(const VoidReservations& c) {
  const auto turn = [this, c]() -> Event {
    Voided out;
    for (const VoidOp& op : c.ops) {
      for (const auto& [id, w] : workers_)
        if (w.running.contains(op.id.attempt)) fail("voided while it runs: " + to_string(op.id));
      if (Status s = ledger_->cancel(op); !s.ok())
        fail("ledger refuses to void " + to_string(op.id) + ": " + s.error().detail);
      out.ids.push_back(op.id);
    }
    ++came_back_;
    return out;
  };
  if (other_ == nullptr || journal_free_at_ <= now_) return ledger_turn(turn);
  // What is given back may be another campaign's a moment later: the journal knows it first.
  at(journal_free_at_ - now_, [this, turn, life = coordinator_life_] {
    if (life == coordinator_life_) ledger_turn(turn);
  });
}
void World::perform(const Forget& c) {
  for (const AskId& id : c.ids)
    ledger_turn([this, id]() -> Event {
      ledger_->forget(id);
      return TimerFired{};
    });
}

void World::perform(const ArmTimer& c) {
  const std::uint64_t life = coordinator_life_;
  at(c.at - steady_offset_ - now_, [this, life] {
    if (life == coordinator_life_) feed(TimerFired{});
  });
}

void World::perform(const CampaignEnded& c) {
  ended_ = true;
  complete_ = c.complete;
  if (complete_) return;
  settings_.stays_at_gate = settings_.stays_at_gate || c.at_gate;
  // Drained or cancelled: somebody resumes it later.
  at(some(5'000), [this, life = coordinator_life_] {
    if (life != coordinator_life_) return;
    kill_coordinator();
    boot_coordinator();
  });
}

}  // namespace proctor::sim
