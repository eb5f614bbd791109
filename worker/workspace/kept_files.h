#pragma once
// Files that an agent left and somebody wants to keep, copied out of a folder in which it has
// written: nothing is followed, nothing is waited for, and what it left bounds neither time nor
// space.  Blocking; nothing may run in the folder.
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/digest.h"
#include "common/base/files.h"
#include "common/base/result.h"

namespace proctor {
struct KeptFiles {
  struct File {
    std::string path;  // below the folder it was found in
    std::uint64_t bytes = 0;
    Digest digest;
  };
  struct LeftOut {
    std::string path;  // printable
    std::string why;
  };
  std::vector<File> files;
  std::vector<LeftOut> left_out;      // at most kLeftOutTold of them
  std::uint64_t left_out_beside = 0;  // how many more
  static constexpr std::size_t kLeftOutTold = 20;
};

// What may still be kept, of one run.
struct KeepRoom {
  std::size_t files;
  std::uint64_t bytes_each, bytes;
  std::size_t depth;  // folders on the way to a file
};

// Copies every file of `from` that one of the globs covers (text.h) to the same path below `to`, in
// the order of names; the git folder at its root is none.  What cannot be copied, by whatever its
// maker did to it, is left out.  kUnavailable or kExhausted: `to` cannot be written.
Result<KeptFiles> keep_files(const fs::path& from, const std::vector<std::string>& globs,
                             const fs::path& to, KeepRoom& room);
}  // namespace proctor
