#pragma once
// Upstream's reports as files of a folder; each one written is named on standard output.
// Private to the program.
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "coordinator/cvdp/report/report.h"

namespace proctor::cli {

// "2026-01-31 12:00:00", as reports have it.
std::string local_time();

// report.txt, and report.json unless it is the file that was read.
Status write_single_report(const cvdp::Value& report, const fs::path& folder, bool is_there);
// composite_report.json and what is made of it.
Status write_composite(const std::vector<cvdp::Value>& reports,
                       const cvdp::CompositeMetadata& metadata, const fs::path& folder);
// composite_report.txt, pass_at_k.txt and .json.  `k` 0: the file's own.
Status write_composite_texts(const cvdp::Value& composite, const fs::path& folder, std::int64_t k);

}  // namespace proctor::cli
