#include "coordinator/shell/ledger_thread.h"

#include <fmt/format.h>
#include <pthread.h>
#include <algorithm>

#include "common/base/log.h"
#include "common/base/result.h"

namespace proctor {
TaskThread::TaskThread(std::string name) : thread_([this] { run(); }) {
  constexpr std::size_t kKernelMax = 15;
  pthread_setname_np(thread_.native_handle(), name.substr(0, kKernelMax).c_str());
}

TaskThread::~TaskThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void TaskThread::post(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
}

std::size_t TaskThread::waiting() const {
  const std::lock_guard lock(mutex_);
  return tasks_.size();
}

void TaskThread::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

TaskLanes::TaskLanes(const std::string& name, std::size_t lanes) {
  for (std::size_t i = 0; i < lanes; ++i) lanes_.push_back(std::make_unique<TaskThread>(name));
}

void TaskLanes::post(std::uint64_t key, std::function<void()> task) {
  lanes_[key % lanes_.size()]->post(std::move(task));
}

std::size_t TaskLanes::waiting() const {
  std::size_t all = 0;
  for (const auto& lane : lanes_) all += lane->waiting();
  return all;
}

namespace {
using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kFirstPause(50);
constexpr std::chrono::milliseconds kTend(250);
// A start does not give up an envelope that a living member is about to bring back.
constexpr int kPatience = 20;
// Longer than Farewell waits for a member that gives no sign.
constexpr std::chrono::milliseconds kGoodbye(60'000);

std::string text_of(const LedgerAnswer& answer) {
  return std::visit(
      Overload{[](const ReserveAnswer& a) -> std::string {
                 if (a.kind == ReserveAnswer::Kind::kGranted) return "granted";
                 return fmt::format("denied, envelope {} is short by {}{}", a.short_scope.raw(),
                                    format_usd_exact(a.short_by), a.later ? " for now" : "");
               },
               [](const SettleAnswer& a) {
                 return fmt::format("charged {}, {} above the ask", format_usd_exact(a.charged),
                                    format_usd_exact(a.overrun));
               },
               [](const Unit&) -> std::string { return "done"; },
               [](const Error& e) { return e.detail; }},
      answer);
}

// The same but for whether it was asked before.
bool same(const LedgerAnswer& one, const LedgerAnswer& other) {
  if (one.index() != other.index()) return false;
  if (const auto* e = std::get_if<Error>(&one)) return e->code == std::get<Error>(other).code;
  const auto plain = [](LedgerAnswer a) {
    if (auto* r = std::get_if<ReserveAnswer>(&a)) r->replayed = false;
    if (auto* s = std::get_if<SettleAnswer>(&a)) s->replayed = false;
    return a;
  };
  const LedgerAnswer a = plain(one);
  const LedgerAnswer b = plain(other);
  if (const auto* r = std::get_if<ReserveAnswer>(&a)) return *r == std::get<ReserveAnswer>(b);
  if (const auto* s = std::get_if<SettleAnswer>(&a)) return *s == std::get<SettleAnswer>(b);
  return true;
}

bool is_granted(const LedgerAnswer& answer) {
  const auto* a = std::get_if<ReserveAnswer>(&answer);
  return a != nullptr && a->kind == ReserveAnswer::Kind::kGranted;
}

bool is_denied(const LedgerAnswer& answer) {
  return std::holds_alternative<ReserveAnswer>(answer) && !is_granted(answer);
}

const AskId& id_of(const LedgerOp& op) {
  return std::visit([](const auto& o) -> const AskId& { return o.id; }, op);
}
}  // namespace

LedgerThread::LedgerThread(std::shared_ptr<LedgerStore> store, Epoch epoch, Ledger rules,
                           std::optional<LedgerStart::Shared> shared, Callbacks callbacks)
    : store_(std::move(store)),
      epoch_(epoch),
      rules_(std::move(rules)),
      callbacks_(std::move(callbacks)),
      shared_(std::move(shared)) {}

Result<std::unique_ptr<LedgerThread>> LedgerThread::start(std::shared_ptr<LedgerStore> store,
                                                          LedgerStart start, Callbacks callbacks) {
  PROCTOR_TRY(Ledger rules, Ledger::restored(std::move(start.scopes), start.pending, start.spent));
  std::unique_ptr<LedgerThread> out(new LedgerThread(std::move(store), start.epoch,
                                                     std::move(rules), std::move(start.shared),
                                                     std::move(callbacks)));
  PROCTOR_CHECK_OK(out->store_->connect());
  log::info(out->store_->describe());
  Status taken = out->take_campaign();
  for (int i = 0; i < kPatience && out->shared_ && !taken.ok(); ++i) {
    if (taken.error().code != Errc::kNotFound) break;
    std::this_thread::sleep_for(kTend);
    taken = out->take_campaign();
  }
  out->taken_ = taken.ok();
  if (!taken.ok() && taken.error().code != Errc::kUnavailable) return taken.error();
  out->thread_ = std::thread([raw = out.get()] { raw->run(); });
  return out;
}

LedgerThread::~LedgerThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void LedgerThread::submit(std::vector<LedgerOp> ops) {
  {
    const std::lock_guard lock(mutex_);
    for (LedgerOp& op : ops) queue_.emplace_back(std::move(op));
  }
  wake_.notify_one();
}

void LedgerThread::give(Order order) {
  {
    const std::lock_guard lock(mutex_);
    queue_.emplace_back(std::move(order));
  }
  wake_.notify_one();
}

void LedgerThread::raise(std::vector<ScopeSpec> scopes, std::vector<MicroUsd> reviewed) {
  give(Change{std::move(scopes), std::move(reviewed)});
}

void LedgerThread::noted(std::vector<SharedFact> what) {
  give(std::move(what));
}

void LedgerThread::leave() {
  auto done = std::make_shared<std::promise<void>>();
  const std::future<void> told = done->get_future();
  give(Leave{std::move(done)});
  told.wait_for(kGoodbye);
}

Status LedgerThread::take_campaign() {
  const bool raised = shared_ && shared_->raised;
  return rebuild(false, raised ? SharedCap::kNotLower : SharedCap::kEqual);
}

Status LedgerThread::rebuild(bool own, SharedCap cap) {
  if (shared_) {
    std::vector<SharedMember> known;
    for (const auto& [id, member] : shared_->book.known()) known.push_back(member);
    known_up_to_ = 0;  // changes are counted from nothing where the envelope is new
    store_->share({shared_->scope, shared_->book.limit(), std::move(known), cap});
  }
  PROCTOR_TRY(const auto differences,
              store_->begin_epoch(epoch_, rules_.scopes(), rules_.pending(), rules_.spent()));
  // What an interrupted life left unsaid, or somebody's hand: told, the journal's numbers stand.
  if (!own)
    for (const std::string& line : differences) log::warn("ledger: " + line);
  return ok_status();
}

// Operations up to the next order; or that order; or nothing, when it is time to tend.
LedgerThread::Work LedgerThread::take() {
  std::unique_lock lock(mutex_);
  const auto ready = [this] { return stopping_ || !queue_.empty(); };
  if (shared_ && !left_)
    wake_.wait_until(lock, tend_at_, ready);
  else
    wake_.wait(lock, ready);
  Work work;
  work.stop = stopping_;
  while (!stopping_ && !queue_.empty() && work.ops.size() < kLedgerBatch) {
    if (auto* order = std::get_if<Order>(&queue_.front())) {
      if (!work.ops.empty()) break;
      work.order = std::move(*order);
      queue_.pop_front();
      break;
    }
    work.ops.push_back(std::get<LedgerOp>(std::move(queue_.front())));
    queue_.pop_front();
  }
  return work;
}

void LedgerThread::run() {
  if (!taken_ && !take_over(Change{})) return;
  for (;;) {
    Work work = take();
    if (work.stop) return;
    if (work.order && !obey(*std::move(work.order))) return;
    if (!work.ops.empty() && !apply(work.ops)) return;
    if (shared_ && !left_ && tend_at_ <= Clock::now() && !tend()) return;
  }
}

bool LedgerThread::obey(Order order) {
  return std::visit(Overload{[&](const Change& change) { return take_over(change); },
                             [&](const Noted& what) {
                               noting_ = false;
                               for (const SharedFact& fact : what) shared_->book.apply(fact);
                               tend_at_ = Clock::now();
                               return true;
                             },
                             [&](const Leave& leave) {
                               left_ = true;
                               shared_->book.apply(SharedLimit{MicroUsd::zero()});
                               say_farewell();
                               leave.done->set_value();
                               return true;
                             }},
                    order);
}

// The same as after a Redis that came back empty, with other caps or more spent: what was answered
// stays so.
bool LedgerThread::take_over(const Change& change) {
  for (std::uint32_t s = 0; s < change.scopes.size(); ++s)
    rules_.raise(ScopeId(s), change.scopes[s].cap);
  for (std::uint32_t s = 0; s < change.reviewed.size(); ++s) {
    if (Status booked = rules_.book(ScopeId(s), change.reviewed[s]); !booked.ok()) {
      callbacks_.failed(std::move(booked).error());
      return false;
    }
  }
  std::chrono::milliseconds backoff = kFirstPause;
  for (;;) {
    const Status rebuilt = rebuild(true);
    if (rebuilt.ok()) {
      if (std::exchange(away_, false)) callbacks_.back();
      return true;
    }
    if (!wait_out(rebuilt.error(), backoff)) return false;
  }
}

bool LedgerThread::wait_out(Error error, std::chrono::milliseconds& backoff) {
  constexpr std::chrono::milliseconds kMost(2'000);
  if (error.code != Errc::kUnavailable && error.code != Errc::kNotFound) {
    callbacks_.failed(std::move(error));
    return false;
  }
  if (!std::exchange(away_, true)) callbacks_.away(error.detail);
  if (!pause(backoff)) return false;
  backoff = std::min(backoff * 2, kMost);
  return true;
}

bool LedgerThread::pause(std::chrono::milliseconds how_long) {
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, how_long, [this] { return stopping_; });
}

bool LedgerThread::apply(const std::vector<LedgerOp>& batch) {
  std::chrono::milliseconds backoff = kFirstPause;
  for (;;) {
    Result<std::vector<LedgerAnswer>> answers = store_->apply(epoch_, batch);
    if (answers.ok()) {
      if (std::exchange(away_, false)) callbacks_.back();
      if (shared_) rules_.set_elsewhere(shared_->scope, store_->elsewhere());
      std::vector<Answered> out;
      out.reserve(batch.size());
      for (std::size_t i = 0; i < batch.size(); ++i)
        out.push_back({batch[i], judged(batch[i], (*answers)[i])});
      // A run that was denied waits for money.  What others hold may be what it was when that was
      // told last, and have been something else in between: it is told again, changed or not.
      if (std::ranges::any_of(out, [](const Answered& a) { return is_denied(a.answer); }))
        told_.reset();
      callbacks_.answered(std::move(out));
      return !std::exchange(differs_, false) || take_over(Change{});
    }
    Error error = std::move(answers).error();
    if (error.code == Errc::kNotFound) {  // it restarted or was emptied
      Status rebuilt = rebuild(false);
      if (rebuilt.ok()) continue;
      error = std::move(rebuilt).error();
    }
    if (!wait_out(std::move(error), backoff)) return false;
  }
}

LedgerAnswer LedgerThread::judged(const LedgerOp& op, const LedgerAnswer& told) {
  const auto* reserve = std::get_if<ReserveOp>(&op);
  const auto* stored = std::get_if<ReserveAnswer>(&told);
  // It was answered before the connection was lost: what others held then may be different now.
  if (reserve != nullptr && stored != nullptr && stored->replayed && !rules_.knows(reserve->id)) {
    const auto adopted = rules_.adopt(*reserve, *stored);
    if (adopted.ok()) return told;
  }
  LedgerAnswer mine = rules_.apply(op);
  if (same(mine, told)) return told;
  differs_ = true;
  callbacks_.differs(fmt::format("ask {}: the store answered \"{}\", the rules say \"{}\"",
                                 to_string(id_of(op)), text_of(told), text_of(mine)));
  if (reserve == nullptr) return mine;
  // Nothing starts on an answer in doubt, and the run waits instead of being parked.
  if (is_granted(mine)) {
    (void)rules_.cancel({reserve->id});
    rules_.forget(reserve->id);
  }
  return ReserveAnswer{ReserveAnswer::Kind::kDenied, reserve->scopes.front(), reserve->ask, false,
                       true};
}

// An envelope that campaigns share.

bool LedgerThread::tend() {
  tend_at_ = Clock::now() + kTend;
  const Result<SharedView> view = store_->tend(epoch_, known_up_to_, shared_->book.limit());
  if (!view.ok()) {
    if (view.error().code == Errc::kNotFound) return take_over(Change{});
    std::chrono::milliseconds backoff = kFirstPause;
    return wait_out(view.error(), backoff);
  }
  if (std::exchange(away_, false)) callbacks_.back();
  tell_elsewhere(*view);
  if (noting_) return true;
  const SharedBook& book = shared_->book;
  if (known_up_to_ < view->change && book.news(*view).empty()) {
    known_up_to_ = view->change;
    tend_at_ = Clock::now();  // others may wait for this
  } else if (std::vector<SharedFact> facts = book.to_note(*view); !facts.empty()) {
    noting_ = true;
    callbacks_.note(std::move(facts));
  }
  return true;
}

// Whatever goes wrong, it is over after kGoodbye: those who stay count this campaign as what they
// know of it until a person says more (proctor budget leave).
void LedgerThread::say_farewell() {
  Farewell farewell(shared_->book.self());
  bool told = false;
  int in_vain = 0;
  for (const Clock::time_point until = Clock::now() + kGoodbye;
       Clock::now() < until && in_vain < kPatience;) {
    const Result<SharedView> view = store_->shared();
    const Farewell::Step step = view.ok() ? farewell.next(*view) : Farewell::Step::kSay;
    if (step == Farewell::Step::kDone) return;
    Status done = view.ok() ? ok_status() : Status(view.error());
    if (view.ok() && step == Farewell::Step::kSay) done = store_->leave(epoch_);
    // It was emptied; whoever is a member brings the envelope back, and this campaign's part too.
    if (!done.ok() && done.error().code == Errc::kNotFound) done = rebuild(true);
    if (!done.ok() && done.error().code == Errc::kConflict) {
      log::warn("ledger: " + done.error().detail);
      return;
    }
    in_vain = done.ok() ? 0 : in_vain + 1;
    const bool waits = step == Farewell::Step::kWait;
    if (waits && !std::exchange(told, true))
      log::info("shared envelope: waiting until the other campaigns have noted that this one left");
    if ((waits || !done.ok()) && !pause(kTend)) return;
  }
  log::warn(
      "shared envelope: whether the others know that this campaign has left is not certain; if "
      "proctor budget shows it as unheard there: proctor budget leave CAMPAIGN");
}

// As the script counts it: what is above its own limit is not its own either.
void LedgerThread::tell_elsewhere(const SharedView& view) {
  Elsewhere now = view.elsewhere_of(shared_->book.self());
  const MicroUsd cap = rules_.balance(shared_->scope).cap;
  const MicroUsd limit = std::min(cap, shared_->book.limit());
  const SharedMember* me = view.find(shared_->book.self());
  if (now.held < cap - limit) now = {cap - limit, me != nullptr && limit < me->ceiling};
  if (told_ == now) return;
  told_ = now;
  callbacks_.elsewhere(now);
}
}  // namespace proctor
