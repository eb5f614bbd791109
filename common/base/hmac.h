#pragma once
// HMAC-SHA256 (RFC 2104) under one key, for many short messages.
#include <memory>
#include <string>
#include <string_view>

#include "common/base/digest.h"

namespace proctor {

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
