#include "coordinator/cli/offline_act.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>
#include <variant>

#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "coordinator/cli/campaign_core.h"
#include "coordinator/cli/money_files.h"
#include "coordinator/cli/parked_advice.h"
#include "coordinator/core/events.h"
#include "coordinator/core/notes.h"
#include "coordinator/journal/journal.h"

namespace proctor::cli {
namespace {

Time now() {
  return {mono_now(), wall_now()};
}

struct Still {
  CampaignView view;  // begun
  CampaignView::Begun begun;

  Scheduler& core() const { return *view.core; }
};
Result<Still> still_of(const FrozenCampaign& frozen, RestoredState state) {
  PROCTOR_TRY(CampaignView view, view_of(frozen, std::move(state)));
  CampaignView::Begun begun = view.begin(now());
  return Still{std::move(view), std::move(begun)};
}

bool is_check(const JournalWrite& write) {
  const Note* note = std::get_if<Note>(&write);
  return note != nullptr && note->kind == kNoteStageChecked;
}

// The act's own writes and nothing of what a life would do besides, but for the check of stages
// that is approved; then the answer, for which nothing is waited for that is not written.
Result<OperatorAnswer> decide(Still& still, const OperatorAct& act, Journal& journal) {
  Scheduler& scheduler = still.core();
  std::vector<proctor::Command> commands = scheduler.on(OperatorAsked{1, act}, now());
  std::vector<JournalWrite>& first = still.begun.writes;
  std::erase_if(first, [&](const JournalWrite& w) {
    return act.kind != OperatorActKind::kApproveStage || !is_check(w);
  });
  for (proctor::Command& c : commands)
    if (auto* persist = std::get_if<Persist>(&c)) {
      std::ranges::move(persist->writes, std::back_inserter(first));
      PROCTOR_CHECK_OK(journal.append_and_wait(std::exchange(first, {})));
    }
  constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();
  std::ranges::move(scheduler.on(Persisted{kAll}, now()), std::back_inserter(commands));
  for (const proctor::Command& c : commands)
    if (const auto* answer = std::get_if<Answer>(&c)) return answer->answer;
  return Error{Errc::kUnavailable, "nothing was decided: proctor resume, and ask again"};
}

// A scheduler whose campaign is over hears nothing more; what was cancelled, or is parked
// because it is broken, can still be wanted.
Result<OperatorAnswer> requeue_after_the_end(const Scheduler& scheduler, const OperatorAct& act,
                                             Journal& journal) {
  OperatorFact fact{act};
  std::erase_if(fact.act.runs, [&](RunId run) {
    return scheduler.phase(run) != RunPhase::kCancelled && !scheduler.is_faulty(run);
  });
  const std::size_t closed = std::erase_if(
      fact.act.runs, [&](RunId run) { return scheduler.gates().is_closed(scheduler.plan(), run); });
  const std::size_t n = fact.act.runs.size();
  if (n == 0)
    return OperatorAnswer{OperatorAnswer::Verdict::kUnchanged,
                          0 < closed ? kStageClosed
                                     : "none of them is cancelled, or parked because its task or "
                                       "method is broken; those that ended invalid are run again "
                                       "by --invalid"};
  std::vector<JournalWrite> note;
  note.push_back(note_of(fact));
  PROCTOR_CHECK_OK(journal.append_and_wait(std::move(note)));
  return OperatorAnswer{OperatorAnswer::Verdict::kDone, counted(n, "run") + " in line again"};
}

Result<OperatorAnswer> reopen_after_the_end(Scheduler& scheduler, const OperatorAct& act,
                                            Journal& journal) {
  OperatorAnswer answer;
  std::vector<JournalWrite> writes = scheduler.reopen_after_the_end(act, answer);
  if (!writes.empty()) PROCTOR_CHECK_OK(journal.append_and_wait(std::move(writes)));
  return answer;
}

}  // namespace

Result<ControlAnswer> act_offline(const std::string& folder, const ControlRequest& request) {
  // What is asked to run again would meet the changed files with the next resume.
  PROCTOR_TRY(const FrozenCampaign frozen,
              request.act == "requeue" ? load_unchanged(folder) : load_registered(folder));
  PROCTOR_TRY(RestoredState state, read_journal(frozen));
  if (request.act == "kick" || (request.act == "drain" && request.worker.empty()))
    return Error{Errc::kUnavailable, "no coordinator runs this campaign, so there is nothing to " +
                                         request.act + ": proctor resume " + folder};
  PROCTOR_TRY(Still still, still_of(frozen, std::move(state)));
  // Words that are wrong need no lock.
  PROCTOR_CHECK_OK(act_of(request, names_of(frozen.plan, still.core()), wall_now()));
  // The journal's lock keeps a coordinator from starting meanwhile.
  PROCTOR_TRY(const std::unique_ptr<Journal> journal, Journal::open(frozen.folder.journal()));
  PROCTOR_TRY(state, journal->load());
  PROCTOR_TRY(still, still_of(frozen, std::move(state)));
  PROCTOR_TRY(const OperatorAct act,
              act_of(request, names_of(frozen.plan, still.core()), wall_now()));
  const bool after = still.begun.over && act.kind == OperatorActKind::kRequeue;
  PROCTOR_TRY(const OperatorAnswer answer,
              after ? (act.invalid ? reopen_after_the_end(still.core(), act, *journal)
                                   : requeue_after_the_end(still.core(), act, *journal))
                    : decide(still, act, *journal));
  PROCTOR_CHECK_OK(journal->close());
  std::string text = answer.text;
  if (act.kind == OperatorActKind::kRequeue && answer.verdict != OperatorAnswer::Verdict::kDone) {
    PROCTOR_TRY(const std::string raises, raises_for(folder, frozen, act.runs));
    if (!raises.empty()) text += raises;
  }
  return ControlAnswer{verdict_of(answer.verdict), std::move(text), {}};
}

Result<Json> explain_offline(const FrozenCampaign& frozen, RunId run) {
  PROCTOR_TRY(RestoredState state, read_journal(frozen));
  PROCTOR_TRY(const Still still, still_of(frozen, std::move(state)));
  return parse_json(to_json(still.core().why(run)));
}

}  // namespace proctor::cli
