#include "worker/sandbox/oci_runtime.h"

#include <doctest/doctest.h>

using namespace proctor;

TEST_SUITE("sandbox") {
  TEST_CASE("a crun that forgets its containers' groups is told by its version") {
    for (const char* fit : {"crun version 1.15\n", "crun version 1.15.1\ncommit: 0",
                            "crun version 2.0", "crun version 1.21.0.0.0.149-88f4"})
      CHECK_MESSAGE(crun_keeps(fit), fit);
    for (const char* unfit :
         {"crun version 1.8.1\ncommit: f8a096be060b22ccd3d5f3ebe44108517fbf6c30",
          "crun version 1.14.4", "crun version 0.99", "crun version 1", "crun version 1.",
          "crun version .15", "crun version -1.15", "crun version 99999999999.1",
          "runc version 1.15", "", "crun"})
      CHECK_FALSE_MESSAGE(crun_keeps(unfit), unfit);
  }

  TEST_CASE("a runtime of another name is refused") {
    const auto found = find_oci_runtime("youki");
    REQUIRE_FALSE(found.ok());
    CHECK(found.error().code == Errc::kInvalid);
    CHECK(found.error().detail == "oci runtime youki: expected runc, crun or runsc");
  }
}
