// Which limits a host's control groups can keep, on trees of plain files that hold what a kernel
// would show; the files that a kernel makes in a new group are there before.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>

#include "worker/sandbox/cgroup.h"
#include "worker/sandbox/cgroup_files.h"
#include "worker/sandbox/limit_watch.h"

using namespace proctor;

namespace {

std::string text_of(const fs::path& file) {
  const auto text = read_file(file, 4096);
  return text.ok() ? *text : "<none>";
}

class FakeGroups {
 public:
  void put(const std::string& file, std::string_view text = "") {
    REQUIRE(make_dirs((root() / file).parent_path()).ok());
    REQUIRE(write_file(root() / file, text, Durability::kLazy).ok());
  }
  fs::path root() const { return dir_.path(); }
  std::string path(const std::string& below) const { return (root() / below).string(); }

  // A group of version 2 that has these controllers, and the groups that we shall make below it.
  void unified(const std::string& at, const std::string& controllers) {
    for (const char* group : {"", "proctor/", "proctor/me/", "proctor/me/run/"}) {
      const std::string dir = "unified" + at + "/" + group;
      put(dir + "cgroup.controllers", controllers + "\n");
      put(dir + "cgroup.subtree_control");
      put(dir + "cgroup.procs");
    }
    for (const char* file : {"memory.max", "memory.swap.max", "pids.max", "cpu.max"})
      put("unified" + at + "/proctor/me/run/" + file);
  }
  CgroupLayout layout_v2(const std::string& own) const {
    CgroupLayout out;
    out.v2 = {path("unified"), own};
    out.mounts = {path("unified")};
    return out;
  }
  void version1(const std::string& controller, const std::string& at = "") {
    put(controller + at + "/proctor/me/cgroup.procs");
    for (const char* file : {"cgroup.procs", "tasks"})
      put(controller + at + "/proctor/me/run/" + file);
  }

