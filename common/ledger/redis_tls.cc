#include "common/ledger/redis_tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/base/text.h"

namespace proctor {
namespace {
constexpr const char* kNoAnswer = "tls: no answer in time";

struct ContextFree {
  void operator()(SSL_CTX* context) const noexcept { SSL_CTX_free(context); }
};
using Context = std::unique_ptr<SSL_CTX, ContextFree>;

// The latest word of OpenSSL in this thread, and the others forgotten.
std::string openssl_says() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "no reason given" : reason;
}

Error bad_file(const char* setting, const std::string& file) {
  return Error{Errc::kInvalid,
               std::string(setting) + ": cannot use " + printable(file) + ": " + openssl_says()};
}

Status use_files(SSL_CTX* context, const RedisTlsFiles& files) {
  if (files.ca.empty()) {
    SSL_CTX_set_default_verify_paths(context);
  } else if (SSL_CTX_load_verify_file(context, files.ca.c_str()) != 1) {
    return bad_file("PROCTOR_REDIS_CA", files.ca);
  }
  if (files.certificate.empty() != files.key.empty())
    return Error{Errc::kInvalid, "PROCTOR_REDIS_CERT and PROCTOR_REDIS_KEY go together"};
  if (files.certificate.empty()) return ok_status();
  if (SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str()) != 1)
    return bad_file("PROCTOR_REDIS_CERT", files.certificate);
  if (SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context) != 1)
    return bad_file("PROCTOR_REDIS_KEY", files.key);
  return ok_status();
}

// An address is compared with the certificate's addresses, a name with its names.
bool expect_host(SSL* ssl, const std::string& host) {
  X509_VERIFY_PARAM* param = SSL_get0_param(ssl);
  if (X509_VERIFY_PARAM_set1_ip_asc(param, host.c_str()) == 1) return true;
  ERR_clear_error();
  std::string name = host;  // SSL_set_tlsext_host_name() without its cast
  return SSL_set1_host(ssl, host.c_str()) == 1 &&
         SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data()) == 1;
}

// What a call came to that moved no bytes.
Error failure(const SSL* ssl, int result, int saved_errno) {
  const int why = SSL_get_error(ssl, result);
  if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
    return Error{Errc::kUnavailable, kNoAnswer};
  if (why == SSL_ERROR_ZERO_RETURN)
    return Error{Errc::kUnavailable, "tls: the server closed the connection"};
  if (why == SSL_ERROR_SYSCALL && saved_errno != 0)
    return Error{Errc::kUnavailable, std::string("tls: ") + std::strerror(saved_errno)};
  const int library = ERR_GET_LIB(ERR_peek_last_error());
  const int reason = ERR_GET_REASON(ERR_peek_last_error());
  if (library == ERR_LIB_SSL && reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
    ERR_clear_error();
    return Error{Errc::kInvalid, std::string("tls: the server's certificate is refused: ") +
                                     X509_verify_cert_error_string(SSL_get_verify_result(ssl)) +
                                     "; PROCTOR_REDIS_CA names the file of the authority to trust"};
  }
  Error error{Errc::kUnavailable, "tls: " + openssl_says()};
  if (library != ERR_LIB_SSL) return error;
  if (reason == SSL_R_WRONG_VERSION_NUMBER) {
    error.code = Errc::kInvalid;
    error.detail += ": does this port speak TLS?";
  }
  if (reason == SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED ||
      reason == SSL_R_SSLV3_ALERT_BAD_CERTIFICATE || reason == SSL_R_TLSV1_ALERT_UNKNOWN_CA) {
    error.code = Errc::kInvalid;
    error.detail += ": PROCTOR_REDIS_CERT and PROCTOR_REDIS_KEY name ours";
  }
  return error;
}
}  // namespace

void RedisTls::Free::operator()(ssl_st* ssl) const noexcept {
  SSL_free(ssl);
}

Result<RedisTls> RedisTls::handshake(int fd, const std::string& host, const RedisTlsFiles& files) {
  ERR_clear_error();
  const Context context(SSL_CTX_new(TLS_client_method()));
  if (!context) return Error{Errc::kUnavailable, "tls: " + openssl_says()};
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  PROCTOR_CHECK_OK(use_files(context.get(), files));
  std::unique_ptr<SSL, Free> ssl(SSL_new(context.get()));
  if (!ssl || SSL_set_fd(ssl.get(), fd) != 1 || !expect_host(ssl.get(), host))
    return Error{Errc::kUnavailable, "tls: " + openssl_says()};
  errno = 0;
  if (const int done = SSL_connect(ssl.get()); done != 1) {
    Error error = failure(ssl.get(), done, errno);
    // A Redis without TLS waits for the rest of what it takes for a command.
    if (error.detail == kNoAnswer) error.detail += ": does this port speak TLS?";
    return error;
  }
  return RedisTls(std::move(ssl), files.certificate.empty());
}

// In TLS 1.3 a server says only after the handshake that it wants our certificate, and hangs up:
// often its reset is all that arrives.
Error RedisTls::failed(int result, int saved_errno) const {
  Error error = failure(ssl_.get(), result, saved_errno);
  if (anonymous_ && !heard_ && error.code == Errc::kUnavailable && error.detail != kNoAnswer)
    error.detail += "; perhaps it wants a certificate: PROCTOR_REDIS_CERT and PROCTOR_REDIS_KEY";
  return error;
}

Status RedisTls::write(std::string_view bytes) {
  constexpr std::size_t kAtOnce = std::size_t{1} << 20;
  while (!bytes.empty()) {
    ERR_clear_error();
    errno = 0;
    const int n =
        SSL_write(ssl_.get(), bytes.data(), static_cast<int>(std::min(bytes.size(), kAtOnce)));
    if (n <= 0) return failed(n, errno);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return ok_status();
}

Result<std::string_view> RedisTls::read(std::span<char> into) {
  ERR_clear_error();
  errno = 0;
  const int n = SSL_read(ssl_.get(), into.data(), static_cast<int>(into.size()));
  if (n <= 0) return failed(n, errno);
  heard_ = true;
  return std::string_view(into.data(), static_cast<std::size_t>(n));
}
}  // namespace proctor
