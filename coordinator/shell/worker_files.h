#pragma once
// Files for workers and from workers: bundles, allow-lists, archives of runs.
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/owned.h"
#include "common/base/result.h"
#include "common/contract/bundle.h"
#include "common/contract/campaign.h"
#include "common/trace/verify.h"
#include "common/wire/curve.h"
#include "common/wire/messages.h"
#include "coordinator/shell/state_folder.h"

namespace proctor {
// The rules that this campaign judges runs by, for each of its tasks.  Pure; any thread.
class CampaignRules {
 public:
  explicit CampaignRules(const Campaign& campaign);
  // A RulesFunction (trace/verify.h).
  const JudgeRules* operator()(const RunReport& report) const;

 private:
  std::map<std::pair<std::string, Digest>, JudgeRules> by_task_;  // and contract
};

// What workers ask for by digest: contracts, methods and the campaign's settings.  Built once.
class Bundles {
 public:
  // `id` is the campaign's.
  Bundles(const Campaign& campaign, const std::string& id);
  const Digest& settings() const { return settings_; }
  // nullptr: nothing here has that digest.
  const std::string* find(const Digest& digest) const;
  const CampaignRules& rules() const { return rules_; }

 private:
  CampaignRules rules_;
  Digest settings_;
  std::map<Digest, std::string> bytes_;
};

// AllowFiles: who may join over TCP, as the files of a campaign's `keys` say it, workers.allow
// first, then allow.d/*.allow by name.  Several people and programs write them, so each file stands
// for itself: one that cannot be read keeps what it last said, and a line that contradicts an
// earlier file's (two keys of one name, two names of one key) does not count.
//
// Thread: one at a time; it reads files.
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

// ArchiveStore: run directories that workers send, piece by piece.
// Pieces are appended to a file under .proctor/incoming; once all bytes are there and have the
// promised digest, the archive is unpacked there (hostile input: trace/archive.h), its report is
// compared with the result, all of it is verified (trace/verify.h), and both move to
// runs/TASK/METHOD/rN/attempt-K.  Whose attempt it is was asked before (Scheduler::awaits).
// Blocking; lives on the coordinator's file threads: any number of attempts at a time, one call at
// a time for each.
class ArchiveStore {
 public:
  explicit ArchiveStore(StateFolder folder) : folder_(std::move(folder)) {}

  // What a run directory must say of itself.
  struct Identity {
    std::string campaign, run_name;
    WallTime granted{0}, now{0};  // its times lie between them; 0: not known
    PriceFunction price{};
    RulesFunction rules{};
    bool judged = false;  // its manifest has the rules of its verdict
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
