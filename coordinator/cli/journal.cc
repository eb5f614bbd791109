#include <fmt/format.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/file_lock.h"
#include "common/base/json.h"
#include "common/base/limits.h"
#include "common/base/result.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "common/base/version.h"
#include "common/contract/cost_model.h"
#include "common/trace/verify.h"
#include "coordinator/cli/campaign_files.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/open_journal.h"
#include "coordinator/cli/verify_kept.h"
#include "coordinator/core/budget_watch.h"
#include "coordinator/core/notes.h"
#include "coordinator/core/records.h"
#include "coordinator/core/run_queue.h"
#include "coordinator/journal/journal.h"
#include "coordinator/journal/journal_check.h"
#include "coordinator/journal/journal_reader.h"
#include "coordinator/journal/journal_rows.h"
#include "coordinator/journal/journal_store.h"
#include "coordinator/journal/legacy_text.h"
#include "coordinator/journal/sqlite.h"
#include "coordinator/shell/behind.h"
#include "coordinator/shell/campaign_view.h"
#include "coordinator/shell/state_folder.h"
#include "coordinator/shell/worker_files.h"

namespace proctor::cli {
// proctor journal export: every fact, as JSON lines.

namespace {
// `table` first, then the columns by name; beside a run's number its name.
Result<int> export_lines(const std::string& folder) {
  PROCTOR_TRY(const FrozenCampaign frozen, load_registered(folder));
  PROCTOR_TRY(JournalReader journal, open_journal(frozen.folder));
  bool written = true;
  PROCTOR_CHECK_OK(journal.each_row_of_all([&](std::string_view table, const Json& row) {
    Json out = row;
    out["table"] = table;
    if (row.contains("run") && row["run"].is_number_integer() &&
        0 <= row["run"].get<std::int64_t>()) {
      const auto run = row["run"].get<std::uint64_t>();
      if (run < frozen.plan.size())
        out["run_name"] = frozen.plan.run_name(RunId(static_cast<std::uint32_t>(run)));
    }
    const std::string line = out.dump(-1, Json::Utf8::kReplace, true) + "\n";
    written = written && std::fwrite(line.data(), 1, line.size(), stdout) == line.size();
  }));
  if (!written || std::fflush(stdout) != 0) return errno_error("write the export", errno);
  return kOk;
}
}  // namespace

// Attempts that a damaged journal has lost, from their run directories: what they came to and cost.
// An attempt of which a worker of this host has a meter book or a result is entered as under way,
// with its whole ask reserved: the worker reports it as metered.  Other attempts that were made are
// entered as lost, at their ceiling, as far as the envelopes have room; of attempts that may have
// been made at most as many as slots were in use elsewhere.
struct Rebuilt {
  std::vector<JournalWrite> facts;
  std::vector<std::string> lines;  // one for each attempt, for people
  std::uint64_t from_evidence = 0, under_way = 0, lost = 0;
  MicroUsd charged_for_lost;
};

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
  for (const StatusSnapshot::Worker& w : last->workers)
    if (!is_there(folder.worker_homes() / w.name / "meters" / "lives")) out += w.slots;
  return out;
}

struct Evidence {
  RunReport report;
  Digest digest, archive;
  std::uint64_t archive_bytes = 0;
};

