// `proctor cvdp run` in containers of a real Docker Engine.
#include <unistd.h>

#include <cstdlib>

#include "common/base/subprocess.h"
#include "tests/integration/cvdp/run_cases.h"
#include "worker/sandbox/runtime_files.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

// A network of an engine, of this test alone.
class LicenseNetwork {
 public:
  LicenseNetwork() : name_("proctor-test-lic-" + std::to_string(::getpid())) {
    made_ = docker({"network", "create", name_});
    if (!made_) MESSAGE("not run: no network of an engine can be made (licensed tools)");
  }
  LicenseNetwork(const LicenseNetwork&) = delete;
  LicenseNetwork& operator=(const LicenseNetwork&) = delete;
  ~LicenseNetwork() {
    if (made_) docker({"network", "rm", name_});
  }
  bool made() const { return made_; }
  const std::string& name() const { return name_; }

 private:
  static bool docker(std::vector<std::string> words) {
    const char* socket = std::getenv("PROCTOR_DOCKER_SOCKET");
    CommandSpec spec;
    spec.argv = {"docker", "-H",
                 std::string("unix://") + (socket != nullptr ? socket : "/var/run/docker.sock")};
    spec.argv.insert(spec.argv.end(), words.begin(), words.end());
    const auto done = run_command(spec);
    return done.ok() && done->success();
  }
  std::string name_;
  bool made_ = false;
};

}  // namespace

TEST_SUITE("cvdp run docker") {
  TEST_CASE("a harness sees what upstream shows it, by the Docker Engine") {
    if (have_docker("what a harness sees")) sees_what_upstream_shows(Runner::kDocker);
  }

  TEST_CASE("each service has its result, and limits have words, by the Docker Engine") {
    if (have_docker("each service has its result")) tells_services_apart(Runner::kDocker);
  }

  TEST_CASE("an agent's image sees what upstream shows it and its change counts, by Docker") {
    if (have_docker("an agent's image")) agent_sees_what_upstream_shows(Runner::kDocker);
  }
  TEST_CASE("an agent's image beyond its disk limit ends as in every sandbox, by Docker") {
    if (have_docker("an agent's disk")) agent_is_stopped_at_its_disk_limit(Runner::kDocker);
  }

  TEST_CASE("an agent's image is given the key and the network it was asked for, by Docker") {
    if (have_docker("an agent's key")) agent_is_given_its_key_and_a_network(Runner::kDocker);
  }

  TEST_CASE("what needs licensed tools runs on their network where image and network are named") {
    if (!have_docker("licensed tools") || find_on_path("docker-compose").empty()) return;
    const RunScene scene(Runner::kDocker);
    const LicenseNetwork network;
    if (!network.made()) return;
    ShellProblem p;
    p.compose = "services:\n  xrun:\n    image: __VERIF_EDA_IMAGE__\n    command: " +
                compose_words("grep -q y /code/rtl/a.sv && ls /sys/class/net && exit 3") +
                "\n    environment: {PATH: /usr/bin}\n    networks: [licnetwork]\n";
    Json record = must(parse_json(line_of(p)));
    record["categories"] = {"cid012", "easy"};
    const std::string lines = record.dump() + "\n";
    const CommandOutcome done = scene.run(
        lines, {"--golden", "--verif-eda-image", kImage, "--license-network", network.name()});
    INFO(done.err);
    CHECK(done.exit_code == 0);
    CHECK(scene.raw()["cvdp_agentic_a_0001"]["tests"][0]["result"] == 3);
    CHECK(contains(scene.text("cvdp_agentic_a/reports/1.txt"), "eth0"));
    // Neither is taken for granted, and nothing is made.
    const auto told = [&](const std::string& prefix, std::vector<std::string> more) {
      more.insert(more.begin(), {"cvdp", "run", scene.dataset(lines).string(), "-p",
                                 (scene.dir.path() / prefix).string(), "--golden"});
      return run_proctor(more).out;
    };
    CHECK(contains(told("a", {"--verif-eda-image", kImage}), "needs licensed tools: --verif-eda"));
    CHECK(contains(told("b", {"--verif-eda-image", kImage, "--license-network", "no-such-network"}),
                   "the Docker Engine has no network no-such-network"));
  }
}
