#pragma once
// How the candidate patch fitted (R137, R150), and the words for it in the rationale of a run, so
// that whoever has only the rationale (a journal, of any age) knows it.  Pure.
#include <string>
#include <string_view>
#include <vector>

namespace proctor {

struct PatchEnd {
  // The rung of the ladder it fits by: exact, whitespace, three_way.  Of a method that hands in a
  // patch of somebody's, the lower of the two that it took.  Empty: nothing was applied.
  std::string rung{};
  std::string refused{};                 // why it fits by none; the untouched tree was judged
  std::vector<std::string> conflicts{};  // "PATH:LINE" of files that got conflict markers
  bool empty() const { return rung.empty() && refused.empty() && conflicts.empty(); }
  friend bool operator==(const PatchEnd&, const PatchEnd&) = default;
};

// Of two rungs (or "") the one that is further down.
std::string_view worse_rung(std::string_view a, std::string_view b);

// "", or "; patch: three_way, conflict_markers (a.py:3)": nothing of a patch that fits as it is.
std::string patch_words(const PatchEnd& end);
// The part before the bracket, out of a rationale; "" where there is none.
std::string patch_word_in(std::string_view rationale);

}  // namespace proctor
