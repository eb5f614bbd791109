#include "common/trace/model_calls.h"

#include <map>

#include "common/trace/event.h"
#include "common/trace/evidence.h"
#include "common/trace/verify_calls.h"

namespace proctor {

Result<std::vector<TracedCall>> read_model_calls(const fs::path& run_dir) {
  PROCTOR_TRY(const std::string text, read_file(run_dir / kEventsFile, kEventLogBytes));
  std::vector<TracedCall> out;
  std::map<std::uint64_t, std::size_t> open;  // by number
  EventChain chain;
  std::uint32_t life = 0;
  std::string_view rest = text;
  for (std::uint64_t line = 1; !rest.empty(); ++line) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) break;  // being written
    const Result<Event> event = chain.accept(rest.substr(0, end));
    rest.remove_prefix(end + 1);
    if (!event.ok())
      return Error{Errc::kCorrupt, std::string(kEventsFile) + ":" + std::to_string(line) + ": " +
                                       event.error().detail};
    if (event->type == "gateway.open") {
      ++life;
      open.clear();
    }
    const bool begins = event->type == "model.request", ends = event->type == "model.response";
    const bool refused = event->type == "model.refused";
    if (!begins && !ends && !refused) continue;
    const std::uint64_t number = count_in(event->payload, "call");
    auto at = open.find(number);
    if (begins || at == open.end()) {
      at = open.insert_or_assign(number, out.size()).first;
      TracedCall& call = out.emplace_back();
      call.life = life;
      call.number = number;
    }
    TracedCall& call = out[at->second];
    (begins ? call.request_seq : call.end_seq) = event->seq;
    (begins ? call.request : ends ? call.response : call.refused) = event->payload;
  }
  return out;
}

Result<std::string> request_body(const TracedCall& call, const SegmentReader& reader) {
  if (call.request.is_null()) return Error{Errc::kNotFound, "it was refused before it was kept"};
  PROCTOR_TRY(const std::vector<std::string> pieces, pieces_in(call.request, reader));
  std::string out;
  for (const std::string& piece : pieces) {
    PROCTOR_TRY(const std::string bytes, reader.read(piece));
    out += bytes;
  }
  return out;
}

Result<std::string> answer_body(const TracedCall& call, const SegmentReader& reader) {
  if (call.response.is_null()) return Error{Errc::kNotFound, "it has no answer"};
  const std::string stored = text_in(call.response, "stored_digest");
  return reader.read(stored.empty() ? text_in(call.response, "digest") : stored);
}

}  // namespace proctor
