#include "common/trace/model_calls.h"

#include <doctest/doctest.h>

using namespace proctor;

namespace {

std::vector<CassetteCall> two_calls() {
  CassetteCall a;
  a.run = "t/m/r1";
  a.route = "chat";
  a.model = "big";
  a.status = 200;
  a.pieces = {"{\"messages\":[", "1", "]}"};
  a.answer = "{\"x\":\"\u00e9\"}";
  CassetteCall b = a;
  b.pieces.insert(b.pieces.begin() + 2, ",2");
  b.streamed = true;
  b.status = 429;
  b.answer = "";
  return {a, b};
}

std::string error_of(const std::string& text) {
  const auto parsed = parse_cassette(text);
  return parsed.ok() ? "" : parsed.error().detail;
}

std::string with(std::string text, const std::string& part, const std::string& instead) {
  const std::size_t at = text.find(part);
  REQUIRE(at != std::string::npos);
  return text.replace(at, part.size(), instead);
}

}  // namespace

TEST_SUITE("cassette") {
  TEST_CASE("a recording reads back as it was written, and holds each piece once") {
    const std::string text = cassette_text(two_calls()).value();
    CHECK(parse_cassette(text).value() == two_calls());
    const std::string begin = R"({"piece":"{\"messages\":["})";
    CHECK(text.find(begin) != std::string::npos);
    CHECK(text.find(begin, text.find(begin) + 1) == std::string::npos);
    CHECK(parse_cassette(cassette_text({}).value()).value().empty());
  }

  TEST_CASE("a recording that was edited, cut or is none is refused with its line") {
    const std::string text = cassette_text(two_calls()).value();
    CHECK(error_of("") == "line 1: no end of the line");
    CHECK(error_of("{}\n") == "line 1: expected {\"proctor_cassette\":1,\"calls\":N}");
    CHECK(error_of(with(text, "\"calls\":2", "\"calls\":3")) ==
          "line 8: holds 2 calls where its first line says 3");
    CHECK(error_of(with(text, "{\"piece\":\"1\"}", "{\"piece\":\"7\"}")) ==
          "line 6: digest: not that of request and answer: the recording was edited");
    CHECK(error_of(with(text, "\"request\":[0,1,2]", "\"request\":[0,1,9]")) ==
          "line 6: request: no such piece");
    CHECK(error_of(with(text, "\"status\":429", "\"status\":42")) ==
          "line 8: status: expected 200 to 599");
    for (std::size_t cut = 0; cut < text.size(); ++cut)
      CHECK_FALSE(parse_cassette(text.substr(0, cut)).ok());
    std::vector<CassetteCall> bad = two_calls();
    bad[1].answer = "\xff";
    CHECK(cassette_text(bad).error().detail == "call 2 of the recording is no UTF-8");
  }

  TEST_CASE("a few bytes cannot name gigabytes") {
    CassetteCall call = two_calls()[0];
    call.pieces = {std::string(std::size_t{1} << 20, 'x')};
    std::string text = cassette_text({call}).value();
    std::string many = "0";
    for (int i = 0; i < 2'000; ++i) many += ",0";
    text = with(text, "\"request\":[0]", "\"request\":[" + many + "]");
    CHECK(parse_cassette(text).error().code == Errc::kExhausted);
  }
}
