#include "coordinator/cli/journal_rebuild.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "common/base/limits.h"
#include "common/base/system_clock.h"
#include "common/contract/cost_model.h"
#include "common/trace/verify.h"
#include "coordinator/cli/journal_around.h"
#include "coordinator/core/notes.h"
#include "coordinator/shell/behind.h"

namespace proctor::cli {
namespace {

// Rows that one damaged page of attempts can hold: so many runs behind the last known one may have
// begun.
constexpr std::uint32_t kRowsOfPage = 64;

// The slots of workers whose books are not on this host, by the coordinator's last word: so many
// attempts may have been under way and left nothing here.  Unknown: as many as a page has rows.
std::uint64_t slots_elsewhere(const StateFolder& folder) {
  const Result<StatusSnapshot> last = last_status(folder);
  if (!last.ok() || !last->workers_more.empty()) return kRowsOfPage;
  std::uint64_t out = 0;
  std::error_code ec;
  for (const StatusSnapshot::Worker& w : last->workers)
    if (!fs::exists(folder.worker_homes() / w.name / "meters" / "lives", ec)) out += w.slots;
  return out;
}

struct Evidence {
  RunReport report;
  Digest digest, archive;
  std::uint64_t archive_bytes = 0;
};

class Rebuilder {
 public:
  Rebuilder(const FrozenCampaign& frozen, const PlanView& view, const RestoredState& state,
            const Salvage& salvage)
      : frozen_(frozen),
        view_(view),
        salvage_(salvage),
        free_(view.scopes.size()),
        held_(held_by_workers(frozen)) {
    for (std::size_t i = 0; i < free_.size(); ++i) free_[i] = view.scopes[i].cap;
    for (const RestoredAttempt& a : state.attempts) {
      rows_[a.attempt.run].emplace(a.attempt.no.raw(), a);
      if (a.settled) take(a.attempt.run, a.charged);
      if (is_reserved(a)) take(a.attempt.run, a.ask);
    }
    for (const RunReviewed& r : state.reviews) take(r.run, r.charged);
    for (const EndedRun& e : state.ended) ended_.insert(e.run);
    for (const EndedRun& e : salvage.ended) had_ended_[e.run] = e.attempt.raw();
    for (const AttemptId& id : salvage.asked)
      made_[id.run] = std::max(made_[id.run], std::min(id.no.raw(), kAttemptsMax));
    for (const Note& note : state.standing)
      if (const Result<OperatorFact> fact = operator_fact_of(note);
          note.kind == kNoteOperator && fact.ok())
        set_aside_.insert(fact->set_aside.begin(), fact->set_aside.end());
    unreadable_.insert(salvage.unreadable.begin(), salvage.unreadable.end());
    for (const auto& [id, worker] : held_) made_[id.run] = std::max(made_[id.run], id.no.raw());
  }

  Rebuilt run() {
    std::vector<std::vector<std::uint32_t>> evidence(view_.runs.size());
    std::uint32_t last_known = 0;
    for (std::uint32_t i = 0; i < view_.runs.size(); ++i) {
      const RunId run(i);
      evidence[i] = directories(run);
      if (!evidence[i].empty() || rows_.contains(run) || had_ended_.contains(run) ||
          made_.contains(run))
        last_known = i;
    }
    std::vector<AttemptId> lost, doubtful;
    for (std::uint32_t i = 0; i < view_.runs.size(); ++i) {
      const RunId run(i);
      rebuild(run, evidence[i], lost);
      if (i <= last_known + kRowsOfPage && evidence[i].empty() && !rows_.contains(run) &&
          !had_ended_.contains(run) && !made_.contains(run) &&
          (unreadable_.contains(run) || salvage_.tail_missing))
        doubtful.push_back({run, AttemptNo(1)});
    }
    // Last, when it is known what room there is.
    for (const AttemptId& id : lost) enter_lost(id);
    std::uint64_t unseen = slots_elsewhere(frozen_.folder);
    for (const AttemptId& id : doubtful) {
      if (unseen == 0) break;
      if (room(id.run) < view_.task_of(id.run).ask) continue;  // it cannot have been granted
      enter_lost(id);
      --unseen;
    }
    return std::move(out_);
  }

