// proctor cassette record|list|show: recordings of calls of models, made of a campaign's evidence,
// with which it runs again without a provider (docs/cassettes.md).
#include <cstdio>

#include "common/base/text.h"
#include "common/trace/model_calls.h"
#include "coordinator/cli/campaign_files.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/evidence_text.h"
#include "coordinator/cli/open_journal.h"
#include "coordinator/journal/journal_reader.h"
#include "coordinator/shell/control_protocol.h"

namespace proctor::cli {
namespace {
struct CassetteArgs {
  std::string folder, file;
  std::vector<std::string> runs;
  std::uint64_t call = 0;
  bool force = false, raw = false;
};

// The attempt that counts, else the last one that left evidence.
Result<fs::path> evidence_of(const FrozenCampaign& frozen, JournalReader& journal, RunId run) {
  PROCTOR_TRY(const std::vector<AttemptRecord> attempts, journal.attempts_of(run));
  const std::string name = frozen.plan.run_name(run);
  fs::path found;
  for (const AttemptRecord& a : attempts) {
    const fs::path dir = frozen.folder.attempt(name, a.core.attempt.no);
    if (!is_folder(dir)) continue;
    found = dir;
    if (a.core.sets_outcome) break;
  }
  if (found.empty())
    return Error{Errc::kNotFound,
                 name + " has left no evidence here yet: proctor explain says why"};
  return found;
}

// Runs that are named, or all of the plan.
Result<std::vector<RunId>> wanted_runs(const FrozenCampaign& frozen,
                                       const std::vector<std::string>& names) {
  std::vector<RunId> out;
  for (const std::string& name : names) {
    PROCTOR_TRY(const RunId run, find_run(frozen.plan, name));
    out.push_back(run);
  }
  for (std::uint32_t r = 0; names.empty() && r < frozen.plan.size(); ++r) out.push_back(RunId(r));
  return out;
}

Result<int> record(const CassetteArgs& args) {
  std::error_code ec;
  if (!args.force && fs::exists(args.file, ec))
    return Error{Errc::kConflict, args.file + " is there already: --force writes over it"};
  PROCTOR_TRY(const FrozenCampaign frozen, load_registered(args.folder));
  PROCTOR_TRY(const std::vector<RunId> runs, wanted_runs(frozen, args.runs));
  PROCTOR_TRY(JournalReader journal, open_journal(frozen.folder));
  std::vector<CassetteCall> calls;
  std::size_t of_runs = 0, left_out = 0;
  for (const RunId run : runs) {
    const Result<fs::path> dir = evidence_of(frozen, journal, run);
    if (!dir.ok() && args.runs.empty()) continue;  // of all: those that there are
    if (!dir.ok()) return dir.error();
    Result<RecordedCalls> recorded = record_calls(*dir, frozen.plan.run_name(run));
    if (!recorded.ok()) return in_context(dir->string(), recorded.error());
    of_runs += recorded->calls.empty() ? 0 : 1;
    left_out += recorded->left_out;
    for (CassetteCall& call : recorded->calls) calls.push_back(std::move(call));
  }
  if (calls.empty())
    return Error{Errc::kNotFound,
                 "none of these runs made a call through the gateway whose text was kept (methods "
                 "with `gateway`: docs/gateway.md)"};
  PROCTOR_TRY(const std::string text, cassette_text(calls));
  PROCTOR_CHECK_OK(write_file(args.file, text, Durability::kSync, kPrivateFile));
  std::printf("%s: %zu calls of %zu runs, %zu bytes\n", printable(args.file, 4096).c_str(),
              calls.size(), of_runs, text.size());
  if (0 < left_out)
    std::printf("%zu calls were left out: their text was not kept, or something was struck out\n",
                left_out);
  std::printf("run on it: cassette: %s instead of url in the models file\n",
              printable(fs::absolute(args.file, ec).string(), 4096).c_str());
  return kOk;
}

Result<int> list(const CassetteArgs& args) {
  PROCTOR_TRY(const std::vector<CassetteCall> calls, load_cassette(args.file));
  std::fputs(cassette_list(calls).c_str(), stdout);
  return kOk;
}

void put(const std::string& text, bool raw) {
  if (raw) {
    std::fwrite(text.data(), 1, text.size(), stdout);
  } else {
    std::printf("%s%s", printable_lines(text).c_str(),
                text.ends_with('\n') || text.empty() ? "" : "\n");
  }
}

Result<int> show(const CassetteArgs& args) {
  PROCTOR_TRY(const std::vector<CassetteCall> calls, load_cassette(args.file));
  if (args.call == 0 || calls.size() < args.call)
    return Error{Errc::kNotFound, "the recording has calls 1 to " + std::to_string(calls.size())};
  const CassetteCall& call = calls[args.call - 1];
  if (!args.raw)
    std::printf("call %llu of %s, %s to %s\n==> asked <==\n",
                static_cast<unsigned long long>(args.call), printable(call.run).c_str(),
                printable(call.route).c_str(), printable(call.model).c_str());
  put(call.request(), args.raw);
  if (!args.raw) std::printf("==> answered, %d <==\n", call.status);
  put(call.answer, args.raw);
  return kOk;
}
}  // namespace

void add_cassette(Command app, int& exit_code) {
  const Command command = app.add_subcommand(
      "cassette", "recordings of calls of models, to run on again",
      "Example:\n  proctor cassette record my-campaign --output calls.jsonl\n"
      "A run of a method with a gateway keeps what was said; docs/cassettes.md has the rest.");
  command.require_subcommand(1);
  auto args = std::make_shared<CassetteArgs>();
  const auto run = [&exit_code, args](Result<int> (*what)(const CassetteArgs&)) {
    return [&exit_code, args, what] { exit_code = code_of(what(*args)); };
  };
  const Command recorded = command.add_subcommand(
      "record", "make one of what runs said",
      "Example:\n  proctor cassette record my-campaign json-lib/my-agent/r1 --output calls.jsonl");
  recorded.add_option("CAMPAIGN", args->folder, "the campaign's folder").required();
  recorded.add_option("RUN", args->runs, "TASK/METHOD/rN, as in the plan (default: every run)");
  recorded.add_option("--output,-o", args->file, "the file to write").required();
  recorded.add_flag("--force", args->force, "write over a file that is there");
  recorded.callback(run(record));
  const Command listed = command.add_subcommand("list", "its calls, one a line",
                                                "Example:\n  proctor cassette list calls.jsonl");
  listed.add_option("FILE", args->file, "the recording").required();
  listed.callback(run(list));
  const Command shown = command.add_subcommand("show", "what was asked and answered in one call",
                                               "Example:\n  proctor cassette show calls.jsonl 3");
  shown.add_option("FILE", args->file, "the recording").required();
  shown.add_option("CALL", args->call, "its number, from 1").required();
  shown.add_flag("--raw", args->raw, "both texts as they are");
  shown.callback(run(show));
}
}  // namespace proctor::cli
