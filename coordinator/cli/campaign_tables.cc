#include <fmt/format.h>
#include <cstdio>
#include <map>
#include <set>

#include "common/base/text.h"
#include "coordinator/aggregate/campaign_comparison.h"
#include "coordinator/aggregate/columns.h"
#include "coordinator/aggregate/leaderboard.h"
#include "coordinator/aggregate/run_filter.h"
#include "coordinator/aggregate/run_sets.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/report_files.h"
#include "coordinator/cli/trial_campaign.h"
#include "coordinator/page/page.h"
#include "coordinator/shell/control_protocol.h"

namespace proctor::cli {
// proctor list CAMPAIGN [--where FILTER]: the runs behind a number.

namespace {
struct ListArgs {
  std::string folder, where, expect;
  bool csv = false, count = false;
};

void put(std::string& out) {
  std::fwrite(out.data(), 1, out.size(), stdout);
  out.clear();
}

Result<int> list(const ListArgs& args) {
  std::optional<Digest> expected;
  if (!args.expect.empty()) {
    PROCTOR_TRY(expected, Digest::from_hex(args.expect));
  }
  PROCTOR_TRY(const FrozenCampaign frozen, load_registered(args.folder));
  PROCTOR_TRY(const ReportInput input, read_runs(frozen));
  PROCTOR_TRY(const RunFilter filter,
              RunFilter::parse(args.where, {input.strata_keys, input.runs}));
  constexpr std::size_t kPiece = std::size_t{1} << 15U;
  std::string out, lines;
  Sha256 digest;
  std::uint64_t found = 0;
  const auto columns = aggregate::run_columns(input.strata_keys);
  if (args.csv) out = columns.csv_header();
  for (const RunRecord& run : input.runs) {
    if (!filter.matches(run)) continue;
    ++found;
    append_set_line(lines, run);
    if (kPiece < lines.size()) {
      digest.update(lines);
      lines.clear();
    }
    if (args.count) continue;
    if (args.csv)
      columns.append_csv(out, run);
    else
      out += run.name + "\n";
    if (kPiece < out.size()) put(out);
  }
  put(out);
  digest.update(lines);
  const Digest is = digest.finish();
  if (args.count) std::printf("%llu\n", static_cast<unsigned long long>(found));
  std::fflush(stdout);
  std::fprintf(stderr, "%llu of %zu runs, digest %s\n", static_cast<unsigned long long>(found),
               input.runs.size(), is.hex().c_str());
  if (!expected || *expected == is) return kOk;
  std::fprintf(stderr,
               "proctor: these are not the runs that were meant: their digest is not %s. Results "
               "came in since, or it is of another campaign.\n",
               expected->hex().c_str());
  return kJobFailed;
}

std::string footer() {
  std::string out =
      "Example:\n"
      "  proctor list my-campaign --where 'method=my-agent outcome=failure'\n"
      "  proctor list my-campaign --where 'cost>0.50 (language=go,rust or time>2m)' --csv\n"
      "  proctor list my-campaign --where 'satisfied=no outcome=success'\n"
      "Comparisons beside each other hold together; or, not and brackets combine; a=b,c is "
      "either;\n"
      "* stands for anything; a value with blanks stands in \"...\". On standard error: how many, "
      "and\nthe digest that a report names the set by. Words, beside the keys of strata:\n";
  for (const Definition& w : filter_words())
    out += "  " + w.word + std::string(w.word.size() < 14 ? 14 - w.word.size() : 1, ' ') +
           std::string(w.meaning) + "\n";
  out.pop_back();
  return out;
}
}  // namespace

void add_list(Command app, int& exit_code) {
  const Command command =
      app.add_subcommand("list", "the runs behind a number, by a filter", footer());
  const auto args = arguments<ListArgs>(command, exit_code, list);
  command.add_option("CAMPAIGN", args->folder, "the campaign's folder").required();
  command.add_option("--where", args->where, "which runs (without: all)").type_name("FILTER");
  const Option csv = command.add_flag("--csv", args->csv, "their records, as in runs.csv");
  command.add_flag("--count", args->count, "only how many").excludes(csv);
  command.add_option("--expect", args->expect, "exit code 1 unless this is the digest of the set")
      .type_name("DIGEST");
}

// proctor compare OLDER NEWER

namespace {
constexpr int kUndecided = 5;

struct CompareArgs {
  std::string older, newer, method;
  std::vector<std::string> names;
  double margin = 0.05;
  bool json = false, strict = false;
};

Result<std::map<std::string, std::string>> names_of(const std::vector<std::string>& pairs) {
  std::map<std::string, std::string> out;
  for (const std::string& pair : pairs) {
    const std::size_t equal = pair.find('=');
    if (equal == std::string::npos || equal == 0 || equal + 1 == pair.size())
      return Error{Errc::kInvalid, "--map: found \"" + printable(pair) + "\", expected OLD=NEW"};
    out[pair.substr(0, equal)] = pair.substr(equal + 1);
  }
  return out;
}

// --method and both sides of --map have to exist: a typo must not compare nothing in silence.
Status check_names(const CompareArgs& args, const std::map<std::string, std::string>& names,
                   const Registration& older, const Registration& newer) {
  for (const auto& [from, to] : names) {
    PROCTOR_CHECK_OK(has_method("the older campaign", older, from));
    PROCTOR_CHECK_OK(has_method("the newer campaign", newer, to));
  }
  if (args.method.empty()) return ok_status();
  return has_method("the newer campaign", newer, args.method);
}

Result<int> compare(const CompareArgs& args) {
  PROCTOR_TRY(const auto names, names_of(args.names));
  PROCTOR_TRY(const FrozenCampaign older, load_registered(args.older));
  PROCTOR_TRY(const FrozenCampaign newer, load_registered(args.newer));
  PROCTOR_CHECK_OK(check_names(args, names, older.registration, newer.registration));
  PROCTOR_TRY(const CampaignReport before, read_report(older));
  PROCTOR_TRY(const CampaignReport now, read_report(newer));
  PROCTOR_CHECK_OK(may_be_compared(args.older, before.runs));
  PROCTOR_CHECK_OK(may_be_compared(args.newer, now.runs));
  CampaignComparison c = compare_campaigns({older.registration, before}, {newer.registration, now},
                                           names, args.margin);
  if (!args.method.empty()) {
    std::erase_if(c.methods, [&](const MethodComparison& m) { return m.new_name != args.method; });
    if (!c.methods.empty()) c.lost_agents.clear();  // the others are not asked about
  }
  if (args.strict && !c.differences.empty())
    return Error{Errc::kConflict, "they may not be compared (--strict): " + c.differences.front()};
  std::fputs((args.json ? render_comparison_json(c) : render_comparison_text(c)).c_str(), stdout);
  const Decision decision = decision_of(c);
  if (decision == Decision::kUndecided) return kUndecided;
  return decision == Decision::kWorse ? kJobFailed : kOk;
}
}  // namespace

void add_compare(Command app, int& exit_code) {
  const Command command = app.add_subcommand(
      "compare", "is a newer campaign worse than an older one, method by method?",
      "Exit code: 0 no method is worse at the margin, 1 one is, 5 the data leave it open, 2 wrong "
      "input.\nnoop and reference measure the tasks: they decide only where nothing else is "
      "compared. An\nagent of the older campaign that the newer has not: never 0.\n"
      "Example:\n  proctor compare last-week this-week\n"
      "  proctor compare --map agent-1=agent-2 --margin 0.1 old new");
  const auto args = arguments<CompareArgs>(command, exit_code, compare);
  command.add_option("OLDER", args->older, "the older campaign's folder").required();
  command.add_option("NEWER", args->newer, "the newer campaign's folder").required();
  command.add_option("--map", args->names, "OLD=NEW: a method that is called otherwise now");
  command.add_option("--method", args->method, "this method of the newer campaign alone");
  command.add_option("--margin", args->margin, "how much lower a success rate may be")
      .check(share(0.000001, 0.999999), "SHARE")
      .capture_default_str();
  command.add_flag("--strict", args->strict, "refuse campaigns that differ in more than methods");
  command.add_flag("--json", args->json, "everything, for programs");
}

// proctor leaderboard CAMPAIGN...

namespace {
struct BoardArgs {
  std::vector<std::string> folders, tasks;
  std::string out;
  bool json = false;
};

struct ReadCampaign {
  FrozenCampaign frozen;
  CampaignReport report;
};

Result<ReadCampaign> read_campaign(const std::string& folder) {
  PROCTOR_TRY(FrozenCampaign frozen, load_registered(folder));
  PROCTOR_TRY(CampaignReport report, read_report(frozen));
  PROCTOR_CHECK_OK(may_be_compared(folder, report.runs));
  return ReadCampaign{std::move(frozen), std::move(report)};
}

// A task that no campaign has is a typing mistake, and must not make an empty table.
Status check_tasks(const std::vector<std::string>& tasks, const std::vector<ReadCampaign>& read) {
  std::set<std::string_view> known;
  for (const ReadCampaign& c : read)
    for (const auto& [task, digest] : c.frozen.registration.contracts) known.insert(task);
  const std::vector<std::string_view> names(known.begin(), known.end());
  for (const std::string& task : tasks) {
    if (known.contains(task)) continue;
    return Error{Errc::kNotFound, "none of these campaigns has a task " + printable(task) +
                                      did_you_mean(task, names)};
  }
  return ok_status();
}

Status write_board(const Leaderboard& board, const fs::path& into) {
  PROCTOR_CHECK_OK(make_dirs(into));
  PROCTOR_CHECK_OK(write_file(into / "leaderboard.html", render_leaderboard_html(board),
                              Durability::kSync, kOpenFile));
  PROCTOR_CHECK_OK(write_file(into / "leaderboard.json", render_leaderboard_json(board),
                              Durability::kSync, kOpenFile));
  return write_file(into / "leaderboard.csv", render_leaderboard_csv(board), Durability::kSync,
                    kOpenFile);
}

Status leaderboard(const BoardArgs& args) {
  std::vector<ReadCampaign> read;
  SeenRuns seen;
  for (const std::string& folder : args.folders) {
    PROCTOR_TRY(ReadCampaign c, read_campaign(folder));
    if (const auto again = seen.add(c.report.campaign, c.report.runs); 0 < again.runs)
      return Error{Errc::kConflict,
                   fmt::format("{} runs of {} are in {} too: each campaign counts once", again.runs,
                               folder, args.folders[again.of])};
    read.push_back(std::move(c));
  }
  PROCTOR_CHECK_OK(check_tasks(args.tasks, read));
  std::vector<BoardCampaign> campaigns;
  for (std::size_t i = 0; i < read.size(); ++i)
    campaigns.push_back({read[i].frozen.registration, read[i].report, args.folders[i]});
  const Leaderboard board = make_leaderboard(campaigns, args.tasks);
  std::fputs((args.json ? render_leaderboard_json(board) : render_leaderboard_text(board)).c_str(),
             stdout);
  if (args.out.empty()) return ok_status();
  PROCTOR_CHECK_OK(write_board(board, args.out));
  if (!args.json)
    std::printf("\nThe tables: %s (open it in a browser), and .json, .csv beside it\n",
                (fs::path(args.out) / "leaderboard.html").c_str());
  return ok_status();
}
}  // namespace

void add_leaderboard(Command app, int& exit_code) {
  const Command command = app.add_subcommand(
      "leaderboard", "methods of many campaigns in tables, with the ranks that the data allow",
      "Campaigns share a table where the contracts of the counted tasks are equal. A rank is a "
      "set: rows\nthat the data do not tell apart share it.\n"
      "Example:\n  proctor leaderboard campaigns/*\n"
      "  proctor leaderboard --tasks json-lib,parser --out public week-1 week-2");
  const auto args = arguments<BoardArgs>(command, exit_code, leaderboard);
  command.add_option("CAMPAIGN", args->folders, "folders of campaigns").required();
  command.add_option("--tasks", args->tasks, "those that are counted, with commas (without: all)")
      .delimiter(',')
      .allow_extra_args(false)
      .type_name("TASK,...");
  command.add_option("--out", args->out, "write leaderboard.html, .json and .csv into this folder")
      .type_name("FOLDER");
  command.add_flag("--json", args->json, "everything, for programs");
}

// proctor merge CAMPAIGN CAMPAIGN...

namespace {
struct MergeArgs {
  std::vector<std::string> folders;
  bool json = false, csv = false, runs = false;
};

Result<std::string> merge(const MergeArgs& args) {
  std::vector<FrozenCampaign> frozen;
  std::vector<ReportInput> inputs;
  for (const std::string& folder : args.folders) {
    PROCTOR_TRY(FrozenCampaign one, load_registered(folder));
    PROCTOR_TRY(ReportInput runs, read_runs(one));
    frozen.push_back(std::move(one));
    inputs.push_back(std::move(runs));
  }
  std::vector<MergedCampaign> campaigns;
  for (std::size_t i = 0; i < frozen.size(); ++i)
    campaigns.push_back({frozen[i].registration, inputs[i]});
  const std::vector<std::string> why = why_not_pooled(campaigns);
  if (!why.empty()) {
    std::string said = "they may not be pooled:";
    for (const std::string& sentence : why) said += "\n  * " + sentence;
    return Error{Errc::kConflict, said +
                                      "\nTo see them side by side: proctor compare, or proctor "
                                      "leaderboard"};
  }
  const CampaignReport report = build_report(pooled(campaigns));
  if (args.json) return render_json(report);
  if (args.csv) return render_csv(report);
  if (args.runs) return render_runs_csv(report);
  return render_text(report, Words::kLeftOut);
}
}  // namespace

void add_merge(Command app, int& exit_code) {
  const Command command = app.add_subcommand(
      "merge", "campaigns of equal tasks, methods and limits as one table, replicates pooled",
      "Writes nothing. Refused where contracts, methods, caps, prices or plans differ, and while "
      "runs are\nopen: each reason is said, exit code 2. Tasks and methods that not all have are "
      "left out and named.\n"
      "Example:\n  proctor merge week-1 week-2\n  proctor merge --runs week-1 week-2 > runs.csv");
  const auto args = arguments<MergeArgs>(command, exit_code, merge);
  command.add_option("CAMPAIGN", args->folders, "folders of campaigns, two or more")
      .required()
      .expected(2, 64);
  command.add_flag("--json", args->json, "as report.json");
  command.add_flag("--csv", args->csv, "one record per row of the tables");
  command.add_flag("--runs", args->runs, "one record per run");
}
}  // namespace proctor::cli
