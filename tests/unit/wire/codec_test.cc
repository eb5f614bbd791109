#include <doctest/doctest.h>

#include <msgpack.hpp>

#include "common/wire/codec.h"
#include "samples.h"

using namespace proctor;
using namespace proctor::wire;

namespace {

using Packer = msgpack::packer<msgpack::sbuffer>;

// A frame around a body that a test writes by hand.
template <class F>
std::string frame(std::uint32_t version, std::uint32_t kind, F body) {
  msgpack::sbuffer buffer;
  Packer p(buffer);
  p.pack_array(3);
  p.pack(version);
  p.pack(kind);
  body(p);
  return {buffer.data(), buffer.size()};
}

std::string refusal(const std::string& bytes) {
  const Result<Message> m = decode(bytes);
  REQUIRE_FALSE(m.ok());
  CHECK(m.error().code == Errc::kInvalid);
  return m.error().detail;
}

void pack_digest(Packer& p) {
  p.pack_bin(32);
  p.pack_bin_body(std::string(32, 'd').data(), 32);
}

// An Assign of one run whose last field the test chooses.
template <class F>
std::string assign_with_ask(F ask) {
  return frame(1, 8, [&](Packer& p) {
    p.pack_array(3);
    p.pack(std::uint64_t{1});
    pack_digest(p);
    p.pack_array(1);
    p.pack_array(8);
    p.pack(17);
    p.pack(1);
    p.pack("t/m/r1");
    pack_digest(p);
    pack_digest(p);
    p.pack(0);
    p.pack(0);
    ask(p);
  });
}

}  // namespace

