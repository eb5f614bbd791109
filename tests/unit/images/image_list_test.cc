#include "common/images/image_store.h"

#include <doctest/doctest.h>

using namespace proctor;

TEST_SUITE("images") {
  TEST_CASE("one image name has one spelling") {
    CHECK(plain_image_name("base") == "base:latest");
    CHECK(plain_image_name("base:1") == "base:1");
    CHECK(plain_image_name("host:5000/team/base") == "host:5000/team/base:latest");
    CHECK(plain_image_name("host:5000/team/base:2") == "host:5000/team/base:2");
  }
}
