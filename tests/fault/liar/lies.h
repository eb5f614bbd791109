#pragma once
// The liar: a worker with a key of its own that says anything, about anybody's attempts, at any
// time.  What it knows is more than a worker can know: what honest workers hold and said is open to
// it.
#include <array>
#include <memory>

#include "tests/fault/liar/honest.h"

namespace proctor::liar {

enum class Lie : std::uint8_t {
  kJoin,        // a Sync that asks for work
  kSync,        // a Sync about anybody's attempts, with any boot and campaign
  kOtherName,   // a Sync under a name that is not its key's
  kEpochAhead,  // a Sync that has seen an epoch that is yet to come
  kProgress,
  kWant,
  kChunk,           // a piece of some archive, at any offset
  kBareResult,      // without evidence
  kGarbageResult,   // after a piece of noise that has the promised digest
  kForgedResult,    // after an archive that reads well and says success
  kReplayedResult,  // an honest worker's own words, changed a little
  kFault,           // a failure of the task or the agent, not of its host, always for one cause
  kTakeBack,        // a piece of an attempt's archive, and then that it never began
  kLeave,
  kWrongWay,  // what a coordinator says
  kGarbage,   // bytes, or a frame with a few of them changed
  kOldVersion,
  kBurst,      // one message two hundred times
  kReconnect,  // another connection, or a second one
  kCount
};
// Whose attempt it is about.
enum class Target : std::uint8_t {
  kNever,  // not in the plan, or a number that is far away
  kUnmade,
  kOthersRunning,
  kOthersDelivering,
  kOthersAcked,
  kOwn,
  kOwnEnded,
  kCount
};
// When.
enum class Phase : std::uint8_t { kFirstLife, kBeforeOthers, kLaterLife, kOver, kCount };
const char* to_string(Lie lie);
const char* to_string(Target target);
const char* to_string(Phase phase);

struct Counters {
  template <class A, class B>
  using Table =
      std::array<std::array<std::uint64_t, std::size_t(B::kCount)>, std::size_t(A::kCount)>;
  Table<Lie, Target> by_target{};
  Table<Lie, Phase> by_phase{};
};

class Liar {
 public:
  using Workers = std::vector<std::unique_ptr<Honest>>;
  Liar(Network& network, const wire::KeyPair& key, const Played& played, const Workers& others,
       fs::path scratch, std::uint64_t seed, std::optional<Lie> without, Counters& counters);

  Status connect();  // both of its connections
  void close();
  bool is_up() const { return first_.is_up(); }
  Status lie(Phase phase);
  // Lets go of what was assigned to it, so that a campaign can end.
  Status give_up();
  void leave();
  // Of its own attempts: those of which the living coordinator has acknowledged a piece.
  const std::set<AttemptId>& begun() const { return begun_; }

 private:
  struct Aim {
    Target kind;
    AttemptId attempt;
  };
  void on(wire::Message m);
  Aim aim();
  std::vector<AttemptId> some_attempts(const Aim& aim);
  std::vector<wire::RunningAttempt> some_running(const Aim& aim);
  Epoch some_epoch();
  BootId some_boot();
  Digest some_digest();
  Usage some_usage();
  wire::Sync some_sync(const Aim& aim);
  wire::ResultMessage some_result(const Aim& aim);
  Status send_forged(const Aim& aim);
  wire::ArchiveChunk some_chunk(const Aim& aim);
  wire::Message some_wrong_way(const Aim& aim);
  std::string some_garbage(const Aim& aim);
  Peer& some_peer() { return random_.one_in(4) ? second_ : first_; }
  Status tell(Lie lie, const Aim& aim);

  const Played& played_;
  const Workers& others_;
  fs::path scratch_;
  Random random_;
  std::optional<Lie> without_;
  Counters& counters_;
  BootId boot_;
  Epoch epoch_;
  std::string campaign_ = kCampaignId;
  std::vector<Digest> digests_;  // seen: of contracts, methods, archives
  std::map<AttemptId, Epoch> own_;
  std::set<AttemptId> own_ended_, begun_;
  bool giving_up_ = false;
  std::chrono::steady_clock::time_point next_{};
  Peer first_, second_;
};

}  // namespace proctor::liar
