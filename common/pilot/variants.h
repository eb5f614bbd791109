#pragma once
// What a contract is tried with before anybody works on it: its reference, nothing at all, parts of
// the reference, and mistakes in it (mutants.h).  Pure.
#include <cstdint>
#include <string>
#include <vector>

#include "common/contract/contract.h"
#include "common/pilot/patch_text.h"

namespace proctor {

struct SelfcheckSettings {
  std::uint32_t repeats = 3;    // of each variant
  std::uint32_t mutants = 20;   // at most
  std::string killed = "0.80";  // share of the decided mutants that have to fail
  std::uint32_t seed = 0;
  friend bool operator==(const SelfcheckSettings&, const SelfcheckSettings&) = default;
};

// The names of variants; mutants are "mutant-N".
inline constexpr const char* kVariantReference = "reference";
inline constexpr const char* kVariantNoop = "noop";
inline constexpr const char* kVariantEmpty = "empty";
inline constexpr const char* kVariantJunk = "junk";
inline constexpr const char* kVariantTestsOnly = "tests_only";
inline constexpr const char* kVariantSourceOnly = "source_only";
inline constexpr const char* kVariantEarlyExit = "early_exit";
inline constexpr const char* kVariantShadowedRunner = "shadowed_runner";

struct Variant {
  std::string name;
  std::string patch{};  // noop has none
  std::string what{};   // of a mutant: what was changed
};

// Is `path` a test of this contract: protected, placed by acceptance, or named as tests are?
bool is_test_path(const Contract& contract, const std::string& path);

struct PatchParts {
  PatchText tests, source;
};
PatchParts parts_of(const Contract& contract, PatchText reference);
// Paths of the tests in the reference.
std::vector<std::string> tests_in_reference(const Contract& contract);

// A contract without a reference has no more than noop, empty, junk and shadowed_runner. tests_only
// and source_only are there where the reference has both; junk and shadowed_runner where some new
// file touches no rule; early_exit where the reference changes code of a known language.
std::vector<Variant> variants_of(const Contract& contract, const SelfcheckSettings& settings);

}  // namespace proctor
