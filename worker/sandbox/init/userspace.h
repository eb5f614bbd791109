#pragma once
// What a sandbox's first process does under a kernel in user space (gVisor) before all else.
// Without a library: init includes this, and is linked with C's headers alone.
// Source: runsc 20221219.
#include <fcntl.h>
#include <unistd.h>

namespace proctor {

// runsc passes on the first three descriptors only: the status comes as the standard input, and
// moves to where it is expected.
inline bool take_status_from_input(int status_fd) {
  if (::dup3(0, status_fd, O_CLOEXEC) < 0) return false;
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  return 0 <= nothing && ::dup2(nothing, 0) == 0 && ::close(nothing) == 0;
}

}  // namespace proctor
