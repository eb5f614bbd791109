#pragma once
// Where the evidence of a run that counts lies.  Private to the program.
#include "common/base/text.h"
#include "common/trace/evidence.h"
#include "common/trace/run_report.h"
#include "coordinator/aggregate/report.h"
#include "coordinator/cli/campaign_files.h"

namespace proctor::cli {

// Below it: the files a single-shot method wrote (common/answers/single_shot.h).
inline constexpr const char* kAnswerFile = "agent/answer.json";

// The attempt whose report the journal names.
inline Result<fs::path> evidence_of(const FrozenCampaign& frozen, const RunRecord& run) {
  for (std::uint32_t n = run.attempts; 0 < n; --n) {
    const fs::path folder = frozen.folder.attempt(run.name, AttemptNo(n));
    const Result<std::string> bytes = read_file(folder / kReportFile, kReportBytes);
    if (bytes.ok() && sha256(*bytes) == run.report) return folder;
  }
  return Error{Errc::kNotFound, "no attempt left evidence (proctor explain " + run.name + ")"};
}

}  // namespace proctor::cli
