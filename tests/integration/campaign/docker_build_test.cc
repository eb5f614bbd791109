// Campaigns whose image the worker builds from the contract's Dockerfile, by a real Docker Engine.
#include <signal.h>

#include <cstdlib>
#include <set>

#include "common/base/digest.h"
#include "common/images/image_store.h"
#include "tests/integration/sandbox/docker_fixture.h"
#include "tests/support/books.h"
#include "tests/support/leftovers.h"

using namespace proctor;
using namespace proctor::testing;
using namespace std::chrono_literals;

namespace {

bool engine_is_there() {
  if (docker_call("GET", "/version").ok()) return true;
  MESSAGE("not run: no Docker Engine answers at " << docker_socket());
  return false;
}

// A store of the test's own, and what workers built beside it: images and layers, and containers of
// builds under way.
class Built {
 public:
  Built() : dir_(must(TempDir::create("proctor-built"))) {
    ::setenv(kImageStoreVariable, (dir_.path() / "store").c_str(), 1);
    must(make_dirs(dir_.path() / "root"));
    ending_ = "-" + sha256((dir_.path() / "built-images").string()).short_hex();
  }
  Built(const Built&) = delete;
  Built& operator=(const Built&) = delete;
  ~Built() { ::unsetenv(kImageStoreVariable); }
  std::vector<std::string> images() const {
    std::vector<std::string> out;
    for (const Json& i : must(parse_json(must(docker_call("GET", "/images/json?all=1"))))) {
      const Json& labels = i.at("Labels");
      if (labels.is_object() && labels.value("proctor.image", "").ends_with(ending_))
        out.push_back(i.at("Id").get<std::string>());
    }
    return out;
  }
  std::size_t containers() const {
    std::size_t out = 0;
    for (const Json& c : must(parse_json(must(docker_call("GET", "/containers/json?all=1")))))
      if (c.at("Labels").value("proctor.image", "").ends_with(ending_)) ++out;
    return out;
  }
  CommandOutcome gc() const {
    CommandSpec spec;
    spec.argv = {worker_program().string(), "gc", "--root", (dir_.path() / "root").string()};
    return must(run_command(spec));
  }

 private:
  TempDir dir_;
  std::string ending_;
};

// Its tasks' image has a program that the contract brings and one that its build makes.
class BuildScene {
 public:
  explicit BuildScene(const CampaignShape& shape, const std::string& step = "true")
      : scene_(shape), base_(must(test_image())) {
    look_also(left_in_engine);
    for (const std::string& task : shape.tasks) build_for(task, step);
  }
  void build_for(const std::string& task, const std::string& step) const {
    scene_.edit(scene_.contract(task), "environment:\n",
                "environment:\n  image:\n    dockerfile: image-" + task +
                    "/Dockerfile\n    files: [image-" + task +
                    "/bin/brought]\n    arguments: {WORD: hello}\n");
    scene_.edit(scene_.contract(task), "checks:",
                "setup:\n  - brought && cat /made && test ! -e /all/.proctor-dockerfile\nchecks:");
    const fs::path folder = scene_.folder() / "contracts" / ("image-" + task);
    REQUIRE(make_dirs(folder / "bin").ok());
    scene_.write(folder / "bin/brought", "#!/bin/sh\necho brought along\n");
    fs::permissions(folder / "bin/brought", fs::perms(0755));
    scene_.write(folder / "Dockerfile", "FROM " + base_ +
                                            " AS first\nARG WORD\nRUN echo $WORD from the build > "
                                            "/made && " +
                                            step + "\nFROM " + base_ +
                                            "\nCOPY --from=first /made /made\nCOPY . /all\n"
                                            "COPY bin/brought /bin/\n");
  }
  const CampaignScene* operator->() const { return &scene_; }
  const CampaignScene& operator*() const { return scene_; }
  std::string evidence(const std::string& run, const std::string& file) const {
    return scene_.read(scene_.folder() / "runs" / run / "attempt-1" / file);
  }

 private:
  CampaignScene scene_;
  std::string base_;
};

}  // namespace

