#pragma once
// A unified diff as files and hunks, and back again: what the self-check of a contract takes apart.
// Git's form (renames, modes, binary parts) and the plain one.  Headers stay as they came; line
// numbers of hunks are computed anew, so that what is left of a diff still applies.  Pure; hostile
// bytes at worst make a diff that does not apply.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace proctor {

struct PatchHunk {
  std::uint64_t old_start = 0;
  std::string section;  // what stands behind the second @@
  std::vector<std::string>
      lines;  // each with its mark (' ', '+', '-', '\\'), without its line feed
  friend bool operator==(const PatchHunk&, const PatchHunk&) = default;
};

struct PatchFile {
  std::string path;    // afterwards; of a file that goes away, before
  std::string header;  // all lines before its first hunk
  std::vector<PatchHunk> hunks;
  bool stands_alone = false;  // changes something without any hunk: a rename, a mode, binary parts
  friend bool operator==(const PatchFile&, const PatchFile&) = default;
};

using PatchText = std::vector<PatchFile>;

PatchText parse_patch(std::string_view diff);
// Hunks that change nothing are left out, and files of which nothing is left.  Empty: no change.
std::string render_patch(const PatchText& patch);
// The line of the new file that `line` of the hunk is or would be; hunks before it count.
std::uint64_t new_line(const PatchFile& file, std::size_t hunk, std::size_t line);

}  // namespace proctor
