#include "common/contract/contract_sections.h"

#include <algorithm>
#include <set>

#include "common/base/files.h"
#include "common/base/git_program.h"
#include "common/base/text.h"
#include "common/contract/dockerfile.h"

namespace proctor {
constexpr TextRule kPlaceRule{300, "host:port, *.domain:port or address:port, in lower case",
                              is_allowed_place};
constexpr std::size_t kPlacesMax = 256;

NetworkAccess read_network(const Fields& fields, std::string_view key) {
  NetworkAccess out;
  const Node* node = fields.find(key);
  if (node == nullptr || node->kind == Node::Kind::kScalar) {
    out.open = fields.flag(key, false);
    return out;
  }
  if (node->kind != Node::Kind::kMapping) {
    fields.problems().wrong(*node, fields.path(key), "true, false or {allow: [host:port, ...]}");
    return out;
  }
  const Fields f(*node, fields.path(key), kNetworkKeys, fields.problems());
  out.allow = f.texts("allow", kPlaceRule);
  const Node* list = f.find("allow");
  if (list == nullptr) {
    f.missing("allow", "a list of host:port");
  } else if (list->kind == Node::Kind::kSequence &&
             (list->items.empty() || kPlacesMax < list->items.size())) {
    f.problems().wrong(*list, f.path("allow"),
                       "1 to " + std::to_string(kPlacesMax) + " entries (no network: false)");
  }
  return out;
}

void read_network_of_phases(const Fields& fields, std::string_view key, Policy& out) {
  const Node* node = fields.find(key);
  if (node != nullptr && node->kind == Node::Kind::kMapping && node->find("allow") == nullptr) {
    const Fields f(*node, fields.path(key), kNetworkPhaseKeys, fields.problems());
    out.agent_network = read_network(f, "agent");
    out.check_network = read_network(f, "acceptance");
  } else {
    out.agent_network = out.check_network = read_network(fields, key);
  }
}

Json network_json(const NetworkAccess& access) {
  if (access.allow.empty()) return access.open;
  return {{"allow", access.allow}};
}

Json network_json(const Policy& policy) {
  if (policy.agent_network == policy.check_network) return network_json(policy.agent_network);
  return {{"agent", network_json(policy.agent_network)},
          {"acceptance", network_json(policy.check_network)}};
}

namespace {
using std::chrono::milliseconds;
constexpr milliseconds kLeast{1};

constexpr TextRule kSourceRule{
    kPathBytes, "a path, a URL or a .bundle file (https, http, ssh, git or file)", is_one_line};
constexpr TextRule kCommitRule{64, "a full commit id: 40 or 64 lower-case hex digits", is_commit};
constexpr TextRule kTreeRule{64, "a full tree id: 40 or 64 lower-case hex digits", is_commit};
constexpr TextRule kImageRule{
    500, "an image by digest, name@sha256:<64 hex digits>, or a mapping with a dockerfile",
    is_image};
constexpr TextRule kMethodImageRule{500, "an image by digest: name@sha256:<64 hex digits>",
                                    is_image};
constexpr TextRule kLocaleRule{100, "a locale such as C.UTF-8", is_locale};
constexpr TextRule kZoneRule{100, "a time zone such as UTC", is_locale};
constexpr TextRule kSecretRule{100, "the name of an environment variable of the worker",
                               is_variable};
constexpr TextRule kHostPathRule{kPathBytes, "an absolute path", is_absolute};
constexpr TextRule kToolchainAtRule{
    kPathBytes, "an absolute path that no part of the sandbox has for itself", is_free_place};
constexpr TextRule kResultFileRule{100, "a file name without folder", is_flat_name};

// A test that must pass belongs to one of the two lists, once.
void refuse_shared_ids(const Fields& f, const Check& check) {
  const std::set<std::string> first(check.fail_to_pass.begin(), check.fail_to_pass.end());
  f.each("pass_to_pass", [&](const Node& item, const std::string& where) {
    if (item.kind == Node::Kind::kScalar && first.contains(item.text))
      f.problems().wrong(item, where, "a test id that is not in fail_to_pass too");
  });
}

void read_result(const Fields& f, Check& check) {
  check.reader = f.choice("result", ResultReader::kExitCode, kReaderWords);
  check.result_file = f.text("result_file", Need::kMay, kResultFileRule);
  check.fail_to_pass = f.texts("fail_to_pass", kTestIdRule);
  check.pass_to_pass = f.texts("pass_to_pass", kTestIdRule);
  check.others_may_fail = f.flag("others_may_fail", false);
  refuse_shared_ids(f, check);
  if (check.reader != ResultReader::kExitCode) {
    if (f.find("result_file") == nullptr)
      f.missing("result_file", "the file in $PROCTOR_RESULTS that the command writes");
    return;
  }
  for (const std::string_view key :
       {"result_file", "fail_to_pass", "pass_to_pass", "others_may_fail"})
    if (const Node* node = f.find(key))
      f.problems().wrong(*node, f.path(key), "nothing, or result: junit or tap beside it");
}

void read_program(const Fields& f, FileCollector& files, Check& check) {
  const Node* container = f.find("container");
  if (container == nullptr) {
    check.command = read_command(f, files, "PROCTOR_CONTRACT");
    return;
  }
  for (const std::string_view key : {"command", "script"})
    if (const Node* node = f.find(key))
      f.problems().wrong(*node, f.path(key), "either a container or a command beside it");
  check.container = read_container(*container, f.path("container"), f.problems());
  check.command = words_for_people(*check.container);
  if (f.choice("result", ResultReader::kExitCode, kReaderWords) != ResultReader::kExitCode)
    f.problems().wrong(*f.find("result"), f.path("result"),
                       "exit_code, because it has a container");
}

Check read_check(const Node& node, const std::string& path, FileCollector& files,
                 Problems& problems) {
  const Fields f(node, path, kCheckKeys, problems);
  Check check;
  check.id = f.text("id", Need::kMust, kIdRule);
  read_program(f, files, check);
  check.kind = f.choice("kind", CheckKind::kUnit, kCheckKindWords);
  const bool builds = check.kind == CheckKind::kBuild || check.kind == CheckKind::kStatic;
  check.gate = f.choice("gate", builds ? Gate::kBuild : Gate::kFunctional, kGateWords);
  check.timeout = f.duration("timeout", check.timeout, kLeast);
  read_result(f, check);
  if (f.find("services") != nullptr) check.services = f.texts("services", kValueRule);
  return check;
}

// Folders of the host, each shown at a place of its own.
std::vector<Toolchain> read_toolchains(const Fields& f) {
  std::vector<Toolchain> out;
  std::set<std::string> places;
  f.each("toolchains", [&](const Node& item, const std::string& path) {
    const Fields t(item, path, kToolchainKeys, f.problems());
    Toolchain toolchain{t.text("path", Need::kMust, kHostPathRule),
                        t.text("at", Need::kMay, kToolchainAtRule)};
    if (toolchain.at.empty()) toolchain.at = toolchain.path;
    if (t.find("at") == nullptr && !toolchain.path.empty() && !is_free_place(toolchain.path))
      f.problems().wrong(*t.find("path"), t.path("path"),
                         std::string(kToolchainAtRule.expected) +
                             ", or beside it the place where it is shown (at: /opt/NAME)");
    if (!places.insert(toolchain.at).second)
      f.problems().wrong(item, path, "each place in the sandbox once");
    out.push_back(std::move(toolchain));
  });
  return out;
}

SetupStep read_step(const Node& item, const std::string& path, Keys keys, std::string_view files_at,
                    FileCollector& files, Problems& problems) {
  SetupStep step;
  if (item.kind == Node::Kind::kScalar) {
    step.command = read_text(item, path, kCommandRule, problems);
    return step;
  }
  const Fields f(item, path, keys, problems);
  step.command = read_command(f, files, files_at);
  step.timeout = f.duration("timeout", step.timeout, kLeast);
  step.network = read_network(f, "network");
  step.cache = f.flag("cache", true);
  if (std::ranges::find(keys, "inputs") != keys.end()) step.inputs = f.texts("inputs", kGlobRule);
  return step;
}
}  // namespace

bool is_plain_text(std::string_view text) {
  return is_utf8(text) && std::ranges::all_of(text, [](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return c == '\n' || c == '\t' || c == '\r' || (0x20 <= byte && byte != 0x7F);
         });
}

Repository read_repository(const Node& node, Problems& problems) {
  const Fields f(node, "repository", kRepositoryKeys, problems);
  Repository out;
  out.source = f.text("source", Need::kMust, kSourceRule);
  if (const std::string_view wanted = wanted_of(out.source);
      !out.source.empty() && !wanted.empty()) {
    std::string found = redact_urls(out.source);
    if (const std::size_t at = found.rfind('@'); at != std::string::npos)
      found.replace(0, at, "***");  // where a password begins is not known
    problems.add(f.at("source"), f.path("source"), "\"" + printable(found, 80) + "\"",
                 std::string(wanted));
    out.source.clear();
  }
  out.commit = f.text("commit", Need::kMust, kCommitRule);
  out.tree = f.text("tree", Need::kMay, kTreeRule);
  out.submodules = f.flag("submodules", false);
  return out;
}

Environment read_environment(const Node& node, FileCollector& files, Problems& problems) {
  const Fields f(node, "environment", kEnvironmentKeys, problems);
  Environment out;
  out.sandbox = f.choice("sandbox", Environment::Sandbox::kAuto, kSandboxWords);
  const Node* image = f.find("image");
  if (image != nullptr && image->kind == Node::Kind::kMapping) {
    out.build = read_image_build(*image, f.path("image"), files, problems);
    // Of one that is refused too: it is no contract without an image.
    out.image = out.build.value_or(ImageBuild{}).reference();
  } else {
    out.image = f.text("image", Need::kMay, kImageRule);
  }
  if (out.sandbox == Environment::Sandbox::kDocker && f.find("image") == nullptr)
    f.missing("image", "an image, by digest or from a Dockerfile, because the sandbox is docker");
  if ((out.sandbox == Environment::Sandbox::kBubblewrap ||
       out.sandbox == Environment::Sandbox::kNull) &&
      !out.image.empty())
    problems.wrong(*f.find("image"), f.path("image"), "no image in this sandbox");
  out.variables = f.table("variables", kVariableRule, kVariableValueRule);
  if (f.find("locale") != nullptr) out.locale = f.text("locale", Need::kMay, kLocaleRule);
  if (f.find("timezone") != nullptr) out.timezone = f.text("timezone", Need::kMay, kZoneRule);
  out.secrets = f.texts("secrets", kSecretRule);
  out.toolchains = read_toolchains(f);
  return out;
}

MethodEnvironment read_method_environment(const Node& node, const std::string& path,
                                          FileCollector& files, Problems& problems) {
  const Fields f(node, path, kMethodEnvironmentKeys, problems);
  MethodEnvironment out;
  out.image = f.text("image", Need::kMay, kMethodImageRule);
  out.variables = f.table("variables", kVariableRule, kVariableValueRule);
  out.secrets = f.texts("secrets", kSecretRule);
  for (const std::string& name : out.secrets)
    if (out.variables.contains(name))
      problems.wrong(*f.find("secrets"), f.path("secrets"),
                     "no variable beside it that is called " + name);
  out.toolchains = read_toolchains(f);
  out.network = read_network(f, "network");
  f.each("setup", [&](const Node& item, const std::string& where) {
    out.setup.push_back(
        read_step(item, where, kMethodSetupKeys, "PROCTOR_METHOD", files, problems));
  });
  return out;
}

std::vector<SetupStep> read_setup(const Fields& contract, FileCollector& files) {
  std::vector<SetupStep> out;
  contract.each("setup", [&](const Node& item, const std::string& path) {
    out.push_back(
        read_step(item, path, kSetupKeys, "PROCTOR_CONTRACT", files, contract.problems()));
  });
  return out;
}

std::vector<Check> read_checks(const Fields& contract, FileCollector& files) {
  std::vector<Check> out;
  std::set<std::string> ids;
  contract.each("checks", [&](const Node& item, const std::string& path) {
    Check check = read_check(item, path, files, contract.problems());
    if (!check.id.empty() && !ids.insert(check.id).second)
      contract.problems().wrong(*item.find("id"), path + ".id", "each check's id once");
    out.push_back(std::move(check));
  });
  const Node* checks = contract.find("checks");
  if (checks == nullptr) {
    contract.missing("checks", "a list of at least one check");
  } else if (checks->kind == Node::Kind::kSequence && checks->items.empty()) {
    contract.problems().add(checks->at, "checks", "no check", "a list of at least one check");
  }
  return out;
}

std::vector<AcceptanceFile> read_acceptance_files(const Fields& contract, FileCollector& files) {
  std::vector<AcceptanceFile> out;
  std::set<std::string> places;
  contract.each("acceptance_files", [&](const Node& item, const std::string& path) {
    AcceptanceFile file;
    if (item.kind == Node::Kind::kScalar) {
      file.from = file.to = files.add(item, path);
      if (!file.to.empty() && !is_work_file(file.to))
        contract.problems().wrong(item, path, std::string(kWorkFileRule.expected));
    } else {
      const Fields f(item, path, kAcceptanceFileKeys, contract.problems());
      if (const Node* from = f.find("from")) {
        file.from = files.add(*from, f.path("from"));
      } else {
        f.missing("from", "a file beside the contract");
      }
      file.to = f.text("to", Need::kMay, kWorkFileRule);
      if (file.to.empty()) file.to = file.from;
      if (f.find("to") == nullptr && !file.to.empty() && !is_work_file(file.to))
        f.problems().wrong(*f.find("from"), f.path("from"), std::string(kWorkFileRule.expected));
    }
    if (!file.to.empty() && !places.insert(file.to).second)
      contract.problems().wrong(item, path, "each place in the workspace once");
    out.push_back(std::move(file));
  });
  return out;
}

Policy read_policy(const Node& node, Problems& problems) {
  const Fields f(node, "policy", kPolicyKeys, problems);
  Policy out;
  constexpr std::uint64_t kMemoryLeast = std::uint64_t{1} << 20;
  read_network_of_phases(f, "network", out);
  out.writable = f.texts("writable", kWorkGlobRule);
  out.protected_ = f.texts("protected", kWorkGlobRule);
  out.ignored = f.texts("ignored", kWorkGlobRule);
  out.wall = f.duration("wall", out.wall, kLeast);
  out.memory_bytes = f.size("memory", out.memory_bytes, kMemoryLeast);
  out.processes = static_cast<std::uint32_t>(f.count("processes", out.processes, 1, 1'000'000));
  out.disk_bytes = f.size("disk", out.disk_bytes, kMemoryLeast);
  out.cpu = f.duration("cpu", out.cpu, milliseconds(0));
  out.isolation = f.choice("isolation", Isolation::kKernel, kIsolationWords);
  if (const Node* cpus = f.find("cpus")) {
    constexpr unsigned kDigits = 3;
    constexpr std::uint64_t kMost = 1'024'000;
    const auto n = parse_decimal(cpus->text, kDigits, kMost);
    if (n.ok()) {
      out.cpus = static_cast<double>(*n) / 1000;
    } else {
      problems.wrong(*cpus, "policy.cpus", n.error().detail);
    }
  }
  return out;
}

// The `container` of a check: a program of its own in an image.

namespace {
constexpr TextRule kContainerImageRule{500, "an image by digest: name@sha256:<64 hex digits>",
                                       is_image};
constexpr TextRule kFolderRule{kPathBytes, "an absolute path", is_absolute};
constexpr TextRule kMountPointRule{kPathBytes, "an absolute path, not of the container's own",
                                   is_free_in_container};
bool is_workspace_path(std::string_view text) {
  return text == "." || is_work_file(text);
}
constexpr TextRule kFromRule{kPathBytes, "a path of the workspace, or \".\" for all of it",
                             is_workspace_path};
constexpr std::size_t kWordsMax = 1000, kMountsMax = 100;

// A word may be empty, and the same word may come twice.
std::vector<std::string> read_words(const Fields& f, std::string_view key) {
  std::vector<std::string> out;
  f.each(key, [&](const Node& item, const std::string& path) {
    const bool fits = item.kind == Node::Kind::kScalar && item.text.size() <= kCommandBytes &&
                      item.text.find('\0') == std::string::npos && out.size() < kWordsMax;
    if (!fits)
      f.problems().wrong(item, path, "a word of a command, at most 64 KiB, of at most 1000");
    else
      out.push_back(item.text);
  });
  return out;
}

std::vector<ProgramContainer::Mount> read_container_mounts(const Fields& f) {
  std::vector<ProgramContainer::Mount> out;
  std::set<std::string> places;
  f.each("mounts", [&](const Node& item, const std::string& path) {
    const Fields m(item, path, kContainerMountKeys, f.problems());
    ProgramContainer::Mount mount{m.text("from", Need::kMust, kFromRule),
                                  m.text("at", Need::kMust, kMountPointRule),
                                  m.flag("writable", true)};
    if (!places.insert(mount.at).second || kMountsMax < places.size())
      f.problems().wrong(item, path, "each place in the container once, at most 100");
    out.push_back(std::move(mount));
  });
  return out;
}

void append_word(std::string& line, const std::string& word) {
  constexpr std::string_view kPlain = "-_./:=@%+,";
  const bool plain = !word.empty() && std::ranges::all_of(word, [&](char c) {
    return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') ||
           kPlain.find(c) != std::string_view::npos;
  });
  if (!line.empty()) line += ' ';
  if (plain) {
    line += word;
    return;
  }
  line += '\'';
  for (const char c : word) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
  line += '\'';
}
}  // namespace

ProgramContainer read_container(const Node& node, const std::string& path, Problems& problems) {
  const Fields f(node, path, kContainerKeys, problems);
  ProgramContainer out;
  out.image = f.text("image", Need::kMay, kContainerImageRule);
  out.entrypoint = read_words(f, "entrypoint");
  out.command = read_words(f, "command");
  out.working_dir = f.text("working_dir", Need::kMay, kFolderRule);
  out.variables = f.table("variables", kVariableRule, kVariableValueRule);
  out.mounts = read_container_mounts(f);
  return out;
}

std::string words_for_people(const ProgramContainer& container) {
  std::string line;
  for (const auto* words : {&container.entrypoint, &container.command})
    for (const std::string& word : *words) append_word(line, word);
  return line.empty() ? "the image's own program" : line;
}
}  // namespace proctor
