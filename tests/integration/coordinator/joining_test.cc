// Who may join while a coordinator runs: keys that come and go, files that are too few, and a
// command that is run again.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <memory>
#include <optional>

#include "common/base/owned.h"
#include "tests/integration/coordinator/endpoint.h"
#include "tests/integration/coordinator/raw_worker.h"
#include "tests/support/books.h"

using namespace proctor;
using namespace proctor::testing;
using namespace std::chrono_literals;

namespace {

Child worker_of(const CampaignScene& scene, const std::string& name, const fs::path& key) {
  return scene.start_worker(
      {"--slots", "1", "--connect", endpoint_of(scene), "--server-key",
       (scene.state() / "keys/coordinator.pub").string(), "--key", key.string()},
      name);
}

// "" while it is not there.
std::string state_of(const CampaignScene& scene, const std::string& name) {
  const Json status = scene.status();
  if (status.is_null()) return "";
  for (const Json& w : status["workers"])
    if (w["name"] == name) return w["state"].string();
  return "";
}

UniqueFd listens_at(const fs::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(path.native().size() < sizeof address.sun_path);
  std::strcpy(address.sun_path, path.c_str());
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::listen(fd.get(), 1) == 0);
  return fd;
}

// As a proxy does whose back end is away; until the caller has gone.
void answer_once_as_a_proxy(const UniqueFd& listener) {
  const UniqueFd caller(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  REQUIRE(caller.valid());
  std::array<char, 256> bytes;
  REQUIRE(0 < ::read(caller.get(), bytes.data(), bytes.size()));
  constexpr std::string_view kAnswer = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
  REQUIRE(::write(caller.get(), kAnswer.data(), kAnswer.size()) == kAnswer.size());
  ::shutdown(caller.get(), SHUT_WR);
  while (0 < ::read(caller.get(), bytes.data(), bytes.size())) {
  }
}

}  // namespace

