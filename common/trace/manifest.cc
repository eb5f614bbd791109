#include "common/trace/manifest.h"

#include "common/base/git_program.h"
#include "common/base/json_fields.h"
#include "common/base/limits.h"
#include "common/trace/evidence.h"

namespace proctor {
namespace {
constexpr std::uint32_t kPlannedSeed = 20260307;  // R071; campaign.h has the same for campaigns
}  // namespace

Json make_manifest(ManifestInputs m) {
  m.source = redact_urls(m.source);
  return to_json(m);
}

Result<ManifestInputs> read_manifest(const Json& manifest) {
  return from_json<ManifestInputs>(manifest);
}

Result<ManifestInputs> manifest_of(const fs::path& run_dir) {
  PROCTOR_TRY(const std::string bytes,
              read_file(run_dir / kManifestFile, limits::kConfigFileBytes));
  PROCTOR_TRY(const Json manifest, parse_json(bytes));
  return read_manifest(manifest);
}

ConfigurationParts configuration_parts(const ManifestInputs& m) {
  const auto yes = [](bool is) { return is ? "yes" : "no"; };
  ConfigurationParts out = {{"sandbox", m.sandbox},
                            {"image", m.image},
                            {"locale", m.locale},
                            {"timezone", m.timezone},
                            {"network.setup", yes(m.network_setup)},
                            {"network.agent_and_acceptance", yes(m.network_agent)},
                            {"format", std::string(kManifestFormat)},
                            {"worker.version", m.tool_version},
                            {"worker.commit", m.tool_commit}};
  for (const auto& [limit, by] : m.enforcement) out["enforcement." + limit] = by;
  for (const auto& [monitor, by] : m.monitors) out["monitors." + monitor] = by;
  for (const auto& [limit, value] : m.limits) out["limits." + limit] = Json(value).dump();
  for (const auto& [phase, places] : m.network_allowed)
    out["network.allowed." + phase] = Json(places).dump();
  return out;
}

Digest configuration_class(const ManifestInputs& m) {
  Json parts = Json::object();
  for (const auto& [name, value] : configuration_parts(m)) parts[name] = value;
  const Result<std::string> text = canonical_json(parts);
  return sha256(text.ok() ? *text : text.error().detail);  // a text of it is not UTF-8
}

std::string configuration_word(const ManifestInputs& m) {
  constexpr std::size_t kWordDigits = 16;
  return configuration_class(m).hex().substr(0, kWordDigits);
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
