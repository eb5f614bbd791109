// Services beside a command, on every engine: one network for all of them and nothing else in it,
// ready before the command begins, gone when it is over.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/integration/sandbox/run_command.h"
#include "tests/support/paths.h"
#include "tests/support/programs.h"
#include "worker/network/way_out.h"
#include "worker/services/service_group.h"

using namespace proctor;
using namespace proctor::testing;
using std::chrono::milliseconds;
using End = ExecOutcome::End;

namespace {

constexpr const char* kAsker = "/opt/probe/net_probe";

// One network and what a test starts in it.
struct Served {
  explicit Served(Bench& b, const std::string& mark = "")
      : bench(b), network(must(b.engine().open_network("17.2-network" + mark, b.spec().image))) {
    const fs::path dir = bench.scratch() / "probe";
    REQUIRE(make_dirs(dir).ok());
    if (!fs::exists(dir / "net_probe")) fs::copy_file(build_dir() / "net_probe", dir / "net_probe");
    hosts = bench.scratch() / ("hosts" + mark);
    REQUIRE(write_file(hosts, hosts_of_services({"db", "web"})).ok());
  }

  SandboxSpec spec() const {
    SandboxSpec s = bench.spec();
    s.mounts.push_back({bench.scratch() / "probe", "/opt/probe", false});
    s.mounts.push_back({hosts, "/etc/hosts", false});
    s.shared = network;
    return s;
  }

  ServicePlan service(const std::string& name, const std::string& command, Readiness ready) const {
    ServicePlan p;
    p.name = name;
    p.spec = spec();
    p.spec.label = "17.2-" + name;
    p.exec.command = command;
    p.exec.stdout_file = bench.scratch() / (name + ".stdout");
    p.exec.stderr_file = bench.scratch() / (name + ".stderr");
    p.exec.output_max = kServiceOutputBytes;
    p.ready = std::move(ready);
    p.ready_stdout_file = bench.scratch() / (name + ".ready.stdout");
    p.ready_stderr_file = bench.scratch() / (name + ".ready.stderr");
    return p;
  }

