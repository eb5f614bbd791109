#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/digest.h"
#include "common/base/money.h"
#include "common/base/parse.h"
#include "common/base/result.h"
#include "common/base/text.h"
#include "common/contract/fields.h"
#include "common/plan/plan.h"
#include "coordinator/aggregate/analysis.h"
#include "coordinator/aggregate/power_study.h"
#include "coordinator/cli/campaign_notes.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/report_files.h"
#include "coordinator/cli/trial_campaign.h"

namespace proctor::cli {
// The question to `proctor power`, as typed and as checked numbers.

// Empty: not given.
struct PowerArgs {
  std::string campaign, p, effect, rho, r, alpha, power, runs, tasks, test, looks, after, spend;
  std::string repositories, spread, from, compare, costs, budgets, tasks_max, out, simulate;
  bool exact = false, json = false;
};

// What a campaign's own files say, where nothing was typed.
struct PowerDefaults {
  std::optional<std::uint64_t> tasks, repositories;
  std::optional<std::uint32_t> runs;
  std::optional<double> effect, alpha;
};

namespace {
constexpr std::uint64_t kMostRuns = 1'000, kMostSimulated = 1'000'000;
constexpr std::size_t kMostBudgets = 64, kMostLooksAsked = 20;
constexpr std::int64_t kMostMoney = kLedgerMax.micros();

Error wrong(const char* option, std::string_view found, const std::string& expected) {
  return Error{Errc::kInvalid, fmt::format("{}: found {}, expected {}", option,
                                           found.empty() ? "nothing" : printable(found), expected)};
}

// ".85", "0.85": digits with a point, at most eighteen of them.
Result<double> decimal(const char* option, std::string_view text) {
  constexpr std::size_t kMostDigits = 18;
  const auto digits = std::ranges::count_if(text, [](char c) { return '0' <= c && c <= '9'; });
  const bool plain = text.find_first_not_of("0123456789.") == std::string_view::npos &&
                     std::ranges::count(text, '.') <= 1 && 0 < digits &&
                     static_cast<std::size_t>(digits) <= kMostDigits;
  double value = 0;
  const std::string zero = text.starts_with('.') ? "0" : "";
  const std::string whole = zero + std::string(text);
  if (plain) {
    const auto [end, ec] = std::from_chars(whole.data(), whole.data() + whole.size(), value);
    if (ec == std::errc() && end == whole.data() + whole.size()) return value;
  }
  return wrong(option, text, "a decimal number of at most 18 digits, like 0.25");
}

Result<double> within(const char* option, std::string_view text, double low, double high) {
  PROCTOR_TRY(const double value, decimal(option, text));
  if (value < low || high < value)
    return wrong(option, text, twelve_digits(low) + " to " + twelve_digits(high));
  return value;
}

Result<std::uint64_t> count(const char* option, std::string_view text, std::uint64_t low,
                            std::uint64_t high) {
  const auto value = whole_number<std::uint64_t>(text);
  if (!value || *value < low || high < *value)
    return wrong(option, text, fmt::format("{} to {}", low, high));
  return *value;
}

// Leaves `out` as it is where nothing was typed.
Status take_within(double& out, const char* option, const std::string& text, double low,
                   double high) {
  if (text.empty()) return ok_status();
  PROCTOR_TRY(out, within(option, text, low, high));
  return ok_status();
}

template <class Count>
Status take_count(Count& out, const char* option, const std::string& text, std::uint64_t low,
                  std::uint64_t high) {
  if (text.empty()) return ok_status();
  PROCTOR_TRY(const std::uint64_t number, count(option, text, low, high));
  out = static_cast<std::uint32_t>(number);
  return ok_status();
}

struct Range {
  double low = 0, high = 0;
};
Result<Range> range(const char* option, std::string_view text) {
  const std::vector<std::string_view> ends = split(text, ':');
  if (2 < ends.size()) return wrong(option, text, "a number, or two with a colon: 0.15:0.85");
  Range out;
  PROCTOR_TRY(out.low, within(option, ends.front(), 0, 1));
  PROCTOR_TRY(out.high, within(option, ends.back(), 0, 1));
  if (out.high < out.low) return wrong(option, text, "the lower end first");
  return out;
}

// Millionths of an amount.
Result<std::int64_t> money(const char* option, std::string_view text) {
  const std::string whole = (text.starts_with('.') ? "0" : "") + std::string(text);
  const Result<std::uint64_t> micros =
      parse_decimal(whole, 6, static_cast<std::uint64_t>(kMostMoney));
  if (!micros.ok()) return wrong(option, text, "an amount of 0 or more, like 0.40");
  return static_cast<std::int64_t>(*micros);
}

Result<RunCosts> costs_of(const std::string& text) {
  RunCosts out;
  bool task = false, a = false, b = false;
  const std::string expected = "task=AMOUNT,a=AMOUNT,b=AMOUNT: of a task, and of a run of each";
  for (const std::string_view part : split(text, ',')) {
    const std::size_t equal = part.find('=');
    const std::string_view name = part.substr(0, equal);
    if (equal == std::string::npos || (name != "task" && name != "a" && name != "b"))
      return wrong("--costs", part, expected);
    PROCTOR_TRY(const std::int64_t amount, money("--costs", part.substr(equal + 1)));
    (name == "task" ? out.task : name == "a" ? out.a : out.b) = amount;
    (name == "task" ? task : name == "a" ? a : b) = true;
  }
  if (!task || !a || !b) return wrong("--costs", text, expected);
  // What costs nothing has no best number of runs for a budget.
  if (out.task + out.a + out.b == 0) return wrong("--costs", text, "one amount above 0");
  // A plan of the most tasks and runs must still be countable.
  constexpr std::int64_t kMostEach = 1'000'000'000'000;
  if (kMostEach < std::max({out.task, out.a, out.b}))
    return wrong("--costs", text, "at most 1000000 each");
  return out;
}

Status read_curve(const PowerArgs& args, PowerInput& out) {
  if (args.costs.empty() != args.budgets.empty())
    return wrong(args.costs.empty() ? "--costs" : "--budgets", "",
                 "both --costs and --budgets, for a curve needs them");
  if (args.costs.empty()) {
    if (!args.tasks_max.empty())
      return wrong("--tasks-max", args.tasks_max, "it with --costs and --budgets only");
    return ok_status();
  }
  PROCTOR_TRY(out.costs, costs_of(args.costs));
  const std::vector<std::string_view> budgets = split(args.budgets, ',');
  if (kMostBudgets < budgets.size())
    return wrong("--budgets", std::to_string(budgets.size()) + " of them", "at most 64");
  for (const std::string_view budget : budgets) {
    PROCTOR_TRY(const std::int64_t amount, money("--budgets", budget));
    out.budgets.push_back(amount);
  }
  std::ranges::sort(out.budgets);
  out.tasks_max = out.tasks.value_or(kMostTasksAsked);
  return take_count(out.tasks_max, "--tasks-max", args.tasks_max, 2, kMostTasksAsked);
}

// After which runs: those that were typed, or so many, evenly spread with the last at the end.
Result<std::vector<std::uint32_t>> looks_of(const PowerArgs& args, std::uint32_t runs) {
  std::vector<std::uint32_t> out;
  if (!args.after.empty()) {
    for (const std::string_view part : split(args.after, ',')) {
      PROCTOR_TRY(const std::uint64_t k, count("--after", part, 1, runs));
      if (!out.empty() && k <= out.back()) return wrong("--after", args.after, "ascending numbers");
      out.push_back(static_cast<std::uint32_t>(k));
    }
    if (out.back() != runs)
      return wrong("--after", args.after, fmt::format("the last look after all {} runs", runs));
  } else {
    PROCTOR_TRY(const std::uint64_t looks,
                count("--looks", args.looks, 1, std::min<std::uint64_t>(kMostLooksAsked, runs)));
    for (std::uint64_t i = 1; i <= looks; ++i)
      out.push_back(static_cast<std::uint32_t>(i * runs / looks));
  }
  if (kMostLooksAsked < out.size()) return wrong("--after", args.after, "at most 20 looks");
  return out;
}

Status read_looks(const PowerArgs& args, PowerInput& out) {
  if (!args.looks.empty() && !args.after.empty())
    return wrong("--looks", args.looks, "either it or --after");
  if (args.looks.empty() && args.after.empty()) {
    if (!args.spend.empty()) return wrong("--spend", args.spend, "it with --looks or --after only");
    return ok_status();
  }
  PlannedLooks& looks = out.looks.emplace();
  PROCTOR_TRY(looks.after, looks_of(args, out.runs));
  if (args.spend == "pocock")
    looks.spend = Spending::kPocock;
  else if (!args.spend.empty() && args.spend != "obrien_fleming")
    return wrong("--spend", args.spend, "obrien_fleming or pocock");
  return ok_status();
}

// What no two methods can be.
Status check_rates(const PowerArgs& args, PowerInput& in) {
  if (1 <= in.p + in.effect)
    return wrong("--effect", twelve_digits(in.effect),
                 fmt::format("below {} ({} + {} is no rate)", twelve_digits(1 - in.p),
                             twelve_digits(in.p), twelve_digits(in.effect)));
  PROCTOR_TRY(const Range r, range("--r", args.r.empty() ? "0.5" : args.r));
  const double most = most_correlation(in.p + in.effect, in.p);
  in.r = r.low;
  // The default yields to what can be; what was typed does not.
  if (args.r.empty()) in.r = std::min(in.r, most);
  if (!args.r.empty() && most < r.high)
    return wrong(
        "--r", twelve_digits(r.high),
        fmt::format("at most {} (no two methods with rates {} and {} can be that alike)",
                    twelve_digits(most), twelve_digits(in.p + in.effect), twelve_digits(in.p)));
  return ok_status();
}

Status read_test(const PowerArgs& args, PowerInput& out) {
  if (args.test == "mcnemar") {
    out.test = PowerInput::Test::kMcNemar;
    if (out.runs != 1)
      return wrong("--k", std::to_string(out.runs), "1: McNemar's test is of one run");
    if (out.looks || !args.from.empty())
      return wrong("--test", args.test, "paired where there are looks, or an earlier stage");
  } else if (!args.test.empty() && args.test != "paired") {
    return wrong("--test", args.test, "paired or mcnemar");
  }
  return ok_status();
}

// From here on numbers of tasks are numbers of repositories.
Status read_repositories(const PowerArgs& args, std::optional<std::uint64_t> of, PowerInput& out) {
  if (out.tasks)
    PROCTOR_CHECK_OK(take_count(of, "--repositories", args.repositories, 1, *out.tasks));
  if (!of && args.repositories.empty() && args.spread.empty()) return ok_status();
  if (!of || out.test == PowerInput::Test::kMcNemar || !out.budgets.empty() ||
      !args.simulate.empty())
    return Error{Errc::kInvalid,
                 "--repositories (with --n), --spread, or a CAMPAIGN whose unit is the repository: "
                 "--test mcnemar, --budgets and --simulate are of tasks"};
  of = std::min(*of, *out.tasks);
  out.repositories = {static_cast<double>(*out.tasks) / static_cast<double>(*of)};
  out.tasks = of;
  return take_within(out.repositories->spread, "--spread", args.spread, 0, 1);
}
}  // namespace

// Fails with kInvalid and a sentence that names the option, what was found and what was expected.
// `campaign`, `comparisons` and `pilot` are the caller's to fill.
Result<PowerInput> power_input(const PowerArgs& args, const PowerDefaults& defaults) {
  constexpr double kLeast = 1e-6, kMost = 1 - 1e-6;
  PowerInput out;
  out.effect = defaults.effect.value_or(out.effect);
  out.alpha = defaults.alpha.value_or(out.alpha);
  out.tasks = defaults.tasks;
  out.runs = defaults.runs.value_or(out.runs);
  PROCTOR_CHECK_OK(take_within(out.p, "--p", args.p, kLeast, kMost));
  PROCTOR_CHECK_OK(take_within(out.effect, "--effect", args.effect, kLeast, kMost));
  PROCTOR_CHECK_OK(take_within(out.alpha, "--alpha", args.alpha, kLeast, 0.2));
  PROCTOR_CHECK_OK(take_within(out.power, "--power", args.power, 0.5, 0.99));
  PROCTOR_CHECK_OK(take_count(out.tasks, "--n", args.tasks, 2, kMostTasksAsked));
  PROCTOR_CHECK_OK(take_count(out.runs, "--k", args.runs, 1, kMostRuns));
  PROCTOR_TRY(const Range rho, range("--rho", args.rho.empty() ? "0.5" : args.rho));
  out.rho_low = rho.low;
  out.rho_high = rho.high;
  out.exact = args.exact;
  PROCTOR_CHECK_OK(check_rates(args, out));
  PROCTOR_CHECK_OK(read_looks(args, out));
  PROCTOR_CHECK_OK(read_test(args, out));
  PROCTOR_CHECK_OK(read_curve(args, out));
  PROCTOR_CHECK_OK(read_repositories(args, defaults.repositories, out));
  return out;
}

// proctor power: what a plan can show, before it is paid.

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

// The differences between two methods that an earlier campaign's tasks show, of those tasks that
// have the usual number of scorable runs of both.
Result<PilotVariance> variance_of(const std::string& folder, const Pair& pair) {
  PROCTOR_TRY(const FrozenCampaign frozen, load_registered(folder));
  PROCTOR_CHECK_OK(has_method(folder, frozen.registration, pair.first));
  PROCTOR_CHECK_OK(has_method(folder, frozen.registration, pair.second));
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
    comparisons = comparisons_of(campaign, plan);
    if (campaign.contracts.size() < 2 && args.tasks.empty())
      return Error{Errc::kInvalid, args.campaign +
                                       " has one task: two methods cannot be told apart "
                                       "by one. --n says how many there will be."};
  }
  // A comparison that was picked out is still one of the plan's, which share alpha.
  const auto family = static_cast<std::uint32_t>(std::max<std::size_t>(1, comparisons.size()));
  if (pair) comparisons = {*pair};
  PROCTOR_TRY(PowerInput input, power_input(args, defaults));
  std::uint64_t simulate = 0;
  PROCTOR_CHECK_OK(take_count(simulate, "--simulate", args.simulate, 1, kMostSimulated));
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
  const auto a = arguments<PowerArgs>(command, exit_code, power);
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
}
}  // namespace proctor::cli
