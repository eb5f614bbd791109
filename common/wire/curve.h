#pragma once
// CURVE: which endpoints need it, its keys as files, and who may connect.
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "common/base/files.h"
#include "common/base/ids.h"
#include "common/base/result.h"

namespace proctor::wire {
// Which endpoints may be used without CURVE: one place for the rule, asked by ZmqPort itself and by
// the commands that want to refuse early.
//
//   ipc://PATH       nothing else needed, but PATH's folder must be ours and closed to everyone
//   else tcp://HOST:PORT  CURVE; or --insecure-loopback and HOST literally 127.x.y.z or [::1]
//   inproc://NAME    inside one process: always
//
// Fails with kInvalid and a sentence for the operator.
Status check_listen_endpoint(const std::string& endpoint, bool has_curve, bool insecure_loopback);
// The same rule for the side that connects (a worker obeys its coordinator, so it must know it
// too).
Status check_connect_endpoint(const std::string& endpoint, bool has_curve, bool insecure_loopback);

// Keys (libzmq's CurveZMQ, Curve25519) as files, and the list of keys that may connect.
//
// Secret file, mode 0600:      Public file, and a line of an allow-list:
//   # anything                   # anything
//   public <40 characters>       <40 characters of Z85> <name>
//   secret <40 characters>
// So an allow-list is `cat w1.pub w2.pub > workers.allow`.  A line that begins with a hash is a
// comment; Z85 contains the hash too, so generate_key() makes no public key that begins with one.
//
// Fails with kInvalid and "path:line: what" on bad files, kNotFound when absent.  Pure but for the
// files and libsodium's random source; any thread.

inline constexpr std::size_t kZ85KeyChars = 40;  // of 32 bytes

struct KeyPair {
  std::string public_z85;
  Secret secret_z85;
};

Result<KeyPair> generate_key();

// Refuses a file that anyone but its owner can read, that belongs to another user (root apart), or
// whose public key is not that of its secret key.
Result<KeyPair> load_key(const fs::path& path);
// Mode 0600 from its first moment.  kConflict if the file exists: a key is never overwritten.
Status save_key(const KeyPair& keys, const fs::path& path);

// The first key of a public file.
Result<std::string> load_public_key(const fs::path& path);
// `name`: as ids.h says.
Status save_public_key(const std::string& public_z85, std::string_view name, const fs::path& path);

bool is_z85_key(std::string_view text);
// 32 raw bytes, as ZAP delivers them.
std::string z85_of(std::string_view raw_key);

// The list of keys that may connect: one name per key and one key per name.  A value; read-only
// after loading.
class AllowList {
 public:
  // kInvalid: not a key, not a name (ids.h).  kConflict: this key or this name is there already.
  Status add(std::string_view public_z85, std::string_view name);
  std::optional<std::string> name_of(std::string_view public_z85) const;
  bool has_name(std::string_view name) const { return keys_.contains(name); }
  std::size_t size() const { return names_.size(); }
  const std::map<std::string, std::string, std::less<>>& names() const { return names_; }  // by key
  friend bool operator==(const AllowList&, const AllowList&) = default;

 private:
  std::map<std::string, std::string, std::less<>> names_;  // by key
  std::map<std::string, std::string, std::less<>> keys_;   // by name
};

Result<AllowList> load_allow_list(const fs::path& path);
}  // namespace proctor::wire

namespace zmq {
class context_t;
class socket_t;
}  // namespace zmq

namespace proctor::wire {
inline constexpr const char* kZapDomain = "proctor";
inline constexpr const char* kKeyProperty = "X-Proctor-Key";

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
