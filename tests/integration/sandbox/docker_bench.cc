#include <doctest/doctest.h>
#include <unistd.h>

#include "common/base/json.h"
#include "tests/integration/sandbox/docker_fixture.h"
#include "tests/integration/sandbox/engine_under_test.h"
#include "worker/sandbox/docker_http.h"

namespace proctor::testing {
namespace {

class DockerBench final : public Bench {
 public:
  DockerBench(TempDir dir, std::string owner, std::string image,
              std::unique_ptr<SandboxEngine> engine)
      : dir_(std::move(dir)),
        owner_(std::move(owner)),
        image_(std::move(image)),
        volume_(owner_ + "-workspace"),
        engine_(std::move(engine)) {
    const Json body = {{"Name", volume_}, {"Labels", {{"proctor.owner", owner_}}}};
    const auto made = docker_call("POST", "/volumes/create", body.dump());
    if (!made.ok()) FAIL(made.error().detail);
  }
  ~DockerBench() override { (void)docker_call("DELETE", "/volumes/" + volume_).ok(); }
  DockerBench(const DockerBench&) = delete;
  DockerBench& operator=(const DockerBench&) = delete;

  SandboxEngine& engine() override { return *engine_; }
  const fs::path& scratch() override { return dir_.path(); }
  SandboxSpec spec() override {
    SandboxSpec s;
    s.label = "17.2-agent";
    s.workspace_volume = volume_;
    s.image = image_;
    s.env = {{"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"HOME", "/home/proctor"}};
    return s;
  }
  std::vector<std::string> leftovers() override {
    std::vector<std::string> out;
    const Json filters = {{"label", Json::array({"proctor.owner=" + owner_})}};
    const std::string query = url_encode(filters.dump());
    const auto containers = docker_call("GET", "/containers/json?all=1&filters=" + query);
    REQUIRE(containers.ok());
    const Json list = parse_json(*containers).value();
    for (const Json& c : list) out.push_back(c["Id"].string());
    const auto volumes = docker_call("GET", "/volumes?filters=" + query);
    REQUIRE(volumes.ok());
    const Json named = parse_json(*volumes).value();
    for (const Json& v : named["Volumes"]) {
      if (v["Name"] != volume_) out.push_back(v["Name"].string());
    }
    return out;
  }

 private:
  TempDir dir_;
  std::string owner_, image_, volume_;
  std::unique_ptr<SandboxEngine> engine_;
};

}  // namespace

std::unique_ptr<Bench> make_docker_bench() {
  if (!docker_answers(docker_socket())) {
    MESSAGE("not run: no Docker Engine answers at " << docker_socket());
    return nullptr;
  }
  auto dir = TempDir::create("proctor-sandbox-test");
  REQUIRE(dir.ok());
  SandboxOptions options;
  options.owner = "proctor-test-" + std::to_string(::getpid());
  options.docker_socket = docker_socket();
  auto engine = open_sandbox_engine(SandboxKind::kDocker, options);
  if (!engine.ok()) FAIL(engine.error().detail);
  const auto image = test_image();
  if (!image.ok()) FAIL(image.error().detail);
  return std::make_unique<DockerBench>(std::move(*dir), options.owner, *image, std::move(*engine));
}

}  // namespace proctor::testing
