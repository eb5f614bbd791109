#include "worker/selftest/isolation_rules.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

#include "common/base/parse.h"
#include "common/base/text.h"
#include "worker/sandbox/lean_host.h"

namespace proctor {
namespace {
constexpr std::array<const char*, 7> kNamespaces = {"mnt", "pid",  "net",   "ipc",
                                                    "uts", "user", "cgroup"};
}  // namespace

std::vector<MountView> parse_mountinfo(std::string_view text) {
  std::vector<MountView> out;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string id, parent, device, root, at, options, word, type;
    if (!(words >> id >> parent >> device >> root >> at >> options)) continue;
    while (words >> word && word != "-") {
    }
    if (!(words >> type)) continue;
    const bool writable = std::ranges::count(split(options, ','), std::string_view("ro")) == 0;
    out.push_back({device, unescaped_mount_word(root), unescaped_mount_word(at), type, writable});
  }
  return out;
}

std::string read_proc_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  try {
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  } catch (const std::ios_base::failure&) {
    return {};  // it ended between open and read
  }
}

Result<ProcessView> look_at_process(pid_t pid) {
  const fs::path dir = fs::path("/proc") / std::to_string(pid);
  ProcessView out;
  for (const char* name : kNamespaces) {
    std::error_code ec;
    const fs::path link = fs::read_symlink(dir / "ns" / name, ec);
    if (!ec) out.namespaces[name] = link.string();
    // A kernel without this kind of namespace has no such link.
    if (ec && ec != std::errc::no_such_file_or_directory)
      return Error{Errc::kUnavailable, "look at " + dir.string() + "/ns: " + ec.message()};
  }
  std::istringstream status(read_proc_file(dir / "status"));
  for (std::string line; std::getline(status, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::size_t value = line.find_first_not_of(" \t", colon + 1);
    out.status[line.substr(0, colon)] = value == std::string::npos ? "" : line.substr(value);
  }
  out.mounts = parse_mountinfo(read_proc_file(dir / "mountinfo"));
  if (out.status.empty() || out.namespaces.empty())
    return Error{Errc::kNotFound, dir.string() + " is gone"};
  if (out.mounts.empty())
    return Error{Errc::kUnavailable, dir.string() + "/mountinfo: not to be read"};
  return out;
}

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