TEST_SUITE("docker build") {
  TEST_CASE("an image is built once for all runs of a host, and used by all of them") {
    if (!engine_is_there()) return;
    const Built in_engine;
    CampaignShape shape;
    shape.replicates = 3;
    const BuildScene scene(shape);
    const CommandOutcome ran = scene->run("run");
    REQUIRE_MESSAGE(ran.exit_code == 0, ran.err);
    check_books(*scene, {.runs = 6});
    std::set<std::string> ids, inputs;
    std::size_t built = 0;
    for (const std::string method : {"noop", "reference"})
      for (const std::string r : {"r1", "r2", "r3"}) {
        const std::string name = "add/" + method + "/" + r;
        CAPTURE(name);
        const Json environment =
            must(parse_json(scene.evidence(name, "manifest.json"))).at("environment");
        ids.insert(environment.at("image").get<std::string>());
        inputs.insert(environment.at("image_inputs").get<std::string>());
        CHECK(contains(scene.evidence(name, "setup-agent/0.stdout"),
                       "brought along\nhello from the build\n"));
        const std::string trace = scene.evidence(name, "events.jsonl");
        CHECK(contains(trace, "setup.image"));
        if (contains(trace, "\"built\":true")) {
          ++built;
          CHECK(contains(scene.evidence(name, "setup-image/0.stdout"), "Step 1/"));
        }
      }
    CHECK(built == 1);
    REQUIRE(ids.size() == 1);
    CHECK(ids.begin()->starts_with("sha256:"));
    CHECK(inputs.size() == 1);
    CHECK(scene->run("verify").exit_code == 0);
    CHECK(!in_engine.images().empty());
    CHECK(in_engine.containers() == 0);
    // Nobody uses it any more: gc takes it and all of its layers, and nothing of its base.
    const CommandOutcome gc = in_engine.gc();
    CHECK_MESSAGE(contains(gc.out, "removed 1 built images; 0 in use"), gc.out << gc.err);
    CHECK(in_engine.images().empty());
    CHECK(docker_call("GET", "/images/" + must(test_image()) + "/json").ok());
    scene->require_nothing_left();
  }

  TEST_CASE("a build that fails is its task's, which is parked with the end of the build's log") {
    if (!engine_is_there()) return;
    const Built in_engine;
    CampaignShape shape;
    shape.tasks = {"add", "bad"};
    const BuildScene scene(shape);
    scene->edit(scene->folder() / "campaign.yaml", "strata: [language, type]",
                "retries: {backoff: 50ms}\nstrata: [language, type]");
    const fs::path dockerfile = scene->folder() / "contracts/image-bad/Dockerfile";
    scene->edit(dockerfile, "&& true", "&& echo fetching && echo no route to the index && exit 7");
    const CommandOutcome ran = scene->run("run");
    CHECK(ran.exit_code == 1);
    const std::string& said = ran.err;
    CHECK_MESSAGE(contains(said, "4 runs are parked because their task or their method"), said);
    CHECK_MESSAGE(contains(said, "its image cannot be built: "), said);
    CHECK_MESSAGE(contains(said, "no route to the index"), said);
    CHECK_MESSAGE(contains(said, "non-zero code: 7"), said);
    CHECK(scene->number("SELECT count(*) FROM runs WHERE state = 'ended'") == 4);
    CHECK(scene->number("SELECT count(*) FROM notes WHERE kind = 'worker_quarantined'") == 0);
    CHECK(scene->run("verify").exit_code == 0);
    const CommandOutcome logs = scene->run("logs", {"bad/noop/r1", "--phase", "setup"});
    CHECK_MESSAGE(contains(logs.out, "no route to the index"), logs.out << logs.err);
    // Of the failed one no layer is left, and the other's image is whole.
    CHECK(in_engine.containers() == 0);
    const CommandOutcome gc = in_engine.gc();
    CHECK_MESSAGE(contains(gc.out, "removed 1 built images"), gc.out << gc.err);
    CHECK(in_engine.images().empty());
  }

  TEST_CASE("a worker that is killed while it builds leaves nothing, and the next builds") {
    if (!engine_is_there()) return;
    const Built in_engine;
    CampaignShape shape;
    shape.workers = 1;
    shape.replicates = 1;
    const BuildScene scene(shape, "i=0; while test $i -lt 3000000; do i=$((i+1)); done");
    Child run = scene->start("run");
    REQUIRE(eventually([&] { return in_engine.containers() == 1; }));
    const std::vector<pid_t> workers = scene->workers();
    REQUIRE(workers.size() == 1);
    REQUIRE(::kill(workers[0], SIGKILL) == 0);
    CHECK_MESSAGE(run.wait(240s) == 0, scene->said());
    check_books(*scene, {.runs = 2, .attempts = Expected::Attempts::kAny});
    CHECK(scene->number("SELECT count(*) FROM runs WHERE outcome = 'success'") == 1);
    CHECK(eventually([&] { return in_engine.containers() == 0; }));
    CHECK(in_engine.gc().exit_code == 0);
    CHECK(in_engine.images().empty());
    scene->require_nothing_left();
  }

  TEST_CASE("a base that no engine has is named at check, and nothing is pulled") {
    if (!engine_is_there()) return;
    const Built in_engine;
    const BuildScene scene(CampaignShape{});
    const fs::path dockerfile = scene->folder() / "contracts/image-add/Dockerfile";
    scene->write(dockerfile, "FROM sha256:" + std::string(64, '7') + "\n");
    const CommandOutcome check = scene->run("check");
    CHECK_MESSAGE(contains(check.err, "proctor images import FILE --engine"),
                  check.out << check.err);
    scene->write(dockerfile, "FROM debian:12\n");
    const CommandOutcome refused = scene->run("check");
    CHECK(refused.exit_code == 2);
    CHECK_MESSAGE(contains(refused.err, "image-add/Dockerfile, line 1: FROM debian:12"),
                  refused.err);
  }
}
