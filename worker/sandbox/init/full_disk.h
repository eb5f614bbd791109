#pragma once
// When a host's disk counts as full, and the word for it of a sandbox's first process: of a command
// that outlives its worker nobody else can tell.  Without a library: init includes this.
// Source: statvfs(3).
#include <stdint.h>
#include <sys/statvfs.h>

namespace proctor {

inline constexpr uint64_t kFullBytes = uint64_t{1} << 20;
inline constexpr uint64_t kFullFiles = 16;

// File systems that make inodes as they need them say 0 of 0.
inline bool is_full(const struct statvfs& st) {
  return uint64_t{st.f_bavail} * st.f_frsize < kFullBytes ||
         (st.f_files != 0 && st.f_favail < kFullFiles);
}

// Init's exit code then, whatever the program's was.  No program can say it: its own is told as the
// one below.  Beyond all signals (128 to 192) and all that a campaign may give a meaning.
inline constexpr int kInitSawFullDisk = 253;

}  // namespace proctor
