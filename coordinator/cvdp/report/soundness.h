#pragma once
// Does a problem tell a right answer from none?  Its reference must pass every time and the
// untouched context never.  Pure; any thread.  Source: CVDP 9.8 (sanity_check).
#include <cstddef>
#include <string>

namespace proctor::cvdp {

// Of one problem in one mode.
struct Verdicts {
  std::size_t passed = 0, verdicts = 0;
  std::string why;  // of a run without one
};
// What is wrong with it, "flaky: ..." where the same thing passed and failed; empty: nothing.
std::string unsound(const Verdicts& golden, const Verdicts& untouched, std::size_t samples);

}  // namespace proctor::cvdp
