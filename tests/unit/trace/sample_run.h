#pragma once
// A small complete run directory, written by the real recorder, for the tests of this room.
#include "common/trace/event.h"
#include "common/trace/manifest.h"

namespace proctor::testing {

RunReport sample_report();
ManifestInputs sample_inputs();
Json sample_manifest();
// Writes it into `dir`; the digest of report.json.  With `rules` it is judged by them, as workers
// of today do; without, as older ones left it.
Digest write_sample_run(const fs::path& dir, const std::optional<JudgeRules>& rules = std::nullopt);

}  // namespace proctor::testing
