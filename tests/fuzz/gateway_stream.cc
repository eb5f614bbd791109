// What a provider sends: events are the same in whatever pieces they come, nothing of them is lost,
// and no usage is more than a call can have.
#include <algorithm>

#include "tests/fuzz/fuzz.h"
#include "worker/gateway/model_answer.h"

namespace proctor::fuzz::gateway_stream {

void check_usage(const std::optional<Amount>& usage) {
  constexpr std::uint64_t kMost = 5'000'000'000;
  if (!usage) return;
  PROCTOR_ASSERT(usage->input_tokens <= kMost && usage->output_tokens <= kMost);
  PROCTOR_ASSERT(usage->cache_read <= kMost && usage->cache_write <= kMost);
}

void target(std::string_view bytes) {
  constexpr ModelApi kApis[] = {ModelApi::kChat, ModelApi::kResponses, ModelApi::kMessages};
  const std::uint8_t first = take_byte(bytes);
  const ModelApi api = kApis[first % 3U];
  const std::size_t piece = 1 + first / 3U % 16U;
  SseScan whole, parts;
  const auto once = whole.feed(bytes);
  PROCTOR_ASSERT(once.ok());
  std::vector<SseEvent> pieces;
  for (std::string_view left = bytes; !left.empty();
       left.remove_prefix(std::min(piece, left.size()))) {
    const auto some = parts.feed(left.substr(0, piece));
    PROCTOR_ASSERT(some.ok());
    pieces.insert(pieces.end(), some->begin(), some->end());
  }
  PROCTOR_ASSERT(once->size() == pieces.size());
  std::string all;
  StreamFacts facts(api, false);
  for (std::size_t i = 0; i < once->size(); ++i) {
    PROCTOR_ASSERT((*once)[i].data == pieces[i].data && (*once)[i].name == pieces[i].name);
    all += (*once)[i].bytes;
    facts.on((*once)[i]);
    StreamFacts::is_bare_usage((*once)[i]);
  }
  PROCTOR_ASSERT(all + whole.rest() == bytes);
  check_usage(facts.facts().usage);
  check_usage(facts.begun());
  check_usage(read_answer(api, bytes, true).usage);
}

}  // namespace proctor::fuzz::gateway_stream
