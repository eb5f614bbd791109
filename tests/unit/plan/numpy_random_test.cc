#include "common/plan/plan.h"

#include <doctest/doctest.h>

#include <string>

using namespace proctor;

namespace {
using Numbers = std::vector<std::uint32_t>;
}

// Oracles: STATISTICS E11, computed with numpy 1.24.
TEST_SUITE("plan") {
  TEST_CASE("the 32-bit draws of RandomState 20260307 are those of NumPy") {
    NumpyRandom random(20260307);
    for (const std::uint32_t expected :
         {3401266767U, 2801730483U, 1458952523U, 655301279U, 13677634U, 4248765137U})
      CHECK(random.next_u32() == expected);
  }

  TEST_CASE("random_sample makes 53 bits of two draws as NumPy does") {
    NumpyRandom random(20260307);
    CHECK(random.random_sample() == 0.7919191319668941);
    CHECK(random.random_sample() == 0.3396888535661564);
    CHECK(random.random_sample() == 0.0031845792326533617);
  }

  TEST_CASE("permutations equal NumPy's for the planned seed and for declared deviations") {
    CHECK(NumpyRandom(20260307).permutation(10) == Numbers{4, 8, 0, 9, 5, 7, 6, 1, 2, 3});
    CHECK(NumpyRandom(20260307).permutation(20) ==
          Numbers{17, 0, 8, 5, 7, 12, 19, 3, 6, 13, 10, 16, 4, 18, 1, 9, 14, 2, 11, 15});
    CHECK(NumpyRandom(1337).permutation(20) ==
          Numbers{5, 3, 4, 0, 15, 11, 2, 12, 13, 1, 16, 17, 10, 14, 6, 9, 19, 18, 7, 8});
    CHECK(NumpyRandom(2025).permutation(20) ==
          Numbers{17, 2, 11, 14, 15, 4, 9, 7, 16, 13, 1, 10, 5, 8, 6, 0, 19, 3, 12, 18});
  }

  TEST_CASE("shuffle reorders a sequence as NumPy does") {
    std::string letters = "ABCDEF";
    NumpyRandom(20260307).shuffle(std::span<char>(letters));
    CHECK(letters == "ABCEFD");
  }

  TEST_CASE("a permutation of none or one element draws nothing") {
    NumpyRandom random(20260307);
    CHECK(random.permutation(0).empty());
    CHECK(random.permutation(1) == Numbers{0});
    CHECK(random.next_u32() == 3401266767U);
  }

  TEST_CASE("interval stays within its bound and takes all 32 bits when asked to") {
    NumpyRandom random(7);
    for (const std::uint32_t max : {1U, 2U, 3U, 4U, 255U, 256U, 1000U})
      for (int i = 0; i < 200; ++i) CHECK(random.interval(max) <= max);
    NumpyRandom whole(20260307);
    CHECK(whole.interval(0xFFFFFFFFU) == 3401266767U);
  }
}
