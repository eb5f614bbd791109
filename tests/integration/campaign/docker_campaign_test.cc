// A whole campaign in containers of a real Docker Engine.
#include <array>

#include "tests/integration/sandbox/docker_fixture.h"
#include "tests/support/books.h"
#include "tests/support/leftovers.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

bool engine_answers() {
  if (docker_call("GET", "/version").ok()) return true;
  MESSAGE("not run: no Docker Engine answers at " << docker_socket());
  return false;
}

// Of a campaign's own workers, which are local-1, local-2; other tests that run beside us have
// other owners.
std::size_t of_campaigns(const Json& objects) {
  std::size_t count = 0;
  if (objects.is_null()) return 0;
  for (const Json& object : objects)
    count += object.at("Labels").value("proctor.owner", "").starts_with("local-");
  return count;
}

std::array<std::size_t, 2> ours() {
  const std::string filter = "filters=%7B%22label%22%3A%5B%22proctor.owner%22%5D%7D";
  const auto list = [&](const std::string& target) {
    return must(parse_json(must(docker_call("GET", target + filter))));
  };
  return {of_campaigns(list("/containers/json?all=1&")),
          of_campaigns(list("/volumes?").at("Volumes"))};
}

}  // namespace

TEST_SUITE("docker campaign") {
  TEST_CASE("a campaign runs in containers to the same verdicts and leaves nothing") {
    if (!engine_answers()) return;
    const std::string image = must(test_image());
    CampaignShape shape;
    shape.methods = {"noop", "reference", solving_method("solver"),
                     "{name: breaker, kind: command, command: exit 3}"};
    shape.replicates = 1;
    const CampaignScene scene(shape);
    scene.edit(scene.contract(), "environment:\n",
               "environment:\n  sandbox: docker\n  image: \"" + image + "\"\n");
    const auto before = ours();
    const CommandOutcome ran = scene.run("run", {}, std::chrono::seconds(110));
    REQUIRE_MESSAGE(ran.exit_code == 0, ran.err << ran.out);
    CHECK(contains(ran.out, "4 runs planned, 4 ended, 0 parked, 0 open"));
    check_books(scene, {.runs = 4});
    const Json report = must(parse_json(scene.run("report", {"--json"}).out));
    for (const Json& run : report["runs"]) {
      CAPTURE(run["run"]);
      const bool solves = run["method"] == "reference" || run["method"] == "solver";
      CHECK(run["outcome"] == (solves ? "success" : "failure"));
    }
    CHECK(scene.run("verify").exit_code == 0);
    CHECK(ours() == before);
    scene.require_nothing_left();
  }
}
