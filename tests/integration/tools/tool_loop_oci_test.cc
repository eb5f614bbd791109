// The reference agent in an image without an engine.
#include <unistd.h>

#include "common/images/image_store.h"
#include "tests/integration/tools/loop_in_image.h"
#include "tests/support/test_image.h"
#include "worker/sandbox/runtime_files.h"

using namespace proctor;
using namespace proctor::testing;

TEST_SUITE("tool loop worker") {
  TEST_CASE("a task in an image is solved by tools without an engine") {
    if (::geteuid() != 0 || find_on_path("runc").empty()) {
      MESSAGE("not run: OCI sandboxes need root and runc");
      return;
    }
    ImageLoopScene scene;
    const TestImage image = write_test_image(scene.temp.path(), "tools:1").value();
    const fs::path store = scene.temp.path() / "images";
    REQUIRE(ImageStore::open(store).value().import_archive(image.archive).ok());
    scene.options = {"--image-store", store.string()};
    scene.is_solved_in(image.id, "oci");
    ImageAgentScene agent;
    agent.options = scene.options;
    agent.is_solved_in(image.id);
  }
}
