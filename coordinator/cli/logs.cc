// proctor logs CAMPAIGN RUN and proctor diff CAMPAIGN RUN: what a run's programs said, and what its
// agent changed; from its evidence, or from the local worker that makes it now.
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <map>
#include <thread>

#include "common/base/file_lock.h"
#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/base/text.h"
#include "common/trace/evidence.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/open_journal.h"
#include "coordinator/cli/report_files.h"
#include "coordinator/cli/trial_campaign.h"
#include "coordinator/journal/journal_reader.h"

namespace proctor::cli {
namespace {
constexpr std::size_t kPieceBytes = std::size_t{64} << 10;

struct LogsArgs {
  std::string folder, run, phase;
  std::uint32_t attempt = 0;  // 0: the latest that left something
  bool follow = false, raw = false, tried = false;
};

// The run that is asked for: of the registered campaign, or what `proctor try` made.
struct Subject {
  StateFolder folder;
  std::string campaign;  // its id; of a try empty: no other's runs are in its folder
  std::string name;
  RunId run;
};

Result<Subject> subject_of(const LogsArgs& args) {
  if (args.tried) {
    PROCTOR_TRY(TriedRun tried, find_try(args.folder, args.run));
    return Subject{std::move(tried.folder), "", std::move(tried.name), RunId(0)};
  }
  PROCTOR_TRY(AskedRun asked, find_asked(args.folder, args.run, Whose::kCampaign));
  if (const std::string why = not_judged_again(asked.frozen, asked.run); !why.empty())
    return Error{Errc::kNotFound, asked.frozen.plan.run_name(asked.run) + ": " + why};
  return Subject{asked.frozen.folder, asked.frozen.id, asked.frozen.plan.run_name(asked.run),
                 asked.run};
}

// Where one attempt's files are, and whether more of them may come.
struct Place {
  fs::path dir;
  std::uint32_t attempt = 0;
  bool live = false;
  Digest report{};  // as the journal has it; none of an attempt under way
};

std::string gone_from(const fs::path& dir) {
  return ": its evidence is gone from " + dir.string() + "; proctor verify names each file";
}

// Where a local worker of this campaign makes the attempt.
std::optional<fs::path> at_worker(const Subject& subject, const AttemptId& id) {
  const std::string name = "-" + to_string(id);
  for (const fs::path& worker : paths_in(subject.folder.worker_homes())) {
    if (!subject.campaign.empty()) {
      fs::path dir = worker / "runs" / (subject.campaign + name) / "run";
      if (is_folder(dir)) return dir;
      continue;
    }
    if (!worker.filename().string().starts_with(subject.folder.worker_prefix())) continue;
    for (const fs::path& run : paths_in(worker / "runs"))
      if (run.filename().string().ends_with(name) && is_folder(run / "run")) return run / "run";
  }
  return std::nullopt;
}

Result<Place> place_of(const Subject& subject, std::uint32_t wanted) {
  const std::string& name = subject.name;
  PROCTOR_TRY(JournalReader journal, open_journal(subject.folder));
  PROCTOR_TRY(const std::vector<AttemptRecord> attempts, journal.attempts_of(subject.run));
  if (wanted != 0 && std::ranges::none_of(attempts, [wanted](const AttemptRecord& a) {
        return a.core.attempt.no.raw() == wanted;
      }))
    return Error{Errc::kNotFound, fmt::format("{} has no attempt {}: it has {} so far", name,
                                              wanted, attempts.size())};
  for (auto it = attempts.rbegin(); it != attempts.rend(); ++it) {
    const AttemptId id = it->core.attempt;
    if (wanted != 0 && id.no.raw() != wanted) continue;
    const fs::path kept = subject.folder.attempt(name, id.no);
    if (is_folder(kept)) return Place{kept, id.no.raw(), false, it->report};
    if (auto live = at_worker(subject, id)) return Place{std::move(*live), id.no.raw(), true};
    if (it->report != Digest()) return Error{Errc::kNotFound, name + gone_from(kept)};
  }
  return Error{Errc::kNotFound,
               name +
                   (wanted == 0 ? " has left nothing yet"
                                : fmt::format(": attempt {} has left nothing", wanted)) +
                   " that is on this machine; proctor explain says where it is"};
}

enum Phase { kImage, kSetup, kMethodSetup, kAgent, kAcceptanceSetup, kChecks, kNone };
// The order in which they are written: each run of acceptance, from 1, behind the one before.
using Rank = std::pair<std::uint64_t, Phase>;

Rank rank_of(const fs::path& relative) {
  std::string first = relative.begin()->string();
  if (first == "setup-image") return {0, kImage};
  if (first == "setup-agent") return {0, kSetup};
  if (first == "setup-method") return {0, kMethodSetup};
  if (first == "agent") return {0, kAgent};
  const std::size_t dash = first.rfind('-');
  const auto nth = whole_number<std::uint64_t>(std::string_view(first).substr(dash + 1));
  if (nth) first.resize(std::min(dash, first.size()));
  const std::uint64_t run = nth.value_or(kExactIntegerMax);  // the last has the plain name
  if (first == kAcceptanceSetupDir) return {run, kAcceptanceSetup};
  return {run, first == kAcceptanceDir ? kChecks : kNone};
}

bool is_kept(const fs::path& relative) {
  return relative.generic_string().starts_with(std::string(kKeptDir) + "/");
}

bool is_of(const fs::path& relative, const std::string& phase) {
  const Phase rank = rank_of(relative).second;
  if (phase == "setup")
    return rank == kImage || rank == kSetup || rank == kMethodSetup || rank == kAcceptanceSetup;
  if (phase == "agent") return rank == kAgent;
  if (phase == "checks") return rank == kChecks;
  return rank != kNone;
}

// What programs wrote to their streams; no link is followed.
Result<std::vector<fs::path>> streams_in(const fs::path& dir, const std::string& phase) {
  std::vector<fs::path> out;
  std::error_code ec;
  for (fs::recursive_directory_iterator it(dir, ec), end; !ec && it != end; it.increment(ec)) {
    std::error_code unused;
    if (!it->is_regular_file(unused) || it->is_symlink(unused)) continue;
    const std::string name = it->path().filename().string();
    if (!name.ends_with("stdout") && !name.ends_with("stderr")) continue;
    const fs::path relative = it->path().lexically_relative(dir);
    if (is_of(relative, phase) && !is_kept(relative)) out.push_back(relative);
  }
  if (ec && ec != std::errc::no_such_file_or_directory)
    return errno_error("read " + dir.string(), ec.value());
  std::ranges::sort(out, {}, [](const fs::path& p) { return std::pair(rank_of(p), p.string()); });
  return out;
}

// Files of the agent that its method keeps: named, since nobody knows what is in them.
void tell_kept(const Place& place) {
  const Result<std::vector<TreeEntry>> all = list_tree(place.dir);
  if (!all.ok()) return;
  for (const TreeEntry& e : *all)
    if (!e.folder && is_kept(e.path))
      std::fprintf(stderr, "kept: %s (%llu bytes)\n",
                   printable((place.dir / e.path).string(), limits::kDetailBytes).c_str(),
                   static_cast<unsigned long long>(e.bytes));
}

// A stream that is cut says so at its end; one of an older worker has as many bytes as are kept.
void tell_cut(const Place& place, const std::string& name) {
  std::error_code ec;
  const fs::path file = place.dir / name;
  const std::uintmax_t size = fs::file_size(file, ec);
  if (ec || size < kCutLineBytes) return;
  std::ifstream in(file, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(size - kCutLineBytes));
  std::string tail(kCutLineBytes, '\0');
  in.read(tail.data(), static_cast<std::streamsize>(tail.size()));
  tail.resize(static_cast<std::size_t>(in.gcount()));
  if (const auto line = cut_line_of(tail))
    std::fprintf(stderr, "%s: %s\n", printable(name).c_str(), printable(*line).c_str());
  else if (size == limits::kCheckOutputBytes)
    std::fprintf(stderr, "%s: it has %llu bytes, and no more is kept of a stream: it may be cut\n",
                 printable(name).c_str(), static_cast<unsigned long long>(size));
}

bool spelled_out = false;  // something was not printed as it is

// Nothing goes out that a terminal would obey, for many a pipe ends at one, unless somebody asked
// for the bytes as they are.
void put(std::string_view bytes, bool raw) {
  const std::string shown = raw ? std::string(bytes) : printable_lines(bytes, "\n\t");
  spelled_out = spelled_out || shown != bytes;
  std::fwrite(shown.data(), 1, shown.size(), stdout);
}

// A program that reads on wonders; a person sees it.
void tell_spelled_out() {
  if (spelled_out && ::isatty(STDOUT_FILENO) != 1)
    std::fputs("what a terminal would obey is spelled out; --raw gives the bytes as they are\n",
               stderr);
}

// How many bytes at the end are of a character that goes on behind it.
std::size_t cut_character(std::string_view piece) {
  for (std::size_t n = 1; n <= 3 && n <= piece.size(); ++n) {
    const auto byte = static_cast<unsigned char>(piece[piece.size() - n]);
    if ((byte & 0xC0U) == 0x80U) continue;
    const std::size_t length = byte < 0xC0U ? 1 : byte < 0xE0U ? 2 : byte < 0xF0U ? 3 : 4;
    return n < length ? n : 0;
  }
  return 0;
}

// Everything behind `from`; where it now ends.
Result<std::uint64_t> put_file(const fs::path& file, std::uint64_t from, const std::string& head,
                               bool raw) {
  PROCTOR_CHECK_OK(check_own_file(file));  // a pipe would be waited for
  std::ifstream in(file, std::ios::binary);
  if (!in && errno == ENOENT) return from;  // it has just moved
  if (!in) return errno_error("read " + file.string(), errno);
  in.seekg(static_cast<std::streamoff>(from));
  std::string piece(kPieceBytes, '\0');
  bool told = head.empty();
  while (in) {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    auto n = static_cast<std::size_t>(in.gcount());
    if (n == 0) break;
    if (n == piece.size()) {
      n -= cut_character(piece);
      in.seekg(static_cast<std::streamoff>(from + n));
    }
    if (!told) put(head, raw);
    told = true;
    put(std::string_view(piece).substr(0, n), raw);
    from += n;
  }
  return from;
}

// One look: what has come since the last one.  An error: of the first stream that cannot be read.
Status put_new(const Place& place, const LogsArgs& args, std::map<std::string, std::uint64_t>& seen,
               std::string& last) {
  PROCTOR_TRY(const std::vector<fs::path> streams, streams_in(place.dir, args.phase));
  std::uint64_t ended = 0;  // runs of acceptance, where a later one has the plain name
  for (const fs::path& relative : streams) {
    const std::string name = relative.string();
    const auto [run, phase] = rank_of(relative);
    if (run < kExactIntegerMax) ended = run;
    // Repeated meanwhile: what was shown by the plain name has this one now.
    if (0 < run && run < kExactIntegerMax && !seen.contains(name)) {
      const fs::path folder = phase == kChecks ? kAcceptanceDir : kAcceptanceSetupDir;
      const std::string plain = folder / relative.lexically_relative(*relative.begin());
      seen[name] = std::exchange(seen[plain], 0);
      if (last == plain) last = name;
    }
    std::uint64_t& from = seen[name];
    // Judged again, its folder was made anew.
    if (std::error_code gone; fs::file_size(place.dir / relative, gone) < from) from = 0;
    const bool nth = args.follow && run == kExactIntegerMax && 0 < ended;
    const std::string which = nth ? fmt::format(" (run {})", ended + 1) : "";
    const std::string head = last == name ? "" : "==> " + printable(name) + which + " <==\n";
    PROCTOR_TRY(const std::uint64_t end, put_file(place.dir / relative, from, head, args.raw));
    if (from < end) last = name;
    from = end;
  }
  std::fflush(stdout);
  return ok_status();
}

Result<int> show_logs(const LogsArgs& args) {
  PROCTOR_TRY(const Subject subject, subject_of(args));
  PROCTOR_TRY(Place place, place_of(subject, args.attempt));
  std::map<std::string, std::uint64_t> seen;
  std::string last;
  PROCTOR_CHECK_OK(put_new(place, args, seen, last));
  // Its files move from the worker to the evidence, where they have the same names.
  constexpr std::chrono::milliseconds kEvery{300};
  while (args.follow && place.live) {
    std::this_thread::sleep_for(kEvery);
    Result<Place> now = place_of(subject, place.attempt);
    if (now.ok()) {
      place = std::move(now).value();
      PROCTOR_CHECK_OK(put_new(place, args, seen, last));
    } else if (now.error().code != Errc::kNotFound) {
      return std::move(now).error();
    }
  }
  if (args.phase.empty() || args.phase == "agent") tell_kept(place);
  for (const auto& [name, end] : seen) tell_cut(place, name);
  tell_spelled_out();
  if (seen.empty())
    std::fprintf(stderr, "attempt %u of %s has no output%s\n", place.attempt, args.run.c_str(),
                 args.phase.empty() ? "" : (" of phase " + args.phase).c_str());
  return kOk;
}

Result<int> show_diff(const LogsArgs& args) {
  PROCTOR_TRY(const Subject subject, subject_of(args));
  PROCTOR_TRY(const Place place, place_of(subject, args.attempt));
  const fs::path patch = place.dir / kPatchFile;
  const std::string attempt = fmt::format("attempt {} of {}", place.attempt, args.run);
  if (!is_there(patch)) {
    const Result<RunReport> report =
        bound_report(subject.folder, subject.name, AttemptNo(place.attempt), place.report);
    if (place.report != Digest() && (!report.ok() || report->patch != Digest()))
      return Error{Errc::kNotFound, attempt + gone_from(place.dir)};
    return Error{Errc::kNotFound, attempt + " has no patch: it " +
                                      (place.live ? "is still at work" : "never came so far")};
  }
  PROCTOR_TRY(const std::uint64_t bytes, put_file(patch, 0, "", args.raw));
  if (const auto read = patch_of(place.dir); bytes == 0 && !read.ok())
    return in_context(attempt, read.error());
  PROCTOR_TRY(const std::vector<std::string> refused, refused_paths(place.dir));
  for (const std::string& path : refused)
    std::fprintf(stderr, "%s left %s, which no patch holds as it is\n", attempt.c_str(),
                 printable(path).c_str());
  if (bytes == 0 && refused.empty()) std::fprintf(stderr, "%s changed nothing\n", attempt.c_str());
  tell_spelled_out();
  return kOk;
}

template <class Act>
std::shared_ptr<LogsArgs> of_run(Command command, int& exit_code, Act act) {
  auto args = arguments<LogsArgs>(command, exit_code, act);
  command.add_option("CAMPAIGN", args->folder, "the campaign's folder").required();
  command.add_option("RUN", args->run, "TASK/METHOD/rN, as in the plan; TASK/METHOD of a try")
      .required();
  command.add_flag("--try", args->tried, "of what the last proctor try of it made");
  command.add_option("--attempt", args->attempt, "which try, from 1 (default: the latest)")
      .positive();
  command.add_flag("--raw", args->raw,
                   "the bytes as they are (default: what a terminal would obey is spelled out)");
  return args;
}
}  // namespace

void add_logs(Command app, int& exit_code) {
  const Command logs = app.add_subcommand(
      "logs", "what a run's setup, agent and checks wrote",
      "Example:\n  proctor logs my-campaign json-lib/my-agent/r1 --phase agent --follow\n"
      "  proctor logs my-campaign json-lib/my-agent --try\n"
      "A run under way is read at the local worker that makes it. What other machines run can be\n"
      "read when it has ended. 8 MiB of each stream are kept; one that is cut says so at its end.\n"
      "Acceptance that was repeated shows each of its runs: acceptance-1/, ..., acceptance/.");
  const auto args = of_run(logs, exit_code, show_logs);
  logs.add_option("--phase", args->phase, "only this: setup, agent or checks")
      .one_of({"setup", "agent", "checks"});
  logs.add_flag("--follow", args->follow, "go on until the attempt has ended");
}

void add_diff(Command app, int& exit_code) {
  const Command diff = app.add_subcommand(
      "diff", "what a run's agent changed, as a patch",
      "Example:\n  proctor diff my-campaign json-lib/my-agent/r1 --raw | git apply --check\n"
      "  proctor diff my-campaign json-lib/my-agent --try");
  of_run(diff, exit_code, show_diff);
}
}  // namespace proctor::cli
