#include <fcntl.h>
#include <sys/stat.h>
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
#include "worker/shell/host_room.h"
#include "worker/shell/run_events.h"
#include "worker/shell/sandbox_dress.h"
#include "worker/workspace/beneath.h"
#include "worker/workspace/copy_tree.h"
#include "worker/workspace/protect.h"
#include "worker/workspace/trusted_part.h"

namespace proctor {
// AttemptRun: checks that are programs of an image of their own, and the folders that those see.

namespace {
// Where `relative` leads below `root`, if no component of it is a symbolic link: the candidate may
// have put one there, and what it points at is the host's.
fs::path real_place(const fs::path& root, const std::string& relative) {
  fs::path at = root;
  for (const fs::path& part : fs::path(relative).lexically_normal()) {
    if (part.empty() || part == ".") continue;
    at /= part;
    std::error_code ec;
    const fs::file_status status = fs::symlink_status(at, ec);
    if (!fs::is_directory(status) && !fs::is_regular_file(status)) return {};
  }
  return at;
}

// Removes what no patch can hold, and a copy would wait for or make: pipes, sockets, devices.
Status drop_special_files(const fs::path& folder) {
  std::error_code ec;
  std::vector<fs::path> special;
  using Walk = fs::recursive_directory_iterator;
  for (Walk it(folder, ec), end; !ec && it != end; it.increment(ec)) {
    const fs::file_status status = it->symlink_status(ec);
    if (ec) break;
    if (!fs::is_directory(status) && !fs::is_regular_file(status) && !fs::is_symlink(status))
      special.push_back(it->path());
  }
  for (const fs::path& path : special)
    if (!ec) fs::remove(path, ec);
  if (ec) return Error{Errc::kUnavailable, folder.string() + ": " + ec.message()};
  return ok_status();
}

// Beside the folders that single mounts have: "." is all of them.
constexpr const char* kWhole = ".proctor-whole";
fs::path shown_as(const fs::path& root, const std::string& path) {
  return root / (path == "." ? kWhole : path);
}

bool lies_in(const std::string& path, const std::string& folder) {
  return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

// The paths of the workspace that a container is shown, and those around them that another will be,
// each before what lies in it: were the inner one copied first, the outer one would be there
// already, with nothing but that in it.
std::vector<std::string> paths_to_copy(const ProgramContainer& container,
                                       const std::vector<const ProgramContainer*>& others) {
  std::vector<std::string> out;
  for (const ProgramContainer::Mount& mount : container.mounts) out.push_back(mount.from);
  const std::vector<std::string> own = out;
  for (const ProgramContainer* other : others)
    for (const ProgramContainer::Mount& around : other->mounts)
      if (std::ranges::any_of(own, [&](const auto& path) { return lies_in(path, around.from); }))
        out.push_back(around.from);
  std::ranges::sort(out);  // a path before those that begin with it
  const auto same = std::ranges::unique(out);
  out.erase(same.begin(), same.end());
  return out;
}

// Is it there already?  A link or a pipe there, or on the way, is none of ours: it goes, for nobody
// knows what an engine would make of it.
Result<bool> is_copied(int root, const std::string& relative) {
  PROCTOR_TRY(const beneath::Parent parent,
              beneath::open_parent(root, relative, beneath::Missing::kMakeAndReplace));
  struct stat st {};
  if (::fstatat(parent.dir.get(), parent.name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
      (S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)))
    return true;
  PROCTOR_CHECK_OK(beneath::remove(parent.dir.get(), parent.name));
  return false;
}

// By paths of the workspace.
CopiedFiles known_below(const std::string& from, CopiedFiles copied) {
  if (from == ".") return copied;
  CopiedFiles out;
  for (const auto& [path, file] : copied) out.emplace(fs::path(from) / path, file);
  return out;
}

Status open_to_all(const fs::path& path) {
  if (::chmod(path.c_str(), 0777) == 0) return ok_status();
  return Error{Errc::kUnavailable, "chmod " + path.string()};
}

// The engine that is asked for one image after another.
Environment environment_of(const Contract& contract, const ProgramContainer& container) {
  Environment out = contract.environment;
  out.sandbox = Environment::Sandbox::kDocker;  // whatever runs images here
  if (!container.image.empty()) out.image = container.image;
  return out;
}
}  // namespace

std::vector<const ProgramContainer*> containers_of(const Contract& contract) {
  std::vector<const ProgramContainer*> out;
  for (const Service& service : contract.services)
    if (service.container) out.push_back(&*service.container);
  for (const Check& check : contract.checks)
    if (check.container) out.push_back(&*check.container);
  return out;
}

// Copies, made once and shared by the containers of a suite, one after another, as the services of
// a compose file share their folders.  A copy, because a container writes as it likes and an engine
// may hold what it has seen.
Result<fs::path> AttemptRun::container_folder(const ProgramContainer& container, Room room) {
  const fs::path root = container_root(room);
  PROCTOR_CHECK_OK(make_dirs(root));
  PROCTOR_TRY(const UniqueFd top, beneath::open_root(root.string()));
  const bool agents_own = room == Room::kAgent;
  const auto others =
      agents_own ? std::vector<const ProgramContainer*>() : containers_of(contract());
  for (const std::string& path : paths_to_copy(container, others)) {
    const fs::path to = shown_as(root, path);
    PROCTOR_TRY(const bool copied,
                is_copied(top.get(), to.lexically_relative(root).generic_string()));
    if (copied) continue;
    // No file of a copy is known before all of it is there.
    CopiedFiles agents;
    CopiedFiles& known = agents_own ? agents : container_copies_[path];
    known.clear();
    std::error_code ec;
    const fs::path from = real_place(workspace_->dir(), path);
    if (!from.empty() && fs::is_regular_file(from, ec)) {
      fs::copy_file(from, to, ec);
      if (ec) return Error{Errc::kUnavailable, "copy " + from.string() + ": " + ec.message()};
      continue;
    }
    PROCTOR_CHECK_OK(make_dirs(to));
    CopiedFiles files;
    if (!from.empty()) PROCTOR_CHECK_OK(copy_tree(from, to, files));
    if (path == ".") PROCTOR_CHECK_OK(remove_tree(to / ".git"));  // the workspace's own
    PROCTOR_CHECK_OK(open_to_all(to));
    known = known_below(path, std::move(files));
  }
  return root;
}

Result<std::vector<std::string>> AttemptRun::protect_copies(
    const std::map<std::string, PlacedFile>& placed) {
  if (container_copies_.empty()) return std::vector<std::string>{};
  const fs::path root = container_root(Room::kAcceptance);
  // The folders that containers are shown are nobody's plant.
  MadeUnder made = setup_makes_;
  for (const auto& [from, known] : container_copies_)
    if (from != ".") add_folders_of(from + '/', made.paths);
  std::ranges::sort(made.paths);
  std::vector<std::string> changed;
  for (auto& [from, known] : container_copies_) {
    const bool whole = from == ".";
    const TreeCopy copy{whole ? root / kWhole : root, whole ? "" : from, known};
    PROCTOR_TRY(const std::vector<std::string> again,
                workspace_->restore_copy(copy, contract().policy.protected_, made, placed));
    changed.insert(changed.end(), again.begin(), again.end());
  }
  return changed;
}

// The forwarder that a filtered network needs would have to run before a program that only the
// image knows.
Result<std::unique_ptr<PhaseNetwork>> AttemptRun::give_container_network(
    SandboxSpec& spec, const NetworkAccess& access, const std::string& phase) {
  if (access.filtered())
    return Error{Errc::kInvalid, phase + ": a container has the whole network or none"};
  return give_network(spec, access, phase);
}

Result<SandboxEngine*> AttemptRun::container_engine(const ProgramContainer& container) {
  const Environment environment = environment_of(contract(), container);
  return tools_.engines.wait_for(wish(environment), watch_.token());
}

Result<SandboxSpec> AttemptRun::container_spec(const SandboxEngine& engine,
                                               const ProgramContainer& container, Room room,
                                               const std::string& label) {
  PROCTOR_TRY(const fs::path folder, container_folder(container, room));
  const Policy& policy = contract().policy;
  SandboxSpec spec;
  spec.label = label;
  if (engine.has_own_users()) spec.user = workspace_->user();
  spec.image = environment_of(contract(), container).image;
  spec.env = container.variables;
  spec.program = {container.entrypoint, container.command, container.working_dir};
  for (const ProgramContainer::Mount& mount : container.mounts)
    spec.mounts.push_back({shown_as(folder, mount.from), mount.at, mount.writable});
  spec.memory_bytes = policy.memory_bytes;
  spec.processes = policy.processes;
  spec.cpus = policy.cpus;
  spec.cpu = policy.cpu;
  spec.file_bytes = policy.disk_bytes;
  spec.hold = watch_.hold();
  return spec;
}

// A repository of the program's own making would be no part of a patch.
Status AttemptRun::take_all_back(int workspace, const fs::path& from) {
  PROCTOR_CHECK_OK(remove_counted(from / ".git"));
  PROCTOR_CHECK_OK(drop_special_files(from));
  PROCTOR_TRY(const std::vector<std::string> old, beneath::names(workspace));
  for (const std::string& name : old)
    if (name != ".git") PROCTOR_CHECK_OK(beneath::remove(workspace, name));
  CopiedFiles unused;
  return copy_tree(from, workspace_->dir(), unused);
}

// Into the workspace, in place of what lies there: nothing runs in either any more.
Status AttemptRun::take_back(const ProgramContainer& container) {
  constexpr std::size_t kFileMost = std::size_t{64} << 20;
  const ActingAs as(workspace_->user().get());
  const fs::path root = container_root(Room::kAgent);
  PROCTOR_TRY(const UniqueFd workspace, beneath::open_root(workspace_->dir().string()));
  for (const ProgramContainer::Mount& mount : container.mounts) {
    if (!mount.writable) continue;
    const fs::path from = shown_as(root, mount.from);
    if (mount.from == ".") {
      PROCTOR_CHECK_OK(take_all_back(workspace.get(), from));
      continue;
    }
    PROCTOR_TRY(
        const beneath::Parent parent,
        beneath::open_parent(workspace.get(), mount.from, beneath::Missing::kMakeAndReplace));
    PROCTOR_CHECK_OK(beneath::remove(parent.dir.get(), parent.name));
    std::error_code ec;
    if (fs::is_regular_file(fs::symlink_status(from, ec))) {
      PROCTOR_TRY(const std::string bytes, read_file(from, kFileMost));
      PROCTOR_CHECK_OK(beneath::write_file(parent.dir.get(), parent.name, bytes, 0644));
      continue;
    }
    PROCTOR_CHECK_OK(drop_special_files(from));
    const fs::path to = workspace_->dir() / mount.from;
    PROCTOR_CHECK_OK(make_dirs(to));
    CopiedFiles unused;
    PROCTOR_CHECK_OK(copy_tree(from, to, unused));
  }
  return ok_status();
}

Result<AttemptRun::CheckEnd> AttemptRun::run_container(const ProgramContainer& container,
                                                       const std::string& name,
                                                       const ExecSpec& exec,
                                                       const ServedBy* served) {
  PROCTOR_TRY(SandboxEngine* const engine, container_engine(container));
  PROCTOR_TRY(SandboxSpec spec, container_spec(*engine, container, Room::kAcceptance, label(name)));
  PROCTOR_TRY(const auto network,
              give_container_network(spec, contract().policy.check_network, name));
  if (served != nullptr) served->give_to(spec);
  std::stop_source stop;
  const std::stop_callback whole_run(watch_.token(), [&stop] { stop.request_stop(); });
  DiskWatch disk(container_root(Room::kAcceptance), contract().policy.disk_bytes, stop);
  PROCTOR_TRY(ExecOutcome outcome,
              execute(*engine, MeterPhase::kAcceptance, spec, exec, stop.get_token()));
  if (disk.end() && !watch_.token().stop_requested()) stopped_at_disk_limit(outcome);
  return CheckEnd{outcome, engine, std::move(spec)};
}

// AttemptRun: the services beside a check: their sandboxes, their network, what they leave in the
// evidence, and whose fault it is when one does not get ready.

namespace {
constexpr const char* kServicesDir = "services";

fs::path stream_of(const fs::path& evidence, const std::string& service, const char* stream) {
  return evidence / kServicesDir / (service + "." + stream);
}

events::ServiceEnded ended_payload(const Check& check, const fs::path& evidence,
                                   const ServiceGroup::End& end) {
  events::ServiceEnded out{check.id, end.service, end.by_itself, end.ready_after};
  if (end.outcome)
    out.use = program_use(*end.outcome, stream_of(evidence, end.service, "stdout"),
                          stream_of(evidence, end.service, "stderr"));
  else
    out.error = end.error;
  return out;
}
}  // namespace

void AttemptRun::ServedBy::give_to(SandboxSpec& spec) const {
  spec.network = false;
  spec.shared = network;
  spec.mounts.push_back({hosts, "/etc/hosts", false});
}

Result<SandboxEngine*> AttemptRun::served_engine(const Check& check,
                                                 const std::vector<std::size_t>& services) {
  std::vector<const ProgramContainer*> containers;
  if (check.container) containers.push_back(&*check.container);
  bool own = !check.container;
  for (const std::size_t i : services) {
    const Service& service = contract().services[i];
    own = own || !service.container;
    if (service.container) containers.push_back(&*service.container);
  }
  SandboxEngine* out = own ? engine_ : nullptr;
  for (const ProgramContainer* container : containers) {
    PROCTOR_TRY(SandboxEngine* const engine, container_engine(*container));
    if (out != nullptr && out != engine)
      return Error{Errc::kUnavailable,
                   "a check and its services share no network across " +
                       std::string(to_string(out->kind())) + " and " +
                       std::string(to_string(engine->kind())) +
                       ": import all of their images, or none (proctor images, --images)"};
    out = engine;
  }
  return out;
}

Result<AttemptRun::ServedBy> AttemptRun::share_network(SandboxEngine& engine, const Check& check,
                                                       const std::vector<std::size_t>& services,
                                                       const std::string& name) {
  const auto image_of = [&](const std::optional<ProgramContainer>& container) {
    return container && !container->image.empty() ? container->image : contract().environment.image;
  };
  ServedBy out;
  out.engine = &engine;
  PROCTOR_TRY(out.network,
              engine.open_network(label(name + "-network"), image_of(check.container)));
  std::vector<std::string> names;
  for (const std::size_t i : services) names.push_back(contract().services[i].name);
  out.hosts = dir_ / (name + "-hosts");
  PROCTOR_CHECK_OK(write_file(out.hosts, hosts_of_services(names), Durability::kLazy, kOpenFile));
  return out;
}

Result<ServicePlan> AttemptRun::service_plan(const Service& service, const std::string& name,
                                             const fs::path& evidence, const ServedBy& served) {
  ServicePlan out;
  out.name = service.name;
  out.workspace = runs_workspace(service);
  const std::string own_label = label(name + "-" + service.name);
  if (service.container) {
    PROCTOR_TRY(out.spec,
                container_spec(*served.engine, *service.container, Room::kAcceptance, own_label));
    if (out.workspace) {
      out.spec.disk.places.push_back({container_root(Room::kAcceptance), 0, 0});
      out.spec.disk.bytes = contract().policy.disk_bytes;
      out.spec.disk.files = limits::kSandboxFiles;
    }
  } else {
    PROCTOR_TRY(out.spec, spec_for(Room::kAcceptance, own_label, *engine_));
    PROCTOR_CHECK_OK(show_contract_files(out.spec, FilesFor::kChecks));
    for (const auto& [key, value] : service.variables) out.spec.env[key] = value;
    out.exec.command = service.command;
  }
  if (service.memory_bytes) out.spec.memory_bytes = *service.memory_bytes;
  if (service.processes) out.spec.processes = *service.processes;
  served.give_to(out.spec);
  out.exec.stdout_file = stream_of(evidence, service.name, "stdout");
  out.exec.stderr_file = stream_of(evidence, service.name, "stderr");
  out.exec.output_max = kServiceOutputBytes;
  out.ready = service.ready;
  out.ready_stdout_file = stream_of(evidence, service.name, "ready.stdout");
  out.ready_stderr_file = stream_of(evidence, service.name, "ready.stderr");
  return out;
}

void AttemptRun::note_services(const Check& check, const fs::path& evidence,
                               const std::vector<ServiceGroup::End>& ends) {
  for (const ServiceGroup::End& end : ends) {
    note(events::kService, ended_payload(check, evidence, end));
    // Their time is that of the check, which is counted; what else they used is theirs.
    if (end.outcome)
      meter_.executed(MeterPhase::kAcceptance,
                      {Millis(0), end.outcome->cpu, end.outcome->memory_peak});
  }
}

Result<AttemptRun::CheckEnd> AttemptRun::run_served(const Check& check, const fs::path& results,
                                                    const std::string& name,
                                                    const fs::path& evidence,
                                                    const ExecSpec& exec) {
  const std::vector<std::size_t> services = services_of(contract().services, check);
  if (services.empty()) return run_alone(check, results, name, exec, nullptr);
  PROCTOR_TRY(SandboxEngine* const engine, served_engine(check, services));
  PROCTOR_TRY(const ServedBy served, share_network(*engine, check, services, name));
  PROCTOR_CHECK_OK(make_dirs(evidence / kServicesDir));
  // Copied before the candidate's services run, which may write to what would be copied.
  if (check.container) PROCTOR_CHECK_OK(container_folder(*check.container, Room::kAcceptance));
  std::vector<ServicePlan> plans;
  for (const std::size_t i : services) {
    PROCTOR_TRY(ServicePlan plan, service_plan(contract().services[i], name, evidence, served));
    plans.push_back(std::move(plan));
  }
  SandboxSpec writers;  // all of them write to the same places, or to none
  for (const ServicePlan& plan : plans)
    if (!plan.spec.disk.places.empty()) writers.disk = plan.spec.disk;
  const SandboxSpec one_of_them = plans.front().spec;
  ServiceGroup group(*engine, served.network);
  disk_.begin();
  auto failed = group.start(std::move(plans), watch_.token());
  std::optional<Error> full = disk_.end([&] { return written_in(writers); });
  if (failed.ok() && !*failed) {
    auto end = run_alone(check, results, name, exec, &served);
    note_services(check, evidence, group.stop());
    return end;
  }
  note_services(check, evidence, group.stop());
  if (!failed.ok()) return std::move(failed).error();
  if (full) return *std::move(full);
  const std::string why = "service " + (*failed)->service + " " + (*failed)->why;
  if ((*failed)->blame == Blame::kHost) return Error{Errc::kUnavailable, why};
  CheckEnd end;
  end.never_ran = why;
  end.engine = engine;
  end.ran_as = one_of_them;
  // A check that never ran has said nothing.
  for (const fs::path& file : {exec.stdout_file, exec.stderr_file})
    PROCTOR_CHECK_OK(write_file(file, "", Durability::kLazy));
  return end;
}

namespace {
std::optional<std::string> result_file(const Check& check, const fs::path& results,
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
}  // namespace

// AttemptRun: one acceptance check, its sandbox and what it leaves (R048-R050, R091, R092).
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
  exec.attempted = [this](const CallAttempt& seen) { safety_.call("acceptance", seen); };
  // All programs of this run have ended.  A container's engine is not known yet.
  locked_before_ = check.container ? locks_held() : locks_to_know(*engine_);
  const std::int64_t started = wall_now().raw();
  PROCTOR_TRY(const CheckEnd checked, run_served(check, results, name, evidence, exec));
  PROCTOR_CHECK_OK(open_again(checked.ran_as));  // its services may have been the last
  if (!checked.never_ran.empty()) {
    PROCTOR_CHECK_OK(workspace_->whole(TreeMark::Look::kFolders));
    PROCTOR_CHECK_OK(had_all(*checked.engine, checked.ran_as));
    report.why = "did not run: " + checked.never_ran;
    note(events::kAcceptance, events::CheckTold{report, started, wall_now().raw()});
    return CheckEnded{std::move(report), checked.never_ran, safety_.take()};
  }
  const ExecOutcome& outcome = checked.outcome;
  const ProgramEnd end = end_of(outcome);
  const CheckVerdict verdict = judge(check, end.facts(), result_file(check, results, evidence));
  // A check that blames the candidate must have seen its whole tree.
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
  report.absent = verdict.absent;
  report.failing = verdict.failing;
  const auto digest_of = [&](std::string_view file) -> std::optional<Digest> {
    const Result<EvidenceFile> hashed = hash_file(evidence, std::string(file));
    if (!hashed.ok()) return std::nullopt;
    return hashed->digest;
  };
  safety_.untold("acceptance", outcome);
  mark_cut(exec.stdout_file, outcome.stdout_bytes);
  mark_cut(exec.stderr_file, outcome.stderr_bytes);
  report.stdout_digest = digest_of(kStdoutFile);
  report.stderr_digest = digest_of(kStderrFile);
  report.result_digest = digest_of(kResultsFile);
  note(events::kAcceptance, events::CheckTold{report, started, wall_now().raw()});
  if (check.gate == Gate::kBuild && verdict.outcome != CheckOutcome::kPass)
    for (const Json& fragment : fragments_of(fragments_, check.id, exec))
      note(events::kFragment.type, Actor::kHarness, fragment);
  return CheckEnded{std::move(report), {}, safety_.take()};
}

std::map<std::string, PlacedFile> acceptance_by_place(const Contract& contract) {
  std::map<std::string, PlacedFile> out;
  for (const AcceptanceFile& file : contract.acceptance_files)
    for (const ReferencedFile& from : contract.files)
      if (from.path == file.from) out[file.to] = {from.bytes, from.mode};
  return out;
}

namespace {
// `beyond`: what it means that a limit was passed.
Status put_back(Workspace& workspace, std::string_view what, Errc beyond,
                const std::function<Status()>& put) {
  Status done = put();
  const auto is = [&](Errc code) { return !done.ok() && done.error().code == code; };
  // The candidate's code may have filled a disk of its own: a little of that is left for us.
  const bool full = (is(Errc::kExhausted) || is(Errc::kUnavailable)) && workspace.used_up();
  if (full) done = put();
  if (done.ok()) return done;
  Error e = in_context(what, std::move(done).error());
  if (full) e.code = Errc::kInvalid;
  if (e.code == Errc::kExhausted) e.code = beyond;
  return e;
}
}  // namespace

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
  PROCTOR_CHECK_OK(put_back(*workspace_, "the home and git's own files", Errc::kUnavailable, put));
  if (!in_home.empty()) note(events::kHomeRestored, path_list(in_home, kListedAgain));
  if (!back.empty()) note(events::kGitRestored, path_list(back, kListedAgain));
  return ok_status();
}

Status AttemptRun::keep_setup_home() {
  setup_home_ = layered_ ? setup_.layer->home() : kept_home();
  if (layered_) return ok_status();
  PROCTOR_CHECK_OK(make_dirs(kept_home()));
  CopiedFiles unused;
  return copy_tree(home_of(Room::kAgent), kept_home(), unused);
}

Status AttemptRun::protect_again(std::size_t index) {
  // The candidate's code has not run in this room yet.
  if (index == 0 && contract().setup.empty()) return ok_status();
  PROCTOR_CHECK_OK(put_home_and_git_back());
  // Behind a setup they are to come yet: until then what the snapshot has in their places is right.
  std::map<std::string, PlacedFile> placed;
  if (acceptance_placed_) placed = acceptance_by_place(contract());
  std::vector<std::string> changed;
  const auto put = [&]() -> Status {
    PROCTOR_TRY(changed,
                workspace_->restore_again(contract().policy.protected_, setup_makes_, placed));
    PROCTOR_TRY(const std::vector<std::string> copies, protect_copies(placed));
    changed.insert(changed.end(), copies.begin(), copies.end());
    return ok_status();
  };
  // Too deep, too many: made by the candidate's code, which must not get another attempt by it.
  PROCTOR_CHECK_OK(put_back(*workspace_, "protected files", Errc::kInvalid, put));
  std::ranges::sort(changed);
  changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
  if (!changed.empty()) note(events::kRestoredAgain, path_list(changed, kListedAgain));
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
  PROCTOR_TRY(SandboxSpec spec, spec_for(Room::kAcceptance, label(name), *engine_));
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
}  // namespace proctor
