#include "worker/sandbox/runtime_files.h"

#include <doctest/doctest.h>

using namespace proctor;

TEST_SUITE("sandbox") {
  TEST_CASE("a runtime of another name is refused") {
    for (const std::string name : {"youki", "crun"}) {
      const auto found = find_oci_runtime(name);
      REQUIRE_FALSE(found.ok());
      CHECK(found.error().code == Errc::kInvalid);
      CHECK(found.error().detail == "oci runtime " + name + ": expected runc or runsc");
    }
  }
}
