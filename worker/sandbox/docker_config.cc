#include "worker/sandbox/docker_config.h"

#include <cmath>

#include "common/base/json.h"
#include "worker/sandbox/mount_rules.h"

namespace proctor {
namespace {

// docker-init and the shell are processes too, but not the command's.
constexpr std::int64_t kOwnProcesses = 2;

Json ulimit(const char* name, std::uint64_t value) {
  return {{"Name", name}, {"Soft", value}, {"Hard", value}};
}

// A value-less name takes a variable away that the image or the engine would set.
Json environment(const SandboxSpec& spec, const DockerImage& image) {
  Json env = Json::array();
  for (const auto& [name, value] : spec.env) env.push_back(name + "=" + value);
  std::vector<std::string> others = image.env;
  others.insert(others.end(), {"PATH", "HOSTNAME"});
  for (const std::string& name : others) {
    if (!name.empty() && !spec.env.contains(name)) env.push_back(name);
  }
  return env;
}

Json mounts(const SandboxSpec& spec) {
  Json out = Json::array();
  if (!spec.workspace_volume.empty()) {
    out.push_back({{"Type", "volume"},
                   {"Source", spec.workspace_volume},
                   {"Target", kWorkspaceAt},
                   {"VolumeOptions", {{"NoCopy", true}}}});
  } else {
    out.push_back(
        {{"Type", "bind"}, {"Source", spec.workspace.string()}, {"Target", kWorkspaceAt}});
  }
  for (const SandboxMount& m : spec.mounts) {
    out.push_back({{"Type", "bind"},
                   {"Source", m.host.string()},
                   {"Target", m.at},
                   {"ReadOnly", !m.writable}});
  }
  return out;
}

Json tmpfs(const SandboxSpec& spec) {
  const std::string size =
      0 < spec.memory_bytes ? ",size=" + std::to_string(spec.memory_bytes) : std::string();
  const std::string common = "rw,exec,nosuid,nodev" + size;
  return {{"/tmp", common + ",mode=1777"},
          {"/run", common + ",mode=0755"},
          {"/home", common + ",mode=0755"},
          {"/home/proctor", common + ",mode=0755"}};
}

Json host_config(const SandboxSpec& spec) {
  // Open files stay at the engine's own limit: asking for more than it has fails every start.
  Json limits = Json::array({ulimit("core", 0)});
  if (0 < spec.file_bytes) limits.push_back(ulimit("fsize", spec.file_bytes));
  if (0 < spec.cpu.count()) {
    limits.push_back(ulimit("cpu", static_cast<std::uint64_t>(
                                       std::chrono::ceil<std::chrono::seconds>(spec.cpu).count())));
  }
  Json host = {{"NetworkMode", spec.network ? "default" : "none"},
               {"ReadonlyRootfs", true},
               {"Tmpfs", tmpfs(spec)},
               {"Mounts", mounts(spec)},
               {"CapDrop", {"ALL"}},
               {"SecurityOpt", {"no-new-privileges"}},
               {"Init", true},
               {"AutoRemove", false},
               // The output is streamed to us; a log of it would fill the engine's disk.
               {"LogConfig", {{"Type", "none"}}},
               {"RestartPolicy", {{"Name", "no"}}},
               {"Ulimits", std::move(limits)}};
  if (0 < spec.memory_bytes) {
    host["Memory"] = spec.memory_bytes;
    host["MemorySwap"] = spec.memory_bytes;
  }
  if (0 < spec.processes) host["PidsLimit"] = std::int64_t{spec.processes} + kOwnProcesses;
  if (0 < spec.cpus) host["NanoCpus"] = std::llround(spec.cpus * 1e9);
  return host;
}

}  // namespace

Status check_docker_spec(const SandboxSpec& spec) {
  if (spec.image.empty()) return Error{Errc::kInvalid, "docker sandbox: no image"};
  std::error_code ec;
  if (spec.workspace_volume.empty() &&
      (!spec.workspace.is_absolute() || !fs::is_directory(spec.workspace, ec))) {
    return Error{Errc::kInvalid, "docker sandbox: neither a workspace volume nor a host folder"};
  }
  PROCTOR_CHECK_OK(check_mounts(spec.mounts));
  return check_environment(spec.env);
}

std::string container_config(const SandboxSpec& spec, const DockerImage& image,
                             const std::string& owner, const std::string& command) {
  Json config = {{"Image", image.id},
                 {"Hostname", "sandbox"},
                 {"User", "0:0"},
                 {"WorkingDir", kWorkspaceAt},
                 {"Env", environment(spec, image)},
                 {"Entrypoint", {"/bin/sh", "-c"}},
                 {"AttachStdin", false},
                 {"AttachStdout", true},
                 {"AttachStderr", true},
                 {"Tty", false},
                 {"OpenStdin", false},
                 {"NetworkDisabled", !spec.network},
                 {"Healthcheck", {{"Test", {"NONE"}}}},
                 {"Labels", {{"proctor.owner", owner}, {"proctor.attempt", spec.label}}},
                 {"HostConfig", host_config(spec)}};
  // The runtime sets HOME from the image's passwd where nobody does.
  config["Cmd"] = spec.env.contains("HOME")
                      ? Json::array({command})
                      : Json::array({"unset HOME; exec /bin/sh -c \"$1\"", "sh", command});
  return config.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace proctor
