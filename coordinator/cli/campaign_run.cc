#include "coordinator/cli/campaign_run.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/subprocess.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "common/contract/host_things.h"
#include "common/contract/models_file.h"
#include "common/ledger/ledger_store.h"
#include "common/ledger/private_redis.h"
#include "common/ledger/redis_ledger.h"
#include "common/score/outcome.h"
#include "common/trace/model_calls.h"
#include "common/wire/curve.h"
#include "coordinator/aggregate/report.h"
#include "coordinator/aggregate/warnings.h"
#include "coordinator/cli/campaign_notes.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/evidence_text.h"
#include "coordinator/cli/model_check.h"
#include "coordinator/cli/money_files.h"
#include "coordinator/cli/open_journal.h"
#include "coordinator/cli/report_files.h"
#include "coordinator/cli/running_coordinator.h"
#include "coordinator/cli/shared_envelope.h"
#include "coordinator/journal/host_key.h"
#include "coordinator/journal/journal.h"
#include "coordinator/journal/journal_reader.h"
#include "coordinator/shell/local_workers.h"
#include "coordinator/shell/loop_guards.h"

namespace proctor::cli {
namespace {
constexpr std::size_t kLineBytes = 600;  // a few lines of a screen

void say(const std::string& line) {
  std::fprintf(stderr, "%s\n", printable(line, kLineBytes).c_str());
}

// Unlike fmt::print() it throws nothing where standard error is closed.
void put(const std::string& text) {
  std::fputs(text.c_str(), stderr);
}

// Of an acceptance error its check says it, in the evidence.
std::string cause_of(const FrozenCampaign& frozen, const CampaignReport& report,
                     const EndCause& cause) {
  if (!cause.why.empty()) return cause.why;
  const auto run = std::ranges::find(report.runs, cause.first, &RunRecord::name);
  return run == report.runs.end()
             ? ""
             : unfinished_check(frozen.folder.attempt(run->name, AttemptNo(run->attempts)));
}

// A few sentences of one kind.
void tell(const std::vector<std::string>& sentences, const char* kind, const char* begin = "") {
  constexpr std::size_t kShown = 3;
  for (std::size_t i = 0; i < std::min(kShown, sentences.size()); ++i)
    say("  * " + std::string(begin) + sentences[i]);
  if (kShown < sentences.size())
    say("    and " + std::to_string(sentences.size() - kShown) + " more " + kind +
        ", in the report");
}
}  // namespace

// The last screen of `run` and `resume`: tasks by methods, what was asked, what to distrust, and
// what to type.  Everything else is in the report.
void tell_end(const FrozenCampaign& frozen, const CampaignReport& report,
              const std::string& folder) {
  std::fputs(render_end(report).c_str(), stdout);
  std::fflush(stdout);
  const std::vector<std::string> broken = broken_tasks(report.runs);
  const std::vector<std::string> unmet = unsatisfied_methods(report);
  std::vector<std::string> early, causes;
  for (const EarlyEnd& e : early_ends(report.runs)) early.push_back(early_end_text(e, report.runs));
  for (const EndCause& c : end_causes(report))
    causes.push_back(end_cause_text(c, cause_of(frozen, report, c)));
  const std::size_t distrusted = broken.size() + early.size() + report.warnings.size() +
                                 unmet.size() + causes.size() + report.deviations.size();
  if (0 < distrusted) std::fputs("\nTo distrust\n", stderr);
  tell(broken, "broken tasks");
  tell(early, "such agents");
  tell(unmet, "such methods");
  tell(report.warnings, "warnings", "Warning: ");
  if (!causes.empty())
    say("  " + std::to_string(report.total.invalid + report.total.acceptance_error) + " of " +
        counted(report.total.ended(), "run") + " that ended came to no verdict:");
  tell(causes, "causes");
  tell(report.deviations, "deviations from what was registered");
  std::fputs("\n", stderr);
  say("To look closer: proctor report " + folder + "; for a browser: " + folder +
      "/reports/report.html");
  say("Why a run ended so: proctor explain " + folder + " RUN; its output: proctor logs " + folder +
      " RUN");
  // Those are never made again (docs/retries.md).
  const auto unjudged = std::ranges::count_if(report.runs, [](const RunRecord& run) {
    return run.state == RunRecord::State::kEnded && run.not_judged;
  });
  if (0 < unjudged)
    say(
        fmt::format("{} of the runs left a patch that this host kept from being judged: "
                    "in no rate, and no agent is drawn again; all anew: proctor copy {} NEW",
                    unjudged, folder));
  if (std::ranges::any_of(report.runs, &RunRecord::reopens))
    say("When that is mended: proctor requeue " + folder + " all --invalid, then " +
        resume_command(folder, frozen.campaign) + " (or, all anew: proctor copy " + folder +
        " NEW)");
}

// Things of a host that runs need, where only workers of this one can join: they are our children,
// and have our environment and our folders.

namespace {
// What is wrong with it here, behind "NAME needs the ..."; empty: it is here.
std::string lack_of(const HostThing& thing, const ModelsFile& models) {
  switch (thing.kind) {
    case HostThing::Kind::kSecret:
      if (std::getenv(thing.text.c_str()) != nullptr) return "";
      return "secret " + printable(thing.text) + ", which is not set: export it";
    case HostThing::Kind::kToolchain: {
      if (is_there(thing.text)) return "";
      return "toolchain " + printable(thing.text) + ", which is not on this host";
    }
    case HostThing::Kind::kLocale:
      if (has_locale(thing.text)) return "";
      return "locale " + printable(thing.text) +
             ", which is not on this host: locale -a lists those that are, localedef makes others";
    case HostThing::Kind::kTimeZone:
      if (knows_time_zone(thing.text)) return "";
      return "time zone " + printable(thing.text) +
             ", which is not in /usr/share/zoneinfo: correct its name, or install tzdata";
    case HostThing::Kind::kGateway:
      return "";  // check_models() says it
    case HostThing::Kind::kModel:
      break;
  }
  const auto access = models.find(thing.text);
  if (access == models.end()) return "";  // check_models() says it
  const Result<Secret> key = model_key(access->second);
  if (key.ok()) return "";
  const bool of_variable = !access->second.key_variable.empty();
  return "model " + printable(thing.text) + ": " + printable(key.error().detail, 500) +
         (of_variable ? ": export " + access->second.key_variable : "");
}

// Whose it is: the method's own, or the contract's.
std::string owner_of(const HostThing& thing, const Contract& contract, const Method& method) {
  for (const HostThing& own : things_of(method))
    if (own == thing) return "method " + method.name;
  return "contract " + contract.id;
}
}  // namespace

std::vector<std::string> missing_here(const RunOptions& options, const Campaign& campaign,
                                      Missing which) {
  std::vector<std::string> out;
  if (options.workers.value_or(campaign.workers) == 0) return out;  // none works here
  ModelsFile models;
  if (!options.models.empty())
    if (Result<ModelsFile> read = load_models(options.models); read.ok())
      models = std::move(read).value();
  std::set<std::string> told;
  for (const Contract& contract : campaign.contracts)
    for (const Method& method : campaign.methods)
      for (const HostThing& thing : things_of(contract, method)) {
        const bool is_set =
            thing.kind == HostThing::Kind::kSecret || thing.kind == HostThing::Kind::kModel;
        if (is_set ? which == Missing::kInstalled : which == Missing::kSet) continue;
        const std::string lack = lack_of(thing, models);
        if (lack.empty()) continue;
        std::string line = owner_of(thing, contract, method) + " needs the " + lack;
        if (told.insert(line).second) out.push_back(std::move(line));
      }
  return out;
}

Status check_host_things(const RunOptions& options, const Campaign& campaign) {
  if (!options.listen.empty()) return ok_status();  // others may join that have it
  const std::vector<std::string> missing = missing_here(options, campaign);
  if (missing.empty()) return ok_status();
  return Error{Errc::kInvalid, fmt::format("{}\nLocal workers have what this process has; others "
                                           "join with --listen.",
                                           fmt::join(missing, "\n"))};
}

std::vector<std::string> missing_programs(const RunOptions& options, const Campaign& campaign) {
  std::vector<std::string> out;
  const auto need = [&](const char* program, const std::string& what_for, const char* package,
                        const std::string& or_else) {
    if (find_on_path(program).empty())
      out.push_back(std::string(program) + " is not on this host's PATH: " + what_for +
                    ". Install it: apt-get install " + package + or_else);
  };
  need("git", "repositories are read, and patches applied, by it", "git", "");
  if (campaign.ledger == Campaign::LedgerKind::kRedis && campaign.redis.empty())
    need("redis-server", "a private one keeps the campaign's envelopes", "redis-server",
         ", or do without: budget: {ledger: journal} in campaign.yaml");
  const bool local_only = options.workers.value_or(campaign.workers) != 0 && options.listen.empty();
  const auto needs_bubblewrap = [](const Contract& c) {
    return wanted_sandbox(c.environment) == Environment::Sandbox::kBubblewrap;
  };
  if (local_only && std::ranges::any_of(campaign.contracts, needs_bubblewrap))
    need("bwrap", "contracts without an image run in its sandboxes", "bubblewrap", "");
  return out;
}

bool one_user_here() {
  return (::geteuid() != 0 || std::getenv("PROCTOR_ONE_USER") != nullptr) &&
         std::getenv("PROCTOR_SHARE_USER") == nullptr && !find_on_path("bwrap").empty();
}

Result<LocalWork> local_work(const RunOptions& options, const Campaign& campaign) {
  LocalWork work{options.workers.value_or(campaign.workers),
                 options.slots.value_or(campaign.slots)};
  if (work.workers * work.slots <= 1 || !one_user_here()) return work;
  work = {options.workers.value_or(1), options.slots.value_or(1)};
  work.note = fmt::format(
      "--workers {} --slots {}: all sandboxes are one kernel user here, so a run can take what the "
      "checks of its neighbours need; where no agent is hostile, PROCTOR_SHARE_USER=1 allows more",
      work.workers, work.slots);
  if (1 < work.workers * work.slots) return Error{Errc::kInvalid, work.note};
  return work;
}

Status check_programs(const RunOptions& options, const Campaign& campaign) {
  const std::vector<std::string> missing = missing_programs(options, campaign);
  if (missing.empty()) return ok_status();
  return Error{Errc::kUnavailable,
               fmt::format("{}\n(With Proctor's sources: scripts/setup installs "
                           "all that it needs.)",
                           fmt::join(missing, "\n"))};
}

namespace {
// One line that moves on a terminal; elsewhere a line after ten seconds, twenty, forty, and so on
// to one in ten minutes.
class ProgressDisplay {
 public:
  void show(const StatusSnapshot& status) {
    if (terminal_) {
      winsize size{};
      (void)::ioctl(STDERR_FILENO, TIOCGWINSZ, &size);
      std::fprintf(stderr, "\r\x1b[K%s", progress_line(status, size.ws_col).c_str());
      std::fflush(stderr);
      return;
    }
    constexpr std::int64_t kMostMs = 600'000;
    const bool over = status.state == "complete" || status.state == "stopped";
    if (!over && status.at.raw() < last_ms_ + wait_ms_) return;
    wait_ms_ = last_ms_ == 0 ? 10'000 : std::min(2 * wait_ms_, kMostMs);
    last_ms_ = status.at.raw();
    std::fprintf(stderr, "%s\n", progress_line(status, 0).c_str());
  }
  void end() const {
    if (terminal_) std::fputs("\n", stderr);
  }

