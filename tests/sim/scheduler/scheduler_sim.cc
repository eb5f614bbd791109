// Simulation of the scheduler.  A failing seed replays exactly:
//   PROCTOR_SIM_SEED=17 build/release/proctor_scheduler_sim
// The long form: PROCTOR_SIM_SEEDS=10000 (five minutes of processor time).
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tests/sim/scheduler/world.h"

using proctor::sim::Exercised;
using proctor::sim::World;

namespace {
constexpr std::uint64_t kTold = 1'000;

std::uint64_t from_env(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// The one that is asked for; else 1 to `count`, and later ones that failed once.
std::vector<std::uint64_t> seeds_of(std::uint64_t count) {
  if (const std::uint64_t only = from_env("PROCTOR_SIM_SEED", 0); only != 0) return {only};
  std::vector<std::uint64_t> out;
  for (std::uint64_t seed = 1; seed <= count; ++seed) out.push_back(seed);
  for (const std::uint64_t seed : {541, 4010, 4718, 7283})
    if (count < seed) out.push_back(seed);
  return out;
}
}  // namespace

TEST_SUITE("scheduler simulation") {
  TEST_CASE("every run ends once and no envelope is passed whatever dies") {
    Exercised seen;
    const std::uint64_t only = from_env("PROCTOR_SIM_SEED", 0);
    const std::uint64_t seeds = from_env("PROCTOR_SIM_SEEDS", 500);
    for (const std::uint64_t seed : seeds_of(seeds)) {
      World world(seed, seen);
      const bool held = world.run();
      INFO("replay with PROCTOR_SIM_SEED=" << seed);
      REQUIRE_MESSAGE(held, world.why());
      if (seed % kTold == 0) std::fprintf(stderr, "%lu of %lu seeds\n", seed, seeds);
    }
    if (only != 0) return;
    MESSAGE(seeds << " seeds, " << seen.runs << " runs: lost " << seen.lost << ", repeated "
                  << seen.repeated << ", worker deaths " << seen.worker_deaths
                  << ", coordinator deaths " << seen.coordinator_deaths << ", partitions "
                  << seen.partitions << ", denials " << seen.denials << ", parked " << seen.parked
                  << ", voided " << seen.voided << ", attempts lost " << seen.attempts_lost
                  << ", late results " << seen.late_results << ", infrastructure "
                  << seen.infrastructure << ", adopted " << seen.adopted << ", reassigned "
                  << seen.reassigned << ", cancelled on sync " << seen.cancelled_on_sync
                  << ", resent " << seen.resent << ", drains " << seen.drains << ", ledger repeats "
                  << seen.ledger_repeats << ", slow answers " << seen.slow_answers
                  << ", answers lost " << seen.answers_lost << ", gone for good "
                  << seen.gone_for_good << ", ended by the limit " << seen.ended_by_limit
                  << ", plans with envelopes across " << seen.across << ", denials there "
                  << seen.short_across << ", alerts " << seen.alerts << ", dominant "
                  << seen.dominant << ", stop orders " << seen.stop_orders << ", stopped "
                  << seen.stopped << ", alerts known to a later life " << seen.alerts_known
                  << " and added by one " << seen.alerts_added << ", reported dead "
                  << seen.reported_dead << ", compared with a resume " << seen.compared);
    const std::pair<std::string, std::uint64_t> decided[] = {
        {"pauses", seen.pauses},
        {"suspended", seen.suspended},
        {"cancels", seen.cancels},
        {"requeues", seen.requeues},
        {"approvals", seen.approvals},
        {"kicks", seen.kicks},
        {"quarantines", seen.quarantines},
        {"own quarantines", seen.own_quarantines},
        {"worker drains", seen.worker_drains},
        {"leaves", seen.leaves},
        {"declined", seen.declined},
        {"given back", seen.given_back},
        {"raises", seen.raises},
        {"unchanged", seen.unchanged},
        {"overloads", seen.overloads},
        {"waited", seen.waited},
        {"escalated", seen.escalated},
        {"poison kills", seen.poison_kills},
        {"convicted", seen.convicted},
        {"blamed", seen.blamed},
        {"withdrawn", seen.withdrawn},
        {"excused", seen.excused},
        {"alone", seen.alone},
        {"torn", seen.torn},
        {"misfits", seen.misfits},
        {"reopened", seen.reopened},
        {"outlived", seen.outlived},
        {"clock jumps", seen.clock_jumps},
        {"disconnected", seen.disconnected},
        {"broken task", seen.broken},
        {"mute method", seen.mute},
        {"deaf host", seen.deaf},
        {"task parked", seen.task_parked},
        {"method parked", seen.method_parked},
        {"let go", seen.let_go}};
    for (const auto& [what, count] : decided) {
      CAPTURE(what);
      MESSAGE(what << ' ' << count);
      CHECK(0 < count);
    }
    for (const std::uint64_t count : {seen.lost,           seen.repeated,
                                      seen.worker_deaths,  seen.coordinator_deaths,
                                      seen.partitions,     seen.denials,
                                      seen.parked,         seen.voided,
                                      seen.attempts_lost,  seen.late_results,
                                      seen.infrastructure, seen.adopted,
                                      seen.reassigned,     seen.cancelled_on_sync,
                                      seen.resent,         seen.drains,
                                      seen.ledger_repeats, seen.slow_answers,
                                      seen.answers_lost,   seen.gone_for_good,
                                      seen.ended_by_limit, seen.across,
                                      seen.short_across,   seen.alerts,
                                      seen.dominant,       seen.stop_orders,
                                      seen.stopped,        seen.alerts_known,
                                      seen.alerts_added,   seen.reported_dead})
      CHECK(0 < count);
  }

  TEST_CASE("no run of a stage begins before its gate is open, whatever dies") {
    Exercised seen;
    const std::uint64_t only = from_env("PROCTOR_SIM_SEED", 0);
    const std::uint64_t seeds = from_env("PROCTOR_SIM_SEEDS", 500) / 50 + 1;
    for (const std::uint64_t seed : seeds_of(seeds)) {
      World world(seed, seen, World::Stages::kStaged);
      const bool held = world.run();
      INFO("replay with PROCTOR_SIM_SEED=" << seed);
      REQUIRE_MESSAGE(held, world.why());
    }
    if (only != 0) return;
    MESSAGE(seeds << " seeds: stages opened " << seen.stages_opened << ", approvals "
                  << seen.stages_approved << ", closed " << seen.stages_closed << ", waived "
                  << seen.waived << ", coordinator deaths " << seen.coordinator_deaths);
    CHECK(0 < seen.stages_opened);
    CHECK(0 < seen.stages_approved);
    CHECK(0 < seen.stages_closed);
    CHECK(0 < seen.waived);
    CHECK(0 < seen.coordinator_deaths);
  }

  TEST_CASE("two campaigns that share an envelope both end and never pass it together") {
    Exercised seen;
    const std::uint64_t only = from_env("PROCTOR_SIM_SEED", 0);
    const std::uint64_t seeds = from_env("PROCTOR_SIM_SEEDS", 500) / 2 + 1;
    for (const std::uint64_t seed : seeds_of(seeds)) {
      World one(seed, seen), other(seed + 1'000'000'007, seen);
      const bool held = World::run_both(one, other);
      INFO("replay with PROCTOR_SIM_SEED=" << seed);
      REQUIRE_MESSAGE(held, one.why());
    }
    if (only != 0) return;
    MESSAGE(seeds << " pairs: denied for good " << seen.shared_denials << ", for now "
                  << seen.denied_for_now << ", told of the other " << seen.told_elsewhere
                  << ", coordinator deaths " << seen.coordinator_deaths);
    CHECK(0 < seen.shared_denials);
    CHECK(0 < seen.denied_for_now);
    CHECK(0 < seen.told_elsewhere);
    CHECK(0 < seen.coordinator_deaths);
  }

  TEST_CASE("the same seed takes the same path") {
    Exercised seen;
    World a(7, seen), b(7, seen);
    REQUIRE(a.run());
    REQUIRE(b.run());
    CHECK(a.digest() == b.digest());
  }
}
