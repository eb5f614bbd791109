// AttemptRun: checks that are programs of an image of their own, and the folders that those see.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <system_error>

#include "worker/shell/attempt_run.h"
#include "worker/shell/disk_watch.h"
#include "worker/workspace/beneath.h"
#include "worker/workspace/copy_tree.h"

namespace proctor {
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

// What no patch can hold, and a copy would wait for or make: pipes, sockets, devices.
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

// Those that share one copy of the workspace with the checks'.
std::vector<const ProgramContainer*> containers_of(const Contract& contract) {
  std::vector<const ProgramContainer*> out;
  for (const Check& check : contract.checks)
    if (check.container) out.push_back(&*check.container);
  for (const Service& service : contract.services)
    if (service.container) out.push_back(&*service.container);
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
  for (const auto& [from, known] : container_copies_) {
    for (std::size_t slash = from.find('/'); slash != std::string::npos;
         slash = from.find('/', slash + 1))
      made.paths.push_back(from.substr(0, slash + 1));
    if (from != ".") made.paths.push_back(from + '/');
  }
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

}  // namespace proctor
