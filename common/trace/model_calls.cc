#include "common/trace/model_calls.h"

#include <algorithm>
#include <map>
#include <utility>

#include "common/base/parse.h"
#include "common/trace/event.h"

namespace proctor {
namespace {

constexpr std::size_t kPiecesMax = 200'000;  // of one body

}  // namespace

std::uint64_t count_in(const Json& payload, const char* member) {
  const auto it = payload.find(member);
  if (it == payload.end() || !it->is_number_integer()) return 0;
  if (it->is_number_unsigned()) return it->get<std::uint64_t>();
  return static_cast<std::uint64_t>(std::max<std::int64_t>(it->get<std::int64_t>(), 0));
}

std::string text_in(const Json& payload, const char* member) {
  const auto it = payload.find(member);
  return it != payload.end() && it->is_string() ? it->get<std::string>() : "";
}

Result<std::vector<std::string>> pieces_in(const Json& request, const SegmentReader& reader) {
  std::vector<std::string> out;
  if (const std::string list = text_in(request, "pieces_list"); !list.empty()) {
    PROCTOR_TRY(const std::string lines, reader.read(list));
    std::string_view rest = lines;
    while (!rest.empty() && out.size() < kPiecesMax) out.emplace_back(take_until(rest, '\n'));
    return out;
  }
  const auto it = request.find("pieces");
  if (it == request.end() || !it->is_array())
    return Error{Errc::kNotFound, "what was said was not kept"};
  for (const Json& piece : *it)
    if (piece.is_string()) out.push_back(piece.get<std::string>());
  return out;
}

Result<TracedModels> read_models(const fs::path& run_dir) {
  TracedModels all;
  std::vector<TracedCall>& out = all.calls;
  std::string why;                            // of the alert before
  std::map<std::uint64_t, std::size_t> open;  // by number
  std::uint32_t life = 0;
  std::uint64_t listed = 0;  // refusals of this life
  PROCTOR_CHECK_OK(each_event(run_dir, [&](const Event& event) {
    if (event.type == "gateway.open") {
      ++life;
      open.clear();
      listed = 0;
    }
    if (event.type == "gateway.closed") {
      const std::uint64_t refused = count_in(event.payload, "refused");
      all.unlisted.all += refused - std::min(refused, std::exchange(listed, 0));
      all.unlisted.wrong_tokens += count_in(event.payload, "wrong_tokens");
      all.unlisted.unknown_routes += count_in(event.payload, "unknown_routes");
    }
    if (event.type == "meter" && text_in(event.payload, "action") == "llm_request")
      all.metered +=
          event.payload.contains("answer") && event.payload["answer"].contains("granted_micros");
    if (event.type == "monitor.alert") why = text_in(event.payload, "why");
    if (event.type == "monitor.intervention" && event.payload.contains("breaker"))
      all.trips.push_back(
          {event.seq, text_in(event.payload, "breaker"), text_in(event.payload, "action"), why});
    const bool begins = event.type == "model.request", ends = event.type == "model.response";
    const bool refused = event.type == "model.refused";
    if (!begins && !ends && !refused) return;
    listed += refused ? 1 : 0;
    const std::uint64_t number = count_in(event.payload, "call");
    auto at = open.find(number);
    if (begins || at == open.end()) {
      at = open.insert_or_assign(number, out.size()).first;
      TracedCall& call = out.emplace_back();
      call.life = life;
      call.number = number;
    }
    TracedCall& call = out[at->second];
    (begins ? call.request_seq : call.end_seq) = event.seq;
    (begins ? call.request : ends ? call.response : call.refused) = event.payload;
  }));
  return all;
}

Result<std::vector<TracedCall>> read_model_calls(const fs::path& run_dir) {
  PROCTOR_TRY(TracedModels all, read_models(run_dir));
  return std::move(all.calls);
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
