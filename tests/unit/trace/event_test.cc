#include "common/trace/event.h"

#include <doctest/doctest.h>

#include <limits>
#include <vector>

using namespace proctor;

namespace {

std::vector<TraceEvent> oracle_events() {
  return {{0, 1, Actor::kHarness, "run.start", {{"stage", "setup"}}, {}},
          {1, 2, Actor::kAgent, "tool.invoke", {{"cmd", {"ls", "-l"}}}, {}},
          {2, 3, Actor::kOperator, "operator.note", {{"note", "caf\xC3\xA9"}}, {}}};
}

std::vector<std::string> sealed_lines(std::vector<TraceEvent> events) {
  std::vector<std::string> lines;
  Digest prev;
  for (TraceEvent& e : events) {
    e.prev = prev;
    const Result<SealedEvent> sealed = seal_event(e);
    REQUIRE(sealed.ok());
    prev = sealed->hash;
    lines.push_back(sealed->line.substr(0, sealed->line.size() - 1));
  }
  return lines;
}

std::string refusal(Result<TraceEvent> r) {
  return r.ok() ? std::string("accepted") : r.error().detail;
}

}  // namespace

TEST_SUITE("trace") {
  TEST_CASE("the three events of STATISTICS E11 hash to its three digests") {
    const std::vector<std::string> expected{
        "7c95f352520a2db67f890416ce3db4efc1ab59641a263302ec73d3651cfa7aeb",
        "af169cc0aa26c8879e024b7fdf6de632645f5cde155350b0fe5185ff46988975",
        "6509be3fd6a35eae8d35916ac5472164cc0747df96d1eb0d8d425b184181a59c"};
    Digest prev;
    std::vector<TraceEvent> events = oracle_events();
    for (std::size_t i = 0; i < events.size(); ++i) {
      events[i].prev = prev;
      const Result<SealedEvent> sealed = seal_event(events[i]);
      REQUIRE(sealed.ok());
      CHECK(sealed->hash.hex() == expected[i]);
      prev = sealed->hash;
    }
  }

  TEST_CASE("the hand-written line is the canonical JSON of the event with its hash") {
    for (const std::string& line : sealed_lines(oracle_events())) {
      Result<Json> json = parse_json(line);
      REQUIRE(json.ok());
      CHECK(*canonical_json(*json) == line);
      const std::string hash = (*json)["hash"].string();
      json->erase("hash");
      CHECK(sha256(*canonical_json(*json)).hex() == hash);
    }
  }

  TEST_CASE("a chain is followed to its head") {
    EventChain chain;
    for (const std::string& line : sealed_lines(oracle_events())) REQUIRE(chain.accept(line).ok());
    CHECK(chain.length() == 3);
    CHECK(chain.head().hex() == "6509be3fd6a35eae8d35916ac5472164cc0747df96d1eb0d8d425b184181a59c");
  }

  TEST_CASE("every changed byte of a chain is refused on its own line or the next") {
    const std::vector<std::string> lines = sealed_lines(oracle_events());
    for (std::size_t l = 0; l < lines.size(); ++l) {
      for (std::size_t i = 0; i < lines[l].size(); ++i) {
        EventChain chain;
        for (std::size_t k = 0; k < l; ++k) REQUIRE(chain.accept(lines[k]).ok());
        std::string broken = lines[l];
        broken[i] = static_cast<char>(broken[i] ^ 1);
        CAPTURE(broken);
        CHECK_FALSE(chain.accept(broken).ok());
        CHECK(chain.length() == l);
      }
    }
  }

  TEST_CASE("lines that do not follow are refused by name") {
    const std::vector<std::string> lines = sealed_lines(oracle_events());
    EventChain chain;
    CHECK(refusal(chain.accept(lines[1])) == "seq 1 where 0 follows");
    REQUIRE(chain.accept(lines[0]).ok());
    CHECK(refusal(chain.accept(lines[0])) == "seq 0 where 1 follows");
    std::vector<TraceEvent> still = oracle_events();
    still[1].t = 1;
    CHECK(refusal(chain.accept(sealed_lines(still)[1])) == "t does not grow");
    std::vector<TraceEvent> other = oracle_events();
    other[0].payload = {{"stage", "other"}};
    CHECK(refusal(chain.accept(sealed_lines(other)[1])) ==
          "prev is not the hash of the event before");
    CHECK(refusal(chain.accept("{}")) == "actor: missing");
    CHECK(refusal(chain.accept("[]")) == "document: expected an object");
    CHECK(refusal(chain.accept("")) != "accepted");
    std::string spaced = lines[1];
    spaced.insert(1, " ");
    CHECK(refusal(chain.accept(spaced)) == "not written as canonical JSON");
    std::string more = lines[1];
    more.insert(1, "\"a\":1,");
    CHECK(refusal(chain.accept(more)) == "a: unknown field");
  }

  TEST_CASE("an event that could not be read back is not written") {
    const auto seal = [](std::string type, Json payload) {
      return seal_event({0, 0, Actor::kHarness, std::move(type), std::move(payload), {}});
    };
    CHECK(seal("agent.start", Json::object()).ok());
    for (const char* type : {"", ".", "a.", ".a", "a..b", "A", "a b", "a\"b", "a\n"})
      CHECK_FALSE(seal(type, Json::object()).ok());
    CHECK_FALSE(seal(std::string(65, 'a'), Json::object()).ok());
    CHECK_FALSE(seal("a", {{"x", 0.5}}).ok());
    CHECK_FALSE(seal("a", {{"x", std::numeric_limits<std::uint64_t>::max()}}).ok());
    CHECK_FALSE(seal("a", {{"x", "\xFF"}}).ok());
    CHECK_FALSE(seal("a", Json::array()).ok());
    const Result<SealedEvent> large = seal("a", {{"x", std::string(5 << 20, 'x')}});
    REQUIRE_FALSE(large.ok());
    CHECK(large.error().code == Errc::kExhausted);
    for (int depth = 1; depth < 40; ++depth) {  // whatever is sealed can be read
      Json nested = Json::object();
      for (int i = 1; i < depth; ++i) nested = {{"x", std::move(nested)}};
      const Result<SealedEvent> sealed = seal("a", nested);
      CHECK(sealed.ok() == (depth < 32));
      if (!sealed.ok()) continue;
      EventChain chain;
      CHECK(chain.accept(sealed->line.substr(0, sealed->line.size() - 1)).ok());
    }
  }
}
