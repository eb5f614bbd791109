// Local workers after the campaign: who is waited for is told, and nobody is waited for long.
#include <csignal>

#include "tests/support/books.h"

using namespace proctor;
using namespace proctor::testing;
using namespace std::chrono_literals;

namespace {

// The local worker that has nothing to do.
std::optional<pid_t> idle_worker(const CampaignScene& scene) {
  const Json status = scene.status();
  if (status.is_null()) return std::nullopt;
  for (const Json& w : status["workers"]) {
    if (w["held"] != 0 || w["state"] != "ready") continue;
    for (const pid_t pid : scene.workers()) {
      const auto line =
          read_file("/proc/" + std::to_string(pid) + "/cmdline", std::size_t{1} << 20);
      if (line.ok() && contains(*line, w["name"].get<std::string>())) return pid;
    }
  }
  return std::nullopt;
}

// As on a host that can give no workspace a user of its own, with nobody who insists.
struct OneUser {
  OneUser() {
    ::setenv("PROCTOR_ONE_USER", "1", 1);
    ::unsetenv("PROCTOR_SHARE_USER");
  }
  ~OneUser() {
    ::unsetenv("PROCTOR_ONE_USER");
    ::setenv("PROCTOR_SHARE_USER", "1", 1);  // tests/main.cc
  }
  OneUser(const OneUser&) = delete;
  OneUser& operator=(const OneUser&) = delete;
};

}  // namespace

TEST_SUITE("coordinator") {
  TEST_CASE("without any worker nothing is foretold, and who is waited for is told once") {
    const CampaignScene scene;
    Child run = scene.start("run", {"--workers", "0"});
    REQUIRE_MESSAGE(eventually(
                        [&] {
                          const Json status = scene.status();
                          return !status.is_null() &&
                                 contains(status["state"].get<std::string>(), "none is here");
                        },
                        180s),
                    scene.said());
    const std::string status = scene.run("status").out;
    CHECK_MESSAGE(contains(status, "ETA unknown: it waits for a first worker"), status);
    run.signal(SIGINT);
    CHECK_MESSAGE(run.wait(180s) == 1, scene.said());
  }

  TEST_CASE("where sandboxes are one user one run at a time is made, and more is refused") {
    const CampaignScene scene;  // its file wants two workers of one slot
    const OneUser here;
    for (const auto& [workers, slots] : {std::pair("2", "1"), {"1", "2"}}) {
      const CommandOutcome refused = scene.run("run", {"--workers", workers, "--slots", slots});
      CHECK(refused.exit_code == 2);
      CHECK_MESSAGE(contains(refused.err, "PROCTOR_SHARE_USER=1"), refused.err);
    }
    CHECK_FALSE(fs::exists(scene.state() / "journal.sqlite"));
    // One whose coordinator does not know that says it itself.
    Child beside = scene.start_worker(
        {"--connect", "ipc:///nowhere", "--slots", "1", "--beside", "1"}, "beside");
    CHECK(beside.wait(180s) == 2);
    CHECK_MESSAGE(contains(scene.said("beside"), "--slots 1 --beside 1: "), scene.said("beside"));
    const CommandOutcome ran = scene.run("run");
    CHECK_MESSAGE(ran.exit_code == 0, ran.err);
    CHECK_MESSAGE(contains(ran.err, "note: --workers 1 --slots 1: "), ran.err);
    CHECK(fs::exists(scene.state() / "log/local-1.log"));
    CHECK_FALSE(fs::exists(scene.state() / "log/local-2.log"));
  }

  TEST_CASE("a run whose workers all end shows what they said last, and no empty report") {
    CampaignShape shape;
    shape.workers = 1;
    const CampaignScene scene(shape);
    REQUIRE(make_private_dirs(scene.state()).ok());
    scene.write(scene.state() / "workers", "no folder");
    const CommandOutcome ran = scene.run("run");
    CHECK(ran.exit_code == 4);
    CHECK(ran.out == "");
    const std::string cause = "  proctor-worker: make folder ";
    const std::size_t at = ran.err.find(cause);
    REQUIRE_MESSAGE(at != std::string::npos, ran.err);
    CHECK(ran.err.find('\n', at) + 1 == ran.err.size());  // once, and last
  }

  TEST_CASE("a resume without workers ends where money is all that its runs wait for") {
    CampaignShape shape;
    shape.global = shape.task = "0.50";
    shape.workers = 1;
    const CampaignScene scene(shape);
    REQUIRE(scene.run("run").exit_code == 3);
    const CommandOutcome resumed = scene.run("resume", {"--workers", "0"}, 60s);
    CHECK_MESSAGE(resumed.exit_code == 3, resumed.err);
    CHECK_MESSAGE(contains(resumed.err, "3 runs are parked: an envelope ran out"), resumed.err);
    CHECK(scene.number("SELECT count(*) FROM attempts") == 2);  // none is asked for again
  }

  TEST_CASE("a local worker that hangs at the end is told of and ended soon") {
    CampaignShape shape = gated_shape(1);
    shape.workers = 2;
    const CampaignScene scene(shape);
    Child run = scene.start("run");
    std::optional<pid_t> idle;
    REQUIRE_MESSAGE(eventually([&] {
                      idle = scene.agents_run(1) ? idle_worker(scene) : std::nullopt;
                      return idle.has_value();
                    }),
                    scene.said());
    REQUIRE(::kill(*idle, SIGSTOP) == 0);
    scene.open_gate();
    CHECK_MESSAGE(run.wait(300s) == 0, scene.said());
    const std::string said = scene.said();
    CHECK_MESSAGE(contains(said, "the campaign's loop has ended; waiting since 20"), said);
    CHECK_MESSAGE(contains(said, "for local workers local-"), said);
    CHECK_MESSAGE(contains(said, "killed now; their logs are in"), said);
    scene.require_nothing_left();
  }
}
