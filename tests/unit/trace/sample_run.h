#pragma once
// A small complete run directory, written by the real recorder, for the tests of this room.
#include "common/trace/event.h"
#include "common/trace/manifest.h"

namespace proctor::testing {

RunReport sample_report();
ManifestInputs sample_inputs();
Json sample_manifest();
// Writes it into `dir`; the digest of report.json.
Digest write_sample_run(const fs::path& dir);

}  // namespace proctor::testing
