#pragma once
// Workers that a campaign starts on this host.
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/base/owned.h"
#include "common/base/result.h"
#include "common/base/subprocess.h"
#include "coordinator/shell/state_folder.h"

namespace proctor {
// A folder that somebody may move while it is used: held by a descriptor, so that where it is now
// can be told.  Adapter (file system); any thread.
class PlacedFolder {
 public:
  static Result<PlacedFolder> open(const fs::path& path);

  bool is_in_place() const;  // at the path that it was opened by
  // Empty: it was removed, or this host does not say.
  fs::path now_at() const;

 private:
  PlacedFolder(fs::path path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  fs::path path_;
  UniqueFd fd_;
};

struct LocalWorkersSpec {
  StateFolder folder;
  std::string endpoint;
  std::uint32_t workers = 2;
  std::uint32_t slots = 2;
  std::vector<std::string> extra;            // further arguments of each
  std::chrono::milliseconds backoff{1'000};  // before the first is started again; it doubles
};

// LocalWorkers: proctor-worker processes on this machine, for `proctor run`.
// They do not die with the coordinator: killed, it is resumed, and they go on and hand over what
// they did; a new one of that name is started when the old one has ended.
// One that nobody comes back for gives up by itself; one that ends before its time is started
// again, or its runs would wait for the end of their lease.
class LocalWorkers {
 public:
  // kNotFound: the worker program is not beside this one nor on PATH.
  static Result<LocalWorkers> start(const LocalWorkersSpec& spec);
  LocalWorkers(LocalWorkers&&) noexcept = default;
  LocalWorkers& operator=(LocalWorkers&&) noexcept = default;
  ~LocalWorkers() = default;  // what still runs is killed (Child)
  // Ends what still works for trials whose coordinator was killed and that nobody comes back for,
  // and removes all that it made: mounts, control groups, results that nobody has fetched.
  static Status end_left(const StateFolder& folder);
  // Starts those again that did not leave in good order, each at most once in a while, and gives
  // one up that ends as soon as it has begun, again and again.  Call it now and then; from one
  // thread.
  void tend();
  // There were some, and all of them are given up.
  bool all_given_up() const;
  // One that an earlier coordinator started still works.
  bool orphan_works() const;
  // The campaign is over: waits a while for all of them together, then ends those that are left,
  // and removes what killed ones left behind.  Says whom it waits for, since when and until when.
  void stop();

 private:
  using Clock = std::chrono::steady_clock;
  struct Local {
    std::string name;
    CommandSpec command;
    std::optional<Child> child;  // none: one that an earlier coordinator started still works
    Clock::time_point next;      // not started again before this
    std::chrono::milliseconds backoff{1'000};
    Clock::time_point begun{};  // the last time
    std::uint32_t early = 0;    // how often in a row it ended by itself as soon as it had begun
    bool given_up = false;
  };
  LocalWorkers() = default;
  Status begin(Local& local) const;
  bool orphan_works(const Local& local) const;
  // Those of ours that have not ended, or none after `time`.
  std::vector<std::string> wait_for_all(std::chrono::milliseconds time);
  void end_children();
  void end_orphan(const Local& local, const std::vector<int>& signals) const;
  void end_stray(const Local& local) const;
  bool has_moved() const;
  void clean_up_after(const Local& local) const;
  fs::path lock_of(const Local& local) const {
    return folder_.worker_root() / "workers" / local.name / "lock";
  }
  fs::path log_of(const Local& local) const { return folder_.worker_log(local.name); }
  StateFolder folder_;
  std::optional<PlacedFolder> place_;  // none: folders of one that was killed
  std::vector<Local> workers_;
};
}  // namespace proctor
