// The oracle of resumes: whatever the coordinator has written so far, a life that is restored from
// exactly that holds the same state as the one that wrote it.
#include <cstdlib>

#include "tests/sim/scheduler/world.h"

namespace proctor::sim {
namespace {

// Every how manyth step is compared.  A prime: no rhythm of the simulation hides behind it.
std::uint64_t compare_every() {
  static const std::uint64_t every = [] {
    const char* text = std::getenv("PROCTOR_SIM_COMPARE");
    return text == nullptr ? 97 : std::strtoull(text, nullptr, 10);
  }();
  return every;
}

// What is said of a worker, less why and how often it was in quarantine.
std::string without_row(std::string said) {
  const std::size_t from = said.find(" ("), to = said.find(", kicked");
  if (from < to && to != std::string::npos) said.erase(from, to - from);
  return said;
}

}  // namespace

// Also one that has come back since: its row begins anew in this life, and not in the next one.
void World::look_who_is_forgotten() {
  for (const auto& [id, w] : workers_)
    if (core_->roster().find(id))
      known_.insert(id);
    else if (known_.contains(id))
      forgotten_.insert(id);
}

void World::compare_restored() {
  if (core_) look_who_is_forgotten();
  if (!core_ || compare_every() == 0 || ++steps_ % compare_every() != 0) return;
  PlanView plan = plan_;
  plan.scopes = written_.caps(std::move(plan.scopes));
  Scheduler restored(std::move(plan), settings_, epoch_);
  if (const Status s = restored.restore(written_.state()); !s.ok()) return fail(s.error().detail);
  const std::map<std::string, std::string> read = restored.durable();
  std::set<RunId> sooner;  // it ends what waits for a start a moment sooner, too
  for (const Command& command : restored.start(time()))
    if (const auto* writes = std::get_if<Persist>(&command))
      for (const JournalWrite& fact : writes->writes) {
        if (const auto* end = std::get_if<RunEnded>(&fact)) sooner.insert(end->run);
        const auto* note = std::get_if<Note>(&fact);
        if (note == nullptr || note->kind != RunEscalated::kNote) continue;
        if (!unstarted_.contains(*note->run))
          return fail("a resume would decide anew that a person decides");
        sooner.insert(*note->run);
      }
  ++seen_.compared;
  std::map<std::string, std::string> live = core_->durable(), again = restored.durable();
  // What is written is as good as durable to a resume, so it may judge a stage a moment sooner.
  for (const auto& [name, said] : read)
    if (name.starts_with("gate ") || (name == "campaign" && !sooner.empty())) again[name] = said;
  for (const RunId run : sooner) {
    const std::string name = "run " + std::to_string(run.raw());
    again[name] = read.at(name);
  }
  // A worker that was absent for a lease is forgotten with its row of quarantines, not with one
  // that holds (docs/decisions/054); a resume knows the row again from the journal.
  for (const WorkerId& worker : forgotten_)
    for (auto* side : {&live, &again})
      if (const auto it = side->find("worker " + worker.raw()); it != side->end())
        if ((it->second = without_row(it->second)) == "quarantine 0, kicked 0") side->erase(it);
  for (const auto& [name, said] : live) {
    const auto it = again.find(name);
    if (it == again.end()) return fail("a resume would forget " + name + ": " + said);
    if (it->second != said)
      return fail("a resume would change " + name + ": " + said + " -> " + it->second);
  }
  for (const auto& [name, said] : again)
    if (!live.contains(name)) return fail("a resume would bring back " + name + ": " + said);
}

}  // namespace proctor::sim