// Reads runs/, verifies each directory that it takes, and the folders of this host's workers.
class Rebuilder {
 public:
  // `state`: what was salvaged.
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
      if (const Result<OperatorFact> fact = fact_of<OperatorFact>(note);
          note.kind == OperatorFact::kNote && fact.ok())
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
    const fs::path folder = frozen_.folder.run(frozen_.plan.run_name(run));
    for (const fs::path& entry : paths_in(folder)) {
      const auto no = number_behind(entry.filename().native(), "attempt-");
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
    const VerifyResult verified = verify_run(
        dir, std::nullopt,
        [&](const Usage& usage) { return price(frozen_.campaign.cost_model, usage); },
        std::cref(rules_));
    if (!verified.ok() || !verified.report || verified.report->attempt != id ||
        verified.report->campaign != frozen_.id) {
      out_.lines.push_back("not taken: " + dir.string() +
                           " is not the whole evidence of this attempt");
      return std::nullopt;
    }
    const Result<std::string> archive = read_file(dir.string() + ".tar.zst", limits::kArchiveBytes);
    if (archive.ok())
      return Evidence{*verified.report, sha256(report_bytes(*verified.report)), sha256(*archive),
                      archive->size()};
    out_.lines.push_back("not taken: " + archive.error().detail);
    return std::nullopt;
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
    result.facts = r.facts ? *r.facts : journal::facts_in(r.outcome, r.termination, r.rationale);
    add_judged(result.facts, r);
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
  const CampaignRules rules_{frozen_.campaign};
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
constexpr std::array<const char*, 3> kParts = {"-wal", "-shm", "-journal"};

Status move_file(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) == 0 || errno == ENOENT) return ok_status();
  return errno_error("rename " + from.string() + " to " + to.string(), errno);
}

void remove_files(const fs::path& file) {
  std::error_code ec;
  for (const char* part : kParts) fs::remove(file.string() + part, ec);
  fs::remove(file.string() + ".lock", ec);
  fs::remove(file, ec);
}

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
}

// The salvaged raises, if they still follow from the registered caps; else none of them.
Result<PlanView> view_of(const FrozenCampaign& frozen, sqlite::Database& db, RestoredState& state) {
  PlanView view = make_plan_view(frozen.campaign, frozen.plan);
  const Status raised = apply_raises(view, state.raises);
  if (raised.ok()) return view;
  for (const BudgetRaised& r : state.raises)
    say("lost: envelope " + r.name + " was raised to " + format_usd_exact(r.to) + " " +
        money_word(frozen.campaign.cost_model) +
        ", but an earlier raise is missing: raise it again");
  PROCTOR_CHECK_OK(db.exec("DELETE FROM notes WHERE kind = 'budget_raised'"));
  return make_plan_view(frozen.campaign, frozen.plan);
}

Note note_of(const Salvage& salvage, const Rebuilt& rebuilt) {
  JsonWriter detail;
  detail("attempts_from_evidence", rebuilt.from_evidence);
  detail("attempts_lost", rebuilt.lost);
  detail("attempts_under_way", rebuilt.under_way);
  detail("charged_for_lost", rebuilt.charged_for_lost);
  detail("reviews_lost", salvage.reviews_lost.size());
  detail("rows_read", salvage.rows);
  return {wall_now(), "journal_recovered", {}, {}, detail.take().dump()};
}

void tell(const Salvage& salvage, const Rebuilt& rebuilt, const std::string& unit) {
  for (const std::string& n : salvage.notes) say("damaged: " + n);
  for (const std::string& line : rebuilt.lines) say(line);
  for (const RunReviewed& r : salvage.reviews_lost)
    say("lost: review " + std::to_string(r.seq) + " of run " + std::to_string(r.run.raw()) +
        " by " + r.by + ", " + format_usd_exact(r.charged) + " " + unit +
        ": book it again (proctor review)");
  if (salvage.tail_missing)
    say("Transactions behind the damage are lost: attempts that were under way then and left no "
        "evidence are run "
        "again.");
}

// What the rebuilt attempts have spent reaches levels whose alerts were lost, or were never told:
// they are told here, as the settlement that reached them would have told them.
Status tell_reached(JournalStore& store, const FrozenCampaign& frozen, const PlanView& view) {
  PROCTOR_TRY(const RestoredState state, journal::load_state(store.db()));
  std::vector<ScopeBalance> balances(view.scopes.size());
  const auto spend = [&](RunId run, MicroUsd amount) {
    if (view.runs.size() <= run.raw()) return;
    for (const ScopeId s : view.path(run))
      balances[s.raw()].spent = balances[s.raw()].spent + amount;
  };
  for (const RestoredAttempt& a : state.attempts)
    if (a.settled) spend(a.attempt.run, a.charged);
  for (const RunReviewed& r : state.reviews) spend(r.run, r.charged);
  BudgetAlerts alerts(frozen.campaign.watch.alerts);
  for (const BudgetAlert& told : state.alerts) alerts.take(told);
  const WallTime now = wall_now();
  for (std::uint32_t i = 0; i < balances.size(); ++i) {
    const ScopeId scope(i);
    if (view.follows_global(scope)) continue;
    balances[i].cap = view.scopes[i].cap;
    alerts.rearm(scope, balances[i]);
    for (const BudgetAlert& due : alerts.reached(scope, view.scopes[i].name, balances[i], now))
      PROCTOR_CHECK_OK(store.write(note_of(due)));
  }
  return ok_status();
}

