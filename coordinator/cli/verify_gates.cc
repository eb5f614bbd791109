#include "coordinator/cli/verify_gates.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "coordinator/core/notes.h"

namespace proctor::cli {
namespace {

using Tell = std::function<void(const std::string& where, const std::string& what)>;

struct Seen {
  std::set<Digest> held;                             // by checks that were noted
  std::map<Digest, std::set<std::string>> approved;  // by whom
  bool opened = false;
};

class GateAudit {
 public:
  GateAudit(const Campaign& campaign, const Tell& tell) : tell_(tell) {
    for (std::size_t s = 0; s < campaign.stages.size(); ++s) {
      const StageRules& r = campaign.stages[s].rules;
      const bool exit_before = 0 < s && !campaign.stages[s - 1].rules.exit.empty();
      if (!r.entry.empty() || r.approvals() != 0 || exit_before)
        gates_.push_back({campaign.stages[s].name, s, r.approvals()});
    }
  }

  void add(const Note& note) {
    if (note.kind == kNoteStageChecked) {
      const Result<StageChecked> fact = stage_checked_of(note);
      if (!fact.ok()) return tell_("journal", fact.error().detail);
      if (fact->holds) seen_[fact->stage].held.insert(fact->digest);
    } else if (note.kind == kNoteOperator) {
      const Result<OperatorFact> fact = operator_fact_of(note);
      if (!fact.ok() || fact->act.kind != OperatorActKind::kApproveStage) return;
      const Result<Digest> digest = Digest::from_hex(fact->act.digest);
      if (digest.ok()) seen_[fact->act.stage].approved[*digest].insert(fact->act.by);
    } else if (note.kind == kNoteStageOpened) {
      opened(note);
    }
  }

  // The first stage that was not opened; nothing: all were, or need not be.
  std::optional<std::size_t> shut() const {
    for (const Gate& g : gates_) {
      const auto it = seen_.find(g.stage);
      if (it == seen_.end() || !it->second.opened) return g.index;
    }
    return std::nullopt;
  }

 private:
  struct Gate {
    std::string stage;
    std::size_t index = 0;
    std::uint32_t people = 0;
  };

  void opened(const Note& note) {
    const Result<StageOpened> fact = stage_opened_of(note);
    if (!fact.ok()) return tell_("journal", fact.error().detail);
    const auto gate = std::ranges::find(gates_, fact->stage, &Gate::stage);
    const std::string what = "stage " + fact->stage + " was opened ";
    if (gate == gates_.end()) return tell_("journal", what + "though nothing kept it shut");
    if (shut() != gate->index) tell_("journal", what + "out of its order");
    Seen& seen = seen_[fact->stage];
    if (!seen.held.contains(fact->digest))
      tell_("journal", what + "by a check that was not made, or did not hold");
    if (seen.approved[fact->digest].size() < gate->people)
      tell_("journal", what + "with the approval of " +
                           std::to_string(seen.approved[fact->digest].size()) + ", and " +
                           std::to_string(gate->people) + " have to agree");
    seen.opened = true;
  }

  const Tell& tell_;
  std::vector<Gate> gates_;
  std::map<std::string, Seen> seen_;
};

}  // namespace

Status verify_gates(JournalReader& journal, const FrozenCampaign& frozen,
                    const RestoredState& state, const Tell& tell) {
  GateAudit audit(frozen.campaign, tell);
  if (!audit.shut()) return ok_status();
  constexpr std::size_t kAtOnce = 10'000;
  for (std::int64_t after = 0;;) {
    PROCTOR_TRY(const std::vector<NoteRecord> notes, journal.notes(after, kAtOnce));
    for (const NoteRecord& n : notes) audit.add(n.note);
    if (notes.size() < kAtOnce) break;
    after = notes.back().seq;
  }
  const std::optional<std::size_t> shut = audit.shut();
  if (!shut) return ok_status();
  const auto begun = std::ranges::find_if(state.attempts, [&](const RestoredAttempt& a) {
    return a.attempt.run.raw() < frozen.plan.size() &&
           *shut <= frozen.plan.row(a.attempt.run).stage;
  });
  if (begun != state.attempts.end())
    tell("journal", "run " + frozen.plan.run_name(begun->attempt.run) + " of stage " +
                        frozen.plan.stage(begun->attempt.run) +
                        " was begun, and that stage was not opened");
  return ok_status();
}

}  // namespace proctor::cli
