#include "worker/network/resolver.h"

#include <doctest/doctest.h>
#include <sys/eventfd.h>

#include <algorithm>

#include "common/base/owned.h"
#include "tests/support/programs.h"

namespace proctor::testing {

TEST_SUITE("network resolver") {
  TEST_CASE("localhost is this machine") {
    const UniqueFd stop(::eventfd(0, EFD_CLOEXEC));
    const auto found = must(resolve_name(
        "localhost", stop.get(), std::chrono::steady_clock::now() + std::chrono::seconds(60)));
    CHECK(std::ranges::find(found, *parse_ip("127.0.0.1")) != found.end());
  }

  TEST_CASE("who is told to stop does not wait for an answer") {
    const UniqueFd stop(::eventfd(1, EFD_CLOEXEC));
    const auto begun = std::chrono::steady_clock::now();
    const auto found =
        resolve_name("name-that-nobody-has.invalid", stop.get(), begun + std::chrono::seconds(60));
    CHECK_FALSE(found.ok());
    CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(30));
    const UniqueFd never(::eventfd(0, EFD_CLOEXEC));
    CHECK_FALSE(resolve_name("name-that-nobody-has.invalid", never.get(), begun).ok());
  }
}

}  // namespace proctor::testing
