#pragma once
// HostDisk: was the host's own disk full while a command of an attempt ran?  Then what the command
// did or did not do says nothing about it: the host failed.  Unless the command itself filled it,
// which must not be a way to another try.  look() on any thread; the rest on one.
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/base/files.h"
#include "common/base/result.h"

namespace proctor {

// Has the disk that a folder is on too little room to begin anything?  Then a sentence that says
// so; empty: it has.  A worker that begins there all the same fails its attempts one after another.
std::string too_full_to_begin(const fs::path& folder);

class HostDisk {
 public:
  explicit HostDisk(fs::path at) : at_(std::move(at)) {}

  void begin();  // before a command
  // Instead of it, of a command that an earlier life began when so much was free.
  void go_on(std::uint64_t free_at_begin);
  std::uint64_t free_at_begin() const { return free_at_begin_; }  // bytes
  void look();
  void seen_full() { seen_full_ = true; }  // by somebody else
  // After it.  `own`: how much it has written, asked only when that matters.
  std::optional<Error> end(const std::function<std::uint64_t()>& own);

 private:
  fs::path at_;
  std::uint64_t free_at_begin_ = 0;
  std::atomic<bool> seen_full_{false};
};

}  // namespace proctor
