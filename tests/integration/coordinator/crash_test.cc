// Coordinators and workers that are killed or interrupted: what is left goes on and adds up.
#include <csignal>

#include "tests/support/books.h"
#include "tests/support/leftovers.h"

using namespace proctor;
using namespace proctor::testing;
using namespace std::chrono_literals;

namespace {

CampaignShape gated(int replicates) {
  CampaignShape shape;
  shape.methods = {gated_method("gated"), "noop"};
  shape.replicates = replicates;
  return shape;
}

void kill_now(Child& child) {
  child.signal(SIGKILL);
  REQUIRE(child.wait(180s) == 128 + SIGKILL);
}

// The process of a worker of this campaign; -1 while there is none.
pid_t worker_process(const CampaignScene& scene, const std::string& name) {
  for (const pid_t pid : processes_of(scene.temp())) {
    const Result<std::string> line =
        read_file("/proc/" + std::to_string(pid) + "/cmdline", std::size_t{1} << 20);
    if (line.ok() && contains(*line, "proctor-worker") &&
        contains(*line, std::string("--name") + '\0' + name + '\0'))
      return pid;
  }
  return -1;
}

void run_refuses_and_names_resume(const CampaignScene& scene) {
  const CommandOutcome again = scene.run("run");
  CHECK(again.exit_code == 2);
  CHECK_MESSAGE(contains(again.err, "proctor resume " + scene.folder().string()), again.err);
}

void resumes_to_the_end(const CampaignScene& scene, std::int64_t runs, int code = 0) {
  const CommandOutcome resumed = scene.run("resume");
  CHECK_MESSAGE(resumed.exit_code == code, resumed.err);
  check_books(scene, {.runs = runs});
  scene.require_nothing_left();
}

}  // namespace

