#include "worker/shell/sandbox_dress.h"

#include <algorithm>

#include <cstdlib>
#include <string_view>

#include "common/base/parse.h"

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
bool names_in_place(std::string_view command, std::string_view path) {
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

bool is_of_name(char c) {
  return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') || c == '_' ||
         c == '-' || c == '.';
}

// Does `text` have `path` in it as a word, wherever its folder is said?  "cd $PROCTOR_CONTRACT; cmp
// a.txt b" and Python's `root / "a.txt"` do.
bool has_word(std::string_view text, std::string_view path) {
  for (std::size_t at = text.find(path); at != std::string_view::npos;
       at = text.find(path, at + 1)) {
    const std::size_t end = at + path.size();
    if ((at == 0 || !is_of_name(text[at - 1])) && (end == text.size() || !is_of_name(text[end])))
      return true;
  }
  return false;
}

bool names(std::string_view text, std::string_view path) {
  return has_word(text, path) || names_in_place(text, path);
}

// Paths of the contract's files that these commands name, or files that they name: a judge's script
// reads what it compares with.
std::set<std::string> reached(const Contract& contract, std::vector<std::string_view> texts) {
  std::set<std::string> out;
  for (; !texts.empty();) {
    const std::string_view text = texts.back();
    texts.pop_back();
    for (const ReferencedFile& file : contract.files)
      if (!out.contains(file.path) && names(text, file.path)) {
        out.insert(file.path);
        texts.push_back(file.bytes);
      }
  }
  return out;
}
}  // namespace

std::set<std::string> shown_to_setup(const Contract& contract) {
  std::vector<std::string_view> setup, judges;
  for (const auto& step : contract.setup) setup.push_back(step.command);
  for (const auto& check : contract.checks) judges.push_back(check.command);
  for (const auto& service : contract.services) judges.push_back(service.command);
  const std::set<std::string> of_setup = reached(contract, setup);
  const std::set<std::string> of_judges = reached(contract, judges);
  std::set<std::string> out;
  for (const ReferencedFile& file : contract.files) {
    const bool judges_itself = std::ranges::any_of(
        contract.acceptance_files, [&](const AcceptanceFile& f) { return f.from == file.path; });
    if (judges_itself || !shown_to_commands(contract, file)) continue;
    if (of_setup.contains(file.path) || !of_judges.contains(file.path)) out.insert(file.path);
  }
  return out;
}

void have_git_look_closely(std::map<std::string, std::string>& env) {
  constexpr unsigned kMost = 1'000;
  unsigned count = 0;
  if (const auto own = env.find("GIT_CONFIG_COUNT"); own != env.end()) {
    const auto said = whole_number<unsigned>(own->second);
    // What git itself would refuse is the contract's to mend.
    if (!said || kMost < *said) return;
    count = *said;
  }
  const auto set = [&](const char* key, const char* value) {
    const std::string number = std::to_string(count++);
    env["GIT_CONFIG_KEY_" + number] = key;
    env["GIT_CONFIG_VALUE_" + number] = value;
  };
  set("core.checkStat", "default");
  set("core.trustctime", "true");
  env["GIT_CONFIG_COUNT"] = std::to_string(count);
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

Environment environment_of_agent(const Contract& contract, const Method& method) {
  Environment out = contract.environment;
  const std::string& image = method.environment.image;
  if (image.empty()) return out;
  out.sandbox = Environment::Sandbox::kDocker;  // whatever runs images here
  out.image = image;
  return out;
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
