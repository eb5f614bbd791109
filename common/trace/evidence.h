#pragma once
// The files of a run directory, and the line that says that one of them is cut.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/digest.h"
#include "common/base/files.h"
#include "common/base/result.h"
#include "common/trace/run_report.h"

namespace proctor {
// The last line of a program's output of which not all is kept: whoever reads the file knows that
// it is cut, and by how much, without the events.  Pure; any thread.

inline constexpr std::size_t kCutLineBytes = 160;  // at most

// With the line's end before it and behind it.
std::string cut_line(std::uint64_t lost, std::uint64_t written);
// The line that a file ends with, without its ends, where it is one of these; `tail` is the last
// kCutLineBytes of it, or all.  A program that writes such a line itself is taken at its word.
std::optional<std::string> cut_line_of(std::string_view tail);

// The files of a run directory: walking them, hashing them, naming the folder of a check.
// Adapter (file system); functions are thread-safe for different folders.  Links, devices and
// sockets in a run directory are errors: evidence is bytes.

inline constexpr std::string_view kManifestFile = "manifest.json";
inline constexpr std::string_view kEventsFile = "events.jsonl";
inline constexpr std::string_view kPatchFile = "patch.diff";
inline constexpr std::string_view kReportFile = "report.json";
inline constexpr std::string_view kAcceptanceDir = "acceptance",
                                  kAcceptanceSetupDir = "setup-acceptance";
// The folder of the n-th acceptance (from 1) that a repetition followed; the last has the plain
// name.
inline std::string repeated_dir(std::string_view dir, std::uint64_t n) {
  return std::string(dir) + "-" + std::to_string(n);
}
// Files of the agent that its method keeps, below workspace/ and home/.
inline constexpr std::string_view kKeptDir = "agent/kept";
// In acceptance/<id>/: the streams of a check, the file its harness wrote, and its CheckReport.
inline constexpr std::string_view kStdoutFile = "stdout";
inline constexpr std::string_view kStderrFile = "stderr";
inline constexpr std::string_view kResultsFile = "results";
inline constexpr std::string_view kCheckFile = "result.json";

// A check's folder below acceptance/: letters, digits, '_', '-' and inner '.' stay, other bytes
// become %XX; a long name is cut and ends in its digest.  Different ids have different names.
std::string check_dir_name(std::string_view check_id);

struct TreeEntry {
  std::string path;  // relative, '/'-separated
  bool folder = false;
  std::uint64_t bytes = 0;
};
// Everything below `dir`, sorted by path bytes.  kInvalid: something that is neither a regular
// file nor a folder.  kExhausted: more than limits::kArchiveEntries.
Result<std::vector<TreeEntry>> list_tree(const fs::path& dir);

// Digest and length of a regular file, read without following a link at its end.
Result<EvidenceFile> hash_file(const fs::path& dir, const std::string& relative);

// The payload of the last event of this type in the log of a run directory, up to a line that is
// being written; null: there is none.  Errors: of each_event().
Result<Json> last_event(const fs::path& run_dir, std::string_view type);
// The patch in a run directory.  kNotFound: none was written; kCorrupt: what the agent left, or an
// event that tells of it, could not be read, and why.
Result<std::string> patch_of(const fs::path& run_dir);
// Paths that this patch does not hold as the agent left them: devices, sockets, pipes, set-id
// files.  kCorrupt: as above.
Result<std::vector<std::string>> refused_paths(const fs::path& run_dir);
}  // namespace proctor
