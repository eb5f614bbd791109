#include "coordinator/shell/ledger_thread.h"

#include <doctest/doctest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>

#include "common/ledger/ledger_store.h"

namespace proctor::ledger_thread_test {
namespace {

MicroUsd micro(std::int64_t n) {
  return MicroUsd::from_micros(n);
}
AskId ask_id(std::uint32_t run) {
  return {{RunId(run), AttemptNo(1)}, 0};
}

// Keeps envelopes as it should, and changes what it says.
class Twisted final : public LedgerStore {
 public:
  std::function<void(std::vector<LedgerAnswer>&)> twist = [](auto&) {};
  int rebuilt = 0;
  std::vector<ReserveOp> pending;  // of the last rebuild
  std::vector<MicroUsd> spent;

  Status connect() override { return ok_status(); }
  std::string describe() const override { return "twisted"; }
  Result<std::vector<std::string>> begin_epoch(Epoch epoch, const std::vector<ScopeSpec>& scopes,
                                               const std::vector<ReserveOp>& open,
                                               const std::vector<MicroUsd>& used) override {
    ++rebuilt;
    pending = open;
    spent = used;
    return inner_.begin_epoch(epoch, scopes, open, used);
  }
  Result<std::vector<LedgerAnswer>> apply(Epoch epoch,
                                          const std::vector<LedgerOp>& batch) override {
    auto answers = inner_.apply(epoch, batch);
    if (answers.ok()) twist(*answers);
    return answers;
  }
  Result<std::vector<ScopeBalance>> snapshot() override { return inner_.snapshot(); }

 private:
  JournalLedger inner_;
};

struct Bench {
  std::shared_ptr<Twisted> store = std::make_shared<Twisted>();
  std::vector<std::string> alarms;
  std::promise<std::vector<LedgerThread::Answered>> next;
  std::unique_ptr<LedgerThread> thread;

  Bench() {
    LedgerThread::Callbacks callbacks;
    callbacks.answered = [this](auto answers) { next.set_value(std::move(answers)); };
    callbacks.differs = [this](const std::string& what) { alarms.push_back(what); };
    callbacks.away = [](const std::string&) {};
    callbacks.back = [] {};
    callbacks.failed = [](const Error&) {};
    auto started = LedgerThread::start(
        store, {Epoch(1), {{"global", micro(100)}}, {}, {MicroUsd::zero()}, {}}, callbacks);
    REQUIRE(started.ok());
    thread = std::move(started).value();
  }
  LedgerAnswer ask(LedgerOp op) {
    next = {};
    auto answers = next.get_future();
    thread->submit({std::move(op)});
    return answers.get().front().answer;
  }
  // Whatever an alarm made the thread do is done before it takes the next operation.
  void ended() { thread.reset(); }
};

bool granted(const LedgerAnswer& answer) {
  const auto* a = std::get_if<ReserveAnswer>(&answer);
  return a != nullptr && a->kind == ReserveAnswer::Kind::kGranted;
}

// An envelope that "me" shares with "a", as Redis would have it.
class Shared final : public LedgerStore {
 public:
  std::function<void(std::vector<LedgerAnswer>&)> twist = [](auto&) {};
  std::function<void(SharedView&, int)> before_look = [](auto&, int) {};  // its number, from 1
  int leaves = 0, looks = 0;

