#pragma once
// Variants of a contract for its self-check: parts of its reference patch, and mistakes in it.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/fields.h"
#include "common/contract/contract.h"

namespace proctor {
// A unified diff as files and hunks, and back again: the self-check of a contract takes it apart.
// Git's form (renames, modes, binary parts) and the plain one.  Headers stay as they came; line
// numbers of hunks are computed anew, so that what is left of a diff still applies.  Pure; hostile
// bytes at worst make a diff that does not apply.

struct PatchHunk {
  std::uint64_t old_start = 0;
  std::string section;  // what stands behind the second @@
  std::vector<std::string>
      lines;  // each with its mark (' ', '+', '-', '\\'), without its line feed
  friend bool operator==(const PatchHunk&, const PatchHunk&) = default;
};

struct PatchFile {
  std::string path;    // afterwards; of a file that goes away, before
  std::string header;  // all lines before its first hunk
  std::vector<PatchHunk> hunks;
  bool stands_alone = false;  // changes something without any hunk: a rename, a mode, binary parts
  friend bool operator==(const PatchFile&, const PatchFile&) = default;
};

using PatchText = std::vector<PatchFile>;

PatchText parse_patch(std::string_view diff);
// Hunks that change nothing are left out, and files of which nothing is left.  Empty: no change.
std::string render_patch(const PatchText& patch);
// The line of the new file that `line` of the hunk is or would be; hunks before it count.
std::uint64_t new_line(const PatchFile& file, std::size_t hunk, std::size_t line);

// Small mistakes made on purpose in a reference patch: each is a patch that should not pass its
// task's checks.  Only text is changed, so that all languages are treated alike; that a change
// makes no difference (an equivalent mutant) cannot be told from the text, which is why a share of
// them has to die and not all.  Pure: the same patch and seed give the same mutants.
struct Mutant {
  std::string name;   // "mutant-7": its place among all there are
  std::string patch;  // whole
  std::string what;   // for people: "lib/Ini.pm:41: 3 becomes 4"
};

// `most` of them, by RandomState(seed).permutation; in the order of their numbers.  None is empty,
// equal to another, or equal to the patch itself.
std::vector<Mutant> mutants_of(const PatchText& patch, std::uint32_t seed, std::uint32_t most);

// A line that was added, otherwise: the first number, comparison and pair of words of each kind.
struct AlteredLine {
  std::string line;
  std::string what;  // "3 becomes 4"
};
std::vector<AlteredLine> altered_lines(std::string_view line);

// Trials of a contract before an agent works on it: its reference, nothing at all, parts of the
// reference, and mistakes in it (mutants_of).  Pure.

struct SelfcheckSettings {
  std::uint32_t repeats = 3;    // of each variant
  std::uint32_t mutants = 20;   // at most
  std::string killed = "0.80";  // share of the decided mutants that have to fail
  std::uint32_t seed = 0;
  friend bool operator==(const SelfcheckSettings&, const SelfcheckSettings&) = default;
};
// All but the seed.
void fields(auto& v, Is<SelfcheckSettings> auto& s) {
  v("killed", s.killed);
  v("mutants", s.mutants);
  v("repeats", s.repeats);
}

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

// A result of a contract's trials, so far with its name only.
template <class Task>
Task named(const Contract& contract) {
  Task out;
  out.id = contract.id;
  out.contract = contract.digest;
  out.image = contract.environment.image;
  return out;
}

// "a, b, c and 2 more", each printable.
std::string first_few(const std::vector<std::string>& words);

// A contract without a reference has no more than noop, empty, junk and shadowed_runner. tests_only
// and source_only are there where the reference has both; junk and shadowed_runner where some new
// file touches no rule; early_exit where the reference changes code of a known language.
std::vector<Variant> variants_of(const Contract& contract, const SelfcheckSettings& settings);
}  // namespace proctor
