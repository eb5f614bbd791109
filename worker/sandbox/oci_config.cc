#include "worker/sandbox/oci_config.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>

#include "common/base/json.h"
#include "worker/sandbox/kernel_files.h"
#include "worker/sandbox/spec_rules.h"

namespace proctor {
namespace {
Json kernel_mount(const char* at, const char* type, const char* source, Json options) {
  return {{"destination", at}, {"type", type}, {"source", source}, {"options", std::move(options)}};
}

Json bind_mount(const fs::path& host, const std::string& at, bool writable) {
  return {{"destination", at},
          {"type", "bind"},
          {"source", host.string()},
          {"options", {"rbind", "rprivate", writable ? "rw" : "ro", "nosuid", "nodev"}}};
}

// Of the kernel in user space: /dev and terminals are its own, whatever is said here.
Json userspace_mounts() {
  // It has no read-only places within /proc.
  return Json::array({kernel_mount("/proc", "proc", "proc", {"nosuid", "noexec", "nodev", "ro"}),
                      kernel_mount("/sys", "tmpfs", "tmpfs", {"nosuid", "noexec", "nodev", "ro"}),
                      kernel_mount("/dev/shm", "tmpfs", "shm",
                                   {"nosuid", "noexec", "nodev", "mode=1777", "size=67108864"})});
}

// What every container has, as the Docker Engine mounts it.
Json kernel_mounts(const OciHost& host) {
  Json sys = kernel_mount("/sys", "sysfs", "sysfs", {"nosuid", "noexec", "nodev", "ro"});
  if (!host.sys.empty())
    sys =
        kernel_mount("/sys", "bind", host.sys.c_str(), {"bind", "nosuid", "noexec", "nodev", "ro"});
  return Json::array(
      {kernel_mount("/proc", "proc", "proc", {"nosuid", "noexec", "nodev"}),
       kernel_mount("/dev", "tmpfs", "tmpfs", {"nosuid", "strictatime", "mode=755", "size=65536k"}),
       kernel_mount("/dev/pts", "devpts", "devpts",
                    {"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5",
                     kTerminalsMost}),
       std::move(sys),
       kernel_mount("/sys/fs/cgroup", "cgroup", "cgroup", {"ro", "nosuid", "noexec", "nodev"}),
       kernel_mount("/dev/mqueue", "mqueue", "mqueue", {"nosuid", "noexec", "nodev"}),
       kernel_mount("/dev/shm", "tmpfs", "shm",
                    {"nosuid", "noexec", "nodev", "mode=1777", "size=67108864"})});
}

// Parents before what lies in them.
Json spec_mounts(const SandboxSpec& spec) {
  std::vector<Json> out;
  for (const PrivateFolder& f : kPrivateFolders) {
    if (spec.program) break;  // all of its root is
    Json options = {"rprivate", "rw", "exec", "nosuid", "nodev", "mode=" + std::string(f.mode)};
    if (0 < spec.memory_bytes) options.push_back("size=" + std::to_string(spec.memory_bytes));
    out.push_back(kernel_mount(f.at, "tmpfs", "tmpfs", std::move(options)));
  }
  if (!spec.program)
    out.push_back(bind_mount(spec.workspace, kWorkspaceAt, !spec.workspace_read_only));
  for (const SandboxMount& m : spec.mounts) out.push_back(bind_mount(m.host, m.at, m.writable));
  std::stable_sort(out.begin(), out.end(), [](const Json& a, const Json& b) {
    const auto depth = [](const Json& m) {
      const auto& at = m["destination"].string();
      return std::count(at.begin(), at.end(), '/');
    };
    return depth(a) < depth(b);
  });
  return out;
}

Json mounts(const SandboxSpec& spec, const OciHost& host) {
  Json out = host.userspace ? userspace_mounts() : kernel_mounts(host);
  out.push_back(bind_mount(host.init, kContainerInitAt, false));
  for (Json& m : spec_mounts(spec)) out.push_back(std::move(m));
  out.push_back(bind_mount(host.etc / "hostname", "/etc/hostname", false));
  // The Docker Engine leaves the image's own where there is no network.
  if (spec.network) {
    out.push_back(bind_mount(host.etc / "hosts", "/etc/hosts", false));
    out.push_back(bind_mount(host.resolver, "/etc/resolv.conf", false));
  }
  return out;
}

struct Limit {
  const char* type;
  std::uint64_t resource, value;
};

std::vector<Limit> limits_of(const SandboxSpec& spec, const OciHost& host) {
  std::vector<Limit> out = {{"RLIMIT_CORE", RLIMIT_CORE, 0},
                            {"RLIMIT_NOFILE", RLIMIT_NOFILE, host.open_files}};
  if (0 < spec.file_bytes) out.push_back({"RLIMIT_FSIZE", RLIMIT_FSIZE, spec.file_bytes});
  if (0 < spec.cpu.count()) out.push_back({"RLIMIT_CPU", RLIMIT_CPU, cpu_seconds_of_one(spec)});
  // The host's groups count the threads of that kernel, which counts processes itself.
  if (0 < spec.processes && host.userspace)
    out.push_back(
        {"RLIMIT_NPROC", RLIMIT_NPROC, static_cast<std::uint64_t>(processes_limit(spec))});
  return out;
}

Json rlimits(const SandboxSpec& spec, const OciHost& host) {
  Json out = Json::array();
  if (host.limits_itself) return out;
  for (const Limit& limit : limits_of(spec, host))
    out.push_back({{"type", limit.type}, {"soft", limit.value}, {"hard", limit.value}});
  return out;
}

Json device(int major, int minor) {
  return {{"allow", true}, {"type", "c"}, {"major", major}, {"minor", minor}, {"access", "rwm"}};
}

Json resources(const SandboxSpec& spec, const OciHost& host) {
  // null, zero, full, random, urandom, tty; the runtime adds the terminals of its own devpts.
  Json out = {{"devices",
               {Json{{"allow", false}, {"access", "rwm"}}, device(1, 3), device(1, 5), device(1, 7),
                device(1, 8), device(1, 9), device(5, 0)}}};
  if (0 < spec.memory_bytes && host.limit_memory)
    out["memory"] = {{"limit", spec.memory_bytes}, {"swap", spec.memory_bytes}};
  if (0 < spec.processes && host.limit_processes) out["pids"] = {{"limit", processes_limit(spec)}};
  if (0 < spec.cpus && host.limit_cpus) {
    constexpr std::int64_t kPeriodUs = 100'000;
    const auto quota = std::max<std::int64_t>(1'000, std::llround(spec.cpus * kPeriodUs));
    out["cpu"] = {{"quota", quota}, {"period", kPeriodUs}};
  }
  return out;
}

// Its namespaces are for runsc itself, which makes those it needs beside them.
Json userspace_section(const SandboxSpec& spec) {
  Json namespaces = Json::array();
  for (const char* type : {"mount", "uts", "pid", "ipc"}) namespaces.push_back({{"type", type}});
  if (!spec.network && !spec.shared) namespaces.push_back({{"type", "network"}});
  return {{"namespaces", std::move(namespaces)}};
}

Json id_mappings(const std::vector<UserCounts::Range>& ranges) {
  Json out = Json::array();
  for (const UserCounts::Range& r : ranges)
    out.push_back({{"containerID", r.first}, {"hostID", r.outside}, {"size", r.count}});
  return out;
}

Json linux_section(const SandboxSpec& spec, const OciHost& host) {
  if (host.userspace) return userspace_section(spec);
  Json namespaces = Json::array();
  for (const char* type : {"mount", "uts", "pid", "ipc"}) namespaces.push_back({{"type", type}});
  if (host.hide_groups) namespaces.push_back({{"type", "cgroup"}});
  Json out = {{"cgroupsPath", host.cgroups_path},
              {"resources", resources(spec, host)},
              {"maskedPaths", masked_paths()},
              {"readonlyPaths", kReadOnlyProc}};
  // A shared one the runtime is in already, and its settings are made.
  if (!spec.network && !spec.shared) {
    namespaces.push_back({{"type", "network"}});
    // A network of one's own, without any interface but lo: all of its ports may be used.
    out["sysctl"] = {{"net.ipv4.ip_unprivileged_port_start", "0"},
                     {"net.ipv4.ping_group_range", "0 2147483647"}};
  }
  if (host.counts != nullptr) {
    namespaces.push_back({{"type", "user"}, {"path", host.counts->path()}});
    // Its own, once more: a runtime wants to know them before it joins.
    out["uidMappings"] = id_mappings(host.counts->users());
    out["gidMappings"] = id_mappings(host.counts->groups());
  }
  out["namespaces"] = std::move(namespaces);
  return out;
}
}  // namespace

Result<SandboxSpec> with_image_program(SandboxSpec spec, const ImageConfig& image) {
  SandboxProgram& program = *spec.program;
  if (program.entrypoint.empty()) {
    program.entrypoint = image.entrypoint;
    if (program.command.empty()) program.command = image.command;
  }
  if (program.entrypoint.empty() && program.command.empty())
    return Error{Errc::kInvalid, "image " + spec.image + " has no program of its own"};
  if (program.working_dir.empty()) program.working_dir = image.working_dir;
  if (program.working_dir.empty()) program.working_dir = "/";
  // emplace keeps what the spec says.
  for (const std::string& entry : image.env) {
    const std::size_t equals = std::min(entry.find('='), entry.size());
    spec.env.emplace(entry.substr(0, equals),
                     equals == entry.size() ? "" : entry.substr(equals + 1));
  }
  spec.env.emplace("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
  spec.env.emplace("HOSTNAME", kContainerHostname);
  spec.env.emplace("HOME", "/root");
  return spec;
}

std::string for_first_process(std::string_view bytes) {
  const std::uint64_t size = bytes.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof size).append(bytes);
}

std::string oci_limits(const SandboxSpec& spec, const OciHost& host) {
  std::string all;
  if (host.limits_itself)
    for (const Limit& limit : limits_of(spec, host))
      for (const std::uint64_t number : {limit.resource, limit.value})
        all.append(reinterpret_cast<const char*>(&number), sizeof number);
  return for_first_process(all);
}

std::string oci_environment(const SandboxSpec& spec) {
  std::string all;
  for (const auto& [name, value] : spec.env) (all += name + "=" + value).push_back('\0');
  return for_first_process(all);
}

std::string oci_config(const SandboxSpec& spec, const OciHost& host, const std::string& command) {
  Json args = {kContainerInitAt};
  if (host.userspace) args.push_back("--userspace");
  if (!spec.program)
    for (std::string& word : init_words(spec)) args.push_back(std::move(word));
  args.push_back("--");
  for (const std::string& word : spec.launcher) args.push_back(word);
  if (spec.program) {
    for (const auto* words : {&spec.program->entrypoint, &spec.program->command})
      for (const std::string& word : *words) args.push_back(word);
  } else {
    args.push_back("/bin/sh");
    for (std::string& word : shell_arguments(spec, command)) args.push_back(std::move(word));
  }
  // Root inside, without a single capability: the owner of the workspace's files and no more, as
  // under Docker (docker.h).
  const Json config = {
      {"ociVersion", "1.0.2"},
      {"process",
       {{"terminal", false},
        {"user", {{"uid", 0}, {"gid", 0}, {"additionalGids", Json::array({0})}}},
        {"args", std::move(args)},
        {"env", Json::array()},  // this is a file; see oci_environment
        {"cwd", spec.program ? spec.program->working_dir : kWorkspaceAt},
        {"capabilities", Json::object()},
        {"rlimits", rlimits(spec, host)},
        {"noNewPrivileges", true}}},
      {"root", {{"path", host.rootfs.string()}, {"readonly", !spec.program.has_value()}}},
      {"hostname", kContainerHostname},
      {"mounts", mounts(spec, host)},
      {"linux", linux_section(spec, host)}};
  return config.dump(-1, Json::Utf8::kReplace);
}
}  // namespace proctor