 private:
  TempDir dir_ = TempDir::create("groups").value();
};

// While it lives this process opens nothing more.
class NoDescriptors {
 public:
  NoDescriptors() {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const rlimit none{0, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

CgroupLimits all_limits() {
  CgroupLimits out;
  out.memory_bytes = 1 << 20;
  out.processes = 7;
  out.cpus = 1.5;
  return out;
}

}  // namespace

TEST_SUITE("cgroup host") {
  TEST_CASE("version 2 with every controller keeps every limit") {
    FakeGroups fake;
    fake.unified("", "cpuset cpu io memory pids");
    CgroupHost host = CgroupHost::at(fake.layout_v2(""), "me");
    for (const char* c : {"memory", "pids", "cpu"}) CHECK(host.version(c) == "cgroup2");
    CHECK(text_of(fake.root() / "unified/cgroup.subtree_control") == "+memory +pids +cpu");
    auto group = host.make("run", all_limits());
    REQUIRE(group.ok());
    CHECK(group->doors().size() == 1);
    const fs::path run = fake.root() / "unified/proctor/me/run";
    CHECK(text_of(run / "memory.max") == "1048576");
    CHECK(text_of(run / "memory.swap.max") == "0");
    CHECK(text_of(run / "pids.max") == "7");
    CHECK(text_of(run / "cpu.max") == "150000 100000");
    fake.put("unified/proctor/me/run/memory.events", "low 0\noom 2\noom_kill 1\n");
    fake.put("unified/proctor/me/run/cpu.stat", "usage_usec 42000\nuser_usec 1\n");
    fake.put("unified/proctor/me/run/memory.peak", "4096\n");
    CHECK(group->oom_kills().value() == 1);
    CHECK(group->cpu_time().value() == std::chrono::milliseconds(42));
    CHECK(group->memory_peak().value() == 4096);
    CHECK(group->freeze([] { return std::vector<pid_t>{}; }) == false);  // no such file here
    fake.put("unified/proctor/me/run/cgroup.freeze", "0");
    CHECK(group->freeze([] { return std::vector<pid_t>{}; }));
    CHECK(text_of(run / "cgroup.freeze") == "1");
    group->thaw();
    CHECK(text_of(run / "cgroup.freeze") == "0");
    fs::remove_all(run);  // as rmdir of a group does, files and all
  }

  TEST_CASE("version 2 keeps the limits of the controllers that were delegated") {
    FakeGroups fake;
    fake.unified("/user.slice/app", "memory pids");  // what systemd gives a user
    // We are inside, and limited: leaving it would escape.
    fake.put("unified/user.slice/app/memory.max", "1073741824\n");
    CgroupHost host = CgroupHost::at(fake.layout_v2("/user.slice/app"), "me");
    CHECK(host.version("memory") == "cgroup2");
    CHECK(host.version("pids") == "cgroup2");
    CHECK(host.version("cpu").empty());
    CHECK(text_of(fake.root() / "unified/user.slice/app/cgroup.subtree_control") ==
          "+memory +pids");
    CHECK(host.runtime_path("run") == "/user.slice/app/proctor/me/run");
    auto group = host.make("run", all_limits());
    REQUIRE(group.ok());
    const fs::path run = fake.root() / "unified/user.slice/app/proctor/me/run";
    CHECK(text_of(run / "pids.max") == "7");
    CHECK(text_of(run / "cpu.max").empty());
    fs::remove_all(run);
  }

  TEST_CASE("version 2 without delegation, or with nothing of use, keeps nothing") {
    FakeGroups bare;
    REQUIRE(make_dirs(bare.root() / "unified").ok());
    CHECK_FALSE(CgroupHost::at(bare.layout_v2(""), "me").has("memory"));
    FakeGroups hybrid;
    hybrid.unified("", "cpuset hugetlb");  // the rest is on version 1: "cpuset" is no "cpu"
    const CgroupHost host = CgroupHost::at(hybrid.layout_v2(""), "me");
    for (const char* c : {"memory", "pids", "cpu", "unified"}) CHECK_FALSE(host.has(c));
    FakeGroups nowhere;
    CHECK_FALSE(CgroupHost::at(nowhere.layout_v2("/gone"), "me").has("memory"));
  }

  TEST_CASE("version 1 keeps the limits of the hierarchies we may write to") {
    FakeGroups fake;
    fake.version1("memory");
    fake.version1("pids");
    for (const char* file : {"memory.limit_in_bytes", "memory.memsw.limit_in_bytes"})
      fake.put(std::string("memory/proctor/me/run/") + file);
    fake.put("pids/proctor/me/run/pids.max");
    REQUIRE(make_dirs(fake.root() / "cpu").ok());  // there, but nothing appears in a group of it
    CgroupLayout layout;
    for (const char* c : {"memory", "pids", "cpu"}) {
      layout.v1[c] = {fake.path(c), ""};
      layout.mounts.push_back(fake.path(c));
    }
    CgroupHost host = CgroupHost::at(layout, "me");
    CHECK(host.version("memory") == "cgroup1");
    CHECK(host.version("pids") == "cgroup1");
    CHECK_FALSE(host.has("cpu"));
    auto group = host.make("run", all_limits());
    REQUIRE(group.ok());
    CHECK(group->doors().size() == 2);
    CHECK(text_of(fake.root() / "memory/proctor/me/run/memory.limit_in_bytes") == "1048576");
    CHECK(text_of(fake.root() / "pids/proctor/me/run/pids.max") == "7");
    fake.put("memory/proctor/me/run/memory.oom_control", "under_oom 0\noom_kill 3\n");
    CHECK(group->oom_kills().value() == 3);
    for (const char* c : {"memory", "pids"}) fs::remove_all(fake.root() / c / "proctor/me/run");
  }

  TEST_CASE("a group is used again where the limits are the same, and counts from nothing") {
    FakeGroups fake;
    for (const char* run : {"run", "other"}) {
      const std::string dir = std::string("/proctor/me/") + run + "/";
      for (const char* file : {"tasks", "memory.limit_in_bytes", "memory.max_usage_in_bytes"})
        fake.put("memory" + dir + file);
      for (const char* file : {"tasks", "pids.max"}) fake.put("pids" + dir + file);
      fake.put("memory" + dir + "memory.usage_in_bytes", "8192\n");
    }
    for (const char* c : {"memory", "pids"}) fake.put(std::string(c) + "/proctor/me/cgroup.procs");
    CgroupLayout layout;
    for (const char* c : {"memory", "pids"}) layout.v1[c] = {fake.path(c), ""};
    CgroupHost host = CgroupHost::at(layout, "me");
    const fs::path run = fake.root() / "memory/proctor/me/run";
    const fs::path other = fake.root() / "memory/proctor/me/other";
    REQUIRE(host.make("run", all_limits()).ok());
    fake.put("memory/proctor/me/run/memory.max_usage_in_bytes", "999999\n");
    {
      const auto again = host.make("other", all_limits());
      REQUIRE(again.ok());
      CHECK(again->doors().size() == 2);
      CHECK(text_of(run / "memory.max_usage_in_bytes").starts_with("0"));
      CHECK(text_of(other / "memory.limit_in_bytes").empty());
      fake.put("memory/proctor/me/run/memory.max_usage_in_bytes", "20480\n");
      CHECK(again->memory_peak().value() == 12288);
      // All that there is: what was there before had to go.
      fake.put("memory/proctor/me/run/memory.max_usage_in_bytes", "1048576\n");
      CHECK(again->memory_peak().value() == 1048576);
      CgroupLimits less = all_limits();
      less.memory_bytes = 1 << 19;
      REQUIRE(host.make("other", less).ok());
      CHECK(text_of(other / "memory.limit_in_bytes") == "524288");
      fake.put("memory/proctor/me/run/memory.oom_control", "oom_kill 1\n");
    }
    // A count of kills does not go back; one that was removed by others is not there.
    fake.put("memory/proctor/me/third/tasks");
    fake.put("memory/proctor/me/third/memory.limit_in_bytes");
    fake.put("pids/proctor/me/third/tasks");
    fake.put("pids/proctor/me/third/pids.max");
    REQUIRE(host.make("third", all_limits()).ok());
    CHECK(text_of(fake.root() / "memory/proctor/me/third/memory.limit_in_bytes") == "1048576");
  }

  TEST_CASE("groups of dead owners are swept, those of live ones and those in use stay") {
    FakeGroups fake;
    CgroupLayout layout;
    for (const char* c : {"memory", "pids"}) {
      const std::string base = std::string(c) + "/proctor/";
      fake.put(base + "me/cgroup.procs");
      fake.put(base + "live/cgroup.procs");
      fake.put(base + "busy/run/cgroup.procs", "1\n");
      for (const char* group : {"live/run", "dead/run", "dead/other"})
        REQUIRE(make_dirs(fake.root() / (base + group)).ok());
      layout.v1[c] = {fake.path(c), ""};
      layout.mounts.push_back(fake.path(c));
    }
    REQUIRE(make_dirs(fake.root() / "pids/proctor/half/run").ok());  // killed while it removed
    const CgroupHost me = CgroupHost::at(layout, "me");
    const fs::path live = fake.root() / "memory/proctor/live/run";
    {
      const CgroupHost first = CgroupHost::at(layout, "live");
      { const CgroupHost second = CgroupHost::at(layout, "live"); }
      CHECK(me.sweep() == 5);
      CHECK(fs::exists(live));
    }
    for (const char* gone :
         {"memory/proctor/dead", "pids/proctor/dead", "pids/proctor/half", "memory/proctor/half"})
      CHECK_FALSE(fs::exists(fake.root() / gone));
    CHECK(fs::exists(fake.root() / "memory/proctor/busy/run"));
    CHECK(me.sweep() == 2);
    CHECK_FALSE(fs::exists(live));
  }

  TEST_CASE("a limited group of version 1 is not left") {
    FakeGroups fake;
    fake.version1("memory", "/jobs/17");
    fake.put("memory/jobs/17/memory.limit_in_bytes", "1073741824\n");
    CgroupLayout layout;
    layout.v1["memory"] = {fake.path("memory"), "/jobs/17"};
    layout.mounts = {fake.path("memory")};
    const CgroupHost host = CgroupHost::at(layout, "me");
    CHECK(host.has("memory"));
    CHECK(host.runtime_path("run") == "/jobs/17/proctor/me/run");
    CHECK_FALSE(fs::exists(fake.root() / "memory/proctor"));
  }

  TEST_CASE("version 1 limits the pages of sockets apart where it can") {
    FakeGroups fake;
    fake.version1("memory");
    fake.put("memory/proctor/me/run/memory.limit_in_bytes");
    fake.put("memory/proctor/me/run/memory.max_usage_in_bytes");
    CgroupLayout layout;
    layout.v1["memory"] = {fake.path("memory"), ""};
    CHECK(CgroupHost::at(layout, "me").socket_keeper() == "monitor");
    fake.put("memory/proctor/me/memory.kmem.tcp.limit_in_bytes");
    fake.put("memory/proctor/me/run/memory.kmem.tcp.limit_in_bytes");
    CgroupHost host = CgroupHost::at(layout, "me");
    CHECK(host.socket_keeper() == "cgroup1");
    CgroupLimits limits;
    limits.memory_bytes = std::uint64_t{800} << 20;
    auto group = host.make("run", limits);
    REQUIRE(group.ok());
    CHECK(text_of(fake.root() / "memory/proctor/me/run/memory.kmem.tcp.limit_in_bytes") ==
          "104857600");
  }

  TEST_CASE("what cannot be read for want of descriptors is no count of nothing") {
    FakeGroups fake;
    for (const char* c : {"memory", "pids", "cpuacct"}) {
      fake.version1(c);
      fake.put(std::string(c) + "/proctor/me/run/cgroup.procs", std::to_string(::getpid()) + "\n");
    }
    for (const char* file :
         {"memory.limit_in_bytes", "memory.max_usage_in_bytes", "memory.usage_in_bytes"})
      fake.put(std::string("memory/proctor/me/run/") + file, "4096\n");
    fake.put("memory/proctor/me/run/memory.oom_control", "oom_kill 1\n");
    fake.put("pids/proctor/me/run/pids.max");
    fake.put("cpuacct/proctor/me/run/cpuacct.usage", "42000000\n");
    CgroupLayout layout;
    for (const char* c : {"memory", "pids", "cpuacct"}) layout.v1[c] = {fake.path(c), ""};
    const CgroupHost host = CgroupHost::at(layout, "me");
    CgroupLimits limits = all_limits();
    limits.cpu_usage = true;
    auto group = host.make("run", limits);
    REQUIRE(group.ok());
    const fs::path run = fake.root() / "memory/proctor/me/run";
    const auto look = [&] {
      return std::array{group->oom_kills().ok(), group->memory_peak().ok(), group->cpu_time().ok(),
                        group->processes().ok(), members_of_group(run).ok()};
    };
    CHECK(look() == std::array{true, true, true, true, true});
    CHECK(memory_of({::getpid()}));
    {
      const NoDescriptors none;
      CHECK(look() == std::array{false, false, false, false, false});
      CHECK(group->oom_kills().error().code == Errc::kUnavailable);  // the host's, not a command's
      CHECK_FALSE(memory_of({::getpid()}));
    }
    CHECK(group->oom_kills().value() == 1);
    // What is not there is nothing, and no error.
    fs::remove(run / "memory.oom_control");
    CHECK(group->oom_kills().value() == 0);
    for (const char* c : {"memory", "pids", "cpuacct"})
      fs::remove_all(fake.root() / c / "proctor/me/run");
  }

  TEST_CASE("who has come into a freezer by a number that was another's does not stand still") {
    FakeGroups fake;
    for (const char* c : {"pids", "freezer"}) fake.version1(c);
    fake.put("pids/proctor/me/run/pids.max");
    fake.put("freezer/proctor/me/run/freezer.state");
    CgroupLayout layout;
    for (const char* c : {"pids", "freezer"}) layout.v1[c] = {fake.path(c), ""};
    const CgroupHost host = CgroupHost::at(layout, "me");
    auto group = host.make("run", all_limits());
    REQUIRE(group.ok());
    const fs::path freezer = fake.root() / "freezer/proctor/me";
    // 70 ends as it is moved, and its number is given to another; 71 stays.
    int asked = 0;
    fake.put("freezer/proctor/me/run/cgroup.procs", "70\n70\n71\n");  // written over from its begin
    CHECK(group->freeze([&] {
      return ++asked < 3 ? std::vector<pid_t>{70, 71} : std::vector<pid_t>{71};
    }));
    CHECK(text_of(freezer / "cgroup.procs") == "70");
    CHECK(text_of(freezer / "run/freezer.state") == "FROZEN");
    for (const char* c : {"pids", "freezer"}) fs::remove_all(fake.root() / c / "proctor/me/run");
  }

  TEST_CASE("a freezer alone, or no hierarchy at all, keeps nothing") {
    FakeGroups fake;
    fake.version1("freezer");
    CgroupLayout layout;
    layout.v1["freezer"] = {fake.path("freezer"), ""};
    CHECK_FALSE(CgroupHost::at(layout, "me").has("freezer"));
    for (const CgroupHost& host : {CgroupHost::at({}, "me"), CgroupHost::none()}) {
      CHECK_FALSE(host.has("memory"));
      CHECK(host.version("memory").empty());
    }
    const CgroupHost none = CgroupHost::none();
    auto group = none.make("run", all_limits());
    REQUIRE(group.ok());
    CHECK(group->doors().empty());
    CHECK(group->memory_peak().value() == 0);
  }
}
