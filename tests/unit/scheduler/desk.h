#pragma once
// A scheduler with everything around it answering at once: a journal that is always durable, the
// pure ledger, and lists of what was sent to workers.  For tests only.
#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/result.h"
#include "coordinator/core/scheduler.h"

namespace proctor::scheduler_test {

inline constexpr ScopeId kGlobal(0);

inline MicroUsd micro(std::int64_t n) {
  return MicroUsd::from_micros(n);
}
inline AttemptId attempt_of(std::uint32_t run, std::uint32_t no = 1) {
  return {RunId(run), AttemptNo(no)};
}

// `tasks`: the task of each run.  Every ask is 10; task 0 needs nothing, task 1 needs Docker.
inline PlanView plan_of(const std::vector<std::uint32_t>& tasks, std::int64_t global = 1000,
                        std::int64_t task_zero = 1000) {
  PlanView plan;
  plan.scopes = {{"global", micro(global)},
                 {"stage:one", micro(1000)},
                 {"task:0", micro(task_zero)},
                 {"task:1", micro(1000)}};
  plan.stage_scopes = {ScopeId(1)};
  plan.tasks = {{ScopeId(2), micro(10), 0}, {ScopeId(3), micro(10), capability::kDocker}};
  for (const std::uint32_t t : tasks) plan.runs.push_back({t, 0});
  return plan;
}

inline SchedulerSettings settings() {
  SchedulerSettings s;
  s.cost_model.tool_call = 1'000'000;  // one micro-dollar
  s.retries.backoff = s.retries.overload_backoff = Millis(0);
  return s;
}

class Desk {
 public:
  explicit Desk(const PlanView& plan, const SchedulerSettings& with = settings())
      : core(plan, with, Epoch(2)), ledger(plan.scopes) {}

  // Of an earlier life, pending at the ledger.
  void restore(const RestoredAttempt& a, bool pending) {
    if (pending)
      static_cast<void>(
          ledger.reserve({{a.attempt, a.seq}, a.ask, core.plan().path(a.attempt.run)}));
    core.restore_attempt(a);
  }
  // What the ledger holds beside attempts must fit too.
  void spend(ScopeId scope, MicroUsd amount) {
    const AskId id{{RunId(1'000'000 + spendings++), AttemptNo(1)}, 0};
    const auto answer = ledger.reserve({id, amount, {scope}});
    PROCTOR_ASSERT(answer.ok() && answer->kind == ReserveAnswer::Kind::kGranted);
    PROCTOR_ASSERT(ledger.settle({id, amount}).ok());
  }
  void start() { obey(core.start(now)); }
  void feed(const Event& e) { obey(core.on(e, now)); }
  void sync(const char* worker, std::uint32_t slots, std::vector<AttemptId> running = {},
            std::vector<AttemptId> unacked = {}, std::uint64_t boot = 1,
            const char* feature = "sandbox:null") {
    wire::Sync s;
    s.worker = WorkerId(worker);
    s.boot = BootId(boot);
    s.epoch_seen = Epoch(2);
    s.slots = slots;
    s.features = {feature};
    for (const AttemptId& id : running) s.running.push_back({id, wire::Stage::kAgent, true, {}});
    s.unacked = std::move(unacked);
    feed(WorkerSynced{std::move(s)});
  }
  // A Sync that gives `id` back and mentions nothing else.
  void decline(const char* worker, AttemptId id, std::uint32_t slots, const char* lacks = nullptr) {
    wire::Sync s;
    s.worker = WorkerId(worker);
    s.boot = BootId(1);
    s.epoch_seen = Epoch(2);
    s.slots = slots;
    s.features = {"sandbox:null"};
    if (lacks != nullptr) s.features.emplace_back(lacks);
    s.declined = {id};
    feed(WorkerSynced{std::move(s)});
  }
  void result(const char* worker, AttemptId id, std::uint64_t cost,
              Termination termination = Termination::kCompleted) {
    wire::ResultMessage r;
    r.epoch = Epoch(2);
    r.attempt = id;
    r.outcome = RunOutcome::kSuccess;
    r.termination = termination;
    r.infrastructure = termination == Termination::kInfrastructure;
    r.usage.tool_calls = cost;
    r.archive_bytes = r.infrastructure ? 0 : 1;
    feed(ResultReceived{WorkerId(worker), r});
  }
  // The answer to an act.
  OperatorAnswer act(OperatorAct a) {
    a.by = "ada";
    if (a.reason.empty()) a.reason = "because";
    feed(OperatorAsked{++ticket, std::move(a)});
    return told.empty() || told.back().ticket != ticket
               ? OperatorAnswer{OperatorAnswer::Verdict::kRefused, "no answer"}
               : told.back().answer;
  }
  OperatorAnswer act(OperatorActKind kind, std::vector<RunId> runs = {}, const char* worker = "") {
    OperatorAct a;
    a.kind = kind;
    a.runs = std::move(runs);
    a.worker = WorkerId(worker);
    return act(std::move(a));
  }
  // The notes that the next life reads.
  std::vector<Note> standing() const {
    std::vector<Note> out;
    for (const Note& n : facts<Note>())
      for (const char* kind : kSchedulerNotes)
        if (n.kind == kind) out.push_back(n);
    return out;
  }
  template <class Fact>
  std::vector<Fact> facts() const {
    std::vector<Fact> out;
    for (const JournalWrite& w : journal)
      if (const Fact* f = std::get_if<Fact>(&w)) out.push_back(*f);
    return out;
  }

