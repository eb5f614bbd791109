#include "worker/shell/sandbox_dress.h"

#include <cstdlib>

namespace proctor {
namespace {

std::string shown_at(const Toolchain& toolchain) {
  return toolchain.at.empty() ? toolchain.path : toolchain.at;
}

}  // namespace

std::map<std::string, std::string> sandbox_environment(const Environment& environment,
                                                       SandboxKind kind, std::uint32_t seed) {
  std::map<std::string, std::string> env;
  if (!runs_images(kind)) {
    std::string path;
    for (const Toolchain& toolchain : environment.toolchains) path += shown_at(toolchain) + "/bin:";
    env["PATH"] = path + "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  }
  env["HOME"] = kHomeAt;
  env["LANG"] = environment.locale;
  env["LC_ALL"] = environment.locale;
  env["TZ"] = environment.timezone;
  env["PROCTOR_SEED"] = std::to_string(seed);
  env["PYTHONHASHSEED"] = std::to_string(seed);
  env["PYTHONDONTWRITEBYTECODE"] = "1";  // __pycache__ would be part of every patch
  for (const auto& [name, value] : environment.variables) env[name] = value;
  return env;
}

Status add_secrets(std::map<std::string, std::string>& env, const Environment& environment) {
  for (const std::string& name : environment.secrets) {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr)
      return Error{Errc::kUnavailable, "secret " + name + " is not set on this worker"};
    env[name] = value;
  }
  return ok_status();
}

bool shown_to_commands(const Contract& contract, const ReferencedFile& file) {
  return file.path != contract.reference_patch && file.path != contract.single_shot;
}

SandboxSpec dress_sandbox(const Contract& contract, SandboxKind kind, std::uint32_t seed) {
  SandboxSpec spec;
  spec.image = runs_images(kind) ? contract.environment.image : "";
  spec.env = sandbox_environment(contract.environment, kind, seed);
  for (const Toolchain& toolchain : contract.environment.toolchains) {
    spec.mounts.push_back({toolchain.path, shown_at(toolchain), false});
  }
  spec.memory_bytes = contract.policy.memory_bytes;
  spec.processes = contract.policy.processes;
  spec.cpus = contract.policy.cpus;
  spec.cpu = contract.policy.cpu;
  spec.file_bytes = contract.policy.disk_bytes;
  return spec;
}

}  // namespace proctor