// The new journal beside the damaged one, whole and closed.
// `missing`: what of its end is known to be missing, though what is there is whole.
Status build(const FrozenCampaign& frozen, const fs::path& fresh,
             const std::optional<Around>& missing) {
  remove_files(fresh);  // of an interrupted recovery
  PROCTOR_TRY(const std::unique_ptr<JournalStore> store, JournalStore::open(fresh));
  PROCTOR_TRY(Salvage salvage, salvage_journal(frozen.folder.journal(), store->db(),
                                               static_cast<std::uint32_t>(frozen.plan.size())));
  PROCTOR_CHECK_OK(store->adopt_last_epoch());
  if (missing) {
    salvage.tail_missing = true;
    std::ranges::copy(missing->problems, std::back_inserter(salvage.notes));
    for (const AskId& id : missing->asks) salvage.asked.push_back(id.attempt);
  }
  PROCTOR_TRY(RestoredState state, journal::load_state(store->db()));
  for (const MetaSet& m : state.meta)
    if (m.key == kMetaCampaign && m.value != frozen.id)
      return Error{Errc::kConflict,
                   "the journal is of campaign " + m.value + ", this is " + frozen.id};
  PROCTOR_TRY(const PlanView view, view_of(frozen, store->db(), state));
  const Rebuilt rebuilt = Rebuilder(frozen, view, state, salvage).run();
  PROCTOR_TRY(auto transaction, store->begin());
  const auto write = [&](const JournalWrite& fact) { return store->write(fact); };
  PROCTOR_CHECK_OK(write(MetaSet{kMetaCampaign, frozen.id}));
  PROCTOR_TRY(const std::optional<MetaSet> kept, kept_fact(frozen.folder, state.meta));
  if (kept) PROCTOR_CHECK_OK(write(*kept));
  for (std::uint32_t i = 0; i < view.scopes.size(); ++i)
    PROCTOR_CHECK_OK(write(ScopeDefined{ScopeId(i), view.scopes[i].name, view.scopes[i].cap}));
  const Epoch epoch(state.last_epoch.raw() + kEpochsBeyond);
  PROCTOR_CHECK_OK(
      write(EpochBegun{epoch, "recovered", ::getpid(), std::string(kVersion), wall_now()}));
  for (const JournalWrite& fact : rebuilt.facts) PROCTOR_CHECK_OK(write(fact));
  PROCTOR_CHECK_OK(tell_reached(*store, frozen, view));
  PROCTOR_CHECK_OK(write(note_of(salvage, rebuilt)));
  // Over what is there now, however it came there.
  PROCTOR_CHECK_OK(store->seal_again());
  PROCTOR_CHECK_OK(transaction.commit());
  PROCTOR_CHECK_OK(store->checkpoint());
  tell(salvage, rebuilt, money_word(frozen.campaign.cost_model));
  say(fmt::format(
      "{} rows were read, {} attempts rebuilt from their evidence, {} left under way, {} entered "
      "as "
      "lost ({} {})",
      salvage.rows, rebuilt.from_evidence, rebuilt.under_way, rebuilt.lost,
      format_usd_exact(rebuilt.charged_for_lost), money_word(frozen.campaign.cost_model)));
  return ok_status();
}

