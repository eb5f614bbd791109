#include "common/contract/contract_sections.h"

#include <algorithm>
#include <set>

#include "common/base/files.h"
#include "common/base/git_program.h"
#include "common/base/text.h"
#include "common/contract/dockerfile.h"

namespace proctor {
void read_node(const Fields& from, const Node& node, const std::string& path, NetworkAccess& out) {
  constexpr std::size_t kMost = 256;
  Problems& problems = from.problems();
  if (node.kind != Node::Kind::kMapping) {
    const bool word = node.kind == Node::Kind::kScalar && !node.quoted;
    out.open = word && node.text == "true";
    if (!word || (!out.open && node.text != "false"))
      problems.wrong(node, path,
                     node.kind == Node::Kind::kScalar ? "true or false"
                                                      : "true, false or {allow: [host:port, ...]}");
    return;
  }
  read_fields(node, path, problems, out);
  const Node* list = node.find("allow");
  if (list == nullptr)
    problems.add(node.at, path + ".allow", "nothing", "a list of host:port");
  else if (list->kind == Node::Kind::kSequence &&
           (list->items.empty() || kMost < list->items.size()))
    problems.wrong(*list, path + ".allow",
                   "1 to " + std::to_string(kMost) + " entries (no network: false)");
}

void read_network(const Fields& policy, Policy& out) {
  const Node* node = policy.find("network");
  if (node == nullptr) return;
  const std::string path = policy.path("network");
  NetworkOfPhases phases;
  if (node->kind == Node::Kind::kMapping && node->find("allow") == nullptr) {
    read_fields(*node, path, policy.problems(), phases);
  } else {
    read_node(policy, *node, path, phases.agent);
    phases.acceptance = phases.agent;
  }
  out.agent_network = phases.agent;
  out.check_network = phases.acceptance;
}

Json node_json(const NetworkAccess& access) {
  if (access.allow.empty()) return access.open;
  return {{"allow", access.allow}};
}

Json network_json(const Policy& policy) {
  if (policy.agent_network == policy.check_network) return node_json(policy.agent_network);
  return node_json(NetworkOfPhases{policy.agent_network, policy.check_network});
}

void check_source(const Fields& f, Repository& out) {
  const std::string_view wanted = wanted_of(out.source);
  if (out.source.empty() || wanted.empty()) return;
  std::string found = redact_urls(out.source);
  if (const std::size_t at = found.rfind('@'); at != std::string::npos)
    found.replace(0, at, "***");  // where a password begins is not known
  f.complain("source", "\"" + printable(found, 80) + "\"", std::string(wanted));
  out.source.clear();
}

void check_toolchain(const Fields& f, const Toolchain& toolchain) {
  if (f.find("at") == nullptr && !toolchain.path.empty() && !is_free_place(toolchain.path))
    f.wrong("path", std::string(kToolchainAtRule.expected) +
                        ", or beside it the place where it is shown (at: /opt/NAME)");
}

void read_image(const Fields& f, Environment& out) {
  constexpr TextRule kImageRule{
      500, "an image by digest, name@sha256:<64 hex digits>, or a mapping with a dockerfile",
      is_image};
  using Sandbox = Environment::Sandbox;
  const Node* image = f.find("image");
  if (image != nullptr && image->kind == Node::Kind::kMapping) {
    out.build = read_image_build(*image, f.path("image"), *f.files(), f.problems());
    // Of one that is refused too: it is no contract without an image.
    out.image = out.build.value_or(ImageBuild{}).reference();
  } else {
    f("image", out.image, kImageRule);
  }
  if (out.sandbox == Sandbox::kDocker && image == nullptr)
    f.missing("image", "an image, by digest or from a Dockerfile, because the sandbox is docker");
  if ((out.sandbox == Sandbox::kBubblewrap || out.sandbox == Sandbox::kNull) && !out.image.empty())
    f.wrong("image", "no image in this sandbox");
}

Json image_json(const Environment& e) {
  return e.build ? node_json(*e.build) : Json(e.image);
}

namespace {
void read_any_step(const Fields& from, const Node& node, const std::string& path, auto& out) {
  if (node.kind == Node::Kind::kScalar)
    out.command = read_text(node, path, kCommandRule, from.problems());
  else
    read_fields(node, path, from.problems(), out, from.files());
}
}  // namespace

void read_node(const Fields& from, const Node& node, const std::string& path, SetupStep& out) {
  read_any_step(from, node, path, out);
}
void read_node(const Fields& from, const Node& node, const std::string& path, MethodStep& out) {
  read_any_step(from, node, path, out);
}

void read_step(const Fields& f, SetupStep& out) {
  out.command = read_command(f);
}

void read_method_setup(const Fields& f, MethodEnvironment& out) {
  std::vector<MethodStep> steps;
  f("setup", steps);
  out.setup.assign(steps.begin(), steps.end());
}

void check_secrets(const Fields& f, const MethodEnvironment& environment) {
  for (const std::string& name : environment.secrets)
    if (environment.variables.contains(name))
      f.wrong("secrets", "no variable beside it that is called " + name);
}

namespace {
void append_word(std::string& line, const std::string& word) {
  constexpr std::string_view kPlain = "-_./:=@%+,";
  const bool plain = !word.empty() && std::ranges::all_of(word, [&](char c) {
    return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') ||
           kPlain.find(c) != std::string_view::npos;
  });
  if (!line.empty()) line += ' ';
  line += plain ? word : shell_quoted(word);
}
}  // namespace

std::string words_for_people(const ProgramContainer& container) {
  std::string line;
  for (const auto* words : {&container.entrypoint, &container.command})
    for (const std::string& word : *words) append_word(line, word);
  return line.empty() ? "the image's own program" : line;
}

void read_program(const Fields& f, const std::optional<ProgramContainer>& container,
                  std::string& command) {
  if (f.find("container") == nullptr) {
    command = read_command(f);
    return;
  }
  for (const std::string_view key : {"command", "script"})
    f.wrong(key, "either a container or a command beside it");
  if (container) command = words_for_people(*container);
}

void check_readiness(const Fields& f, const Readiness&) {
  const bool port = f.find("port") != nullptr, command = f.find("command") != nullptr;
  if (port && command) f.wrong("port", "either a port or a command beside it");
  if (!port && !command) f.missing("port", "a port that accepts, or a command that ends with 0");
}

void check_service(const Fields& f, const Service&) {
  if (f.find("container") != nullptr)
    f.wrong("variables", "container.variables, because it has a container");
}

void usual_gate(const Fields&, Check& out) {
  const bool builds = out.kind == CheckKind::kBuild || out.kind == CheckKind::kStatic;
  out.gate = builds ? Gate::kBuild : Gate::kFunctional;
}

void check_result(const Fields& f, const Check& check) {
  if (f.find("container") != nullptr && check.reader != ResultReader::kExitCode)
    f.wrong("result", "exit_code, because it has a container");
  // A test that must pass belongs to one of the two lists, once.
  const std::set<std::string> first(check.fail_to_pass.begin(), check.fail_to_pass.end());
  f.each("pass_to_pass", [&](const Node& item, const std::string& where) {
    if (item.kind == Node::Kind::kScalar && first.contains(item.text))
      f.problems().wrong(item, where, "a test id that is not in fail_to_pass too");
  });
  if (check.reader != ResultReader::kExitCode) {
    if (f.find("result_file") == nullptr)
      f.missing("result_file", "the file in $PROCTOR_RESULTS that the command writes");
    return;
  }
  for (const std::string_view key :
       {"result_file", "fail_to_pass", "pass_to_pass", "others_may_fail"})
    f.wrong(key, "nothing, or result: junit or tap beside it");
}

void read_node(const Fields& from, const Node& node, const std::string& path, AcceptanceFile& out) {
  if (node.kind != Node::Kind::kScalar)
    return read_fields(node, path, from.problems(), out, from.files());
  out.from = out.to = from.files()->add(node, path);
  if (!out.to.empty() && !is_work_file(out.to))
    from.problems().wrong(node, path, std::string(kWorkFileRule.expected));
}

void check_place(const Fields& f, const AcceptanceFile& file) {
  if (f.find("to") == nullptr && !file.to.empty() && !is_work_file(file.to))
    f.wrong("from", std::string(kWorkFileRule.expected));
}

void check_suite(const Fields& f, const TestSuite& suite) {
  if (suite.command.find("PROCTOR_CONTRACT") != std::string::npos)
    f.wrong("command", "a command without $PROCTOR_CONTRACT, whose files no agent is shown");
}

bool is_plain_text(std::string_view text) {
  return is_utf8(text) && std::ranges::all_of(text, [](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return c == '\n' || c == '\t' || c == '\r' || (0x20 <= byte && byte != 0x7F);
         });
}
}  // namespace proctor
