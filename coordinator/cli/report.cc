// proctor report CAMPAIGN [--json|--csv|--form FORM]

#include "coordinator/aggregate/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "common/base/text.h"
#include "coordinator/aggregate/analysis.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/foreign_forms.h"
#include "coordinator/cli/output_file.h"
#include "coordinator/cli/report_digests.h"
#include "coordinator/cli/report_files.h"
#include "coordinator/forms/forms.h"

namespace proctor::cli {
namespace {

struct ReportArgs {
  std::string folder, form, method, stage, out;
  bool json = false, csv = false, words = false;
  unsigned schema = 2;  // of json
};

// One of `names`, or what was wrong and which was probably meant.
Status known_word(const std::string& what, const std::string& typed,
                  const std::vector<std::string_view>& names) {
  if (std::ranges::find(names, typed) != names.end()) return ok_status();
  const auto near = nearest_word(typed, names);
  std::string said = "there is no " + what + " " + printable(typed);
  if (near) return Error{Errc::kInvalid, said + " (did you mean " + *near + "?)"};
  said += "; there are";
  for (const std::string_view name : names) said += " " + printable(name);
  return Error{Errc::kInvalid, said};
}

constexpr std::string_view kForms[] = {"badge", "csv",         "every-eval", "inspect", "json",
                                       "junit", "junit-tasks", "markdown",   "text"};

Result<std::string> badge(const CampaignReport& report, const std::string& method) {
  if (method.empty()) return render_badge(report, badge_method(report));
  std::vector<std::string_view> names;
  for (const MethodRate& r : report.analysis->rates)
    if (!is_control(report, r.method)) names.push_back(r.method);
  PROCTOR_CHECK_OK(known_word("agent", method, names));
  return render_badge(report, method);
}

// Schema 1 repeats the runs of every row.
Result<std::string> json_in_schema(const CampaignReport& report, unsigned schema) {
  if (schema == 2) return render_json(report);
  if (report.runs.size() <= kJsonRuns) return render_json(report, JsonForm::kFirst);
  return Error{Errc::kInvalid,
               fmt::format("schema 1 lists the runs of every row, and this campaign has {}, more "
                           "than {}; leave --schema out, and take its runs from runs.csv",
                           report.runs.size(), kJsonRuns)};
}

Result<std::string> in_form(const std::string& form, const ReportArgs& args,
                            WrittenReport written) {
  const CampaignReport& report = written.report;
  if (form == "json") return json_in_schema(report, args.schema);
  if (form == "csv") return render_csv(report);
  if (form == "junit") return render_junit(report);
  if (form == "junit-tasks") return render_junit(report, JunitCases::kTasks);
  if (form == "markdown") return render_markdown(report);
  if (form == "badge") return badge(report, args.method);
  return std::move(written.shown);
}

// In a folder of its own, which digests.json lists where it is that of reports/.
Result<std::string> in_folder(const ReportArgs& args, const FrozenCampaign& frozen,
                              const CampaignReport& report, const std::string& name) {
  const auto write = name == kInspectFolder ? write_inspect_logs : write_every_eval;
  if (!args.out.empty()) {
    PROCTOR_TRY(WrittenForms written, write(frozen, report, args.out));
    return std::move(written.said);
  }
  std::string said;
  PROCTOR_CHECK_OK(write_listed(frozen.folder, {name}, [&]() -> Result<std::vector<std::string>> {
    PROCTOR_TRY(WrittenForms written, write(frozen, report, frozen.folder.reports() / name));
    said = std::move(written.said);
    std::vector<std::string> paths;
    for (const fs::path& file : written.files) paths.push_back((fs::path(name) / file).string());
    return paths;
  }));
  return said;
}

Result<std::string> printed(const ReportArgs& args, std::string text) {
  if (args.out.empty()) return text;
  PROCTOR_CHECK_OK(write_output(args.out, text));
  return std::string();
}

// What lies under reports/ is of the whole campaign and stays so.
Result<std::string> of_stage(const std::string& form, const ReportArgs& args,
                             const FrozenCampaign& frozen) {
  PROCTOR_TRY(CampaignReport report, read_stage_report(frozen, args.stage));
  std::string text = render_text(report, args.words ? Words::kShown : Words::kLeftOut);
  PROCTOR_TRY(std::string out, in_form(form, args, {std::move(report), std::move(text)}));
  return printed(args, std::move(out));
}

Result<std::string> report(const ReportArgs& args) {
  const std::string form = args.json ? "json" : args.csv ? "csv" : args.form;
  PROCTOR_CHECK_OK(known_word("form", form, {std::begin(kForms), std::end(kForms)}));
  if (!args.method.empty() && form != "badge")
    return Error{Errc::kInvalid, "--method says whose badge it is: proctor report " + args.folder +
                                     " --form badge --method " + args.method +
                                     "; the runs of one method are proctor list " + args.folder +
                                     " --where method=" + args.method};
  if (args.schema != 2 && form != "json")
    return Error{Errc::kInvalid, "--schema is of the form json: say --json as well"};
  const bool is_folder = form == "inspect" || form == "every-eval";
  if (!args.stage.empty() && is_folder)
    return Error{Errc::kInvalid,
                 "--stage is of the forms that are printed; " + form + " is of the whole campaign"};
  PROCTOR_TRY(const FrozenCampaign frozen, load_registered(args.folder));
  if (!args.stage.empty()) return of_stage(form, args, frozen);
  PROCTOR_TRY(WrittenReport written,
              write_report_files(frozen, args.words ? Words::kShown : Words::kLeftOut));
  if (form == "inspect") return in_folder(args, frozen, written.report, kInspectFolder);
  if (form == "every-eval") return in_folder(args, frozen, written.report, kEveryEvalFolder);
  PROCTOR_TRY(std::string text, in_form(form, args, std::move(written)));
  return printed(args, std::move(text));
}

}  // namespace

void add_report(Command app, int& exit_code) {
  const Command command = app.add_subcommand(
      "report", "tables by method and stratum; also files and forms that other programs read",
      "Forms: text, json, csv; junit (a case per run) and junit-tasks for what gates changes;\n"
      "markdown for the page of a change; badge (an SVG, of one method); inspect (a log per "
      "method) "
      "and\nevery-eval (a record per method), which write folders.\n"
      "Example:\n  proctor report my-campaign\n  proctor report --json my-campaign | jq .\n"
      "  proctor report my-campaign --form junit --out junit.xml\n"
      "  proctor report my-campaign --stage pilot\n"
      "  proctor report my-campaign --form badge --method my-agent > badge.svg");
  auto args = std::make_shared<ReportArgs>();
  args->form = "text";
  command.add_option("CAMPAIGN", args->folder, "the campaign's folder").required();
  command.add_option("--form", args->form, "what is printed")
      .type_name("FORM")
      .capture_default_str();
  command.add_option("--method", args->method, "of a badge: whose (without: the first compared)");
  command
      .add_option("--out", args->out,
                  "a file instead of standard output; of inspect and every-eval a folder")
      .type_name("PATH");
  command
      .add_option("--stage", args->stage,
                  "of the runs of one stage alone: printed, and the files of the campaign stay")
      .type_name("STAGE");
  const Option json =
      command.add_flag("--json", args->json, "every number with the runs behind it (--form json)");
  command
      .add_option(
          "--schema", args->schema,
          "of json: 2, or 1 for readers of before, with a list of runs in every row, which the "
          "next release has no more")
      .one_of({1U, 2U})
      .capture_default_str();
  command.add_flag("--csv", args->csv, "one record per row of the tables (--form csv)")
      .excludes(json);
  command.add_flag("--words", args->words, "below the tables, what each of their words means");
  command.callback([=, &exit_code] {
    const Result<std::string> text = report(*args);
    if (text.ok()) std::fputs(text->c_str(), stdout);
    exit_code = text.ok() ? kOk : complain(text.error());
  });
}

}  // namespace proctor::cli