 private:
  void take(RunId run, MicroUsd amount) {
    for (const ScopeId s : view_.path(run)) free_[s.raw()] = free_[s.raw()] - amount;
  }
  MicroUsd room(RunId run) const {
    MicroUsd out = kLedgerMax;
    for (const ScopeId s : view_.path(run)) out = std::min(out, free_[s.raw()]);
    return std::max(out, MicroUsd::zero());
  }
  std::string name(const AttemptId& id) const {
    return frozen_.plan.run_name(id.run) + " attempt " + std::to_string(id.no.raw());
  }

  std::vector<std::uint32_t> directories(RunId run) const {
    std::vector<std::uint32_t> out;
    std::error_code ec;
    const fs::path folder = frozen_.folder.run(frozen_.plan.run_name(run));
    for (fs::directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec)) {
      const auto no = number_behind(it->path().filename().native(), "attempt-");
      if (no && *no <= kAttemptsMax) out.push_back(*no);
    }
    std::ranges::sort(out);
    return out;
  }

  void rebuild(RunId run, const std::vector<std::uint32_t>& directories,
               std::vector<AttemptId>& lost) {
    const auto known = rows_.find(run);
    const auto ended = had_ended_.find(run);
    std::uint32_t top = directories.empty() ? 0 : directories.back();
    if (known != rows_.end()) top = std::max(top, known->second.rbegin()->first);
    if (ended != had_ended_.end()) top = std::max(top, std::min(ended->second, kAttemptsMax));
    if (const auto made = made_.find(run); made != made_.end()) top = std::max(top, made->second);
    for (std::uint32_t no = 1; no <= top; ++no) {
      const AttemptId id{run, AttemptNo(no)};
      const RestoredAttempt* row = nullptr;
      if (known != rows_.end())
        if (const auto it = known->second.find(no); it != known->second.end()) row = &it->second;
      const bool open =
          row != nullptr && !row->has_result &&
          (row->state == AttemptState::kGranted || row->state == AttemptState::kReserving);
      if (row != nullptr && !open) continue;
      const bool there = std::ranges::find(directories, no) != directories.end();
      const std::optional<Evidence> evidence = there ? read(id) : std::nullopt;
      if (evidence) {
        enter(id, row, *evidence, ended != had_ended_.end() && ended->second == no);
      } else if (no == top && held_.contains(id) && !ended_.contains(run) &&
                 (row == nullptr || row->state == AttemptState::kReserving) &&
                 view_.task_of(run).ask <= room(run)) {
        enter_under_way(id, row, held_.at(id));
      } else if (row == nullptr || (there && row->state == AttemptState::kReserving)) {
        // What lies under runs/ was granted, though the row of its grant is gone.
        lost.push_back(id);
      }
    }
  }

  // Whole, of this attempt, and at our prices; nothing otherwise.
  std::optional<Evidence> read(const AttemptId& id) {
    const fs::path dir = frozen_.folder.attempt(frozen_.plan.run_name(id.run), id.no);
    const VerifyResult verified = verify_run(dir, std::nullopt, [&](const Usage& usage) {
      return price(frozen_.campaign.cost_model, usage);
    });
    if (!verified.ok() || !verified.report || verified.report->attempt != id ||
        verified.report->campaign != frozen_.id) {
      out_.lines.push_back("not taken: " + dir.string() +
                           " is not the whole evidence of this attempt");
      return std::nullopt;
    }
    Evidence out{*verified.report, {}, {}, 0};
    out.digest = sha256(report_bytes(out.report));
    const Result<std::string> archive = read_file(dir.string() + ".tar.zst", limits::kArchiveBytes);
    if (archive.ok()) {
      out.archive = sha256(*archive);
      out.archive_bytes = archive->size();
    }
    if (!archive.ok()) {
      out_.lines.push_back("not taken: " + archive.error().detail);
      return std::nullopt;
    }
    return out;
  }

