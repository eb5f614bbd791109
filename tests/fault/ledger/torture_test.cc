// 64 clients at one real Redis that is killed every two seconds, frozen, flushed, brought back
// with everything, an old copy or nothing, and rebuilt by one coordinator.  Afterwards an auditor
// that shares no code with us (tests/audit/audit_ledger) reads what Redis appended at each instant,
// what each client was told and what is left, and must find nothing.
//
//   PROCTOR_TORTURE_OPS=100000 build/release/ledger_fault_tests
//                              the long form: 64 x 100,000 operations
//   PROCTOR_TORTURE_SEED=7     the same choices again
//   PROCTOR_TORTURE_KEEP=DIR   leaves the record there
#include <doctest/doctest.h>
#include <signal.h>

#include <array>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <random>
#include <thread>

#include "tests/fault/ledger/torture_journal.h"
#include "tests/fault/ledger/torture_redis.h"
#include "tests/support/paths.h"

using namespace proctor;
using namespace proctor::torture;

namespace {

constexpr int kClients = 64;
constexpr std::size_t kOpenMost = 200;        // reservations of one client at once
constexpr std::uint32_t kShared = 4'000'000;  // runs from here on are everybody's
constexpr const char* kCampaign = "torture";

std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

RedisLedger open_ledger(const SufferingRedis& redis) {
  RedisLedger::Options options;
  options.endpoint = parse_redis_endpoint(redis.address()).value();
  options.campaign = kCampaign;
  options.timeout = std::chrono::milliseconds(400);
  return RedisLedger::open(std::move(options)).value();
}

struct Scene {
  Scene(const fs::path& folder, std::uint64_t operations)
      : redis(folder), journal(envelopes(operations)) {}
  // In proportion to the work, so that they run short towards its end.
  static std::vector<ScopeSpec> envelopes(std::uint64_t operations) {
    const auto part = [&](std::uint64_t percent) {
      return MicroUsd::from_micros(
          static_cast<std::int64_t>(operations * kClients * 4'500 / 100 * percent));
    };
    std::vector<ScopeSpec> out{{"global", part(100)}, {"stage:a", part(65)}, {"stage:b", part(40)}};
    for (std::uint64_t i = 0; i < 10; ++i)
      out.push_back({"task:" + std::to_string(i), part(9 + i)});
    return out;
  }
  SufferingRedis redis;
  Journal journal;
  std::atomic<std::uint64_t> done{0};  // operations
  std::atomic<int> running{kClients};
};

// One client: lives of reservations of its own and of some that all fight for.
class Client {
 public:
  Client(Scene& scene, int number, std::uint64_t seed, std::uint64_t operations)
      : scene_(scene),
        number_(static_cast<std::uint32_t>(number)),
        left_(operations),
        ledger_(open_ledger(scene.redis)),
        random_(seed * 1000 + number_) {}

  std::vector<Said> said;

  void work() {
    while (0 < left_) {
      std::vector<LedgerOp> batch;
      const std::uint64_t size = std::min<std::uint64_t>(left_, 1 + below(12));
      while (batch.size() < size) batch.push_back(next());
      left_ -= size;
      scene_.done += size;
      if (below(100) == 0) stale(batch);
      until_answered(std::move(batch));
    }
    // Nothing stays reserved.
    std::vector<LedgerOp> rest;
    for (const auto& op : open_) rest.emplace_back(SettleOp{op.id, amount()});
    for (std::uint32_t i = 0; i < 200; ++i) {
      if (number_ == 0) rest.push_back(end_of_shared(i));
    }
    for (std::size_t from = 0; from < rest.size(); from += 64) {
      until_answered(
          {rest.begin() + static_cast<std::ptrdiff_t>(from),
           rest.begin() + static_cast<std::ptrdiff_t>(std::min(rest.size(), from + 64))});
    }
  }

 private:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  MicroUsd amount() {
    return MicroUsd::from_micros(static_cast<std::int64_t>(below(10) == 0 ? 0 : below(90'000)));
  }
  static const AskId& id_of(const LedgerOp& op) {
    return std::visit([](const auto& o) -> const AskId& { return o.id; }, op);
  }
  static AskId shared_id(std::uint32_t n) { return {{RunId(kShared + n), AttemptNo(1)}, 0}; }
  // Everybody asks the same of a shared id, and ends it in the same way: nobody could say which of
  // two ends an unanswered Redis took.
  static LedgerOp end_of_shared(std::uint32_t n) {
    if (n % 3 == 0) return VoidOp{shared_id(n)};
    return SettleOp{shared_id(n), MicroUsd::from_micros(400 + 5 * n)};
  }
  static ReserveOp shared(std::uint32_t n) {
    return {shared_id(n),
            MicroUsd::from_micros(1'000 + n),
            {ScopeId(0), ScopeId(1 + n % 2), ScopeId(3 + n % 10)}};
  }

  LedgerOp next() {
    const std::uint64_t dice = below(100);
    if (dice < 4) return shared(static_cast<std::uint32_t>(below(200)));
    if (dice < 7) return end_of_shared(static_cast<std::uint32_t>(below(200)));
    if (dice < 10 && !open_.empty()) return open_[below(open_.size())];  // asked again
    if (dice < 12 && !open_.empty()) {                                   // with other contents
      ReserveOp other = open_[below(open_.size())];
      other.ask = other.ask + MicroUsd::from_micros(1);
      return other;
    }
    if (dice < 14 && !ended_.empty()) return ended_[below(ended_.size())];  // ended again
    if (dice < 16 && !ended_.empty()) return otherwise(ended_[below(ended_.size())]);
    if (dice < 20 && 20 < ended_.size()) {
      const AskId id = id_of(ended_.front());
      ended_.pop_front();
      return ForgetOp{id};
    }
    if (dice < 22 && !open_.empty()) return ForgetOp{open_[below(open_.size())].id};  // pending
    if (dice < 24) return SettleOp{{{RunId(3'999'999), AttemptNo(1)}, number_}, amount()};
    if ((dice < 60 && !open_.empty()) || kOpenMost < open_.size()) {
      const std::size_t which = below(open_.size());
      const AskId id = open_[which].id;
      std::swap(open_[which], open_.back());
      open_.pop_back();
      ended_.push_back(dice < 50 ? LedgerOp(SettleOp{id, amount()}) : LedgerOp(VoidOp{id}));
      return ended_.back();
    }
    const std::uint64_t place = below(20);
    open_.push_back(
        {{{RunId(number_ * 60'000 + made_ / 8), AttemptNo(1 + made_ % 8 / 4)}, made_ % 4},
         amount(),
         {ScopeId(0), ScopeId(static_cast<std::uint32_t>(1 + place % 2)),
          ScopeId(static_cast<std::uint32_t>(3 + place % 10))}});
    ++made_;
    return open_.back();
  }
  LedgerOp otherwise(const LedgerOp& end) {
    if (const auto* s = std::get_if<SettleOp>(&end))
      return SettleOp{s->id, s->actual + MicroUsd::from_micros(7)};
    return SettleOp{std::get<VoidOp>(end).id, amount()};
  }

  // The same under the epoch before: must be refused.
  void stale(const std::vector<LedgerOp>& batch) {
    const std::shared_lock lock(scene_.journal.work);
    LedgerLease old = scene_.journal.lease;
    if (below(2) == 0) {
      old.epoch = Epoch(old.epoch.raw() - 1);
    } else {
      old.token = "another coordinator";
    }
    ledger_.join(old);
    const std::int64_t begun = now_ns();
    const auto answers = ledger_.apply(old.epoch, batch);
    const std::string text = answers.ok()                              ? "ACCEPTED"
                             : answers.error().code == Errc::kConflict ? "fenced"
                                                                       : "unanswered";
    for (const LedgerOp& op : batch)
      said.push_back({begun, now_ns(), old.epoch.raw(), scene_.journal.generation, op, text});
  }

  void until_answered(std::vector<LedgerOp> batch) {
    while (!batch.empty()) {
      {
        const std::shared_lock lock(scene_.journal.work);
        const std::uint64_t generation = scene_.journal.generation;
        // The journal holds their end: a coordinator does not ask about them any more.
        std::erase_if(batch, [&](const LedgerOp& op) {
          return scene_.journal.ended_before(id_of(op), generation);
        });
        for (const LedgerOp& op : batch) scene_.journal.intend(op);
        ledger_.join(scene_.journal.lease);
        const std::int64_t begun = now_ns();
        const Epoch epoch = scene_.journal.lease.epoch;
        const auto answers = ledger_.apply(epoch, batch);
        const std::int64_t ended = now_ns();
        if (answers.ok()) {
          for (std::size_t i = 0; i < batch.size(); ++i) {
            const AskId& id = id_of(batch[i]);
            const std::uint32_t run = id.attempt.run.raw();
            const ReserveOp ours = shared(run < kShared ? 0 : run - kShared);
            scene_.journal.book(batch[i], (*answers)[i], run < kShared ? nullptr : &ours);
            said.push_back(
                {begun, ended, epoch.raw(), generation, batch[i], text_of((*answers)[i])});
          }
          return;
        }
        const Errc code = answers.error().code;
        if (code != Errc::kUnavailable && code != Errc::kNotFound) {
          said.push_back({begun, ended, epoch.raw(), generation, batch[0],
                          "FAILED " + answers.error().detail});
          return;
        }
        for (const LedgerOp& op : batch)
          said.push_back({begun, ended, epoch.raw(), generation, op, "unanswered"});
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5 + below(30)));
    }
  }

  Scene& scene_;
  std::uint32_t number_;
  std::uint64_t left_;
  RedisLedger ledger_;
  std::mt19937_64 random_;
  std::uint32_t made_ = 0;
  std::vector<ReserveOp> open_;  // as far as we know
  std::deque<LedgerOp> ended_;
};

// The coordinator and the bad luck in one: until the clients are done.
struct Fate {
  Scene& scene;
  std::mt19937_64 random;
  std::uint64_t epoch = 2;
  std::map<std::string, int> did;

  std::uint64_t below(std::uint64_t n) { return random() % n; }

  // The epoch may stay when the server died: nothing can still be under way to it.
  void rebuild(bool died) {
    const std::unique_lock alone(scene.journal.work);
    epoch += died && below(3) == 0 ? 0 : 1;
    RedisLedger& ledger = *mine;
    Status done = ok_status();
    for (int i = 0; i < 50; ++i) {
      done = scene.journal.rebuild(ledger, Epoch(epoch));
      if (done.ok() || done.error().code != Errc::kUnavailable) break;
    }
    REQUIRE_MESSAGE(done.ok(), done.error().detail);
    // A campaign folder that was copied cannot take it over, nor can an old coordinator.
    RedisLedger copy = open_ledger(scene.redis);
    const auto taken = copy.begin_epoch(Epoch(epoch - below(2)), scene.journal.scopes(), {},
                                        std::vector<MicroUsd>(scene.journal.scopes().size()));
    CHECK_FALSE(taken.ok());
  }

  void strike() {
    using With = SufferingRedis::With;
    bool died = false;
    switch (below(6)) {
      case 0:
        ++did["frozen"];
        scene.redis.freeze();
        std::this_thread::sleep_for(std::chrono::milliseconds(200 + below(500)));
        scene.redis.thaw();
        return;  // nobody rebuilds: the clients repeat
      case 1: {
        ++did["emptied"];
        auto c = RedisConnection::open(parse_redis_endpoint(scene.redis.address()).value(),
                                       std::chrono::seconds(60));
        REQUIRE(c.ok());
        // Without the keys the clients are told to wait, whatever they ask.
        REQUIRE(c->call(std::array<std::string_view, 1>{"FLUSHALL"}).ok());
        break;
      }
      default: {
        const std::uint64_t how = below(4);
        scene.redis.kill();
        died = true;
        ++did["killed"];
        if (how == 0) scene.redis.copy_for_later();
        scene.redis.start(how == 1   ? With::kOldCopy
                          : how == 2 ? With::kNothing
                                     : With::kEverything);
        if (how == 1 || how == 2) ++did["lost its data"];
      }
    }
    rebuild(died);
  }

  std::unique_ptr<RedisLedger> mine;
};

void run_torture(const fs::path& folder, std::uint64_t seed, std::uint64_t operations) {
  Scene scene(folder, operations);
  Fate fate{scene, std::mt19937_64(seed), 2, {}, nullptr};
  fate.mine = std::make_unique<RedisLedger>(open_ledger(scene.redis));
  fate.rebuild(false);

  std::vector<std::unique_ptr<Client>> clients;
  std::vector<std::thread> threads;
  for (int i = 0; i < kClients; ++i)
    clients.push_back(std::make_unique<Client>(scene, i, seed, operations));
  for (auto& client : clients)
    threads.emplace_back([&scene, raw = client.get()] {
      raw->work();
      --scene.running;
    });
  const auto period = std::chrono::milliseconds(setting("PROCTOR_TORTURE_PERIOD_MS", 2'000));
  auto next = std::chrono::steady_clock::now() + period / 2;
  while (0 < scene.running) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (std::chrono::steady_clock::now() < next) continue;
    fate.strike();
    std::fprintf(stderr, "\r%llu of %llu operations, %llu rebuilds ",
                 static_cast<unsigned long long>(scene.done),
                 static_cast<unsigned long long>(operations * kClients),
                 static_cast<unsigned long long>(scene.journal.generation));
    next = std::chrono::steady_clock::now() + period / 2 +
           std::chrono::milliseconds(fate.below(static_cast<std::uint64_t>(period.count())));
  }
  for (std::thread& t : threads) t.join();

  CHECK(scene.journal.pending() == 0);
  std::ofstream record(folder / "record.tsv");
  std::size_t lines = 0;
  for (const Said& said : scene.journal.booked()) write_line(record, kClients, said);
  for (int i = 0; i < kClients; ++i) {
    for (const Said& said : clients[static_cast<std::size_t>(i)]->said) write_line(record, i, said);
    lines += clients[static_cast<std::size_t>(i)]->said.size();
  }
  std::ofstream scopes(folder / "scopes.tsv");
  for (const ScopeSpec& s : scene.journal.scopes())
    scopes << s.name << '\t' << s.cap.micros() << '\n';
  auto c = RedisConnection::open(parse_redis_endpoint(scene.redis.address()).value(),
                                 std::chrono::seconds(60));
  REQUIRE(c.ok());
  std::ofstream(folder / "redis.json") << dump(*c, kCampaign);
  std::string story;
  for (const auto& [what, times] : fate.did) story += what + " " + std::to_string(times) + ", ";
  MESSAGE(story << scene.journal.generation << " rebuilds, " << lines << " answers");
  scene.redis.kill();
}

}  // namespace

TEST_SUITE("ledger") {
  TEST_CASE("64 clients and a redis that is killed again and again overspend nothing" *
            doctest::test_suite("full")) {
    const std::uint64_t seed = setting("PROCTOR_TORTURE_SEED", std::random_device{}());
    const std::uint64_t operations = setting("PROCTOR_TORTURE_OPS", 1'500);
    MESSAGE("PROCTOR_TORTURE_SEED=" << seed << " PROCTOR_TORTURE_OPS=" << operations);
    auto dir = TempDir::create("torture");
    REQUIRE(dir.ok());
    const char* keep = std::getenv("PROCTOR_TORTURE_KEEP");
    const fs::path folder = keep == nullptr ? dir->path() : fs::path(keep);
    fs::create_directories(folder);
    run_torture(folder, seed, operations);

    CommandSpec audit;
    audit.argv = {PROCTOR_PYTHON, (testing::source_dir() / "tests/audit/audit_ledger").string(),
                  folder.string()};
    audit.timeout = std::chrono::hours(1);
    const auto outcome = run_command(audit);
    REQUIRE(outcome.ok());
    MESSAGE(outcome->out);
    CHECK_MESSAGE(outcome->exit_code == 0, outcome->out << outcome->err);
  }
}
