#include "worker/shell/setup_key.h"

#include <algorithm>

#include "common/base/json.h"
#include "common/base/text.h"
#include "worker/shell/sandbox_dress.h"

namespace proctor {
namespace {
// Of layers and of this key; another one makes every layer anew.
constexpr int kFormat = 1;

// JSON that is hashed holds no floating point, and a command any bytes.
std::string hashed(std::string_view text) {
  return sha256(text).hex();
}

Json network_of(const NetworkAccess& network) {
  return {{"open", network.open}, {"allow", network.allow}};
}

Json steps_of(const std::vector<SetupStep>& setup) {
  Json out = Json::array();
  for (const SetupStep& s : setup)
    out.push_back({{"command", hashed(s.command)},
                   {"timeout_ms", s.timeout.count()},
                   {"network", network_of(s.network)}});
  return out;
}

Json variables_of(const std::map<std::string, std::string>& variables) {
  Json out = Json::object();
  for (const auto& [name, value] : variables) out[name] = hashed(value);
  return out;
}

Json toolchains_of(const std::vector<Toolchain>& toolchains) {
  Json out = Json::array();
  for (const Toolchain& t : toolchains)
    out.push_back({{"path", hashed(t.path)}, {"at", hashed(t.at)}});
  return out;
}

Json environment_of(const Environment& e) {
  return {{"image", e.image},
          {"variables", variables_of(e.variables)},
          {"locale", e.locale},
          {"timezone", e.timezone},
          {"toolchains", toolchains_of(e.toolchains)}};
}

// A setup that fits into one set of limits need not fit into another.
Json limits_of(const Policy& p) {
  return {{"memory", p.memory_bytes},
          {"processes", p.processes},
          {"disk", p.disk_bytes},
          {"cpu_ms", p.cpu.count()},
          {"cpus", std::to_string(p.cpus)}};
}

Json file_of(const ReferencedFile& f) {
  return {{"path", hashed(f.path)}, {"mode", f.mode}, {"bytes", hashed(f.bytes)}};
}

// As setup finds them at $PROCTOR_CONTRACT.
Json files_of(const Contract& c) {
  Json out = Json::array();
  const std::set<std::string> shown = shown_to_setup(c);
  for (const ReferencedFile& f : c.files)
    if (shown.contains(f.path)) out.push_back(file_of(f));
  return out;
}

Json host_of(const SetupPlace& place) {
  Json out = Json::array();
  for (const std::string& word : place.host) out.push_back(hashed(word));
  return out;
}
}  // namespace

bool setup_is_cacheable(const Contract& contract) {
  return !contract.setup.empty() && contract.environment.secrets.empty() &&
         std::ranges::all_of(contract.setup, &SetupStep::cache);
}

Digest setup_key(const Contract& contract, const SetupPlace& place) {
  const Json all = {{"format", kFormat},
                    {"tree", place.content},
                    {"sandbox", place.sandbox},
                    {"workspace", place.workspace},
                    {"host", host_of(place)},
                    {"environment", environment_of(contract.environment)},
                    {"setup", steps_of(contract.setup)},
                    {"limits", limits_of(contract.policy)},
                    {"files", files_of(contract)}};
  return sha256(all.dump(-1, Json::Utf8::kStrict,
                         true));  // keys are sorted, and all of it is text or whole numbers
}

bool setup_is_cacheable(const Method& method) {
  return !method.environment.setup.empty() &&
         std::ranges::all_of(method.environment.setup, &SetupStep::cache);
}

Digest method_setup_key(const Method& method, const std::string& image, const SetupPlace& place) {
  Json files = Json::array();
  for (const ReferencedFile& f : method.files) files.push_back(file_of(f));
  const MethodEnvironment& e = method.environment;
  const Json all = {{"format", kFormat},
                    {"of", "method"},
                    {"sandbox", place.sandbox},
                    {"host", host_of(place)},
                    {"image", image},
                    {"variables", variables_of(e.variables)},
                    {"toolchains", toolchains_of(e.toolchains)},
                    {"setup", steps_of(e.setup)},
                    {"files", std::move(files)}};
  return sha256(all.dump(-1, Json::Utf8::kStrict, true));
}

bool setup_reads_none_of(const Contract& contract, const std::vector<std::string>& touched) {
  if (touched.empty()) return true;
  for (const SetupStep& step : contract.setup) {
    if (step.inputs.empty()) return false;
    for (const std::string& path : touched)
      if (any_glob_covers(step.inputs, path)) return false;
  }
  return true;
}
}  // namespace proctor
