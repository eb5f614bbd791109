#include "common/contract/contract_digest.h"

#include <cmath>

#include "common/contract/contract_sections.h"
#include "common/contract/method_parser.h"

namespace proctor {
namespace {
void put(Json& object, const char* key, const std::string& text) {
  if (!text.empty()) object[key] = text;
}
void put(Json& object, const char* key, const std::vector<std::string>& texts) {
  if (!texts.empty()) object[key] = texts;
}

Json repository_json(const Repository& r) {
  Json out = {{"source", r.source}, {"commit", r.commit}, {"submodules", r.submodules}};
  put(out, "tree", r.tree);
  return out;
}

void put(Json& object, const std::vector<Toolchain>& toolchains) {
  for (const Toolchain& t : toolchains)
    object["toolchains"].push_back({{"path", t.path}, {"at", t.at.empty() ? t.path : t.at}});
}

Json step_json(const SetupStep& s) {
  Json step = {{"command", s.command},
               {"timeout", format_duration(s.timeout)},
               {"network", network_json(s.network)}};
  if (!s.cache) step["cache"] = false;
  if (!s.inputs.empty()) step["inputs"] = s.inputs;
  return step;
}

Json environment_json(const MethodEnvironment& e) {
  Json out = Json::object();
  put(out, "image", e.image);
  if (!e.variables.empty()) out["variables"] = e.variables;
  put(out, "secrets", e.secrets);
  put(out, e.toolchains);
  if (e.network.any()) out["network"] = network_json(e.network);
  for (const SetupStep& s : e.setup) out["setup"].push_back(step_json(s));
  return out;
}

Json image_json(const Environment& e) {
  if (!e.build) return e.image;
  Json out = {{"dockerfile", e.build->dockerfile},
              {"network", e.build->network},
              {"timeout", format_duration(e.build->timeout)}};
  put(out, "files", e.build->files);
  if (!e.build->arguments.empty()) out["arguments"] = e.build->arguments;
  return out;
}

Json environment_json(const Environment& e) {
  Json out = {{"sandbox", word_of(e.sandbox, kSandboxWords)},
              {"locale", e.locale},
              {"timezone", e.timezone},
              {"variables", e.variables.empty() ? Json::object() : Json(e.variables)}};
  if (!e.image.empty()) out["image"] = image_json(e);
  put(out, "secrets", e.secrets);
  put(out, e.toolchains);
  return out;
}

Json container_json(const ProgramContainer& c) {
  Json out = Json::object();
  put(out, "image", c.image);
  put(out, "entrypoint", c.entrypoint);
  put(out, "command", c.command);
  put(out, "working_dir", c.working_dir);
  if (!c.variables.empty()) out["variables"] = c.variables;
  for (const ProgramContainer::Mount& m : c.mounts)
    out["mounts"].push_back({{"from", m.from}, {"at", m.at}, {"writable", m.writable}});
  return out;
}

Json service_json(const Service& s) {
  Json out = {{"name", s.name}};
  if (s.container)
    out["container"] = container_json(*s.container);
  else
    out["command"] = s.command;
  if (!s.variables.empty()) out["variables"] = s.variables;
  put(out, "depends_on", s.depends_on);
  const Readiness& r = s.ready;
  if (r.port != 0 || !r.command.empty())
    out["ready"] = {{"interval", format_duration(r.interval)},
                    {"timeout", format_duration(r.timeout)}};
  if (r.port != 0) out["ready"]["port"] = r.port;
  if (!r.command.empty()) out["ready"]["command"] = r.command;
  if (s.memory_bytes) out["memory"] = format_size(*s.memory_bytes);
  if (s.processes) out["processes"] = *s.processes;
  return out;
}

Json check_json(const Check& c) {
  Json out = {{"id", c.id},
              {"kind", word_of(c.kind, kCheckKindWords)},
              {"gate", word_of(c.gate, kGateWords)},
              {"timeout", format_duration(c.timeout)},
              {"result", word_of(c.reader, kReaderWords)}};
  if (c.container)
    out["container"] = container_json(*c.container);
  else
    out["command"] = c.command;
  if (c.services) out["services"] = *c.services;
  if (c.reader == ResultReader::kExitCode) return out;
  put(out, "result_file", c.result_file);
  put(out, "fail_to_pass", c.fail_to_pass);
  put(out, "pass_to_pass", c.pass_to_pass);
  out["others_may_fail"] = c.others_may_fail;
  return out;
}

Json policy_json(const Policy& p) {
  const auto thousandths = static_cast<std::uint64_t>(std::llround(p.cpus * 1000));
  Json out = {{"network", network_json(p)},
              {"wall", format_duration(p.wall)},
              {"memory", format_size(p.memory_bytes)},
              {"processes", p.processes},
              {"disk", format_size(p.disk_bytes)},
              {"cpu", format_duration(p.cpu)},
              {"cpus", format_decimal(thousandths, 3)}};
  put(out, "writable", p.writable);
  put(out, "protected", p.protected_);
  put(out, "ignored", p.ignored);
  // Absent where it says nothing new: contracts written before it keep their digests, and workers
  // that do not know it refuse the others.
  if (p.isolation != Isolation::kKernel) out["isolation"] = word_of(p.isolation, kIsolationWords);
  return out;
}

Json contract_json(const Contract& c) {
  Json out = {{"id", c.id},
              {"briefing", c.briefing},
              {"type", c.type},
              {"strata", c.strata.empty() ? Json::object() : Json(c.strata)},
              {"repository", repository_json(c.repository)},
              {"environment", environment_json(c.environment)},
              {"policy", policy_json(c.policy)},
              {"caps", caps_json(c.caps)},
              {"checks", Json::array()}};
  put(out, "title", c.title);
  put(out, "reference_patch", c.reference_patch);
  put(out, "single_shot", c.single_shot);
  for (const SetupStep& s : c.setup) out["setup"].push_back(step_json(s));
  for (const Service& s : c.services) out["services"].push_back(service_json(s));
  for (const Check& check : c.checks) out["checks"].push_back(check_json(check));
  for (const TestSuite& s : c.suites)
    out["tools"]["tests"].push_back({{"name", s.name}, {"command", s.command}});
  for (const AcceptanceFile& f : c.acceptance_files)
    out["acceptance_files"].push_back({{"from", f.from}, {"to", f.to}});
  for (const ReferencedFile& f : c.files) out["files"].push_back(f.path);
  return out;
}

Json method_json(const Method& m) {
  Json out = {{"name", m.name}, {"kind", word_of(m.kind, kMethodWords)}};
  if (m.container)
    out["container"] = container_json(*m.container);
  else
    put(out, "command", m.command);
  if (!m.variables.empty()) out["variables"] = m.variables;
  for (const ReferencedFile& f : m.files) out["files"].push_back(f.path);
  if (m.overload_exit != 0) out["overload_exit"] = m.overload_exit;
  // Absent where they say nothing: methods written before them keep their digests, and workers that
  // do not know them refuse the others.
  if (!m.environment.empty()) out["environment"] = environment_json(m.environment);
  put(out, "keep", m.keep);
  if (m.kind == Method::Kind::kToolLoop)
    put_tool_loop(m, out);
  else if (m.gateway)
    out["gateway"] = gateway_json(*m.gateway);
  if (m.kind == Method::Kind::kSingleShot && !m.call.model.empty()) {
    out["model"] = m.call.model;
    put(out, "provider", m.call.provider);
    out["attempts"] = m.call.attempts;
    out["max_output_tokens"] = m.call.max_output_tokens;
    out["call_timeout"] = format_duration(m.call.timeout);
  }
  return out;
}

Json files_json(const std::vector<ReferencedFile>& files) {
  Json out = Json::array();
  for (const ReferencedFile& f : files)
    out.push_back({{"path", f.path},
                   {"mode", f.mode == 0755 ? "0755" : "0644"},
                   {"size", f.bytes.size()},
                   {"sha256", sha256(f.bytes).hex()}});
  return out;
}
}  // namespace

Json caps_json(const Caps& caps) {
  Json out = Json::object();
  if (caps.usd) out["usd"] = format_usd_exact(*caps.usd);
  if (caps.tokens) out["tokens"] = *caps.tokens;
  if (caps.tool_calls) out["tool_calls"] = *caps.tool_calls;
  if (caps.failed_acceptance_cycles)
    out["failed_acceptance_cycles"] = *caps.failed_acceptance_cycles;
  if (caps.wall) out["wall"] = format_duration(*caps.wall);
  if (caps.model_calls) out["model_calls"] = *caps.model_calls;
  if (caps.dependency_installs) out["dependency_installs"] = *caps.dependency_installs;
  if (caps.active) out["active"] = format_duration(*caps.active);
  if (caps.calls_per_minute) out["calls_per_minute"] = *caps.calls_per_minute;
  return out;
}

std::string canonical_text(const Json& value) {
  Result<std::string> text = canonical_json(value);
  // Parsers admit only UTF-8 and integers below 2^53: anything else is our own mistake.
  PROCTOR_ASSERT(text.ok());
  return std::move(text).value();
}

std::string canonical_form(const Contract& contract) {
  return canonical_text({{"contract", contract_json(contract)},
                         {"files", files_json(contract.files)},
                         {"format", 1}});
}

Digest digest_of(const Contract& contract) {
  return sha256(canonical_form(contract));
}

std::string canonical_form(const Method& method) {
  return canonical_text(
      {{"method", method_json(method)}, {"files", files_json(method.files)}, {"format", 1}});
}

Digest digest_of(const Method& method) {
  return sha256(canonical_form(method));
}
}  // namespace proctor
