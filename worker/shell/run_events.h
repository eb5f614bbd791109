#pragma once
// Payloads of trace events (common/trace/payloads.h) from what the worker has.  Pure but for the
// output files that a payload names, which are hashed and told to be cut.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/trace/payloads.h"
#include "worker/agent/agent.h"
#include "worker/core/run_lifecycle.h"
#include "worker/sandbox/sandbox.h"
#include "worker/workspace/workspace.h"

namespace proctor {
ProgramEnd end_of(const ExecOutcome& outcome);

// Where more was produced than the file holds, it ends with a line that says so (evidence.h).
void mark_cut(const fs::path& file, std::uint64_t produced);
// Marks the files of its streams likewise.
events::ProgramUse program_use(const ExecOutcome& outcome, const fs::path& out,
                               const fs::path& err);
events::CommandRan command_ran(const std::string& command, const ExecOutcome& outcome,
                               std::chrono::milliseconds ceiling, const fs::path& out,
                               const fs::path& err, const std::string& tool = "");
// `kept`: the contract's word about files that git ignores.
events::Mutation mutation_of(const Patch& patch, const std::vector<std::string>& kept);
// Payloads of events::kFragment: both streams of a check that did not pass.
std::vector<Json> fragments_of(FragmentFinder& finder, const std::string& check,
                               const ExecSpec& ran);
// The other way, of the listed paths.  kInvalid, as its extraction was: what was left is
// unreadable.
Result<Patch> as_extracted(const events::Mutation& mutation, std::string diff);
// Without `applied`: it fits by no rung, and `why`.
events::PatchTried patch_tried(Room room, const std::optional<AppliedPatch>& applied,
                               const std::string& why);
// true, false, or the list of places.
Json network_payload(const NetworkAccess& access);
// Bounds of one list of an event.  Two fit into it; what comes again before each check, and the
// candidate's code can make long, takes less: its names fill no event log.
inline constexpr std::size_t kListedPaths = 1000, kListedBytes = std::size_t{512} << 10,
                             kListedAgain = std::size_t{16} << 10;
// At most kListedPaths of them, in so many bytes as they are written, and how many there are.
events::PathList path_list(const std::vector<std::string>& paths,
                           std::size_t most_bytes = kListedBytes);

// AgentLog: what an agent does while it works, as events of its run's log.  Calls, tools and
// messages of its own are as many and as long as it likes, so they have a share of the log: at its
// end the agent must go, as at a cap, and the rest of the log is there for how it is judged.  A
// full log would be a trace that could not be written, and so a run that nobody judges.
// Not thread-safe: whoever guards the recorder guards this.
class AgentLog {
 public:
  struct Bounds {
    // The size of the whole log at which the agent must go.
    std::size_t bytes = kEventLogBytes / 8 * 5;
    std::uint64_t events = kEventsMax / 10 * 8;
    // Events of what it had begun by then are noted as far as this goes, and no further.
    std::size_t bytes_most = kEventLogBytes / 8 * 6;
    std::uint64_t events_most = kEventsMax / 10 * 9;
  };
  AgentLog() = default;
  explicit AgentLog(const Bounds& bounds) : bounds_(bounds) {}

  struct Noted {
    std::uint64_t seq = 0;  // of the event, or of the one that says why there is none
    std::string full{};     // once: why the agent must go, which `evidence` says
    std::uint64_t evidence = 0;
  };
  // An event that is longer than any may be ends the agent's share as well.  The error is the
  // host's: the file cannot be written.
  Result<Noted> note(RunRecorder& log, std::string_view type, Actor actor, const Json& payload);

 private:
  Result<Noted> fill(RunRecorder& log, std::string why, Noted noted);
  Bounds bounds_{};
  std::uint64_t full_ = 0;  // the event that said so; no log's first is
};

// Words for people about a command that failed: the end of what it wrote to stderr, and what its
// network refused.  Stands behind a rationale, never in a decision.

// The last lines of `text` that are not empty, at most three, printable, joined by " | ".
std::string last_lines(std::string_view text);

// "stderr ends: ... | ...; refused by its network: HOST:PORT (2 times)".  Empty: there is nothing
// to tell, or the file cannot be read.  Any thread.
std::string failure_words(const fs::path& stderr_file, const std::vector<std::string>& refused);
}  // namespace proctor
