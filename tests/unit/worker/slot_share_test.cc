// How a worker of several campaigns gives out its slots: against coordinators that take a while,
// void what they may not send any more, lose their connections and fall silent.
#include "worker/core/slot_share.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>

using namespace proctor;

namespace {

constexpr Instant kStart{Millis(1'000'000)};
constexpr Millis kStep{50};

std::uint64_t below(std::mt19937_64& rng, std::uint64_t n) {
  return rng() % n;
}

// One worker and its coordinators; every message takes a while, and keeps its order on its link.
struct World {
  struct Word {  // to the coordinator: a Sync, or a result (ticket 0)
    Instant at{};
    std::uint64_t ticket = 0;
    std::uint32_t slots = 0, running = 0;
    bool first = false;  // of its connection
  };
  struct Answer {  // to the worker: a SyncReply, or an Assign of one (ticket 0)
    Instant at{};
    std::uint64_t ticket = 0;
    std::uint32_t demand = 0;
  };
  struct Coordinator {
    SlotShare::Index place = 0;
    bool linked = false, answers = true;
    std::uint32_t work = 1'000'000;  // runs that wait
    bool fills = true;               // else it says that it has work, and assigns none
    // What it knows.
    std::uint32_t slots = 0, held = 0;
    std::deque<Instant> granting;  // money is asked for; then it is assigned, or voided
    std::deque<Word> to_it;
    std::deque<Answer> from_it;
    // At the worker.
    std::vector<Instant> ends;
    bool fresh = true;  // nothing was said on this connection
    Instant next_sync{};
    double used = 0;  // slots times milliseconds
    std::uint64_t voided = 0, begun = 0;
  };

  World(std::uint32_t slots, std::uint64_t seed) : share(slots), slots_(slots), rng(seed) {}

