#pragma once
// ZapHandler: who may connect to the CURVE servers of one ZeroMQ context (ZAP, RFC 27).  It answers
// on inproc://zeromq.zap.01 from its own thread: CURVE with a key of the allow-list becomes that
// line's name ("User-Id" of every message of the peer); anything else is refused, counted and
// reported.
//
// ZAP is asked at the handshake only.  So that revoking a key also silences a peer that is already
// connected, every message carries its key ("X-Proctor-Key") and ZmqPort asks admits() again.
//
// Must live as long as any CURVE server socket of the context: without a handler libzmq would
// accept every key (ZMQ_ZAP_ENFORCE_DOMAIN is a draft).  ZmqPort holds a share for that reason.
// Fails with kConflict when the context has a handler already.  Thread-safe.
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "common/base/result.h"
#include "common/wire/curve.h"

namespace zmq {
class context_t;
class socket_t;
}  // namespace zmq

namespace proctor::wire {

inline constexpr const char* kZapDomain = "proctor";
inline constexpr const char* kKeyProperty = "X-Proctor-Key";

class ZapHandler {
 public:
  // Called on the handler's thread, must not throw; the reason is safe to print.
  using OnDenied = std::function<void(std::string reason)>;

  static Result<std::shared_ptr<ZapHandler>> start(zmq::context_t& context, AllowList list,
                                                   OnDenied on_denied);
  ~ZapHandler();
  ZapHandler(const ZapHandler&) = delete;
  ZapHandler& operator=(const ZapHandler&) = delete;

  // From now on this list decides; keys that are not in it any more are silenced at once.
  void replace(AllowList list);
  bool lists(std::string_view name) const;
  // The name behind a key of the present list.
  std::optional<std::string> admits(std::string_view public_z85) const;
  std::uint64_t denials() const { return denials_.load(); }

 private:
  ZapHandler(AllowList list, OnDenied on_denied);
  void serve(zmq::socket_t requests, zmq::socket_t stop);
  void answer(zmq::socket_t& requests);

  mutable std::mutex mutex_;  // guards list_
  AllowList list_;
  const OnDenied on_denied_;
  std::atomic<std::uint64_t> denials_{0};
  std::unique_ptr<zmq::socket_t> stop_;
  std::thread thread_;
};

}  // namespace proctor::wire
