#pragma once
// reports/digests.json: what was written into reports/, so that an edited report shows.  Digests of
// the files, the head of the journal they were made of, and a MAC over both under the secret of the
// coordinator's host (host_key.h), where there is one.
#include <functional>
#include <string>

#include "coordinator/cli/report_files.h"

namespace proctor::cli {

inline constexpr const char* kReportDigests = "digests.json";

// Into `dir`, for the files that were just written there.
Status write_report_digests(const fs::path& dir, const RenderedReport& made);

// `proctor verify`, the part about reports/: each file is what was written.  Where the host's key
// cannot say so, the files are made again from the journal, if that is still where it was then.
// Prints one line.  `key_file`: what --seal-key named, or empty.
Status verify_reports(
    const FrozenCampaign& frozen, const std::string& key_file,
    const std::function<void(const std::string& where, const std::string& what)>& problem);

}  // namespace proctor::cli
