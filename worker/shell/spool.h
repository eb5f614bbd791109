#pragma once
// Spool: results that the coordinator has not yet acknowledged, on disk (ARCHITECTURE section 6).
//   ROOT/<campaign>/<run>.<attempt>.tar.zst  the run directory, when the result names one
//   ROOT/<campaign>/<run>.<attempt>.result   an encoded wire::ResultMessage; with it the entry is
// The result comes last (both synced), goes first, and is there until it is acknowledged, through
// kill -9 and power loss.  Blocking; thread-safe (each call works on one entry's files; two calls
// for one entry never overlap by the loop's own bookkeeping).
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/base/result.h"
#include "common/wire/messages.h"

namespace proctor {

class Spool {
 public:
  struct Entry {
    wire::ResultMessage result;
    fs::path archive;  // empty: it has none
  };

  // Makes the folder; removes what a killed life left half-built.
  static Result<Spool> open(fs::path root);

  // `archive` (may be empty, else synced) is moved in: same file system.  kInvalid: not a
  // campaign's id.
  // Putting an attempt that is there keeps the first: an attempt has one result.
  Result<Entry> put(const std::string& campaign, const wire::ResultMessage& result,
                    const fs::path& archive);
  // Of one campaign, by attempt.  An entry that does not read back is set aside as `*.corrupt`.
  Result<std::vector<Entry>> load(const std::string& campaign);
  Status drop(const std::string& campaign, AttemptId attempt);
  const fs::path& root() const { return root_; }

 private:
  explicit Spool(fs::path root) : root_(std::move(root)) {}
  Result<fs::path> folder(const std::string& campaign) const;
  static Result<Entry> read(const fs::path& parent, const std::string& name);
  fs::path root_;
};

// Is it usable as one component of a path: 1 to kNameBytes of letters, digits, '.', '_', '-', and
// not beginning with a dot?
bool is_plain_name(std::string_view text);

}  // namespace proctor
