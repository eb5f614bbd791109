// A ledger on a Redis that speaks TLS, with certificates that are right and with others.
#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>

#include <array>
#include <optional>
#include <thread>

#include "common/base/owned.h"
#include "common/base/subprocess.h"
#include "tests/integration/ledger/support.h"

using namespace proctor;
using namespace proctor::test;

namespace {

constexpr std::chrono::milliseconds kSoon{10'000};

// Free a moment ago; who loses the race for it starts again with another.
std::uint16_t free_port() {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0);
  REQUIRE(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  return ntohs(address.sin_port);
}

// An authority, and what it signs.
struct Authority {
  const fs::path dir;
  const std::string name;

  Authority(const fs::path& where, const std::string& called) : dir(where), name(called) {
    openssl({"-subj", "/CN=" + name, "-keyout", key(name), "-out", certificate(name)});
  }
  void sign(const std::string& what, const std::string& alternative) const {
    openssl({"-subj", "/CN=" + what, "-keyout", key(what), "-out", certificate(what), "-CA",
             certificate(name), "-CAkey", key(name), "-addext", "subjectAltName=" + alternative,
             "-addext", "basicConstraints=critical,CA:FALSE"});
  }
  std::string key(const std::string& of) const { return (dir / (of + ".key")).string(); }
  std::string certificate(const std::string& of) const { return (dir / (of + ".crt")).string(); }

 private:
  static void openssl(const std::vector<std::string>& more) {
    CommandSpec spec;
    spec.argv = {
        "openssl", "req",   "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
        "-nodes",  "-days", "2"};
    spec.argv.insert(spec.argv.end(), more.begin(), more.end());
    const CommandOutcome done = must(run_command(spec));
    REQUIRE_MESSAGE(done.success(), done.describe());
  }
};

// A redis-server that speaks TLS on one port of the loopback and plain text on another.
class TlsServer {
 public:
  TlsServer(const fs::path& dir, const Authority& authority, const std::string& identity,
            bool asks_for_ours) {
    for (int attempt = 0; attempt < 5 && !child_; ++attempt) {
      tls_port_ = free_port();
      plain_port_ = free_port();
      CommandSpec spec;
      spec.argv = {"redis-server",
                   "--port",
                   std::to_string(plain_port_),
                   "--tls-port",
                   std::to_string(tls_port_),
                   "--bind",
                   "127.0.0.1",
                   "--dir",
                   dir.string(),
                   "--save",
                   "",
                   "--appendonly",
                   "no",
                   "--tls-cert-file",
                   authority.certificate(identity),
                   "--tls-key-file",
                   authority.key(identity),
                   "--tls-ca-cert-file",
                   authority.certificate(authority.name),
                   "--tls-auth-clients",
                   asks_for_ours ? "yes" : "no"};
      child_.emplace(must(Child::start(spec, dir / "redis.log", Child::Lifetime::kDiesWithParent)));
      while (child_->running() && !RedisConnection::open(plain(), kSoon).ok())
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      if (!child_->running()) child_.reset();
    }
    REQUIRE(child_);
  }
  ~TlsServer() {
    if (child_) child_->stop(std::chrono::seconds(2));
  }
  RedisEndpoint plain() const {
    return must(parse_redis_endpoint("tcp://127.0.0.1:" + std::to_string(plain_port_)));
  }
  RedisEndpoint tls(const RedisTlsFiles& files, const std::string& host = "127.0.0.1") const {
    RedisEndpoint e =
        must(parse_redis_endpoint("tls://" + host + ":" + std::to_string(tls_port_) + "/1"));
    e.tls_files = files;
    return e;
  }
  std::uint16_t plain_port() const { return plain_port_; }
  std::uint16_t tls_port() const { return tls_port_; }
  void signal(int number) { child_->signal(number); }

 private:
  std::uint16_t plain_port_ = 0, tls_port_ = 0;
  std::optional<Child> child_;
};

Error refusal(const RedisEndpoint& endpoint) {
  const auto opened = RedisConnection::open(endpoint, kSoon);
  if (opened.ok()) FAIL("connected");
  return opened.error();
}

}  // namespace

TEST_SUITE("ledger") {
  TEST_CASE("under TLS the ledger answers as without") {
    const TempDir dir = must(TempDir::create("tls"));
    const Authority authority(dir.path(), "ours");
    authority.sign("server", "IP:127.0.0.1,DNS:localhost");
    TlsServer server(dir.path(), authority, "server", false);
    RedisLedger::Options options;
    options.campaign = "c1";
    options.timeout = kSoon;
    options.endpoint = server.tls({authority.certificate("ours"), "", ""});
    RedisLedger ledger = must(RedisLedger::open(options));

    const std::vector<ScopeSpec> scopes{{"global", micro(1'000'000)}};
    REQUIRE(must(ledger.begin_epoch(Epoch(1), scopes, {}, {micro(0)})).empty());
    std::vector<LedgerOp> batch;  // more than one record of TLS each way
    for (std::uint32_t i = 0; i < kLedgerBatch; ++i)
      batch.emplace_back(ReserveOp{ask_id(i), micro(10), {ScopeId(0)}});
    for (const LedgerAnswer& answer : must(ledger.apply(Epoch(1), batch)))
      REQUIRE(text_of(answer) == "granted 0 0");
    CHECK(text_of(must(ledger.snapshot()).at(0)) ==
          "1000000 0 " + std::to_string(10 * kLedgerBatch));
    CHECK(ledger.describe().find("at tls://127.0.0.1:") != std::string::npos);
    CHECK(RedisConnection::open(server.tls({authority.certificate("ours"), "", ""}, "localhost"),
                                kSoon)
              .ok());

    server.signal(SIGSTOP);
    CHECK(code_of(ledger.snapshot()) == Errc::kUnavailable);
    server.signal(SIGCONT);
    CHECK(must(ledger.snapshot()).size() == 1);
    server.signal(SIGKILL);
    CHECK(code_of(ledger.snapshot()) == Errc::kUnavailable);
  }

  TEST_CASE("a server whose certificate proves nothing is refused with the reason") {
    const TempDir dir = must(TempDir::create("tls"));
    const Authority ours(dir.path(), "ours"), theirs(dir.path(), "theirs");
    ours.sign("elsewhere", "DNS:redis.example");
    const TlsServer server(dir.path(), ours, "elsewhere", false);
    for (const auto& [authority, reason] :
         {std::pair{"ours", "IP address mismatch"}, {"theirs", "self-signed"}}) {
      const Error e = refusal(server.tls({ours.certificate(authority), "", ""}));
      CHECK(e.code == Errc::kInvalid);
      CHECK_MESSAGE(e.detail.find(reason) != std::string::npos, e.detail);
      CHECK_MESSAGE(e.detail.find("PROCTOR_REDIS_CA") != std::string::npos, e.detail);
    }
    CHECK(refusal(server.tls({"", "", ""})).code == Errc::kInvalid);
    const Error no_file = refusal(server.tls({(dir.path() / "none").string(), "", ""}));
    CHECK(no_file.code == Errc::kInvalid);
    CHECK_MESSAGE(no_file.detail.find("PROCTOR_REDIS_CA: cannot use") != std::string::npos,
                  no_file.detail);
  }

  TEST_CASE("a server that asks who we are is shown our certificate") {
    const TempDir dir = must(TempDir::create("tls"));
    const Authority authority(dir.path(), "ours");
    authority.sign("server", "IP:127.0.0.1");
    authority.sign("client", "DNS:coordinator");
    const TlsServer server(dir.path(), authority, "server", true);
    const std::string ca = authority.certificate("ours");
    const RedisTlsFiles shown{ca, authority.certificate("client"), authority.key("client")};
    CHECK(RedisConnection::open(server.tls(shown), kSoon).ok());

    const Error unknown = refusal(server.tls({ca, "", ""}));
    CHECK_MESSAGE(unknown.detail.find("PROCTOR_REDIS_CERT") != std::string::npos, unknown.detail);
    CHECK(refusal(server.tls({ca, shown.certificate, ""})).code == Errc::kInvalid);
    const Error other_key = refusal(server.tls({ca, shown.certificate, authority.key("server")}));
    CHECK(other_key.code == Errc::kInvalid);
  }

  TEST_CASE("TLS and plain text on the wrong port are told apart") {
    const TempDir dir = must(TempDir::create("tls"));
    const Authority authority(dir.path(), "ours");
    authority.sign("server", "IP:127.0.0.1");
    const TlsServer server(dir.path(), authority, "server", false);
    RedisEndpoint wrong = server.tls({authority.certificate("ours"), "", ""});
    wrong.port = server.plain_port();
    const Error no_tls = refusal(wrong);
    CHECK_MESSAGE(no_tls.detail.find("does this port speak TLS?") != std::string::npos,
                  no_tls.detail);
    RedisEndpoint plain = server.plain();
    plain.port = server.tls_port();
    CHECK(refusal(plain).code == Errc::kUnavailable);
  }
}
