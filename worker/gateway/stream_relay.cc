#include "worker/gateway/stream_relay.h"

#include <fmt/format.h>

#include <algorithm>

namespace proctor {
namespace {

constexpr std::size_t kKept = std::size_t{16} << 20;
constexpr std::chrono::seconds kAfterLast{5};  // for the framing behind the last event

}  // namespace

void StreamRelay::pass(std::string_view bytes, const Say& say) const {
  if (bytes.empty()) return;
  if (options_.unframed) return say(bytes);
  say(fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes));
}

bool StreamRelay::take(std::string_view bytes, const Say& say) {
  if (bytes_.size() < kKept) bytes_ += bytes.substr(0, kKept - bytes_.size());
  const auto events = scan_.feed(bytes);
  if (!events.ok()) return false;
  said_ = said_ || !events->empty();
  std::string on;
  for (const SseEvent& e : *events) {
    if (options_.hides_usage && !StreamFacts::is_bare_usage(e)) on += e.bytes;
    facts_.on(e);
    tools_.on(e);
  }
  pass(options_.hides_usage ? std::string_view(on) : bytes, say);
  return true;
}

bool StreamRelay::run(ProviderAnswer& answer, const Say& say) {
  using More = ProviderAnswer::More;
  say("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n"
      "x-accel-buffering: no\r\n" +
      fmt::format("request-id: prq_{0}\r\nx-request-id: prq_{0}\r\n", options_.number) +
      (options_.unframed ? "connection: close\r\n\r\n" : "transfer-encoding: chunked\r\n\r\n"));
  auto last = SteadyClock::now();
  for (;;) {
    auto until =
        std::min({options_.total, last + options_.idle, SteadyClock::now() + options_.silence});
    if (facts_.ended()) until = std::min(until, last + kAfterLast);
    std::string bytes;
    const More more = answer.read_body(bytes, until);
    if (more == More::kBytes) {
      last = SteadyClock::now();
      if (!take(bytes, say)) return false;
      continue;
    }
    ended_well_ = more == More::kWhole || facts_.ended();
    if (ended_well_ || more == More::kBroken) break;
    const auto now = SteadyClock::now();
    if (options_.total <= now || last + options_.idle <= now) return false;
    if (scan_.between()) pass(": wait\n\n", say);
  }
  return (facts_.ended() || (ended_well_ && !facts_.facts().finish.empty())) && !facts_.failed();
}

bool StreamRelay::end(const Say& say) const {
  if (options_.unframed || !ended_well_) return false;
  say("0\r\n\r\n");
  return true;
}

}  // namespace proctor
