#pragma once
// HostDisk: was the host's own disk full while a command of an attempt ran?  Then what the command
// did or did not do says nothing about it: the host failed.  Unless the command itself filled it,
// which must not be a way to another try.  look() on any thread; the rest on one.
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>

#include "common/base/files.h"
#include "common/base/result.h"

namespace proctor {

class HostDisk {
 public:
  static constexpr std::uint64_t kFullBytes = std::uint64_t{1} << 20;
  static constexpr std::uint64_t kFullFiles = 16;
  explicit HostDisk(fs::path at) : at_(std::move(at)) {}

  void begin();  // before a command
  void look();
  // After it.  `own`: how much it has written, asked only when that matters.
  std::optional<Error> end(const std::function<std::uint64_t()>& own);

 private:
  fs::path at_;
  std::uint64_t free_at_begin_ = 0;
  std::atomic<bool> seen_full_{false};
};

}  // namespace proctor
