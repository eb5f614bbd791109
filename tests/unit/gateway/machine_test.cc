#include <doctest/doctest.h>

#include <random>

#include "worker/gateway/call_record.h"

using namespace proctor;

namespace {

using How = Settlement::How;
using State = CallMachine::State;

CallMachine sent(ModelApi api = ModelApi::kChat, bool free = false) {
  CallMachine m(api, free, 1000);
  m.sending();
  m.sent();
  return m;
}
How by_status(int status, bool free = false) {
  CallMachine m = sent(ModelApi::kChat, free);
  m.answered(status);
  return m.whole(std::nullopt).how;
}

}  // namespace

TEST_SUITE("gateway call") {
  TEST_CASE("nothing that was not sent whole costs anything") {
    CallMachine m(ModelApi::kChat, false, 10);
    CHECK(m.may_try_again());
    CHECK(m.failed().how == How::kReleased);
    CallMachine half(ModelApi::kChat, false, 10);
    half.sending();
    CHECK(half.may_try_again());
    CHECK(half.failed().how == How::kReleased);
  }

  TEST_CASE(
      "what was sent whole and not answered costs all that was reserved, and is not repeated") {
    CallMachine m = sent();
    CHECK_FALSE(m.may_try_again());
    const Settlement s = m.failed();
    CHECK(s.how == How::kCeiling);
    CHECK(s.flag == "unknown");
  }

  TEST_CASE("answers are settled by their status") {
    for (const int free : {400, 401, 403, 404, 408, 409, 413, 422, 429, 503, 529})
      CHECK(by_status(free) == How::kReleased);
    for (const int billed : {500, 502, 504, 599, 302, 402}) {
      CAPTURE(billed);
      CHECK(by_status(billed) == How::kCeiling);
    }
    CHECK(by_status(502, true) == How::kReleased);
    CHECK(by_status(302, true) == How::kCeiling);
    CHECK(by_status(200) == How::kCeiling);  // and no usage
  }

  TEST_CASE("a whole answer costs its usage, a broken one all that was reserved") {
    CallMachine m = sent();
    m.answered(200);
    Amount used;
    used.input_tokens = 8;
    used.output_tokens = 9;
    const Settlement s = m.whole(used);
    CHECK(s.how == How::kUsage);
    CHECK(s.actual == used);
    CallMachine broken = sent();
    broken.answered(200);
    CHECK(broken.failed().how == How::kCeiling);
  }

  TEST_CASE("a stream that breaks off is known to its input where that was said first") {
    Amount begun;
    begun.input_tokens = 50;
    begun.output_tokens = 1;
    CallMachine messages = sent(ModelApi::kMessages);
    messages.answered(200);
    const Settlement s = messages.cut(begun, std::nullopt);
    CHECK(s.how == How::kPartial);
    CHECK(s.actual.input_tokens == 50);
    CHECK(s.actual.output_tokens == 1000);
    CallMachine chat = sent();
    chat.answered(200);
    CHECK(chat.cut(begun, std::nullopt).how == How::kCeiling);
    CallMachine silent = sent(ModelApi::kMessages);
    silent.answered(200);
    CHECK(silent.cut(std::nullopt, std::nullopt).how == How::kCeiling);
  }

  TEST_CASE("what was answered is not repeated") {
    CallMachine m = sent();
    m.answered(429);
    CHECK_FALSE(m.may_try_again());
    CHECK(m.whole(std::nullopt).how == How::kReleased);
  }

  TEST_CASE(
      "whatever happens in whatever order, a call is settled once, and never for less than was "
      "sent") {
    for (unsigned seed = 0; seed < 2'000; ++seed) {
      std::mt19937 random(seed);  // NOLINT: the same numbers every time are wanted
      CallMachine m(random() % 2 == 0 ? ModelApi::kChat : ModelApi::kMessages, random() % 2 == 0,
                    100);
      bool was_sent = false;
      int status = 0;
      for (int step = 0; m.state() != State::kSettled && step < 50; ++step) {
        const auto dice = random() % 5;
        if (dice == 0 && m.may_try_again()) {
          m.again();
          status = 0;
        } else if (m.state() == State::kReserved && dice < 4) {
          m.sending();
        } else if (m.state() == State::kSending && dice < 4) {
          m.sent();
          was_sent = true;
        } else if (m.state() == State::kSent && dice < 4) {
          constexpr int kStatuses[] = {200, 429, 500, 503, 400};
          status = kStatuses[random() % 5];
          m.answered(status);
        } else {
          const bool answered = m.state() == State::kRelaying;
          const bool in_flight = m.state() == State::kSent;
          const Settlement s = answered && random() % 2 == 0 ? m.whole(std::nullopt) : m.failed();
          if (in_flight || (answered && status == 200)) CHECK(s.how == How::kCeiling);
          if (!was_sent) CHECK(s.how == How::kReleased);
        }
      }
    }
  }
}
