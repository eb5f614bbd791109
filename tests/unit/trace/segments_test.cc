#include "common/trace/model_calls.h"

#include <doctest/doctest.h>

#include "common/trace/verify.h"

using namespace proctor;

namespace {

std::string hex(std::string_view text) {
  return sha256(text).hex();
}

struct Said {
  TempDir temp = TempDir::create("segments").value();
  const fs::path& dir() const { return temp.path(); }
  std::string read(const char* file) const { return *read_file(dir() / file, 1 << 20); }
  void write(const char* file, std::string_view bytes) const {
    REQUIRE(write_file(dir() / file, bytes, Durability::kLazy).ok());
  }
  SegmentWriter writer(std::uint64_t most = 1'000) const {
    auto w = SegmentWriter::open(dir(), most);
    if (!w.ok()) FAIL(w.error().detail);
    return std::move(w).value();
  }
  void keep(SegmentWriter& w, std::string_view text) const { REQUIRE(w.put(hex(text), text)); }
};

TraceEvent event(const char* type, Json payload) {
  TraceEvent e;
  e.type = type;
  e.payload = std::move(payload);
  return e;
}

std::vector<std::string> problems_of(const fs::path& dir, const std::vector<TraceEvent>& events) {
  std::vector<std::string> out;
  ModelCallAudit audit(dir, [&](std::string_view, const std::string& what, std::uint64_t line) {
    out.push_back(std::to_string(line) + ": " + what);
  });
  for (std::size_t i = 0; i < events.size(); ++i) audit.on(events[i], i + 1);
  return out;
}

}  // namespace

TEST_SUITE("segments") {
  TEST_CASE("each piece is kept once, and comes back by its digest") {
    const Said said;
    {
      SegmentWriter w = said.writer();
      for (const char* text : {"one", "two", "one"}) said.keep(w, text);
    }
    CHECK(said.read(kSegmentsFile) == "onetwo");
    const auto reader = SegmentReader::open(said.dir());
    REQUIRE(reader.ok());
    CHECK(reader->index().size() == 2);
    CHECK(reader->read(hex("two")).value() == "two");
    CHECK(reader->read(hex("three")).error().code == Errc::kNotFound);
    said.write(kSegmentsFile, "onetwO");
    CHECK(SegmentReader::open(said.dir())->read(hex("two")).error().code == Errc::kCorrupt);
    said.write(kSegmentsFile, "onetw");
    CHECK(SegmentReader::open(said.dir()).error().code == Errc::kCorrupt);
  }

  TEST_CASE("what a killed writer left half is cut off, wherever it was killed") {
    const Said said;
    {
      SegmentWriter w = said.writer();
      said.keep(w, "first");
      said.keep(w, "second");
    }
    const std::string segments = said.read(kSegmentsFile), index = said.read(kSegmentIndexFile);
    const std::size_t one = index.find('\n') + 1;
    for (std::size_t cut = one; cut < index.size(); ++cut) {
      said.write(kSegmentIndexFile, index.substr(0, cut));
      said.write(kSegmentsFile, segments + "and bytes that no line names");
      {
        SegmentWriter w = said.writer();
        said.keep(w, "second");
        said.keep(w, "third");
      }
      CHECK(said.read(kSegmentsFile) == segments + "third");
      CHECK(SegmentReader::open(said.dir())->read(hex("third")).value() == "third");
    }
  }

  TEST_CASE("there is an end to what is kept, also over several lives") {
    const Said said;
    {
      SegmentWriter w = said.writer(8);
      said.keep(w, "12345");
      CHECK_FALSE(w.put(hex("6789"), "6789"));
      said.keep(w, "678");
    }
    SegmentWriter w = said.writer(8);
    CHECK_FALSE(w.put(hex("9"), "9"));
    said.keep(w, "678");
  }

  TEST_CASE("an index of another shape is refused with its line") {
    const std::string a = hex("a"), b = hex("b");
    for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
             {a + " 0 1\n" + b + " 2 1\n", "line 2: does not follow the line before"},
             {a + " 0 1\n" + a + " 1 1\n", "line 2: a digest for the second time"},
             {a + " 0 0\n", "line 1: does not follow the line before"},
             {a + " 0\n", "line 1: expected DIGEST OFFSET LENGTH"},
             {a + " 0 1 2\n", "line 1: expected DIGEST OFFSET LENGTH"},
             {a + " 0 99999999999999999999\n", "line 1: expected DIGEST OFFSET LENGTH"},
             {"x 0 1\n", "line 1: no digest"}}) {
      const auto index = parse_segment_index(text);
      REQUIRE_FALSE(index.ok());
      CHECK(index.error().detail == why);
    }
    CHECK(parse_segment_index(a + " 0 1").value().empty());
  }

  TEST_CASE("what a trace says of its calls is held against what was kept") {
    const Said said;
    {
      SegmentWriter w = said.writer();
      for (const char* text : {"{\"a\":", "1}", "answer"}) said.keep(w, text);
    }
    const Json pieces = {hex("{\"a\":"), hex("1}")};
    const Json request = {
        {"call", 1}, {"kept", true}, {"digest", hex("{\"a\":1}")}, {"pieces", pieces}};
    const Json response = {
        {"call", 1}, {"kept", true}, {"digest", hex("answer")}, {"charged_micros", 70}};
    const Json closed = {{"charged_micros", 70}};
    const auto events = [&](const Json& q, const Json& a, const Json& end) {
      return std::vector{event("gateway.open", {{"pieces", true}}), event("model.request", q),
                         event("model.response", a), event("gateway.closed", end)};
    };
    CHECK(problems_of(said.dir(), events(request, response, closed)).empty());
    Json other = request;
    other["digest"] = hex("another");
    CHECK(problems_of(said.dir(), events(other, response, closed)) ==
          std::vector<std::string>{
              "2: the pieces that were kept make another text than the event says"});
    other = request;
    other["pieces"].push_back(hex("gone"));
    CHECK(problems_of(said.dir(), events(other, response, closed)).size() == 1);
    other = response;
    other["call"] = 2;
    CHECK(problems_of(said.dir(), events(request, other, closed)) ==
          std::vector<std::string>{"3: an answer to a call that was not made",
                                   "4: the gateway closed while a call had no end"});
    CHECK(problems_of(said.dir(), events(request, response, {{"charged_micros", 71}})) ==
          std::vector<std::string>{
              "4: the gateway told 71 micro-dollars where its calls come to 70"});
    // A worker of before, that kept each text in a file of its own.
    auto old = events(other, response, closed);
    old[0].payload = Json::object();
    other = request;
    other.erase("pieces");
    old[1].payload = other;
    CHECK(problems_of(said.dir(), old).empty());
    // A worker that was killed in the middle closed nothing, and began anew.
    auto two = events(request, response, closed);
    two.insert(two.begin(),
               {event("gateway.open", {{"pieces", true}}), event("model.request", request)});
    CHECK(problems_of(said.dir(), two).empty());
  }
}
