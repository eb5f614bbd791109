#pragma once
// Bundles: contracts, methods and settings as they travel to workers, addressed by content.
// Pure; any thread.
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/contract/campaign.h"
#include "common/contract/document.h"
#include "common/contract/file_source.h"

namespace proctor {
// A worker asks for a digest it does not have, opens what comes, and keeps it.  Contracts and
// methods come with their files, settings are those that every run of a campaign shares.
//
// A bundle is
//
//   <SHA-256 of all that follows, 64 hex digits> LF
//   proctor-bundle 1 KIND FORM-BYTES BASE-BYTES LF      KIND: contract, method or settings
//   the canonical form (contract_digest.h), the base folder, the bytes of each file in order
//
// Opening treats it as hostile: bounded, every byte accounted for, read by the same parser and
// rules as the operator's files, and the canonical form of what was read must be the one that came,
// and have the digest that was asked for.  Fails with kCorrupt (bytes that do not match their
// digests, or the digest asked for), kInvalid (a form that breaks the rules), kExhausted (too
// large).

// The outside of a bundle: header, digest, canonical form, base, files.  Internal to bundle.cc.
std::string frame_bundle(std::string_view kind, std::string_view form, std::string_view base,
                         const std::vector<ReferencedFile>& files);

struct OpenedBundle {
  std::string_view form;  // into the bytes that were opened; its SHA-256 is the one expected
  std::string base;
  Document document;  // of the form's part named `kind`
  GivenFiles files;
};
Result<OpenedBundle> open_frame(std::string_view bytes, std::string_view kind,
                                const Digest& expected);

// The first diagnostic as an error.
Error as_error(const Diagnostics& diagnostics);

// Settings of a campaign that a worker needs beside contract and method.
struct Settings {
  std::string campaign;
  Caps caps;  // the campaign's
  MicroUsd run_cap;
  CostModel cost_model;
  std::uint32_t seed = kPlannedSeed;
  std::string seed_deviation;
  std::vector<std::string> stages{};         // names, in order; none where no stage has caps
  std::map<std::string, Caps> stage_caps{};  // by stage, those that have any
  std::map<std::string, Caps> task_caps{};   // by contract id
  Rates rates{};                             // of the whole campaign
  Isolation isolation = Isolation::kKernel;  // of every run at least
  // How often a patch is judged again after a failure of the host, too (docs/retries.md).
  std::uint32_t infrastructure_retries = 3;
  RubricWeights weights{};
  SafetyPlan safety{};
  std::uint32_t rerun = 0;
  std::string failure_modes{};  // JSONL of the campaign's own
  CapRules cap_rules() const { return {caps, stage_caps, task_caps, run_cap}; }
};
Settings settings_of(const Campaign& campaign);

struct ContractBundle {
  Contract contract;
  // Folder of the contract on the coordinator's host: relative repository sources resolve against
  // it.  Absolute or empty; no part of the digest.
  std::filesystem::path base;
};

std::string make_bundle(const Contract& contract, const std::filesystem::path& base);
Result<ContractBundle> open_contract_bundle(std::string_view bytes, const Digest& expected);

std::string make_bundle(const Method& method);
Result<Method> open_method_bundle(std::string_view bytes, const Digest& expected);

std::string canonical_form(const Settings& settings);
Digest digest_of(const Settings& settings);
std::string make_bundle(const Settings& settings);
Result<Settings> open_settings_bundle(std::string_view bytes, const Digest& expected);
}  // namespace proctor
