// What an agent says to its gateway, and a provider answers: a head that passes is one head to
// everybody, and a body in chunks is the same in whatever pieces it comes.
#include "tests/fuzz/fuzz.h"
#include "worker/gateway/http_gate.h"

namespace proctor::fuzz::gateway_head {

void check_fields(const HttpFields& fields) {
  PROCTOR_ASSERT(fields.size() <= kHttpFieldsMax);
  std::size_t lengths = 0;
  for (const auto& [name, value] : fields) {
    PROCTOR_ASSERT(!name.empty() && name.find_first_of(" \t:\r\n") == std::string::npos);
    PROCTOR_ASSERT(value.find_first_of("\r\n") == std::string::npos);
    lengths += name == "content-length" || name == "transfer-encoding" ? 1 : 0;
  }
  PROCTOR_ASSERT(lengths <= 1);
}

void check_chunks(std::string_view bytes, std::size_t piece) {
  ChunkReader whole, parts;
  std::string a, b;
  const auto once = whole.feed(bytes, &a);
  std::size_t used = 0;
  bool good = true;
  while (good && used < bytes.size() && !parts.done()) {
    const auto fed = parts.feed(bytes.substr(used, piece), &b);
    good = fed.ok();
    if (good) used += *fed;
  }
  PROCTOR_ASSERT(once.ok() == good);
  if (!good) return;
  PROCTOR_ASSERT(a == b && *once == used && whole.done() == parts.done());
}

void target(std::string_view bytes) {
  const std::size_t piece = 1 + take_byte(bytes) % 32U;
  check_chunks(bytes, piece);
  const std::size_t length = head_length(bytes);
  if (length == 0) return;
  const std::string_view head = bytes.substr(0, length);
  if (const auto answer = read_answer_head(head); answer.ok()) check_fields(answer->fields);
  const auto judged = judge_head(head);
  const auto* good = std::get_if<GatewayHead>(&judged);
  if (good == nullptr) return;
  check_fields(good->fields);
  PROCTOR_ASSERT(good->target.starts_with('/'));
  const Route route = route_of(good->method, good->target);
  if (route.place == Route::Place::kCall) PROCTOR_ASSERT(good->method == "POST");
}

}  // namespace proctor::fuzz::gateway_head
