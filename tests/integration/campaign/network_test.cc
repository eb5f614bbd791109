// Allow-lists through a whole campaign, and what a killed worker leaves of them.
#include <csignal>

#include "tests/integration/campaign/network_scene.h"

using namespace proctor;
using namespace proctor::testing;

TEST_SUITE("network campaign") {
  TEST_CASE("each phase reaches its own places and the trace says what was asked for") {
    NetworkScene("").run_and_check();
  }

  TEST_CASE("a worker killed while its agent is in the network leaves nothing of it") {
    const LocalServer server;
    CampaignShape shape;
    shape.methods = {
        solving_method("gated", "/opt/gate/net_probe tunnel " + server.at() +
                                    " raw GET & until [ -e /opt/gate/open ]; do sleep 0.05; "
                                    "done; ")};
    shape.replicates = 1;
    shape.workers = 1;
    const CampaignScene scene(shape);
    fs::copy_file(PROCTOR_NET_PROBE, scene.temp() / "gate/net_probe");
    scene.edit(scene.contract(), "policy:\n",
               "policy:\n  network: {allow: [\"" + server.at() + "\"]}\n");
    Child run = scene.start("run");
    REQUIRE_MESSAGE(eventually([&] { return server.heard().size() == 1; }), scene.said());
    const std::vector<pid_t> victims = scene.workers();
    REQUIRE(victims.size() == 1);
    REQUIRE(::kill(victims[0], SIGKILL) == 0);
    REQUIRE_MESSAGE(eventually([&] { return server.heard().size() == 2; }), scene.said());
    scene.open_gate();
    CHECK_MESSAGE(run.wait(std::chrono::seconds(60)) == 0, scene.said());
    CHECK(scene.run("verify").exit_code == 0);
    scene.require_nothing_left();
  }
}
