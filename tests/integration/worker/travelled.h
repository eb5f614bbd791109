#pragma once
// What a worker's result brought along: the run directory, its report and its events.
#include "common/trace/archive.h"
#include "common/trace/event.h"
#include "common/trace/evidence.h"
#include "tests/integration/worker/scene.h"

namespace proctor::testing {

// The run directory that travelled, its digests checked.
inline fs::path unpacked(Scene& scene, FakeCoordinator& coordinator, AttemptId attempt) {
  const wire::ResultMessage& result = coordinator.results.at(attempt);
  const std::string& bytes = coordinator.archives.at(attempt);
  CHECK(sha256(bytes) == result.archive);
  CHECK(bytes.size() == result.archive_bytes);
  const fs::path file = scene.temp.path() / "got.tar.zst";
  REQUIRE(write_file(file, bytes).ok());
  const fs::path dir = scene.temp.path() / ("got-" + to_string(attempt));
  const Status done = unpack_archive(file, dir);
  REQUIRE_MESSAGE(done.ok(), (done.ok() ? "" : done.error().detail));
  return dir;
}

inline RunReport report_of(const fs::path& dir, const Digest& digest) {
  const std::string bytes = read_file(dir / kReportFile, kReportBytes).value();
  CHECK(sha256(bytes) == digest);
  Result<RunReport> report = parse_report(bytes);
  REQUIRE_MESSAGE(report.ok(), (report.ok() ? "" : report.error().detail));
  return *report;
}

inline std::vector<TraceEvent> events_of(const fs::path& dir, const RunReport& report) {
  const std::string bytes = read_file(dir / kEventsFile, kEventLogBytes).value();
  EventChain chain;
  std::vector<TraceEvent> events;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t end = bytes.find('\n', at);
    REQUIRE(end != std::string::npos);
    Result<TraceEvent> event = chain.accept(std::string_view(bytes).substr(at, end - at));
    REQUIRE_MESSAGE(event.ok(), (event.ok() ? "" : event.error().detail));
    events.push_back(std::move(event).value());
    at = end + 1;
  }
  CHECK(chain.head() == report.head);
  CHECK(chain.length() == report.events);
  return events;
}

inline const TraceEvent* find(const std::vector<TraceEvent>& events, std::string_view type) {
  for (const TraceEvent& e : events) {
    if (e.type == type) return &e;
  }
  return nullptr;
}

}  // namespace proctor::testing