  void enter(const AttemptId& id, const RestoredAttempt* row, const Evidence& e, bool decided) {
    const RunReport& r = e.report;
    const MicroUsd ask = row == nullptr ? view_.task_of(id.run).ask : row->ask;
    const MicroUsd total = r.cost.total(), charged = std::min(total, ask);
    const WallTime began(r.started_ms), ended(r.finished_ms);
    const bool busy = r.termination == Termination::kModelOverloaded;
    const bool failed = r.termination == Termination::kInfrastructure ||
                        r.termination == Termination::kAgentUnavailable || busy;
    const bool ours = failed || r.termination == Termination::kOperatorCancel;
    const bool sets = !ended_.contains(id.run) && !set_aside_.contains(id) && (decided || !ours);
    if (row == nullptr) out_.facts.push_back(AttemptIntent{id, 0, ask, began});
    if (row == nullptr || row->state == AttemptState::kReserving)
      out_.facts.push_back(AttemptGranted{id, WorkerId(), BootId(), began});
    AttemptResult result;
    result.attempt = id;
    result.outcome = r.outcome;
    result.termination = r.termination;
    result.rationale = r.rationale;
    result.infrastructure = failed && !sets;
    result.overload = busy && !sets;
    result.report = e.digest;
    result.archive = e.archive;
    result.archive_bytes = e.archive_bytes;
    result.usage = r.usage;
    result.started_ms = r.started_ms;
    result.finished_ms = r.finished_ms;
    result.sets_outcome = sets;
    result.at = ended;
    out_.facts.push_back(result);
    out_.facts.push_back(AttemptSettled{id, charged, r.cost, total - charged, ended});
    if (sets) ended_.insert(id.run);
    take(id.run, row == nullptr || !is_reserved(*row) ? charged : charged - ask);
    ++out_.from_evidence;
    out_.lines.push_back(
        "rebuilt: " + name(id) + " from its evidence: " + std::string(to_string(r.outcome)) + ", " +
        format_usd_exact(total) + " " + unit() + (sets ? "" : "; it decides nothing"));
  }

  std::string unit() const { return money_word(frozen_.campaign.cost_model); }

  // Its worker reports what it came to, as metered; until then it may cost its whole ask.
  void enter_under_way(const AttemptId& id, const RestoredAttempt* row, const WorkerId& worker) {
    const WallTime now = wall_now();
    const MicroUsd ask = row == nullptr ? view_.task_of(id.run).ask : row->ask;
    if (row == nullptr) out_.facts.push_back(AttemptIntent{id, 0, ask, now});
    out_.facts.push_back(AttemptGranted{id, worker, BootId(), now});
    take(id.run, ask);
    ++out_.under_way;
    out_.lines.push_back("under way: " + name(id) + " at worker " + worker.raw() +
                         ", which reports what it cost: " + format_usd_exact(ask) + " " + unit() +
                         " are reserved until then");
  }

  void enter_lost(const AttemptId& id) {
    const WallTime now = wall_now();
    const std::map<std::uint32_t, RestoredAttempt>& rows = rows_[id.run];
    MicroUsd ask;
    if (const auto row = rows.find(id.no.raw()); row != rows.end()) {
      ask = row->second.ask;  // its envelopes hold it already
    } else {
      ask = std::min(view_.task_of(id.run).ask, room(id.run));
      out_.facts.push_back(AttemptIntent{id, 0, ask, now});
      take(id.run, ask);
    }
    out_.facts.push_back(AttemptGranted{id, WorkerId(), BootId(), now});
    out_.facts.push_back(AttemptLost{id, kEntryLost, now});
    Cost cost;
    cost.execution = ask;
    out_.facts.push_back(AttemptSettled{id, ask, cost, MicroUsd::zero(), now});
    ++out_.lost;
    out_.charged_for_lost = out_.charged_for_lost + ask;
    const bool again = !ended_.contains(id.run);
    out_.lines.push_back("lost: " + name(id) + ", if it was ever made: charged its ceiling, " +
                         format_usd_exact(ask) + " " + unit() +
                         (again ? "; the run is queued again" : ""));
  }

  const FrozenCampaign& frozen_;
  const PlanView& view_;
  const Salvage& salvage_;
  std::vector<MicroUsd> free_;  // of each envelope
  std::map<RunId, std::map<std::uint32_t, RestoredAttempt>> rows_;
  std::map<AttemptId, WorkerId> held_;  // that a worker of this host reports
  std::map<RunId, std::uint32_t> had_ended_, made_;
  std::set<RunId> ended_, unreadable_;
  std::set<AttemptId> set_aside_;
  Rebuilt out_;
};

}  // namespace

Rebuilt rebuild_attempts(const FrozenCampaign& frozen, const PlanView& view,
                         const RestoredState& state, const Salvage& salvage) {
  return Rebuilder(frozen, view, state, salvage).run();
}

}  // namespace proctor::cli