// From the first rename on the new journal is the campaign's; the rest may be done again.
Result<fs::path> put_in_place(const fs::path& journal, const fs::path& recovered) {
  std::string stamp = to_rfc3339(wall_now());
  std::erase_if(stamp, [](char c) { return c == ':' || c == '-'; });
  const fs::path kept = journal.string() + ".damaged-" + stamp;
  for (const char* part : kParts)
    PROCTOR_CHECK_OK(move_file(journal.string() + part, kept.string() + part));
  PROCTOR_CHECK_OK(move_file(journal, kept));
  PROCTOR_CHECK_OK(sync_path(journal.parent_path()));
  PROCTOR_CHECK_OK(move_file(recovered, journal));
  PROCTOR_CHECK_OK(sync_path(journal.parent_path()));
  return kept;
}

Result<Around> around_whole(const FrozenCampaign& frozen) {
  PROCTOR_TRY(Around around, look_around(frozen));
  if (!around.unasked.empty()) say("not compared with Redis: " + around.unasked);
  return around;
}
}  // namespace

// proctor journal recover: a new journal from what the damaged one and runs/ still say.
std::string nothing_granted(const std::string& folder) {
  return "Nothing was ever written into the journal, and nothing around it says otherwise: no "
         "attempt was granted, so nothing was\nspent and there is nothing to recover.\nBegin "
         "with: proctor run " +
         folder;
}

struct RecoverArgs {
  std::string folder;
  bool behind = false;  // the journal's end is missing, whatever it looks like
};

// The exit code; says on standard output what could be saved and what could not.
Result<int> recover_journal(const RecoverArgs& args) {
  const auto& [folder, behind] = args;
  PROCTOR_TRY(const FrozenCampaign frozen, load_registered(folder));
  const fs::path journal = frozen.folder.journal();
  PROCTOR_CHECK_OK(make_private_dirs(journal.parent_path()));
  PROCTOR_CHECK_OK(check_journal_kinds(journal));
  const Result<HostLock> lock = HostLock::take(journal.string() + ".lock");
  if (!lock.ok()) return in_context("this campaign is running or being recovered", lock.error());
  const fs::path fresh = journal.string() + ".recovering",
                 recovered = journal.string() + ".recovered";
  std::error_code ec;
  if (!fs::exists(recovered, ec)) {
    std::optional<Around> missing;
    const Result<JournalFinding> found = check_journal(journal);
    if (!found.ok() && found.error().code == Errc::kConflict) return found.error();
    if (found.ok() && found->problems.empty()) {
      PROCTOR_TRY(missing, around_whole(frozen));
      if (missing->problems.empty() && !behind) {
        say(found->blank ? nothing_granted(folder)
                         : "the journal is whole: there is nothing to recover");
        return kOk;
      }
    }
    PROCTOR_CHECK_OK(build(frozen, fresh, missing));
    PROCTOR_TRY(const JournalFinding made, check_journal(fresh));
    if (!made.problems.empty())
      return Error{Errc::kCorrupt, "the journal could not be rebuilt: " + made.problems[0] +
                                       "; the damaged one is as it was"};
    for (const char* part : kParts) fs::remove(fresh.string() + part, ec);  // of the check; empty
    fs::remove(fresh.string() + ".lock", ec);
    PROCTOR_CHECK_OK(sync_path(fresh));
    PROCTOR_CHECK_OK(move_file(fresh, recovered));
    PROCTOR_CHECK_OK(sync_path(journal.parent_path()));
  }
  PROCTOR_TRY(const fs::path kept, put_in_place(journal, recovered));
  say("The damaged file is kept as " + kept.string() + ".\nGo on with: proctor resume " + folder);
  return kOk;
}

// proctor journal check, head, recover: is the campaign's journal whole, what stands for it
// elsewhere, and what can be saved if it is damaged.

