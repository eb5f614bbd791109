#pragma once
// reports/digests.json: what was written into reports/, so that an edited report shows.  Digests of
// the files, the head of the journal they were made of, and a MAC over both under the secret of the
// coordinator's host (host_key.h), where there is one.
//
// Files are written one after the other, beside whoever verifies them and until somebody kills the
// writer.  So writers hold the folder's lock alone and readers share it, and a first digests.json
// announces what is about to lie there beside what lies there: a reader that finds it knows that
// its writer died, and takes either for each file.
#include <functional>
#include <string>

#include "coordinator/cli/report_files.h"

namespace proctor::cli {

inline constexpr const char* kReportDigests = "digests.json";

// Writes the files and their digests into reports/.  The caller holds reports_lock() alone.
Status write_with_digests(const FrozenCampaign& frozen, const RenderedReport& made);

// `proctor verify`, the part about reports/: each file is what was written.  Where the host's key
// cannot say so, the files are made again from the journal, if that is still where it was then.
// Waits while they are being written.  Prints one line.  `key_file`: what --seal-key named, or
// empty.
Status verify_reports(
    const FrozenCampaign& frozen, const std::string& key_file,
    const std::function<void(const std::string& where, const std::string& what)>& problem);

}  // namespace proctor::cli
