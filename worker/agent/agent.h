#pragma once
// Agents: one interface for every kind of method, and the briefing that each is given.
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "common/base/files.h"
#include "common/base/result.h"
#include "common/contract/campaign.h"
#include "common/contract/caps.h"
#include "common/contract/contract.h"
#include "common/score/outcome.h"
#include "worker/sandbox/sandbox.h"
#include "worker/workspace/workspace.h"

namespace proctor {
// The briefing, one text (R067, R068): the issue, then, apart from it, the obligations of
// acceptance, then the limits.  Pure.  It names checks but never their commands, test ids, files or
// the reference patch: those belong to the acceptance workspace.

// `network`: all that this agent may reach, by the contract and by its method.
// `caps`: the effective ones; those on money and time apart, which an agent cannot count itself.
// `model_at`: the variable with the address of its method's gateway; empty: its program has none.
std::string briefing_text(const Contract& contract, const NetworkAccess& network,
                          std::chrono::milliseconds wall, const Caps& caps = {},
                          std::string_view model_at = {});

// An agent works on the workspace between briefing and extraction.  One interface for every method
// kind, so that images, models and tool loops slot in beside noop, reference and command.  An agent
// changes the workspace and reports what it ran; it never sees checks, acceptance files or the
// reference patch (R067), except `reference`, which is that patch.
// Blocking; one call per attempt, on its slot thread.
// Fails with kInvalid when the input can never work (there is no reference patch) and with anything
// else when the host failed; what the agent's own program does is a report, not an error, and so is
// a patch of somebody's that does not apply.

// One externally visible action of an agent (R088).
struct ToolUse {
  std::string tool;     // "shell"
  std::string command;  // as given
  ExecOutcome outcome;
  std::chrono::milliseconds ceiling{0};  // R092
  fs::path stdout_file, stderr_file;     // bounded; the recorder digests them
};

// All references outlive work().
struct AgentJob {
  const Contract& contract;
  const Method& method;
  Workspace& workspace;
  SandboxEngine& engine;
  SandboxSpec sandbox;   // workspace, limits, toolchains and base environment are set
  std::string briefing;  // verbatim
  std::string run_name;
  std::uint32_t seed = 0;
  std::uint32_t replicate = 0;
  std::chrono::milliseconds wall{0};
  fs::path scratch;  // empty folder of this attempt, removed by the caller
  fs::path logs;     // existing folder of the run directory for the agent's own output
  std::function<void()> on_sandbox;             // the sandbox is about to run foreign code
  std::function<void(const ToolUse&)> on_tool;  // after each use
  // As ExecSpec has them.
  std::function<void(const CallAttempt&)> attempted{};
  bool see_programs = false;
  // Before each program: the time it may take, at most `wall`; nullopt: the budget allows no start.
  // Absent: `wall`.
  std::function<std::optional<std::chrono::milliseconds>()> start_program{};
  // Where its program outlives this process: told under which name, before it begins.
  std::function<void(const std::string&)> outlives{};
  // A program that an earlier life of this worker began, and the time it may take in all: it is
  // waited for, and none is started.
  struct Left {
    LeftCommand command;
    std::chrono::milliseconds time{0};
  };
  std::optional<Left> left{};
};

struct AgentReport {
  std::optional<ExecOutcome> program;  // how its program ended; noop and reference have none
  // The sandbox it ran in: kept until a killed worker would no longer have to look into it.
  std::unique_ptr<Sandbox> sandbox{};
  // For a patch that it handed in: as Workspace::apply() has it, or why it does not apply.
  std::optional<AppliedPatch> applied{};
  std::string misfit{};
  ModelLack no_model{};  // of one whose worker asks for it
};

// Applies a patch that somebody hands in under the name `what`.
Result<AgentReport> hand_in_patch(Workspace& workspace, const std::string& what,
                                  const std::string& diff);

class Agent {
 public:
  virtual ~Agent() = default;
  virtual Result<AgentReport> work(const AgentJob& job, std::stop_token cancel) = 0;
};

// For every kind but kSingleShot and kToolLoop, whose agents are worker/model's and worker/shell's,
// and kRecorded, which has none.
std::unique_ptr<Agent> make_agent(Method::Kind kind);

// Where the files of a method are.
inline constexpr const char* kMethodAt = "/proctor/method";

// $PROCTOR_BRIEFING holds at most this much, so that the program can still be started (one string
// of an environment may have 128 KiB on Linux); the file is always whole.
inline constexpr std::size_t kBriefingVariableBytes = std::size_t{32} << 10;

// Writes files into `dir` (made) at their relative paths with their modes.  kInvalid: unsafe path.
Status write_referenced_files(const fs::path& dir, const std::vector<ReferencedFile>& files);
}  // namespace proctor
