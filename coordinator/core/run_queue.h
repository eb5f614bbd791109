#pragma once
// The order of runs: the plan as the scheduler sees it, the queue, and the gates before stages.
// Pure; owned by the scheduler.
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/digest.h"
#include "common/base/result.h"
#include "common/contract/stages.h"
#include "common/ledger/ledger.h"
#include "coordinator/core/notes.h"

namespace proctor {
// The scheduler's view of the frozen plan: what order and money need, no names.
struct PlanView {
  struct Run {
    std::uint32_t task = 0;
    std::uint16_t stage = 0;
    std::uint16_t method = 0;
  };
  struct Task {
    ScopeId scope;
    MicroUsd ask;                   // reserved for one run of it
    std::uint64_t needs = 0;        // capabilities a worker must have (bit set)
    std::vector<ScopeId> strata{};  // envelopes across the tree that its runs need room in too
    std::uint64_t agent_needs = 0;  // those that only a method needs which runs a program in it
  };
  struct Method {
    std::uint64_t needs = 0;      // beside its task's
    bool in_environment = false;  // it runs a program in what the contract says
  };
  std::vector<Run> runs;
  std::vector<Task> tasks;
  std::vector<ScopeId> stage_scopes;
  // By method; scope 0 (or nothing) where a method has no envelope of its own.
  std::vector<ScopeId> method_scopes;
  std::vector<ScopeSpec> scopes;  // scopes[0] is the campaign's own
  std::optional<ScopeId> shared;  // the one that other campaigns use too, around all runs
  // The images that tasks run in, as workers' features name them; a task's `needs` has their bits.
  std::vector<std::string> images;
  // What runs need of a host, as workers' features name what they lack; likewise.
  std::vector<std::string> things;
  std::vector<Method> methods;  // may be shorter: the others need nothing
  struct Stage {
    std::string name;
    StageRules rules;
    MicroUsd registered;  // its envelope before any raise
  };
  // Both empty where no stage has rules: then none waits for another.
  std::vector<Stage> stages{};
  std::vector<std::string> method_names{};
  // By scope: it has no cap of its own and holds what the campaign's holds.  May be shorter.
  std::vector<bool> follows;
  // By run: it spreads waits (failures.h).  May be shorter: then its number does.
  std::vector<std::uint32_t> seeds;
  std::uint32_t seed_of(RunId run) const {
    return run.raw() < seeds.size() ? seeds[run.raw()] : run.raw();
  }

  // The envelopes of a run, outermost first, then across: kScopesPerReservation at most.
  template <class Visit>
  void each_scope(RunId run, const Visit& visit) const {
    const Run& r = runs[run.raw()];
    const Task& task = tasks[r.task];
    visit(ScopeId(0));
    if (shared) visit(*shared);
    visit(stage_scopes[r.stage]);
    visit(task.scope);
    if (r.method < method_scopes.size() && method_scopes[r.method] != ScopeId(0))
      visit(method_scopes[r.method]);
    for (const ScopeId s : task.strata) visit(s);
  }
  std::vector<ScopeId> path(RunId run) const {
    std::vector<ScopeId> out;
    each_scope(run, [&](ScopeId s) { out.push_back(s); });
    return out;
  }
  // Every run that comes after this one, in its stage, needs this envelope too.
  bool holds_all(ScopeId scope, RunId run) const {
    return scope == ScopeId(0) || scope == shared || scope == stage_scopes[runs[run.raw()].stage];
  }
  bool follows_global(ScopeId scope) const {
    return scope.raw() < follows.size() && follows[scope.raw()];
  }
  // "stage:NAME".
  const std::string& stage_scope_of(RunId run) const {
    return scopes[stage_scopes[runs[run.raw()].stage].raw()].name;
  }
  const Task& task_of(RunId run) const { return tasks[runs[run.raw()].task]; }
  // Of a worker, by task and method.
  std::uint64_t needs_of(RunId run) const {
    const Task& task = task_of(run);
    const std::size_t method = runs[run.raw()].method;
    if (methods.size() <= method) return task.needs;
    const Method& m = methods[method];
    return task.needs | m.needs | (m.in_environment ? task.agent_needs : 0);
  }
};

// RunQueue: which run is next.  Plan order, except that a run which cannot be afforded while money
// is still out waits for it, and lets later runs pass only where they do not need the same
// envelope.  Memory: nine bytes per run of the plan, plus the waiting ones.
class RunQueue {
 public:
  explicit RunQueue(const PlanView& plan);

  // What the scheduler says of a candidate.
  enum class Verdict { kTake, kWaitForScope, kWaitForWorker };
  struct Answer {
    Verdict verdict = Verdict::kTake;
    ScopeId scope;            // kWaitForScope: where money is short while some is still out
    std::uint64_t needs = 0;  // kWaitForWorker: what no free slot offers
  };
  // Takes the first run in plan order that `judge` lets start.  Looks at `scan_max` candidates at
  // most, so that one call stays short; call again until it answers nothing.
  std::optional<RunId> next(const std::function<Answer(RunId)>& judge, std::size_t scan_max);

