#pragma once
// How many constraints of its contract a run broke (R008), and the words for it in its rationale,
// so that whoever has only the rationale (a journal, of any age) knows it.  Pure.
#include <cstdint>
#include <string>
#include <string_view>

namespace proctor {

struct ViolationEnd {
  std::uint64_t count = 0;
  std::string first;  // "protected: tests/a.py", for people
  friend bool operator==(const ViolationEnd&, const ViolationEnd&) = default;
};

// "", or "; violations: 3 (protected: tests/a.py)".  `first` is cut to kFirstViolationBytes.
inline constexpr std::size_t kFirstViolationBytes = 200;
std::string violation_words(std::uint64_t count, std::string_view first);
// Out of a rationale.  Text of an agent that looks like these words can only count against it.
ViolationEnd violations_in(std::string_view rationale);

}  // namespace proctor
