#pragma once
// A connection to a Redis server, and TLS below it.
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/base/ids.h"
#include "common/base/result.h"

struct ssl_st;

struct redisContext;
struct redisReply;

namespace proctor {
// TLS below a connection to Redis: a handshake over a connected socket, then bytes both ways.
// Borrows the socket, which must outlive it and carries the timeouts.  One thread at a time; the
// caller keeps SIGPIPE away.  TLS 1.2 or newer; the server's certificate must be for the host that
// was asked for and signed by one we trust.
//
// Errors: kInvalid, files that cannot be used, a certificate that is not trusted or for another
// host, a server that wants one of ours; kUnavailable, everything that may pass by itself.
// Source: RFC 8446, RFC 6125; redis.io, "TLS".

// PEM files.  No CA: those that the system trusts.  Certificate and key go together; none: the
// server does not ask for one (`tls-auth-clients no`).
struct RedisTlsFiles {
  std::string ca, certificate, key;
};

class RedisTls {
 public:
  static Result<RedisTls> handshake(int fd, const std::string& host, const RedisTlsFiles& files);

  Status write(std::string_view bytes);
  // At least one byte, as many as have come.
  Result<std::string_view> read(std::span<char> into);

 private:
  struct Free {
    void operator()(ssl_st* ssl) const noexcept;
  };
  RedisTls(std::unique_ptr<ssl_st, Free> ssl, bool anonymous)
      : ssl_(std::move(ssl)), anonymous_(anonymous) {}
  Error failed(int result, int saved_errno) const;
  std::unique_ptr<ssl_st, Free> ssl_;
  bool anonymous_;      // we showed no certificate
  bool heard_ = false;  // anything but the handshake
};

// One blocking connection to a Redis server (hiredis 0.14: RESP2, argv commands only).
// Owns the socket.  One thread at a time.  After kUnavailable from call() with alive() false the
// connection is dead and the outcome of the command unknown: open a new one.
// Replies are bytes from outside: their type and content are checked by the caller, never asserted.

// The rights that an ACL user of a campaign's Redis needs, as words of ACL SETUSER
// (docs/ledger.md).
inline constexpr std::string_view kRedisGrants =
    "~proctor:* +info +select +eval +evalsha +script|load +hgetall +hmget +hset +hdel +unlink";

struct RedisEndpoint {
  std::string unix_path;  // empty: host and port
  std::string host;
  std::uint16_t port = 6379;
  std::uint32_t db = 0;
  bool tls = false;
  RedisTlsFiles tls_files;
  std::string user;  // with a password: AUTH user password (ACL), without a user AUTH password
  Secret password;
};

// "unix:/path/to.sock", "tcp://host:port" or "tcp://host:port/db" ("[::1]" for IPv6); tls:// for
// TCP under TLS.  Credentials are never part of it: the campaign file is public.  kInvalid says
// what was found.
Result<RedisEndpoint> parse_redis_endpoint(std::string_view text);
// As parsed, without the password.
std::string describe(const RedisEndpoint& endpoint);

struct RedisContextFree {
  void operator()(redisContext* context) const noexcept;
};
struct RedisReplyFree {
  void operator()(redisReply* reply) const noexcept;
};
using RedisReply = std::unique_ptr<redisReply, RedisReplyFree>;

// Facts about the server by INFO.
struct RedisFacts {
  std::string version;
  std::string run_id;  // random, of this process: another one means that it restarted
  std::string maxmemory_policy;
  // Told to the operator, required of nobody: the journal is the record.
  std::string persistence;  // "append-only file", "snapshots (3600 1)", "none", "unknown"
  std::string user;         // as whom we are logged in; empty when it may not be asked
};

class RedisConnection {
 public:
  // Connects, authenticates, selects the database and checks the server: at least version 6 and
  // maxmemory-policy noeviction (an evicted reservation would be money lost), else kInvalid with
  // the line to change.  kUnavailable: not there, or still loading.
  static Result<RedisConnection> open(const RedisEndpoint& endpoint,
                                      std::chrono::milliseconds timeout);

  bool alive() const { return context_ != nullptr; }
  const RedisFacts& facts() const { return facts_; }

  // One command.  An error reply becomes an Error: kUnavailable for what passes by itself (LOADING,
  // OOM, READONLY, MISCONF, BUSY, ...), kNotFound for NOSCRIPT, kInvalid for refused credentials,
  // kCorrupt for the rest (WRONGTYPE, a script that stopped).
  Result<RedisReply> call(std::span<const std::string_view> args);

 private:
  explicit RedisConnection(std::unique_ptr<redisContext, RedisContextFree> context)
      : context_(std::move(context)) {}
  Status log_in(const RedisEndpoint& endpoint);
  Status check_server();
  void look_around();
  Result<RedisReply> call_under_tls(std::span<const char*> args,
                                    std::span<const std::size_t> sizes);
  // hiredis 0.14 knows no TLS: it then keeps the socket and the parser, and we move the bytes.
  std::unique_ptr<redisContext, RedisContextFree> context_;
  std::optional<RedisTls> tls_;
  RedisFacts facts_;
};
}  // namespace proctor
