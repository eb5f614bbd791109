#pragma once
// Monitors see this of an attempt's commands: calls that its sandbox refuses and commands that its
// contract denies, as alerts of the trace, and the violations that they come to (R099-R102, R152;
// docs/sandbox.md, docs/tools.md).
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/json.h"
#include "common/score/denied_commands.h"
#include "worker/gateway/redactor.h"
#include "worker/sandbox/sandbox.h"

namespace proctor {
// CommandWatch: the command patterns of a contract while its agent works, on what its model says,
// what the worker's shell tool is handed and what its processes execute; each hit is an alert of
// the monitor, HitBound of them (R099, R152; docs/tools.md, "Command patterns").  Thread-safe.
class CommandWatch {
 public:
  // The payload of one events::kAlert.  Called on any thread, several at a time.
  using Note = std::function<void(const Json& alert)>;
  // Every alert is without what `secrets` strikes out.
  CommandWatch(DeniedCommands patterns, Redactor secrets, Note note)
      : patterns_(std::move(patterns)), secrets_(std::move(secrets)), note_(std::move(note)) {}

  // An answer as the gateway keeps it.  The same line is told once of one answer.
  void answer(std::uint64_t call, std::string_view body);
  void tool(const std::string& id, std::string_view command);
  void program(std::string_view words);  // as CallAttempt has them
  // Says how many hits were left out, if any were.  Once, when the agent has ended.
  void close();

 private:
  void tell(const CommandHit& hit, std::string source);
  const DeniedCommands patterns_;
  const Redactor secrets_;
  const Note note_;
  std::mutex mutex_;
  HitBound bound_{DeniedCommands::kHitsOfRun};
};

// One for an attempt.  Thread-safe: sandboxes, tools and the gateway tell it.
class SafetyWatch {
 public:
  struct Hooks {
    // Writes an alert; its event.
    std::function<std::uint64_t(const Json& alert)> note;
    // The agent must go for what this alert says.  At most once.
    std::function<void(std::uint64_t alert, const std::string& why)> stop;
  };
  // `stop_run`: a critical violation of the agent ends it (safety.stop_run).
  SafetyWatch(bool stop_run, Hooks hooks) : stop_run_(stop_run), hooks_(std::move(hooks)) {}

  // The agent begins, under these patterns; without them no command is looked at.
  void watch(DeniedCommands patterns, Redactor secrets);
  // Null outside the agent's phase, and without patterns.
  CommandWatch* commands() const { return commands_.get(); }
  // The agent has ended.
  void close();

  // `stage`: "agent" or "acceptance".
  void call(const std::string& stage, const CallAttempt& seen);
  // Writes an alert, and what follows from it.
  void alert(const Json& payload);
  // An alert that an earlier life of the worker wrote.
  void heard(const Json& payload) { consider(payload); }
  // Attempts of a command that it has not told, or not whole.
  void untold(const std::string& stage, const ExecOutcome& outcome);
  // Violations since the last time, each once in the attempt.
  std::vector<std::string> take();
  // Acceptance begins again: these were the agent's, and what came later is out of the trace.
  void back_to(const std::vector<std::string>& agents);

 private:
  // The reason for which the agent must go now, if there is one.
  std::optional<std::string> consider(const Json& payload);
  const bool stop_run_;
  const Hooks hooks_;
  std::unique_ptr<CommandWatch> commands_;
  std::mutex mutex_;
  std::set<std::string> known_;
  std::vector<std::string> new_;
  bool stopped_ = false;
};
}  // namespace proctor
