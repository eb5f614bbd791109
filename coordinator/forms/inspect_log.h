#pragma once
// One method's runs as a log that Inspect's viewer, data frames and scorers read (docs/forms.md):
// a sample is a task, an epoch a run of it.  Parked and open runs are not in it.  What acceptance
// could not judge, and what is invalid, is kept and unscored, never a 0.
#include <string>

#include "common/base/files.h"
#include "coordinator/forms/export_facts.h"

namespace proctor {

// "2026-11-23T10-00-00-00-00_pilot-my-agent_12ab34cd56ef.eval"
std::string inspect_log_name(const ExportedMethod& method);
Status write_inspect_log(const ExportedMethod& method, const fs::path& path);

}  // namespace proctor
