// A whole campaign in an image, without a Docker Engine: `proctor images` and the OCI runtime.
#include <unistd.h>

#include <cstdlib>

#include "common/images/image_store.h"
#include "tests/integration/campaign/network_scene.h"
#include "tests/integration/campaign/secrets_scene.h"
#include "tests/integration/campaign/services_scene.h"
#include "tests/support/paths.h"
#include "tests/support/test_image.h"
#include "worker/sandbox/runtime_files.h"
#include "worker/selftest/isolation_proof.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

// The programs we start look for images here, and for an engine where none is.
class OwnStore {
 public:
  OwnStore() : dir_(must(TempDir::create("proctor-oci-campaign"))) {
    ::setenv(kImageStoreVariable, store().c_str(), 1);
    const char* socket = std::getenv("PROCTOR_DOCKER_SOCKET");
    socket_ = socket != nullptr ? socket : "";
    ::setenv("PROCTOR_DOCKER_SOCKET", "/nonexistent/docker.sock", 1);
  }
  OwnStore(const OwnStore&) = delete;
  OwnStore& operator=(const OwnStore&) = delete;
  ~OwnStore() {
    ::unsetenv(kImageStoreVariable);
    if (socket_.empty()) {
      ::unsetenv("PROCTOR_DOCKER_SOCKET");
    } else {
      ::setenv("PROCTOR_DOCKER_SOCKET", socket_.c_str(), 1);
    }
  }
  const fs::path& dir() const { return dir_.path(); }
  fs::path store() const { return dir() / "store"; }

 private:
  TempDir dir_;
  std::string socket_;
};

bool can_run() {
  if (::geteuid() == 0 && !find_on_path("runc").empty()) return true;
  MESSAGE("not run: OCI sandboxes need root and runc");
  return false;
}

// Checks in containers, of all of the workspace or of parts of it.  The first runs the candidate's
// code, the last looks for what that one has left.
std::string checks_in_containers(const std::string& mounts) {
  const auto check = [&](const std::string& id, const std::string& command) {
    return "  - {id: " + id + ", kind: unit, timeout: 120s, container: {command: " + command +
           ", working_dir: /w, variables: {PATH: \"/usr/bin:/bin\"}, mounts: [" + mounts + "]}}\n";
  };
  return "checks:\n" +
         check("build", R"([/bin/sh, -c, "mkdir -p made; sh calc.sh 1 1 > made/out; true"])") +
         check("tests", "[/bin/sh, tests/t.sh]") + check("planted", "[/bin/sh, judge/own.sh]") +
         check("made", R"([/bin/sh, -c, "test -s made/out && ! test -e tests/new.sh"])");
}

// What its code does to the tests and the judge that lie in the same folder, wherever it runs.
const char* const kForger =
    R"({name: forger, kind: command, command: ")"
    R"(echo 'echo exit 0 > tests/new.sh; echo exit 0 > judge/own.sh; echo exit 0 > tests/t.sh; )"
    R"(mkdir -p evil; cp tests/t.sh evil; mv tests away && ln -s evil tests; echo 1' > calc.sh"})";

}  // namespace

