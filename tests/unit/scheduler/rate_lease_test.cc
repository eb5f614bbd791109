// Calls per minute of the whole campaign: the coordinator's half (RateLeases) and the worker's
// (RateShare) together, under losses, delays, reordering and restarts of either.
#include "coordinator/core/rate_lease.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>

#include "desk.h"
#include "worker/core/rate_share.h"

namespace proctor {
namespace {

Instant at(std::int64_t ms) {
  return Instant(Millis(ms));
}

// One campaign, its coordinator and its workers, connected by a network that loses, delays and
// reorders.  Every worker asks for as much as it can get.
class Fleet {
 public:
  Fleet(std::uint64_t limit, std::size_t workers, std::uint32_t seed) : rng_(seed), limit_(limit) {
    leases_ = std::make_unique<RateLeases>(std::vector{limit_}, false);
    for (std::size_t i = 0; i < workers; ++i) workers_.push_back(born());
  }
  // Percent per message and, for restarts, per step of half a second.
  struct Trouble {
    unsigned lost = 0, worker_dies = 0, coordinator_dies = 0;
    std::uint64_t delay_ms = 20;
  };
  void run(std::int64_t ms, const Trouble& t) {
    for (const std::int64_t end = now_ + ms; now_ < end; now_ += kStep) step(t);
  }
  // The most calls in any minute.
  std::size_t worst() const {
    std::size_t most = 0, first = 0;
    for (std::size_t last = 0; last < granted_.size(); ++last) {
      while (granted_[first] + kRateWindow.count() <= granted_[last]) ++first;
      most = std::max(most, last - first + 1);
    }
    return most;
  }
  std::size_t calls_since(std::int64_t from) const {
    return static_cast<std::size_t>(granted_.end() -
                                    std::lower_bound(granted_.begin(), granted_.end(), from));
  }
  std::int64_t now() const { return now_; }

 private:
  static constexpr std::int64_t kStep = 500;
  struct Worker {
    std::uint64_t boot = 0;
    std::unique_ptr<RateShare> share;
    std::uint32_t used = 0;
    std::int64_t next_sync = 0;
  };
  struct Letter {
    std::int64_t arrives = 0;
    std::size_t worker = 0;
    std::uint64_t boot = 0;
    bool up = false;
    RateLeases::Word word;              // up
    std::uint64_t ticket = 0;           // down
    std::vector<std::uint64_t> shares;  // down
  };

  Worker born() {
    const std::uint64_t boot = rng_();
    return {boot, std::make_unique<RateShare>(boot >> 1), below(5), 0};
  }
  std::uint32_t below(std::uint64_t n) { return static_cast<std::uint32_t>(rng_() % n); }
  void post(Letter letter, const Trouble& t) {
    if (below(100) < t.lost) return;
    letter.arrives = now_ + below(t.delay_ms + 1);
    letters_.push_back(std::move(letter));
  }
  void step(const Trouble& t) {
    if (below(100) < t.coordinator_dies)
      leases_ = std::make_unique<RateLeases>(std::vector{limit_}, true);
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      if (below(100) < t.worker_dies) workers_[i] = born();
      if (below(20) == 0) workers_[i].used = below(5);
      sync(i, t);
    }
    deliver(t);
    std::vector<std::size_t> order(workers_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), rng_);
    for (const std::size_t i : order) call(workers_[i]);
  }
  void sync(std::size_t i, const Trouble& t) {
    Worker& w = workers_[i];
    if (now_ < w.next_sync) return;
    w.next_sync = now_ + 2000;
    const std::uint64_t ticket = w.share->ask(at(now_));
    post({0,
          i,
          w.boot,
          true,
          {ticket, w.share->obeyed(), w.share->calls(at(now_)), 4, w.used},
          0,
          {}},
         t);
  }
  void deliver(const Trouble& t) {
    std::vector<Letter> due;
    std::erase_if(letters_, [&](const Letter& l) {
      if (now_ < l.arrives) return false;
      due.push_back(l);
      return true;
    });
    std::shuffle(due.begin(), due.end(), rng_);
    for (const Letter& l : due) {
      if (l.up) {
        const WorkerId id("w" + std::to_string(l.worker));
        post({0,
              l.worker,
              l.boot,
              false,
              {},
              l.word.ticket,
              leases_->renew(id, BootId(l.boot), l.word, at(now_))},
             t);
      } else {
        workers_[l.worker].share->obey(l.ticket, l.shares);  // perhaps an earlier life's letter
      }
    }
  }
  void call(Worker& w) {
    const std::vector<RateBucket> all{{"calls_per_minute", limit_}};
    while (!w.share->take(all, {0}, 1, at(now_))) granted_.push_back(now_);
  }

