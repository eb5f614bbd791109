// Random campaigns that share an envelope on a real Redis, while they are killed at every point,
// come back, leave, and Redis is emptied: what all of them hold together never passes the cap, and
// in the end everything is exact.
#include <hiredis/hiredis.h>

#include <array>
#include <random>

#include "tests/integration/ledger/shared_world.h"

namespace proctor::test::shared_property {
namespace {

struct Tally {
  int granted = 0, denied = 0, later = 0, flushes = 0, kills = 0, leaves = 0, refused = 0;
  int given_up = 0;
};

class World {
 public:
  World(const Home& home, std::uint64_t seed, std::int64_t cap)
      : home_(home), random_(seed), cap_(cap) {
    for (std::uint64_t i = 0; i < 3 + below(3); ++i)
      all_.push_back(std::make_unique<SharedCampaign>(
          home, "c" + std::to_string(i),
          static_cast<std::int64_t>(below(static_cast<std::uint64_t>(cap))) + 1, cap));
    flush();
    found();
  }

  void step(Tally& tally) {
    SharedCampaign& one = *all_[below(all_.size())];
    const std::uint64_t what = below(100);
    if (what < 2) {
      flush();
      ++tally.flushes;
    } else if (!one.alive()) {
      if (what < 50)
        tally.refused += one.start().ok() ? 0 : 1;
      else if (what < 55)
        tally.given_up += one.give_up().ok() ? 1 : 0;
    } else if (what < 5) {
      one.kill();
      ++tally.kills;
    } else if (what < 7) {
      if (one.open() == 0) ++tally.leaves;
      one.leave();
    } else if (what < 35) {
      one.tend();
    } else if (what < 55) {
      one.commit();
    } else if (what < 80) {
      count(one.ask(1 + static_cast<std::int64_t>(below(80))), tally);
    } else {
      one.settle(below(1000), below(100), below(4) == 0);
    }
    MicroUsd held;
    for (const auto& c : all_) held = held + c->held();
    REQUIRE(held <= micro(cap_));
  }

  // Everybody comes back, pays and is told of; then what is left can be used, and not one more.
  void end() {
    for (int round = 0; round < 60; ++round) {
      for (const auto& c : all_) {
        if (!c->alive()) (void)c->start();
        c->tend();
        c->commit();
        c->settle(0, below(100), false);
        c->commit();
      }
      if (nobody_is_member()) found();
    }
    MicroUsd spent;
    for (const auto& c : all_) {
      CAPTURE(c->id());
      REQUIRE(c->alive());
      REQUIRE(c->is_member());
      REQUIRE(c->open() == 0);
      spent = spent + c->spent();
    }
    RedisLedger looks = all_[0]->fresh();
    const SharedView view = must(looks.shared());
    REQUIRE(view.members.size() == all_.size());
    for (const auto& c : all_) {
      const SharedMember* row = view.find(c->id());
      REQUIRE(row != nullptr);
      CHECK(row->state == SharedMember::State::kHeard);
      CHECK(row->spent == c->spent());
      CHECK(row->reserved == MicroUsd::zero());
    }
    const MicroUsd left = micro(cap_) - spent;
    for (const auto& c : all_) {
      const auto more = c->ask((left + micro(1)).micros());
      REQUIRE(more.has_value());
      CHECK(more->kind == ReserveAnswer::Kind::kDenied);
    }
  }

 private:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  bool nobody_is_member() const {
    return std::ranges::none_of(all_, [](const auto& c) { return c->is_member(); });
  }
  static void count(const std::optional<ReserveAnswer>& answer, Tally& tally) {
    if (!answer) return;
    if (answer->kind == ReserveAnswer::Kind::kGranted)
      ++tally.granted;
    else
      ++(answer->later ? tally.later : tally.denied);
  }
  void flush() {
    RedisConnection c = home_.connection();
    must(c.call(std::array<std::string_view, 1>{"FLUSHALL"}));
    if (!all_.empty() && nobody_is_member()) found();
  }
  // A person who knows what everybody who left has spent, and that nobody is a member.
  void found() {
    std::vector<SharedMember> known;
    for (const auto& c : all_)
      if (MicroUsd::zero() < c->spent()) known.push_back(c->as_left());
    const Status founded = all_[0]->fresh().found(micro(cap_), known);
    if (!founded.ok()) REQUIRE(founded.error().code == Errc::kConflict);
  }

  const Home& home_;
  std::mt19937_64 random_;
  std::int64_t cap_;
  std::vector<std::unique_ptr<SharedCampaign>> all_;
};

}  // namespace

TEST_SUITE("shared envelope") {
  TEST_CASE("whatever is killed or lost, campaigns together never pass what they share") {
    const Home home;
    Tally tally;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      CAPTURE(seed);
      World world(home, seed, 200 + static_cast<std::int64_t>(seed * 37 % 900));
      for (int i = 0; i < 600; ++i) {
        CAPTURE(i);
        world.step(tally);
      }
      world.end();
    }
    for (const int n : {tally.granted, tally.denied, tally.later, tally.flushes, tally.kills,
                        tally.leaves, tally.refused, tally.given_up})
      CHECK(20 < n);
    MESSAGE(tally.granted << " granted, " << tally.denied << " denied, " << tally.later
                          << " denied for now, " << tally.flushes << " flushes, " << tally.kills
                          << " kills, " << tally.leaves << " left, " << tally.given_up
                          << " given up, " << tally.refused << " starts refused");
  }
}

}  // namespace proctor::test::shared_property
