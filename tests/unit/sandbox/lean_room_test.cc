#include "worker/sandbox/lean_host.h"

#include <doctest/doctest.h>

using namespace proctor;

TEST_SUITE("lean room") {
  TEST_CASE("places of mounts are read in their order and as they are called") {
    const std::vector<std::string> places = mount_points(
        "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
        "31 22 0:25 / /usr/a\\040b rw shared:1 - tmpfs tmpfs rw\n"
        "32 31 0:26 / /usr/a\\040b/c\\134d rw - tmpfs tmpfs rw\n"
        "33 22 0:27 / /usrlocal rw - tmpfs tmpfs rw");
    CHECK(places == std::vector<std::string>{"/", "/usr/a b", "/usr/a b/c\\d", "/usrlocal"});
    CHECK(mounts_below(places, "/usr") == std::vector<std::string>{"/usr/a b", "/usr/a b/c\\d"});
    CHECK(mounts_below(places, "/usr/a b/c\\d").empty());
  }
  TEST_CASE("what is no line of a mountinfo names no place") {
    for (const char* text : {"", "\n", "1", "1 2 3 4", "1 2 3 4 ", "    ", "\n\n1 2\n"}) {
      CAPTURE(text);
      CHECK(mount_points(text).size() <= 1);
    }
    CHECK(mount_points("1 2 3 4 /a\\04").front() == "/a\\04");
    CHECK(mount_points("1 2 3 4 /a\\777x").size() == 1);
  }
}