  void put_back(RunId run);              // it is to be done again: order by plan position
  void wake_scope(ScopeId scope);        // money came back to this envelope
  void wake_workers(std::uint64_t has);  // a slot with these capabilities is free
  void skip(RunId run);                  // restored as ended: never comes up
  void remove(RunId run);                // queued or waiting, and now neither
  // Runs from this place of the plan on are not taken.  Only ever later than before.
  void shut_from(std::uint32_t run);

  // Runs that are queued or waiting.
  std::size_t size() const { return pending_; }
  // Those of them that are not taken because of where they stand in the plan.
  std::size_t held_back() const { return held_back_; }
  bool empty() const { return pending_ == 0; }
  std::optional<ScopeId> waiting_for(RunId run) const;
  // The envelope for whose money an earlier run waits, before this one.
  std::optional<ScopeId> waits_behind(RunId run) const;
  // How many runs wait for a worker, by what they need of it.
  std::map<std::uint64_t, std::size_t> waiting_for_workers() const;
  // At most so many runs could begin if a worker with these capabilities had room for all.
  std::size_t wanting(std::uint64_t has) const;

 private:
  std::optional<RunId> first();
  void detach(RunId run);
  template <class Key>
  static bool remove_from(std::map<Key, std::set<RunId>>& waiting, std::set<Key>& woken, RunId run);

  const PlanView& plan_;
  std::vector<bool> skipped_;
  std::uint32_t cursor_ = 0;
  std::set<RunId> ready_;  // before the cursor, to be considered now
  std::map<ScopeId, std::set<RunId>> by_scope_;
  std::map<std::uint64_t, std::set<RunId>> by_needs_;
  std::set<ScopeId> woken_scopes_;
  std::set<std::uint64_t> woken_needs_;
  std::size_t pending_ = 0;
  std::size_t at_scopes_ = 0;  // of by_scope_, all together
  std::uint32_t shut_from_ = 0;
  std::size_t held_back_ = 0;
};

inline constexpr const char* kStageClosed =
    "their stage was closed (proctor pilot close): no run of it begins any more";

// GateBook: which stages of a campaign are open.  A gate stands before a stage that has rules, or
// whose predecessor has an exit to be held against (common/contract/stages.h); it holds back every
// run from the first of that stage on, so gates open one after the other.  Which checks were made
// and who approved which of them is here; what a check says is common/pilot/stage_check.h.
class GateBook {
 public:
  struct Gate {
    std::string stage;
    std::uint16_t index = 0;      // of the stage
    std::uint32_t first_run = 0;  // of it, or of the first stage after it that has runs
    std::uint32_t people = 0;     // who have to approve, by distinct names
    bool open = false;
    Digest checked{};                          // by the last check; zeros: none was made
    bool held = false;                         // that check held
    std::map<std::string, Digest> approved{};  // what each person approved last
  };

  explicit GateBook(const PlanView& plan);

  // The first gate that is shut; nothing: all are open.
  const Gate* next() const;
  // Runs from here on wait for a gate; the plan's length: none does.
  std::uint32_t shut_from() const;
  // Nothing: no gate stands before a stage of that name.
  const Gate* find(std::string_view stage) const;
  const std::vector<Gate>& gates() const { return gates_; }
  // Who have approved that check of the gate, by name.
  static std::vector<std::string> approvers(const Gate& gate, const Digest& digest);

  // May the fact be true after those that were taken?  kCorrupt says why not.
  Status fits(const StageChecked& fact) const;
  Status fits(const StageOpened& fact) const;
  // Require: it fits.
  void take(const StageChecked& fact);
  void take(const StageOpened& fact);
  // Of a stage without a gate it changes nothing.
  void approve(std::string_view stage, const Digest& digest, const std::string& by);

  // By operators, also where a stage has no gate.  Criteria by the stage's name, as check_entry()
  // and StageFacts have them; envelopes of stages that were closed, of which no run begins.
  std::map<std::string, std::set<std::string>> waived;
  std::set<std::string> closed;
  bool is_closed(const PlanView& plan, RunId run) const {
    return closed.contains(plan.stage_scope_of(run));
  }

 private:
  Gate* mine(std::string_view stage);
  std::uint32_t runs_ = 0;
  std::vector<Gate> gates_;  // in the plan's order
};

// Where the next gate stands, for people and programs.
struct GateView {
  std::string stage;
  std::string waits_for;  // "runs", "criteria", "approval"
  std::string text;       // a sentence that goes on from "stage X "
  std::string digest;     // of the check, hex; empty while it waits for runs
  std::uint32_t people = 0;
  std::vector<std::string> approved;  // by them, that check
  std::uint64_t behind = 0;           // runs that it holds back
  // Nothing happens before a person acts.
  bool waits_for_people() const { return waits_for != "runs"; }
};
}  // namespace proctor
