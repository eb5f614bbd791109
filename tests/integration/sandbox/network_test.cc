// The network of a sandbox, on every engine: nothing, or what an allow-list names and nothing else.
#include <doctest/doctest.h>

#include <algorithm>
#include <mutex>

#include "tests/integration/sandbox/proved_apart.h"
#include "tests/integration/sandbox/run_command.h"
#include "tests/support/local_server.h"
#include "tests/support/paths.h"
#include "tests/support/programs.h"
#include "worker/network/way_out.h"

using namespace proctor;
using namespace proctor::testing;
using End = ExecOutcome::End;

namespace {

constexpr const char* kProbe = "/opt/probe/net_probe";

std::size_t threads_now() {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator()));
}

// A bench whose sandboxes can ask.
struct Scene {
  explicit Scene(Bench& b) : bench(b) {
    const fs::path dir = bench.scratch() / "probe";
    REQUIRE(make_dirs(dir).ok());
    fs::copy_file(build_dir() / "net_probe", dir / "net_probe",
                  fs::copy_options::overwrite_existing);
  }

  SandboxSpec spec() const {
    SandboxSpec s = bench.spec();
    s.mounts.push_back({bench.scratch() / "probe", "/opt/probe", false});
    return s;
  }

  std::unique_ptr<WayOut> way_out(std::vector<std::string> allow) {
    const fs::path dir = bench.scratch() / "network";
    REQUIRE(make_dirs(dir).ok());
    FilterProxy::Options options;
    options.allow = std::move(allow);
    return must(WayOut::open(dir, options, [this](const ProxyRecord& r) {
      const std::lock_guard lock(mutex);
      records.push_back(r);
    }));
  }

  Said ask(const SandboxSpec& s, const std::string& questions) const {
    return run(bench, s, exec_of(bench, std::string(kProbe) + " " + questions));
  }

  // Once there are so many, or the time is over.
  std::vector<ProxyRecord> recorded(std::size_t n) {
    const auto all = [this] {
      const std::lock_guard lock(mutex);
      return records;
    };
    (void)eventually([&] { return n <= all().size(); });
    return all();
  }

  Bench& bench;
  std::mutex mutex;
  std::vector<ProxyRecord> records;  // by the proxy's threads, after the answers
};

}  // namespace