namespace {
// A journal that is whole in itself may still know less than what is around it.
void look_beside(const std::string& folder, std::vector<std::string>& problems) {
  const Result<FrozenCampaign> frozen = load_registered(folder);
  const Result<Around> around = frozen.ok() ? look_around(*frozen) : Result<Around>(frozen.error());
  if (!around.ok()) {
    std::printf("not compared with runs/ and Redis: %s\n", around.error().detail.c_str());
    return;
  }
  if (!around->unasked.empty())
    std::printf("not compared with Redis: %s\n", around->unasked.c_str());
  for (const std::string& problem : around->problems)
    problems.push_back("its end is missing: " + problem);
}

Result<int> check(const std::string& folder) {
  const fs::path file = StateFolder{folder}.journal();
  if (const auto owner = journal_owner(file))
    return Error{Errc::kConflict, "this campaign is running: " + owner->text};
  PROCTOR_TRY(JournalFinding found, check_journal(file));
  // No journal in no campaign is a folder mistyped.
  if (found.blank) PROCTOR_CHECK_OK(load_registered(folder));
  if (found.problems.empty()) look_beside(folder, found.problems);
  for (const std::string& problem : found.problems) std::printf("damaged: %s\n", problem.c_str());
  fmt::print("{}: {}, {} ended, {} parked for money, {}, {}, last epoch {}\n", file.string(),
             counted(found.attempts, "attempt"), counted(found.ended, "run"), found.parked,
             counted(found.notes, "note"), counted(found.reviews, "review"),
             found.last_epoch.raw());
  if (found.wal.there)
    fmt::print(
        "its log: {} transactions in {} of {} frames; what follows them was never committed\n",
        found.wal.commits, found.wal.valid, found.wal.frames);
  if (found.problems.empty()) {
    std::printf("%s\n", found.blank ? nothing_granted(folder).c_str() : "it is whole");
    return kOk;
  }
  std::printf("proctor journal recover %s rebuilds it and says what could not be saved\n",
              folder.c_str());
  return kJobFailed;
}

Result<std::string> head(const std::string& folder) {
  PROCTOR_TRY(const JournalHead head, present_head(StateFolder{folder}.journal()));
  return to_string(head) + "\n";
}
}  // namespace

void add_journal(Command app, int& exit_code) {
  const Command command = app.add_subcommand(
      "journal", "look after the campaign's journal: export, check, head, recover",
      "Example:\n  proctor journal check my-campaign");
  command.require_subcommand(1);
  const auto verb = [&](const char* name, const char* what, const char* footer, auto act) {
    const Command sub = command.add_subcommand(name, what, footer);
    const auto folder = arguments<std::string>(sub, exit_code, act);
    sub.add_option("CAMPAIGN", *folder, "the campaign's folder").required();
  };
  verb("export", "every fact of the journal, as JSON lines",
       "Example:\n  proctor journal export my-campaign > facts.jsonl\n"
       "One object a line, described in schemas/journal_export.schema.json. Beside a running\n"
       "coordinator it is the state of one instant.",
       export_lines);
  verb("check", "say whether the journal is whole, or what is damaged",
       "Example:\n  proctor journal check my-campaign\nChanges nothing. Exit code 1 when something "
       "is damaged.",
       check);
  verb("head", "one line that stands for all that is final in it now, to be kept elsewhere",
       "Example:\n  proctor journal head my-campaign >> /elsewhere/heads\n"
       "  proctor verify my-campaign --head /elsewhere/heads\n"
       "A journal whose rows were rewritten since does not extend it, whoever rewrote them.",
       head);
  const Command rebuild = command.add_subcommand(
      "recover",
      "rebuild a damaged journal from what is readable and from "
      "runs/",
      "Example:\n  proctor journal recover my-campaign && proctor resume my-campaign\n"
      "Keeps the damaged file. Attempts whose entry and evidence are both gone are charged at "
      "their ceiling and\n"
      "their runs are queued again; what workers still hold is delivered when they connect.");
  const auto args = arguments<RecoverArgs>(rebuild, exit_code, recover_journal);
  rebuild.add_option("CAMPAIGN", args->folder, "the campaign's folder").required();
  rebuild.add_flag("--behind", args->behind,
                   "its end is missing although nothing here shows it: a worker said so, or you "
                   "put an older copy back");
}
}  // namespace proctor::cli
