// report.json has one spelling; manifest.json is read into all that it says.
#include "common/trace/run_report.h"

#include "common/trace/manifest.h"
#include "tests/fuzz/fuzz.h"

namespace proctor::fuzz::run_report {

void target(std::string_view bytes) {
  if (const Result<RunReport> report = parse_report(bytes); report.ok()) {
    PROCTOR_ASSERT(report_bytes(*report) == bytes);
    return;
  }
  const Result<Json> json = parse_json(bytes);
  if (!json.ok()) return;
  (void)check_manifest(*json);
  const Result<ManifestInputs> manifest = read_manifest(*json);
  if (!manifest.ok()) {
    PROCTOR_ASSERT(!manifest.error().detail.empty());
    return;
  }
  const Json made = make_manifest(*manifest);
  PROCTOR_ASSERT(make_manifest(must(read_manifest(made))) == made);
}

}  // namespace proctor::fuzz::run_report
