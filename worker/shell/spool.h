#pragma once
// Spool: results that the coordinator has not yet acknowledged, on disk (docs/protocol.md).
//   ROOT/<campaign>/<run>.<attempt>.tar.zst  the run directory, when the result names one
//   ROOT/<campaign>/<run>.<attempt>.result   "proctor-spool-1 DIGEST", an encoded
//                                            wire::ResultMessage; with it the entry is
//   ROOT/<campaign>/*.corrupt                set aside: bytes that are not what was put, for a
//   person
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
  // Of one campaign, by attempt, its archives read through.  A result that does not read back is
  // set aside; one whose archive does not is too, and comes as set_aside() makes it.
  Result<std::vector<Entry>> load(const std::string& campaign);
  // Keeps the damaged entry as `*.corrupt` and puts in its place a result without evidence:
  // infrastructure, with the usage that was metered, and why.  Repeatable.
  Result<Entry> set_aside(const std::string& campaign, const Entry& damaged,
                          const std::string& why);
  // `bytes` of the archive from `offset` on.  From its beginning the whole archive is read through
  // first.  kCorrupt: it is not, or no longer, what its result names; no later try can help.
  static Result<std::string> read_part(const Entry& entry, std::uint64_t offset, std::size_t bytes);
  Status drop(const std::string& campaign, AttemptId attempt);
  // Was no result of it ever set aside?
  bool all_results_read(const std::string& campaign) const;
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