  Shared() {
    view_.cap = micro(100);
    view_.change = 1;
    for (const char* id : {"a", "me"}) {
      SharedMember m;
      m.id = id;
      m.state = SharedMember::State::kHeard;
      m.ceiling = m.limit = micro(100);
      m.since = m.noted = 1;
      view_.members.push_back(m);
    }
    a().spent = micro(10);
    a().reserved = micro(40);
  }
  SharedMember& a() { return view_.members[0]; }
  SharedMember& me() { return view_.members[1]; }
  Status connect() override { return ok_status(); }
  std::string describe() const override { return "shared"; }
  Result<std::vector<std::string>> begin_epoch(Epoch epoch, const std::vector<ScopeSpec>& scopes,
                                               const std::vector<ReserveOp>& open,
                                               const std::vector<MicroUsd>& used) override {
    me().state = SharedMember::State::kHeard;
    return inner_.begin_epoch(epoch, scopes, open, used);
  }
  Result<std::vector<LedgerAnswer>> apply(Epoch epoch,
                                          const std::vector<LedgerOp>& batch) override {
    auto answers = inner_.apply(epoch, batch);
    if (answers.ok()) twist(*answers);
    return answers;
  }
  Elsewhere elsewhere() const override { return view_.elsewhere_of("me"); }
  Result<SharedView> tend(Epoch, std::uint64_t, MicroUsd) override { return view_; }
  Status leave(Epoch) override {
    if (me().state == SharedMember::State::kUnheard) return Error{Errc::kNotFound, "emptied"};
    me().state = SharedMember::State::kLeft;
    me().since = ++view_.change;
    ++leaves;
    return ok_status();
  }
  Result<SharedView> shared() override {
    before_look(view_, ++looks);
    return view_;
  }
  Result<std::vector<ScopeBalance>> snapshot() override { return inner_.snapshot(); }

 private:
  JournalLedger inner_;
  SharedView view_;
};

// Long enough for a machine of any speed: what is waited for comes, or the test fails.
constexpr std::chrono::minutes kPatience(3);

struct SharedBench {
  std::shared_ptr<Shared> store = std::make_shared<Shared>();
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Elsewhere> told;
  int answered = 0;
  std::unique_ptr<LedgerThread> thread;

  void start() {
    LedgerThread::Callbacks callbacks;
    callbacks.answered = [this](const auto&) { tell([&] { ++answered; }); };
    callbacks.elsewhere = [this](Elsewhere held) { tell([&] { told.push_back(held); }); };
    callbacks.differs = [](const std::string&) {};
    callbacks.away = [](const std::string&) {};
    callbacks.back = [] {};
    callbacks.failed = [](const Error&) {};
    callbacks.note = [](const auto&) {};
    SharedBook book("me");
    book.apply(store->a());
    book.apply(SharedLimit{micro(100)});
    LedgerStart from{Epoch(1),
                     {{"global", micro(100)}, {"shared:x", micro(100)}},
                     {},
                     {MicroUsd::zero(), MicroUsd::zero()},
                     LedgerStart::Shared{ScopeId(1), std::move(book)}};
    auto started = LedgerThread::start(store, std::move(from), std::move(callbacks));
    REQUIRE(started.ok());
    thread = std::move(started).value();
  }
  template <class Change>
  void tell(Change change) {
    const std::lock_guard lock(mutex);
    change();
    changed.notify_all();
  }
  template <class Is>
  bool waited_for(Is is) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, kPatience, is);
  }
};

}  // namespace

