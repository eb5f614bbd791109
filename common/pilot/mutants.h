#pragma once
// Small mistakes made on purpose in a reference patch: each is a patch that should not pass its
// task's checks.  Only text is changed, so that all languages are treated alike; that a change
// makes no difference (an equivalent mutant) cannot be told from the text, which is why a share of
// them has to die and not all.  Pure: the same patch and seed give the same mutants.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/pilot/patch_text.h"

namespace proctor {

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

}  // namespace proctor