TEST_SUITE("oci campaign") {
  TEST_CASE("what a check in a container does to the tests is put back before the next one") {
    if (!can_run()) return;
    const OwnStore own;
    const TestImage image = must(write_test_image(own.dir(), "tools:1"));
    REQUIRE(proctor::testing::proctor({"images", "import", image.archive.string()}).exit_code == 0);
    for (const std::string mounts :
         {"{from: ., at: /w}",
          "{from: tests, at: /w/tests}, {from: judge, at: /w/judge}, {from: made, at: /w/made}, "
          "{from: calc.sh, at: /w/calc.sh}"}) {
      CAPTURE(mounts);
      CampaignShape shape;
      shape.methods = {"reference", kForger};
      shape.replicates = 1;
      shape.workers = 1;
      const CampaignScene scene(shape);
      const std::string text = scene.read(scene.contract());
      const std::size_t from = text.find("checks:\n"), to = text.find("policy:\n");
      scene.edit(scene.contract(), text.substr(from, to - from), checks_in_containers(mounts));
      scene.edit(scene.contract(), R"(protected: ["tests/**"])",
                 R"(protected: ["tests/**", "judge/**"])");
      scene.edit(scene.contract(), "environment:\n",
                 "acceptance_files: [{from: own.sh, to: judge/own.sh}]\nfiles: [own.sh]\n"
                 "environment:\n  image: \"tools@" +
                     image.id + "\"\n");
      scene.write(scene.folder() / "contracts/own.sh", "test \"$(sh calc.sh 0 3)\" = 3\n");
      const CommandOutcome ran = scene.run("run");
      REQUIRE_MESSAGE(ran.exit_code == 0, ran.err << ran.out);
      auto reports = reports_by_method(scene);
      REQUIRE(reports.size() == 2);
      CHECK_MESSAGE(reports["reference"].at("outcome") == "success", reports["reference"].dump());
      CHECK(reports["reference"].at("violations").empty());
      const Json& forged = reports["forger"];
      CHECK(forged.at("outcome") == "failure");
      std::map<std::string, Json> checks;
      for (const Json& check : forged.at("checks"))
        checks[check.at("id").string()] = check.at("outcome");
      CHECK(checks["build"] == "pass");
      CHECK(checks["tests"] == "fail");
      CHECK(checks["planted"] == "fail");
      CHECK(checks["made"] == "pass");
      CHECK(forged.at("violations").empty());  // checks did it
      const std::string events =
          scene.read(fs::path(forged.at("folder").get<std::string>()) / "events.jsonl");
      for (const char* path : {"tests/t.sh", "judge/own.sh"})
        CHECK_MESSAGE(was_put_back(events, path), events);
      scene.require_nothing_left();
    }
  }

  TEST_CASE("a folder that a container is shown is whole, whatever of it was asked for before") {
    if (!can_run()) return;
    const OwnStore own;
    const TestImage image = must(write_test_image(own.dir(), "tools:1"));
    REQUIRE(proctor::testing::proctor({"images", "import", image.archive.string()}).exit_code == 0);
    CampaignShape shape;
    shape.methods = {"noop"};
    shape.replicates = 1;
    shape.workers = 1;
    const CampaignScene scene(shape);
    const std::string text = scene.read(scene.contract());
    const std::size_t from = text.find("checks:\n"), to = text.find("policy:\n");
    const auto check = [&](const std::string& id, const std::string& command,
                           const std::string& mounts) {
      return "  - {id: " + id +
             ", kind: unit, timeout: 120s, container: {command: [/bin/sh, -c, \"" + command +
             "\"], working_dir: /w, variables: {PATH: \"/usr/bin:/bin\"}, mounts: [" + mounts +
             "]}}\n";
    };
    // The inner one before the outer, in one container and of one after the other.
    const std::string inner = "{from: tests/made/deep, at: /w/tests/made/deep}",
                      outer = "{from: tests, at: /w/tests}";
    scene.edit(scene.contract(), text.substr(from, to - from),
               "checks:\n" + check("first", "echo x > tests/made/deep/x", inner) +
                   check("second", "test -s tests/t.sh && test -s tests/made/deep/x", outer) +
                   check("third", "test -s tests/t.sh && test -s tests/made/deep/x",
                         inner + ", " + outer));
    scene.edit(scene.contract(), "environment:\n",
               "environment:\n  image: \"tools@" + image.id + "\"\n");
    scene.edit(scene.contract(), R"(protected: ["tests/**"])", R"(protected: ["tests/*.sh"])");
    const CommandOutcome ran = scene.run("run");
    REQUIRE_MESSAGE(ran.exit_code == 1, ran.err << ran.out);  // noop passes these checks
    const auto reports = reports_by_method(scene);
    REQUIRE(reports.size() == 1);
    const Json& report = reports.begin()->second;
    for (const Json& one : report.at("checks"))
      CHECK_MESSAGE(one.at("outcome") == "pass", one.dump());
    CHECK(report.at("checks").size() == 3);
    scene.require_nothing_left();
  }

  TEST_CASE("a campaign runs in an imported image without an engine and leaves nothing") {
    if (!can_run()) return;
    const OwnStore own;
    const TestImage image = must(write_test_image(own.dir(), "tools:1"));
    const CommandOutcome imported =
        proctor::testing::proctor({"images", "import", image.archive.string()});
    REQUIRE_MESSAGE(imported.exit_code == 0, imported.err);
    CHECK(contains(imported.out, image.id));
    const CampaignScene scene(judged_shape());
    scene.edit(scene.contract(), "environment:\n",
               "environment:\n  image: \"tools@" + image.id + "\"\n");
    run_judged(scene);
    scene.require_nothing_left();
    NetworkScene("  image: \"tools@" + image.id + "\"\n").run_and_check();
  }

  TEST_CASE("an agent in an image works on a task that has none, as in the example") {
    if (!can_run()) return;
    const OwnStore own;
    const TestImage image = must(write_test_image(own.dir(), "agent:1"));
    REQUIRE(proctor::testing::proctor({"images", "import", image.archive.string()}).exit_code == 0);
    const fs::path folder = own.dir() / "campaign";
    output_of({(source_dir() / "examples/agents/make").string(), folder.string(), "image",
               "agent@" + image.id});
    ::setenv("MINI_KEY", "a-key-of-this-test", 1);
    const CommandOutcome ran = proctor::testing::proctor({"run", folder.string()});
    ::unsetenv("MINI_KEY");
    REQUIRE_MESSAGE(ran.exit_code == 0, ran.err);
    for (const char* r : {"r1", "r2"}) {
      const fs::path attempt = folder / "runs/greet/mini" / r / "attempt-1";
      const auto read = [&](const char* file) {
        return must(read_file(attempt / file, std::size_t{1} << 20));
      };
      CHECK(must(parse_json(read("report.json")))["outcome"] == "success");
      CHECK(contains(read("agent/kept/home/.mini-agent/traj.txt"), "must print"));
      const Json manifest = must(parse_json(read("manifest.json")));
      CHECK(manifest["environment"]["sandbox"] == "bubblewrap");
      CHECK(manifest["environment"]["image"] == "");
      CHECK(manifest["method"]["sandbox"] == "oci");
      CHECK(manifest["method"]["image"] == "agent@" + image.id);
    }
    CHECK(proctor::testing::proctor({"verify", folder.string()}).exit_code == 0);
  }

  TEST_CASE("a declared secret is in no argument, no file and no foreign environment") {
    if (!can_run()) return;
    const OwnStore own;
    const TestImage image = must(write_test_image(own.dir(), "tools:1"));
    REQUIRE(proctor::testing::proctor({"images", "import", image.archive.string()}).exit_code == 0);
    const std::string environment = "  image: \"tools@" + image.id + "\"\n";
    SecretsScene(environment).run_and_check();
    // gVisor serves it in a process of its own, which is given it by another way.
    SandboxOptions options;
    options.owner = "oci-campaign";
    options.images = own.store();
    options.oci_runtime = kRunsc;
    const auto engine = open_sandbox_engine(SandboxKind::kOci, options);
    if (!engine.ok()) return;
    const auto proof = prove_kind(**engine, options);
    if (proof.ok() && proof->verdict == IsolationProof::Verdict::kUnfit) return;
    SecretsScene(environment, "  isolation: userspace\n").run_and_check();
  }

  TEST_CASE("services run beside checks in images and leave nothing, also of a killed worker") {
    if (!can_run()) return;
    const OwnStore own;
    const TestImage image = must(write_test_image(own.dir(), "tools:1"));
    REQUIRE(proctor::testing::proctor({"images", "import", image.archive.string()}).exit_code == 0);
    const std::string environment = "  image: \"tools@" + image.id + "\"\n";
    run_services(environment);
    run_killed_services(environment);
    run_broken_image_service(environment, image.id);
  }

  TEST_CASE("images are listed and removed and what is not there is named") {
    if (!can_run()) return;
    const OwnStore own;
    const TestImage image = must(write_test_image(own.dir(), "tools:1"));
    CHECK(proctor::testing::proctor({"images", "remove", "tools:1"}).exit_code == 2);
    REQUIRE(proctor::testing::proctor({"images", "import", image.archive.string()}).exit_code == 0);
    const Json listed =
        must(parse_json(proctor::testing::proctor({"images", "list", "--json"}).out));
    REQUIRE(listed.size() == 1);
    CHECK(listed[0]["id"] == image.id);
    CHECK(listed[0]["names"] == Json::array({"tools:1"}));
    CHECK(listed[0]["where"] == Json::array({"store"}));
    CHECK(proctor::testing::proctor({"images", "remove", "tools:1"}).exit_code == 0);
    CHECK(must(parse_json(proctor::testing::proctor({"images", "list", "--json"}).out)).empty());
    const CommandOutcome absent =
        proctor::testing::proctor({"images", "import", "/nonexistent.tar"});
    CHECK(absent.exit_code == 2);
    CHECK(contains(absent.err, "/nonexistent.tar"));
  }
}