TEST_SUITE("ledger thread") {
  TEST_CASE("a denial is followed by what others hold, also when that was told before") {
    SharedBench bench;
    // As of a batch that Redis had answered, when others held more, and the answer was lost.
    bench.store->twist = [](auto& answers) {
      answers[0] = ReserveAnswer{ReserveAnswer::Kind::kDenied, ScopeId(1), micro(1), true, true};
    };
    bench.start();
    REQUIRE(bench.waited_for([&] { return !bench.told.empty(); }));
    std::size_t before = 0;
    {
      const std::lock_guard lock(bench.mutex);
      before = bench.told.size();
    }
    bench.thread->submit({ReserveOp{ask_id(1), micro(45), {ScopeId(0), ScopeId(1)}}});
    REQUIRE(bench.waited_for([&] { return bench.answered == 1; }));
    CHECK(bench.waited_for([&] { return before < bench.told.size(); }));
    bench.thread.reset();
    CHECK(bench.told.back() == Elsewhere{micro(50), true});
  }

  TEST_CASE(
      "a campaign that leaves waits until the others have noted it, and repeats what was lost") {
    SharedBench bench;
    bench.store->before_look = [&](SharedView& view, int look) {
      // Redis is emptied right after the leave; who stays gives back what its own journal knows.
      if (look == 3) view.members[1].state = SharedMember::State::kUnheard;
      if (look == 6) view.members[0].noted = view.change;
    };
    bench.start();
    REQUIRE(bench.waited_for([&] { return !bench.told.empty(); }));
    bench.thread->leave();
    bench.thread.reset();
    CHECK(bench.store->leaves == 2);
    CHECK(bench.store->looks == 6);
    CHECK(bench.store->me().state == SharedMember::State::kLeft);
  }

  TEST_CASE("a store that says what the rules say raises no alarm") {
    Bench bench;
    CHECK(granted(bench.ask(ReserveOp{ask_id(1), micro(60), {ScopeId(0)}})));
    CHECK_FALSE(granted(bench.ask(ReserveOp{ask_id(2), micro(60), {ScopeId(0)}})));
    const LedgerAnswer settled = bench.ask(SettleOp{ask_id(1), micro(70)});
    REQUIRE(std::holds_alternative<SettleAnswer>(settled));
    CHECK(std::get<SettleAnswer>(settled).charged == micro(60));
    bench.ended();
    CHECK(bench.alarms.empty());
    CHECK(bench.store->rebuilt == 1);
  }

  TEST_CASE("a grant that passes a cap is an alarm and no grant") {
    Bench bench;
    CHECK(granted(bench.ask(ReserveOp{ask_id(1), micro(60), {ScopeId(0)}})));
    bench.store->twist = [](auto& answers) {
      answers[0] = ReserveAnswer{ReserveAnswer::Kind::kGranted, {}, {}, false, false};
    };
    CHECK_FALSE(granted(bench.ask(ReserveOp{ask_id(2), micro(60), {ScopeId(0)}})));
    bench.ended();
    REQUIRE(bench.alarms.size() == 1);
    CHECK(
        bench.alarms[0].find("ask 2.1.0: the store answered \"granted\", the rules say \"denied") !=
        std::string::npos);
    CHECK(bench.store->rebuilt == 2);  // the store has what the rules say again
    REQUIRE(bench.store->pending.size() == 1);
    CHECK(bench.store->pending[0].id == ask_id(1));
  }

  TEST_CASE("a denial of what fits is an alarm, holds nothing and parks nothing") {
    Bench bench;
    bench.store->twist = [](auto& answers) {
      answers[0] = ReserveAnswer{ReserveAnswer::Kind::kDenied, ScopeId(0), micro(1), false, false};
    };
    const LedgerAnswer answer = bench.ask(ReserveOp{ask_id(1), micro(60), {ScopeId(0)}});
    CHECK_FALSE(granted(answer));
    CHECK(std::get<ReserveAnswer>(answer).later);
    bench.ended();
    CHECK(bench.alarms.size() == 1);
    CHECK(bench.store->pending.empty());
  }

  TEST_CASE("what was spent is charged as the rules say, whatever the store says") {
    Bench bench;
    CHECK(granted(bench.ask(ReserveOp{ask_id(1), micro(60), {ScopeId(0)}})));
    bench.store->twist = [](auto& answers) {
      answers[0] = SettleAnswer{micro(1), micro(0), false};
    };
    const LedgerAnswer answer = bench.ask(SettleOp{ask_id(1), micro(40)});
    CHECK(std::get<SettleAnswer>(answer).charged == micro(40));
    bench.ended();
    CHECK(bench.alarms.size() == 1);
    CHECK(bench.store->spent == std::vector<MicroUsd>{micro(40)});
  }
}

}  // namespace proctor::ledger_thread_test