  ServicePlan server(const std::string& name, int port, const std::string& text) const {
    return service(name, std::string(kAsker) + " serve " + std::to_string(port) + "=" + text,
                   {static_cast<std::uint16_t>(port), "", milliseconds(20), milliseconds(120'000)});
  }

  Said ask(const std::string& questions) const {
    return run(bench, spec(), exec_of(bench, std::string(kAsker) + " " + questions));
  }

  std::string heard(const std::string& name, const char* stream) const {
    return read_file(bench.scratch() / (name + "." + stream), std::size_t{64} << 20).value();
  }

  Bench& bench;
  std::shared_ptr<SharedNetwork> network;
  fs::path hosts;
};

Readiness by_command(const std::string& command, milliseconds timeout = milliseconds(120'000)) {
  return {0, command, milliseconds(20), timeout};
}

}  // namespace

TEST_SUITE("sandbox services") {
  TEST_CASE("a command talks to its services by name and port, and nothing else is there") {
    const auto bench = make_bench();
    if (!bench) return;
    {
      Served scene(*bench);
      ServiceGroup group(bench->engine(), scene.network);
      // The second finds the first: it is started when that is ready.  A port below 1024 is theirs.
      auto failed = group.start(
          {scene.server("db", 80, "rows"),
           scene.service("web",
                         std::string(kAsker) + " say db:80; exec " + kAsker + " serve 8080=page",
                         by_command(std::string(kAsker) + " say web:8080 | grep page"))},
          {});
      REQUIRE(failed.ok());
      CHECK_FALSE(failed->has_value());
      const Said said = scene.ask(
          "say db:80 say web:8080 say other:80 tcp 10.0.0.1:80 "
          "tcp 172.17.0.1:80 tcp 169.254.169.254:80 tcp 127.0.0.1:22");
      CHECK(said.out ==
            "say db:80: rows\nsay web:8080: page\nsay other:80: no such name\n"
            "tcp 10.0.0.1:80: Network is unreachable\n"
            "tcp 172.17.0.1:80: Network is unreachable\n"
            "tcp 169.254.169.254:80: Network is unreachable\n"
            "tcp 127.0.0.1:22: Connection refused\n");
      CHECK(run(*bench, scene.spec(),
                exec_of(*bench, "tail -n +3 /proc/net/dev | sed 's/:.*//; s/ //g'"))
                .out == "lo\n");
      // Processes of a service are not the command's to see.
      CHECK(run(*bench, scene.spec(), exec_of(*bench, "grep -l 'ser[v]e' /proc/[0-9]*/cmdline"))
                .out.find("/proc/") == std::string::npos);
      const auto ends = group.stop();
      REQUIRE(ends.size() == 2);
      for (const auto& end : ends) {
        CAPTURE(end.service);
        CHECK(end.ready_after);
        CHECK_FALSE(end.by_itself);
        REQUIRE(end.outcome);
        CHECK(end.outcome->end == End::kCancelled);
      }
      CHECK(scene.heard("web", "stdout") == "say db:80: rows\n");
      CHECK(contains(scene.heard("web", "ready.stdout"), "page"));
      CHECK(contains(scene.ask("say db:80").out, "Connection refused"));
      CHECK(group.stop().empty());
    }
    CHECK(bench->leftovers().empty());
  }

  TEST_CASE("two attempts have the same port each for itself") {
    const auto bench = make_bench();
    if (!bench) return;
    {
      Served one(*bench, "1"), two(*bench, "2");
      ServiceGroup first(bench->engine(), one.network), second(bench->engine(), two.network);
      REQUIRE_FALSE(must(first.start({one.server("db", 5432, "first")}, {})).has_value());
      CHECK(contains(two.ask("say db:5432").out, "Connection refused"));
      CHECK_FALSE(must(two.network->accepts(5432)));
      REQUIRE_FALSE(must(second.start({two.server("db", 5432, "second")}, {})).has_value());
      CHECK(one.ask("say db:5432").out == "say db:5432: first\n");
      CHECK(two.ask("say db:5432").out == "say db:5432: second\n");
      // Nor is either anybody else's.
      CHECK(contains(run(
                         *bench,
                         [&] {
                           SandboxSpec alone = one.spec();
                           alone.shared.reset();
                           return alone;
                         }(),
                         exec_of(*bench, std::string(kAsker) + " say db:5432"))
                         .out,
                     "Connection refused"));
    }
    CHECK(bench->leftovers().empty());
  }

  TEST_CASE(
      "a service that does not get ready says so within its time, and so does one that dies") {
    const auto bench = make_bench();
    if (!bench) return;
    struct Row {
      const char* what;
      const char* command;
      Readiness ready;
      bool workspace;
      const char* why;
      bool by_itself;
    };
    const Readiness port{8080, "", milliseconds(20), milliseconds(1'500)};
    const Row rows[] = {
        {"deaf", "echo begun; sleep 1000", port, false, "not ready within 1500 ms (port 8080)",
         false},
        {"never pleased", "sleep 1000", by_command("echo no >&2; false", milliseconds(1'500)), true,
         "not ready within 1500 ms (its readiness command)", false},
        {"gone at once",
         "echo oh >&2; exit 3",
         {8080, "", milliseconds(20), milliseconds(120'000)},
         true,
         "ended with exit code 3 before it was ready",
         true},
        {"killed", "kill -9 $$", by_command("false", milliseconds(120'000)), false,
         "was ended by signal 9 before it was ready", true},
        {"not there", "no-such-program", by_command("false", milliseconds(120'000)), false,
         "ended with exit code 127 before it was ready", true},
        // A daemon that leaves what was started is not this sandbox's command any more.
        {"gone into the background",
         "setsid sleep 1000 & exit 0",
         {8080, "", milliseconds(20), milliseconds(120'000)},
         false,
         "ended with exit code 0 before it was ready",
         true}};
    {
      Served scene(*bench);
      for (const Row& row : rows) {
        CAPTURE(row.what);
        ServiceGroup group(bench->engine(), scene.network);
        ServicePlan plan = scene.service("db", row.command, row.ready);
        plan.workspace = row.workspace;
        const auto begun = std::chrono::steady_clock::now();
        const auto failed = must(group.start({plan, scene.server("web", 9, "never")}, {}));
        CHECK(std::chrono::steady_clock::now() - begun < milliseconds(110'000));
        REQUIRE(failed);
        CHECK(failed->service == "db");
        CHECK(failed->why == row.why);
        CHECK(failed->blame == (row.workspace ? Blame::kCandidate : Blame::kHost));
        const auto ends = group.stop();
        REQUIRE(ends.size() == 1);  // what waits for it has not been started
        CHECK_FALSE(ends[0].ready_after);
        CHECK(ends[0].by_itself == row.by_itself);
      }
    }
    CHECK(bench->leftovers().empty());
  }

  TEST_CASE("a service that floods is cut and counted, and its daemons end with it") {
    const auto bench = make_bench();
    if (!bench) return;
    const std::string mark = "proctor-service-" + std::to_string(::getpid());
    {
      Served scene(*bench);
      ServiceGroup group(bench->engine(), scene.network);
      ServicePlan loud =
          scene.service("db",
                        "setsid sh -c 'while :; do sleep 1; : " + mark + "; done' & yes " + mark +
                            " & exec " + kAsker + " serve 7000=loud",
                        {7000, "", milliseconds(20), milliseconds(120'000)});
      REQUIRE_FALSE(must(group.start({loud}, {})).has_value());
      CHECK(eventually([&] {
        std::error_code ec;
        return kServiceOutputBytes <= fs::file_size(bench->scratch() / "db.stdout", ec);
      }));
      // Those of gVisor's kernel the host does not see.
      if (!bench->userspace()) CHECK(0 < processes_with(mark));
      CHECK(scene.ask("say db:7000").out == "say db:7000: loud\n");
      const auto ends = group.stop();
      CHECK(fs::file_size(bench->scratch() / "db.stdout") == kServiceOutputBytes);
      REQUIRE(ends.at(0).outcome);
      CHECK(kServiceOutputBytes < ends[0].outcome->stdout_bytes);
      CHECK(eventually([&] { return processes_with(mark) == 0; }));
    }
    CHECK(bench->leftovers().empty());
  }

  TEST_CASE("one that dies while the command runs is told from one that was ended") {
    const auto bench = make_bench();
    if (!bench) return;
    {
      Served scene(*bench);
      ServiceGroup group(bench->engine(), scene.network);
      REQUIRE_FALSE(
          must(group.start({scene.service("db", "sleep 0.2; exit 7", {})}, {})).has_value());
      CHECK(run(*bench, scene.spec(), exec_of(*bench, "sleep 2; echo on")).out == "on\n");
      const auto ends = group.stop();
      REQUIRE(ends.at(0).outcome);
      CHECK(ends[0].by_itself);
      CHECK(ends[0].outcome->exit_code == 7);
    }
    CHECK(bench->leftovers().empty());
  }

  TEST_CASE("a service whose port another has is not ready by it") {
    const auto bench = make_bench();
    if (!bench) return;
    {
      Served scene(*bench);
      ServiceGroup group(bench->engine(), scene.network);
      ServicePlan web = scene.server("web", 9000, "pass");
      web.workspace = true;
      const auto failed = must(group.start({web, scene.server("judge", 9000, "fail")}, {}));
      REQUIRE(failed);
      CHECK(failed->service == "judge");
      CHECK(contains(failed->why, "accepted before it was started"));
      CHECK(failed->blame == Blame::kCandidate);
      group.stop();
    }
    {
      // Ready by a port of its own, it ends when the next answers: whoever has that port now is not
      // it.
      Served scene(*bench, "2");
      ServiceGroup group(bench->engine(), scene.network);
      const std::string asker(kAsker);
      ServicePlan judge = scene.service("judge",
                                        asker + " serve 9000=fail & until " + asker +
                                            " say db:80 | grep rows; do :; done; exit 3",
                                        {9000, "", milliseconds(20), milliseconds(120'000)});
      judge.workspace = true;
      const ServicePlan db =
          scene.service("db", asker + " serve 80=rows",
                        by_command(asker + " say web:9000 | grep refused && sleep 1"));
      const auto failed = must(group.start({judge, db}, {}));
      REQUIRE(failed);
      CHECK(failed->service == "judge");
      CHECK(contains(failed->why, "ended with exit code 3 before it was ready"));
      group.stop();
    }
    CHECK(bench->leftovers().empty());
  }

  TEST_CASE("cancelling ends the waiting for a service") {
    const auto bench = make_bench();
    if (!bench) return;
    {
      Served scene(*bench);
      for (const bool port : {true, false}) {
        CAPTURE(port);
        ServiceGroup group(bench->engine(), scene.network);
        Readiness ready = by_command("false", milliseconds(600'000));
        if (port) ready = {8080, "", milliseconds(60'000), milliseconds(600'000)};
        std::stop_source cancel;
        std::jthread soon([&] {
          eventually([&] { return fs::exists(bench->scratch() / "db.stdout"); });
          cancel.request_stop();
        });
        const auto failed =
            must(group.start({scene.service("db", "sleep 1000", ready)}, cancel.get_token()));
        REQUIRE(failed);
        CHECK(failed->why == "cancelled before it was ready");
        soon.join();
        fs::remove(bench->scratch() / "db.stdout");
      }
    }
    CHECK(bench->leftovers().empty());
  }

  TEST_CASE("services and an allow-list go together") {
    const auto bench = make_bench();
    if (!bench) return;
    {
      Served scene(*bench);
      const fs::path dir = bench->scratch() / "network";
      REQUIRE(make_dirs(dir).ok());
      FilterProxy::Options options;
      options.allow = {"a.example:443"};
      const auto way = must(WayOut::open(dir, options, [](const ProxyRecord&) {}));
      ServiceGroup group(bench->engine(), scene.network);
      REQUIRE_FALSE(must(group.start({scene.server("db", 5432, "rows")}, {})).has_value());
      SandboxSpec spec = scene.spec();
      way->give_to(spec);
      const Said said = run(
          *bench, spec, exec_of(*bench, std::string(kAsker) + " say db:5432 tunnel b.example:443"));
      CHECK(contains(said.out, "say db:5432: rows\n"));
      CHECK(contains(said.out, "tunnel b.example:443: 403 "));
    }
    CHECK(bench->leftovers().empty());
  }

  TEST_CASE("a network of another engine, or two networks, are refused") {
    const auto bench = make_bench();
    if (!bench) return;
    struct Stranger final : SharedNetwork {
      Result<bool> accepts(std::uint16_t) override { return false; }
    };
    SandboxSpec spec = bench->spec();
    spec.shared = std::make_shared<Stranger>();
    const auto refused = [&] {
      auto sandbox = bench->engine().open(spec);
      if (!sandbox.ok()) return sandbox.error().code == Errc::kInvalid;
      const auto ran = (*sandbox)->run(exec_of(*bench, "true"), {});
      return !ran.ok() && ran.error().code == Errc::kInvalid;
    };
    CHECK(refused());
    {
      Served scene(*bench);
      spec = scene.spec();
      spec.network = true;
      CHECK(refused());
      spec.shared.reset();  // else the network would live on
    }
    CHECK(bench->leftovers().empty());
  }
}
