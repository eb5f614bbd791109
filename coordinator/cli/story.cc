// proctor story CAMPAIGN [RUN]: what happened, in order, each with its cause.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <set>

#include "common/base/json.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "common/contract/cost_model.h"
#include "coordinator/cli/campaign_files.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/evidence_text.h"
#include "coordinator/cli/open_journal.h"
#include "coordinator/cli/story_text.h"
#include "coordinator/cli/verify_kept.h"
#include "coordinator/core/failures.h"
#include "coordinator/core/notes.h"
#include "coordinator/journal/journal_reader.h"
#include "coordinator/shell/control_protocol.h"
#include "coordinator/shell/plan_view.h"

namespace proctor::cli {
namespace {
// Which facts of a journal belong into one run's story: its own, and what was done to its task, its
// method or an envelope of its, or to a list of runs of which it is one.
class RunStory {
 public:
  RunStory(const FrozenCampaign& frozen, RunId run);

  bool has(const StoryFact& fact) const;

 private:
  bool is_among(const StoryFact& act) const;
  bool is_raised(const StoryFact& raise) const;
  bool is_at_fault(const StoryFact& fault) const;

  RunId run_;
  std::string task_;
  std::uint32_t task_index_ = 0, method_index_ = 0;
  std::set<std::string> envelopes_;
};

Note note_of(const StoryFact& fact) {
  return {fact.at, fact.fact, fact.run, fact.attempt, fact.detail};
}

RunStory::RunStory(const FrozenCampaign& frozen, RunId run)
    : run_(run),
      task_(frozen.plan.task(run).id),
      task_index_(frozen.plan.row(run).task),
      method_index_(frozen.plan.row(run).method) {
  const PlanView view = make_plan_view(frozen.campaign, frozen.plan);
  for (const ScopeId scope : view.path(run)) envelopes_.insert(view.scopes[scope.raw()].name);
}

bool RunStory::has(const StoryFact& fact) const {
  if (fact.run == run_) return true;
  if (fact.fact == kNoteFault) return is_at_fault(fact);
  if (fact.run) return false;
  if (fact.fact == kNoteOperator) return is_among(fact);
  if (fact.fact == kNoteBudgetRaised) return is_raised(fact);
  return fact.fact == kNoteTaskRemoved && fact.detail.starts_with(removal_note(task_, ""));
}

bool RunStory::is_among(const StoryFact& act) const {
  const Result<OperatorFact> fact = operator_fact_of(note_of(act));
  return fact.ok() && std::ranges::find(fact->act.runs, run_) != fact->act.runs.end();
}

bool RunStory::is_raised(const StoryFact& raise) const {
  const Result<BudgetRaised> fact = raise_of(raise.detail, raise.at);
  return fact.ok() && envelopes_.contains(fact->name);
}

// That another run failed is that one's story; that none of them is started is theirs all.
bool RunStory::is_at_fault(const StoryFact& fault) const {
  const Result<FaultFact> fact = fault_of(note_of(fault));
  if (!fact.ok() || fact->verdict == FaultFact::Verdict::kFailed) return false;
  const bool task = fact->subject.kind == FaultSubject::Kind::kTask;
  return fact->subject.index == (task ? task_index_ : method_index_);
}

struct StoryArgs {
  std::string folder, run, since;
  bool json = false;
};

std::string name_of(const Plan& plan, RunId run) {
  return run.raw() < plan.size() ? plan.run_name(run) : "run " + std::to_string(run.raw());
}

void print_json(const Plan& plan, const std::string& unit, const StoryFact& fact) {
  Json out = {{"at", to_rfc3339(fact.at)},
              {"at_ms", fact.at.raw()},
              {"fact", fact.fact},
              {"detail", in_unit(fact, unit)},
              {"text", sentence_of(fact, unit)}};
  if (fact.run) out["run"] = name_of(plan, *fact.run);
  if (fact.attempt) out["attempt"] = fact.attempt->raw();
  std::printf("%s\n", out.dump(-1, Json::Utf8::kReplace, true).c_str());
}

void print_text(const Plan& plan, const std::string& unit, const StoryFact& fact,
                std::optional<RunId> told) {
  std::string who;
  if (fact.run && fact.run != told) who = name_of(plan, *fact.run);
  if (fact.attempt)
    who += (who.empty() ? "" : " ") + ("attempt " + std::to_string(fact.attempt->raw()));
  if (!who.empty()) who += "  ";
  std::printf("%s  %s%s\n", to_rfc3339(fact.at).c_str(), who.c_str(),
              sentence_of(fact, unit).c_str());
}

Result<int> tell_story(const StoryArgs& args) {
  WallTime since(0);
  if (!args.since.empty()) {
    PROCTOR_TRY(since, parse_since(args.since, wall_now()));
  }
  PROCTOR_TRY(const FrozenCampaign frozen, load_registered(args.folder));
  std::optional<RunId> run;
  if (!args.run.empty()) {
    PROCTOR_TRY(run, find_run(frozen.plan, args.run));
  }
  PROCTOR_TRY(JournalReader journal, open_journal(frozen.folder));
  const std::string unit = money_word(frozen.campaign.cost_model);
  std::optional<RunStory> its;
  if (run) its.emplace(frozen, *run);
  bool anything = false;
  PROCTOR_CHECK_OK(journal.each_fact(run, since, [&](const StoryFact& fact) {
    if (its && !its->has(fact)) return;
    anything = true;
    StoryFact told = fact;
    // For one run alone, because it reads all of an attempt's evidence.
    if (its && fact.fact == "result" && fact.run && fact.attempt)
      if (const Result<std::string> again =
              judged_again(frozen.folder.attempt(name_of(frozen.plan, *fact.run), *fact.attempt));
          again.ok() && !again->empty())
        told.detail += "; " + *again;
    if (args.json)
      print_json(frozen.plan, unit, told);
    else
      print_text(frozen.plan, unit, told, run);
  }));
  if (!anything && !args.json)
    std::printf("nothing has happened%s\n", args.since.empty() ? " yet" : " since then");
  return kOk;
}
}  // namespace

void add_story(Command app, int& exit_code) {
  const Command command =
      app.add_subcommand("story", "what happened, in order, each with its cause",
                         "Example:\n  proctor story my-campaign --since 2h\n"
                         "  proctor story my-campaign json-lib/noop/r1 --json\n"
                         "From the journal, of one RUN also how often its patch was judged again; "
                         "a coordinator may be\n"
                         "running. With --json one object a line.");
  auto args = std::make_shared<StoryArgs>();
  command.add_option("CAMPAIGN", args->folder, "the campaign's folder").required();
  command.add_option(
      "RUN", args->run,
      "TASK/METHOD/rN: of this run, and what was done to its task, method or envelopes");
  command.add_option("--since", args->since,
                     "a time as 2026-11-22T10:58:42Z, or how long ago: 90s, 15m, 2h, 3d");
  command.add_flag("--json", args->json, "for scripts");
  command.callback([=, &exit_code] { exit_code = code_of(tell_story(*args)); });
}
}  // namespace proctor::cli
