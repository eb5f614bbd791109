// Bytes of a stranger: cut, changed, random, or made to explode.  Nothing may crash or hang, and
// what does decode must be a message we could have sent.
#include <doctest/doctest.h>

#include <cstdlib>

#include "common/base/digest.h"
#include "common/wire/codec.h"
#include "samples.h"

using namespace proctor;
using namespace proctor::wire;

namespace {

// Decoded means inside all bounds, or encode() would assert.
bool decodes(const std::string& bytes) {
  const Result<Message> m = decode(bytes);
  if (!m.ok()) {
    REQUIRE_FALSE(m.error().detail.empty());
    return false;
  }
  const std::string again = encode(m.value());
  REQUIRE(decode(again).ok());
  return true;
}

}  // namespace

TEST_SUITE("wire") {
  TEST_CASE("every truncation of every kind is refused") {
    std::size_t cuts = 0;
    for (const Message& m : samples::one_of_each()) {
      CAPTURE(kind_name(m));
      const std::string bytes = encode(m);
      for (std::size_t n = 0; n < bytes.size(); ++n, ++cuts) {
        CAPTURE(n);
        CHECK_FALSE(decodes(bytes.substr(0, n)));
      }
      CHECK_FALSE(decodes(bytes + '\0'));
    }
    CHECK(600 < cuts);
  }

  TEST_CASE("every single byte change of every kind is refused or still a valid message") {
    std::size_t refused = 0;
    std::size_t accepted = 0;
    for (const Message& m : samples::one_of_each()) {
      const std::string bytes = encode(m);
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        std::string changed = bytes;
        for (int b = 0; b < 256; ++b) {
          changed[i] = static_cast<char>(b);
          ++(decodes(changed) ? accepted : refused);
        }
      }
    }
    CHECK(0 < accepted);  // another digest or number is still one
    CHECK(10'000 < refused);
  }

  TEST_CASE("bombs are refused without a large allocation") {
    const std::string sync = "\x93\x01\x01";
    CHECK_FALSE(decodes(std::string("\xdd\xff\xff\xff\xff", 5)));
    CHECK_FALSE(decodes(sync + std::string("\xdd\xff\xff\xff\xff", 5)));
    CHECK_FALSE(decodes(sync + std::string("\xdf\xff\xff\xff\xff", 5)));
    CHECK_FALSE(decodes(sync + std::string("\xdb\xff\xff\xff\xff", 5)));
    CHECK_FALSE(decodes(sync + std::string("\xc6\xff\xff\xff\xff", 5)));
    CHECK_FALSE(decodes(sync + std::string("\xc9\xff\xff\xff\xff\x01", 6)));
    CHECK_FALSE(decodes(std::string(200'000, '\x91') + '\x01'));
    CHECK_FALSE(decodes(sync + std::string(200'000, '\x91') + '\x01'));
    CHECK_FALSE(decodes(std::string("\x93\x01\x09") + std::string(200'000, '\x91')));
    CHECK_FALSE(decodes(sync + std::string(limits::kFrameBytes, '\x01')));
    std::string wide = sync;  // arrays of arrays, each as wide as allowed
    while (wide.size() < kPlainFrameBytes - 9000)
      wide += std::string("\xdc\x20\x00", 3) + std::string(8192, '\xc0');
    CHECK_FALSE(decodes(wide));
  }

  TEST_CASE("random bytes and random damage never crash the decoder") {
    const char* given = std::getenv("PROCTOR_FUZZ_SEED");
    const std::uint64_t seed = given == nullptr ? 4711 : std::strtoull(given, nullptr, 10);
    MESSAGE("PROCTOR_FUZZ_SEED=" << seed);
    std::mt19937_64 rng(seed);
    std::size_t accepted = 0;
    for (int i = 0; i < 30'000; ++i) {
      CAPTURE(i);
      std::string bytes;
      if (i % 3 == 0) {  // an envelope in front, or every one would end at the first byte
        bytes = {'\x93', '\x01',
                 static_cast<char>(1 + samples::below(rng, std::variant_size_v<Message>))};
        bytes.resize(3 + samples::below(rng, 60));
        for (std::size_t k = 3; k < bytes.size(); ++k) bytes[k] = static_cast<char>(rng());
      } else {
        bytes = encode(samples::random_message(rng));
        for (std::uint64_t hits = 1 + samples::below(rng, 4); 0 < hits; --hits) {
          const std::size_t at = samples::below(rng, bytes.size());
          switch (samples::below(rng, 3)) {
            case 0:
              bytes[at] = static_cast<char>(rng());
              break;
            case 1:
              bytes.erase(at, 1 + samples::below(rng, 8));
              break;
            default:
              bytes.insert(at, 1, static_cast<char>(rng()));
          }
          if (bytes.empty()) break;
        }
      }
      accepted += decodes(bytes) ? 1 : 0;
    }
    CHECK(0 < accepted);
  }
}
