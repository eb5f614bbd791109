#include "common/trace/manifest.h"

#include "common/base/git_program.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/trace/json_fields.h"

namespace proctor {
namespace {
constexpr std::string_view kFormat = "proctor-manifest-1";
constexpr std::uint32_t kPlannedSeed = 20260307;  // R071; campaign.h has the same for campaigns

Json identity_json(const ManifestInputs& m) {
  return {{"campaign", m.campaign},
          {"run_name", m.run_name},
          {"run", m.attempt.run.raw()},
          {"attempt", m.attempt.no.raw()},
          {"task", m.task},
          {"method", m.method},
          {"replicate", m.replicate},
          {"contract", m.contract.hex()},
          {"method_digest", m.method_digest.hex()},
          {"cost_model", m.cost_model.hex()},
          {"cost_model_version", m.cost_model_version}};
}

Json repository_json(const ManifestInputs& m) {
  Json submodules = Json::array();
  for (const ManifestSubmodule& s : m.submodules)
    submodules.push_back({{"path", s.path}, {"commit", s.commit}});
  Json lockfiles = Json::array();
  for (const ManifestLockfile& l : m.lockfiles)
    lockfiles.push_back({{"path", l.path}, {"digest", l.digest.hex()}});
  return {{"source", redact_urls(m.source)},
          {"commit", m.commit},
          {"tree_expected", m.tree_expected},
          {"tree_observed", m.tree_observed},
          {"submodules", std::move(submodules)},
          {"lockfiles", std::move(lockfiles)},
          {"lockfiles_declared_absent", m.lockfiles.empty()}};
}

Json toolchains_json(const std::vector<ManifestToolchain>& toolchains) {
  Json out = Json::array();
  for (const ManifestToolchain& t : toolchains)
    out.push_back({{"path", t.path}, {"at", t.at}, {"version", t.version}});
  return out;
}

Json cache_json(const ManifestSetupCache& cache) {
  return {{"use", cache.use}, {"key", cache.key}, {"layer", cache.layer}};
}

Json method_json(const ManifestMethod& m) {
  Json out = {{"image", m.image},
              {"sandbox", m.sandbox},
              {"variables", Json(m.variables)},
              {"secrets", Json(m.secrets)},
              {"toolchains", toolchains_json(m.toolchains)},
              {"setup", Json(m.setup)},
              {"keep", Json(m.keep)}};
  if (m.setup_cache) out["setup_cache"] = cache_json(*m.setup_cache);
  return out;
}

Json environment_json(const ManifestInputs& m) {
  Json out = {{"sandbox", m.sandbox},
              {"image", m.image},
              {"enforcement", Json(m.enforcement)},
              {"variables", Json(m.variables)},
              {"secrets", Json(m.secrets)},
              {"locale", m.locale},
              {"timezone", m.timezone},
              {"toolchains", toolchains_json(m.toolchains)},
              {"package_managers", Json(m.package_managers)}};
  if (!m.image_inputs.empty()) out["image_inputs"] = m.image_inputs;
  if (m.setup_cache) out["setup_cache"] = cache_json(*m.setup_cache);
  return out;
}

std::map<std::string, std::string> read_map(JsonFields& f, const char* key) {
  std::map<std::string, std::string> out;
  for (const auto& item : f.object(key).items()) {
    if (!item.second.is_string()) {
      f.refuse(key, "\"" + printable(item.first, 80) + "\" is not text");
      return {};
    }
    out[item.first] = item.second.get<std::string>();
  }
  return out;
}

// One element of the list `key` after the other, as strict as the rest.
template <class Read>
Status read_list(JsonFields& parent, const char* key, Read read) {
  const Json& list = parent.array(key);
  for (std::size_t i = 0; i < list.size(); ++i) {
    JsonFields f(list[i], parent.path_of(key) + "[" + std::to_string(i) + "]");
    read(f);
    PROCTOR_CHECK_OK(f.finish());
  }
  return ok_status();
}

Status read_identity(JsonFields& root, ManifestInputs& m) {
  JsonFields f(root, "identity");
  constexpr std::uint64_t kU32 = 0xFFFFFFFF;
  m.campaign = f.text("campaign");
  m.run_name = f.text("run_name");
  m.attempt.run = RunId(static_cast<std::uint32_t>(f.count("run", kU32)));
  m.attempt.no = AttemptNo(static_cast<std::uint32_t>(f.count("attempt", kU32)));
  m.task = f.text("task");
  m.method = f.text("method");
  m.replicate = static_cast<std::uint32_t>(f.count("replicate", kU32));
  m.contract = f.digest("contract");
  m.method_digest = f.digest("method_digest");
  m.cost_model = f.digest("cost_model");
  m.cost_model_version = f.text("cost_model_version");
  return f.finish();
}

Status read_repository(JsonFields& root, ManifestInputs& m) {
  JsonFields f(root, "repository");
  m.source = f.text("source");
  m.commit = f.text("commit");
  m.tree_expected = f.text("tree_expected");
  m.tree_observed = f.text("tree_observed");
  PROCTOR_CHECK_OK(read_list(f, "submodules", [&m](JsonFields& one) {
    m.submodules.push_back({.path = one.text("path"), .commit = one.text("commit")});
  }));
  PROCTOR_CHECK_OK(read_list(f, "lockfiles", [&m](JsonFields& one) {
    m.lockfiles.push_back({.path = one.text("path"), .digest = one.digest("digest")});
  }));
  if (f.boolean("lockfiles_declared_absent") != m.lockfiles.empty())
    f.refuse("lockfiles_declared_absent", "does not follow from the list");
  return f.finish();
}

Status read_setup_cache(JsonFields& environment, ManifestSetupCache& out) {
  JsonFields f(environment, "setup_cache");
  out.use = f.text("use");
  out.key = f.text("key");
  out.layer = f.text("layer");
  if (out.use != "hit" && out.use != "miss" && out.use != "off")
    f.refuse("use", "expected hit, miss or off");
  if ((out.use == "off") != out.key.empty()) f.refuse("key", "does not follow from use");
  if ((out.use == "hit") == out.layer.empty()) f.refuse("layer", "does not follow from use");
  return f.finish();
}

Status read_toolchains(JsonFields& f, std::vector<ManifestToolchain>& out) {
  return read_list(f, "toolchains", [&out](JsonFields& one) {
    out.push_back({.path = one.text("path"), .at = one.text("at"), .version = one.text("version")});
  });
}

Status read_method(JsonFields& root, ManifestMethod& m) {
  JsonFields f(root, "method");
  m.image = f.text("image");
  m.sandbox = f.text("sandbox");
  m.variables = read_map(f, "variables");
  m.secrets = f.texts("secrets");
  PROCTOR_CHECK_OK(read_toolchains(f, m.toolchains));
  m.setup = f.texts("setup");
  m.keep = f.texts("keep");
  if (f.has("setup_cache")) PROCTOR_CHECK_OK(read_setup_cache(f, m.setup_cache.emplace()));
  return f.finish();
}

Status read_environment(JsonFields& root, ManifestInputs& m) {
  JsonFields f(root, "environment");
  m.sandbox = f.text("sandbox");
  m.image = f.text("image");
  m.enforcement = read_map(f, "enforcement");
  m.variables = read_map(f, "variables");
  m.secrets = f.texts("secrets");
  m.locale = f.text("locale");
  m.timezone = f.text("timezone");
  PROCTOR_CHECK_OK(read_toolchains(f, m.toolchains));
  m.package_managers = read_map(f, "package_managers");
  if (f.has("image_inputs")) {
    m.image_inputs = f.text("image_inputs");
    if (m.image_inputs.empty()) f.refuse("image_inputs", "empty");
  }
  if (f.has("setup_cache")) PROCTOR_CHECK_OK(read_setup_cache(f, m.setup_cache.emplace()));
  return f.finish();
}

constexpr const char* kNetworkPhases[] = {"setup", "agent", "acceptance"};

Status read_limits(JsonFields& root, ManifestInputs& m) {
  JsonFields f(root, "limits");
  for (const auto& item : root.object("limits").items())
    m.limits[item.first] = f.count(item.first.c_str());
  PROCTOR_CHECK_OK(f.finish());
  JsonFields n(root, "network");
  m.network_setup = n.boolean("setup");
  m.network_agent = n.boolean("agent_and_acceptance");
  if (n.has("allowed")) {  // since there are allow-lists
    JsonFields allowed(n, "allowed");
    for (const char* phase : kNetworkPhases) m.network_allowed[phase] = allowed.texts(phase);
    PROCTOR_CHECK_OK(allowed.finish());
  }
  return n.finish();
}

Status read_rest(JsonFields& root, ManifestInputs& m) {
  JsonFields tool(root, "tool");
  if (tool.text("name") != "proctor") tool.refuse("name", "expected proctor");
  m.tool_version = tool.text("version");
  PROCTOR_CHECK_OK(tool.finish());
  JsonFields e(root, "entrypoints");
  m.setup = e.texts("setup");
  m.agent = e.text("agent");
  PROCTOR_CHECK_OK(read_list(e, "acceptance", [&m](JsonFields& one) {
    m.acceptance.push_back({.id = one.text("id"), .command = one.text("command")});
  }));
  PROCTOR_CHECK_OK(e.finish());
  JsonFields s(root, "seeds");
  constexpr std::uint64_t kU32 = 0xFFFFFFFF;
  m.seed = static_cast<std::uint32_t>(s.count("campaign", kU32));
  m.run_seed = static_cast<std::uint32_t>(s.count("run", kU32));
  m.seed_deviation = s.text("deviation");
  PROCTOR_CHECK_OK(s.finish());
  JsonFields h(root, "host");
  m.started_ms = h.integer("started_ms");
  m.cpu_class = h.text("cpu_class");
  m.memory_class = h.text("memory_class");
  m.kernel = h.text("kernel");
  m.os = h.text("os");
  return h.finish();
}
}  // namespace

Json make_manifest(const ManifestInputs& m) {
  Json acceptance = Json::array();
  for (const ManifestEntrypoint& e : m.acceptance)
    acceptance.push_back({{"id", e.id}, {"command", e.command}});
  Json out = Json::object();
  out["format"] = kFormat;
  out["tool"] = {{"name", "proctor"}, {"version", m.tool_version}};
  out["identity"] = identity_json(m);
  out["repository"] = repository_json(m);
  out["environment"] = environment_json(m);
  if (m.own) out["method"] = method_json(*m.own);
  out["entrypoints"] = {
      {"setup", Json(m.setup)}, {"agent", m.agent}, {"acceptance", std::move(acceptance)}};
  out["limits"] = Json(m.limits);
  out["network"] = {{"setup", m.network_setup}, {"agent_and_acceptance", m.network_agent}};
  if (!m.network_allowed.empty()) out["network"]["allowed"] = Json(m.network_allowed);
  out["seeds"] = {{"campaign", m.seed}, {"run", m.run_seed}, {"deviation", m.seed_deviation}};
  out["host"] = {{"started_ms", m.started_ms},
                 {"cpu_class", m.cpu_class},
                 {"memory_class", m.memory_class},
                 {"kernel", m.kernel},
                 {"os", m.os}};
  return out;
}

Result<ManifestInputs> read_manifest(const Json& manifest) {
  JsonFields f(manifest, "");
  if (f.text("format") != kFormat) f.refuse("format", "expected " + std::string(kFormat));
  ManifestInputs m;
  PROCTOR_CHECK_OK(read_identity(f, m));
  PROCTOR_CHECK_OK(read_repository(f, m));
  PROCTOR_CHECK_OK(read_environment(f, m));
  if (f.has("method")) PROCTOR_CHECK_OK(read_method(f, m.own.emplace()));
  PROCTOR_CHECK_OK(read_limits(f, m));
  PROCTOR_CHECK_OK(read_rest(f, m));
  PROCTOR_CHECK_OK(f.finish());
  return m;
}

Status check_manifest(const Json& manifest) {
  PROCTOR_TRY(const ManifestInputs m, read_manifest(manifest));
  return check_manifest(m);
}

Status check_manifest(const ManifestInputs& m) {
  const auto missing = [](std::string_view field, std::string_view what = "empty") -> Status {
    return Error{Errc::kInvalid, std::string(field) + ": " + std::string(what)};
  };
  const std::pair<std::string_view, const std::string&> texts[] = {
      {"tool.version", m.tool_version},
      {"identity.campaign", m.campaign},
      {"identity.run_name", m.run_name},
      {"identity.task", m.task},
      {"identity.method", m.method},
      {"identity.cost_model_version", m.cost_model_version},
      {"repository.source", m.source},
      {"repository.commit", m.commit},
      {"repository.tree_observed", m.tree_observed},
      {"environment.sandbox", m.sandbox},
      {"environment.locale", m.locale},
      {"environment.timezone", m.timezone},
      {"host.cpu_class", m.cpu_class},
      {"host.memory_class", m.memory_class},
  };
  for (const auto& [field, value] : texts) {
    if (value.empty()) return missing(field);
  }
  if (m.contract == Digest()) return missing("identity.contract", "zeros");
  if (m.method_digest == Digest()) return missing("identity.method_digest", "zeros");
  if (m.cost_model == Digest()) return missing("identity.cost_model", "zeros");
  if (m.attempt.no.raw() == 0) return missing("identity.attempt", "zero; attempts count from 1");
  if (m.started_ms <= 0) return missing("host.started_ms", "not a time");
  if (m.acceptance.empty()) return missing("entrypoints.acceptance");
  if ((m.sandbox == "docker" || m.sandbox == "oci") && m.image.empty())
    return missing("environment.image");
  if (!m.tree_expected.empty() && m.tree_expected != m.tree_observed)
    return missing("repository.tree_observed", "differs from the expected tree");
  if (m.seed != kPlannedSeed && m.seed_deviation.empty())
    return missing("seeds.deviation", "another seed than the planned one needs its reason");
  return ok_status();
}
}  // namespace proctor
