#include "worker/sandbox/oci_config.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "common/base/json.h"

using namespace proctor;

namespace {

SandboxSpec image_spec() {
  SandboxSpec s;
  s.label = "17.2-agent";
  s.workspace = "/host/work";
  s.image = "sha256:x";
  s.env = {{"A", "b c"}, {"HOME", "/home/proctor"}};
  s.mounts = {{"/host/home", "/proctor/home", true}, {"/host/go", "/opt/go", false}};
  s.memory_bytes = 1 << 20;
  s.processes = 10;
  s.cpus = 1.5;
  s.file_bytes = 99;
  s.cpu = std::chrono::milliseconds(1'500);
  return s;
}

OciHost bundle_host() {
  return {"/bundle/root", "/run/init", "/run/etc", "/proctor/w1/17.2-agent.oci1", 1024};
}

Json config(const SandboxSpec& spec, const OciHost& host = bundle_host()) {
  return parse_json(oci_config(spec, host, "make")).value();
}

Json mount_at(const Json& config, const std::string& at) {
  for (const Json& m : config["mounts"])
    if (m["destination"] == at) return m;
  return {};
}

// As init reads them: their length first.
std::vector<std::string> variables(const SandboxSpec& spec) {
  const std::string bytes = oci_environment(spec);
  std::uint64_t size = 0;
  REQUIRE(sizeof size <= bytes.size());
  std::memcpy(&size, bytes.data(), sizeof size);
  REQUIRE(size == bytes.size() - sizeof size);
  std::vector<std::string> out;
  for (std::size_t at = sizeof size; at < bytes.size();) {
    const std::size_t end = bytes.find('\0', at);
    REQUIRE(end != std::string::npos);
    out.push_back(bytes.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

bool has(const Json& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

}  // namespace

TEST_SUITE("sandbox") {
  TEST_CASE("a program of an image has its words and its environment, and no workspace") {
    SandboxSpec spec = image_spec();
    spec.env = {{"A", "mine"}};
    spec.program = {{}, {"-v"}, ""};
    const ImageConfig image{{"A=image", "PATH=/venv/bin", "ODD"}, {"pytest"}, {"--help"}, "/code"};
    const Result<SandboxSpec> whole = with_image_program(spec, image);
    REQUIRE(whole.ok());
    const Json c = config(*whole);
    CHECK(c["process"]["args"] == Json::array({"/sbin/docker-init", "--", "pytest", "-v"}));
    CHECK(c["process"]["cwd"] == "/code");
    CHECK(variables(*whole) == std::vector<std::string>{"A=mine", "HOME=/root", "HOSTNAME=sandbox",
                                                        "ODD=", "PATH=/venv/bin"});
    CHECK(mount_at(c, "/workspace").is_null());
    CHECK(mount_at(c, "/tmp").is_null());
    CHECK(c["process"]["capabilities"] == Json::object());
    // An entrypoint of one's own takes the image's command away.
    spec.program = {{"sh"}, {}, "/x"};
    CHECK(config(*with_image_program(spec, image))["process"]["args"].size() == 3);
    spec.program = SandboxProgram{};
    CHECK(config(*with_image_program(spec, image))["process"]["args"].back() == "--help");
    CHECK_FALSE(with_image_program(spec, {}).ok());
  }

  TEST_CASE("an OCI container has no privilege and a read-only root") {
    const Json c = config(image_spec());
    CHECK(c["root"] == Json{{"path", "/bundle/root"}, {"readonly", true}});
    CHECK(c["process"]["noNewPrivileges"] == true);
    // The configuration is a file: what may be secret is not in it.
    CHECK(c["process"]["env"].empty());
    CHECK(c["process"]["args"] ==
          Json::array({"/sbin/docker-init", "--write", "/dev", "--write", "/tmp", "--write", "/run",
                       "--write", "/home", "--write", "/home/proctor", "--write", "/workspace",
                       "--write", "/proctor/home", "--", "/bin/sh", "-c", "make"}));
    const Json& l = c["linux"];
    CHECK(l["namespaces"].size() == 5);
    for (const char* hidden : {"/proc/kcore", "/proc/keys", "/proc/slabinfo", "/sys"})
      CHECK(has(l["maskedPaths"], hidden));
    CHECK(has(l["readonlyPaths"], "/proc/sys"));
    CHECK_FALSE(c.contains("hooks"));
    CHECK_FALSE(l.contains("devices"));
    CHECK(l["resources"]["devices"][0] == Json{{"allow", false}, {"access", "rwm"}});
  }

  TEST_CASE("an OCI container may be shown its workspace read-only") {
    SandboxSpec spec = image_spec();
    CHECK(has(mount_at(config(spec), "/workspace")["options"], "rw"));
    spec.workspace_read_only = true;
    const Json workspace = mount_at(config(spec), "/workspace");
    CHECK(has(workspace["options"], "ro"));
    CHECK_FALSE(has(workspace["options"], "rw"));
  }

  TEST_CASE("an OCI container's limits are those of the spec and only those the kernel can hold") {
    const Json c = config(image_spec());
    const Json& r = c["linux"]["resources"];
    CHECK(r["memory"] == Json{{"limit", 1 << 20}, {"swap", 1 << 20}});
    CHECK(r["pids"] == Json{{"limit", 12}});
    CHECK(r["cpu"] == Json{{"quota", 150'000}, {"period", 100'000}});
    CHECK(c["linux"]["cgroupsPath"] == "/proctor/w1/17.2-agent.oci1");
    CHECK(c["process"]["rlimits"].size() == 4);
    CHECK(c["process"]["rlimits"][1]["soft"] == 1024);
    CHECK(c["process"]["rlimits"][3] == Json{{"type", "RLIMIT_CPU"}, {"soft", 3}, {"hard", 3}});
    OciHost of_another = bundle_host();  // whose first process limits itself
    CHECK(oci_limits(image_spec(), of_another) == for_first_process(""));
    of_another.limits_itself = true;
    CHECK(config(image_spec(), of_another)["process"]["rlimits"].empty());
    CHECK(oci_limits(image_spec(), of_another).size() ==
          sizeof(std::uint64_t) * (1 + 2 * std::size_t{4}));
    OciHost bare = bundle_host();
    bare.limit_memory = bare.limit_processes = bare.limit_cpus = false;
    const Json without = config(image_spec(), bare);
    CHECK(without["linux"]["resources"].size() == 1);
    SandboxSpec free = image_spec();
    free.memory_bytes = free.processes = 0;
    free.cpus = 0;
    CHECK(config(free)["linux"]["resources"].size() == 1);
  }

  TEST_CASE("an OCI container shows nothing of the host but what the spec says") {
    const Json c = config(image_spec());
    CHECK(has(mount_at(c, "/tmp")["options"], "size=1048576"));
    for (const Json& m : c["mounts"]) {
      if (m["type"] != "bind") continue;
      const auto source = m["source"].get<std::string>();
      CAPTURE(source);
      CHECK((source.starts_with("/host/") || source.starts_with("/run/")));
    }
  }

  TEST_CASE("an OCI container resolves names as the host does only when it has its network") {
    SandboxSpec spec = image_spec();
    CHECK(mount_at(config(spec), "/etc/resolv.conf").is_null());
    spec.network = true;
    CHECK(mount_at(config(spec), "/etc/resolv.conf")["source"] == "/etc/resolv.conf");
  }

  TEST_CASE(
      "an OCI container's filter is for its first process, and no part of its configuration") {
    CHECK_FALSE(config(image_spec())["linux"].contains("seccomp"));
    OciHost userspace = bundle_host();
    userspace.userspace = true;
    CHECK_FALSE(config(image_spec(), userspace)["linux"].contains("seccomp"));
  }
}
