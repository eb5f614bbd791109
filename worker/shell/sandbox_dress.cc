#include "worker/shell/sandbox_dress.h"

#include <algorithm>

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

Status add_secrets(std::map<std::string, std::string>& env, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
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

namespace {

// "$PROCTOR_CONTRACT/a/b", "${PROCTOR_CONTRACT}/a", "$PROCTOR_CONTRACT"/a: does `command` name this
// file, or a folder that holds it?
bool names(std::string_view command, std::string_view path) {
  constexpr std::string_view kVariable = "PROCTOR_CONTRACT";
  constexpr std::string_view kBetween = "}\"'/";
  for (std::size_t at = command.find(kVariable); at != std::string_view::npos;
       at = command.find(kVariable, at + 1)) {
    std::string_view rest = command.substr(at + kVariable.size());
    rest.remove_prefix(std::min(rest.find_first_not_of(kBetween), rest.size()));
    for (std::size_t end = path.find('/');; end = path.find('/', end + 1)) {
      const std::string_view part = path.substr(0, end);
      const bool whole =
          rest.starts_with(part) &&
          (rest.size() == part.size() ||
           std::string_view("/ \t\n\"';&|)<>*").find(rest[part.size()]) != std::string_view::npos);
      if (whole) return true;
      if (end == std::string_view::npos) break;
    }
  }
  return false;
}

}  // namespace

bool shown_to_setup(const Contract& contract, const ReferencedFile& file) {
  if (!shown_to_commands(contract, file)) return false;
  const auto named = [&](const auto& user) { return names(user.command, file.path); };
  if (std::ranges::any_of(contract.acceptance_files,
                          [&](const AcceptanceFile& f) { return f.from == file.path; }))
    return false;
  if (std::ranges::any_of(contract.setup, named)) return true;
  return std::ranges::none_of(contract.checks, named) &&
         std::ranges::none_of(contract.services, named);
}

void dress_for_method(SandboxSpec& spec, const MethodEnvironment& method, SandboxKind kind,
                      const std::filesystem::path& made) {
  std::string path;
  if (!made.empty()) {
    spec.mounts.push_back({made, kAgentAt, false, true});
    spec.env["PROCTOR_AGENT"] = kAgentAt;
    path = std::string(kAgentAt) + "/bin:";
  }
  for (const Toolchain& toolchain : method.toolchains) {
    path += shown_at(toolchain) + "/bin:";
    const bool there = std::ranges::any_of(
        spec.mounts, [&](const SandboxMount& m) { return m.at == shown_at(toolchain); });
    if (!there) spec.mounts.push_back({toolchain.path, shown_at(toolchain), false, true});
  }
  if (!runs_images(kind)) spec.env["PATH"].insert(0, path);
  for (const auto& [name, value] : method.variables) spec.env[name] = value;
}

SandboxSpec dress_sandbox(const Contract& contract, SandboxKind kind, std::uint32_t seed) {
  SandboxSpec spec;
  spec.image = runs_images(kind) ? contract.environment.image : "";
  spec.env = sandbox_environment(contract.environment, kind, seed);
  for (const Toolchain& toolchain : contract.environment.toolchains) {
    spec.mounts.push_back({toolchain.path, shown_at(toolchain), false, true});
  }
  spec.memory_bytes = contract.policy.memory_bytes;
  spec.processes = contract.policy.processes;
  spec.cpus = contract.policy.cpus;
  spec.cpu = contract.policy.cpu;
  spec.file_bytes = contract.policy.disk_bytes;
  return spec;
}

}  // namespace proctor
