#include "common/trace/breaker_trips.h"

#include "common/trace/event.h"
#include "common/trace/evidence.h"
#include "common/trace/model_calls.h"

namespace proctor {

Result<std::vector<TracedTrip>> read_breaker_trips(const fs::path& run_dir) {
  PROCTOR_TRY(const std::string text, read_file(run_dir / kEventsFile, kEventLogBytes));
  std::vector<TracedTrip> out;
  EventChain chain;
  std::string why;  // of the alert before
  std::string_view rest = text;
  for (std::uint64_t line = 1; !rest.empty(); ++line) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) break;  // being written
    const Result<Event> event = chain.accept(rest.substr(0, end));
    rest.remove_prefix(end + 1);
    if (!event.ok())
      return Error{Errc::kCorrupt, std::string(kEventsFile) + ":" + std::to_string(line) + ": " +
                                       event.error().detail};
    if (event->type == "monitor.alert") why = text_in(event->payload, "why");
    if (event->type != "monitor.intervention" || !event->payload.contains("breaker")) continue;
    out.push_back(
        {event->seq, text_in(event->payload, "breaker"), text_in(event->payload, "action"), why});
  }
  return out;
}

}  // namespace proctor
