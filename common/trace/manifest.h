#pragma once
// manifest.json: everything needed to build the configuration of a run again, fixed before the
// agent acts (R043-R047, R066, R070-R072, R077).  Pure; every field is described in
// docs/run-directory.md and schemas/manifest.schema.json.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/digest.h"
#include "common/base/fields.h"
#include "common/base/files.h"
#include "common/base/ids.h"
#include "common/base/json.h"
#include "common/base/result.h"
#include "common/contract/rubric.h"
#include "common/trace/run_report.h"

namespace proctor {
struct ManifestSubmodule {
  std::string path, commit;
};
void fields(auto& v, Is<ManifestSubmodule> auto& s) {
  v("path", s.path);
  v("commit", s.commit);
}

struct FileDigest {
  std::string path;
  Digest digest;
};
void fields(auto& v, Is<FileDigest> auto& l) {
  v("path", l.path);
  v("digest", l.digest);
}

struct ManifestToolchain {
  std::string path, at, version;  // version: the first line of its --version, or empty
};
void fields(auto& v, Is<ManifestToolchain> auto& t) {
  v("path", t.path);
  v("at", t.at);
  v("version", t.version);
}

struct ManifestEntrypoint {  // an acceptance check
  std::string id, command;
};
void fields(auto& v, Is<ManifestEntrypoint> auto& e) {
  v("id", e.id);
  v("command", e.command);
}

// The state of a run's setup before it began, on a host that keeps it.
struct ManifestSetupCache {
  std::string use;    // "hit": it was there; "miss": it was not; "off": it is not kept
  std::string key;    // of tree, environment and setup: empty when off
  std::string layer;  // digest of what was there: empty unless a hit
};
void fields(auto& v, Is<ManifestSetupCache> auto& c) {
  v("use", c.use);
  v("key", c.key);
  v("layer", c.layer);
  v.require(c.use == "hit" || c.use == "miss" || c.use == "off", "use",
            "expected hit, miss or off");
  v.require((c.use == "off") == c.key.empty(), "key", "does not follow from use");
  v.require((c.use == "hit") != c.layer.empty(), "layer", "does not follow from use");
}

// Things that the method's agent has beside all that: its own environment, and what is kept of it.
struct ManifestMethod {
  std::string image, sandbox;  // empty: those of the environment
  std::map<std::string, std::string> variables;
  std::vector<std::string> secrets;  // names, never values
  std::vector<ManifestToolchain> toolchains;
  std::vector<std::string> setup;
  std::optional<ManifestSetupCache> setup_cache{};  // none: there is no setup
  std::vector<std::string> keep;
};
void fields(auto& v, Is<ManifestMethod> auto& m) {
  v("image", m.image);
  v("sandbox", m.sandbox);
  v("variables", m.variables);
  v("secrets", m.secrets);
  v("toolchains", m.toolchains);
  v("setup", m.setup);
  v("setup_cache", m.setup_cache, kOptional);
  v("keep", m.keep);
}

inline constexpr std::string_view kManifestFormat = "proctor-manifest-1";

struct ManifestInputs {
  std::string tool_version;
  std::string tool_commit{};  // build_commit() of the worker; empty: one of before 2026-12
  // identity: as in the report
  std::string campaign, run_name, task, method;
  AttemptId attempt;
  std::uint32_t replicate = 0;
  Digest contract, method_digest, cost_model;
  std::string cost_model_version;
  // R: repository (R043, R047).  `source` has *** for a URL's user and password.
  std::string source, commit;
  std::string tree_expected;  // empty: the contract names none, the commit's own was taken
  std::string tree_observed;
  std::vector<ManifestSubmodule> submodules;
  // Files of the tree that pin dependencies (R044); empty is written as declared absent.
  std::vector<FileDigest> lockfiles;
  // E: environment (R045, R046)
  std::string sandbox;  // bubblewrap, docker, null
  std::string image;    // digest of the image; empty: none, the host's file system is shown
  // For one that was built here: the digest of what it was made of, which the contract names.
  std::string image_inputs{};
  std::map<std::string, std::string>
      enforcement;  // limit -> how it is enforced ("memory": "cgroup")
  std::map<std::string, std::string> variables;
  std::vector<std::string> secrets;  // names, never values
  std::string locale, timezone;
  std::vector<ManifestToolchain> toolchains;
  std::map<std::string, std::string> package_managers;  // name -> version
  std::optional<ManifestSetupCache> setup_cache{};  // none: there is no setup, or an older worker
  std::optional<ManifestMethod> own{};              // none: the method has nothing of its own
  // entry points (R045)
  std::vector<std::string> setup;
  std::string agent;
  std::vector<ManifestEntrypoint> acceptance;
  // By which gates, score and tags are computed; none: an older worker's.
  std::optional<JudgeRules> rubric{};
  // Which monitors look, and by what: {"calls": "seccomp", "commands": "unobserved"}.
  std::map<std::string, std::string> monitors{};
  // sigma: limits and logging.  0: not limited beside the others.
  std::map<std::string, std::uint64_t> limits;  // wall_ms, memory_bytes, processes, ...
  bool network_setup = false, network_agent = false;
  // By phase (setup, agent, acceptance) the places it could reach, "*" for all.  Empty: the two
  // above say all.
  std::map<std::string, std::vector<std::string>> network_allowed{};
  // seeds (R071, R072)
  std::uint32_t seed = 0;      // of the campaign
  std::uint32_t run_seed = 0;  // of this run, from the plan
  std::string seed_deviation;  // required when `seed` is not the planned one
  // host (R070, R077)
  std::int64_t started_ms = 0;
  std::string cpu_class, memory_class;  // "x86_64, 2 cores", "8 GiB"
  std::string kernel, os;
};
void fields(auto& v, Is<ManifestInputs> auto& m) {
  v.follows("format", kManifestFormat);
  v.section("tool", [&](auto& tool) {
    tool.follows("name", "proctor");
    tool("version", m.tool_version);
    tool("commit", m.tool_commit, kOptional);
  });
  v.section("identity", [&](auto& identity) {
    identity_fields(identity, m);
    identity("cost_model", m.cost_model);
    identity("cost_model_version", m.cost_model_version);
  });
  v.section("repository", [&](auto& repository) {
    repository("source", m.source);
    repository("commit", m.commit);
    repository("tree_expected", m.tree_expected);
    repository("tree_observed", m.tree_observed);
    repository("submodules", m.submodules);
    repository("lockfiles", m.lockfiles);
    repository.follows("lockfiles_declared_absent", m.lockfiles.empty());
  });
  v.section("environment", [&](auto& environment) {
    environment("sandbox", m.sandbox);
    environment("image", m.image);
    environment("image_inputs", m.image_inputs, kOptional);
    environment("enforcement", m.enforcement);
    environment("variables", m.variables);
    environment("secrets", m.secrets);
    environment("locale", m.locale);
    environment("timezone", m.timezone);
    environment("toolchains", m.toolchains);
    environment("package_managers", m.package_managers);
    environment("setup_cache", m.setup_cache, kOptional);
  });
  v("method", m.own, kOptional);
  v.section("entrypoints", [&](auto& entrypoints) {
    entrypoints("setup", m.setup);
    entrypoints("agent", m.agent);
    entrypoints("acceptance", m.acceptance);
  });
  v("rubric", m.rubric, kOptional);
  v("monitors", m.monitors, kOptional);
  v("limits", m.limits);
  v.section("network", [&](auto& network) {
    network("setup", m.network_setup);
    network("agent_and_acceptance", m.network_agent);
    network("allowed", m.network_allowed, kOptional);
    const auto has = [&](const char* phase) { return m.network_allowed.contains(phase); };
    network.require(
        m.network_allowed.empty() ||
            (has("setup") && has("agent") && has("acceptance") && m.network_allowed.size() == 3),
        "allowed", "expected setup, agent and acceptance");
  });
  v.section("seeds", [&](auto& seeds) {
    seeds("campaign", m.seed);
    seeds("run", m.run_seed);
    seeds("deviation", m.seed_deviation);
  });
  v.section("host", [&](auto& host) {
    host("started_ms", m.started_ms);
    host("cpu_class", m.cpu_class);
    host("memory_class", m.memory_class);
    host("kernel", m.kernel);
    host("os", m.os);
  });
}

// The document to hand to RunRecorder::write_manifest.
Json make_manifest(ManifestInputs inputs);
// The other direction, strict: kInvalid names the field that is missing, unknown or of a wrong
// kind.
Result<ManifestInputs> read_manifest(const Json& manifest);
// That of a run directory, the only function here that reads a file.  kNotFound: there is none.
Result<ManifestInputs> manifest_of(const fs::path& run_dir);
// A run's configuration class (R127): two runs of one task compare where it is equal, or where a
// person says why they compare all the same.  It is the sandbox and what enforces its limits, the
// image, limits, network, locale and time zone, monitors, the form of the log, and the worker's
// version and commit.  The host's size is none of it, and neither is what a method has of its own.
using ConfigurationParts = std::map<std::string, std::string>;  // "limits.wall_ms" -> "60000"
ConfigurationParts configuration_parts(const ManifestInputs& m);
// SHA-256 of the canonical JSON of its parts.
Digest configuration_class(const ManifestInputs& m);
// As journals and reports name it (AttemptFacts::configuration): the first 16 digits.
std::string configuration_word(const ManifestInputs& m);

// Is every reconstruction field there and filled (R047)?  kInvalid names the first that is not;
// also a tree that differs from the expected one, a seed deviation without its reason, an image
// that docker needs.  A run whose manifest fails this is invalid.
Status check_manifest(const Json& manifest);
Status check_manifest(const ManifestInputs& m);
}  // namespace proctor