TEST_SUITE("coordinator") {
  TEST_CASE("killed before its first grant a campaign is resumed from nothing") {
    const CampaignScene scene(gated(1));
    Child run = scene.start("run", {"--workers", "0"});
    REQUIRE_MESSAGE(eventually([&] { return !scene.status().is_null(); }), scene.said());
    kill_now(run);
    CHECK(scene.granted() == 0);
    scene.open_gate();
    resumes_to_the_end(scene, 2);
  }

  TEST_CASE("killed while runs are out their workers keep the results and nothing is repeated") {
    const CampaignScene scene(gated(2));
    Child run = scene.start("run");
    REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(1); }), scene.said());
    kill_now(run);
    run_refuses_and_names_resume(scene);
    CHECK(scene.agents_run(1));
    scene.open_gate();
    resumes_to_the_end(scene, 4);
    CHECK(scene.number("SELECT count(*) FROM epochs") == 2);
  }

  TEST_CASE("killed between two runs it loses nothing and repeats nothing") {
    CampaignShape shape;
    shape.methods = {"noop"};
    shape.replicates = 8;
    const CampaignScene scene(shape);
    for (std::int64_t ended = 2; ended <= 6; ended += 2) {  // three times
      CAPTURE(ended);
      Child run = scene.start(ended == 2 ? "run" : "resume");
      REQUIRE_MESSAGE(eventually([&] { return ended <= scene.ended(); }), scene.said());
      kill_now(run);
    }
    resumes_to_the_end(scene, 8);
  }

  TEST_CASE("a worker killed in a run is replaced and the run has another attempt") {
    CampaignShape shape = gated(1);
    shape.workers = 1;
    const CampaignScene scene(shape);
    Child run = scene.start("run");
    REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(1); }), scene.said());
    const pid_t worker = worker_process(scene, "local-1");
    REQUIRE(0 < worker);
    REQUIRE(::kill(worker, SIGKILL) == 0);
    scene.open_gate();
    CHECK_MESSAGE(run.wait(180s) == 0, scene.said());
    // Its next life said what it had been running; unless that had no book yet.
    CHECK(scene.number(
              "SELECT count(*) FROM attempts WHERE state = 'lost' OR infrastructure = 1") == 1);
    check_books(scene, {.runs = 2, .attempts = Expected::Attempts::kAny});
    scene.require_nothing_left();
  }

  TEST_CASE("interrupted once it finishes what runs and starts nothing") {
    const CampaignScene scene(gated(3));
    Child run = scene.start("run");
    REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(1); }), scene.said());
    run.signal(SIGINT);
    REQUIRE_MESSAGE(eventually([&] { return scene.status()["state"] == "draining"; }),
                    scene.said());
    const std::int64_t begun = scene.number("SELECT count(*) FROM attempts");
    scene.open_gate();
    CHECK_MESSAGE(run.wait(180s) == 1, scene.said());
    CHECK(contains(scene.said(), "proctor resume"));
    CHECK(scene.number("SELECT count(*) FROM attempts") == begun);
    CHECK(0 < scene.ended());
    CHECK(scene.ended() < 6);
    CHECK(scene.number("SELECT count(*) FROM notes WHERE kind = 'drain'") == 1);
    scene.require_nothing_left();
    run_refuses_and_names_resume(scene);
    resumes_to_the_end(scene, 6);
  }

  TEST_CASE("interrupted twice it cancels what runs and can be resumed") {
    const CampaignScene scene(gated(2));
    Child run = scene.start("run");
    REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(1); }), scene.said());
    run.signal(SIGINT);
    REQUIRE_MESSAGE(eventually([&] { return scene.status()["state"] == "draining"; }),
                    scene.said());
    run.signal(SIGINT);
    CHECK_MESSAGE(run.wait(180s) == 1, scene.said());
    CHECK(contains(scene.said(), "proctor resume"));
    scene.require_nothing_left();
    scene.open_gate();
    const CommandOutcome resumed = scene.run("resume");
    CHECK_MESSAGE(resumed.exit_code == 0, resumed.err);
    check_books(scene, {.runs = 4, .attempts = Expected::Attempts::kAny});
  }

  TEST_CASE("an impatient end waits for no silent worker, whose run is gone on with") {
    const CampaignScene scene(gated_shape(1));
    const std::vector<std::string> here{"--slots", "1", "--connect",
                                        "ipc://" + (scene.state() / "coordinator.sock").string()};
    const auto interrupt = [&](Child& serve, const std::string& name, const char* until) {
      serve.signal(SIGINT);
      REQUIRE_MESSAGE(eventually([&] { return contains(scene.said(name), until); }),
                      scene.said(name));
    };
    Child first = scene.start("serve", {}, "first");
    Child worker = scene.start_worker(here, "w");
    REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(1); }), scene.said("w"));
    kill_now(worker);
    REQUIRE_MESSAGE(eventually([&] {
                      const Json status = scene.status();
                      return !status.is_null() && !status["workers"].empty() &&
                             status["workers"][0]["state"] == "suspect";
                    }),
                    scene.said("first"));
    interrupt(first, "first", "stopping: ");
    first.signal(SIGINT);
    CHECK_MESSAGE(first.wait(60s) == 1, scene.said("first"));
    CHECK_MESSAGE(contains(scene.said("first"), "ending without add/gated/r1 on w: "),
                  scene.said("first"));
    CHECK(scene.granted() == 1);
    // Its worker may yet come, and this one has waited for it for no longer than a breath.
    Child second = scene.start("serve", {"--resume"}, "second");
    REQUIRE_MESSAGE(eventually([&] { return contains(scene.said("second"), "listening on "); }),
                    scene.said("second"));
    interrupt(second, "second", "stopping: ");
    interrupt(second, "second", "cancelling what runs");
    interrupt(second, "second", "interrupted a third time");
    CHECK_MESSAGE(second.wait(60s) == 1, scene.said("second"));
    CHECK(scene.granted() == 1);
    scene.open_gate();
    Child last = scene.start_worker(here, "w");
    Child third = scene.start("serve", {"--resume"}, "third");
    CHECK_MESSAGE(third.wait(180s) == 0, (scene.said("third") + scene.said("w")));
    CHECK(last.wait(60s) == 0);
    check_books(scene, {.runs = 1, .attempts = Expected::Attempts::kAny});
  }

  TEST_CASE("a second run beside a running one is refused and names the first") {
    const CampaignScene scene(gated(1));
    Child run = scene.start("run");
    REQUIRE_MESSAGE(eventually([&] { return scene.agents_run(1); }), scene.said());
    for (const char* command : {"run", "resume", "serve"}) {
      CAPTURE(command);
      const CommandOutcome second = scene.run(command);
      CHECK(second.exit_code == 2);
      CHECK_MESSAGE(contains(second.err, std::to_string(run.pid())), second.err);
    }
    CHECK(scene.agents_run(1));
    scene.open_gate();
    CHECK_MESSAGE(run.wait(180s) == 0, scene.said());
    check_books(scene, {.runs = 2});
    scene.require_nothing_left();
  }

  TEST_CASE("status tells that a coordinator is gone and resume refuses what never ran") {
    const CampaignScene scene(gated(1));
    CHECK(scene.run("status").exit_code == 2);
    const CommandOutcome early = scene.run("resume");
    CHECK(early.exit_code == 2);
    CHECK_MESSAGE(contains(early.err, "proctor run"), early.err);
    Child run = scene.start("run", {"--workers", "0"});
    REQUIRE_MESSAGE(eventually([&] { return !scene.status().is_null(); }), scene.said());
    CHECK(contains(scene.run("status").out, "running"));
    kill_now(run);
    CHECK(contains(scene.run("status").out, "interrupted"));
  }
}
