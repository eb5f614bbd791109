#include "worker/sandbox/docker_config.h"

#include <unistd.h>

#include <cmath>

#include "common/base/json.h"
#include "worker/sandbox/kernel_files.h"
#include "worker/sandbox/seccomp_filter.h"
#include "worker/sandbox/spec_rules.h"

namespace proctor {
namespace {
Json ulimit(const char* name, std::uint64_t value) {
  return {{"Name", name}, {"Soft", value}, {"Hard", value}};
}

// A value-less name takes a variable away that the image or the engine would set.
Json environment(const SandboxSpec& spec, const DockerImage& image) {
  Json env = Json::array();
  for (const auto& [name, value] : spec.env) env.push_back(name + "=" + value);
  if (spec.program) return env;  // beside the image's
  std::vector<std::string> others = image.env;
  others.insert(others.end(), {"PATH", "HOSTNAME"});
  for (const std::string& name : others)
    if (!name.empty() && !spec.env.contains(name)) env.push_back(name);
  return env;
}

Json bind_mount(const fs::path& host, const std::string& at, bool read_only) {
  return {{"Type", "bind"}, {"Source", host.string()}, {"Target", at}, {"ReadOnly", read_only}};
}

Json mounts(const SandboxSpec& spec, const fs::path& init) {
  Json out = Json::array();
  if (spec.program) {
    // It sees only what its own mounts show.
  } else if (!spec.workspace_volume.empty()) {
    out.push_back({{"Type", "volume"},
                   {"Source", spec.workspace_volume},
                   {"Target", kWorkspaceAt},
                   {"ReadOnly", spec.workspace_read_only},
                   {"VolumeOptions", {{"NoCopy", true}}}});
  } else {
    out.push_back(bind_mount(spec.workspace, kWorkspaceAt, spec.workspace_read_only));
  }
  for (const SandboxMount& m : outer_first(spec.mounts))
    out.push_back(bind_mount(m.host, m.at, !m.writable));
  out.push_back(bind_mount(init, kContainerInitAt, true));
  return out;
}

Json tmpfs(const SandboxSpec& spec) {
  const std::string size =
      0 < spec.memory_bytes ? ",size=" + std::to_string(spec.memory_bytes) : std::string();
  Json out = Json::object();
  if (spec.program) return out;
  for (const PrivateFolder& f : kPrivateFolders)
    out[f.at] = "rw,exec,nosuid,nodev" + size + ",mode=" + f.mode;
  return out;
}

// Output is streamed to us; a log of it would fill the engine's disk.  Of a command that may
// outlive us a bounded one is kept, in two files that take turns.
Json log_config(std::size_t bytes) {
  if (bytes == 0) return {{"Type", "none"}};
  return {{"Type", "local"},
          {"Config",
           {{"max-size", std::to_string(bytes) + "b"}, {"max-file", "2"}, {"compress", "false"}}}};
}

std::string network_mode(const SandboxSpec& spec) {
  if (spec.shared) return "container:" + spec.shared->holder();
  return spec.network ? "default" : "none";
}

Json host_config(const SandboxSpec& spec, const fs::path& init, std::size_t log_bytes) {
  // Open files stay at the engine's own limit: asking for more than it has fails every start.
  Json limits = Json::array({ulimit("core", 0)});
  if (0 < spec.file_bytes) limits.push_back(ulimit("fsize", spec.file_bytes));
  if (0 < spec.cpu.count()) limits.push_back(ulimit("cpu", cpu_seconds_of_one(spec)));
  Json host = {{"NetworkMode", network_mode(spec)},
               {"ReadonlyRootfs", !spec.program.has_value()},
               {"Tmpfs", tmpfs(spec)},
               {"Mounts", mounts(spec, init)},
               {"CapDrop", {"ALL"}},
               {"MaskedPaths", masked_paths()},
               {"ReadonlyPaths", kReadOnlyProc},
               {"SecurityOpt", {"no-new-privileges", "seccomp=" + seccomp_profile().dump()}},
               {"Init", false},  // the engine's own can be traced from inside
               {"AutoRemove", false},
               {"LogConfig", log_config(log_bytes)},
               {"RestartPolicy", {{"Name", "no"}}},
               {"Ulimits", std::move(limits)}};
  if (0 < spec.memory_bytes) {
    host["Memory"] = spec.memory_bytes;
    host["MemorySwap"] = spec.memory_bytes;
  }
  if (0 < spec.processes) host["PidsLimit"] = processes_limit(spec);
  if (0 < spec.cpus) host["NanoCpus"] = std::llround(spec.cpus * 1e9);
  return host;
}

// What is not said is the image's: the engine fills it in.
void run_program(const SandboxProgram& program, Json& config) {
  for (const char* key : {"Entrypoint", "Cmd", "WorkingDir"}) config.erase(key);
  // What it writes belongs to whoever runs it.
  config["User"] = std::to_string(::geteuid()) + ":" + std::to_string(::getegid());
  if (!program.entrypoint.empty()) config["Entrypoint"] = program.entrypoint;
  if (!program.command.empty() || !program.entrypoint.empty()) config["Cmd"] = program.command;
  if (!program.working_dir.empty()) config["WorkingDir"] = program.working_dir;
}
}  // namespace

Status check_docker_spec(const SandboxSpec& spec) {
  PROCTOR_CHECK_OK(check_image_spec("docker", spec));
  std::error_code ec;
  if (!spec.program && spec.workspace_volume.empty() &&
      (!spec.workspace.is_absolute() || !fs::is_directory(spec.workspace, ec))) {
    return Error{Errc::kInvalid, "docker sandbox: neither a workspace volume nor a host folder"};
  }
  return ok_status();
}

std::string container_config(const SandboxSpec& spec, const DockerImage& image,
                             const fs::path& init, const std::string& owner,
                             const std::string& command, std::size_t log_bytes) {
  Json entrypoint = {kContainerInitAt};
  if (0 < log_bytes) {  // it may outlive us
    entrypoint.push_back("--disk");
    entrypoint.push_back(kWorkspaceAt);
  }
  for (std::string& word : init_words(spec)) entrypoint.push_back(std::move(word));
  entrypoint.push_back("--");
  for (const std::string& word : spec.launcher) entrypoint.push_back(word);
  entrypoint.push_back("/bin/sh");
  Json config = {{"Image", image.id},
                 {"Hostname", kContainerHostname},
                 {"User", "0:0"},
                 {"WorkingDir", kWorkspaceAt},
                 {"Env", environment(spec, image)},
                 {"Entrypoint", std::move(entrypoint)},
                 {"Cmd", shell_arguments(spec, command)},
                 {"AttachStdin", false},
                 {"AttachStdout", true},
                 {"AttachStderr", true},
                 {"Tty", false},
                 {"OpenStdin", false},
                 {"NetworkDisabled", !spec.network && !spec.shared},
                 {"Healthcheck", {{"Test", {"NONE"}}}},
                 {"Labels", {{"proctor.owner", owner}, {"proctor.attempt", spec.label}}},
                 {"HostConfig", host_config(spec, init, log_bytes)}};
  if (spec.shared) config.erase("Hostname");  // is the holder's
  if (spec.program) run_program(*spec.program, config);
  return config.dump(-1, Json::Utf8::kReplace);
}

std::string holder_config(const DockerImage& image, const fs::path& dir, const std::string& owner,
                          const std::string& label) {
  SandboxSpec spec;
  constexpr std::uint64_t kMemory = std::uint64_t{32} << 20;
  spec.label = label;
  spec.memory_bytes = kMemory;
  spec.program.emplace();
  Json host = host_config(spec, dir / "holder", 0);
  host["ReadonlyRootfs"] = true;
  host["PidsLimit"] = 2;
  host["Mounts"].push_back(bind_mount(dir, kHolderAt, true));
  const Json config = {{"Image", image.id},
                       {"Hostname", kContainerHostname},
                       {"User", "0:0"},
                       {"WorkingDir", "/"},
                       {"Env", image.env},
                       {"Entrypoint", {kContainerInitAt, std::string(kHolderAt) + "/socket"}},
                       {"Cmd", Json::array()},
                       {"NetworkDisabled", true},
                       {"Healthcheck", {{"Test", {"NONE"}}}},
                       {"Labels", {{"proctor.owner", owner}, {"proctor.attempt", label}}},
                       {"HostConfig", std::move(host)}};
  return config.dump(-1, Json::Utf8::kReplace);
}
}  // namespace proctor
