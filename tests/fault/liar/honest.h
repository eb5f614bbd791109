#pragma once
// An honest worker: it does what the product's own does on the wire, with runs that take
// milliseconds, and remembers what it said.
#include <map>
#include <set>

#include "tests/fault/liar/evidence.h"
#include "tests/fault/liar/peer.h"
#include "tests/fault/liar/random.h"

namespace proctor::liar {

class Honest {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Stage { kRunning, kDelivering, kAcked };
  struct Work {
    wire::Assignment assigned;
    Epoch epoch;
    Stage stage = Stage::kRunning;
    Clock::time_point ends;
    Evidence said;  // once it has ended
    Clock::time_point sent{};
  };
  Honest(Network& network, std::string name, const wire::KeyPair& key, const Played& played,
         fs::path scratch, std::uint64_t seed);

  Status connect() { return peer_.connect(); }
  void close() { peer_.close(); }
  bool is_up() const { return peer_.is_up(); }
  // What is due.  An error is this machine's.
  Status tick();
  void leave();

  const std::string& name() const { return name_; }
  BootId boot() const { return boot_; }
  Epoch epoch() const { return epoch_; }
  const std::map<AttemptId, Work>& works() const { return works_; }
  bool drained() const { return drained_; }
  // What no honest worker should ever hear.
  const std::vector<std::string>& complaints() const { return complaints_; }

 private:
  void on(wire::Message m);
  void sync();
  void send_from(Work& work, std::uint64_t offset);
  std::vector<wire::RunningAttempt> running() const;

  std::string name_;
  const Played& played_;
  fs::path scratch_;
  Random random_;
  BootId boot_;
  Epoch epoch_;
  std::map<AttemptId, Work> works_;
  bool drained_ = false, was_up_ = false;
  std::vector<std::string> complaints_;
  Clock::time_point next_sync_{};
  Peer peer_;
};

}  // namespace proctor::liar