  std::mt19937_64 rng_;
  std::uint64_t limit_;
  std::int64_t now_ = 1'000'000;
  std::unique_ptr<RateLeases> leases_;
  std::vector<Worker> workers_;
  std::vector<Letter> letters_;
  std::vector<std::int64_t> granted_;
};

RateLeases::Word word(std::uint64_t ticket, std::uint64_t obeyed, std::uint32_t used,
                      std::vector<std::uint64_t> calls = {0}) {
  return {ticket, obeyed, std::move(calls), 4, used};
}
using Shares = std::vector<std::uint64_t>;

}  // namespace

TEST_SUITE("rates") {
  TEST_CASE("no schedule of losses and delays and restarts passes the limit in any minute") {
    for (std::uint32_t seed = 1; seed <= 120; ++seed) {
      CAPTURE(seed);
      const std::uint64_t limit = 1 + seed % 40;
      Fleet fleet(limit, 1 + seed % 7, seed);
      const unsigned lost = seed % 3 == 0 ? 30 : 0;
      fleet.run(200'000, {.lost = lost, .delay_ms = 20});
      fleet.run(200'000, {lost, 2, 0, 9'000});
      fleet.run(300'000, {lost, 2, 1, 70'000});
      fleet.run(200'000, {.lost = 0, .coordinator_dies = 1, .delay_ms = 20});
      CHECK(fleet.worst() <= limit);
      CHECK(0 < fleet.calls_since(0));
    }
  }

  TEST_CASE("a quiet fleet uses the whole limit") {
    for (const std::uint64_t limit : {1U, 3U, 10U, 60U, 1000U}) {
      CAPTURE(limit);
      Fleet fleet(limit, 5, 7);
      fleet.run(300'000, {});
      const std::int64_t from = fleet.now();
      fleet.run(600'000, {});
      CHECK(fleet.worst() <= limit);
      CHECK(limit * 6 <= fleet.calls_since(from));  // of 10 minutes
    }
  }

  TEST_CASE("shares follow the slots in use and never sum above the limit") {
    RateLeases leases({30}, false);
    const auto give = [&](const char* name, const RateLeases::Word& w, std::int64_t ms) {
      const Shares got = leases.renew(WorkerId(name), BootId(1), w, at(ms));
      CHECK(leases.occupied(0, at(ms)) <= 30);
      return got;
    };
    CHECK(give("a", word(1, 0, 0), 0) == Shares{30});  // alone: everything
    CHECK(give("b", word(1, 0, 2), 10) == Shares{0});  // a may be using it all
    CHECK(give("a", word(2, 1, 1), 2000) == Shares{10});
    CHECK(give("b", word(2, 1, 2), 2010) == Shares{0});  // a has not said that it obeyed
    CHECK(give("a", word(3, 2, 1, {10}), 4000) == Shares{10});
    CHECK(give("b", word(3, 2, 2), 4010) == Shares{20});
    CHECK(give("b", word(3, 2, 2), 4020).empty());  // said already
  }

  TEST_CASE("what a silent worker holds is given to nobody until it cannot have been used lately") {
    RateLeases leases({10}, false);
    CHECK(leases.renew(WorkerId("a"), BootId(1), word(1, 0, 1), at(0)) == Shares{10});
    std::uint64_t ticket = 0;
    const auto next = [&](std::int64_t ms) {
      ++ticket;
      return leases.renew(WorkerId("b"), BootId(1), word(ticket, ticket - 1, 1), at(ms))[0];
    };
    const std::int64_t free_at = (kRateLease + kRateWindow).count();
    for (std::int64_t ms = 2000; ms < free_at; ms += 2000) CHECK(next(ms) == 0);
    CHECK(next(free_at) == 10);
    // A life that was killed is another worker as far as this goes.
    CHECK(leases.renew(WorkerId("b"), BootId(2), word(1, 0, 1), at(free_at + 1)) == Shares{0});
  }

  TEST_CASE("a worker that states more calls than it was given takes nothing from others") {
    RateLeases leases({100}, false);
    const WorkerId honest("a"), liar("b");
    const auto say = [&](const WorkerId& w, std::uint64_t ticket, std::uint64_t calls,
                         std::int64_t ms) {
      return leases.renew(w, BootId(1), {ticket, ticket - 1, {calls}, 1, 1}, at(ms))[0];
    };
    for (std::uint64_t t = 1; t <= 100; ++t) {
      const std::int64_t now = static_cast<std::int64_t>(t) * 2'000;
      const std::uint64_t share = say(honest, t, 0, now);
      (void)say(liar, t, 1'000'000, now);
      // The first to speak had it all; the other comes to its half once that has lapsed.
      if (50 < t) CHECK(share == 50);
    }
    CHECK(leases.occupied(0, at(200'000)) == 100);
    // What it was given once bounds it as long as that can be within a minute, and then no longer.
    RateLeases alone({100}, false);
    CHECK(alone.renew(liar, BootId(1), {1, 0, {0}, 1, 1}, at(0))[0] == 100);
    (void)alone.renew(honest, BootId(1), {1, 0, {0}, 1, 1}, at(1'000));
    CHECK(alone.renew(liar, BootId(1), {2, 1, {100}, 1, 1}, at(2'000))[0] == 50);
    (void)alone.renew(liar, BootId(1), {3, 2, {100}, 1, 1}, at(4'000));
    CHECK(alone.occupied(0, at(4'000)) == 100);
    CHECK(alone.renew(honest, BootId(1), {2, 1, {0}, 1, 1}, at(93'000))[0] == 50);
    (void)alone.renew(liar, BootId(1), {4, 3, {100}, 1, 1}, at(95'000));
    CHECK(alone.renew(honest, BootId(1), {3, 2, {0}, 1, 1}, at(96'000))[0] == 50);
    CHECK(alone.occupied(0, at(96'000)) == 100);
  }

  TEST_CASE("a coordinator that was restarted gives nothing until older shares have lapsed") {
    RateLeases leases({10}, true);
    CHECK(leases.renew(WorkerId("a"), BootId(1), word(1, 0, 1), at(5)) == Shares{0});
    CHECK(leases.renew(WorkerId("a"), BootId(1), word(2, 1, 1), at(90'004)) == Shares{0});
    CHECK(leases.renew(WorkerId("a"), BootId(1), word(3, 2, 1), at(90'005)) == Shares{10});
  }

  TEST_CASE("a worker obeys the newest answer to its own words alone and until its time") {
    RateShare share(100);
    const std::vector<RateBucket> all{{"calls_per_minute", 9}, {"providers.acme", 5}};
    CHECK(share.take(all, {0}, 1, at(0))->retry_after == limits::kSyncInterval);
    const std::uint64_t first = share.ask(at(1000)), second = share.ask(at(3000));
    share.obey(second, {2, 1});
    share.obey(first, {9, 9});        // overtaken
    share.obey(second + 77, {9, 9});  // of another life
    CHECK(share.obeyed() == second);
    CHECK(!share.take(all, {0, 1}, 1, at(4000)));
    const auto wait = share.take(all, {0, 1}, 1, at(5000));
    REQUIRE(wait);
    CHECK(wait->retry_after == Millis(59'000));
    CHECK(wait->reason ==
          "rates.providers.acme: 5 on all workers; this worker's share is 1, 1 granted in the last "
          "minute");
    CHECK(!share.take(all, {0}, 1, at(5000)));  // what was refused took nothing of the other bucket
    CHECK(share.calls(at(5000)) == Shares{2, 1});
    CHECK(share.calls(at(64'000)) == Shares{1, 0});
    CHECK(share.take(all, {1}, 1, at(64'000)).has_value());  // the share ran out at 33 s
  }

  TEST_CASE("a model call counts for its provider and one of an unknown provider for each") {
    const Rates rates{600, {{"acme", 10}, {"zeta", 20}}};
    using List = std::vector<std::size_t>;
    CHECK(buckets_of(rates, {.type = "llm_request", .provider = "zeta"}) == List{0, 2});
    CHECK(buckets_of(rates, {.type = "llm_request", .provider = "other"}) == List{0});
    CHECK(buckets_of(rates, {.type = "llm_request"}) == List{0, 1, 2});
    CHECK(buckets_of(rates, {.type = "tool_call"}) == List{0});
    CHECK(buckets_of({std::nullopt, {{"acme", 10}}}, {.type = "llm_request"}) == List{0});
    CHECK(buckets_of({}, {.type = "llm_request"}).empty());
  }

  TEST_CASE("the scheduler answers a Sync with a share and one without a ticket with none") {
    using namespace scheduler_test;
    SchedulerSettings with = settings();
    with.rates.calls_per_minute = 12;
    Scheduler core(plan_of({0, 0}), with, Epoch(1));
    static_cast<void>(core.start({}));
    wire::Sync s;
    s.worker = WorkerId("w");
    s.boot = BootId(1);
    s.slots = 2;
    s.features = {"sandbox:null"};
    const auto reply = [&] {
      for (const Command& c : core.on(WorkerSynced{s}, {}))
        if (const auto* r = std::get_if<ReplySync>(&c)) return r->reply;
      return wire::SyncReply{};
    };
    CHECK(reply().shares.empty());
    s.ticket = 5;
    CHECK(reply().shares == Shares{12});
    s.ticket = 6;
    CHECK(reply().ticket == 6);
  }

  TEST_CASE("what a provider told one worker of its room is told to the others, while it lasts") {
    using namespace scheduler_test;
    Scheduler core(plan_of({0, 0}), settings(), Epoch(1));
    static_cast<void>(core.start({}));
    const auto reply = [&](const char* worker, std::vector<ProviderHold> holds, std::int64_t ms) {
      wire::Sync s;
      s.worker = WorkerId(worker);
      s.boot = BootId(1);
      s.slots = 1;
      s.features = {"sandbox:null"};
      s.holds = std::move(holds);
      for (const Command& c : core.on(WorkerSynced{s}, {at(ms), {}}))
        if (const auto* r = std::get_if<ReplySync>(&c)) return r->reply.holds;
      return std::vector<ProviderHold>{};
    };
    using Holds = std::vector<ProviderHold>;
    CHECK(reply("a", {{"acme", 8'000}}, 0).empty());  // it said so itself
    CHECK(reply("b", {}, 1'000) == Holds{{"acme", 7'000}});
    CHECK(reply("b", {{"acme", 2'000}}, 2'000) == Holds{{"acme", 6'000}});
    CHECK(reply("a", {{"acme", 6'000}}, 2'000).empty());
    CHECK(reply("b", {{"acme", 10'000}}, 3'000).empty());
    CHECK(reply("a", {{"acme", 5'000}}, 3'000) == Holds{{"acme", 10'000}});
    CHECK(reply("a", {}, 13'000).empty());
    for (int i = 0; i < 40; ++i) reply("a", {{"p" + std::to_string(i), 5'000}}, 20'000);
    CHECK(reply("b", {}, 20'000).size() == kHoldsMax);
  }

  TEST_CASE("one run that asks without end takes no other's turn, and all of it when it is alone") {
    constexpr std::uint64_t kHog = 1, kOther = 2, kLate = 3;
    const std::vector<RateBucket> all = {{"calls_per_minute", 60}};
    RateShare share(100);
    std::int64_t synced = -10'000;
    const auto take = [&](std::uint64_t run, std::int64_t ms) {
      if (synced + 10'000 <= ms) share.obey(share.ask(at(synced = ms)), {60});
      return share.take(all, {0}, run, at(ms));
    };
    // Alone it has all of it, at once.
    for (int i = 0; i < 60; ++i) CHECK_FALSE(take(kHog, 0));
    CHECK(take(kHog, 0).has_value());
    // From then on one asks every 20 ms, one when it is told to, one as a gateway that waits long.
    std::map<std::uint64_t, int> had;
    std::int64_t next = 1'000;
    for (std::int64_t ms = 20; ms < 180'000; ms += 20) {
      if (!take(kHog, ms)) ++had[kHog];
      if (next <= ms) {
        const auto wait = take(kOther, ms);
        if (!wait) ++had[kOther];
        next = ms + (wait ? std::min<std::int64_t>(wait->retry_after.count(), 2'000) : 20);
      }
      if (ms % 2'000 == 0 && !take(kLate, ms)) ++had[kLate];
    }
    CAPTURE(had[kHog]);
    CHECK(30 <= had[kOther]);  // of 120 in two minutes
    CHECK(20 <= had[kLate]);   // of as many as it asked for
    CHECK(had[kHog] + had[kOther] + had[kLate] <= 180);
    CHECK(90 <= had[kHog] + had[kOther] + had[kLate]);  // nothing to speak of was kept for nobody
    // Who was told to come again and does not is not waited for.
    std::int64_t taken = 0;
    for (std::int64_t ms = 260'000; ms < 262'000; ms += 20) taken += take(kHog, ms) ? 0 : 1;
    CHECK(taken == 60);
  }
}

}  // namespace proctor
