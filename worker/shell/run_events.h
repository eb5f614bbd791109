#pragma once
// Payloads of trace events as JSON (R052, R081, R088, R090-R092).  Pure but for the output files a
// payload names, which are hashed and told to be cut.  Text that is not UTF-8 is made printable:
// the trace holds JSON.
#include <optional>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/base/json.h"
#include "worker/agent/agent.h"
#include "worker/core/run_lifecycle.h"
#include "worker/sandbox/sandbox.h"
#include "worker/workspace/workspace.h"

namespace proctor {

ProgramEnd end_of(const ExecOutcome& outcome);

std::string as_utf8(const std::string& text);
// Where more was produced than the file holds, it ends with a line that says so (evidence.h).
void mark_cut(const fs::path& file, std::uint64_t produced);
// The same, and {bytes, kept, digest}: what was produced, what was kept, the digest of what was
// kept.
Json output_payload(const fs::path& file, std::uint64_t produced);
Json exec_payload(const std::string& command, const ExecOutcome& outcome,
                  std::chrono::milliseconds ceiling, const fs::path& out, const fs::path& err);
Json tool_payload(const ToolUse& use);
// `kept`: the contract's word about files that git ignores.
Json mutation_payload(const Patch& patch, const std::vector<std::string>& kept);
// Without `applied`: it fits by no rung, and `why`.
Json applied_payload(Room room, const std::optional<AppliedPatch>& applied, const std::string& why);
Json check_payload(const CheckReport& check, std::int64_t started_ms, std::int64_t finished_ms);
Json termination_payload(const RecordTermination& t);
// true, false, or the list of places.
Json network_payload(const NetworkAccess& access);
// Of one list of an event.  Two fit into it; what comes again before each check, and the
// candidate's code can make long, takes less: its names fill no event log.
inline constexpr std::size_t kListedPaths = 1000, kListedBytes = std::size_t{512} << 10,
                             kListedAgain = std::size_t{16} << 10;
// At most kListedPaths of them, in so many bytes as they are written, and how many there are.
Json paths_payload(const std::vector<std::string>& paths, std::size_t most_bytes = kListedBytes);

}  // namespace proctor
