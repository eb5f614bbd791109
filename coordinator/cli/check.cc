// proctor check CAMPAIGN: every error, nothing run.
#include <fmt/format.h>
#include <algorithm>
#include <cstdio>

#include "common/base/limits.h"
#include "common/base/line_pattern.h"
#include "common/base/text.h"
#include "common/contract/campaign_parser.h"
#include "common/contract/caps.h"
#include "common/contract/cost_model.h"
#include "common/plan/registration.h"
#include "coordinator/cli/campaign_files.h"
#include "coordinator/cli/campaign_notes.h"
#include "coordinator/cli/campaign_run.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/model_check.h"
#include "coordinator/cli/report_files.h"

namespace proctor::cli {
namespace {
// Each cap of a run, its value, and the line that set it; once per task and stage.
void print_effective(const Campaign& campaign) {
  const CapRules rules = campaign.cap_rules();
  for (const Contract& c : campaign.contracts) {
    for (const Stage& stage : campaign.stages) {
      const std::vector<std::string>& tasks = stage.draw.tasks;
      if (!tasks.empty() && !std::ranges::binary_search(tasks, c.id)) continue;
      std::printf("\n%s, stage %s:\n", c.id.c_str(), stage.name.c_str());
      const EffectiveCaps e = effective_caps(rules, stage.name, c);
      for (const Cap cap : kCaps)
        std::printf(
            "  %-24s %-14s %s\n", std::string(to_string(cap)).c_str(),
            (cap == Cap::kUsd ? format_usd(*e.caps.usd) + " " + money_word(campaign.cost_model)
                              : format_cap(cap, cap_value(e.caps, cap)))
                .c_str(),
            describe_source(e.source(cap), campaign.origin, c.origin).c_str());
      const std::uint32_t rerun = c.rerun_in(campaign.rerun);
      const CapLevel by = rerun == c.rerun ? CapLevel::kContract : CapLevel::kCampaign;
      if (rerun != 0)
        fmt::print("  {:<24} {:<14} {} (tie: safety-then-correctness)\n", "acceptance repeated",
                   rerun, describe_source({by, "acceptance.rerun"}, campaign.origin, c.origin));
      const Usage after = acceptance_worst_case(c, rerun);
      const MicroUsd kept = further_price(campaign.cost_model, after).total();
      std::printf("  %-24s %-14s %s\n", "kept for acceptance",
                  (format_usd(kept) + " " + money_word(campaign.cost_model)).c_str(),
                  "of usd: fresh setup, checks and storage at their limits");
    }
  }
  std::puts("");
}

// With the file and line that set it.
void print_row(const Campaign& campaign, const std::string& name, const std::string& value,
               const std::string& field) {
  const auto at = campaign.origin.at.find(field);
  const std::string line =
      at == campaign.origin.at.end() ? "" : ":" + std::to_string(at->second.line);
  std::printf("  %-24s %-14s %s%s: %s\n", name.c_str(), value.c_str(), campaign.origin.file.c_str(),
              line.c_str(), field.c_str());
}

// The rates of all runs together, and the line that set each.
void print_rates(const Campaign& campaign) {
  if (campaign.rates.empty()) return;
  std::puts("\nrates, of all runs on all workers together:");
  for (const RateBucket& b : campaign.rates.buckets()) {
    print_row(campaign, b.name, std::to_string(b.limit), "rates." + b.name);
  }
}

// Each envelope that is set, and the line that set it.
void print_envelopes(const Campaign& campaign) {
  const Envelopes& e = campaign.envelopes;
  const auto show = [&](const std::string& scope, MicroUsd usd, const std::string& field) {
    print_row(campaign, scope, format_usd(usd) + " " + money_word(campaign.cost_model), field);
  };
  std::puts("\nenvelopes:");
  if (e.shared) show(e.shared->scope(), e.shared->cap, "budget.shared.cap");
  show("global", e.global, "budget.global");
  for (const auto& [name, usd] : e.stage) show("stage:" + name, usd, "stages." + name);
  if (e.task) show("task:*", *e.task, "budget.task");
  for (const auto& [id, usd] : e.tasks) show("task:" + id, usd, "budget.tasks." + id);
  for (const auto& [name, usd] : e.methods) show("method:" + name, usd, "budget.methods." + name);
  for (const auto& [key, levels] : e.strata)
    for (const auto& [level, usd] : levels)
      show("stratum:" + key + "=" + level, usd, "budget.strata." + key + "." + level);
  for (const auto& [what, setting] : watch_settings(campaign.watch))
    std::printf("  %-24s %s\n", what.c_str(), setting.c_str());
}

// Files that were meant as tasks and that no pattern names.
void print_unnamed(const Campaign& campaign) {
  std::error_code ec;
  for (fs::directory_iterator it(campaign.folder / "contracts", ec), end; !ec && it != end;
       it.increment(ec)) {
    const fs::path name = it->path().filename();
    if (name.extension() != ".yml") continue;
    const bool named = std::ranges::any_of(campaign.contracts, [&](const Contract& c) {
      return fs::path(c.origin.file).filename() == name;
    });
    if (!named)
      std::printf(
          "note: contracts/%s is no task: `contracts` does not name it (contracts/*.yaml "
          "where nothing is written)\n",
          printable(name.string(), 100).c_str());
  }
}

// "a, b and 3 more": the contracts that `holds` of; empty: of none.
template <class Holds>
std::string contracts_that(const Campaign& campaign, const Holds& holds) {
  constexpr std::size_t kShown = 5;
  std::string named;
  std::size_t count = 0;
  for (const Contract& c : campaign.contracts)
    if (holds(c) && ++count <= kShown) named += (count == 1 ? "" : ", ") + printable(c.id, 100);
  if (kShown < count) named += fmt::format(" and {} more", count - kShown);
  return named;
}

// Whatever ends their checks with 0 passes.
void print_exit_judged(const Campaign& campaign) {
  const std::string named = contracts_that(campaign, [](const Contract& c) {
    return !c.checks.empty() && std::ranges::all_of(c.checks, [](const Check& check) {
      return check.reader == ResultReader::kExitCode;
    });
  });
  if (named.empty()) return;
  std::printf(
      "note: exit codes alone judge %s: code under test that ends its judge with 0 passes, and so "
      "does a file that shadows the runner. Let a check write a result file and name its tests in "
      "fail_to_pass (docs/first-campaign.md); proctor selfcheck tries both\n",
      named.c_str());
}

// Without a build or static check that gate never passes (R138).
void print_unbuilt(const Campaign& campaign) {
  const std::string named = contracts_that(campaign, [](const Contract& c) {
    return !c.no_build && std::ranges::find(c.checks, Gate::kBuild, &Check::gate) == c.checks.end();
  });
  if (!named.empty())
    std::printf(
        "note: contract %s has no build or static check: say gates: {build: none}, or no run of it "
        "is satisfied\n",
        named.c_str());
}

// One letter and one digit have no command in common.
void print_matching_all(const Campaign& campaign) {
  for (const Contract& c : campaign.contracts)
    for (const std::string& text : c.policy.denied_commands)
      if (const auto p = LinePattern::compile(text); p.ok() && p->matches("x") && p->matches("0"))
        fmt::print("note: contract {}: policy.commands.deny: \"{}\" matches every command\n",
                   printable(c.id, 100), printable(text));
}

// Stages with an envelope of their own that holds less than their runs may cost by their caps.
void print_unpaid(const Campaign& campaign) {
  __extension__ typedef __int128 Wide;
  const CapRules rules = campaign.cap_rules();
  for (const auto& [name, envelope] : campaign.envelopes.stage) {
    const Stage& s = *std::ranges::find(campaign.stages, name, &Stage::name);
    const std::uint64_t tasks = campaign.tasks_of(s);
    const std::uint64_t each = campaign.replicates_of(s) * campaign.methods.size();
    Wide all = 0;
    for (const Contract& c : campaign.contracts) {
      const Wide cap = effective_caps(rules, name, c).caps.usd->micros();
      if (s.draw.per_stratum)  // the plan says which: at most
        all = std::max(all, cap * tasks);
      else if (s.draw.tasks.empty() || std::ranges::binary_search(s.draw.tasks, c.id))
        all += cap;
    }
    const auto cost = static_cast<std::int64_t>(std::min<Wide>(all * each, kLedgerMax.micros()));
    if (envelope.micros() < cost)
      fmt::print(
          "note: stage {} cannot pay its {} runs where they cost as much as they may: {} {} by "
          "their "
          "caps, and its envelope has {}; runs that find too little are parked\n",
          printable(name), tasks * each, format_usd(MicroUsd::from_micros(cost)),
          money_word(campaign.cost_model), format_usd(envelope));
  }
}

void print_notes(const std::vector<std::string>& notes, const char* then = "") {
  for (const std::string& note : notes)
    std::printf("note: %s%s\n", printable(note, limits::kDetailBytes).c_str(), then);
}

struct CheckArgs {
  std::string folder, models;
  bool offline = false, effective = false;
};

Status check(const CheckArgs& args) {
  const auto& [folder, models, offline, effective] = args;
  PROCTOR_TRY(const Campaign campaign,
              load_checked(folder, offline ? Outside::kSkip : Outside::kCheck));
  PROCTOR_CHECK_OK(refuse_model_calls(campaign));
  RunOptions options;
  options.folder = folder;
  options.models = models;
  if (!models.empty()) PROCTOR_CHECK_OK(check_models(options, campaign));
  // Without workers of this host, or offline, others may have them.
  std::string absent;
  if (!offline)
    for (const std::string& lack : missing_here(options, campaign, Missing::kInstalled))
      absent += lack + "\n";
  if (!absent.empty())
    return Error{Errc::kInvalid, absent +
                                     "Local workers have what this host has. Where none work: "
                                     "workers: 0 in campaign.yaml, or check --offline"};
  const std::string again = again_of(campaign);
  const std::string most =
      again.empty() ? "at most " + format_usd(campaign.envelopes.global) + " " +
                          money_word(campaign.cost_model)
                    : "no envelope: a " + again.substr(0, again.find(' ')) + " costs nothing";
  std::printf("%s: %s, %s\n", campaign.name.c_str(), size_text(campaign).c_str(), most.c_str());
  std::fputs(stages_text(campaign).c_str(), stdout);
  for (const Contract& c : campaign.contracts) {
    const std::uint32_t rerun = c.rerun_in(campaign.rerun);
    fmt::print("  {:<28} {}  {} {} per run{}\n", c.id, c.digest.short_hex(),
               format_usd(campaign.run_cap(c)), money_word(campaign.cost_model),
               rerun == 0
                   ? ""
                   : fmt::format("; acceptance: rerun {}, tie safety-then-correctness", rerun));
  }
  if (const auto& shared = campaign.envelopes.shared)
    std::printf(
        "  %-28s at most %s %s of all campaigns that share it on %s (once for all of them: proctor "
        "budget share)\n",
        shared->scope().c_str(), format_usd(shared->cap).c_str(),
        money_word(campaign.cost_model).c_str(), printable(campaign.redis).c_str());
  if (effective) {
    print_envelopes(campaign);
    print_rates(campaign);
    print_effective(campaign);
  }
  std::printf("%s\n", kCapsArePolicy.data());
  std::fputs(analysis_text(campaign).c_str(), stdout);
  if (campaign.cost_model.abstract())
    std::printf(
        "note: amounts are in units of the built-in prices, which are no dollars: for those, write "
        "your prices into %s (docs/file-formats.md)\n",
        kCostModelFile);
  for (const Contract& c : campaign.contracts)
    if (!c.policy.writable.empty() && c.policy.protected_.empty() && !c.checks.empty())
      std::printf(
          "note: task %s: policy.writable is asked of what the agent left; what it may write can "
          "still change the rest when setup or a check runs it. Name what judges in "
          "policy.protected\n",
          printable(c.id, 100).c_str());
  print_unpaid(campaign);
  print_exit_judged(campaign);
  print_unbuilt(campaign);
  print_matching_all(campaign);
  print_notes(trust_notes(distrusted_tasks(campaign)));
  print_unnamed(campaign);
  print_notes(method_notes(campaign));
  print_notes(missing_programs({}, campaign));
  print_notes(model_notes(campaign, models));
  print_notes(missing_here(options, campaign, offline ? Missing::kAny : Missing::kSet),
              " before proctor run");
  std::puts("no errors");
  return ok_status();
}
}  // namespace

void add_check(Command app, int& exit_code) {
  const Command command =
      app.add_subcommand("check", "validate everything, say every error, run nothing",
                         "Example:\n  proctor check examples/quickstart/campaign\n"
                         "Exit code 2 when there is any error.");
  const auto args = arguments<CheckArgs>(command, exit_code, check);
  command.add_option("CAMPAIGN", args->folder, "the campaign's folder").required();
  command.add_flag("--offline", args->offline, "do not look at repositories, images and patches");
  command.add_flag("--effective", args->effective,
                   "show each cap of a run and the file and line that set it");
  command
      .add_option("--models", args->models,
                  "the file that local workers will have: does it name every model?")
      .envname("PROCTOR_MODELS");
}

// proctor plan CAMPAIGN [--freeze]: draws the run order; --freeze registers it.

namespace {
struct PlanArgs {
  std::string folder;
  bool freeze = false;
};

Status plan(const PlanArgs& args) {
  PROCTOR_TRY(const Campaign campaign, load_checked(args.folder, Outside::kSkip));
  const StateFolder state{campaign.folder};
  const bool registered = is_there(state.registration());
  if (!registered) {
    PROCTOR_TRY(const Digest digest, write_plan(campaign));
    std::printf("%s: %s, seed %u, sha256 %s\n", state.plan().string().c_str(),
                counted(campaign.run_count(), "run").c_str(), campaign.seed,
                digest.short_hex().c_str());
    std::fputs(stages_text(campaign).c_str(), stdout);
    std::fputs(analysis_text(campaign).c_str(), stdout);
    print_notes(trust_notes(distrusted_tasks(campaign)));
    if (!args.freeze) {
      std::printf("Next: proctor plan --freeze %s\n", args.folder.c_str());
      return ok_status();
    }
  }
  PROCTOR_TRY(const Registration registration, freeze(campaign));
  std::printf("%s: %s as %s\n", state.registration().string().c_str(),
              registered ? "already registered, and nothing differs," : "registered",
              campaign_id(registration).c_str());
  return ok_status();
}
}  // namespace

void add_plan(Command app, int& exit_code) {
  const Command command = app.add_subcommand(
      "plan", "draw the randomization plan; --freeze registers it",
      "Example:\n  proctor plan --freeze my-campaign\n"
      "docs/plan.md shows how to derive the plan again with a few lines of NumPy.");
  const auto args = arguments<PlanArgs>(command, exit_code, plan);
  command.add_option("CAMPAIGN", args->folder, "the campaign's folder").required();
  command.add_flag("--freeze", args->freeze,
                   "write registration.json: from then on nothing may change");
}

// proctor project CAMPAIGN: what it may cost, before a cent is spent.

namespace {
constexpr const char* kTable = "pilot_cost_projection_table.csv";

// The plan that is there, else the one that would be drawn.
Result<Plan> plan_of(const Campaign& campaign) {
  const Result<std::string> csv =
      read_file(StateFolder{campaign.folder}.plan(), limits::kPlanFileBytes);
  if (!csv.ok() && csv.error().code == Errc::kNotFound) return draw_plan(shape_of(campaign));
  if (!csv.ok()) return csv.error();
  return parse_plan("pilot_randomization_plan.csv", *csv, shape_of(campaign));
}

struct ProjectArgs {
  std::string folder;
  bool json = false;
};

Result<std::string> project_it(const ProjectArgs& args) {
  PROCTOR_TRY(const Campaign campaign, load_checked(args.folder, Outside::kSkip));
  PROCTOR_TRY(const std::optional<Registration> registration, read_registration(campaign.folder));
  ProjectionInput input;
  if (registration) {
    // What differs from what was registered is no projection of this campaign: it is refused.
    PROCTOR_TRY(const FrozenCampaign frozen, load_registered(args.folder));
    input = projection_input(frozen.campaign, frozen.plan, &frozen.registration);
  } else {
    PROCTOR_TRY(const Plan plan, plan_of(campaign));
    input = projection_input(campaign, plan, nullptr);
  }
  const Projection projection = project(input);
  const fs::path table = campaign.folder / kTable;
  PROCTOR_CHECK_OK(write_file(table, render_projection_csv(input, projection)));
  if (args.json) return render_projection_json(input, projection);
  return render_projection_text(input, projection) + "\nTable: " + table.string() + "\n";
}
}  // namespace

void add_project(Command app, int& exit_code) {
  const Command command = app.add_subcommand(
      "project", "expected cost, worst case and what binds first, before anything runs",
      "Example:\n  proctor project my-campaign\n"
      "Expected costs need pilot_cost_model_inputs.json (docs/file-formats.md); without it the "
      "worst\n"
      "case is shown. Writes pilot_cost_projection_table.csv into the campaign's folder.");
  const auto args = arguments<ProjectArgs>(command, exit_code, project_it);
  command.add_option("CAMPAIGN", args->folder, "the campaign's folder").required();
  command.add_flag("--json", args->json, "exact to the micro-dollar, for scripts");
}
}  // namespace proctor::cli
