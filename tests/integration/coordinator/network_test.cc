// Workers over TCP: keys, wrong keys, garbage, names.  Nobody is disturbed by a stranger.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <random>

#include "common/base/owned.h"
#include "common/plan/registration.h"
#include "tests/integration/coordinator/raw_worker.h"
#include "tests/support/books.h"

using namespace proctor;
using namespace proctor::testing;
using namespace std::chrono_literals;

namespace {

CampaignShape gated() {
  CampaignShape shape;
  shape.methods = {gated_method("gated"), "noop"};
  shape.replicates = 2;
  return shape;
}

// The port behind "listening on tcp://127.0.0.1:PORT"; 0 while it is not said.
int port_of(const CampaignScene& scene, const std::string& name = "proctor") {
  constexpr std::string_view kMark = "listening on tcp://127.0.0.1:";
  const std::string said = scene.said(name);
  const std::size_t at = said.find(kMark);
  return at == std::string::npos ? 0 : std::atoi(said.c_str() + at + kMark.size());
}
std::string endpoint_of(const CampaignScene& scene, const std::string& name = "proctor") {
  REQUIRE_MESSAGE(eventually([&] { return port_of(scene, name) != 0; }), scene.said(name));
  return "tcp://127.0.0.1:" + std::to_string(port_of(scene, name));
}

// How many campaigns the worker has entered.
std::size_t served(const std::string& said) {
  std::size_t n = 0, at = 0;
  for (; (at = said.find("serving campaign", at)) != std::string::npos; ++at) ++n;
  return n;
}

std::vector<std::string> with_keys(const CampaignScene& scene, const std::string& key) {
  return {"--connect",    endpoint_of(scene),
          "--slots",      "2",
          "--server-key", (scene.state() / "keys/coordinator.pub").string(),
          "--key",        key};
}

// Connects, sends, goes.
void send_garbage(int port, const std::string& bytes) {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
  (void)::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

void send_all_kinds_of_garbage(int port) {
  constexpr unsigned kSeed = 20260307;
  std::mt19937 random(kSeed);
  std::string noise(100'000, '\0');
  for (char& c : noise) c = static_cast<char>(random());
  const std::string greeting("\xff\0\0\0\0\0\0\0\1\x7f\3\0NULL", 16);
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n\r\n"), noise, greeting + noise, std::string()})
    send_garbage(port, bytes);
}

}  // namespace

TEST_SUITE("coordinator") {
  TEST_CASE("a worker with a key joins over TCP and strangers disturb nobody") {
    const CampaignScene scene(gated());
    REQUIRE(scene.run("keygen", {"--worker", "w1"}).exit_code == 0);
    const CampaignScene other(gated());  // its keys are good, and of another campaign
    REQUIRE(other.run("keygen", {"--worker", "w1"}).exit_code == 0);
    Child serve = scene.start("serve", {"--listen", "tcp://127.0.0.1:0"});
    Child stranger =
        scene.start_worker(with_keys(scene, (other.state() / "keys/w1.key").string()), "stranger");
    std::vector<std::string> misled = with_keys(scene, (scene.state() / "keys/w1.key").string());
    *std::ranges::find(misled, (scene.state() / "keys/coordinator.pub").string()) =
        other.state() / "keys/coordinator.pub";
    Child wrong = scene.start_worker(misled, "misled");
    // Each knocks again and again, and is told of once a minute.
    const std::string no_key = "refused a connection: peer at 127.0.0.1: key ";
    const std::string other_key =
        "refused a connection: 127.0.0.1: handshake failed: it has another";
    for (const std::string& refusal : {no_key, other_key})
      REQUIRE_MESSAGE(eventually([&] { return contains(scene.said(), refusal); }), scene.said());
    Child worker =
        scene.start_worker(with_keys(scene, (scene.state() / "keys/w1.key").string()), "w1");
    REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(1); }), scene.said("w1"));
    send_all_kinds_of_garbage(port_of(scene));
    CHECK(serve.running());
    scene.open_gate();
    CHECK_MESSAGE(serve.wait(180s) == 0, scene.said());
    CHECK(worker.wait(180s) == 0);
    CHECK(scene.sql("SELECT name FROM workers") == Json::array({{{"name", "w1"}}}));
    stranger.stop(5s);
    wrong.stop(5s);
    const std::string said = scene.said();
    for (const std::string& refusal : {no_key, other_key})
      CHECK_MESSAGE(said.find(refusal) == said.rfind(refusal), said);
    CHECK_FALSE(contains(said, "refused: tcp://"));
    check_books(scene, {.runs = 4});
    scene.require_nothing_left();
  }

  TEST_CASE("a key speaks for exactly the name it is registered under") {
    const CampaignScene scene(gated());
    REQUIRE(
        scene.run("keygen", {"--worker", "w1", "--worker", "w2", "--worker", "w1-a"}).exit_code ==
        0);
    Child serve = scene.start("serve", {"--listen", "tcp://127.0.0.1:0"});
    // Another's name, another's that begins with its own, and one that is nobody's.
    for (const std::string name : {"w2", "w1-a", "w1-more"}) {
      CAPTURE(name);
      Child liar =
          scene.start_worker(with_keys(scene, (scene.state() / "keys/w1.key").string()), name);
      CHECK_MESSAGE(liar.wait(180s) == 2, scene.said(name));
      CHECK(contains(scene.said(name), "its key is registered as w1"));
    }
    CHECK(serve.running());
    CHECK(scene.sql("SELECT name FROM workers").empty());
  }

  TEST_CASE("a name that is none is refused, and never printed as it is") {
    const CampaignScene scene(gated());
    Child serve = scene.start("serve", {"--listen", "tcp://127.0.0.1:0", "--insecure-loopback"});
    RawNetwork network;
    for (const std::string name : {"w\xe2\x80\xae"
                                   "1",
                                   "two words", "../w1", ".w1", "-w1", "_w1", "w1/a", "\xc3\xa4"}) {
      CAPTURE(name);
      RawWorker liar(network, endpoint_of(scene));
      REQUIRE(network.until([&] { return liar.connected; }));
      wire::Sync sync = RawWorker::sync(name);
      sync.slots = 1;
      REQUIRE(liar.say(sync));
      REQUIRE(network.until([&] { return !liar.refusals.empty() || !liar.replies.empty(); }));
      REQUIRE(liar.refusals.size() == 1);
      CHECK_MESSAGE(contains(liar.refusals[0], "a worker's name is"), liar.refusals[0]);
    }
    RawWorker fine(network, endpoint_of(scene));
    REQUIRE(network.until([&] { return fine.connected; }));
    wire::Sync sync = RawWorker::sync("0.W_1-a");
    sync.slots = 1;
    REQUIRE(fine.say(sync));
    REQUIRE(network.until([&] { return !fine.assigned.empty(); }));
    REQUIRE(eventually([&] { return contains(scene.run("status").out, "0.W_1-a"); }));
    CHECK_FALSE(contains(scene.run("status").out, "\xe2\x80\xae"));
    CHECK_FALSE(contains(scene.run("status", {"--json"}).out, "\xe2\x80\xae"));
    CHECK_FALSE(contains(scene.said(), "\xe2\x80\xae"));
    CHECK(scene.sql("SELECT name FROM workers") == Json::array({{{"name", "0.W_1-a"}}}));
    CHECK(serve.running());
  }

  TEST_CASE("keygen makes keys for names only, and nothing at all beside a wrong one") {
    const CampaignScene scene(gated());
    for (const std::string name : {"../w1", "two words", "-w1", ".w1",
                                   "w\xe2\x80\xae"
                                   "1"}) {
      CAPTURE(name);
      const CommandOutcome wrong = scene.run("keygen", {"--worker", "good", "--worker=" + name});
      CHECK(wrong.exit_code == 2);
      CHECK_MESSAGE(contains(wrong.err, "is not a worker's name"), wrong.err);
      CHECK_FALSE(contains(wrong.err, "\xe2\x80\xae"));
      CHECK_FALSE(fs::exists(scene.state() / "keys/good.key"));
      CHECK_FALSE(fs::exists(scene.state() / "keys/workers.allow"));
    }
    CHECK_FALSE(fs::exists(scene.state() / "w1.key"));
    REQUIRE(scene.run("keygen", {"--worker", "w1"}).exit_code == 0);
    const std::string list = scene.read(scene.state() / "keys/workers.allow");
    fs::remove(scene.state() / "keys/w1.key");  // moved to its machine
    const CommandOutcome twice = scene.run("keygen", {"--worker", "w2", "--worker", "w1"});
    CHECK(twice.exit_code == 2);
    CHECK_MESSAGE(contains(twice.err, "`w1` has a key already"), twice.err);
    CHECK(scene.read(scene.state() / "keys/workers.allow") == list);
    CHECK_FALSE(fs::exists(scene.state() / "keys/w2.key"));
  }

  TEST_CASE("plain TCP is for this machine and has to be asked for") {
    const CampaignScene scene(gated());
    const CommandOutcome bare = scene.run("serve", {"--listen", "tcp://127.0.0.1:0"});
    CHECK(bare.exit_code == 2);
    CHECK_MESSAGE(contains(bare.err, "proctor keygen"), bare.err);
    CHECK_FALSE(fs::exists(scene.state() / "journal.sqlite"));
    const CommandOutcome open =
        scene.run("serve", {"--listen", "tcp://0.0.0.0:0", "--insecure-loopback"});
    CHECK_MESSAGE(open.exit_code == 2, open.err);
    CommandSpec spec;
    spec.argv = {worker_program().string(), "--connect", "tcp://127.0.0.1:9", "--root",
                 (scene.temp() / "root").string()};
    const CommandOutcome worker = must(run_command(spec));
    CHECK_MESSAGE(worker.exit_code == 2, worker.err);
  }

  TEST_CASE("another campaign at a worker's address, and its own at another one") {
    const CampaignScene own(gated_shape(4)), other(gated_shape(4));
    const auto plain = [](std::vector<std::string> args) {
      args.emplace_back("--insecure-loopback");
      return args;
    };
    Child serve = own.start("serve", plain({"--listen", "tcp://127.0.0.1:0"}));
    const std::string address = endpoint_of(own);
    Child worker = own.start_worker(plain({"--connect", address, "--slots", "2"}), "w1");
    REQUIRE_MESSAGE(eventually([&] { return own.agents_run(2); }), own.said("w1"));
    serve.signal(SIGKILL);
    serve.wait(180s);
    // Now the worker has seen an epoch that the other campaign has yet to reach.
    serve = own.start("serve", plain({"--resume", "--listen", address}), "resumed");
    REQUIRE_MESSAGE(eventually([&] { return contains(own.said("resumed"), "2 running"); }),
                    own.said("resumed"));
    serve.signal(SIGKILL);
    serve.wait(180s);

    // Attempts' numbers are the same there.
    Child stranger = other.start("serve", plain({"--listen", address}));
    REQUIRE_MESSAGE(eventually([&] { return served(own.said("w1")) == 2; }), own.said("w1"));
    own.open_gate();
    other.open_gate();
    CHECK_MESSAGE(stranger.wait(300s) == 0, other.said());
    CHECK(worker.wait(180s) == 0);  // drained, for that campaign is done
    check_books(other, {.runs = 4});

    serve = own.start("serve", plain({"--resume", "--listen", "tcp://127.0.0.1:0"}), "elsewhere");
    worker = own.start_worker(plain({"--connect", endpoint_of(own, "elsewhere")}), "w1");
    CHECK_MESSAGE(serve.wait(300s) == 0, own.said("elsewhere"));
    CHECK(worker.wait(180s) == 0);
    check_books(own, {.runs = 4});
    CHECK(own.number("SELECT count(*) FROM attempts") == 4);  // nothing was done twice
    own.require_nothing_left();
    other.require_nothing_left();
  }

  TEST_CASE("a worker of before the rules of a verdict serves campaigns that are as old") {
    constexpr std::uint32_t kWithoutRules = 12;
    for (const bool older : {false, true}) {
      CAPTURE(older);
      const CampaignScene scene(gated());
      REQUIRE(scene.run("plan", {"--freeze"}).exit_code == 0);
      const fs::path file = scene.folder() / "registration.json";
      Registration registered = must(parse_registration(scene.read(file)));
      if (older) registered.rubric.reset();
      scene.write(file, to_json(registered));
      Child serve = scene.start("serve", {"--listen", "tcp://127.0.0.1:0", "--insecure-loopback"});
      RawNetwork network;
      RawWorker worker(network, endpoint_of(scene));
      REQUIRE(network.until([&] { return worker.connected; }));
      REQUIRE(worker.say(RawWorker::sync("w1"), kWithoutRules));
      REQUIRE(network.until([&] { return !worker.replies.empty() || !worker.refusals.empty(); }));
      CHECK(worker.refusals.empty() == older);
      if (!older) CHECK(worker.refusals[0] == wire::wrong_version(kWithoutRules, 13).reason);
      RawWorker current(network, endpoint_of(scene));
      REQUIRE(network.until([&] { return current.connected; }));
      REQUIRE(current.say(RawWorker::sync("w2")));
      REQUIRE(network.until([&] { return !current.replies.empty(); }));
      CHECK(serve.running());
    }
  }

  TEST_CASE("plain TCP on loopback serves and bears garbage and a second worker of one name") {
    const CampaignScene scene(gated());
    Child serve = scene.start("serve", {"--listen", "tcp://127.0.0.1:0", "--insecure-loopback"});
    const std::vector<std::string> args = {"--connect", endpoint_of(scene), "--insecure-loopback"};
    Child worker = scene.start_worker(args, "w1");
    REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(1); }), scene.said("w1"));
    send_all_kinds_of_garbage(port_of(scene));
    std::vector<std::string> elsewhere = args;
    elsewhere.insert(elsewhere.end(), {"--root", (scene.temp() / "roots/second").string()});
    CommandSpec second;
    second.argv = {worker_program().string(), "--name", "w1"};
    second.argv.insert(second.argv.end(), elsewhere.begin(), elsewhere.end());
    second.timeout = 180s;
    const CommandOutcome refused = must(run_command(second));
    CHECK_MESSAGE(refused.exit_code == 2, refused.err);
    CHECK_MESSAGE(contains(refused.err, "a worker of that name is connected"), refused.err);
    second.argv = {worker_program().string(), "--name", "w1", "--root",
                   (scene.temp() / "roots/w1").string()};
    second.argv.insert(second.argv.end(), args.begin(), args.end());
    const CommandOutcome same_folder = must(run_command(second));
    CHECK_MESSAGE(same_folder.exit_code == 4, same_folder.err);
    CHECK(scene.agents_run(1));
    scene.open_gate();
    CHECK_MESSAGE(serve.wait(180s) == 0, scene.said());
    CHECK(worker.wait(180s) == 0);
    check_books(scene, {.runs = 4});
    scene.require_nothing_left();
  }
}
