#pragma once
// ArchiveStore: run directories that workers send, piece by piece.
// Pieces are appended to a file under .proctor/incoming; once all bytes are there and have the
// promised digest, the archive is unpacked (hostile input: trace/archive.h) into
// runs/TASK/METHOD/rN/attempt-K and kept beside it.  Blocking; lives on the coordinator's file
// threads: any number of attempts at a time, one call at a time for each.
#include <map>
#include <string>

#include "common/wire/messages.h"
#include "coordinator/shell/state_folder.h"

namespace proctor {

class ArchiveStore {
 public:
  explicit ArchiveStore(StateFolder folder) : folder_(std::move(folder)) {}

  // The offset up to which everything is on disk.  A piece that starts elsewhere is dropped: the
  // answer tells the sender where to go on.
  Result<std::uint64_t> put(const wire::ArchiveChunk& chunk);
  // kNotFound: not all of it is here yet.  kCorrupt: the bytes are not what was promised, and were
  // dropped.  kInvalid: not a run directory.  Repeatable.
  Status finish(const wire::ResultMessage& result, const std::string& run_name);
  // Drops everything that is here in part: nothing is awaited any more.
  Status clear();
  // How much of it is here.
  std::uint64_t have(const AttemptId& attempt) const;

 private:
  fs::path part(const AttemptId& attempt) const;
  StateFolder folder_;
};

}  // namespace proctor
