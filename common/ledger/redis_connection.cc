#include "common/ledger/redis_connection.h"

#include <hiredis/hiredis.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <vector>

#include "common/base/git_program.h"
#include "common/base/owned.h"
#include "common/base/parse.h"
#include "common/base/text.h"

namespace proctor {
namespace {
constexpr const char* kNoAnswer = "tls: no answer in time";

using Context = Owned<SSL_CTX, SSL_CTX_free>;

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

namespace {
// hiredis writes with write(2): a server that went away would raise SIGPIPE in our process.
// Blocked for this thread while we talk; one that arrived meanwhile is taken off again.
class NoSigpipe {
 public:
  NoSigpipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigemptyset(&pending);
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoSigpipe() {
    if (!was_pending_) {
      const timespec now{};
      while (sigtimedwait(&pipe_, nullptr, &now) == SIGPIPE) continue;
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  sigset_t pipe_{};
  sigset_t before_{};
  bool was_pending_ = false;
};

Error bad_address(std::string_view text, std::string_view why) {
  return Error{Errc::kInvalid,
               "redis address \"" + printable(redact_urls(text)) + "\": " + std::string(why) +
                   "; expected unix:/path, tcp://host:port, tcp://host:port/db or tls://..."};
}

// The code of an error reply stands first; Redis 6 wraps that of a script as "... -OOM ...".
bool names(std::string_view text, std::string_view code) {
  return text.starts_with(code) || text.find("-" + std::string(code) + " ") != text.npos;
}

Error classify(std::string_view text) {
  Error error{Errc::kCorrupt, "redis: " + printable(text, 500)};
  for (const std::string_view code :
       {"LOADING", "OOM", "READONLY", "MISCONF", "BUSY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN",
        "NOREPLICAS", "ERR max number of clients"}) {
    if (names(text, code)) error.code = Errc::kUnavailable;
  }
  for (const std::string_view code : {"NOAUTH", "WRONGPASS", "NOPERM", "ERR AUTH", "ERR DB index",
                                      "ERR invalid password", "ERR Client sent AUTH"}) {
    if (names(text, code)) error.code = Errc::kInvalid;
  }
  if (names(text, "NOSCRIPT")) error.code = Errc::kNotFound;
  // Of a script Redis does not say which command or key it was.
  if (names(text, "NOPERM") || names(text, "ERR The user executing the script")) {
    error.code = Errc::kInvalid;
    error.detail += "; this user needs " + std::string(kRedisGrants);
  }
  return error;
}

std::string_view info_field(std::string_view info, std::string_view name) {
  const std::string key = "\n" + std::string(name) + ":";
  const std::size_t at = info.find(key);
  if (at == info.npos) return {};
  std::string_view rest = info.substr(at + key.size());
  return rest.substr(0, rest.find_first_of("\r\n"));
}
}  // namespace

void RedisContextFree::operator()(redisContext* context) const noexcept {
  redisFree(context);
}
void RedisReplyFree::operator()(redisReply* reply) const noexcept {
  freeReplyObject(reply);
}

Result<RedisEndpoint> parse_redis_endpoint(std::string_view text) {
  RedisEndpoint endpoint;
  if (text.find('\0') != text.npos) return bad_address(text, "a NUL byte");
  if (text.starts_with("unix:")) {
    endpoint.unix_path = text.substr(5);
    if (!endpoint.unix_path.starts_with('/')) return bad_address(text, "the path is not absolute");
    if (107 < endpoint.unix_path.size()) return bad_address(text, "longer than 107 bytes");
    return endpoint;
  }
  endpoint.tls = text.starts_with("tls://");
  if (!endpoint.tls && !text.starts_with("tcp://"))
    return bad_address(text, "neither unix: nor tcp:// nor tls://");
  const std::string_view scheme = text.substr(0, 6);
  std::string_view rest = text.substr(scheme.size());
  if (rest.find('@') != rest.npos) {
    return bad_address(std::string(scheme) + "...", "credentials do not belong into an address");
  }
  if (const std::size_t slash = rest.find('/'); slash != rest.npos) {
    const auto db = whole_number<std::uint32_t>(rest.substr(slash + 1));
    if (!db) return bad_address(text, "the database is not a number");
    endpoint.db = *db;
    rest = rest.substr(0, slash);
  }
  const std::size_t colon = rest.rfind(':');
  if (colon == rest.npos) return bad_address(text, "no port");
  const auto port = whole_number<std::uint16_t>(rest.substr(colon + 1));
  if (!port || *port == 0) return bad_address(text, "the port is not between 1 and 65535");
  endpoint.port = *port;
  std::string_view host = rest.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.empty()) return bad_address(text, "no host");
  endpoint.host = host;
  return endpoint;
}

std::string describe(const RedisEndpoint& e) {
  if (!e.unix_path.empty()) return "unix:" + e.unix_path;
  const std::string host = e.host.find(':') == e.host.npos ? e.host : "[" + e.host + "]";
  return (e.tls ? "tls://" : "tcp://") + host + ":" + std::to_string(e.port) +
         (e.db == 0 ? "" : "/" + std::to_string(e.db));
}

Result<RedisConnection> RedisConnection::open(const RedisEndpoint& endpoint,
                                              std::chrono::milliseconds timeout) {
  const timeval limit{timeout.count() / 1000, timeout.count() % 1000 * 1000};
  const NoSigpipe guard;
  std::unique_ptr<redisContext, RedisContextFree> context(
      endpoint.unix_path.empty()
          ? redisConnectWithTimeout(endpoint.host.c_str(), endpoint.port, limit)
          : redisConnectUnixWithTimeout(endpoint.unix_path.c_str(), limit));
  const std::string where = "redis at " + describe(endpoint);
  if (context == nullptr) return Error{Errc::kExhausted, where + ": out of memory"};
  if (context->err != 0) return Error{Errc::kUnavailable, where + ": " + context->errstr};
  if (redisSetTimeout(context.get(), limit) != REDIS_OK) {
    return Error{Errc::kUnavailable, where + ": cannot set the timeout of the socket"};
  }
  RedisConnection connection(std::move(context));
  if (endpoint.tls) {
    auto tls = RedisTls::handshake(connection.context_->fd, endpoint.host, endpoint.tls_files);
    if (!tls.ok()) return in_context(where, std::move(tls).error());
    connection.tls_ = std::move(tls).value();
  }
  if (auto s = connection.log_in(endpoint); !s.ok()) {
    return in_context(where, std::move(s).error());
  }
  if (auto s = connection.check_server(); !s.ok()) return in_context(where, std::move(s).error());
  return connection;
}

Status RedisConnection::log_in(const RedisEndpoint& endpoint) {
  if (!endpoint.password.empty()) {
    std::vector<std::string_view> auth{"AUTH"};
    if (!endpoint.user.empty()) auth.push_back(endpoint.user);
    auth.push_back(endpoint.password.reveal());
    PROCTOR_CHECK_OK(call(auth));
  }
  if (endpoint.db != 0) {
    const std::string db = std::to_string(endpoint.db);
    PROCTOR_CHECK_OK(call(std::array<std::string_view, 2>{"SELECT", db}));
  }
  return ok_status();
}

Status RedisConnection::check_server() {
  PROCTOR_TRY(const RedisReply reply, call(std::array<std::string_view, 1>{"INFO"}));
  if (reply->type != REDIS_REPLY_STRING) {
    return Error{Errc::kCorrupt, "INFO was not answered with text"};
  }
  const std::string info = "\n" + std::string(reply->str, reply->len);
  facts_.version = info_field(info, "redis_version");
  facts_.run_id = info_field(info, "run_id");
  facts_.maxmemory_policy = info_field(info, "maxmemory_policy");
  const std::string_view version = facts_.version;
  const auto major = whole_number<std::uint32_t>(version.substr(0, version.find('.')));
  if (!major || facts_.run_id.empty()) {
    return Error{Errc::kCorrupt, "INFO names no redis_version or no run_id: not a Redis server?"};
  }
  if (*major < 6) {
    return Error{Errc::kInvalid, "version " + printable(version, 40) + ", at least 6 is needed"};
  }
  if (facts_.maxmemory_policy != "noeviction") {
    return Error{Errc::kInvalid,
                 "maxmemory-policy is \"" + printable(facts_.maxmemory_policy, 40) +
                     "\", which may delete reservations; put the line "
                     "\"maxmemory-policy noeviction\" into its redis.conf (or CONFIG SET "
                     "maxmemory-policy noeviction)"};
  }
  if (info_field(info, "aof_enabled") == "1") facts_.persistence = "append-only file";
  look_around();
  return ok_status();
}

// What a restricted user may be refused: then it stays untold.
void RedisConnection::look_around() {
  const auto user = call(std::array<std::string_view, 2>{"ACL", "WHOAMI"});
  if (user.ok() && (*user)->type == REDIS_REPLY_STRING)
    facts_.user = printable({(*user)->str, (*user)->len}, 100);
  if (!facts_.persistence.empty()) return;
  facts_.persistence = "unknown";
  const auto save = call(std::array<std::string_view, 3>{"CONFIG", "GET", "save"});
  if (!save.ok() || (*save)->type != REDIS_REPLY_ARRAY || (*save)->elements != 2) return;
  const redisReply* points = (*save)->element[1];
  if (points->type != REDIS_REPLY_STRING) return;
  facts_.persistence =
      points->len == 0 ? "none" : "snapshots (" + printable({points->str, points->len}, 100) + ")";
}

Result<RedisReply> RedisConnection::call(std::span<const std::string_view> args) {
  if (context_ == nullptr) return Error{Errc::kUnavailable, "redis: not connected"};
  std::vector<const char*> bytes;
  std::vector<std::size_t> sizes;
  bytes.reserve(args.size());
  sizes.reserve(args.size());
  for (const std::string_view arg : args) {
    bytes.push_back(arg.data());
    sizes.push_back(arg.size());
  }
  const NoSigpipe guard;
  const auto dead = [&](Error error) {
    tls_.reset();
    context_.reset();  // what failed once answers nothing any more
    return error;
  };
  RedisReply reply;
  if (tls_) {
    auto answer = call_under_tls(bytes, sizes);
    if (!answer.ok()) return dead(in_context("redis", std::move(answer).error()));
    reply = std::move(answer).value();
  } else {
    reply.reset(static_cast<redisReply*>(redisCommandArgv(
        context_.get(), static_cast<int>(args.size()), bytes.data(), sizes.data())));
    if (reply == nullptr)
      return dead(Error{Errc::kUnavailable, "redis: " + std::string(context_->errstr)});
  }
  if (reply->type == REDIS_REPLY_ERROR) return classify({reply->str, reply->len});
  return reply;
}

Result<RedisReply> RedisConnection::call_under_tls(std::span<const char*> args,
                                                   std::span<const std::size_t> sizes) {
  char* command = nullptr;
  const int length =
      redisFormatCommandArgv(&command, static_cast<int>(args.size()), args.data(), sizes.data());
  if (length < 0) return Error{Errc::kExhausted, "out of memory"};
  const Owned<char, redisFreeCommand> owned(command);
  PROCTOR_CHECK_OK(tls_->write({command, static_cast<std::size_t>(length)}));
  std::array<char, 16'384> buffer;
  for (;;) {
    void* reply = nullptr;
    if (redisReaderGetReply(context_->reader, &reply) != REDIS_OK)
      return Error{Errc::kUnavailable, std::string(context_->reader->errstr)};
    if (reply != nullptr) return RedisReply(static_cast<redisReply*>(reply));
    PROCTOR_TRY(const std::string_view bytes, tls_->read(buffer));
    if (redisReaderFeed(context_->reader, bytes.data(), bytes.size()) != REDIS_OK)
      return Error{Errc::kUnavailable, std::string(context_->reader->errstr)};
  }
}
}  // namespace proctor
