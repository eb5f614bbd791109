// proctor status CAMPAIGN [--watch] [--json]
#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

#include "common/base/limits.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "common/contract/fields.h"
#include "coordinator/aggregate/warnings.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/report_files.h"
#include "coordinator/cli/running_coordinator.h"
#include "coordinator/shell/status.h"

namespace proctor::cli {
namespace {
Result<SeenStatus> read_status(StatusReader& reader, const fs::path& folder) {
  PROCTOR_TRY(std::optional<SeenStatus> seen, reader.look());
  if (seen) return std::move(*seen);
  return Error{Errc::kNotFound, folder.string() + " has not been run yet: proctor run " +
                                    folder.string() + " begins"};
}

Result<CampaignReport> rows_of(StatusReader& reader, const SeenStatus& seen) {
  const Result<FrozenCampaign>& frozen = reader.campaign();
  if (!frozen.ok()) return frozen.error();
  // Of the moment that the rest is of, and read once.
  return seen.held ? read_report(*frozen, seen.held->journal, seen.held->view)
                   : read_report(*frozen);
}

// A coordinator writes once a second: one that has not for a while does nothing else either.
void tell_if_silent(const SeenStatus& seen) {
  constexpr std::int64_t kSilentMs = 10'000;
  if (seen.held || seen.stands != SeenStatus::Stands::kRuns) return;
  const std::int64_t silent = wall_now().raw() - seen.status.at.raw();
  if (silent < kSilentMs) return;
  std::fprintf(stderr,
               "proctor: its coordinator (process %lld) has said nothing since %s, for %s: it "
               "hangs, is stopped, or its disk does not answer; this is what it said then\n",
               static_cast<long long>(seen.status.pid), to_rfc3339(seen.status.at).c_str(),
               format_duration(std::chrono::seconds(silent / 1'000)).c_str());
}

// By method and stratum, from the journal.  Files that were changed meanwhile, or a journal that
// cannot be read just now, cost these rows and not the rest.
std::string with_rows(const StatusSnapshot& status, const Result<CampaignReport>& report,
                      bool json) {
  if (!json)
    return describe(status) + "\n" +
           (report.ok() ? render_progress_text(*report)
                        : "by method and stratum: " + report.error().detail + "\n");
  std::string text = status_text(status);
  text.erase(text.rfind('}'));
  const std::string rows = report.ok() ? render_progress_json(*report) : "null";
  while (text.back() == '\n') text.pop_back();
  return text + ",\n \"groups\": " + rows + "\n}\n";
}

// Advice that can be typed as it stands.
void name_folder(StatusSnapshot& s, const std::string& folder) {
  const auto tell = [&](std::string& text) { text = told_with_folder(std::move(text), folder); };
  tell(s.state);
  tell(s.eta_waits);
  if (s.gate) tell(s.gate->text);
  for (auto& broken : s.broken) tell(broken.text);
  for (auto& alert : s.alerts) tell(alert.text);
  for (auto& worker : s.workers) tell(worker.state);
}

struct ShowArgs {
  std::string folder;
  bool watch = false, json = false;
};

Status show(const ShowArgs& args) {
  const auto& [folder, watch, json] = args;
  StatusReader reader(folder);
  for (;;) {
    PROCTOR_TRY(SeenStatus seen, read_status(reader, folder));
    name_folder(seen.status, folder);
    const std::string text = with_rows(seen.status, rows_of(reader, seen), json);
    if (watch && !json) std::fputs("\x1b[H\x1b[2J", stdout);
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
    tell_if_silent(seen);
    if (!seen.doubt.empty())
      std::fprintf(stderr,
                   "proctor: this is what its last coordinator said, and what was done since is "
                   "not in it, for its journal cannot be read: %s\n",
                   printable(seen.doubt, 4 * limits::kDetailBytes).c_str());
    using Stands = SeenStatus::Stands;
    if (!watch || seen.stands == Stands::kComplete || seen.stands == Stands::kStopped)
      return ok_status();
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}
}  // namespace

void add_status(Command app, int& exit_code) {
  const Command command =
      app.add_subcommand("status", "progress by method and stratum, budget and workers",
                         "Example:\n  proctor status --watch my-campaign");
  const auto args = arguments<ShowArgs>(command, exit_code, show);
  command.add_option("CAMPAIGN", args->folder, "the campaign's folder").required();
  command.add_flag("--watch", args->watch, "again every second, until it ends");
  command.add_flag("--json", args->json, "for scripts");
}

// proctor wait CAMPAIGN: until it has ended, or come to something on the way.  For scripts: nothing
// is asked of the coordinator, its status file is read as it comes, and the journal when none runs.

namespace {
using Clock = std::chrono::steady_clock;

constexpr int kTimedOut = 124;  // as timeout(1) says it

struct Until {
  enum class What : std::uint8_t { kEnd, kParked, kRuns } what = What::kEnd;
  std::uint64_t runs = 0;
};

Result<Until> until_of(const std::string& text) {
  if (text == "end") return Until{};
  if (text == "parked") return Until{Until::What::kParked, 0};
  constexpr std::string_view kRuns = "runs:";
  if (text.starts_with(kRuns)) {
    const Result<std::uint64_t> runs = parse_count(std::string_view(text).substr(kRuns.size()));
    if (runs.ok() && 0 < *runs) return Until{Until::What::kRuns, *runs};
  }
  return Error{Errc::kInvalid,
               "--until: found " + printable(text) + ", expected end, parked, or runs:COUNT"};
}

struct Answer {
  int code = kOk;
  std::string words;
};

std::string counts_of(const StatusSnapshot& s) {
  const std::uint64_t waiting = s.parked + s.held;
  const std::string out =
      std::to_string(s.done()) + " of " + counted(s.planned, "run") + " ended, ";
  if (!s.is_at_gate()) return out + std::to_string(waiting) + " wait";
  return out + (waiting == 0 ? std::string() : std::to_string(waiting) + " wait, ") +
         std::to_string(s.gate->behind) + (s.gate->behind == 1 ? " is" : " are") +
         " behind the gate";
}

// Nothing goes on until somebody decides, whoever coordinates.
Answer waits_for_person(const StatusSnapshot& s, const std::string& folder) {
  return {kWaitsForPerson, "runs have no attempt left and wait for a person: proctor approve " +
                               folder + " RUN --reason WHY tries one again, proctor cancel " +
                               folder + " RUN --reason WHY ends it; proctor status " + folder +
                               " names them; " + counts_of(s)};
}

Answer waits_at_gate(const StatusSnapshot& s, const std::string& folder) {
  return {kWaitsForPerson, "stage " + s.gate->stage + " " + told_with_folder(s.gate->text, folder) +
                               "; proctor pilot status " + folder + " says what that is; " +
                               counts_of(s)};
}

// How a campaign that nobody works on any more has ended.
Answer end_of(const SeenStatus& seen, const std::string& folder) {
  const StatusSnapshot& s = seen.status;
  if (seen.stands == SeenStatus::Stands::kGone)
    return {kInfrastructure, "interrupted: its coordinator is gone. proctor resume " + folder +
                                 " goes on; " + counts_of(s)};
  if (seen.stands == SeenStatus::Stands::kStopped && s.is_at_gate())
    return waits_at_gate(s, folder);
  if (seen.stands == SeenStatus::Stands::kStopped)
    return {kJobFailed, "stopped: proctor resume " + folder + " goes on; " + counts_of(s)};
  if (0 < s.held) return waits_for_person(s, folder);
  if (s.parked == 0) return {kOk, "complete: " + counts_of(s)};
  if (s.parked == s.faulty)
    return {kWaitsForPerson,
            "complete but for runs that wait for a person, for their task or method "
            "is broken. proctor status " +
                folder + " says which; " + counts_of(s)};
  return {kBudgetExhausted, "complete but for runs that wait for money. proctor budget " + folder +
                                " says where; " + counts_of(s)};
}

// Nothing: go on waiting.
std::optional<Answer> answer(const SeenStatus& seen, const Until& until,
                             const std::string& folder) {
  const StatusSnapshot& s = seen.status;
  const bool came =
      (until.what == Until::What::kParked && (0 < s.parked + s.held || s.is_at_gate())) ||
      (until.what == Until::What::kRuns && until.runs <= s.done());
  if (came) return Answer{kOk, counts_of(s)};
  if (seen.stands == SeenStatus::Stands::kRuns) {
    if (0 < s.held && s.queued + s.active == 0) return waits_for_person(s, folder);
    if (s.is_at_gate()) return waits_at_gate(s, folder);
    return std::nullopt;
  }
  Answer end = end_of(seen, folder);
  // Good news of a campaign whose journal nobody can read is no news.
  if (end.code == kOk && !seen.doubt.empty())
    return Answer{kInfrastructure, "its last coordinator said: " + seen.status.state + "; " +
                                       counts_of(s) +
                                       ". Whether that still is so nobody can tell: " + seen.doubt};
  // It ended, and what was waited for never came.
  if (until.what != Until::What::kEnd && end.code == kOk) end.code = kJobFailed;
  return end;
}

// Ended as `run` ends: what it came to may be worth nothing.
Result<Answer> judged(Answer end, const std::string& folder) {
  PROCTOR_TRY(const FrozenCampaign frozen, load_registered(folder));
  PROCTOR_TRY(const ReportInput input, read_runs(frozen));
  const std::string why = why_worthless(input.runs);
  return why.empty() ? std::move(end) : Answer{kJobFailed, end.words + "; " + why};
}

struct WaitArgs {
  std::string folder, until = "end", timeout, grace = "3s";
  bool quiet = false;
};

// A campaign that nobody works on may be one that somebody is about to go on with: a resume that
// was typed in the same line, a service that starts again.
class Grace {
 public:
  Grace(const StateFolder& folder, std::chrono::milliseconds grace)
      : folder_(folder), grace_(grace) {}

  bool lasts(const SeenStatus& seen) {
    using Stands = SeenStatus::Stands;
    if ((seen.stands != Stands::kStopped && seen.stands != Stands::kGone) || is_starting(folder_)) {
      since_.reset();
      return seen.stands != Stands::kRuns && seen.stands != Stands::kComplete;
    }
    if (!since_) since_ = Clock::now();
    return Clock::now() < *since_ + grace_;
  }

 private:
  StateFolder folder_;
  std::chrono::milliseconds grace_;
  std::optional<Clock::time_point> since_;  // nobody has worked on it since then
};

Result<std::chrono::milliseconds> duration_of(const char* option, const std::string& text) {
  const Result<std::chrono::milliseconds> out = parse_duration(text);
  if (!out.ok()) return Error{Errc::kInvalid, option + (": " + out.error().detail)};
  return *out;
}

Result<int> wait_for(const WaitArgs& args) {
  PROCTOR_TRY(const Until until, until_of(args.until));
  std::optional<Clock::time_point> deadline;
  if (!args.timeout.empty()) {
    PROCTOR_TRY(const std::chrono::milliseconds limit, duration_of("--timeout", args.timeout));
    deadline = Clock::now() + limit;
  }
  PROCTOR_TRY(const std::chrono::milliseconds grace_time, duration_of("--grace", args.grace));
  Grace grace(StateFolder{args.folder}, grace_time);
  bool told = false;
  StatusReader reader(args.folder);
  for (;;) {
    PROCTOR_TRY(const std::optional<SeenStatus> seen, reader.look());
    if (seen) {
      const bool may_go_on = grace.lasts(*seen);
      std::optional<Answer> found = answer(*seen, until, args.folder);
      if (found && found->code == kOk && until.what == Until::What::kEnd) {
        PROCTOR_TRY(found, judged(*std::move(found), args.folder));
      }
      if (found && (found->code == kOk || !may_go_on)) {
        if (!args.quiet) std::fprintf(stderr, "%s\n", printable(found->words, 1000).c_str());
        return found->code;
      }
    } else if (!args.quiet && !std::exchange(told, true)) {
      std::fprintf(stderr, "%s has not been run yet: waiting for its beginning\n",
                   printable(args.folder, 1000).c_str());
    }
    if (deadline && *deadline <= Clock::now()) {
      if (!args.quiet) std::fprintf(stderr, "not yet, after %s\n", printable(args.timeout).c_str());
      return kTimedOut;
    }
    // The coordinator writes once a second.
    constexpr std::chrono::milliseconds kEvery{250};
    std::this_thread::sleep_for(kEvery);
  }
}
}  // namespace

void add_wait(Command app, int& exit_code) {
  const Command command = app.add_subcommand(
      "wait", "until a campaign has ended, or come to something: for scripts",
      "Exit codes: 0 it came to that; of a campaign that ended: 0 complete, 1 stopped, or what "
      "was\n"
      "waited for never came, or noop passed or reference failed or no run came to a verdict, 3 "
      "runs wait for money, 4 its coordinator is gone or its journal "
      "cannot\n"
      "be read, 5 runs or a stage wait for a person; 2 wrong input, 124 the time is over.\n"
      "Example:\n  proctor wait my-campaign && proctor report my-campaign\n"
      "  proctor wait my-campaign --until parked --timeout 8h");
  const auto args = arguments<WaitArgs>(command, exit_code, wait_for);
  command.add_option("CAMPAIGN", args->folder, "the campaign's folder").required();
  command
      .add_option("--until", args->until,
                  "end; parked: a run waits for money or a person; runs:COUNT: so many have ended")
      .capture_default_str();
  command.add_option("--timeout", args->timeout, "wait no longer than that, like 8h or 30m")
      .type_name("DURATION");
  command
      .add_option("--grace", args->grace,
                  "how long a stopped campaign, or one whose coordinator is gone, may stand before "
                  "that is told: somebody may be about to go on with it")
      .type_name("DURATION")
      .capture_default_str();
  command.add_flag("--quiet", args->quiet, "say nothing on standard error");
}
}  // namespace proctor::cli
