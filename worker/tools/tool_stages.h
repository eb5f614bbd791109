#pragma once
// The stage that a run has reached, and which tools it may use there: read, then write, then test.
// A circuit breaker may suspend writing; reading then earns it back.  Pure; one thread.
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "common/base/result.h"
#include "worker/tools/tool_list.h"

namespace proctor {

struct ToolStageRules {
  ToolStage last = ToolStage::kTest;  // as far as the run may go
  bool automatic = false;             // the first call that needs a stage goes on to it
  std::uint64_t reads = 3;            // after a suspension, before writing is allowed again
  std::chrono::milliseconds pause{10'000};
};

struct StageChange {
  enum class By { kAgent, kBreaker };
  ToolStage from, to;
  By by;
  std::string reason;
};
Json stage_json(const StageChange& change);

class ToolStages {
 public:
  using Millis = std::chrono::milliseconds;
  explicit ToolStages(ToolStageRules rules = {}) : rules_(rules) {}

  ToolStage stage() const { return stage_; }
  // What a command sees of the workspace: it is mounted so, whatever the command promises.
  bool shell_writes() const { return stage_ == ToolStage::kTest; }

  struct Verdict {
    std::string refused;  // empty: the tool may be used
    std::optional<StageChange> change;
  };
  // `now` is the run's own clock, here and below.
  Verdict judge(const ToolKind& kind, Millis now);
  // kInvalid: it is no stage to go on to, in words for the model.
  Result<StageChange> advance(ToolStage to, std::string reason, Millis now);
  // Back to reading; nullopt: it was there already.
  std::optional<StageChange> suspend(std::string reason, Millis now);
  // A tool that reads has answered.
  void has_read() { reads_since_ += suspended_ ? 1 : 0; }

 private:
  std::string suspended_lack(Millis now) const;
  const ToolStageRules rules_;
  ToolStage stage_ = ToolStage::kRead;
  bool suspended_ = false;
  std::uint64_t reads_since_ = 0;
  Millis until_{0};
};

}  // namespace proctor
