#pragma once
// SHA-256, the one digest of the project (contracts, plans, events, reports, archives), and the
// codes that prove a message by it.
#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace proctor {
// 32 bytes.  A default one is all zeros: the genesis of every hash chain.
class Digest {
 public:
  static constexpr std::size_t kBytes = 32;
  using Bytes = std::array<std::uint8_t, kBytes>;

  constexpr Digest() = default;
  constexpr explicit Digest(const Bytes& bytes) : bytes_(bytes) {}
  // 64 lower-case hex digits.  Fails with kInvalid on anything else.
  static Result<Digest> from_hex(std::string_view hex);

  std::string hex() const;
  // The first 12 hex digits, for people.
  std::string short_hex() const { return hex().substr(0, 12); }
  const Bytes& bytes() const { return bytes_; }
  friend bool operator==(const Digest&, const Digest&) = default;
  friend auto operator<=>(const Digest&, const Digest&) = default;

 private:
  Bytes bytes_{};
};

// Incremental SHA-256.  Not thread-safe; one object, one message.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  void update(std::string_view bytes);
  // The digest of all bytes so far.  The object must not be used afterwards.
  Digest finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Digest sha256(std::string_view bytes);
// MD5 in hex, for names that another tool gave: no security rests on it.
std::string md5_hex(std::string_view bytes);

// Lower-case hex of any bytes.
std::string to_hex(std::string_view bytes);
}  // namespace proctor

template <>
struct std::hash<proctor::Digest> {
  std::size_t operator()(const proctor::Digest& d) const {
    std::size_t h = 0;
    for (std::size_t i = 0; i < sizeof h; ++i) h = (h << 8) | d.bytes()[i];
    return h;
  }
};

namespace proctor {
// HMAC-SHA256 (RFC 2104) under one key, for many short messages.
// Not thread-safe: one object, one thread at a time.
class HmacKey {
 public:
  // `secret`: any length; longer than 64 bytes is hashed first, as the RFC says.
  explicit HmacKey(std::string_view secret);
  ~HmacKey();
  HmacKey(HmacKey&&) noexcept;
  HmacKey& operator=(HmacKey&&) noexcept;

  Digest mac(std::string_view message) const;
  // Names the key without giving it away: 12 hex digits.
  const std::string& id() const { return id_; }

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::string id_;
};
}  // namespace proctor
