// A provider behind TLS: its certificate is held to the host's authorities and the models file's.
#include "common/base/subprocess.h"
#include "tests/integration/gateway/session_scene.h"
#include "tests/support/paths.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

// A provider that shows a certificate for `name`, made by nobody that the host knows.
class TlsProvider {
 public:
  explicit TlsProvider(const std::string& name) : dir_(TempDir::create("tls").value()) {
    CommandSpec make;
    make.argv = {"openssl",  "req",
                 "-x509",    "-newkey",
                 "rsa:2048", "-nodes",
                 "-subj",    "/CN=x",
                 "-addext",  "subjectAltName=" + name,
                 "-days",    "2",
                 "-keyout",  key().string(),
                 "-out",     certificate().string()};
    const auto made = run_command(make);
    REQUIRE(made.ok());
    REQUIRE(made->exit_code == 0);
    CommandSpec serve;
    serve.argv = {"python3", (source_dir() / "tests/integration/gateway/tls_provider.py").string(),
                  certificate().string(), key().string(), port_file().string()};
    auto child = Child::start(serve, dir_.path() / "log", Child::Lifetime::kDiesWithParent);
    REQUIRE(child.ok());
    child_.emplace(std::move(child).value());
    REQUIRE(SessionScene::eventually([&] { return fs::exists(port_file()); }));
    port_ = read_file(port_file(), 100).value();
  }
  fs::path certificate() const { return dir_.path() / "certificate"; }
  std::string url() const { return "https://127.0.0.1:" + port_ + "/v1"; }

 private:
  fs::path key() const { return dir_.path() / "key"; }
  fs::path port_file() const { return dir_.path() / "port"; }
  TempDir dir_;
  std::optional<Child> child_;
  std::string port_;
};

HttpAnswer asked_over_tls(const TlsProvider& provider, const std::string& ca_file,
                          std::int64_t& spent) {
  SessionScene::Shape shape;
  shape.url = provider.url();
  shape.access.ca_file = ca_file;
  SessionScene scene(shape, [](const auto&, std::size_t) { return ProviderSays{}; });
  HttpAnswer answer = scene.ask(kChat, chat(100));
  if (answer.status == 200) answer = scene.ask(kChat, chat(100));  // on the same connection
  spent = scene.spent();
  return answer;
}

}  // namespace

TEST_SUITE("gateway session") {
  TEST_CASE("a provider behind TLS is reached, and one that is not who it says costs nothing") {
    std::int64_t spent = 0;
    const TlsProvider good("IP:127.0.0.1");
    CHECK(asked_over_tls(good, good.certificate(), spent)
              .json()["choices"][0]["message"]["content"] == "by TLS");
    CHECK(spent == 2 * 98);
    CHECK(asked_over_tls(good, "", spent).status == 0);  // by nobody that we know
    CHECK(spent == 0);
    const TlsProvider other("DNS:api.example");
    CHECK(asked_over_tls(other, other.certificate(), spent).status == 0);
    CHECK(spent == 0);
  }
}
