// proctor try CAMPAIGN TASK METHOD: one run, in a folder of its own.  The campaign is neither
// registered nor changed, and none of its money is spent.
#include <cstdio>

#include "common/base/limits.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "common/contract/money_word.h"
#include "coordinator/cli/campaign_run.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/model_check.h"
#include "coordinator/cli/report_files.h"
#include "coordinator/journal/journal.h"

namespace proctor::cli {
namespace {

struct TryArgs {
  std::string folder, task, method;
  RunOptions options;
};

Error no_such(const std::string& what, const std::string& name,
              const std::vector<std::string_view>& names) {
  std::string text = "the campaign has no " + what + " " + printable(name);
  if (const auto near = nearest_word(name, names)) text += " (did you mean " + *near + "?)";
  return {Errc::kInvalid, std::move(text)};
}

// One task, one method, once; what is of the others' is left out.
Result<Campaign> with_one_run(Campaign campaign, const TryArgs& args) {
  std::vector<std::string_view> tasks, methods;
  for (const Contract& c : campaign.contracts) tasks.push_back(c.id);
  for (const Method& m : campaign.methods) methods.push_back(m.name);
  if (campaign.find_contract(args.task) == nullptr) return no_such("task", args.task, tasks);
  if (campaign.find_method(args.method) == nullptr) return no_such("method", args.method, methods);
  std::erase_if(campaign.contracts, [&](const Contract& c) { return c.id != args.task; });
  std::erase_if(campaign.methods, [&](const Method& m) { return m.name != args.method; });
  campaign.replicates = 1;
  campaign.stages.resize(1);
  // Somebody looks at it: what fails is told, not tried again.
  campaign.infrastructure_retries = 0;
  campaign.retries.overload = 0;
  campaign.ledger = Campaign::LedgerKind::kJournal;
  campaign.redis.clear();
  campaign.cost_inputs.reset();
  return campaign;
}

// The definition stays where it is, for the sources that it names; what the run makes goes to
// `folder`.
Result<FrozenCampaign> frozen_for_one(Campaign campaign, const fs::path& folder) {
  PROCTOR_TRY(Plan plan, draw_plan(shape_of(campaign)));
  PROCTOR_TRY(Registration registration,
              make_registration(campaign, sha256(to_csv(plan)), wall_now()));
  FrozenCampaign out{
      std::move(campaign), std::move(plan), std::move(registration), "", StateFolder{folder}, {}};
  out.id = campaign_id(out.registration);
  return out;
}

std::string told(const FrozenCampaign& frozen, const RunRecord& run) {
  std::string out = run.name + ": " + std::string(to_string(run.state));
  if (run.state == RunRecord::State::kEnded)
    out += " with " + std::string(to_string(run.outcome)) + ", " +
           std::string(to_string(run.termination));
  const std::string& why = run.parked_why.empty() ? run.rationale : run.parked_why;
  if (!why.empty()) out += "\n  " + printable(why, limits::kDetailBytes);
  out += "\n  it cost " + format_usd(run.cost.total()) + " " +
         money_word(frozen.campaign.cost_model) +
         ", of no envelope of the campaign\n  evidence: " + frozen.folder.run(run.name).string() +
         "\n";
  return out;
}

Result<int> try_one(TryArgs args) {
  PROCTOR_TRY(Campaign campaign, load_checked(args.folder, Outside::kCheck));
  const fs::path place = StateFolder{campaign.folder}.state() / "try" / args.task / args.method;
  PROCTOR_TRY(campaign, with_one_run(std::move(campaign), args));
  args.options.workers = args.options.slots = 1;
  PROCTOR_CHECK_OK(refuse_model_calls(campaign));
  PROCTOR_CHECK_OK(check_models(args.options, campaign));
  PROCTOR_CHECK_OK(check_host_things(args.options, campaign));
  if (journal_owner(StateFolder{place}.journal(), Millis(0)))
    return Error{Errc::kConflict, "it is being tried now, in " + place.string()};
  PROCTOR_CHECK_OK(remove_tree(place));
  PROCTOR_CHECK_OK(make_dirs(place));
  PROCTOR_TRY(FrozenCampaign frozen, frozen_for_one(std::move(campaign), place));
  args.options.folder = place.string();
  args.options.show_report = false;
  PROCTOR_TRY(const int code, run_frozen(args.options, frozen));
  PROCTOR_TRY(const CampaignReport report, read_report(frozen));
  const RunRecord& run = report.runs.front();
  std::fputs(told(frozen, run).c_str(), stdout);
  const bool judged = run.state == RunRecord::State::kEnded && run.outcome != RunOutcome::kInvalid;
  return code != kOk ? code : judged ? kOk : kJobFailed;
}

}  // namespace

void add_try(CLI::App& app, int& exit_code) {
  auto* command =
      app.add_subcommand("try", "one run of one method at one task, before anything is registered");
  command->footer(
      "Example:\n  proctor try my-campaign json-lib my-agent\n"
      "Its evidence stays in my-campaign/.proctor/try/TASK/METHOD until the next try. Nothing is\n"
      "tried again, and the campaign's own runs, money and registration know nothing of it.\n"
      "Exit codes: 0 it was judged (whatever the outcome), 1 it could not be, 2 bad input,\n"
      "3 too little money, 4 infrastructure.");
  auto args = std::make_shared<TryArgs>();
  command->add_option("CAMPAIGN", args->folder, "the campaign's folder")->required();
  command->add_option("TASK", args->task, "a contract's id")->required();
  command->add_option("METHOD", args->method, "a method's name")->required();
  command
      ->add_option("--models", args->options.models,
                   "file that says how the worker reaches single-shot models")
      ->envname("PROCTOR_MODELS");
  command->callback([=, &exit_code] {
    const Result<int> code = try_one(*args);
    exit_code = code.ok() ? *code : complain(code.error());
  });
}

}  // namespace proctor::cli
