#pragma once
// The parts of a worker that its links (coordinator_link.h) share, the cache of bundles among them.
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/base/digest.h"
#include "common/base/files.h"
#include "common/base/result.h"
#include "common/contract/bundle.h"
#include "common/contract/campaign.h"
#include "common/wire/zmq_port.h"
#include "worker/core/slot_share.h"
#include "worker/shell/coordinators.h"
#include "worker/shell/run_executor.h"

namespace proctor {
// BundleCache: contracts, methods and settings by digest, on disk under ROOT/<campaign>/<digest>,
// the last few also in memory.  By campaign, because a contract's bundle also names the folder it
// came from, which its digest does not cover.  A bundle is stored only if it opens under its
// digest, and what no longer does is removed, so that it is asked for again.  Blocking;
// thread-safe.
class BundleCache {
 public:
  enum class Kind { kContract, kMethod, kSettings };
  explicit BundleCache(fs::path root) : root_(std::move(root)) {}

  struct Key {
    std::string campaign;
    Digest digest;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  bool holds(const Key& key) const;
  // kInvalid or kCorrupt: the bytes are not what the digest names.
  Status put(Kind kind, const Key& key, const std::string& bytes);
  Result<std::shared_ptr<const ContractBundle>> contract(const Key& key);
  Result<std::shared_ptr<const Method>> method(const Key& key);
  Result<std::shared_ptr<const Settings>> settings(const Key& key);

 private:
  template <class T>
  using Memory = std::map<Key, std::shared_ptr<const T>>;
  template <class T, class Open>
  Result<std::shared_ptr<const T>> get(Memory<T>& memory, const Key& key, Open open);
  fs::path path(const Key& key) const { return root_ / key.campaign / key.digest.hex(); }

  const fs::path root_;
  std::mutex mutex_;
  Memory<ContractBundle> contracts_;
  Memory<Method> methods_;
  Memory<Settings> settings_;
};
}  // namespace proctor

namespace boost::asio {
class thread_pool;
}  // namespace boost::asio

namespace proctor {
struct WorkerLoopOptions {
  WorkerId worker;
  std::uint32_t slots = 1;
  // The features that this host offers now ("sandbox:docker", ...); asked every few seconds, beside
  // the loop.
  std::function<std::vector<std::string>()> features;
  std::vector<Stop> stops;  // coordinators
  // Asked like `features`; none: the stops are those for good.
  std::function<Result<std::vector<Stop>>()> look_for_stops{};
  std::function<Result<wire::ZmqPort::Options>(const Stop&, const std::string& address)> port;
  fs::path home;      // of this worker: spool/, bundles/, runs/
  fs::path meters;    // books of attempts
  bool once = false;  // leave as soon as something was done and nothing is left to do
  std::optional<std::chrono::seconds> give_up_after;  // without a word from any coordinator
  // How long one that is leaving waits for a coordinator to take its results; nothing: until it
  // has them.
  std::optional<std::chrono::seconds> leave_grace;
  // Attempts that an earlier life left and this one goes on with.
  std::vector<LeftAttempt> left{};
};

struct LocalAttempt {  // between Assign and its spooled result
  wire::Assignment assignment;
  Digest settings;
  Epoch epoch;
  std::shared_ptr<AttemptWatch> watch = std::make_shared<AttemptWatch>();
  bool waiting = true;  // for bundles
  std::shared_ptr<const LeftAttempt> left{};
};
using AttemptKey = std::pair<std::string, AttemptId>;  // campaign first: ids repeat between them

// WorkerParts: the worker's loop, its threads, its attempts, and how its slots are given out.  All
// of it is the loop's, but for what says otherwise.
struct WorkerParts {
  WorkerParts(WorkerLoopOptions o, RunExecutor& e, BundleCache& b, Spool& s);
  ~WorkerParts();

  WorkerLoopOptions options;
  RunExecutor& executor;
  BundleCache& bundles;
  Spool& spool;
  const BootId boot;

  struct Threads;
  const std::unique_ptr<Threads> threads;  // outlives all that follows
  boost::asio::io_context& io;
  zmq::context_t& zmq;
  boost::asio::thread_pool& slots;
  boost::asio::thread_pool& disk;
  boost::asio::thread_pool& look;  // an engine that hangs must not hold up the disk

  std::vector<std::string> features;  // as last seen
  std::vector<BootId> earlier;        // lives whose books are whole
  std::map<AttemptKey, LocalAttempt> attempts;
  // By campaign: attempts of one that was left still count in its own.
  std::map<std::string, std::shared_ptr<RateGate>> gates;
  SlotShare share;
  bool leaving = false;  // for good, whatever coordinators there are

  void on_disk(std::function<void()> work);  // its thread, one at a time
  // `then` is the loop's, with what `work` came to.
  template <class Work, class Then>
  void on_disk(Work work, Then then) {
    on_disk([this, work = std::move(work), then = std::move(then)] {
      to_loop(
          [then, done = std::make_shared<decltype(work())>(work())] { then(std::move(*done)); });
    });
  }
  void to_loop(std::function<void()> work);
  std::shared_ptr<RateGate> gate_of(const std::string& campaign);
  AttemptInput input_of(const AttemptKey& key, const LocalAttempt& local);
};
}  // namespace proctor
