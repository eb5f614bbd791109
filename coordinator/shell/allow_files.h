#pragma once
// AllowFiles: who may join over TCP, as the files of a campaign's `keys` say it, workers.allow
// first, then allow.d/*.allow by name.  Several people and programs write them, so each file stands
// for itself: one that cannot be read keeps what it last said, and a line that contradicts an
// earlier file's (two keys of one name, two names of one key) does not count.
//
// Thread: one at a time; it reads files.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/wire/curve.h"
#include "coordinator/shell/state_folder.h"

namespace proctor {

class AllowFiles {
 public:
  explicit AllowFiles(StateFolder folder) : folder_(std::move(folder)) {}

  // At a start: every mistake is an error, kInvalid with "path:line: what".  kNotFound: there is
  // neither the file nor the folder.
  Result<wire::AllowList> read();

  struct Change {
    std::optional<wire::AllowList> list;  // nothing: it is as it was
    std::vector<std::string> mistakes;    // each is told once
  };
  // What changed since: looked for by name, size, inode and times.
  Change look();

 private:
  struct Seen {
    std::uint64_t size = 0, inode = 0;
    std::int64_t modified_ns = 0, changed_ns = 0;
    friend bool operator==(const Seen&, const Seen&) = default;
  };
  struct File {
    std::optional<Seen> seen;  // nothing: what it is now may change within the clock's grain
    wire::AllowList list;
  };
  std::vector<fs::path> paths() const;
  static std::optional<Seen> stat_of(const fs::path& path);
  wire::AllowList merged(std::vector<std::string>& mistakes) const;

  StateFolder folder_;
  std::map<fs::path, File> files_;
  std::map<fs::path, std::string> told_;  // mistakes, by file
};

}  // namespace proctor
