#pragma once
// Which system calls a sandboxed command gets: the one table from which the filter of bubblewrap
// and of OCI containers and the profile of the Docker Engine are made (seccomp_filter.h).  A call
// that it does not name is "not there" (ENOSYS): libraries then do without, as on an older kernel.
// Pure; thread-safe.  Source: syscalls(2) of Linux 6.12; socket(2), clone(2), personality(2).
#include <cstdint>
#include <string_view>
#include <vector>

namespace proctor {

// Of one argument, all 64 bits of it.
struct ArgumentTest {
  enum class Compare { kEqual, kMasked };
  unsigned index;
  Compare compare;
  std::uint64_t value;
  std::uint64_t mask = 0;  // kMasked: argument & mask == value, of its lower 32 bits
};

// The answer to these calls where all tests hold.  No two rules of one call hold for the same
// arguments, so that it does not matter in which order a runtime reads them.
struct CallRule {
  std::vector<std::string_view> names;
  int error = 0;  // 0: the kernel is asked
  std::vector<ArgumentTest> tests{};
  // It and its like are what the other rules of these calls leave, and answer the same: whoever
  // reads rules in turn needs no more than one of them, without its tests.  Where that is an error
  // there is but one, and it has none.
  bool rest = false;
};
const std::vector<CallRule>& call_rules();

// What a call gets that no rule speaks of.
extern const int kOtherCalls;

}  // namespace proctor
