#include "coordinator/core/run_queue.h"

#include <doctest/doctest.h>

using namespace proctor;

namespace {
using Answer = RunQueue::Answer;
using Verdict = RunQueue::Verdict;
constexpr ScopeId kCampaign(0);

ScopeId task_scope(std::uint32_t task) {
  return ScopeId(2 + task);
}
// One run for each number: its task.
PlanView plan_of(const std::vector<std::uint32_t>& tasks) {
  PlanView plan;
  const MicroUsd cap = MicroUsd::from_micros(100);
  plan.scopes = {{"global", cap}, {"stage:one", cap}, {"task:0", cap}, {"task:1", cap}};
  plan.stage_scopes = {ScopeId(1)};
  for (std::uint32_t t = 0; t < 2; ++t)
    plan.tasks.push_back({task_scope(t), MicroUsd::from_micros(1), 1u << t});
  for (const std::uint32_t t : tasks) plan.runs.push_back({t, 0});
  return plan;
}
Answer take(RunId) {
  return {};
}
// Everything the queue gives now, as run numbers.
template <class Judge>
std::vector<std::uint32_t> all(RunQueue& queue, const Judge& judge) {
  std::vector<std::uint32_t> out;
  while (const auto run = queue.next(judge, 100)) out.push_back(run->raw());
  return out;
}
using Runs = std::vector<std::uint32_t>;
}  // namespace

TEST_SUITE("run queue") {
  TEST_CASE("runs come in plan order without what is skipped") {
    const PlanView plan = plan_of({0, 1, 0, 1});
    RunQueue queue(plan);
    queue.skip(RunId(1));
    CHECK(queue.size() == 3);
    CHECK(all(queue, take) == Runs{0, 2, 3});
    CHECK(queue.empty());
  }

  TEST_CASE("what is put back comes before later runs and in plan order") {
    const PlanView plan = plan_of({0, 0, 0, 0, 0});
    RunQueue queue(plan);
    for (int i = 0; i < 3; ++i) REQUIRE(queue.next(take, 1).has_value());
    queue.put_back(RunId(2));
    queue.put_back(RunId(0));
    CHECK(all(queue, take) == Runs{0, 2, 3, 4});
  }

  TEST_CASE("a wait at a task's envelope lets the other tasks pass") {
    const PlanView plan = plan_of({0, 1, 0, 1});
    RunQueue queue(plan);
    bool is_short = true;
    const auto judge = [&](RunId run) -> Answer {
      if (is_short && run == RunId(0)) return {Verdict::kWaitForScope, task_scope(0), 0};
      return {};
    };
    CHECK(all(queue, judge) == Runs{1, 3});  // run 2 needs the same envelope
    CHECK(queue.waiting_for(RunId(2)) == task_scope(0));
    CHECK(queue.size() == 2);
    is_short = false;
    CHECK(all(queue, judge).empty());  // nobody said that money came back
    queue.wake_scope(task_scope(1));   // nobody waits there
    CHECK(all(queue, judge).empty());
    queue.wake_scope(task_scope(0));
    CHECK(all(queue, judge) == Runs{0, 2});
  }

  TEST_CASE("a wait at the campaign's or a stage's envelope stops the line") {
    for (const ScopeId scope : {kCampaign, ScopeId(1)}) {
      CAPTURE(scope.raw());
      const PlanView plan = plan_of({0, 1, 0, 1});
      RunQueue queue(plan);
      bool is_short = true;
      const auto judge = [&](RunId run) -> Answer {
        if (is_short && run == RunId(1)) return {Verdict::kWaitForScope, scope, 0};
        return {};
      };
      CHECK(all(queue, judge) == Runs{0});
      is_short = false;
      queue.wake_scope(scope);
      CHECK(all(queue, judge) == Runs{1, 2, 3});
    }
  }

  TEST_CASE("a wait for a capability lets others pass until such a slot is free") {
    const PlanView plan = plan_of({0, 1, 0});
    RunQueue queue(plan);
    std::uint32_t has = 2;
    const auto judge = [&](RunId run) -> Answer {
      const std::uint64_t needs = plan.needs_of(run);
      if ((needs & ~has) != 0) return {Verdict::kWaitForWorker, {}, needs};
      return {};
    };
    CHECK(all(queue, judge) == Runs{1});
    queue.wake_workers(2);
    CHECK(all(queue, judge).empty());
    has = 3;
    queue.wake_workers(3);
    CHECK(all(queue, judge) == Runs{0, 2});
  }

  TEST_CASE("what a worker could take leaves out what waits for money or for another kind") {
    const PlanView plan = plan_of({0, 1, 0, 1, 0});
    RunQueue queue(plan);
    CHECK(queue.wanting(0) == 5);  // nobody has looked yet
    CHECK(all(queue, [](RunId run) {
            return run.raw() % 2 == 0 ? Answer{Verdict::kWaitForScope, task_scope(0), 0}
                                      : Answer{Verdict::kWaitForWorker, ScopeId(), 2};
          }).empty());
    CHECK(queue.wanting(0) == 0);
    CHECK(queue.wanting(2) == 2);
    queue.remove(RunId(0));
    queue.remove(RunId(1));
    CHECK(queue.wanting(3) == 1);
  }

  TEST_CASE("one call looks at no more candidates than it is told") {
    const PlanView plan = plan_of({0, 0, 0, 1});
    RunQueue queue(plan);
    int asked = 0;
    const auto judge = [&](RunId) -> Answer {
      ++asked;
      return {Verdict::kWaitForWorker, {}, 1};
    };
    CHECK_FALSE(queue.next(judge, 2).has_value());
    CHECK(asked == 2);
    CHECK(queue.size() == 4);
  }
}
