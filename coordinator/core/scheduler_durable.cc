// The scheduler's state as far as facts make it (docs/decisions/078): what a life that is restored
// from the journal must hold as well.  For the simulation's oracle and for people; decides nothing.
#include <fmt/format.h>

#include "coordinator/core/scheduler.h"

namespace proctor {
namespace {

std::string_view word_of(RunPhase phase) {
  switch (phase) {
    case RunPhase::kEnded:
      return "ended";
    case RunPhase::kCancelled:
      return "cancelled";
    case RunPhase::kHeld:
      return "held";
    case RunPhase::kRemoved:
      return "removed";
    case RunPhase::kQueued:
    case RunPhase::kActive:
    case RunPhase::kParked:
    case RunPhase::kBackoff:
      return "open";  // where it waits, and for how long, each life finds out anew
  }
  return "";
}

}  // namespace

std::string Scheduler::durable_run(RunId run) const {
  const auto it = live_.find(run);
  // One that is closing is over and paid for: its run is about to be queued, or parked.
  const bool out = it != live_.end() && it->second.state != State::kClosing;
  const RunPhase phase = phases_[run.raw()];
  std::string where(word_of(phase));
  if (where == "open" && !out && is_shut(run)) where = "faulty";
  std::string text = fmt::format("{}, {} attempts, {} failures", where, attempts_made_[run.raw()],
                                 failures_[run.raw()]);
  if (const auto n = overloads_.find(run); n != overloads_.end())
    text += fmt::format(", {} overloads", n->second);
  if (const auto how = invalid_.find(run); how != invalid_.end())
    text += fmt::format(", invalid {}", static_cast<int>(how->second.how));
  if (const auto asked = denied_.find(run); asked != denied_.end())
    text += fmt::format(", denied {}/{}", to_string(asked->second.attempt), asked->second.seq);
  if (parked_rows_[run.raw()]) text += ", parked for money";
  for (const PoisonBook::Blame& b : poison_.blames(run))
    text += fmt::format(", blamed {} at {} {}", b.attempt.raw(), b.worker.raw(), b.boot.raw());
  if (!out) return text;
  const Attempt& a = it->second;
  const bool asked = a.state == State::kIntent || a.state == State::kReserving;
  text += fmt::format("; {}/{} {} {}", to_string(a.id), a.seq, a.ask.micros(),
                      asked         ? "asked"
                      : a.is_over() ? fmt::format("over at {}", a.cost.total().micros())
                                    : "granted");
  if (!asked) text += " to " + (a.owner ? roster_.at(*a.owner).id.raw() : std::string("nobody"));
  return text + (dominant_ids_.contains(a.id) ? ", dominates" : "");
}

std::map<std::string, std::string> Scheduler::durable() const {
  std::map<std::string, std::string> out;
  for (std::uint32_t r = 0; r < phases_.size(); ++r)
    out[fmt::format("run {}", r)] = durable_run(RunId(r));
  std::vector<MicroUsd> reserved(balances_.size());
  for (const auto& [run, a] : live_) {
    if (a.state == State::kClosing) continue;
    const MicroUsd ask = a.ask;
    plan_.each_scope(run, [&](ScopeId s) { reserved[s.raw()] = reserved[s.raw()] + ask; });
  }
  for (std::uint32_t s = 0; s < balances_.size(); ++s)
    out["envelope " + plan_.scopes[s].name] =
        fmt::format("{} spent and {} reserved of {}", balances_[s].spent.micros(),
                    reserved[s].micros(), balances_[s].cap.micros());
  for (WorkerIndex w = 0; w < roster_.size(); ++w) {
    const WorkerState& s = roster_.at(w);
    const bool told = s.drained || s.quarantine != WorkerState::Quarantine::kNone ||
                      s.kicked != BootId(0) || s.quarantines != 0;
    if (told)
      out["worker " + s.id.raw()] =
          fmt::format("{}quarantine {} ({}), {} of them, kicked {}", s.drained ? "drained, " : "",
                      static_cast<int>(s.quarantine), s.reason, s.quarantines, s.kicked.raw());
  }
  for (const FaultSubject& subject : faults_.subjects())
    out[fmt::format("{} {}", subject.kind == FaultSubject::Kind::kTask ? "task" : "method",
                    subject.index)] =
        faults_.describe(subject) + (faults_.is_parked(subject) ? "; parked" : "");
  for (const std::uint16_t method : started_methods_) out[fmt::format("began {}", method)] = "yes";
  for (const auto& [id, worker] : lost_) out["late " + to_string(id)] = worker.raw();
  for (const auto& [scope, percent] : alerts_.standing())
    out[fmt::format("alert {} {}", scope.raw(), percent)] = "told";
  for (const GateBook::Gate& g : gates_.gates()) {
    std::string by;
    for (const auto& [name, digest] : g.approved) by += ", " + name + " for " + digest.short_hex();
    out["gate " + g.stage] =
        fmt::format("{}, checked {}{}", g.open ? "open" : "shut", g.checked.short_hex(), by);
  }
  for (const auto& [stage, criteria] : gates_.waived)
    out["waived " + stage] = fmt::format("{}", fmt::join(criteria, ", "));
  for (const std::string& stage : gates_.closed) out[stage] = "closed";
  for (const RunDominates& d : dominant_) out["dominant " + to_string(d.attempt)] = "told";
  out["campaign"] = fmt::format(
      "{}{}{} alerts, {} reviews; ended {} {} {} {}; {} cancelled, {} held, {} removed",
      paused_ ? "paused, " : "", suspended_ ? "suspended, " : "", alerts_.told().size(), reviews_,
      ended_[0], ended_[1], ended_[2], ended_[3], cancelled_, held_, removed_);
  return out;
}

}  // namespace proctor
