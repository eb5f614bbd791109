#pragma once
// reports/digests.json: what was written into reports/, so that an edited report shows.  Digests of
// the files, the head of the journal they were made of, and a MAC over both under the secret of the
// coordinator's host (host_key.h), where there is one.
//
// Files are written one after the other, beside whoever verifies them and until somebody kills the
// writer.  So writers hold the folder's lock alone and readers share it, and a first digests.json
// announces what is about to lie there beside what lies there: a reader that finds it knows that
// its writer died, and takes either for each file.
//
// Exports in other forms and the results of `selfcheck` and `screen` lie there too.  Each is listed
// by its path when it is written, and announced before that, because its writer may be killed.
#include <functional>
#include <string>
#include <vector>

#include "coordinator/cli/command.h"
#include "coordinator/cli/report_files.h"

namespace proctor::cli {
inline constexpr const char* kReportDigests = "digests.json";

// Writes the files and their digests into reports/.  The caller holds reports_lock() alone.
Status write_with_digests(const FrozenCampaign& frozen, const RenderedReport& made);

// Gives the paths below reports/ that it wrote.
using WriteParts = std::function<Result<std::vector<std::string>>()>;
// Runs `write`, which writes the files or folders `parts` of reports/, and lists what it wrote.
// Holds reports_lock() alone meanwhile.
Status write_listed(const StateFolder& folder, const std::vector<std::string>& parts,
                    const WriteParts& write);
// The same with one file of these bytes.
Status write_listed(const StateFolder& folder, const std::string& name, std::string_view bytes);
// kCorrupt: the file of reports/ was edited after it was listed, or never was.
Status as_listed(const StateFolder& folder, const std::string& name);

// `proctor verify`, the part about reports/: each file is what was written.  Where the host's key
// cannot say so, the files are made again from the journal, if that is still where it was then.
// Waits while they are being written.  Prints one line.  `key_file`: what --seal-key named, or
// empty.  `evidence_whole`: all evidence is as the journal says; else a file that differs from what
// journal and evidence give is not called edited.
Status verify_reports(const FrozenCampaign& frozen, const std::string& key_file,
                      bool evidence_whole, const ProblemHandler& problem);
}  // namespace proctor::cli
