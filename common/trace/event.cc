#include "common/trace/event.h"

#include <algorithm>
#include <array>

#include "common/base/limits.h"
#include "common/base/text.h"

namespace proctor {
namespace {

constexpr std::array<std::pair<Actor, std::string_view>, 4> kActors{
    {{Actor::kAgent, "agent"},
     {Actor::kHarness, "harness"},
     {Actor::kMonitor, "monitor"},
     {Actor::kOperator, "operator"}}};

Error invalid(std::string detail) {
  return Error{Errc::kInvalid, std::move(detail)};
}

// The type goes into the line unescaped, so its alphabet is closed.
bool is_event_type(std::string_view type) {
  if (type.empty() || kEventTypeBytes < type.size()) return false;
  if (type.front() == '.' || type.back() == '.' || type.find("..") != std::string_view::npos)
    return false;
  return std::ranges::all_of(type, [](char c) {
    return ('a' <= c && c <= 'z') || ('0' <= c && c <= '9') || c == '_' || c == '.';
  });
}

// A payload that a reader would refuse as too deep must not be written.
bool fits_depth(const Json& value, std::size_t left) {
  if (!value.is_structured()) return true;
  if (left == 0) return false;
  return std::ranges::all_of(value, [left](const Json& v) { return fits_depth(v, left - 1); });
}

// Reads a whole number that is not negative and fits the canonical range.
Result<std::uint64_t> read_count(const Json& event, const char* key) {
  const Json& v = event[key];
  if (!v.is_number_unsigned()) return invalid(std::string(key) + ": expected a whole number");
  return v.get<std::uint64_t>();
}

Result<std::string> read_string(const Json& event, const char* key) {
  const Json& v = event[key];
  if (!v.is_string()) return invalid(std::string(key) + ": expected text");
  return v.get<std::string>();
}

Status check_keys(const Json& event) {
  constexpr std::array<const char*, 7> kKeys{"actor", "hash", "payload", "prev",
                                             "seq",   "t",    "type"};
  if (!event.is_object()) return invalid("expected an object");
  for (const char* key : kKeys) {
    if (!event.contains(key)) return invalid(std::string(key) + ": missing");
  }
  if (event.size() != kKeys.size()) return invalid("a field beside the seven of an event");
  return ok_status();
}

// Takes the payload, of which nothing is left then.
Result<Event> read_event(Json& json) {
  PROCTOR_CHECK_OK(check_keys(json));
  Event e;
  PROCTOR_TRY(e.seq, read_count(json, "seq"));
  PROCTOR_TRY(e.t, read_count(json, "t"));
  PROCTOR_TRY(const std::string actor, read_string(json, "actor"));
  const std::optional<Actor> known = actor_from(actor);
  if (!known) return invalid("actor: unknown \"" + printable(actor, 40) + "\"");
  e.actor = *known;
  PROCTOR_TRY(e.type, read_string(json, "type"));
  PROCTOR_TRY(const std::string prev, read_string(json, "prev"));
  PROCTOR_TRY(e.prev, Digest::from_hex(prev));
  e.payload = std::move(json["payload"]);
  return e;
}

}  // namespace

std::string_view to_string(Actor a) {
  for (const auto& [value, name] : kActors) {
    if (value == a) return name;
  }
  PROCTOR_ASSERT(false);
}

std::optional<Actor> actor_from(std::string_view text) {
  for (const auto& [value, name] : kActors) {
    if (name == text) return value;
  }
  return std::nullopt;
}

Result<SealedEvent> seal_event(const Event& event) {
  if (!is_event_type(event.type))
    return invalid("event type \"" + printable(event.type, 80) +
                   "\": expected words like agent.start");
  if (!event.payload.is_object()) return invalid(event.type + ": the payload is not an object");
  if (!fits_depth(event.payload, limits::kConfigDepth - 1))
    return invalid(event.type + ": the payload is nested too deeply");
  PROCTOR_TRY(const std::string payload, canonical_json(event.payload));
  // Written by hand because the payload is then serialised once; the keys are in canonical order
  // and everything but the payload is plain ASCII.
  const std::string actor = "{\"actor\":\"" + std::string(to_string(event.actor)) + "\",";
  const std::string rest = "\"payload\":" + payload + ",\"prev\":\"" + event.prev.hex() +
                           "\",\"seq\":" + std::to_string(event.seq) +
                           ",\"t\":" + std::to_string(event.t) + ",\"type\":\"" + event.type +
                           "\"}";
  const Digest hash = sha256(actor + rest);
  SealedEvent sealed{actor + "\"hash\":\"" + hash.hex() + "\"," + rest + "\n", hash};
  if (limits::kEventBytes < sealed.line.size())
    return Error{Errc::kExhausted, event.type + ": an event of " +
                                       std::to_string(sealed.line.size()) + " bytes; at most " +
                                       std::to_string(limits::kEventBytes) + " are kept"};
  return sealed;
}

Result<Event> EventChain::accept(std::string_view line) {
  PROCTOR_TRY(Json json, parse_json(line, {.bytes_max = limits::kEventBytes,
                                           .depth_max = limits::kConfigDepth}));
  PROCTOR_TRY(Event event, read_event(json));
  if (event.seq != length_)
    return invalid("seq " + std::to_string(event.seq) + " where " + std::to_string(length_) +
                   " follows");
  if (event.prev != head_) return invalid("prev is not the hash of the event before");
  if (0 < length_ && event.t <= last_t_) return invalid("t does not grow");
  PROCTOR_TRY(const SealedEvent sealed, seal_event(event));
  if (json["hash"] != sealed.hash.hex()) return invalid("hash is not that of the event");
  if (std::string_view(sealed.line).substr(0, sealed.line.size() - 1) != line)
    return invalid("not written as canonical JSON");
  ++length_;
  last_t_ = event.t;
  head_ = sealed.hash;
  return event;
}

}  // namespace proctor
