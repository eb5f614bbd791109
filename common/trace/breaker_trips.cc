#include "common/trace/breaker_trips.h"

#include "common/trace/event_file.h"
#include "common/trace/model_calls.h"

namespace proctor {

Result<std::vector<TracedTrip>> read_breaker_trips(const fs::path& run_dir) {
  std::vector<TracedTrip> out;
  std::string why;  // of the alert before
  PROCTOR_CHECK_OK(each_event(run_dir, [&](const Event& event) {
    if (event.type == "monitor.alert") why = text_in(event.payload, "why");
    if (event.type != "monitor.intervention" || !event.payload.contains("breaker")) return;
    out.push_back(
        {event.seq, text_in(event.payload, "breaker"), text_in(event.payload, "action"), why});
  }));
  return out;
}

}  // namespace proctor