  Coordinator& add(const std::string& name, std::uint32_t weight, std::uint32_t priority = 5) {
    Coordinator& c = all.emplace_back();
    c.place = share.add({name, weight, priority});
    return c;
  }
  void link(Coordinator& c, bool up) {
    c.linked = up;
    c.to_it.clear();
    c.from_it.clear();
    // It finds a worker by the connection of its last Sync.
    c.granting.clear();
    c.slots = 0;
    c.fresh = true;
    c.next_sync = now;
    if (!up) share.link_down(c.place);
  }
  Instant later() { return now + Millis(1 + static_cast<std::int64_t>(below(rng, 120))); }
  // The order of one connection is kept.
  template <class T>
  void post(std::deque<T>& queue, T word) {
    word.at = queue.empty() ? later() : std::max(queue.back().at, later());
    queue.push_back(word);
  }
  void sync(Coordinator& c) {
    if (!c.linked) return;
    share.told(c.place, ++ticket_);
    post(c.to_it, Word{{}, ticket_, share.says(c.place), held(c), std::exchange(c.fresh, false)});
    c.next_sync = now + Millis(2'000);
  }
  static std::uint32_t held(const Coordinator& c) {
    return static_cast<std::uint32_t>(c.ends.size());
  }
  void give_out() {
    for (Coordinator& c : all) {
      share.held(c.place, held(c), now);
      share.open(c.place, c.linked);
    }
    for (const SlotShare::Index i : share.share(now))
      for (Coordinator& c : all)
        if (c.place == i) sync(c);
  }
  void coordinator_turn(Coordinator& c) {
    while (!c.to_it.empty() && c.to_it.front().at <= now && c.answers) {
      const Word word = c.to_it.front();
      c.to_it.pop_front();
      if (word.ticket == 0) {
        --c.held;
        continue;
      }
      c.slots = word.slots;
      if (word.first) {
        c.held = word.running;
        c.granting.clear();
      }
      post(c.from_it, Answer{{}, word.ticket, c.work});
    }
    while (!c.granting.empty() && c.granting.front() <= now) {
      c.granting.pop_front();
      if (c.slots < c.held) {  // Scheduler::assign_or_void
        --c.held;
        ++c.work;
        ++c.voided;
        continue;
      }
      if (c.linked) post(c.from_it, Answer{});
    }
    while (c.answers && c.fills && c.linked && 0 < c.work && c.held < c.slots) {
      --c.work;
      ++c.held;
      c.granting.push_back(later());
    }
  }
  void worker_turn(Coordinator& c) {
    while (!c.from_it.empty() && c.from_it.front().at <= now) {
      const Answer answer = c.from_it.front();
      c.from_it.pop_front();
      if (answer.ticket != 0) {
        share.heard(c.place, answer.ticket, answer.demand, Millis(2'000));
      } else {
        c.ends.push_back(now + length / 2 +
                         Millis(static_cast<std::int64_t>(
                             below(rng, static_cast<std::uint64_t>(length.count())))));
        ++c.begun;
      }
      give_out();
    }
    for (auto it = std::ranges::find_if(c.ends, [&](Instant end) { return end <= now; });
         it != c.ends.end();
         it = std::ranges::find_if(c.ends, [&](Instant end) { return end <= now; })) {
      c.ends.erase(it);
      give_out();  // before the result goes out
      if (c.linked) post(c.to_it, Word{});
    }
    if (c.linked && c.next_sync <= now) sync(c);
  }
  void run(Millis time) {
    for (const Instant end = now + time; now < end; now += kStep) {
      for (Coordinator& c : all) coordinator_turn(c);
      for (Coordinator& c : all) worker_turn(c);
      give_out();
      std::uint64_t out = 0, promised = 0;
      for (Coordinator& c : all) {
        out += held(c);
        promised += share.promised(c.place);
        c.used += static_cast<double>(held(c)) * static_cast<double>(kStep.count());
      }
      REQUIRE(out <= slots_);
      REQUIRE(promised <= slots_);
      busy += static_cast<double>(out) * static_cast<double>(kStep.count());
    }
  }
  double part(const Coordinator& c) const { return busy == 0 ? 0 : c.used / busy; }

  SlotShare share;
  std::uint32_t slots_;
  std::mt19937_64 rng;
  Instant now = kStart;
  Millis length{5'000};
  double busy = 0;
  std::deque<Coordinator> all;

 private:
  std::uint64_t ticket_ = 0;
};

}  // namespace

TEST_SUITE("slot share") {
  TEST_CASE("one coordinator has all slots, whatever it says of its work") {
    SlotShare share(3);
    const auto i = share.add({"only"});
    CHECK(share.share(kStart).empty());  // not connected
    share.open(i, true);
    CHECK(share.share(kStart) == std::vector<SlotShare::Index>{i});
    CHECK(share.says(i) == 3);
    share.told(i, 1);
    share.heard(i, 1, 0, Millis(2'000));
    share.held(i, 3, kStart);
    CHECK(share.share(kStart + Millis(100'000)).empty());
    share.open(i, false);  // it drains
    CHECK(share.share(kStart + Millis(100'000)) == std::vector<SlotShare::Index>{i});
    CHECK(share.says(i) == 0);
  }

  TEST_CASE("a slot changes hands only when who had it has answered that it knows") {
    SlotShare share(1);
    const auto a = share.add({"a"}), b = share.add({"b"});
    Instant now = kStart;
    share.open(a, true);
    CHECK(share.share(now).size() == 1);
    share.told(a, 7);
    share.heard(a, 7, 0, Millis(2'000));
    share.open(b, true);
    share.heard(b, 1, 5, Millis(2'000));
    now += Millis(60'000);
    CHECK(share.share(now) == std::vector<SlotShare::Index>{a});
    CHECK(share.says(a) == 0);
    CHECK(share.says(b) == 0);
    share.told(a, 8);
    share.heard(a, 7, 0, Millis(2'000));  // late, of the Sync before
    CHECK(share.share(now).empty());
    share.heard(a, 8, 0, Millis(2'000));
    CHECK(share.share(now) == std::vector<SlotShare::Index>{b});
    CHECK(share.says(b) == 1);
    // And at once where the connection is gone.
    share.told(b, 2);
    share.link_down(b);
    share.heard(a, 8, 5, Millis(2'000));
    CHECK(share.share(now) == std::vector<SlotShare::Index>{a});
    CHECK(share.says(a) == 1);
  }

  TEST_CASE("shares are as the weights on every number of slots") {
    for (const std::uint32_t slots : {1U, 2U, 3U, 8U, 40U}) {
      CAPTURE(slots);
      World world(slots, slots);
      World::Coordinator& one = world.add("one", 1);
      World::Coordinator& two = world.add("two", 2);
      World::Coordinator& four = world.add("four", 4);
      for (World::Coordinator& c : world.all) world.link(c, true);
      world.run(Millis(1'000'000));
      CHECK(std::abs(world.part(one) - 1.0 / 7) < 0.05);
      CHECK(std::abs(world.part(two) - 2.0 / 7) < 0.05);
      CHECK(std::abs(world.part(four) - 4.0 / 7) < 0.05);
      CHECK(world.busy > 0.8 * 1'000'000 * slots);  // and the slots are used
    }
  }

  TEST_CASE("who comes back from idleness has its share soon and who has work alone has all") {
    World world(4, 3);
    World::Coordinator& a = world.add("a", 1);
    World::Coordinator& b = world.add("b", 1);
    world.link(a, true);
    world.link(b, true);
    b.work = 0;
    world.run(Millis(200'000));
    CHECK(world.part(a) == 1);
    CHECK(world.busy > 0.8 * 4 * 200'000);
    b.work = 1'000'000;
    world.run(3 * world.length);
    a.used = b.used = world.busy = 0;
    world.run(Millis(100'000));
    CHECK(std::abs(world.part(b) - 0.5) < 0.1);
  }

  TEST_CASE("a higher priority goes first, and of sixteen slots each has one") {
    World small(2, 5), large(16, 5);
    for (World* world : {&small, &large}) {
      World::Coordinator& high = world->add("high", 1, 9);
      World::Coordinator& low = world->add("low", 100, 1);
      world->link(high, true);
      world->link(low, true);
      world->run(Millis(30'000));
      high.used = low.used = world->busy = 0;
      world->run(Millis(200'000));
      if (world == &small)
        CHECK(world->part(high) == 1);
      else
        CHECK(std::abs(world->part(low) - 1.0 / 16) < 0.02);
    }
  }

  TEST_CASE("slots that are asked for and not filled go to the others") {
    World world(4, 7);
    World::Coordinator& a = world.add("a", 1);
    World::Coordinator& boast = world.add("boast", 1);
    boast.fills = false;  // its money is out, say
    world.link(a, true);
    world.link(boast, true);
    world.run(Millis(60'000));
    a.used = world.busy = 0;
    world.run(Millis(400'000));
    CHECK(a.used > 0.6 * 4 * 400'000);  // the other is asked again now and then
    boast.fills = true;
    world.run(Millis(120'000));
    a.used = boast.used = world.busy = 0;
    world.run(Millis(200'000));
    CHECK(std::abs(world.part(boast) - 0.5) < 0.1);
  }

  TEST_CASE("a coordinator that dies or stands still harms nobody") {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      CAPTURE(seed);
      World world(1 + static_cast<std::uint32_t>(seed % 5), seed);
      for (int i = 0; i < 5; ++i)
        world.link(world.add("c" + std::to_string(i), 1 + static_cast<std::uint32_t>(i % 3)), true);
      std::mt19937_64 rng(seed);
      for (int event = 0; event < 60; ++event) {
        world.run(Millis(static_cast<std::int64_t>(below(rng, 6'000))));
        World::Coordinator& c = world.all[below(rng, world.all.size())];
        switch (below(rng, 4)) {
          case 0:
            world.link(c, !c.linked);
            break;
          case 1:
            c.answers = !c.answers;
            break;
          case 2:
            c.work = c.work == 0 ? 1'000'000 : 0;
            break;
          default:
            c.fills = !c.fills;
        }
      }
      // The first, when all others are gone.
      for (std::size_t i = 1; i < world.all.size(); ++i) world.link(world.all[i], false);
      World::Coordinator& last = world.all[0];
      last.answers = last.fills = true;
      last.work = 1'000'000;
      world.link(last, false);
      world.link(last, true);
      world.run(Millis(120'000));
      const std::uint64_t before = last.begun;
      world.run(Millis(60'000));
      CHECK(before < last.begun);
      CHECK(World::held(last) <= world.slots_);
    }
  }
}
