#include "coordinator/shell/ledger_thread.h"

#include <doctest/doctest.h>

#include <functional>
#include <future>

#include "common/ledger/journal_ledger.h"

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

}  // namespace

TEST_SUITE("ledger thread") {
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
