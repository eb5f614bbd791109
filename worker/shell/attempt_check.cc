// AttemptRun: one acceptance check, its sandbox and what it leaves (R048-R050, R091, R092).
#include <algorithm>
#include <system_error>

#include "common/base/limits.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "common/score/result_reader.h"
#include "common/score/test_results.h"
#include "common/trace/evidence.h"
#include "worker/sandbox/host_lack.h"
#include "worker/shell/attempt_run.h"
#include "worker/shell/run_events.h"
#include "worker/shell/sandbox_dress.h"
#include "worker/workspace/copy_tree.h"
#include "worker/workspace/protect.h"
#include "worker/workspace/trusted_part.h"

namespace proctor {
Result<CheckEnded> AttemptRun::check(std::size_t index) {
  const Check& check = contract().checks[index];
  CheckReport report = lifecycle_plan(contract(), {}).checks[index];
  const std::string name = "check-" + std::to_string(index);
  // Fresh and outside the workspace: neither the patch nor an earlier check can have put it there.
  PROCTOR_TRY(const fs::path results, writable_dir(name + "-results"));
  PROCTOR_TRY(const fs::path evidence, recorder_->check_dir(check.id));
  ExecSpec exec;
  exec.command = check.command;
  exec.timeout = check.timeout;
  exec.stdout_file = evidence / kStdoutFile;
  exec.stderr_file = evidence / kStderrFile;
  exec.output_max = limits::kCheckOutputBytes;
  // Nothing of this run's lives.  A container's engine is not known yet.
  locked_before_ = check.container ? locks_held() : locks_to_know(*engine_);
  const std::int64_t started = wall_now().raw();
  PROCTOR_TRY(const CheckEnd checked, run_served(check, results, name, evidence, exec));
  PROCTOR_CHECK_OK(open_again(checked.ran_as));  // its services may have been the last
  if (!checked.never_ran.empty()) {
    PROCTOR_CHECK_OK(workspace_->whole(TreeMark::Look::kFolders));
    PROCTOR_CHECK_OK(had_all(*checked.engine, checked.ran_as));
    report.why = "did not run: " + checked.never_ran;
    note("acceptance", Actor::kHarness, check_payload(report, started, wall_now().raw()));
    return CheckEnded{std::move(report), checked.never_ran};
  }
  const ExecOutcome& outcome = checked.outcome;
  const ProgramEnd end = end_of(outcome);
  const CheckVerdict verdict = judge(check, end.facts(), result_file(check, results, evidence));
  // What the candidate is blamed for must have seen its whole tree.
  PROCTOR_CHECK_OK(workspace_->whole(verdict.outcome == CheckOutcome::kPass
                                         ? TreeMark::Look::kSentinel
                                         : TreeMark::Look::kFolders));
  if (verdict.outcome != CheckOutcome::kPass && checked.engine != nullptr)
    PROCTOR_CHECK_OK(had_all(*checked.engine, checked.ran_as));
  report.outcome = verdict.outcome;
  report.exit_code = outcome.exit_code;
  report.wall_ms = static_cast<std::uint64_t>(outcome.wall.count());
  report.why = verdict.why;
  report.ended = to_string(end.end);
  report.passed = verdict.passed;
  report.failed = verdict.failed;
  report.skipped = verdict.skipped;
  report.failing = verdict.failing;
  const auto digest_of = [&](std::string_view file) -> std::optional<Digest> {
    const Result<EvidenceFile> hashed = hash_file(evidence, std::string(file));
    if (!hashed.ok()) return std::nullopt;
    return hashed->digest;
  };
  mark_cut(exec.stdout_file, outcome.stdout_bytes);
  mark_cut(exec.stderr_file, outcome.stderr_bytes);
  report.stdout_digest = digest_of(kStdoutFile);
  report.stderr_digest = digest_of(kStderrFile);
  report.result_digest = digest_of(kResultsFile);
  note("acceptance", Actor::kHarness, check_payload(report, started, wall_now().raw()));
  return CheckEnded{std::move(report)};
}

std::map<std::string, PlacedFile> AttemptRun::acceptance_by_place() const {
  std::map<std::string, PlacedFile> out;
  for (const AcceptanceFile& file : contract().acceptance_files)
    for (const ReferencedFile& from : contract().files)
      if (from.path == file.from) out[file.to] = {from.bytes, from.mode};
  return out;
}

Status AttemptRun::put_home_and_git_back() {
  std::vector<std::string> back, in_home;
  const auto put = [&]() -> Status {
    const fs::path home = home_of(Room::kAcceptance);
    std::error_code ec;
    std::vector<SeenAt> places{{kWorkspaceAt, workspace_->dir()}};
    if (fs::exists(home, ec)) {
      PROCTOR_TRY(in_home, put_all_back(home, setup_home_, home_known_));
      for (std::string& path : in_home) path.insert(0, "~/");
      places.push_back({kHomeAt, home, "~/"});
    }
    PROCTOR_TRY(back, workspace_->restore_git(setup_makes_, places));
    return ok_status();
  };
  Status done = put();
  // Of a disk of its own that the candidate's code has filled a little is left for us.
  const bool full = !done.ok() && done.error().code == Errc::kExhausted && workspace_->used_up();
  if (full) done = put();
  if (!done.ok()) {
    Error e = in_context("the home and git's own files", std::move(done).error());
    if (e.code == Errc::kExhausted) e.code = full ? Errc::kInvalid : Errc::kUnavailable;
    return e;
  }
  if (!in_home.empty())
    note("home.restored", Actor::kHarness, paths_payload(in_home, kListedAgain));
  if (!back.empty()) note("git.restored", Actor::kHarness, paths_payload(back, kListedAgain));
  return ok_status();
}

Status AttemptRun::keep_setup_home() {
  setup_home_ = layered_ ? layer_->home() : kept_home();
  if (layered_) return ok_status();
  PROCTOR_CHECK_OK(make_dirs(kept_home()));
  CopiedFiles unused;
  return copy_tree(home_of(Room::kAgent), kept_home(), unused);
}

Status AttemptRun::protect_again(std::size_t index) {
  std::vector<std::string> globs = contract().policy.protected_;
  // Nothing of the candidate's has run in this room yet.
  if (index == 0 && contract().setup.empty()) return ok_status();
  PROCTOR_CHECK_OK(put_home_and_git_back());
  // Behind a setup they are to come yet: until then what the snapshot has in their places is right.
  std::map<std::string, PlacedFile> placed;
  if (acceptance_placed_) placed = acceptance_by_place();
  // They are put back whatever the globs say; a name that reads as a glob is its own.
  for (const auto& [path, file] : placed)
    if (!any_glob_covers(globs, path) && any_glob_covers({path}, path)) globs.push_back(path);
  Result<std::vector<std::string>> again = workspace_->restore_again(globs, setup_makes_, placed);
  Result<std::vector<std::string>> copies = again.ok() ? protect_copies(placed) : again;
  if (!copies.ok()) again = copies.error();
  if (!again.ok()) {
    // Too deep, too many: made by the candidate's code, which must not get another attempt by it.
    Error e = in_context("protected files", std::move(again).error());
    if (e.code == Errc::kExhausted) e.code = Errc::kInvalid;
    return e;
  }
  std::vector<std::string> changed = std::move(again).value();
  changed.insert(changed.end(), copies->begin(), copies->end());
  std::ranges::sort(changed);
  changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
  if (!changed.empty())
    note("mutation.restored", Actor::kHarness, paths_payload(changed, kListedAgain));
  return place_acceptance_files();
}

Result<AttemptRun::CheckEnd> AttemptRun::run_alone(const Check& check, const fs::path& results,
                                                   const std::string& name, const ExecSpec& exec,
                                                   const ServedBy* served) {
  return check.container ? run_container(*check.container, name, exec, served)
                         : run_command(results, name, exec, served);
}

Result<AttemptRun::CheckEnd> AttemptRun::run_command(const fs::path& results,
                                                     const std::string& name, const ExecSpec& exec,
                                                     const ServedBy* served) {
  PROCTOR_TRY(SandboxSpec spec, spec_for(Room::kAcceptance, label(name)));
  spec.mounts.push_back({results, kResultsAt, true});
  spec.disk.places.push_back({results, 0, 0});
  spec.env["PROCTOR_RESULTS"] = kResultsAt;
  have_git_look_closely(spec.env);
  PROCTOR_CHECK_OK(show_contract_files(spec, FilesFor::kChecks));
  PROCTOR_TRY(const auto network, give_network(spec, contract().policy.check_network, name));
  if (served != nullptr) served->give_to(spec);
  PROCTOR_TRY(const ExecOutcome outcome,
              execute(*engine_, MeterPhase::kAcceptance, spec, exec, watch_.token()));
  return CheckEnd{outcome, engine_, std::move(spec)};
}

Status AttemptRun::had_all(SandboxEngine& engine, const SandboxSpec& ran_as) {
  if (watch_.token().stop_requested()) return ok_status();
  auto lack = host_lack(engine, ran_as, dir_ / "lacks", watch_.token(), locked_before_);
  if (!lack.ok()) return in_context("what this host has", std::move(lack).error());
  if (lack->empty()) return ok_status();
  lacked_.emplace(&engine, ran_as);
  return Error{Errc::kUnavailable,
               "it did not succeed while this host had no more of: " + *lack +
                   " (others took all of it; docs/sandbox.md, what the kernel counts by user)"};
}

Status AttemptRun::show_contract_files(SandboxSpec& spec, FilesFor whom) {
  if (contract().files.empty()) return ok_status();
  const bool setup = whom == FilesFor::kSetup;
  const fs::path dir = dir_ / (setup ? "contract-setup" : "contract");
  if (!fs::exists(dir)) {
    std::vector<ReferencedFile> shown = contract().files;
    const std::set<std::string> of_setup =
        setup ? shown_to_setup(contract()) : std::set<std::string>();
    std::erase_if(shown, [&](const ReferencedFile& f) {
      return !(setup ? of_setup.contains(f.path) : shown_to_commands(contract(), f));
    });
    PROCTOR_CHECK_OK(write_referenced_files(dir, shown));
  }
  spec.mounts.push_back({dir, kContractAt, false});
  spec.env["PROCTOR_CONTRACT"] = kContractAt;
  return ok_status();
}

std::optional<std::string> AttemptRun::result_file(const Check& check, const fs::path& results,
                                                   const fs::path& evidence) {
  if (check.reader == ResultReader::kExitCode) return std::nullopt;
  constexpr std::string_view kPrefix = "$PROCTOR_RESULTS/";
  std::string name = check.result_file;
  if (name.starts_with(kPrefix)) name.erase(0, kPrefix.size());
  if (!is_safe_relative(name)) return std::nullopt;
  // Written by a stranger: no component may be a link out of the folder.
  fs::path path = results;
  for (const fs::path& component : fs::path(name)) {
    path /= component;
    std::error_code error;
    if (fs::is_symlink(fs::symlink_status(path, error)) || error) return std::nullopt;
  }
  Result<std::string> bytes = read_file(path, kResultFileBytes);
  if (!bytes.ok()) return std::nullopt;
  if (!write_file(evidence / kResultsFile, *bytes, Durability::kLazy).ok()) return std::nullopt;
  return std::move(bytes).value();
}

}  // namespace proctor
