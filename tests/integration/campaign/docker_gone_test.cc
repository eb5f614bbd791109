// A Docker Engine that is killed while runs are in it: waited for, and nothing is lost.
#include <cstdlib>

#include "common/images/image_store.h"
#include "tests/integration/sandbox/docker_fixture.h"
#include "tests/integration/sandbox/own_engine.h"
#include "tests/support/books.h"
#include "tests/support/leftovers.h"
#include "tests/support/test_image.h"

using namespace proctor;
using namespace proctor::testing;
using namespace std::chrono_literals;

namespace {

// Of attempts: a worker's proof at its start that this kind isolates has one of its own.
std::size_t containers() {
  std::size_t count = 0;
  for (const Json& c : must(parse_json(must(docker_call("GET", "/containers/json")))))
    count += contains(c.dump(), "proof-") ? 0 : 1;
  return count;
}
// A store of images of the test's own that holds one which the campaign does not name.
class OtherImage {
 public:
  OtherImage() : dir_(must(TempDir::create("proctor-other-image"))) {
    const TestImage image = must(write_test_image(dir_.path(), "other:1"));
    const ImageStore store = must(ImageStore::open(dir_.path() / "store"));
    REQUIRE(store.import_archive(image.archive).ok());
    ::setenv(kImageStoreVariable, store.dir().c_str(), 1);
  }
  OtherImage(const OtherImage&) = delete;
  OtherImage& operator=(const OtherImage&) = delete;
  ~OtherImage() { ::unsetenv(kImageStoreVariable); }

 private:
  TempDir dir_;
};

bool nothing_left() {
  const Json all = must(parse_json(must(docker_call("GET", "/containers/json?all=1"))));
  const Json volumes = must(parse_json(must(docker_call("GET", "/volumes")))).at("Volumes");
  return all.empty() && (volumes.is_null() || volumes.empty());
}

}  // namespace

TEST_SUITE("docker campaign") {
  TEST_CASE("an engine that is killed in the middle is waited for and nothing is lost" *
            doctest::test_suite("full")) {
    if (!OwnEngine::possible()) {
      MESSAGE("not run: only root with dockerd can start an engine to kill");
      return;
    }
    OwnEngine engine;
    look_also(left_in_engine);
    const std::string image = must(make_test_image());
    // The host's store holds another image, which runs without an engine: this one does not.
    const OtherImage store;
    CampaignShape shape = gated_shape(3);
    const CampaignScene scene(shape);
    scene.edit(scene.contract(), "environment:\n",
               "environment:\n  sandbox: docker\n  image: \"" + image + "\"\n");
    Child run = scene.start("run");
    REQUIRE_MESSAGE(eventually([] { return containers() == 1; }), scene.said());
    engine.kill();
    REQUIRE(eventually([&] {
      return contains(scene.worker_log("local-1"), "does not offer sandbox:docker any more");
    }));
    CHECK_MESSAGE(run.running(), scene.said());
    CHECK(scene.ended() == 0);
    engine.start();
    REQUIRE(eventually(
        [&] { return contains(scene.worker_log("local-1"), "offers sandbox:docker now"); }));
    scene.open_gate();
    CHECK_MESSAGE(run.wait(180s) == 0, scene.said());
    check_books(scene, {.runs = 3, .attempts = Expected::Attempts::kAny});
    CHECK(scene.number("SELECT count(*) FROM runs WHERE outcome = 'success'") == 3);
    // The one that was under way was spent on it, and no other; what was given back cost nothing.
    CHECK(scene.number("SELECT count(*) FROM attempts WHERE state <> 'voided'") == 4);
    CHECK(scene.run("verify").exit_code == 0);
    CHECK(nothing_left());
    scene.require_nothing_left();
  }
}
