#include "worker/sandbox/bounded_file.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

namespace proctor {

Result<BoundedFile> BoundedFile::create(const fs::path& path, std::size_t bytes_max) {
  BoundedFile f;
  if (path.empty()) return f;
  f.fd_.reset(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, kPrivateFile));
  if (!f.fd_.valid()) return errno_error("create " + path.string(), errno);
  f.left_ = bytes_max;
  return f;
}

void BoundedFile::append(std::string_view bytes) {
  total_ += bytes.size();
  if (head_.size() < kHead) head_.append(bytes.substr(0, kHead - head_.size()));
  std::string_view keep = bytes.substr(0, std::min(bytes.size(), left_));
  left_ -= keep.size();
  while (!keep.empty() && error_ == 0) {
    const ssize_t n = ::write(fd_.get(), keep.data(), keep.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      error_ = errno;
      left_ = 0;
      return;
    }
    keep.remove_prefix(static_cast<std::size_t>(n));
  }
}

Status BoundedFile::status() const {
  if (error_ != 0) return errno_error("write a command's output", error_);
  return ok_status();
}

}  // namespace proctor
