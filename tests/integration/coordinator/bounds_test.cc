// What a coordinator takes of peers, whatever they send (docs/protocol.md, "Bounds").
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "common/base/limits.h"
#include "common/base/owned.h"
#include "coordinator/core/roster.h"
#include "tests/integration/coordinator/raw_worker.h"
#include "tests/support/books.h"

using namespace proctor;
using namespace proctor::testing;
using namespace std::chrono_literals;

namespace {

// ThreadSanitizer keeps four bytes of its own for each that is written.
#if defined(__SANITIZE_THREAD__)
constexpr std::int64_t kShadow = 5;
#else
constexpr std::int64_t kShadow = 1;
#endif

struct Serving {
  Serving() {
    constexpr std::string_view kMark = "listening on ";
    REQUIRE_MESSAGE(eventually([&] { return contains(scene.said(), std::string(kMark)); }),
                    scene.said());
    const std::string said = scene.said();
    const std::size_t at = said.find(kMark) + kMark.size();
    endpoint = said.substr(at, said.find_first_of(" \n,", at) - at);
  }
  // In MiB; of memory that is in use.
  std::int64_t resident() const {
    const std::string status = scene.read("/proc/" + std::to_string(serve.pid()) + "/status");
    const std::size_t at = status.find("VmRSS:");
    REQUIRE(at != std::string::npos);
    return std::atoll(status.c_str() + at + 6) / 1024;
  }
  // It still serves: the campaign ends well with a worker of good manners.
  void ends_well(Expected::Attempts attempts = Expected::Attempts::kOneEach) {
    Child worker =
        scene.start_worker({"--connect", endpoint, "--slots", "1", "--insecure-loopback"}, "good");
    scene.open_gate();
    CHECK_MESSAGE(serve.wait(180s) == 0, scene.said());
    CHECK(worker.wait(180s) == 0);
    check_books(scene, {.runs = 1, .attempts = attempts});
  }
  CampaignScene scene{gated_shape(1)};
  Child serve = scene.start("serve", {"--listen", "tcp://127.0.0.1:0", "--insecure-loopback"});
  std::string endpoint;
};

}  // namespace