  Scheduler core;
  std::uint32_t spendings = 0;
  Ledger ledger;
  Time now{};
  std::uint64_t ticket = 0;
  std::vector<JournalWrite> journal;
  std::vector<AskId> asks;
  std::vector<AttemptId> assigned, acked, cancelled;
  std::vector<Answer> told;  // to operators
  std::vector<std::string> heard;
  wire::SyncReply reply;  // the last one
  std::optional<bool> ended;
  bool at_gate = false;
  std::vector<Event> while_granting;  // come when a grant is on its way to the disk

 private:
  void obey(const std::vector<Command>& commands) {
    std::deque<Event> answers;
    const auto collect = [&](const std::vector<Command>& list) {
      for (const Command& c : list) answer(c, answers);
    };
    collect(commands);
    while (!answers.empty()) {
      const Event e = std::move(answers.front());
      answers.pop_front();
      collect(core.on(e, now));
    }
  }
  void answer(const Command& command, std::deque<Event>& answers) {
    std::visit(Overload{[&](const Persist& c) {
                          journal.insert(journal.end(), c.writes.begin(), c.writes.end());
                          if (std::ranges::any_of(c.writes, [](const JournalWrite& w) {
                                return std::holds_alternative<AttemptGranted>(w);
                              }))
                            for (const Event& e : std::exchange(while_granting, {}))
                              answers.push_back(e);
                          answers.emplace_back(Persisted{c.seq});
                        },
                        [&](const Reserve& c) {
                          Reserved out;
                          for (const ReserveOp& op : c.ops) {
                            asks.push_back(op.id);
                            out.answers.push_back({op.id, ledger.reserve(op).value()});
                          }
                          answers.emplace_back(std::move(out));
                        },
                        [&](const Settle& c) {
                          Settled out;
                          for (const SettleOp& op : c.ops)
                            out.answers.push_back({op.id, ledger.settle(op).value()});
                          answers.emplace_back(std::move(out));
                        },
                        [&](const VoidReservations& c) {
                          Voided out;
                          for (const VoidOp& op : c.ops)
                            if (ledger.cancel(op).ok()) out.ids.push_back(op.id);
                          answers.emplace_back(std::move(out));
                        },
                        [&](const Forget& c) {
                          for (const AskId& id : c.ids) ledger.forget(id);
                        },
                        [&](const AssignRuns& c) {
                          for (const auto& run : c.runs) assigned.push_back(run.attempt);
                        },
                        [&](const AckResults& c) {
                          acked.insert(acked.end(), c.attempts.begin(), c.attempts.end());
                        },
                        [&](const CancelAttempts& c) {
                          cancelled.insert(cancelled.end(), c.attempts.begin(), c.attempts.end());
                        },
                        [&](const ReplySync& c) { reply = c.reply; },
                        [&](const CampaignEnded& c) {
                          ended = c.complete;
                          at_gate = c.at_gate;
                        },
                        [](const ArmTimer&) {},
                        [&](const RaiseCaps& c) {
                          for (std::uint32_t i = 0; i < c.scopes.size(); ++i)
                            ledger.raise(ScopeId(i), c.scopes[i].cap);
                          for (std::uint32_t i = 0; i < c.reviewed.size(); ++i)
                            if (MicroUsd::zero() < c.reviewed[i]) spend(ScopeId(i), c.reviewed[i]);
                        },
                        [&](const Alert& c) { heard.push_back(c.text); },
                        [&](const Answer& c) { told.push_back(c); }},
               command);
  }
};

}  // namespace proctor::scheduler_test
