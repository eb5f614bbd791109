// A frame from a stranger: what is accepted is written again as bytes that mean the same, and
// nothing that decode() accepts is outside the bounds that encode() asserts.
#include "common/wire/codec.h"
#include "tests/fuzz/fuzz.h"

namespace proctor::fuzz::wire_message {

void target(std::string_view bytes) {
  const Result<wire::Message> message = wire::decode(bytes);
  if (!message.ok()) {
    PROCTOR_ASSERT(!message.error().detail.empty());
    return;
  }
  // A refusal is understood whatever version refuses.
  const bool refusal = std::holds_alternative<wire::Refuse>(*message);
  PROCTOR_ASSERT(refusal || wire::is_spoken(wire::peek_version(bytes)));
  const std::string written = wire::encode(*message);
  const wire::Message again = must(wire::decode(written));
  PROCTOR_ASSERT(again.index() == message->index());
  PROCTOR_ASSERT(wire::encode(again) == written);
}

}  // namespace proctor::fuzz::wire_message
