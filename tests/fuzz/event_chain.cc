// events.jsonl.  A line's own hash keeps a fuzzer out, so each line is also sealed here, with a
// small type and time before its payload: TYPE SPACE PAYLOAD.  What seal_event() writes is accepted
// and comes back; what is accepted has no other spelling.
#include "common/trace/event.h"

#include "tests/fuzz/fuzz.h"

namespace proctor::fuzz::event_chain {

void check_raw(std::string_view line) {
  EventChain chain;
  const Result<TraceEvent> event = chain.accept(line);
  if (event.ok()) PROCTOR_ASSERT(must(seal_event(*event)).line == std::string(line) + "\n");
}

void check_sealed(std::string_view line, EventChain& chain) {
  const std::string_view type = take_part(line, ' ');
  const Result<Json> payload = parse_json(line);
  if (!payload.ok()) return;
  TraceEvent event{chain.length(),    chain.length(), Actor::kAgent,
                   std::string(type), *payload,       chain.head()};
  const Result<SealedEvent> sealed = seal_event(event);
  if (!sealed.ok()) return;
  PROCTOR_ASSERT(sealed->line.ends_with('\n'));
  const TraceEvent back =
      must(chain.accept(std::string_view(sealed->line).substr(0, sealed->line.size() - 1)));
  PROCTOR_ASSERT(chain.head() == sealed->hash);
  PROCTOR_ASSERT(back.type == event.type && back.payload == event.payload);
}

void target(std::string_view bytes) {
  EventChain chain;
  while (!bytes.empty()) {
    const std::string_view line = take_part(bytes, '\n');
    check_raw(line);
    check_sealed(line, chain);
  }
}

}  // namespace proctor::fuzz::event_chain
