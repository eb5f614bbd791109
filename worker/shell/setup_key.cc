#include "worker/shell/setup_key.h"

#include <algorithm>

#include "common/base/json_fields.h"
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

// Each member of a structure that a setup can see.
Json made_of(auto describe) {
  JsonWriter v;
  describe(v);
  return v.take();
}

Json steps_of(const std::vector<SetupStep>& setup) {
  Json out = Json::array();
  for (const SetupStep& s : setup)
    out.push_back(made_of([&](auto& v) {
      v("command", hashed(s.command));
      v("timeout_ms", s.timeout);
      v.section("network", [&](auto& network) {
        network("open", s.network.open);
        network("allow", s.network.allow);
      });
    }));
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
    out.push_back(made_of([&](auto& v) {
      v("path", hashed(t.path));
      v("at", hashed(t.at));
    }));
  return out;
}

Json file_of(const ReferencedFile& f) {
  return made_of([&](auto& v) {
    v("path", hashed(f.path));
    v("mode", f.mode);
    v("bytes", hashed(f.bytes));
  });
}

Json host_of(const SetupPlace& place) {
  Json out = Json::array();
  for (const std::string& word : place.host) out.push_back(hashed(word));
  return out;
}

Digest key_of(auto describe) {
  const Json all = made_of([&](auto& v) {
    v("format", kFormat);
    describe(v);
  });
  // Keys are sorted, and all of it is text or whole numbers.
  return sha256(all.dump(-1, Json::Utf8::kStrict, true));
}
}  // namespace

bool setup_is_cacheable(const Contract& contract) {
  return !contract.setup.empty() && contract.environment.secrets.empty() &&
         std::ranges::all_of(contract.setup, &SetupStep::cache);
}

Digest setup_key(const Contract& contract, const SetupPlace& place) {
  // As setup finds them at $PROCTOR_CONTRACT.
  Json files = Json::array();
  const std::set<std::string> shown = shown_to_setup(contract);
  for (const ReferencedFile& f : contract.files)
    if (shown.contains(f.path)) files.push_back(file_of(f));
  return key_of([&](auto& v) {
    v("tree", place.content);
    v("sandbox", place.sandbox);
    v("workspace", place.workspace);
    v("host", host_of(place));
    v.section("environment", [&e = contract.environment](auto& environment) {
      environment("image", e.image);
      environment("variables", variables_of(e.variables));
      environment("locale", e.locale);
      environment("timezone", e.timezone);
      environment("toolchains", toolchains_of(e.toolchains));
    });
    v("setup", steps_of(contract.setup));
    // A setup that fits into one set of limits need not fit into another.
    v.section("limits", [&p = contract.policy](auto& limits) {
      limits("memory", p.memory_bytes);
      limits("processes", p.processes);
      limits("disk", p.disk_bytes);
      limits("cpu_ms", p.cpu);
      limits("cpus", std::to_string(p.cpus));
    });
    v("files", files);
  });
}

bool setup_is_cacheable(const Method& method) {
  return !method.environment.setup.empty() &&
         std::ranges::all_of(method.environment.setup, &SetupStep::cache);
}

Digest method_setup_key(const Method& method, const std::string& image, const SetupPlace& place) {
  Json files = Json::array();
  for (const ReferencedFile& f : method.files) files.push_back(file_of(f));
  const MethodEnvironment& e = method.environment;
  return key_of([&](auto& v) {
    v("of", "method");
    v("sandbox", place.sandbox);
    v("host", host_of(place));
    v("image", image);
    v("variables", variables_of(e.variables));
    v("toolchains", toolchains_of(e.toolchains));
    v("setup", steps_of(e.setup));
    v("files", files);
  });
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
