#include <doctest/doctest.h>

#include <algorithm>

#include "common/base/json.h"
#include "common/base/namespaces.h"
#include "worker/sandbox/bubblewrap.h"
#include "worker/sandbox/docker_config.h"
#include "worker/sandbox/seccomp_filter.h"
#include "worker/sandbox/spec_rules.h"

using namespace proctor;

namespace {

SandboxSpec some_spec() {
  SandboxSpec s;
  s.label = "17.2-agent";
  s.workspace = "/tmp";
  s.workspace_volume = "vol";
  s.image = "sha256:x";
  s.env = {{"A", "b c"}, {"PATH", "/bin"}};
  s.memory_bytes = 1 << 20;
  s.processes = 10;
  s.cpus = 1.5;
  s.file_bytes = 99;
  s.cpu = std::chrono::milliseconds(1'500);
  return s;
}

HostView some_host() {
  HostView h;
  h.proc_masked_files = {"/proc/kcore"};
  h.proc_masked_dirs = {"/proc/scsi"};
  h.proc_closed_files = {"/proc/slabinfo"};
  h.proc_closed_dirs = {"/proc/tty/driver"};
  h.empty = "/host/empty";
  h.close_devices = true;
  return h;
}

bool has_run(const std::vector<std::string>& words, std::initializer_list<std::string> run) {
  return std::search(words.begin(), words.end(), run.begin(), run.end()) != words.end();
}

}  // namespace

TEST_SUITE("sandbox") {
  TEST_CASE("bwrap's command line shares nothing that was not asked for") {
    SandboxSpec spec = some_spec();
    spec.mounts = {{"/opt/go", "/opt/go", false}, {"/cache", "/cache", true}};
    const std::vector<std::string> argv = bubblewrap_argv(some_host(), spec, "make");
    CHECK(has_run(argv, {"--unshare-all", "--die-with-parent"}));
    CHECK_FALSE(has_run(argv, {"--share-net"}));
    // Every user of the host reads these words: the environment is not among them.
    CHECK(std::find(argv.begin(), argv.end(), "b c") == argv.end());
    CHECK(has_run(argv, {"--seccomp", "5"}));
    CHECK(has_run(argv, {"--cap-drop", "ALL"}));
    CHECK(has_run(argv, {"--size", "1048576", "--perms", "1777", "--tmpfs", "/tmp"}));
    CHECK(has_run(argv, {"--size", "1048576", "--perms", "1777", "--tmpfs", "/dev/shm"}));
    // A second time, by Landlock, which hides a fault of the mounts from every command.
    CHECK(has_run(argv,
                  {"--in", "/workspace", "--write", "/tmp", "--write", "/dev", "--write", "/run",
                   "--write", "/home", "--write", "/workspace", "--write", "/cache", "--"}));
    CHECK(has_run(argv, {"--remount-ro", "/proc"}));
    // The devices that bwrap finds are the host's files: nobody inside changes them.  What is
    // read-only by bwrap is a device no more: he who owns none of those files keeps them.
    HostView nobodys = some_host();
    nobodys.close_devices = false;
    const auto open = bubblewrap_argv(nobodys, spec, "make");
    for (const char* device : {"/dev/null", "/dev/zero", "/dev/random", "/dev/tty"}) {
      CHECK(has_run(argv, {"--remount-ro", device}));
      CHECK_FALSE(has_run(open, {"--remount-ro", device}));
    }
    CHECK(has_run(argv, {"--remount-ro", "/dev"}));
    CHECK(has_run(open, {"--remount-ro", "/dev"}));
    CHECK(has_run(argv, {"--ro-bind", "/dev/null", "/proc/kcore"}));
    CHECK(has_run(argv, {"--ro-bind", "/host/empty", "/proc/scsi"}));
    CHECK(has_run(argv, {"--ro-bind", "/dev/null", "/proc/slabinfo"}));
    CHECK(has_run(argv, {"--ro-bind", "/host/empty", "/proc/tty/driver"}));
    // Who is nobody else is not who may open what is closed to all others.
    if (auto user = OwnUser::take(); user.ok()) {
      spec.user = std::move(user).value();
      const auto his = bubblewrap_argv(some_host(), spec, "make");
      CHECK(has_run(his, {"--ro-bind", "/dev/null", "/proc/kcore"}));
      CHECK(has_run(his, {"--ro-bind", "/host/empty", "/proc/scsi"}));
      CHECK(std::find(his.begin(), his.end(), "/proc/slabinfo") == his.end());
      CHECK(std::find(his.begin(), his.end(), "/proc/tty/driver") == his.end());
    }
  }

  TEST_CASE("a workspace that is shown read-only is named nowhere as writable") {
    SandboxSpec spec = some_spec();
    spec.workspace_read_only = true;
    const auto argv = bubblewrap_argv(some_host(), spec, "make");
    CHECK(has_run(argv, {"--ro-bind", "/tmp", "/workspace"}));
    CHECK_FALSE(has_run(argv, {"--bind", "/tmp", "/workspace"}));
    CHECK_FALSE(has_run(argv, {"--write", "/workspace"}));
    CHECK(has_run(argv, {"--in", "/workspace"}));
    for (const char* volume : {"vol", ""}) {
      spec.workspace_volume = volume;
      const Json c = parse_json(container_config(spec, DockerImage{"sha256:id", {}}, "/run/init",
                                                 "w1", "make"))
                         .value();
      const Json& workspace = c["HostConfig"]["Mounts"].front();
      CHECK(workspace["Target"] == "/workspace");
      CHECK(workspace["ReadOnly"] == true);
    }
  }

  TEST_CASE(
      "what is mounted lies behind what is mounted around it, in whatever order it is given") {
    SandboxSpec spec = some_spec();
    spec.mounts = {{"/opt/inner", "/opt/go/inner/deep", false},
                   {"/cache", "/cache", true},
                   {"/opt/outer", "/opt/go", false},
                   {"/opt/middle", "/opt/go/inner", true}};
    const std::vector<std::string> argv = bubblewrap_argv(some_host(), spec, "x");
    CHECK(has_run(
        argv, {"--bind", "/cache", "/cache", "--ro-bind", "/opt/outer", "/opt/go", "--bind",
               "/opt/middle", "/opt/go/inner", "--ro-bind", "/opt/inner", "/opt/go/inner/deep"}));
  }

  TEST_CASE("a container's config says what no command inside can tell") {
    const DockerImage image{"sha256:id", {}};
    const Json c =
        parse_json(container_config(some_spec(), image, "/run/init", "w1", "make")).value();
    // Landlock, behind mounts that say the same.
    CHECK(c["Entrypoint"] ==
          Json::array({"/sbin/docker-init", "--write", "/dev", "--write", "/tmp", "--write", "/run",
                       "--write", "/home", "--write", "/home/proctor", "--write", "/workspace",
                       "--", "/bin/sh"}));
    CHECK(c["Labels"]["proctor.owner"] == "w1");
    CHECK(c["Labels"]["proctor.attempt"] == "17.2-agent");
    const Json& h = c["HostConfig"];
    REQUIRE(h["SecurityOpt"].size() == 2);
    CHECK(h["SecurityOpt"][0] == "no-new-privileges");
    CHECK(h["SecurityOpt"][1] == "seccomp=" + seccomp_profile().dump());
    CHECK(h["Memory"] == 1 << 20);
    CHECK(h["MemorySwap"] == 1 << 20);
    CHECK(h["PidsLimit"] == 12);
    CHECK(h["NanoCpus"] == 1'500'000'000);
    CHECK(h["LogConfig"] == Json{{"Type", "none"}});
    CHECK(h["Mounts"][0]["VolumeOptions"]["NoCopy"] == true);
    const Json l =
        parse_json(container_config(some_spec(), image, "/run/init", "w1", "make", 4096)).value();
    CHECK(l["HostConfig"]["LogConfig"]["Type"] == "local");
    CHECK(l["HostConfig"]["LogConfig"]["Config"]["max-size"] == "4096b");
  }

  TEST_CASE("a program of an image has its folder and its /tmp, no workspace and no right") {
    SandboxSpec spec = some_spec();
    spec.program = {{}, {"-v"}, ""};
    const Json c =
        parse_json(container_config(spec, {"sha256:i", {}}, "/run/init", "w1", "make")).value();
    CHECK_FALSE(c.contains("WorkingDir"));
    CHECK(c["HostConfig"]["Tmpfs"].empty());
    CHECK(c["HostConfig"]["CapDrop"] == Json::array({"ALL"}));
    for (const Json& m : c["HostConfig"]["Mounts"]) CHECK(m["Target"] != "/workspace");
  }

  TEST_CASE("mounts that would undo the sandbox are refused and named") {
    for (const char* at : {"", "/", "relative", "/a/../b", "/a//b", "/./a", "/proc", "/proc/sys",
                           "/dev", "/dev/shm", "/etc", "/workspace"}) {
      CAPTURE(at);
      const Status s = check_mounts({{"/tmp", at, false}});
      REQUIRE_FALSE(s.ok());
      CHECK(s.error().code == Errc::kInvalid);
      CHECK(s.error().detail.find("'" + std::string(at) + "'") != std::string::npos);
    }
    // The spec may be right: another host, or this one later, has it.
    CHECK(check_mounts({{"/no/such/folder", "/opt/go", false}}).error().code == Errc::kNotFound);
    for (const char* at : {"/opt/go", "/workspace/deps", "/root/.cargo", "/tmp"}) {
      CAPTURE(at);
      CHECK(check_mounts({{"/tmp", at, false}}).ok());
    }
    CHECK_FALSE(check_mounts({{"/no/such/path", "/opt/x", false}}).ok());
    CHECK_FALSE(check_mounts({{"tmp", "/opt/x", false}}).ok());
  }

  TEST_CASE("names and values that no environment can hold are refused") {
    CHECK(check_environment({{"A", ""}, {"a.b", "c=d"}}).ok());
    CHECK_FALSE(check_environment({{"", "x"}}).ok());
    CHECK_FALSE(check_environment({{"A=B", "x"}}).ok());
    CHECK_FALSE(check_environment({{"A", std::string("x\0y", 3)}}).ok());
    CHECK_FALSE(check_environment({{std::string("A\0", 2), "x"}}).ok());
  }
}
