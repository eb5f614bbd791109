#include "worker/selftest/isolation_rules.h"

#include <algorithm>
#include <string_view>

#include "common/base/text.h"

namespace proctor {
namespace {

// Is `path` the folder `folder`, or in it?
bool lies_in(std::string_view path, std::string_view folder) {
  if (folder == "/") return true;
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

std::string value_of(const std::map<std::string, std::string>& all, const char* key) {
  const auto it = all.find(key);
  return it == all.end() ? "" : it->second;
}

void check_namespaces(const ProcessView& inside, const ProcessView& host,
                      const std::vector<std::string>& own, std::vector<std::string>& broken) {
  for (const std::string& name : own) {
    const std::string here = value_of(host.namespaces, name.c_str());
    if (here.empty()) continue;  // this kernel has no such kind
    const std::string there = value_of(inside.namespaces, name.c_str());
    if (there == here) broken.push_back("the " + name + " namespace is the host's");
    if (there.empty()) broken.push_back("the " + name + " namespace is not to be seen");
  }
}

bool is_empty_set(std::string_view hex) {
  return !hex.empty() && hex.find_first_not_of('0') == std::string_view::npos;
}

void check_rights(const ProcessView& inside, const ProcessView& host, bool host_root,
                  std::vector<std::string>& broken) {
  if (value_of(inside.status, "Seccomp") != "2")
    broken.emplace_back("there is no filter of system calls");
  if (value_of(inside.status, "NoNewPrivs") != "1")
    broken.emplace_back("set-id programs would be obeyed (no_new_privs is off)");
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"})
    if (const std::string held = value_of(inside.status, set); !is_empty_set(held))
      broken.push_back("capabilities are kept (" + std::string(set) + " " + held + ")");
  const bool root = (value_of(inside.status, "Uid") + "\t").starts_with("0\t");
  const bool same_users = value_of(inside.namespaces, "user") == value_of(host.namespaces, "user");
  if (root && same_users && !host_root) broken.emplace_back("its user is the host's root");
}

// File systems of the kernel's own, and those that hold memory: what may be written there is for
// the attacks to try.
bool is_of_kernel(const MountView& m) {
  constexpr std::string_view kTypes[] = {"proc", "devpts", "mqueue", "tmpfs"};
  return std::ranges::find(kTypes, m.type) != std::end(kTypes);
}

// Bound one by one, read-only or not: nothing of the host is behind them.
bool is_plain_device(const MountView& m) {
  constexpr std::string_view kDevices[] = {"null",    "zero", "full",    "random",
                                           "urandom", "tty",  "console", "ptmx"};
  const std::string_view name = std::string_view(m.root).substr(m.root.rfind('/') + 1);
  return std::ranges::find(kDevices, name) != std::end(kDevices) && !lies_in(m.at, kWorkspaceAt);
}

void check_mounts(const ProcessView& inside, const ProcessView& host, const IsolationRules& rules,
                  std::vector<std::string>& broken) {
  const auto of_host = [&](const MountView& m) {
    // Terminals are each mount's own, wherever on the host we made that.
    const bool terminals = m.type == "devpts";
    return std::ranges::any_of(host.mounts, [&](const MountView& h) {
      return h.device == m.device && (!terminals || h.at == "/dev/pts");
    });
  };
  const MountView* root = nullptr;
  for (const MountView& m : inside.mounts) {
    if (m.at == "/") root = &m;
    if (m.type == "proc" && of_host(m)) broken.push_back(printable(m.at) + " is the host's /proc");
    if (!m.writable || m.at == "/" || is_plain_device(m)) continue;
    if (is_of_kernel(m) && !of_host(m)) continue;
    if (std::ranges::find(rules.writable, m.at) == rules.writable.end())
      broken.push_back(printable(m.at) + " of the host can be written");
  }
  if (root == nullptr || root->writable) broken.emplace_back("its root can be written");
}

void check_hidden(const ProcessView& inside, const std::vector<HostPlace>& hidden,
                  std::vector<std::string>& broken) {
  for (const MountView& m : inside.mounts) {
    const auto shown = std::ranges::find_if(hidden, [&](const HostPlace& place) {
      return place.device == m.device && lies_in(place.inside, m.root);
    });
    if (shown != hidden.end())
      broken.push_back(shown->path + " of the host is to be seen at " + printable(m.at));
  }
}

}  // namespace

IsolationRules isolation_rules(SandboxKind kind, const std::map<std::string, std::string>& limits,
                               const SandboxSpec& spec) {
  IsolationRules rules;
  rules.namespaces = {"mnt", "pid", "ipc", "uts"};
  if (!spec.network) rules.namespaces.emplace_back("net");
  if (kind == SandboxKind::kBubblewrap) rules.namespaces.emplace_back("cgroup");
  if (kind == SandboxKind::kBubblewrap || value_of(limits, "user_counts") == "namespace")
    rules.namespaces.emplace_back("user");
  // On version 1 the host's groups are shown, read-only, as the Docker Engine does.
  if (kind == SandboxKind::kOci && value_of(limits, "memory") == "cgroup2")
    rules.namespaces.emplace_back("cgroup");
  rules.host_root = runs_images(kind);
  rules.writable = {kWorkspaceAt};
  // Engines that let other containers share it mount it on the host; its ipc namespace is its own.
  if (kind == SandboxKind::kDocker) rules.writable.emplace_back("/dev/shm");
  for (const SandboxMount& m : spec.mounts)
    if (m.writable) rules.writable.push_back(m.at);
  return rules;
}

HostPlace host_place(const std::vector<MountView>& mounts, const std::string& path) {
  HostPlace out;
  out.path = path;
  std::size_t longest = 0;
  for (const MountView& m : mounts) {
    // The last of those at one place lies on top.
    if (!lies_in(path, m.at) || m.at.size() < longest) continue;
    longest = m.at.size();
    out.device = m.device;
    const std::string below = m.at == "/" ? path : path.substr(m.at.size());
    out.inside = (m.root == "/" ? "" : m.root) + (below == "/" ? "" : below);
    if (out.inside.empty()) out.inside = "/";
  }
  return out;
}

std::vector<std::string> broken_promises(const ProcessView& inside, const ProcessView& host,
                                         const IsolationRules& rules,
                                         const std::vector<HostPlace>& hidden) {
  std::vector<std::string> broken;
  check_namespaces(inside, host, rules.namespaces, broken);
  check_rights(inside, host, rules.host_root, broken);
  check_mounts(inside, host, rules, broken);
  check_hidden(inside, hidden, broken);
  return broken;
}

std::vector<std::string> broken_userspace(const ProcessView& kernel, const ProcessView& host,
                                          const SandboxSpec& spec) {
  std::vector<std::string> broken, own = {"mnt", "ipc", "uts", "user"};
  if (!spec.network && !spec.shared) own.emplace_back("net");
  check_namespaces(kernel, host, own, broken);
  if (value_of(kernel.status, "Seccomp") != "2")
    broken.emplace_back("there is no filter of system calls around its kernel");
  if (value_of(kernel.status, "NoNewPrivs") != "1")
    broken.emplace_back("set-id programs would be obeyed (no_new_privs is off)");
  return broken;
}

}  // namespace proctor
