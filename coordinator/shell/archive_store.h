#pragma once
// ArchiveStore: run directories that workers send, piece by piece.
// Pieces are appended to a file under .proctor/incoming; once all bytes are there and have the
// promised digest, the archive is unpacked there (hostile input: trace/archive.h), its report is
// compared with the result, all of it is verified (trace/verify.h), and both move to
// runs/TASK/METHOD/rN/attempt-K.  Whose attempt it is was asked before (Scheduler::awaits).
// Blocking; lives on the coordinator's file threads: any number of attempts at a time, one call at
// a time for each.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/owned.h"
#include "common/base/result.h"
#include "common/trace/verify.h"
#include "common/wire/messages.h"
#include "coordinator/shell/state_folder.h"

namespace proctor {

class ArchiveStore {
 public:
  explicit ArchiveStore(StateFolder folder) : folder_(std::move(folder)) {}

  // What a run directory must say of itself.
  struct Identity {
    std::string campaign, run_name;
    WallTime granted{0}, now{0};  // its times lie between them; 0: not known
    PriceFunction price{};
  };
  struct Kept {
    enum class State : std::uint8_t {
      kWhole,    // it lies in its place, and says what the result says
      kMissing,  // not all of it is here yet
      kDamaged,  // the bytes are not what was promised, and were dropped
      kRefused,  // not a run directory, or one that contradicts its result; dropped
      kHost,     // this host could not: nothing is known of the archive, and it may be tried again
    } state;
    std::string why;
  };

  // The offset up to which everything is on disk.  A piece that starts elsewhere is dropped: the
  // answer tells the sender where to go on.  What one worker sends never meets what another does.
  Result<std::uint64_t> put(const WorkerId& worker, const wire::ArchiveChunk& chunk);
  // Unpacks beside, compares, and only then takes the place of what an interrupted call may have
  // left there.  Repeatable.
  Kept finish(const WorkerId& worker, const wire::ResultMessage& result, const Identity& identity);
  // Drops everything that is here in part: nothing is awaited any more.
  Status clear();
  // Whose pieces of which attempts are here.
  std::vector<std::pair<WorkerId, AttemptId>> in_part() const;
  // How much of it is here.
  std::uint64_t have(const WorkerId& worker, const AttemptId& attempt) const;

 private:
  fs::path part(const WorkerId& worker, const AttemptId& attempt) const;
  // Made if it is not there.
  Result<UniqueFd> open_part(const fs::path& path) const;
  StateFolder folder_;
};

}  // namespace proctor
