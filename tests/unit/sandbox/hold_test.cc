#include "worker/sandbox/sandbox.h"

#include <doctest/doctest.h>

#include <thread>

using namespace proctor;
using std::chrono::milliseconds;

TEST_SUITE("sandbox") {
  TEST_CASE("a hold's clock stands still while it is on and never jumps") {
    Hold hold;
    const auto before = hold.now();
    hold.set(true);
    const auto held = hold.now();
    CHECK(before <= held);
    std::this_thread::sleep_for(milliseconds(20));
    CHECK(hold.now() == held);
    hold.set(true);  // again: nothing
    CHECK(hold.now() == held);
    hold.set(false);
    const auto after = hold.now();
    CHECK(held <= after);
    CHECK(after + milliseconds(20) <= Hold::Clock::now());
  }

  TEST_CASE("who watches a hold hears of its changes and of nothing else") {
    Hold hold;
    int heard = 0;
    {
      const Hold::Watch watch(hold, [&] { ++heard; });
      hold.set(false);
      CHECK(heard == 0);
      hold.set(true);
      hold.set(true);
      CHECK(heard == 1);
      hold.set(false);
      CHECK(heard == 2);
    }
    hold.set(true);
    CHECK(heard == 2);
  }

  TEST_CASE("waiting for a hold ends with it or with a cancellation") {
    Hold hold;
    hold.wait_until_off({});  // it is off
    hold.set(true);
    {
      std::jthread releases([&] { hold.set(false); });
      hold.wait_until_off({});
      CHECK_FALSE(hold.on());
    }
    hold.set(true);
    std::stop_source cancel;
    std::jthread cancels([&] { cancel.request_stop(); });
    hold.wait_until_off(cancel.get_token());
    CHECK(hold.on());
  }
}
