#include "coordinator/cli/journal_recover.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <iterator>

#include "common/base/file_lock.h"
#include "common/base/json.h"
#include "common/base/system_clock.h"
#include "common/base/version.h"
#include "common/contract/cost_model.h"
#include "coordinator/cli/campaign_files.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/journal_around.h"
#include "coordinator/cli/journal_rebuild.h"
#include "coordinator/core/budget_watch.h"
#include "coordinator/journal/journal.h"
#include "coordinator/journal/journal_check.h"
#include "coordinator/journal/journal_rows.h"
#include "coordinator/journal/journal_store.h"
#include "coordinator/journal/sqlite.h"
#include "coordinator/shell/behind.h"
#include "coordinator/shell/plan_view.h"

namespace proctor::cli {
namespace {

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
  const Json detail = {{"attempts_from_evidence", rebuilt.from_evidence},
                       {"attempts_lost", rebuilt.lost},
                       {"attempts_under_way", rebuilt.under_way},
                       {"charged_for_lost", rebuilt.charged_for_lost.micros()},
                       {"reviews_lost", salvage.reviews_lost.size()},
                       {"rows_read", salvage.rows}};
  return {wall_now(), "journal_recovered", {}, {}, detail.dump()};
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
  const Rebuilt rebuilt = rebuild_attempts(frozen, view, state, salvage);
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

std::string nothing_granted(const std::string& folder) {
  return "Nothing was ever written into the journal, and nothing around it says otherwise: no "
         "attempt was granted, so nothing was\nspent and there is nothing to recover.\nBegin "
         "with: proctor run " +
         folder;
}

Result<int> recover_journal(const std::string& folder, bool behind) {
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
    if (const Result<JournalFinding> found = check_journal(journal);
        found.ok() && found->problems.empty()) {
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

}  // namespace proctor::cli