TEST_SUITE("coordinator") {
  TEST_CASE("a bundle that is asked for again and again is sent once") {
    Serving at;
    RawNetwork network;
    RawWorker worker(network, at.endpoint);
    REQUIRE(network.until([&] { return worker.connected; }));
    wire::Sync ready = RawWorker::sync("greedy");
    ready.slots = 1;
    REQUIRE(worker.say(ready));
    REQUIRE(network.until([&] { return worker.assigned.size() == 1; }));
    const std::size_t replies = worker.replies.size();
    const wire::Want want{{worker.assigned[0].settings}};
    constexpr int kTimes = 30;  // within what it may say in a second
    for (int i = 0; i < kTimes; ++i) REQUIRE(worker.say(want));
    REQUIRE(worker.say(ready));  // read after all of them
    REQUIRE(network.until([&] { return worker.replies.size() == replies + 1; }));
    CHECK(worker.bundles.size() == 1);
    CHECK(at.serve.running());
  }

  TEST_CASE("a life that has ended behind an open link leaves its seat, one that speaks does not") {
    for (const bool speaks : {false, true}) {
      CAPTURE(speaks);
      Serving at;
      RawNetwork network;
      RawWorker first(network, at.endpoint), second(network, at.endpoint);
      REQUIRE(network.until([&] { return first.connected && second.connected; }));
      const wire::Sync earlier = RawWorker::sync("twice");
      wire::Sync later = earlier;
      later.boot = BootId(2);
      REQUIRE(first.say(earlier));
      REQUIRE(network.until([&] { return first.replies.size() == 1; }));
      // As a worker does: again and again until it is answered.
      auto next = std::chrono::steady_clock::now();
      REQUIRE(network.until([&] {
        if (next <= std::chrono::steady_clock::now()) {
          next += 500ms;
          REQUIRE(second.say(later));
          if (speaks) REQUIRE(first.say(earlier));
        }
        return !second.replies.empty() || !second.refusals.empty();
      }));
      CHECK(second.replies.size() == (speaks ? 0 : 1));
      CHECK(second.refusals.size() == (speaks ? 1 : 0));
    }
  }

  TEST_CASE("a worker that comes and goes without end writes no journal without end") {
    Serving at;
    RawNetwork network;
    RawWorker worker(network, at.endpoint);
    REQUIRE(network.until([&] { return worker.connected; }));
    constexpr std::size_t kHeard = 120;  // in a minute
    wire::Sync again = RawWorker::sync("restless");
    std::uint64_t life = 0;
    const auto begin = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() < begin + 9s) {
      again.boot = BootId(++life);
      REQUIRE(worker.say(again));
      REQUIRE(worker.say(wire::Leave{again.worker, again.boot, {}}));
      network.io.restart();
      network.io.run_for(10ms);
    }
    CHECK(kHeard / 2 < worker.replies.size());  // or else the test has shown nothing
    const Json rows = at.scene.sql("SELECT count(*) AS n FROM notes WHERE kind LIKE 'worker_%'");
    // They came and left; the clock of minutes is the coordinator's own.
    CHECK(rows[0]["n"].get<std::size_t>() <= 2 * 2 * kHeard);
    CHECK(worker.replies.size() <= 2 * kHeard);
    CHECK(at.serve.running());
    at.ends_well();
  }

  TEST_CASE("pieces that wait for a disk that stands still are dropped, not kept") {
    Serving at;
    RawNetwork network;
    RawWorker worker(network, at.endpoint);
    REQUIRE(network.until([&] { return worker.connected; }));
    wire::Sync ready = RawWorker::sync("flood");
    ready.slots = 1;  // nothing is kept for who has no attempt
    REQUIRE(worker.say(ready));
    REQUIRE(network.until([&] { return worker.replies.size() == 1; }));
    REQUIRE(network.until([&] { return worker.assigned.size() == 1; }));
    // A pipe that nobody reads holds up whoever opens it for writing.
    const fs::path incoming = at.scene.folder() / "runs/.incoming",
                   pipe = incoming / "0.1@flood.part";
    REQUIRE(make_private_dirs(incoming).ok());
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    const std::int64_t before = at.resident();
    constexpr int kPieces = 180;
    constexpr std::size_t kPiece = std::size_t{1} << 20;
    const wire::ArchiveChunk piece{Epoch(1),         AttemptId{RunId(0), AttemptNo(1)}, Digest(), 0,
                                   kPieces * kPiece, std::string(kPiece, 'x')};
    // What waits in sockets is memory too: never more than one flight of it.
    constexpr int kFlight = 20;
    for (std::size_t flown = 1; flown <= kPieces / kFlight; ++flown) {
      for (int sent = 0; sent < kFlight;) {
        sent += worker.say(piece) ? 1 : 0;
        REQUIRE(network.until([] { return true; }));
      }
      REQUIRE(worker.say(ready));  // read after all of them
      REQUIRE(network.until([&] { return worker.replies.size() == 1 + flown; }));
    }
    const std::int64_t grown = at.resident() - before;
    MESSAGE(grown << " MiB for " << kPieces << " pieces of 1 MiB");
    CHECK(grown < 130 * kShadow);  // 65 pieces, a flight, and what malloc keeps of it
    CHECK(worker.chunk_acks.empty());
    // The reader stays until the end: a piece that comes to a pipe without one waits for ever.
    const UniqueFd reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    REQUIRE(reader.valid());
    CHECK(eventually([&] { return contains(at.scene.said(), "archive of attempt 0.1"); }));
    fs::remove(pipe);
    wire::Leave leave;
    leave.worker = WorkerId("flood");
    leave.boot = BootId(1);
    REQUIRE(worker.say(leave));
    REQUIRE(network.until([] { return true; }));
    at.ends_well(Expected::Attempts::kAny);  // its run is another's now
  }

  TEST_CASE("a worker that has seen a later epoch is refused, and ends nothing") {
    Serving at;
    RawNetwork network;
    RawWorker liar(network, at.endpoint);
    REQUIRE(network.until([&] { return liar.connected; }));
    wire::Sync sync = RawWorker::sync("liar");
    sync.epoch_seen = Epoch(1'000);
    REQUIRE(liar.say(sync));
    CHECK(network.until([&] { return !liar.refusals.empty(); }));
    at.ends_well();
  }

  TEST_CASE("nothing is kept of who speaks for an attempt that another has") {
    Serving at;
    Child worker = at.scene.start_worker(
        {"--connect", at.endpoint, "--slots", "1", "--insecure-loopback"}, "honest");
    REQUIRE(eventually([&] { return at.scene.agents_run(1); }));
    RawNetwork network;
    RawWorker liar(network, at.endpoint);
    REQUIRE(network.until([&] { return liar.connected; }));
    REQUIRE(liar.say(RawWorker::sync("liar")));
    const AttemptId others{RunId(0), AttemptNo(1)};
    REQUIRE(liar.say(wire::ArchiveChunk{Epoch(1), others, Digest(), 0, 4, "lies"}));
    wire::ResultMessage result;
    result.epoch = Epoch(1);
    result.attempt = others;
    result.archive = sha256("lies");
    result.archive_bytes = 4;
    REQUIRE(liar.say(result));
    REQUIRE(liar.say(RawWorker::sync("liar")));
    REQUIRE(network.until([&] { return liar.replies.size() == 2; }));
    CHECK(eventually([&] { return contains(at.scene.said(), "which is another worker"); }));
    CHECK(liar.chunk_acks.empty());
    CHECK_FALSE(fs::exists(at.scene.folder() / "runs/.incoming/0.1.part"));
    at.scene.open_gate();
    CHECK_MESSAGE(at.serve.wait(180s) == 0, at.scene.said());
    CHECK(worker.wait(180s) == 0);
    check_books(at.scene, {.runs = 1});
  }

  TEST_CASE("a piece of evidence that is here already is no news to anybody") {
    Serving at;
    RawNetwork network;
    RawWorker worker(network, at.endpoint);
    REQUIRE(network.until([&] { return worker.connected; }));
    wire::Sync ready = RawWorker::sync("twice");
    ready.slots = 1;
    REQUIRE(worker.say(ready));
    REQUIRE(network.until([&] { return worker.assigned.size() == 1; }));
    const wire::Assignment mine = worker.assigned[0].runs[0];
    wire::ResultMessage result;
    result.epoch = Epoch(1);
    result.attempt = mine.attempt;
    result.termination = Termination::kInfrastructure;
    result.infrastructure = true;
    REQUIRE(worker.say(result));
    const wire::ArchiveChunk again{Epoch(1), mine.attempt, Digest(), 0, 4, "late"};
    const auto say_it = [&] {
      const std::size_t replies = worker.replies.size();
      REQUIRE(worker.say(again));
      REQUIRE(worker.say(RawWorker::sync("twice")));  // read after it
      REQUIRE(network.until([&] { return worker.replies.size() == replies + 1; }));
      CHECK(worker.chunk_acks.empty());
    };
    const fs::path kept = at.scene.folder() / "runs" / mine.run_name / "attempt-1";
    REQUIRE(make_private_dirs(kept).ok());
    say_it();
    CHECK_FALSE(contains(at.scene.said(), "which nobody awaits of it"));
    REQUIRE(remove_tree(kept).ok());
    say_it();
    CHECK(eventually([&] { return contains(at.scene.said(), "which nobody awaits of it"); }));
    wire::Leave leave;
    leave.worker = WorkerId("twice");
    leave.boot = BootId(1);
    REQUIRE(worker.say(leave));
    REQUIRE(network.until([] { return true; }));
    at.ends_well(Expected::Attempts::kAny);
  }

  TEST_CASE("no more workers than a coordinator has room for") {
    Serving at;
    RawNetwork network;
    constexpr std::size_t kNames = 32;  // of one connection, within what it may say in a second
    std::vector<std::unique_ptr<RawWorker>> peers;
    rlimit files{};  // a connection of ours is three sockets of ZeroMQ's
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &files) == 0);
    files.rlim_cur = files.rlim_max;
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &files) == 0);
    network.zmq.set(zmq::ctxopt::max_sockets, 4'000);
    for (std::size_t i = 0; i < kRosterMax / kNames; ++i)
      peers.push_back(std::make_unique<RawWorker>(network, at.endpoint));
    REQUIRE(network.until(
        [&] { return std::ranges::all_of(peers, [](const auto& p) { return p->connected; }); }));
    std::size_t named = 0;
    for (const auto& peer : peers)
      for (std::size_t i = 0; i < kNames; ++i)
        REQUIRE(peer->say(RawWorker::sync("w" + std::to_string(named++))));
    CHECK(named == kRosterMax);
    const auto replies = [&] {
      std::size_t n = 0;
      for (const auto& peer : peers) n += peer->replies.size();
      return n;
    };
    REQUIRE_MESSAGE(network.until([&] { return replies() == named; }), replies());
    RawWorker late(network, at.endpoint);
    REQUIRE(network.until([&] { return late.connected; }));
    REQUIRE(late.say(RawWorker::sync("one-more")));
    REQUIRE(network.until([&] { return !late.refusals.empty(); }));
    CHECK_MESSAGE(contains(late.refusals[0], "16384 workers are connected already"),
                  late.refusals[0]);
    REQUIRE(peers[0]->say(RawWorker::sync("w0")));  // who is in stays in
    CHECK(network.until([&] { return replies() == named + 1; }));
    CHECK(at.serve.running());
  }
}