TEST_SUITE("wire") {
  TEST_CASE("ten thousand random messages survive the round trip") {
    std::mt19937_64 rng(20'261'121);
    std::size_t seen[std::variant_size_v<Message>] = {};
    for (int i = 0; i < 10'000; ++i) {
      CAPTURE(i);
      const Message m = samples::random_message(rng);
      ++seen[m.index()];
      const std::string bytes = encode(m);
      const Result<Message> back = decode(bytes);
      REQUIRE_MESSAGE(back.ok(), back.error().detail);
      REQUIRE(back->index() == m.index());
      REQUIRE(encode(back.value()) == bytes);
    }
    for (const std::size_t n : seen) CHECK(0 < n);
  }

  TEST_CASE("fields come back in their own places") {
    Assign sent{Epoch(7), samples::digest_of("s"), {}};
    for (std::uint32_t i = 0; i < 1000; ++i)
      sent.runs.push_back({{RunId(i), AttemptNo(i + 1)},
                           "task/method/r" + std::to_string(i),
                           samples::digest_of("c"),
                           samples::digest_of("m"),
                           i,
                           i * 3,
                           MicroUsd::from_micros(i * 5)});
    const Result<Message> back = decode(encode(sent));
    REQUIRE(back.ok());
    const auto* got = std::get_if<Assign>(&back.value());
    REQUIRE(got != nullptr);
    CHECK(got->epoch == Epoch(7));
    CHECK(got->settings == samples::digest_of("s"));
    REQUIRE(got->runs.size() == 1000);
    const Assignment& last = got->runs.back();
    CHECK(last.attempt == AttemptId{RunId(999), AttemptNo(1000)});
    CHECK(last.run_name == "task/method/r999");
    CHECK(last.contract == samples::digest_of("c"));
    CHECK(last.method == samples::digest_of("m"));
    CHECK(last.replicate == 999);
    CHECK(last.seed == 2997);
    CHECK(last.ask == MicroUsd::from_micros(4995));
  }

  TEST_CASE("money outside the ledger's range is refused by message and field") {
    const std::string fine = assign_with_ask([](Packer& p) { p.pack(9'007'199'254'740'991); });
    CHECK(decode(fine).ok());
    CHECK(refusal(assign_with_ask([](Packer& p) { p.pack(-1); })) ==
          "Assign.runs[0].ask: negative");
    CHECK(refusal(assign_with_ask([](Packer& p) { p.pack(9'007'199'254'740'992); })) ==
          "Assign.runs[0].ask: 9007199254740992 is more than 9007199254740991");
    CHECK(refusal(assign_with_ask([](Packer& p) { p.pack(1.5); })) ==
          "Assign.runs[0].ask: not an integer");
    CHECK(refusal(assign_with_ask([](Packer& p) { p.pack_nil(); })) ==
          "Assign.runs[0].ask: not an integer");
    CHECK(refusal(assign_with_ask([](Packer&) {})).starts_with("not MessagePack"));
  }

  TEST_CASE("a field too few or too many is refused") {
    CHECK(refusal(frame(1, 6, [](Packer& p) { p.pack_array(1), p.pack("w1"); })) ==
          "Leave.boot: missing");
    CHECK(refusal(frame(1, 6, [](Packer& p) {
            p.pack_array(3), p.pack("w1"), p.pack(1), p.pack(2);
          })) == "Leave: 1 fields too many");
    CHECK(refusal(frame(1, 6, [](Packer& p) { p.pack("w1"); })) == "Leave: not an array");
    CHECK(refusal(frame(1, 10, [](Packer& p) {
            p.pack_array(1), p.pack_array(3), p.pack(1), p.pack(1), p.pack(2);
          })) == "Ack.results: half an attempt at the end");
  }

  TEST_CASE("enumerations and names and numbers outside their range are refused") {
    const auto progress = [](int stage, int attempt_no, std::uint64_t tokens) {
      return frame(1, 2, [=](Packer& p) {
        p.pack_array(2), p.pack(1), p.pack_array(1), p.pack_array(5), p.pack(3), p.pack(attempt_no);
        p.pack(stage), p.pack(true), p.pack_array(9);
        for (int i = 0; i < 9; ++i) p.pack(i == 5 ? tokens : std::uint64_t{0});
      });
    };
    CHECK(decode(progress(6, 1, kUsageCountMax)).ok());
    CHECK(refusal(progress(7, 1, 0)) == "Progress.running[0].stage: 7 is more than 6");
    CHECK(refusal(progress(1, 0, 0)) == "Progress.running[0].no: attempts count from 1");
    CHECK(refusal(progress(1, 1, kUsageCountMax + 1)) ==
          "Progress.running[0].usage.input_tokens: 1000000000001 is more than 1000000000000");
    const auto leave = [](std::string worker) {
      return frame(1, 6, [=](Packer& p) { p.pack_array(2), p.pack(worker), p.pack(1); });
    };
    CHECK(decode(leave(std::string(100, 'w'))).ok());
    CHECK(refusal(leave(std::string(101, 'w'))) == "Leave.worker: 101 bytes, at most 100");
    CHECK(refusal(leave("")) == "Leave.worker: empty");
    CHECK(refusal(leave("a\nb")) == "Leave.worker: has a control byte");
    CHECK(refusal(leave("\xff\xfe")) == "Leave.worker: not UTF-8");
  }

  TEST_CASE("lists hold as many items as their bound and not one more") {
    Ack most;
    most.results.assign(limits::kBatchItems, {RunId(limits::kPlanRows - 1), AttemptNo(UINT32_MAX)});
    CHECK(decode(encode(most)).ok());
    const auto want = [](std::uint32_t n) {
      return frame(1, 3, [=](Packer& p) {
        p.pack_array(1), p.pack_array(n);
        for (std::uint32_t i = 0; i < n; ++i) pack_digest(p);
      });
    };
    CHECK(decode(want(4096)).ok());
    CHECK(refusal(want(4097)) == "Want.digests: 4097 items, at most 4096");
    Assign big{Epoch(1), {}, {}};
    big.runs.assign(limits::kBatchItems, {{RunId(limits::kPlanRows - 1), AttemptNo(UINT32_MAX)},
                                          std::string(kRunNameBytes, 'n'),
                                          {},
                                          {},
                                          UINT32_MAX,
                                          UINT32_MAX,
                                          kLedgerMax});
    CHECK(decode(encode(big)).ok());
  }

  TEST_CASE("a payload must lie inside the whole it is part of") {
    const auto chunk = [](std::uint64_t offset, std::uint64_t total, std::uint32_t size) {
      return frame(1, 4, [=](Packer& p) {
        p.pack_array(7), p.pack(1), p.pack(3), p.pack(1), pack_digest(p), p.pack(offset),
            p.pack(total);
        p.pack_bin(size), p.pack_bin_body(std::string(size, 'x').data(), size);
      });
    };
    CHECK(decode(chunk(5, 10, 5)).ok());
    CHECK(refusal(chunk(6, 10, 5)) == "ArchiveChunk.bytes: end behind `total`");
    CHECK(refusal(chunk(11, 10, 0)) == "ArchiveChunk.bytes: end behind `total`");
    CHECK(decode(chunk(0, 2 << 20, 1 << 20)).ok());
    CHECK(refusal(chunk(0, 2 << 20, (1 << 20) + 1)).starts_with("not MessagePack"));
    CHECK(refusal(chunk(0, std::uint64_t{1} << 31, 1)) ==
          "ArchiveChunk.total: 2147483648 is more than 1073741824");
  }

  TEST_CASE("a bundle as large as a frame allows travels and a part of one too") {
    const Bundle whole{samples::digest_of("b"), std::string(kBundlePartBytes, 'b')};
    const Result<Message> back = decode(encode(whole));
    REQUIRE(back.ok());
    CHECK(std::get<Bundle>(back.value()).bytes.size() == kBundlePartBytes);
    CHECK(decode(encode(Bundle{samples::digest_of("b"), "end", 100, 103})).ok());
    const auto parts = [](std::uint64_t offset, std::uint64_t total) {
      return frame(1, 9, [=](Packer& p) {
        p.pack_array(4), pack_digest(p), p.pack_bin(1), p.pack_bin_body("x", 1), p.pack(offset),
            p.pack(total);
      });
    };
    CHECK(refusal(parts(1, 0)) == "Bundle.bytes: end behind `total`");
    CHECK(refusal(parts(5, 5)) == "Bundle.bytes: end behind `total`");
  }

  TEST_CASE("a result says consistently whether it has an archive") {
    ResultMessage m;
    m.attempt = {RunId(1), AttemptNo(1)};
    CHECK(decode(encode(m)).ok());
    m.archive = samples::digest_of("a");
    m.archive_bytes = 1;
    std::string bytes = encode(m);
    bytes.replace(bytes.find(std::string(32, 'a')), 32, std::string(32, '\0'));
    CHECK(refusal(bytes) ==
          "Result.archive_bytes: size and digest disagree on whether there is an archive");
  }

  TEST_CASE("text for people of any length and bytes can be sent") {
    for (const std::string& text : {std::string(10'000, 'x'), std::string(10'000, '\xff'),
                                    std::string("fine"), std::string()}) {
      const Result<Message> back = decode(encode(Refuse{text}));
      REQUIRE(back.ok());
      CHECK(std::get<Refuse>(back.value()).reason.size() <= limits::kDetailBytes);
      CHECK(std::get<Refuse>(back.value()).reason.starts_with(text == "fine" ? "fine" : ""));
      CHECK(std::get<Refuse>(back.value()).reason.empty() == text.empty());
    }
  }

  TEST_CASE("another protocol version is seen before anything is unpacked") {
    const std::string newer = frame(wire::kVersion + 1, 1, [](Packer& p) { p.pack_map(0); });
    CHECK(peek_version(newer) == wire::kVersion + 1);
    CHECK_FALSE(is_spoken(peek_version(newer)));
    CHECK(refusal(newer) ==
          "protocol version " + std::to_string(wire::kVersion + 1) + " is not spoken here");
    CHECK(wrong_version(3).reason == "protocol version 3 is not spoken here (4 to " +
                                         std::to_string(wire::kVersion) +
                                         "): update proctor-worker or proctor");
    CHECK(wrong_version(12, 13).reason == "protocol version 12 is not spoken here (13 to " +
                                              std::to_string(wire::kVersion) +
                                              "): update proctor-worker or proctor");
    CHECK(peek_version(encode(Ack{})) == wire::kVersion);
    CHECK(peek_version("") == 0);
    CHECK(peek_version("\x93") == 0);
    CHECK(peek_version("GET / HTTP/1.1\r\n") == 0);
    CHECK(peek_version(std::string("\x93\xcf\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11)) == 0);
    CHECK(refusal(frame(1, 99, [](Packer& p) { p.pack_array(0); })) == "unknown kind 99");
    CHECK(refusal(frame(1, 0, [](Packer& p) { p.pack_array(0); })) == "unknown kind 0");
  }

  TEST_CASE("a peer of the version before is spoken to in its own words") {
    Sync sync;
    sync.worker = WorkerId("w1");
    sync.version = "1";
    sync.campaign = "camp1";
    for (std::uint32_t version = kOldestServed; version <= wire::kVersion; ++version) {
      const std::string bytes = encode(sync, version);
      CHECK(peek_version(bytes) == version);
      const Result<Message> back = decode(bytes);
      REQUIRE_MESSAGE(back.ok(), back.error().detail);
      CHECK(std::get<Sync>(*back).campaign == (version < 5 ? "" : "camp1"));
      for (const Message& m : samples::one_of_each()) CHECK(decode(encode(m, version)).ok());
    }
    CHECK_FALSE(is_served(kOldestServed - 1));
  }

  TEST_CASE("an end that an older peer has no word for is told as what comes nearest") {
    ResultMessage m;
    for (const Message& one : samples::one_of_each())
      if (const auto* result = std::get_if<ResultMessage>(&one)) m = *result;
    m.termination = Termination::kBreaker;
    const auto heard = [&](std::uint32_t version) {
      const Result<Message> back = decode(encode(m, version));
      REQUIRE_MESSAGE(back.ok(), back.error().detail);
      return std::get<ResultMessage>(*back).termination;
    };
    CHECK(heard(wire::kVersion) == Termination::kBreaker);
    CHECK(heard(9) == Termination::kBudgetExceeded);
    m.termination = Termination::kModelOverloaded;
    CHECK(heard(wire::kVersion) == Termination::kModelOverloaded);
    CHECK(heard(10) == Termination::kInfrastructure);
  }

  TEST_CASE("a refusal of a later version can be read by this one") {
    const auto later = [](std::uint32_t version) {
      return frame(version, 13, [](Packer& p) {
        p.pack_array(3), p.pack("too old"), p.pack(5), p.pack_array(1), p.pack("more");
      });
    };
    const Result<Message> m = decode(later(wire::kVersion + 1));
    REQUIRE_MESSAGE(m.ok(), m.error().detail);
    CHECK(std::get<Refuse>(m.value()).reason == "too old");
    CHECK(refusal(later(1)) == "Refuse: 2 fields too many");
    CHECK(refusal(later(0)) == "protocol version 0 is not spoken here");
  }
}