TEST_SUITE("coordinator") {
  TEST_CASE("a worker to whom somebody else has answered at its coordinator's address comes back") {
    const CampaignScene scene(gated_shape(1));
    const fs::path path = scene.temp() / "front.sock";
    std::optional<UniqueFd> front = listens_at(path);
    Child worker = scene.start_worker({"--connect", "ipc://" + path.string(), "--slots", "1"}, "w");
    answer_once_as_a_proxy(*front);
    fs::remove(path);
    front.reset();
    Child serve = scene.start("serve", {});
    fs::create_symlink(scene.state() / "coordinator.sock", path);
    REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(1); }), scene.said("w"));
    scene.open_gate();
    CHECK_MESSAGE(serve.wait(180s) == 0, scene.said());
    CHECK(worker.wait(60s) == 0);
    check_books(scene, {.runs = 1});
  }

  TEST_CASE("keys are let in and silenced while the coordinator runs") {
    const CampaignScene scene(gated_shape(3)), other(gated_shape(1));
    REQUIRE(scene.run("keygen", {"--worker", "w1"}).exit_code == 0);
    REQUIRE(other.run("keygen", {"--worker", "w2"}).exit_code == 0);
    const fs::path keys = scene.state() / "keys", list = keys / "workers.allow";
    const std::string first = scene.read(list);
    Child serve = scene.start("serve", {"--listen", "tcp://127.0.0.1:0"});
    Child w1 = worker_of(scene, "w1", keys / "w1.key");
    Child w2 = worker_of(scene, "w2", other.state() / "keys/w2.key");
    REQUIRE_MESSAGE(eventually([&] { return contains(scene.said(), "refused a connection"); }),
                    scene.said());
    REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(1); }), scene.said("w1"));
    // A file of its own, as programs write them.
    fs::create_directory(keys / "allow.d");
    scene.write(keys / "allow.d/w2.allow", scene.read(other.state() / "keys/workers.allow"));
    REQUIRE_MESSAGE(eventually([&] { return state_of(scene, "w2") == "ready"; }), scene.said());
    REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(2); }), scene.said("w2"));
    // As keygen does it.
    REQUIRE(scene.run("keygen", {"--worker", "w3"}).exit_code == 0);
    const std::string third = scene.read(list).substr(first.size());
    Child w3 = worker_of(scene, "w3", keys / "w3.key");
    // What an agent's shell starts counts as one too: that w3 is in, its state says.
    REQUIRE_MESSAGE(eventually([&] { return state_of(scene, "w3") == "ready"; }), scene.said());
    REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(3); }), scene.said("w3"));
    // A list with a mistake keeps what it said; the others count.
    scene.write(keys / "allow.d/w2.allow", "not a key\n");
    REQUIRE_MESSAGE(eventually([&] { return contains(scene.said(), "w2.allow:1:"); }),
                    scene.said());
    scene.write(list, "# nobody\n");
    REQUIRE_MESSAGE(eventually([&] { return state_of(scene, "w1") == "suspect"; }), scene.said());
    CHECK(contains(scene.said(), "the key of worker w1 is off the allow-list"));
    CHECK(state_of(scene, "w2") == "ready");
    CHECK(state_of(scene, "w3") == "suspect");
    scene.write(list, first);
    REQUIRE_MESSAGE(eventually([&] { return state_of(scene, "w1") == "ready"; }), scene.said());
    REQUIRE(scene.run("keygen", {"--worker", "w4"}).exit_code == 0);  // w3 stays out
    CHECK(state_of(scene, "w3") == "suspect");
    scene.write(keys / "allow.d/w3.allow", third);
    REQUIRE_MESSAGE(eventually([&] { return state_of(scene, "w3") == "ready"; }), scene.said());
    scene.open_gate();
    CHECK_MESSAGE(serve.wait(180s) == 0, scene.said());
    for (Child* worker : {&w1, &w2, &w3}) CHECK(worker->wait(60s) == 0);
    check_books(scene, {.runs = 3});
    CHECK(scene.number("SELECT count(*) FROM attempts") == 3);  // nobody's was lost
    scene.require_nothing_left();
  }

  TEST_CASE("workers beyond what a coordinator may open are told so, and the others are served") {
    const CampaignScene scene(gated_shape(1));
    CommandSpec spec;
    spec.argv = {"sh",
                 "-c",
                 "ulimit -n 256 && exec \"$0\" \"$@\"",
                 proctor_program().string(),
                 "serve",
                 scene.folder().string(),
                 "--listen",
                 "tcp://127.0.0.1:0",
                 "--insecure-loopback"};
    Child serve =
        must(Child::start(spec, scene.temp() / "proctor.said", Child::Lifetime::kDiesWithParent));
    const std::string endpoint = endpoint_of(scene);
    constexpr std::size_t kWorkers = 300, kAtATime = 30;
    RawNetwork network;
    std::vector<std::unique_ptr<RawWorker>> in;
    std::vector<std::string> refusals;
    for (std::size_t i = 0; i < kWorkers; i += kAtATime) {
      std::vector<std::unique_ptr<RawWorker>> some;
      for (std::size_t k = 0; k < kAtATime; ++k)
        some.push_back(std::make_unique<RawWorker>(network, endpoint));
      REQUIRE(network.until(
          [&] { return std::ranges::all_of(some, [](const auto& w) { return w->connected; }); }));
      for (std::size_t k = 0; k < kAtATime; ++k)
        REQUIRE(some[k]->say(RawWorker::sync("w" + std::to_string(i + k))));
      REQUIRE_MESSAGE(network.until([&] {
        return std::ranges::all_of(
            some, [](const auto& w) { return !w->replies.empty() || !w->refusals.empty(); });
      }),
                      scene.said());
      for (auto& worker : some) {
        if (worker->refusals.empty()) {
          in.push_back(std::move(worker));
        } else {  // a worker that is refused ends
          refusals.push_back(worker->refusals[0]);
        }
      }
    }
    CHECK(in.size() + refusals.size() == kWorkers);
    CHECK(100 < in.size());
    REQUIRE_FALSE(refusals.empty());
    for (const std::string& refusal : refusals)
      CHECK_MESSAGE(contains(refusal, "may open 256 files (ulimit -n)"), refusal);
    CHECK(scene.run("status").exit_code == 0);
    // Who is in is served.
    wire::Sync sync = RawWorker::sync("w0");
    sync.slots = 1;
    REQUIRE(in[0]->say(sync));
    REQUIRE(network.until([&] { return !in[0]->assigned.empty(); }));
    CHECK(serve.running());
    // One that leaves makes room.
    wire::Leave leave;
    leave.worker = WorkerId("w1");
    leave.boot = BootId(1);
    REQUIRE(in[1]->say(leave));
    REQUIRE(in[1]->say(RawWorker::sync("w1-again")));
    REQUIRE(network.until([&] { return in[1]->replies.size() == 2; }));
  }

  TEST_CASE("one command begins a campaign and goes on with it") {
    const CampaignScene scene(gated_shape(2));
    const std::vector<std::string> args = {"--resume-or-begin", "--workers", "1"};
    Child serve = scene.start("serve", args);
    REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(1); }), scene.said());
    serve.signal(SIGKILL);
    serve.wait(180s);
    CHECK(scene.run("serve", {"--workers", "1"}).exit_code == 2);  // it has begun
    serve = scene.start("serve", args, "again");
    scene.open_gate();
    CHECK_MESSAGE(serve.wait(180s) == 0, scene.said("again"));
    CHECK(scene.run("serve", args).exit_code == 0);  // complete: nothing to do
    CHECK(scene.run("serve", {"--resume", "--resume-or-begin"}).exit_code == 2);
    check_books(scene, {.runs = 2});
    CHECK(scene.number("SELECT count(*) FROM attempts") == 2);
    scene.require_nothing_left();
  }
}
