#pragma once
// RunExecutor: one attempt from assignment to spooled result.  Walks AttemptRun, packs the run
// directory, spools archive and result, removes the scratch folder.  Blocking; execute() may run on
// several slot threads at once.  Never fails: what goes wrong becomes an invalid result that says
// so; only a result that the disk will not take is an error, and then the next Sync, which no
// longer lists the attempt, tells the coordinator.
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "common/base/result.h"
#include "common/contract/host_things.h"
#include "worker/shell/attempt_run.h"
#include "worker/shell/spool.h"

namespace proctor {
class RunExecutor {
 public:
  struct Options {
    fs::path runs;    // scratch, there and empty, on the spool's file system
    fs::path meters;  // one book per attempt that runs (meter_book.h)
    WorkerId worker;
    ModelsFile models{};  // how models are reached
    bool setup_cache = true;
    Remover remover{};
    std::vector<fs::path> own_places{};  // this worker's folders and keys: no sandbox is shown them
    std::string commit{};                // this build has, for manifests; empty: not known
  };
  RunExecutor(Options options, WorkspaceStore& store, Engines& engines, const BuiltImages& images,
              Spool& spool)
      : options_(std::move(options)),
        store_(store),
        engines_(engines),
        images_(images),
        spool_(spool) {}

  // kUnavailable: this host does not have now what the attempt needs, and nothing of it was begun.
  // May take a second.
  Status can_begin(const AttemptInput& input);
  // What can_begin() found missing, for features: "lacks:secret:API_KEY".  Does not block.
  std::vector<std::string> lacking() const;
  // Likewise: secrets that runs of this campaign asked for and may not be given here.
  std::vector<std::string> denied(const std::string& campaign) const;
  // Its coordinator may use others now.
  void forget_denied(const std::string& campaign);
  // Forgets what is there by now.
  void look_again();
  // Providers without room, as this worker's runs and those of others were told.
  std::vector<ProviderHold> holds() const { return pool_.holds(); }
  void hold(const std::vector<ProviderHold>& of_others) { pool_.hold(of_others); }
  Result<Spool::Entry> execute(const AttemptInput& input, AttemptWatch& watch);
  // The result of one that this worker cannot begin; of `input` only what names the attempt counts.
  Result<Spool::Entry> decline(const AttemptInput& input, const std::string& why);
  // The meter books of what runs, for the day when the power goes; takes some milliseconds of each.
  void sync_books();

 private:
  wire::ResultMessage walk(const AttemptInput& input, AttemptWatch& watch, const fs::path& dir,
                           fs::path& archive, MeterBook* book);
  Options options_;
  WorkspaceStore& store_;
  Engines& engines_;
  const BuiltImages& images_;
  Spool& spool_;
  ProviderPool pool_;  // of all gateways
  std::mutex books_mutex_;
  std::map<std::string, std::shared_ptr<MeterBook>> books_;  // by the attempt's folder
  mutable std::mutex mutex_;
  std::map<std::string, HostThing> lacking_;             // by feature
  std::map<std::string, std::set<std::string>> denied_;  // features, by campaign
};
}  // namespace proctor
