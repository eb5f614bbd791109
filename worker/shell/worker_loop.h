#pragma once
// WorkerLoop: the worker's process between its coordinators (coordinator_link.h), its slots and its
// spool.  It serves all coordinators that it knows at once: one that ends, dies or refuses it is
// nothing to the others.
// Threads: run() on one thread, which owns the ports and all state; attempts on slot threads; disk
// work on one more, looking at the host on another.  They post what they find out back to the loop.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "worker/shell/coordinator_link.h"
#include "worker/shell/coordinators.h"
#include "worker/shell/worker_parts.h"

namespace proctor {
class WorkerLoop {
 public:
  // How it ended; the process's exit code (coordinator/cli/command.h).
  enum class End { kLeft = 0, kRefused = 2, kGaveUp = 4 };

  WorkerLoop(WorkerLoopOptions options, RunExecutor& executor, BundleCache& bundles, Spool& spool);
  ~WorkerLoop();
  // kInvalid, kUnavailable: a port could not be opened.
  Result<End> run();

 private:
  using Links = std::vector<std::unique_ptr<CoordinatorLink>>;

  CoordinatorLink& add_link(const Stop& stop);
  void begin_links();
  CoordinatorLink* link_of(const std::string& campaign) const;
  void look_for_stops();
  void stops_seen(Result<std::vector<Stop>> stops);
  void share_slots();
  void tick();
  void look_at_host(Instant now);
  void sync_books(Instant now);
  void host_seen(std::vector<std::string> features);
  void tell_change(const std::vector<std::string>& now) const;
  bool gives_up(Instant now);
  void start(const AttemptKey& key);
  void go_on(LeftAttempt left);
  void attempt_ended(const AttemptKey& key, Result<Spool::Entry> entry);
  void cannot_begin(const AttemptKey& key, const std::string& why);
  void on_signal();
  void leave();
  void leave_if_done();
  void finish(End end);

  struct Waits;

  WorkerParts parts_;
  const std::unique_ptr<Waits> waits_;
  const bool grows_;  // somebody may name more coordinators while it runs
  // One for every name that there ever was: work that is under way comes back to its link.
  Links links_;
  std::vector<ServedCampaign> served_;  // as the home has it, or soon has

  Instant began_{};
  bool syncing_books_ = false;
  Instant next_books_{};
  bool looking_ = false;
  Instant next_look_{};
  std::string wrong_stops_;  // what is wrong with the file of coordinators
  std::uint64_t ended_ = 0;
  std::optional<End> end_;
};
}  // namespace proctor
