#pragma once
// How many descriptors this process may have open.
#include <sys/resource.h>

#include <cstdint>
#include <limits>

namespace proctor {

// The soft limit becomes the hard one: shells often leave it at 1,024, or far below.
inline void raise_descriptors() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == files.rlim_max) return;
  files.rlim_cur = files.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &files);
}

inline std::uint64_t descriptors_most() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return std::numeric_limits<std::uint64_t>::max();
  return files.rlim_cur;
}

}  // namespace proctor
