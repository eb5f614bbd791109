#include "worker/sandbox/bubblewrap_args.h"

#include "worker/sandbox/boxed_process.h"
#include "worker/sandbox/devices.h"
#include "worker/sandbox/mount_rules.h"

namespace proctor {
namespace {

// Those bwrap finds are the host's files.  What bwrap makes read-only is no device any more
// (nodev): only where our user may own those files is that better than a file that he could close
// to all.
void add_devices(const HostView& host, std::vector<std::string>& a) {
  if (!host.dev.empty()) {
    a.insert(a.end(), {"--dev-bind", host.dev.string(), "/dev"});
    return;
  }
  a.insert(a.end(), {"--dev", "/dev"});
  for (const Device& device : kDevices)
    if (host.close_devices) a.insert(a.end(), {"--remount-ro", std::string("/dev/") + device.name});
  if (!host.terminals.empty())
    a.insert(a.end(), {"--dev-bind", host.terminals.string(), "/dev/pts"});
  a.insert(a.end(), {"--remount-ro", "/dev"});
}

}  // namespace

Status check_bubblewrap_spec(const SandboxSpec& spec) {
  std::error_code ec;
  if (!spec.workspace.is_absolute() || !fs::is_directory(spec.workspace, ec)) {
    return Error{Errc::kNotFound,
                 "sandbox workspace '" + spec.workspace.string() + "': expected a host folder"};
  }
  PROCTOR_CHECK_OK(check_mounts(spec.mounts));
  return check_environment(spec.env);
}

std::vector<std::string> bubblewrap_argv(const HostView& host, const SandboxSpec& spec,
                                         const std::string& command) {
  std::vector<std::string> a = {host.bwrap.string(), "--unshare-all"};
  const auto add = [&a](std::initializer_list<std::string> words) {
    a.insert(a.end(), words.begin(), words.end());
  };
  if (spec.network || spec.shared) add({"--share-net"});  // it is in the shared one already
  add({"--die-with-parent", "--new-session", "--clearenv", "--hostname", "sandbox"});
  add({"--uid", "1000", "--gid", "1000", "--cap-drop", "ALL"});
  add({"--json-status-fd", std::to_string(kBoxStatusFd)});
  add({"--seccomp", std::to_string(kBoxSeccompFd)});
  add({"--args", std::to_string(kBoxEnvironmentFd)});

  // bwrap reads the whole table of mounts for each one it binds or makes read-only: first what
  // needs many of those, while the table is short.
  add({"--proc", "/proc"});
  // bwrap thinks of some of kReadOnlyProc, but not where its user is the host's root under another
  // name. All of it read-only is one mount instead of eight, which were a quarter of bwrap's time;
  // a process loses the words about itself (oom_score_adj, the names of its other threads).
  const auto mask = [&](const std::vector<std::string>& places, const std::string& by) {
    for (const std::string& at : places) add({"--ro-bind", by, at});
  };
  mask(host.proc_masked_files, "/dev/null");
  mask(host.proc_masked_dirs, host.empty.string());
  if (!spec.user) {
    mask(host.proc_closed_files, "/dev/null");
    mask(host.proc_closed_dirs, host.empty.string());
  }
  add({"--remount-ro", "/proc"});
  add_devices(host, a);
  for (const std::string& dir : host.dirs) add({"--ro-bind", dir, dir});
  for (const auto& [link, target] : host.links) add({"--symlink", target, link});
  add({"--ro-bind", host.etc.string(), "/etc"});
  for (const std::string& dir : host.etc_shown) add({"--ro-bind", dir, dir});
  if (spec.network && !host.resolver.empty()) add({"--ro-bind", host.resolver, "/etc/resolv.conf"});
  for (const char* at : {"/tmp", "/dev/shm", "/run", "/home"}) {
    if (0 < spec.memory_bytes) add({"--size", std::to_string(spec.memory_bytes)});
    const std::string_view place = at;
    const bool shared = place == "/tmp" || place == "/dev/shm";
    add({"--perms", shared ? "1777" : "0755", "--tmpfs", at});
  }
  add({"--dir", "/home/proctor", "--symlink", "/tmp", "/var/tmp"});
  add({spec.workspace_read_only ? "--ro-bind" : "--bind", spec.workspace.string(), kWorkspaceAt});
  for (const SandboxMount& m : outer_first(spec.mounts)) {
    add({m.writable ? "--bind" : "--ro-bind", m.host.string(), m.at});
  }
  // The root itself is a tmpfs of bwrap's: nothing to write there either.
  add({"--ro-bind", host.init.string(), kBubblewrapInitAt, "--remount-ro", "/"});
  // bwrap's own first process can be traced from inside, and with it the exit code be forged.
  // Where the workspace is closed meanwhile, init says so in the command's place: bwrap could not
  // start it, which would be the host's fault.
  add({"--as-pid-1", "--chdir", "/", "--", kBubblewrapInitAt, "--in", kWorkspaceAt});
  for (std::string& word : write_words(spec, {"/tmp", "/dev", "/run", "/home"}))
    a.push_back(std::move(word));
  add({"--"});
  a.insert(a.end(), spec.launcher.begin(), spec.launcher.end());
  add({"/bin/sh", "-c", command});
  return a;
}

std::string bubblewrap_environment(const SandboxSpec& spec) {
  std::string out;
  for (const auto& [name, value] : spec.env)
    for (const std::string_view word :
         {std::string_view("--setenv"), std::string_view(name), std::string_view(value)})
      out.append(word).push_back('\0');
  return out;
}

}  // namespace proctor
