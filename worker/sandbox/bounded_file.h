#pragma once
// A file that keeps the first `bytes_max` bytes of a stream and counts all of them.
// Used for the output of sandboxed commands; belongs to one thread.  Fails with errno_error's
// codes.
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/files.h"
#include "common/base/owned.h"
#include "common/base/result.h"

namespace proctor {

class BoundedFile {
 public:
  // Makes or truncates it.  An empty path counts only.
  static Result<BoundedFile> create(const fs::path& path, std::size_t bytes_max);
  // Keeps what still fits.  A full disk is an error once, then everything is dropped.
  void append(std::string_view bytes);
  std::uint64_t total() const { return total_; }
  const std::string& head() const { return head_; }  // the first kHead bytes, for error texts
  Status status() const;

 private:
  static constexpr std::size_t kHead = 1024;
  UniqueFd fd_;
  std::size_t left_ = 0;
  std::uint64_t total_ = 0;
  int error_ = 0;
  std::string head_;
};

}  // namespace proctor