TEST_SUITE("sandbox network") {
  TEST_CASE("what is on the list is reached by plain HTTP and through tunnels") {
    const auto bench = make_bench();
    if (!bench) return;
    Scene scene(*bench);
    const LocalServer server;
    const std::string port = std::to_string(server.port());
    SandboxSpec spec = scene.spec();
    {
      const auto way = scene.way_out({server.at(), "localhost:" + port});
      way->give_to(spec);
      const Said said =
          scene.ask(spec, "get http://" + server.at() + "/a?b tunnel " + server.at() +
                              " get http://localhost:" + port + "/c tunnel LocalHost.:" + port);
      CHECK(said.err == "");
      CHECK(said.out == "get http://" + server.at() + "/a?b: 200 connection: close\n" + "tunnel " +
                            server.at() + ": 200 there and back\n" +
                            "get http://localhost:" + port + "/c: 200 connection: close\n" +
                            "tunnel LocalHost.:" + port + ": 200 there and back\n");
    }
    const std::vector<ProxyRecord> records = scene.recorded(4);
    REQUIRE(records.size() == 4);
    for (const ProxyRecord& r : records) {
      CHECK(r.verdict == ProxyRecord::Verdict::kAllowed);
      CHECK(r.port == server.port());
      CHECK(r.address == "127.0.0.1");
      CHECK(0 < r.received);
    }
    const auto tunnel = std::ranges::find(records, "CONNECT", &ProxyRecord::method);
    CHECK(tunnel->sent == std::string("there and back").size());
    CHECK(tunnel->received == tunnel->sent);
    CHECK(server.heard().front().starts_with("GET /a?b HTTP/1.1\r\nhost: " + server.at() + "\r\n"));
    CHECK(bench->leftovers().empty());
  }

  TEST_CASE("what is not on the list is not reached by any way") {
    const auto bench = make_bench();
    if (!bench) return;
    Scene scene(*bench);
    const LocalServer allowed, other;
    SandboxSpec spec = scene.spec();
    const auto way = scene.way_out({allowed.at(), "*.example.org:443"});
    way->give_to(spec);
    const std::string name = "localhost:" + std::to_string(allowed.port());
    const Said said = scene.ask(
        spec, "tunnel " + other.at() + " get http://" + other.at() + "/ tunnel " + name +
                  " tunnel 169.254.169.254:80 get http://169.254.169.254/latest/meta-data/" +
                  " tunnel [::1]:" + std::to_string(allowed.port()) + " tunnel example.org:443" +
                  " get http://u:p@" + allowed.at() + "/" + " tcp " + allowed.at() + " tcp " +
                  other.at() + " tcp 169.254.169.254:80 tcp 1.1.1.1:443 udp 1.1.1.1:53" +
                  " tcp 10.0.0.1:80 tcp 172.17.0.1:80 udp 127.0.0.53:53" + " raw 'GET http://" +
                  allowed.at() + "/ HTTP/1.1\\r\\nHost: evil.org\\r\\n\\r\\n'");
    CAPTURE(said.out);
    std::vector<std::string> lines;
    for (std::size_t from = 0; from < said.out.size();) {
      const std::size_t end = said.out.find('\n', from);
      lines.push_back(said.out.substr(from, end - from));
      from = end + 1;
    }
    REQUIRE(lines.size() == 17);
    const auto says = [&](std::size_t i, const char* what) {
      CAPTURE(lines[i]);
      CHECK(contains(lines[i], what));
    };
    for (std::size_t i = 0; i < 7; ++i) says(i, ": 403 ");
    says(0, "not on the contract's allow-list");
    says(7, ": 400 ");
    for (std::size_t i = 8; i < 10; ++i) says(i, "Connection refused");
    // With a network that has lo alone, gVisor's says the second.
    const char* nowhere = bench->userspace() ? "No route to host" : "Network is unreachable";
    for (std::size_t i = 10; i < 15; ++i) says(i, nowhere);
    CHECK_FALSE(contains(lines[15], "bytes"));  // a datagram to nobody
    says(16, ": 400");
    CHECK(allowed.heard().empty());
    CHECK(other.heard().empty());
    CHECK(run(*bench, spec, exec_of(*bench, "tail -n +3 /proc/net/dev | sed 's/:.*//; s/ //g'"))
              .out == "lo\n");
    const std::vector<ProxyRecord> records = scene.recorded(9);
    for (const ProxyRecord& r : records) {
      CHECK(r.verdict != ProxyRecord::Verdict::kAllowed);
      CHECK_FALSE(contains(r.why, "u:p"));
    }
    CHECK(records.size() == 9);
  }

  TEST_CASE("a phase without permission has nothing while another has") {
    const auto bench = make_bench();
    if (!bench) return;
    Scene scene(*bench);
    const LocalServer server;
    SandboxSpec with = scene.spec(), without = scene.spec();
    const auto way = scene.way_out({server.at()});
    way->give_to(with);
    const std::string question = "tunnel " + server.at();
    CHECK(contains(scene.ask(with, question).out, "200 there and back"));
    CHECK(contains(scene.ask(without, question).out, "no proxy"));
    CHECK(contains(scene.ask(without, "tcp 127.0.0.1:3128").out, "Connection refused"));
    CHECK(run(*bench, without, exec_of(*bench, "ls /proctor/network")).outcome.exit_code != 0);
    CHECK(contains(scene.ask(with, question).out, "200 there and back"));
  }

  TEST_CASE("the way out changes nothing else of a command") {
    const auto bench = make_bench();
    if (!bench) return;
    Scene scene(*bench);
    SandboxSpec spec = scene.spec();
    const auto way = scene.way_out({"a.org:443"});
    way->give_to(spec);
    const auto with = [&](const std::string& command) {
      return run(*bench, spec, exec_of(*bench, command));
    };
    CHECK(with("exit 3").outcome.exit_code == 3);
    CHECK(with("kill -9 $$").outcome.signal == 9);
    CHECK(with("pwd; cat; echo e >&2").out == "/workspace\n");
    CHECK(with(std::string("exec ") + kProbe + " children -").out == "children -: none\n");
    // What it leaves does not count against the command's processes.
    if (bench->engine().enforcement().at("processes").find("cgroup") != std::string::npos) {
      spec.processes = 3;
      CHECK(with("sleep 0.1 & sleep 0.1 & wait").outcome.exit_code == 0);
      CHECK(with("sleep 0.1 & sleep 0.1 & sleep 0.1 & sleep 0.1 & wait").err != "");
    }
    CHECK(bench->leftovers().empty());
  }

  TEST_CASE("who kills all he can reach has cut himself off and no more") {
    const auto bench = make_bench();
    if (!bench) return;
    Scene scene(*bench);
    const LocalServer server;
    SandboxSpec spec = scene.spec();
    const auto way = scene.way_out({server.at()});
    way->give_to(spec);
    if (!proved_apart(*bench, spec)) return;  // it would kill this host's processes
    // A kill is asked for at once and done soon.
    const std::string probe = kProbe;
    const Said said =
        run(*bench, spec,
            exec_of(*bench, "kill -9 -1; until " + probe +
                                " tcp 127.0.0.1:3128 | grep -q refused; do :; done; " + probe +
                                " tcp " + server.at() + " tcp 1.1.1.1:443 tunnel " + server.at()));
    CHECK(contains(said.out, "tunnel " + server.at() + ": Connection refused"));
    CHECK_FALSE(contains(said.out, "reached"));
    CHECK(server.heard().empty());
    CHECK(bench->leftovers().empty());
  }

  TEST_CASE("open tunnels end with the command and nothing of the way out is left") {
    const auto bench = make_bench();
    if (!bench) return;
    Scene scene(*bench);
    const LocalServer server;
    const std::size_t before = threads_now();
    {
      SandboxSpec spec = scene.spec();
      const auto way = scene.way_out({server.at()});
      way->give_to(spec);
      // Sixty clients that say half a word, and one that is served all the same.
      const Said said = run(*bench, spec,
                            exec_of(*bench, "i=0; while [ $i -lt 60 ]; do " + std::string(kProbe) +
                                                " raw GET >/dev/null & i=$((i+1)); done; " +
                                                kProbe + " tunnel " + server.at()));
      CHECK(contains(said.out, "200 there and back"));
      CHECK(said.outcome.wall < std::chrono::seconds(150));
      ExecSpec endless = exec_of(*bench, std::string(kProbe) + " raw GET");
      endless.timeout = std::chrono::milliseconds(700);
      CHECK(run(*bench, spec, endless).outcome.end == End::kTimedOut);
    }
    CHECK(eventually([&] { return threads_now() <= before; }));
    CHECK_FALSE(fs::exists(bench->scratch() / "network"));
    CHECK(bench->leftovers().empty());
  }
}
