#include "worker/sandbox/cgroup_files.h"

#include <doctest/doctest.h>

using namespace proctor;

TEST_SUITE("sandbox") {
  TEST_CASE("version 1 hierarchies are found with our groups in them") {
    const CgroupLayout l = parse_cgroup_layout(
        "30 20 0:26 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
        "31 20 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
        "32 20 0:28 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
        "33 20 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
        "34 20 0:30 / /proc rw - proc proc rw\n",
        "4:memory:/jobs/17\n3:cpu,cpuacct:/\n2:pids:/jobs/17\n0::/\n");
    CHECK(l.v1.size() == 4);
    CHECK(l.v1.at("memory") == CgroupPlace{"/sys/fs/cgroup/memory", "/jobs/17"});
    CHECK(l.v1.at("cpuacct") == CgroupPlace{"/sys/fs/cgroup/cpu,cpuacct", ""});
    CHECK(l.v1.at("pids") == CgroupPlace{"/sys/fs/cgroup/pids", "/jobs/17"});
    CHECK(l.v2 == CgroupPlace{"/sys/fs/cgroup/unified", ""});
    CHECK(l.mounts == std::vector<std::string>{"/sys/fs/cgroup/memory",
                                               "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/pids",
                                               "/sys/fs/cgroup/unified"});
  }

  TEST_CASE("version 2 is found with our group in it") {
    const CgroupLayout l = parse_cgroup_layout(
        "30 20 0:26 / /sys/fs/cgroup rw shared:9 master:1 - cgroup2 cgroup rw,nsdelegate\n",
        "0::/system.slice/proctor.service\n");
    CHECK(l.v1.empty());
    CHECK(l.v2 == CgroupPlace{"/sys/fs/cgroup", "/system.slice/proctor.service"});
  }

  TEST_CASE("a mount of a sub-group is seen from there") {
    const CgroupLayout l = parse_cgroup_layout(
        "30 20 0:26 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
        "4:memory:/docker/abc/inner\n");
    CHECK(l.v1.at("memory") == CgroupPlace{"/sys/fs/cgroup/memory", "/inner"});
  }

  TEST_CASE("lines that do not parse are left out") {
    for (const char* mountinfo :
         {"", "\n\n", "30", "30 20 0:26 / /sys - cgroup2", "a b c d e f - cgroup2 cgroup rw",
          "30 20 0:26 / relative rw - cgroup2 cgroup rw", "- - - - - -"}) {
      CAPTURE(mountinfo);
      const CgroupLayout l = parse_cgroup_layout(mountinfo, "0::/x\n4:memory\n::\n:memory:rel\n");
      CHECK(l.v1.empty());
      CHECK(l.v2.mount.empty());
    }
  }

  TEST_CASE("a group name is one component whatever it is made of") {
    CHECK(cgroup_component("17.2-agent") == "17.2-agent");
    CHECK(cgroup_component("../../x y") == "_._.._x_y");
    CHECK(cgroup_component("..") == "_.");
    CHECK(cgroup_component("") == "_");
    CHECK(cgroup_component(std::string(500, 'a')).size() == 100);
  }
}
