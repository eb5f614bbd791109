#include "worker/sandbox/put_word.h"

#include <cerrno>

#include "worker/sandbox/raw_calls.h"

namespace proctor {

bool put_word(const char* file, const char* text, std::size_t size) {
  const int fd = raw::open_to_write(file);
  if (fd < 0) return false;
  const bool written = raw::write(fd, text, size);
  const int error = errno;
  raw::close(fd);
  errno = error;
  return written;
}

}  // namespace proctor
