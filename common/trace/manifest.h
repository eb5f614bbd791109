#pragma once
// manifest.json: everything needed to build the configuration of a run again, fixed before the
// agent acts (R043-R047, R066, R070-R072, R077).  Pure; every field is described in
// docs/run-directory.md and schemas/manifest.schema.json.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/digest.h"
#include "common/base/ids.h"
#include "common/base/json.h"
#include "common/base/result.h"

namespace proctor {
struct ManifestSubmodule {
  std::string path, commit;
};
struct ManifestLockfile {  // a file of the tree that pins dependencies (R044)
  std::string path;
  Digest digest;
};
struct ManifestToolchain {
  std::string path, at, version;  // version: the first line of its --version, or empty
};
struct ManifestEntrypoint {  // an acceptance check
  std::string id, command;
};

// The state of a run's setup before it began, on a host that keeps it.
struct ManifestSetupCache {
  std::string use;    // "hit": it was there; "miss": it was not; "off": it is not kept
  std::string key;    // of tree, environment and setup: empty when off
  std::string layer;  // digest of what was there: empty unless a hit
};

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

struct ManifestInputs {
  std::string tool_version;
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
  std::vector<ManifestLockfile> lockfiles;  // empty is written as declared absent
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
  // sigma: limits and logging.  0: not limited beside the others.
  std::map<std::string, std::uint64_t> limits;  // wall_ms, memory_bytes, processes, ...
  bool network_setup = false, network_agent = false;
  // setup, agent, acceptance -> places it could reach, "*" for all.  Empty: the two above say all.
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

// The document to hand to RunRecorder::write_manifest.
Json make_manifest(const ManifestInputs& inputs);
// The other direction, strict: kInvalid names the field that is missing, unknown or of a wrong
// kind.
Result<ManifestInputs> read_manifest(const Json& manifest);
// Is every reconstruction field there and filled (R047)?  kInvalid names the first that is not;
// also a tree that differs from the expected one, a seed deviation without its reason, an image
// that docker needs.  A run whose manifest fails this is invalid.
Status check_manifest(const Json& manifest);
Status check_manifest(const ManifestInputs& m);
}  // namespace proctor
