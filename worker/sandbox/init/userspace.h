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

// Devices that gVisor puts into every /dev, a file system of this container alone, and no image
// asks for.
inline void remove_spare_devices() {
  (void)::unlink("/dev/fuse");
  (void)::unlink("/dev/net/tun");
}

// gVisor opens descriptors of any process for any other of the same user, whether or not it may be
// traced: the first process keeps none of those that it was given.
inline void close_all_given(int status_fd) {
  for (int fd = 0; fd <= status_fd; ++fd) (void)::close(fd);
}

}  // namespace proctor
