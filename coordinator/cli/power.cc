// proctor power: what a plan can show, before it is paid.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "common/base/digest.h"
#include "common/base/text.h"
#include "common/plan/plan.h"
#include "coordinator/aggregate/analysis.h"
#include "coordinator/cli/analysis_notes.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/pilot_commands.h"
#include "coordinator/cli/power_args.h"
#include "coordinator/cli/report_files.h"

namespace proctor::cli {
namespace {

using Pair = std::pair<std::string, std::string>;

Result<std::optional<Pair>> pair_typed(const std::string& text) {
  if (text.empty()) return std::optional<Pair>();
  const std::size_t comma = text.find(',');
  if (comma == std::string::npos || comma == 0 || comma + 1 == text.size() ||
      text.find(',', comma + 1) != std::string::npos)
    return Error{Errc::kInvalid,
                 "--compare: found " + printable(text) + ", expected two methods: agent-a,agent-b"};
  return std::optional<Pair>(Pair{text.substr(0, comma), text.substr(comma + 1)});
}

Status known(const Registration& in, const std::string& method, const std::string& folder) {
  if (in.methods.contains(method)) return ok_status();
  std::vector<std::string_view> all;
  for (const auto& [name, digest] : in.methods) all.push_back(name);
  const auto near = nearest_word(method, all);
  return Error{Errc::kNotFound, folder + " has no method " + printable(method) +
                                    (near ? " (did you mean " + *near + "?)" : "")};
}

// The differences between two methods that an earlier campaign's tasks show, of those tasks that
// have the usual number of scorable runs of both.
Result<PilotVariance> variance_of(const std::string& folder, const Pair& pair) {
  PROCTOR_TRY(const FrozenCampaign frozen, load_registered(folder));
  PROCTOR_CHECK_OK(known(frozen.registration, pair.first, folder));
  PROCTOR_CHECK_OK(known(frozen.registration, pair.second, folder));
  PROCTOR_TRY(const ReportInput runs, read_runs(frozen));
  if (Status may = may_be_compared(folder, runs.runs); !may.ok())
    return in_context("--from", std::move(may).error());
  const TaskCells cells = task_cells(runs.runs);
  const std::size_t a = cells.method(pair.first), b = cells.method(pair.second);
  std::vector<PairedTask> tasks;
  std::map<std::uint64_t, std::size_t> with;  // so many runs of both: tasks
  if (a < cells.methods.size() && b < cells.methods.size())
    for (std::size_t i = 0; i < cells.tasks.size(); ++i) {
      tasks.push_back({cells.at(i, a).rate(), cells.at(i, b).rate()});
      if (tasks.back().a.runs == tasks.back().b.runs && 2 <= tasks.back().a.runs)
        ++with[tasks.back().a.runs];
    }
  std::uint64_t usual = 0;
  for (const auto& [runs_each, count] : with)
    if (usual == 0 || with[usual] <= count) usual = runs_each;
  std::erase_if(tasks, [&](const PairedTask& t) { return t.a.runs != usual || t.b.runs != usual; });
  const auto found = usual == 0 ? std::nullopt : pilot_variance(tasks);
  if (!found)
    return Error{Errc::kInvalid,
                 "--from: " + folder + " has no two tasks with as many scorable runs of " +
                     pair.first + " as of " + pair.second +
                     ", two or more of each: there is no variance to learn from it"};
  if (!(0 < found->upper))
    return Error{Errc::kInvalid, "--from: the two methods differ alike on every task of " + folder +
                                     ": that says nothing about the variance on others"};
  return *found;
}

struct Asked {
  PowerInput input;
  std::uint64_t simulate = 0;
};

// How many runs under each method a task has that is only in the stages that have every task.
std::uint32_t runs_of_every_task(const Campaign& campaign) {
  std::uint32_t out = 0, fewest = UINT32_MAX;
  for (const Stage& stage : campaign.stages) {
    fewest = std::min(fewest, campaign.replicates_of(stage));
    if (stage.draw.has_every_task()) out += campaign.replicates_of(stage);
  }
  return out == 0 ? fewest : out;
}

Result<Asked> asked_of(const PowerArgs& args) {
  PowerDefaults defaults;
  PROCTOR_TRY(std::optional<Pair> pair, pair_typed(args.compare));
  std::vector<Pair> comparisons;
  std::string name;
  if (!args.campaign.empty()) {
    PROCTOR_TRY(const Campaign campaign, load_checked(args.campaign, Outside::kSkip));
    name = campaign.name;
    defaults.tasks = campaign.contracts.size();
    defaults.runs = runs_of_every_task(campaign);
    const AnalysisPlan plan = registered_plan(campaign);
    if (plan.is_over_repositories()) defaults.repositories = units_of(campaign);
    defaults.effect = plan.min_effect.real();
    defaults.alpha = plan.alpha.real();
    comparisons = comparisons_of(campaign);
    if (campaign.contracts.size() < 2 && args.tasks.empty())
      return Error{Errc::kInvalid, args.campaign +
                                       " has one task: two methods cannot be told apart "
                                       "by one. --n says how many there will be."};
  }
  // A comparison that was picked out is still one of the plan's, which share alpha.
  const auto family = static_cast<std::uint32_t>(std::max<std::size_t>(1, comparisons.size()));
  if (pair) comparisons = {*pair};
  PROCTOR_TRY(PowerInput input, power_input(args, defaults));
  PROCTOR_TRY(const std::uint64_t simulate, campaigns_to_simulate(args));
  input.campaign = name;
  input.family = family;
  constexpr std::size_t kMostComparisons = 16;
  if (comparisons.size() <= kMostComparisons) input.comparisons = comparisons;
  if (!args.from.empty()) {
    if (!pair && comparisons.size() != 1)
      return Error{Errc::kInvalid,
                   "--from needs the two methods to learn from: --compare agent-a,agent-b"};
    PROCTOR_TRY(input.pilot, variance_of(args.from, pair ? *pair : comparisons.front()));
    input.pilot_from = printable(args.from);
  } else if (pair && args.campaign.empty()) {
    return Error{Errc::kInvalid, "--compare says which methods of --from, or of a CAMPAIGN"};
  }
  return Asked{std::move(input), simulate};
}

std::optional<SimulatedPower> simulated(const PowerStudy& study, std::uint64_t campaigns) {
  const Design worst = assumed_worst(study);
  if (campaigns == 0 || kMostExactRuns < worst.runs) return std::nullopt;
  NumpyRandom random(kPlannedSeed);
  return simulate_power(worst, study.tasks, campaigns, [&] { return random.random_sample(); });
}

Status write_files(const PowerStudy& study, const Asked& asked, const fs::path& into) {
  const std::string analysis = render_power_json(study), of = sha256(analysis).hex();
  std::map<std::string, std::string> files{
      {"power_analysis.json", analysis},
      {"power_analysis_compute_report.json", render_power_values_json(study, of)},
      {"analysis_monotonicity.json", render_power_sweeps_json(study, of)},
      {"sanity_compute_result.json",
       render_power_checks_json(study, of, simulated(study, asked.simulate), asked.simulate)}};
  if (!study.curve.empty()) {
    files["combined_cost_precision_tradeoff_compute_result.json"] = render_power_curve_json(study);
    files["combined_cost_precision_tradeoff_compute_result.svg"] = render_power_curve_svg(study);
  }
  PROCTOR_CHECK_OK(make_dirs(into));
  for (const auto& [name, bytes] : files)
    PROCTOR_CHECK_OK(write_file(into / name, bytes, Durability::kSync, kOpenFile));
  return ok_status();
}

Result<int> power(const PowerArgs& args) {
  PROCTOR_TRY(const Asked asked, asked_of(args));
  if (0 < asked.simulate && args.out.empty())
    return Error{Errc::kInvalid,
                 "--simulate writes what it found beside the other files: add "
                 "--out FOLDER"};
  // Each campaign draws for each run of each task.
  constexpr std::uint64_t kMostDraws = 2'000'000'000;
  PROCTOR_TRY(const PowerStudy study, study_power(asked.input));
  if (kMostDraws / study.tasks / study.input.runs < asked.simulate)
    return Error{Errc::kInvalid,
                 fmt::format("--simulate: found {}, expected at most {} campaigns of {} tasks and "
                             "{} runs",
                             asked.simulate, kMostDraws / study.tasks / study.input.runs,
                             study.tasks, study.input.runs)};
  if (!args.out.empty()) PROCTOR_CHECK_OK(write_files(study, asked, args.out));
  std::fputs((args.json ? render_power_json(study) : render_power_text(study)).c_str(), stdout);
  if (!args.out.empty() && !args.json)
    std::printf("\nFiles: %s, and what it was computed from beside it\n",
                (fs::path(args.out) / "power_analysis.json").c_str());
  return study.supported ? kOk : kJobFailed;
}

}  // namespace

void add_power(Command app, int& exit_code) {
  const Command command = app.add_subcommand(
      "power", "what so many tasks and runs can show, before they are paid",
      "Exit code: 0 the plan shows the difference with that power, 1 it does not, 2 wrong input.\n"
      "With a CAMPAIGN its tasks, replicates and plan of analysis are what is not typed.\n"
      "Example:\n"
      "  proctor power --p .4 --effect .1 --rho .15:.85 --r .3 --k 4 --n 100\n"
      "  proctor power my-campaign --rho .3:.7 --looks 3 --out my-campaign/power\n"
      "  proctor power --p .4 --effect .1 --costs task=.40,a=1.20,b=.90 --budgets 100,200,400\n"
      "  proctor power my-campaign --from earlier --compare agent-a,agent-b");
  auto a = std::make_shared<PowerArgs>();
  command.add_option("CAMPAIGN", a->campaign, "a campaign's folder, registered or not yet");
  const auto option = [&](const char* name, std::string& into, const char* help, const char* kind) {
    command.add_option(name, into, help).type_name(kind);
  };
  option("--p", a->p, "success rate of the lesser method (without: 0.4)", "RATE");
  option("--effect", a->effect, "the difference that matters (without: 0.1)", "RATE");
  option("--rho", a->rho, "how alike runs of one task are; a range: both ends (without: 0.5)",
         "LOW[:HIGH]");
  option("--r", a->r, "how alike methods are over tasks; of a range the low end (without: 0.5)",
         "LOW[:HIGH]");
  option("--k", a->runs, "runs of each method a task (without: 1)", "COUNT");
  option("--n", a->tasks, "tasks (without: as many as it takes)", "COUNT");
  option("--repositories", a->repositories,
         "the tasks are of so many, which are the unit (without: as the campaign says)", "COUNT");
  option("--spread", a->spread,
         "by how much the difference varies between repositories (without: 0.1)", "RATE");
  option("--alpha", a->alpha, "level, two-sided (without: 0.05)", "RATE");
  option("--power", a->power, "the power that is asked for (without: 0.8)", "RATE");
  option("--test", a->test, "paired (the t test over tasks) or mcnemar (one run a task)", "TEST");
  option("--looks", a->looks, "so many looks, evenly spread over the runs", "COUNT");
  option("--after", a->after, "looks after these runs instead, the last one at the end",
         "COUNT,...");
  option("--spend", a->spend, "how looks spend the level: obrien_fleming (without) or pocock",
         "RULE");
  option("--from", a->from, "an earlier campaign whose variance counts beside what is assumed",
         "CAMPAIGN");
  option("--compare", a->compare, "its two methods", "METHOD,METHOD");
  option("--costs", a->costs, "of one task, and of one run of each method", "task=USD,a=USD,b=USD");
  option("--budgets", a->budgets, "what each of these shows, best spent", "USD,...");
  option("--tasks-max", a->tasks_max, "there are no more tasks than these", "COUNT");
  option("--simulate", a->simulate, "draw so many campaigns and count (with --out)", "COUNT");
  option("--out", a->out, "write the analysis, its checks and the curve into this folder",
         "FOLDER");
  command.add_flag("--exact", a->exact, "exact power also where it takes long");
  command.add_flag("--json", a->json, "for programs: power_analysis.json");
  command.callback([=, &exit_code] { exit_code = code_of(power(*a)); });
}

}  // namespace proctor::cli
