// proctor project CAMPAIGN: what it may cost, before a cent is spent.
#include <cstdio>

#include "common/base/limits.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/projection_files.h"

namespace proctor::cli {
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

Result<ProjectionInput> input_of(const Campaign& campaign) {
  PROCTOR_TRY(const Plan plan, plan_of(campaign));
  return projection_input(campaign, plan, nullptr);
}

Result<std::string> project_it(const std::string& folder, bool json) {
  PROCTOR_TRY(const Campaign campaign, load_checked(folder, Outside::kSkip));
  PROCTOR_TRY(const std::optional<Registration> registration, read_registration(campaign.folder));
  ProjectionInput input;
  if (registration) {
    // What differs from what was registered is no projection of this campaign: it is refused.
    PROCTOR_TRY(const FrozenCampaign frozen, load_registered(folder));
    input = projection_input(frozen.campaign, frozen.plan, &frozen.registration);
  } else {
    PROCTOR_TRY(input, input_of(campaign));
  }
  const Projection projection = project(input);
  const fs::path table = campaign.folder / kTable;
  PROCTOR_CHECK_OK(write_file(table, render_projection_csv(input, projection)));
  if (json) return render_projection_json(input, projection);
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
  auto folder = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  command.add_option("CAMPAIGN", *folder, "the campaign's folder").required();
  command.add_flag("--json", *json, "exact to the micro-dollar, for scripts");
  command.callback([=, &exit_code] {
    const Result<std::string> text = project_it(*folder, *json);
    if (text.ok()) std::fputs(text->c_str(), stdout);
    exit_code = text.ok() ? kOk : complain(text.error());
  });
}

}  // namespace proctor::cli
