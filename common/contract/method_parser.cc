#include "common/contract/method_parser.h"

#include "common/contract/canonical.h"
#include "common/contract/contract_digest.h"
#include "common/contract/contract_sections.h"
#include "common/contract/method_gateway.h"
#include "common/contract/rules.h"

namespace proctor {
namespace {

void read_overload_exit(const Fields& f, Method& out) {
  // Beyond 125 the shell speaks: not found, not executable, killed.
  if (f.find("overload_exit") != nullptr)
    out.overload_exit = static_cast<int>(f.count("overload_exit", 0, 1, 125));
}

bool is_kept_path(std::string_view text) {
  constexpr std::string_view kHome = "~/";
  if (text.starts_with(kHome)) text.remove_prefix(kHome.size());
  return is_work_glob(text);
}

void read_keep(const Fields& f, Method& out) {
  constexpr TextRule kKeepRule{
      kPathBytes,
      "a file or glob of the workspace such as \"logs/*.json\", or of the home: \"~/traj.json\"",
      is_kept_path};
  out.keep = f.texts("keep", kKeepRule);
  if (kKeptFiles < out.keep.size())
    f.problems().wrong(*f.find("keep"), f.path("keep"),
                       "at most " + std::to_string(kKeptFiles) + " entries");
  if (!out.container) return;
  for (const std::string& path : out.keep)
    if (path.starts_with('~'))
      f.problems().wrong(*f.find("keep"), f.path("keep"),
                         "paths of the workspace: a container has no home");
}

// A value in the file would stand for the worker's secret.
void refuse_shared_names(const Fields& f, const Method& out) {
  for (const std::string& name : out.environment.secrets)
    if (out.variables.contains(name))
      f.problems().wrong(*f.find("variables"), f.path("variables"),
                         name + " either here or in environment.secrets");
}

// A program that only its image knows has what it needs in there, but for what is the worker's.
void read_beside_container(const Fields& f, const Node& node, FileCollector& files, Method& out) {
  const std::string path = f.path("environment");
  out.environment = read_method_environment(node, path, files, f.problems());
  for (const Entry& e : node.entries)
    if (e.key != "secrets" && e.key != "network")
      f.problems().wrong(e.value, path + "." + e.key,
                         "secrets and network alone beside a container, which has its variables "
                         "and the rest in its image");
  if (out.environment.network.filtered())
    f.problems().wrong(*node.find("network"), path + ".network",
                       "true or false: the program of a container has the whole network or none");
  for (const std::string& name : out.environment.secrets)
    if (out.container->variables.contains(name))
      f.problems().wrong(*node.find("secrets"), path + ".secrets",
                         name + " either here or in container.variables");
}

void read_command_method(const Fields& f, const FileSource& source, Method& out) {
  FileCollector files(source, f.problems());
  if (const Node* container = f.find("container")) {
    for (const std::string_view key : {"command", "script", "variables", "files", "gateway"})
      if (const Node* n = f.find(key))
        f.problems().wrong(*n, f.path(key), "either a container or this beside it");
    out.container = read_container(*container, f.path("container"), f.problems());
    out.command = words_for_people(*out.container);
    if (out.container->image.empty())
      f.problems().add(container->at, f.path("container.image"), "nothing", "an image by digest");
    if (const Node* n = f.find("environment")) read_beside_container(f, *n, files, out);
    read_overload_exit(f, out);
    read_keep(f, out);
    return;
  }
  out.command = read_command(f, files, "PROCTOR_METHOD");
  out.variables = f.table("variables", kVariableRule, kVariableValueRule);
  f.each("files", [&](const Node& n, const std::string& where) { files.add(n, where); });
  if (const Node* n = f.find("environment"))
    out.environment = read_method_environment(*n, f.path("environment"), files, f.problems());
  refuse_shared_names(f, out);
  out.files = files.take();
  if (const Node* n = f.find("gateway"))
    out.gateway = read_gateway(*n, f.path("gateway"), f.problems());
  read_overload_exit(f, out);
  read_keep(f, out);
}

// How a model is reached is the worker's own affair (its models file); here is what is asked of it.
void read_single_shot(const Fields& f, Method& out) {
  constexpr std::uint64_t kAttemptsMost = 20, kTokensMost = 10'000'000;
  ModelCall& call = out.call;
  call.model = f.text("model", Need::kOptional, kValueRule);
  if (call.model.empty()) {
    for (const std::string_view key : {"provider", "attempts", "max_output_tokens", "call_timeout"})
      if (const Node* n = f.find(key))
        f.problems().wrong(*n, f.path(key), "a model beside it: without one nothing is called");
    return;
  }
  call.provider = f.text("provider", Need::kOptional, kValueRule);
  call.attempts = static_cast<std::uint32_t>(f.count("attempts", call.attempts, 1, kAttemptsMost));
  call.max_output_tokens = f.count("max_output_tokens", call.max_output_tokens, 1, kTokensMost);
  call.timeout = f.duration("call_timeout", call.timeout, std::chrono::milliseconds(1));
}

void only_of(const Fields& f, std::initializer_list<std::string_view> keys,
             std::initializer_list<std::string_view> kinds) {
  std::string who;
  for (const std::string_view kind : kinds)
    who += (who.empty() ? "\"" : " and \"") + std::string(kind) + "\"";
  who = kinds.size() == 1 ? "the kind " + who + " has" : "the kinds " + who + " have";
  for (const std::string_view key : keys)
    if (const Node* n = f.find(key))
      f.problems().wrong(*n, f.path(key), "nothing: only " + who + " it");
}

}  // namespace

Method read_method(const Node& node, const std::string& path, const FileSource& files,
                   Problems& problems) {
  const std::size_t before = problems.count();
  Method out;
  if (node.kind == Node::Kind::kScalar) {
    // `- noop` and `- reference`: name and kind in one word.
    out.name = node.text;
    if (node.text == "reference") {
      out.kind = Method::Kind::kReference;
    } else if (node.text != "noop") {
      problems.wrong(node, path, "noop, reference, or a mapping with name and command");
    }
  } else {
    const Fields f(node, path, kMethodKeys, problems);
    if (node.kind != Node::Kind::kMapping) return out;
    out.name = f.text("name", Need::kRequired, kIdRule);
    const bool has_command = f.find("command") != nullptr || f.find("script") != nullptr ||
                             f.find("container") != nullptr;
    if (!has_command && f.find("kind") == nullptr)
      f.missing("kind", "noop, reference, command, single_shot or tool_loop");
    out.kind =
        f.choice("kind", has_command ? Method::Kind::kCommand : Method::Kind::kNoop, kMethodWords);
    if (out.kind == Method::Kind::kCommand)
      read_command_method(f, files, out);
    else
      only_of(f,
              {"command", "script", "files", "variables", "overload_exit", "container",
               "environment", "keep", "gateway"},
              {"command"});
    const bool single_shot = out.kind == Method::Kind::kSingleShot,
               tool_loop = out.kind == Method::Kind::kToolLoop;
    if (single_shot) read_single_shot(f, out);
    if (tool_loop) read_tool_loop(f, out);
    if (!single_shot) only_of(f, {"attempts", "call_timeout"}, {"single_shot"});
    if (!tool_loop) only_of(f, {"as", "max_turns", "breakers"}, {"tool_loop"});
    if (!single_shot && !tool_loop)
      only_of(f, {"model", "provider", "max_output_tokens"}, {"single_shot", "tool_loop"});
  }
  if (problems.count() == before) out.digest = digest_of(out);
  return out;
}

}  // namespace proctor
