// How late a loop is.
#include <doctest/doctest.h>

#include <thread>

#include "common/wire/asio.h"
#include "coordinator/shell/loop_guards.h"

using namespace proctor;
using namespace std::chrono_literals;

TEST_SUITE("shell") {
  TEST_CASE("a loop that is on time has no stalls") {
    LagBook book;
    CHECK(book.figures() == LagFigures{});
    for (int i = 0; i < 100; ++i) book.late_by(1ms);
    CHECK(book.figures().p50_ms == 1.0);
    CHECK(book.figures().p99_ms == 1.0);
    CHECK(book.figures().stalled_ms == 0);
  }

  TEST_CASE("a stop of a second counts for every call that it made late") {
    LagBook book;
    for (int i = 0; i < 50; ++i) book.late_by(0ms);
    book.late_by(1s);
    const LagFigures seen = book.figures();
    CHECK(seen.max_ms == 1'000.0);
    CHECK(seen.stalled_ms == 1'000);
    // 50 calls on time, 50 between 20 ms and a second late.
    CHECK(seen.p50_ms <= 40.0);
    CHECK(900.0 < seen.p99_ms);
  }

  TEST_CASE("what is older than a minute no longer counts but in the sum") {
    LagBook book;
    book.late_by(500ms);
    for (std::size_t i = 0; i < LagBook::kKept; ++i) book.late_by(2ms);
    CHECK(book.figures().max_ms == 2.0);
    CHECK(book.figures().stalled_ms == 500);
  }

  TEST_CASE("a loop that is kept busy shows it") {
    boost::asio::io_context io(1);
    LoopLag lag(io);
    boost::asio::steady_timer block(io, 30ms);
    block.async_wait([](boost::system::error_code) { std::this_thread::sleep_for(150ms); });
    const auto until = std::chrono::steady_clock::now() + 60s;
    while (lag.figures().max_ms < 100.0 && std::chrono::steady_clock::now() < until)
      io.run_one_for(100ms);
    CHECK(100.0 <= lag.figures().max_ms);
    CHECK(100 <= lag.figures().stalled_ms);
  }
}