 private:
  bool terminal_ = ::isatty(STDERR_FILENO) == 1;
  std::int64_t last_ms_ = 0, wait_ms_ = 0;
};

constexpr std::string_view kIpc = "ipc://";

// Everybody makes folders in /tmp, and whoever owns one decides what lies there.
Status check_ours(const fs::path& dir) {
  struct stat st {};
  if (::lstat(dir.c_str(), &st) != 0) return errno_error(dir.string(), errno);
  if (S_ISDIR(st.st_mode) && st.st_uid == ::geteuid() && (st.st_mode & 077U) == 0)
    return ok_status();
  return Error{Errc::kInvalid, dir.string() +
                                   ": expected a folder of ours alone, for the workers' socket; "
                                   "found one that others own or may enter: remove it"};
}

// A unix socket's address has 107 bytes: a deep folder gets its socket under /tmp, at a place that
// a resume finds again.
Result<std::string> local_endpoint(const StateFolder& folder) {
  constexpr std::size_t kLongest = 100;
  fs::path path = folder.state() / "coordinator.sock";
  if (kLongest < path.string().size()) {
    const fs::path dir = fs::path("/tmp") / ("proctor-" + std::to_string(::getuid()) + "-" +
                                             sha256(folder.campaign.string()).short_hex());
    PROCTOR_CHECK_OK(make_private_dirs(dir));
    PROCTOR_CHECK_OK(check_ours(dir));
    path = dir / "s";
  }
  PROCTOR_CHECK_OK(make_private_dirs(path.parent_path()));
  return std::string(kIpc) + path.string();
}

// Where the money is kept; starts the campaign's own Redis where one is needed and none is named.
Result<std::shared_ptr<LedgerStore>> ledger_store(const FrozenCampaign& frozen,
                                                  std::optional<PrivateRedis>& redis) {
  if (frozen.campaign.ledger == Campaign::LedgerKind::kJournal)
    return std::shared_ptr<LedgerStore>(std::make_shared<JournalLedger>());
  std::string at = frozen.campaign.redis;
  if (at.empty()) {
    PROCTOR_TRY(PrivateRedis started, PrivateRedis::start(frozen.folder.state()));
    redis.emplace(std::move(started));
    at = redis->address();
  }
  PROCTOR_TRY(RedisLedger ledger, configured_ledger(frozen.campaign, frozen.id, at));
  return std::shared_ptr<LedgerStore>(std::make_shared<RedisLedger>(std::move(ledger)));
}

struct Earlier {
  bool attempted = false;  // a run was: a start that failed has not begun anything
  std::uint64_t ended = 0, parked = 0, open = 0;
};
Result<Earlier> look_at_journal(const StateFolder& folder) {
  PROCTOR_TRY(std::optional<JournalReader> reader, begun_journal(folder));
  Earlier e;
  if (!reader) return e;
  PROCTOR_TRY(const RestoredState state, reader->load());
  e.attempted = !state.attempts.empty() || !state.ended.empty() || !state.parked.empty();
  e.ended = state.ended.size();
  e.parked = state.parked.size();
  for (const RestoredAttempt& a : state.attempts)
    e.open += a.state == AttemptState::kGranted || a.state == AttemptState::kReserving;
  return e;
}

Status check_beginning(const RunOptions& options, const FrozenCampaign& frozen) {
  if (const auto owner = journal_owner(frozen.folder.journal(), kJournalPatience))
    return Error{Errc::kConflict,
                 "this campaign is running: " + owner->text +
                     ".\n  To watch it: proctor status --watch " + options.folder +
                     "\n  To stop it:  interrupt that process (once: what runs is finished)"};
  if (options.begin == RunOptions::Begin::kGoOn) {  // its runs are read once, by the coordinator
    PROCTOR_TRY(std::optional<JournalReader> reader, begun_journal(frozen.folder));
    if (!reader) return not_begun(options.folder);
    PROCTOR_TRY(const std::vector<EpochBegun> lives, reader->epochs());
    if (!lives.empty()) return ok_status();
    PROCTOR_CHECK_OK(load_whole(frozen, *reader));
    return not_begun(options.folder);
  }
  if (options.begin == RunOptions::Begin::kEither) {  // but not beside results without a journal
    PROCTOR_CHECK_OK(begun_journal(frozen.folder));
    return ok_status();
  }
  PROCTOR_TRY(const Earlier earlier, look_at_journal(frozen.folder));
  if (!earlier.attempted) return ok_status();
  return Error{Errc::kConflict, "this campaign has begun: " + std::to_string(earlier.ended) +
                                    " of " + std::to_string(frozen.plan.size()) +
                                    " runs have ended, " + std::to_string(earlier.parked) +
                                    " wait for money, " + std::to_string(earlier.open) +
                                    " were under way.\n  To go on:      proctor resume " +
                                    options.folder + "\n  To look at it: proctor report " +
                                    options.folder};
}

// A registration says what is done once.  Where the journal of that was taken away, a person says
// that it is to be done again, and the new journal says so for ever.
Status check_first_time(const RunOptions& options, const FrozenCampaign& frozen) {
  if (options.begin != RunOptions::Begin::kFresh || options.again) return ok_status();
  PROCTOR_TRY(const std::optional<JournalReader> journal, begun_journal(frozen.folder));
  if (journal || !has_begun_here(frozen.id)) return ok_status();
  return Error{Errc::kConflict,
               "this registration (" + frozen.id +
                   ") was run on this host before, and what came of it is not here any more.\n"
                   "  To go on with that: put its .proctor and runs back, then proctor resume " +
                   options.folder + "\n  To register anew:   " + copy_command(options.folder) +
                   "\n  To run it again:    proctor run --again " + options.folder +
                   " (a deviation that every report will tell)"};
}

// Nothing: none are needed.  Asked before a campaign is registered, so that a start which cannot
// listen leaves nothing behind.
Result<std::optional<wire::KeyPair>> tcp_keys(const RunOptions& options,
                                              const StateFolder& folder) {
  if (options.listen.empty()) return std::optional<wire::KeyPair>();
  PROCTOR_CHECK_OK(wire::check_listen_endpoint(options.listen, !options.insecure_loopback,
                                               options.insecure_loopback));
  if (options.insecure_loopback) return std::optional<wire::KeyPair>();
  Result<wire::KeyPair> pair = wire::load_key(folder.keys() / "coordinator.key");
  if (!pair.ok())
    return Error{pair.error().code,
                 pair.error().detail + "\nTCP needs keys: proctor keygen " + options.folder +
                     " --worker NAME (or --insecure-loopback on this machine only)"};
  PROCTOR_CHECK_OK(AllowFiles(folder).read());
  return std::optional(std::move(pair).value());
}

Result<CoordinatorOptions> coordinator_options(const RunOptions& options,
                                               const FrozenCampaign& frozen,
                                               const std::string& local) {
  using Security = CoordinatorOptions::Listen::Security;
  CoordinatorOptions out;
  out.folder = frozen.folder;
  out.campaign = frozen.id;
  out.definition = &frozen.campaign;
  out.plan = &frozen.plan;
  out.removed = frozen.removed;
  out.judged = frozen.registration.rubric.has_value();
  out.scheduler = scheduler_settings(frozen);
  out.scheduler.stays_at_gate = options.stays_at_gate;
  out.listen.push_back({local, Security::kFilePermissions});
  if (options.listen.empty()) return out;
  PROCTOR_TRY(out.keys, tcp_keys(options, frozen.folder));
  out.listen.push_back({options.listen, out.keys ? Security::kCurve : Security::kInsecureLoopback});
  return out;
}

std::string how_to_go_on(const RunOptions& options) {
  if (!options.go_on.empty()) return options.go_on;
  return "proctor resume " + options.folder +
         (options.models.empty() ? std::string() : " --models " + options.models);
}

// Once for each task or method, whatever it is worth to the others.
void tell_faults(const StatusSnapshot& last, const RunOptions& options) {
  const bool one = last.faulty == 1;
  put(fmt::format("{} {} parked because {} task or {} method is broken:\n", last.faulty,
                  one ? "run is" : "runs are", one ? "its" : "their", one ? "its" : "their"));
  for (const StatusSnapshot::Broken& b : last.broken) {
    const Broken kind = b.kind == FaultSubject::Kind::kMethod ? Broken::kMethod : Broken::kTask;
    put(fmt::format("  {}\n{}", printable(b.run + ": " + b.text, limits::kDetailBytes),
                    mends_for(options.folder, printable(b.run), kind, how_to_go_on(options))));
  }
}

// Everything before the next stage is over, and who opens it is not here.
void tell_gate(const StatusSnapshot& last, const RunOptions& options) {
  if (!last.gate) return;
  const std::string text = told_with_folder(last.gate->text, options.folder);
  put(fmt::format("stage {} {}\nWhat they came to: proctor pilot status {}; to go on then: {}\n",
                  printable(last.gate->stage), printable(text, 4 * limits::kDetailBytes),
                  options.folder, how_to_go_on(options)));
}

int exit_code_of(const Coordinator::Outcome& outcome, const StatusSnapshot& last,
                 const RunOptions& options) {
  const std::uint64_t poor = last.parked - last.faulty;
  switch (outcome.end) {
    case Coordinator::End::kComplete:
      if (last.parked == 0) return kOk;
      if (0 < last.faulty) tell_faults(last, options);
      if (last.parked == last.faulty) return kJobFailed;
      if (!options.go_on.empty()) {
        put(fmt::format("{} {} not made, for the money is spent; with more: {}\n", poor,
                        poor == 1 ? "run was" : "runs were", options.go_on));
        return kBudgetExhausted;
      }
      put(fmt::format(
          "{0} {1} parked: an envelope ran out of money. proctor budget {2} says which;\n"
          "proctor budget raise {2} ENVELOPE AMOUNT --reason WHY gives it more, then: {3}\n",
          poor, poor == 1 ? "run is" : "runs are", options.folder, how_to_go_on(options)));
      return kBudgetExhausted;
    case Coordinator::End::kAtGate:
      tell_gate(last, options);
      return kWaitsForPerson;
    case Coordinator::End::kStopped:
      std::fprintf(stderr, "stopped; go on with: %s\n", how_to_go_on(options).c_str());
      return kJobFailed;
    case Coordinator::End::kFailed:
      break;
  }
  std::fprintf(stderr, "proctor: %s\nNothing that was acknowledged is lost; go on with: %s\n",
               outcome.why.c_str(), how_to_go_on(options).c_str());
  return kInfrastructure;
}

// It stopped when it saw that, and its folder is not where its report would be written.
int tell_moved(const PlacedFolder& place, const RunOptions& options) {
  RunOptions there = options;
  there.folder = place.now_at().string();
  if (there.folder.empty())
    put(
        fmt::format("proctor: {} was removed while the campaign ran, so it stopped. With a copy of "
                    "all of it at that place: {}\n",
                    options.folder, how_to_go_on(options)));
  else
    put(
        fmt::format("proctor: {} was moved to {} while the campaign ran, so it stopped.\n"
                    "Nothing that was acknowledged is lost; go on with: {}\n",
                    options.folder, there.folder, how_to_go_on(there)));
  return kInfrastructure;
}

Result<int> run_it(const RunOptions& options) {
  const std::optional<UniqueFd> mark = mark_start(StateFolder{options.folder});
  PROCTOR_TRY(const Campaign campaign, load_checked(options.folder, Outside::kSkip));
  PROCTOR_CHECK_OK(check_models(options, campaign));  // before anything is registered
  PROCTOR_CHECK_OK(check_host_things(options, campaign));
  PROCTOR_CHECK_OK(check_programs(options, campaign));
  PROCTOR_CHECK_OK(local_work(options, campaign));
  PROCTOR_CHECK_OK(tcp_keys(options, StateFolder{options.folder}));
  // Whoever goes on registers nothing.
  if (options.begin == RunOptions::Begin::kGoOn &&
      !is_there(StateFolder{options.folder}.registration())) {
    PROCTOR_CHECK_OK(check_never_began(StateFolder{campaign.folder}));
    return not_begun(options.folder);
  }
  std::vector<std::string> notes = price_notes(campaign);
  std::ranges::move(no_call_notes(campaign, options.models), std::back_inserter(notes));
  std::ranges::move(method_notes(campaign), std::back_inserter(notes));
  for (const std::string& note : notes)
    std::fprintf(stderr, "note: %s\n", printable(note, limits::kDetailBytes).c_str());
  for (const std::string& note : trust_notes(distrusted_tasks(campaign)))
    std::fprintf(stderr, "note: %s\n", note.c_str());
  PROCTOR_TRY(const FrozenCampaign frozen, load_frozen(options.folder, [](const std::string& text) {
                std::fprintf(stderr, "%s\n", text.c_str());
              }));
  PROCTOR_CHECK_OK(check_first_time(options, frozen));
  return run_frozen(options, frozen);
}
}  // namespace

// Every run of such a method would fail at a worker that is told of no model.
Status check_models(const RunOptions& options, const Campaign& campaign) {
  if (options.workers.value_or(campaign.workers) == 0) return ok_status();  // others have their own
  ModelsFile known;
  if (!options.models.empty()) {
    PROCTOR_TRY(known, load_models(options.models));
  }
  std::map<std::string, std::string> recordings;  // files, and a model of each
  for (const Method& m : campaign.methods)
    for (const auto& [model, provider, aliases, most] : m.models()) {
      if (options.models.empty())
        return Error{Errc::kInvalid, "method " + m.name + " asks the model " + model +
                                         ", and local workers are told of none: --models FILE"};
      if (!known.contains(model))
        return Error{Errc::kInvalid, "method " + m.name + " asks the model " + model + ", which " +
                                         options.models + " does not name"};
      const ModelAccess& access = known.at(model);
      if (m.gateway && access.url.empty() && access.cassette.empty())
        return Error{Errc::kInvalid, "method " + m.name + " has a gateway to the model " + model +
                                         ", which is a program in " + options.models};
      if (const std::string why = m.gateway ? unspoken(*m.gateway, access) : ""; !why.empty())
        return Error{Errc::kInvalid, "method " + m.name + " has a gateway to the model " + model +
                                         ", which in " + options.models + " " + why};
      if (!access.cassette.empty()) recordings.emplace(access.cassette, model);
    }
  // A worker would find that out run by run, with the money of each run held.
  for (const auto& [file, model] : recordings)
    if (const auto calls = load_cassette(file); !calls.ok())
      return Error{Errc::kInvalid, "the recording of the model " + model + " in " + options.models +
                                       " cannot be played: " + calls.error().detail};
  return ok_status();
}

Result<int> run_frozen(const RunOptions& options, const FrozenCampaign& frozen) {
  raise_open_files();
  PROCTOR_TRY(const LocalWork work, local_work(options, frozen.campaign));
  if (!work.note.empty()) std::fprintf(stderr, "note: %s\n", work.note.c_str());
  PROCTOR_CHECK_OK(check_beginning(options, frozen));
  PROCTOR_CHECK_OK(make_private_dirs(frozen.folder.state()));
  PROCTOR_TRY(const std::string local, local_endpoint(frozen.folder));
  PROCTOR_TRY(const PlacedFolder place, PlacedFolder::open(frozen.folder.campaign));
  PROCTOR_TRY(CoordinatorOptions coordinator_setup, coordinator_options(options, frozen, local));
  std::optional<PrivateRedis> redis;
  coordinator_setup.open_ledger = [&] { return ledger_store(frozen, redis); };
  ProgressDisplay display;
  StatusSnapshot last;
  std::optional<LocalWorkers> workers;
  bool hopeless = false;
  coordinator_setup.on_status = [&](const StatusSnapshot& status) {
    last = status;
    const bool over = status.state == "complete" || status.state == "stopped" ||
                      status.state.starts_with("failed");
    if (workers && !over) workers->tend();
    // Nothing could ever run: as if somebody interrupted it.
    if (workers && !over && !hopeless && options.listen.empty() && workers->all_given_up()) {
      hopeless = true;
      std::raise(SIGINT);
    }
    if (redis && !over) redis->tend();
    display.show(status);
  };
  coordinator_setup.on_worker_gone = [&] {  // not at the next second: its runs wait for it
    if (workers) workers->tend();
  };
  coordinator_setup.awaited = [&] { return workers && workers->orphan_works(); };
  PROCTOR_TRY(const std::unique_ptr<Coordinator> coordinator,
              Coordinator::open(std::move(coordinator_setup)));
  if (redis) redis->remove_abandoned();
  for (const std::string& endpoint : coordinator->endpoints())
    log::info("campaign " + frozen.id + ", epoch " + std::to_string(coordinator->epoch().raw()) +
              ", listening on " + endpoint);
  std::vector<std::string> extra = options.worker_arguments;
  if (!options.models.empty()) {
    // A worker that cannot read it would be started again and again.
    PROCTOR_CHECK_OK(load_models(options.models));
    extra.insert(extra.end(), {"--models", fs::absolute(options.models).string()});
  }
  PROCTOR_TRY(workers, LocalWorkers::start({.folder = frozen.folder,
                                            .endpoint = local,
                                            .workers = work.workers,
                                            .slots = work.slots,
                                            .extra = extra}));
  const Coordinator::Outcome outcome = coordinator->run();
  display.end();
  workers->stop();
  if (outcome.end == Coordinator::End::kFailed && !place.is_in_place())
    return tell_moved(place, options);
  std::error_code ec;
  fs::remove(local.substr(kIpc.size()), ec);  // a socket nobody answers at
  const int code = exit_code_of(outcome, last, options);
  const Result<WrittenReport> report = write_report_files(frozen);
  if (hopeless && code != kOk) {  // a report of runs that never began would hide why
    const fs::path log = frozen.folder.worker_log(frozen.folder.worker_prefix() + "1");
    std::fprintf(stderr, "proctor: every local worker ended as soon as it had begun; %s ends:\n%s",
                 log.c_str(), last_lines_of(log, "  ").c_str());
    return kInfrastructure;
  }
  if (!report.ok()) return report.error();
  if (!options.show_report) return code;
  if (0 < report->report.total.ended()) tell_end(frozen, report->report, options.folder);
  const std::string why = code == kOk ? why_worthless(report->report.runs) : std::string();
  if (why.empty()) return code;
  std::fprintf(stderr, "exit code 1: %s\n", printable(why, limits::kDetailBytes).c_str());
  return kJobFailed;
}

int run_campaign(const RunOptions& options) {
  return code_of(run_it(options));
}

// proctor run, serve and resume: three ways into the same loop.

namespace {
void add_common(Command command, RunOptions& options) {
  command.add_option("CAMPAIGN", options.folder, "the campaign's folder").required();
  command
      .add_option("--workers", options.workers, "local worker processes (default: the campaign's)")
      .in_range(std::size_t{0}, limits::kLocalWorkersMax);
  command.add_option("--slots", options.slots, "runs at a time on each of them")
      .in_range(std::size_t{1}, limits::kWorkerSlotsMax);
  command.add_option("--listen", options.listen, "also let workers join at tcp://HOST:PORT");
  command
      .add_option("--models", options.models,
                  "file that says how local workers reach single-shot models")
      .envname("PROCTOR_MODELS");
  command.add_flag("--insecure-loopback", options.insecure_loopback,
                   "plain TCP without keys, on this machine only");
}
}  // namespace

void add_run(Command app, int& exit_code) {
  const Command command = app.add_subcommand(
      "run", "the main job: coordinator and local workers, to the report",
      "Example:\n  proctor run --workers 4 my-campaign\n"
      "Interrupt once to finish what runs, twice to cancel it; then: proctor resume.\n"
      "Exit codes: 0 complete, 1 stopped, or some runs parked because their task or method is\n"
      "broken, or no run came to a verdict (all invalid or acceptance errors), or noop passed or\n"
      "reference failed somewhere, 2 bad input, 3 some runs parked for lack of money, 4 "
      "infrastructure, 5 a stage waits for a person (proctor "
      "pilot).");
  RunOptions& options = *arguments<RunOptions>(command, exit_code, run_it);
  add_common(command, options);
  command.add_flag("--again", options.again,
                   "also when this registration was run before and its journal is gone: a "
                   "deviation");
}

void add_serve(Command app, int& exit_code) {
  const Command command = app.add_subcommand(
      "serve", "coordinator only: workers join from anywhere",
      "Example:\n  proctor keygen my-campaign --worker build7\n"
      "  proctor serve my-campaign --listen tcp://0.0.0.0:7400\n"
      "  proctor-worker --connect tcp://HOST:7400 --name build7 --slots 8 \\\n"
      "    --server-key coordinator.pub --key build7.key        (on the other machine)\n"
      "After a stop: proctor serve --resume. Units and manifests that run one command again and\n"
      "again: proctor serve --resume-or-begin.");
  RunOptions& options = *arguments<RunOptions>(command, exit_code, [](RunOptions asked) {
    if (!asked.workers) asked.workers = 0;
    return run_it(asked);
  });
  options.stays_at_gate = true;
  add_common(command, options);
  using Begin = RunOptions::Begin;
  const auto begins = [&options](Begin how) { return [&options, how] { options.begin = how; }; };
  const Option go_on =
      command.add_flag("--resume", begins(Begin::kGoOn), "go on with a campaign that has begun");
  command
      .add_flag("--resume-or-begin", begins(Begin::kEither),
                "go on with a campaign that has begun, begin one that has not")
      .excludes(go_on);
  command.add_flag("--again", options.again, "as of proctor run");
}

void add_resume(Command app, int& exit_code) {
  const Command command = app.add_subcommand(
      "resume", "continue after any stop, planned or not",
      "Example:\n  proctor resume my-campaign\n"
      "Exit codes as of run; 5: a stage waits for a person (proctor pilot status).");
  RunOptions& options = *arguments<RunOptions>(command, exit_code, run_it);
  options.begin = RunOptions::Begin::kGoOn;
  add_common(command, options);
}
}  // namespace proctor::cli
