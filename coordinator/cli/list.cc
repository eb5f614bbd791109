// proctor list CAMPAIGN [--where FILTER]: the runs behind a number.
#include <cstdio>

#include "common/base/text.h"
#include "coordinator/aggregate/run_filter.h"
#include "coordinator/aggregate/run_sets.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/report_files.h"

namespace proctor::cli {
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
  if (args.csv) out = runs_csv_header(input.strata_keys);
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
      append_run_csv(out, run);
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
  for (const FilterWord& w : filter_words())
    out += "  " + std::string(w.word) +
           std::string(w.word.size() < 14 ? 14 - w.word.size() : 1, ' ') + std::string(w.meaning) +
           "\n";
  out.pop_back();
  return out;
}

}  // namespace

void add_list(Command app, int& exit_code) {
  const Command command =
      app.add_subcommand("list", "the runs behind a number, by a filter", footer());
  auto args = std::make_shared<ListArgs>();
  command.add_option("CAMPAIGN", args->folder, "the campaign's folder").required();
  command.add_option("--where", args->where, "which runs (without: all)").type_name("FILTER");
  const Option csv = command.add_flag("--csv", args->csv, "their records, as in runs.csv");
  command.add_flag("--count", args->count, "only how many").excludes(csv);
  command.add_option("--expect", args->expect, "exit code 1 unless this is the digest of the set")
      .type_name("DIGEST");
  command.callback([=, &exit_code] { exit_code = code_of(list(*args)); });
}

}  // namespace proctor::cli
