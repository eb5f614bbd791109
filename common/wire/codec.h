#pragma once
// Messages as bytes: MessagePack `[version, kind, body]`, body an array in the order in which
// messages.h describes the members.  Members are never renumbered or reused.
//
// encode() is for our own messages: one outside its bounds is a programmer's error and asserts.
// Only text for people (rationale, reason) may be too long or not UTF-8: it is clipped and escaped.
// decode() is for bytes of a stranger: it never asserts, never throws, allocates in proportion to
// what arrived, and accepts exactly what encode() could have written apart from the width of
// integers.  Fails with kInvalid and message and field: "Assign.runs[3].ask: ...".  Pure; any
// thread.
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/wire/messages.h"

namespace proctor::wire {
inline constexpr std::uint32_t kOldestVersion = 1;  // read: spools and meter books keep messages
// The oldest that a coordinator serves; a campaign may need a younger one.  Before it workers knew
// nothing of shares of rates and of standing still, so that a campaign's limits would not hold.
inline constexpr std::uint32_t kOldestServed = 4;

constexpr bool is_spoken(std::uint64_t version) {
  return kOldestVersion <= version && version <= kVersion;
}
constexpr bool is_served(std::uint32_t version) {
  return kOldestServed <= version && version <= kVersion;
}

// For a peer of an older version that is served what is newer is left out.
std::string encode(const Message& message, std::uint32_t version = kVersion);
Result<Message> decode(std::string_view bytes);

// The version a frame says it has, or 0 if it does not look like a frame at all.  The envelope and
// the first field of Refuse are the same in every version, so both sides can refuse a stranger and
// read why they were refused:
//   if (const auto v = peek_version(bytes); v != 0 && !is_served(v))
//     send(encode(wrong_version(v)));
std::uint32_t peek_version(std::string_view bytes);
// The number of its kind (kKindOf), or 0: to decide whether it is worth decoding.
std::uint64_t peek_kind(std::string_view bytes);
// "protocol version 3 is not spoken here (4 to 5): update proctor-worker or proctor"
Refuse wrong_version(std::uint32_t version, std::uint32_t oldest = kOldestServed);

// "Sync", for logs and counters.
std::string_view kind_name(const Message& message);
}  // namespace proctor::wire
