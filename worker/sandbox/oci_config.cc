#include "worker/sandbox/oci_config.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>

#include "common/base/json.h"
#include "common/base/parse.h"
#include "worker/sandbox/boxed_sandbox.h"
#include "worker/sandbox/kernel_files.h"
#include "worker/sandbox/seccomp_filter.h"
#include "worker/sandbox/spec_rules.h"

namespace proctor {
namespace {
struct Mount {
  std::string at, type, source, options;  // options with commas between
};
Json to_json(const Mount& m) {
  return {{"destination", m.at},
          {"type", m.type},
          {"source", m.source},
          {"options", split(m.options, ',')}};
}

Json bind_mount(const fs::path& host, const std::string& at, bool writable) {
  return to_json({at, "bind", host.string(),
                  writable ? "rbind,rprivate,rw,nosuid,nodev" : "rbind,rprivate,ro,nosuid,nodev"});
}

// As the Docker Engine mounts what every container has.
std::vector<Mount> kernel_mounts(const OciHost& host) {
  const Mount shm = {"/dev/shm", "tmpfs", "shm", "nosuid,noexec,nodev,mode=1777,size=67108864"};
  // In user space /dev and terminals are that kernel's own, whatever is said here, and /proc has no
  // read-only places.
  if (host.userspace)
    return {{"/proc", "proc", "proc", "nosuid,noexec,nodev,ro"},
            {"/sys", "tmpfs", "tmpfs", "nosuid,noexec,nodev,ro"},
            shm};
  Mount sys = {"/sys", "sysfs", "sysfs", "nosuid,noexec,nodev,ro"};
  if (!host.sys.empty()) sys = {"/sys", "bind", host.sys, "bind,nosuid,noexec,nodev,ro"};
  return {
      {"/proc", "proc", "proc", "nosuid,noexec,nodev"},
      {"/dev", "tmpfs", "tmpfs", "nosuid,strictatime,mode=755,size=65536k"},
      {"/dev/pts", "devpts", "devpts",
       std::string("nosuid,noexec,newinstance,ptmxmode=0666,mode=0620,gid=5,") + kTerminalsMost},
      sys,
      {"/sys/fs/cgroup", "cgroup", "cgroup", "ro,nosuid,noexec,nodev"},
      {"/dev/mqueue", "mqueue", "mqueue", "nosuid,noexec,nodev"},
      shm};
}

// Parents before what lies in them.
Json spec_mounts(const SandboxSpec& spec) {
  std::vector<Json> out;
  for (const PrivateFolder& f : kPrivateFolders) {
    if (spec.program) break;  // all of its root is
    std::string options = std::string("rprivate,rw,exec,nosuid,nodev,mode=") + f.mode;
    if (0 < spec.memory_bytes) options += ",size=" + std::to_string(spec.memory_bytes);
    out.push_back(to_json({f.at, "tmpfs", "tmpfs", options}));
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
  Json out = Json::array();
  for (const Mount& m : kernel_mounts(host)) out.push_back(to_json(m));
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

Json resources(const SandboxSpec& spec, const OciHost& host) {
  Json devices = Json::array({Json{{"allow", false}, {"access", "rwm"}}});
  // The runtime adds the terminals of its own devpts.
  for (const Device& d : kDevices)
    devices.push_back({{"allow", true},
                       {"type", "c"},
                       {"major", d.major},
                       {"minor", d.minor},
                       {"access", "rwm"}});
  Json out = {{"devices", std::move(devices)}};
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

// runsc is in those that are named here, and makes what it needs beside them.
Json namespaces(const SandboxSpec& spec, const OciHost& host) {
  std::vector<const char*> types = {"mount", "uts", "pid", "ipc"};
  if (host.hide_groups && !host.userspace) types.push_back("cgroup");
  // A shared one the runtime is in already, and its settings are made.
  if (!spec.network && !spec.shared) types.push_back("network");
  Json out = Json::array();
  for (const char* type : types) out.push_back({{"type", type}});
  if (host.counts != nullptr && !host.userspace)
    out.push_back({{"type", "user"}, {"path", host.counts->path()}});
  return out;
}

Json id_mappings(const std::vector<UserCounts::Range>& ranges) {
  Json out = Json::array();
  for (const UserCounts::Range& r : ranges)
    out.push_back({{"containerID", r.first}, {"hostID", r.outside}, {"size", r.count}});
  return out;
}

Json linux_section(const SandboxSpec& spec, const OciHost& host) {
  Json out = {{"namespaces", namespaces(spec, host)}};
  if (host.userspace) return out;
  out.update({{"cgroupsPath", host.cgroups_path},
              {"resources", resources(spec, host)},
              {"maskedPaths", masked_paths()},
              {"readonlyPaths", kReadOnlyProc}});
  // A network of one's own, without any interface but lo: all of its ports may be used.
  if (!spec.network && !spec.shared)
    out["sysctl"] = {{"net.ipv4.ip_unprivileged_port_start", "0"},
                     {"net.ipv4.ping_group_range", "0 2147483647"}};
  if (host.counts != nullptr) {
    // Its own, once more: a runtime wants to know them before it joins.
    out["uidMappings"] = id_mappings(host.counts->users());
    out["gidMappings"] = id_mappings(host.counts->groups());
  }
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
  if (host.watched)
    for (std::string& word : CallWatch::words(kBoxStatusFd)) args.push_back(std::move(word));
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
