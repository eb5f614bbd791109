#pragma once
// TLS below a connection to Redis: a handshake over a connected socket, then bytes both ways.
// Borrows the socket, which must outlive it and carries the timeouts.  One thread at a time; the
// caller keeps SIGPIPE away.  TLS 1.2 or newer; the server's certificate must be for the host that
// was asked for and signed by one we trust.
//
// Errors: kInvalid, files that cannot be used, a certificate that is not trusted or for another
// host, a server that wants one of ours; kUnavailable, everything that may pass by itself.
// Source: RFC 8446, RFC 6125; redis.io, "TLS".
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "common/base/result.h"

struct ssl_st;

namespace proctor {
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
}  // namespace proctor
