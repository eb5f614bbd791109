#include "common/base/json_fields.h"

#include <doctest/doctest.h>

#include "common/base/ids.h"

namespace proctor {
namespace {
enum class Colour : std::uint8_t { kRed, kGreen };
constexpr auto words(Colour) {
  return std::to_array<Word<Colour>>({{"green", Colour::kGreen}, {"red", Colour::kRed}});
}

struct Part {
  std::string id;
  std::optional<Digest> digest{};
  friend bool operator==(const Part&, const Part&) = default;
};
void fields(auto& v, Is<Part> auto& p) {
  v("id", p.id, {.bytes = 4});
  v("digest", p.digest);
}

struct Whole {
  bool flag = false;
  std::uint32_t small = 0;
  std::int64_t below = 0;
  Colour colour = Colour::kRed;
  RunId run;
  MicroUsd money;
  std::vector<Part> parts;
  std::map<std::string, std::uint64_t> counts;
  std::string note{};
  friend bool operator==(const Whole&, const Whole&) = default;
};
void fields(auto& v, Is<Whole> auto& w) {
  v("flag", w.flag);
  v("small", w.small, {.most = 1000});
  v("below", w.below);
  v.section("inner", [&](auto& i) {
    i("colour", w.colour);
    i("run", w.run);
    i("money", w.money);
  });
  v("parts", w.parts, {.items = 2});
  v("counts", w.counts);
  v("note", w.note, kOptional);
  v.follows("twice", std::uint64_t{2} * w.small);
  v.require(w.flag || w.note.empty(), "note", "only with flag");
}

Whole sample() {
  return {true,
          7,
          -3,
          Colour::kGreen,
          RunId(4),
          MicroUsd::from_micros(12),
          {{"a", sha256("x")}, {"b", std::nullopt}},
          {{"k", 9}}};
}

std::string dots_of(const std::uint32_t& n) {
  return std::string(n, '.');
}
Result<std::uint32_t> dots_in(std::string_view text) {
  if (text.find_first_not_of('.') != text.npos) return Error{Errc::kInvalid, "not dots"};
  return static_cast<std::uint32_t>(text.size());
}

struct Grown {
  std::uint32_t dots = 0, added = 3, inner = 0;
};
void fields(auto& v, Is<Grown> auto& g) {
  v("dots", AsText{g.dots, dots_of, dots_in}, kOptional);
  v("added", g.added, kLater);
  v.section("section", [&](auto& i) { i("inner", g.inner); });
}

std::string problem(Json json) {
  const Result<Whole> read = from_json<Whole>(json, "w");
  return read.ok() ? "" : read.error().detail;
}
}  // namespace

TEST_CASE("a described structure is JSON and back") {
  const Json json = to_json(sample());
  CHECK(json["inner"].dump() == R"({"colour":"green","money":12,"run":4})");
  CHECK(json["parts"][1].dump() == R"({"digest":null,"id":"b"})");
  CHECK(json["twice"] == 14);
  CHECK_FALSE(json.contains("note"));
  const Result<Whole> read = from_json<Whole>(json);
  REQUIRE(read.ok());
  CHECK(*read == sample());
}

TEST_CASE("a wrong member is refused with its path") {
  Json json = to_json(sample());
  const auto with = [&](auto change) {
    Json changed = json;
    change(changed);
    return problem(changed);
  };
  CHECK(with([](Json& j) { j.erase("flag"); }) == "w.flag: missing");
  CHECK(with([](Json& j) { j["flag"] = 1; }) == "w.flag: expected true or false, found number");
  CHECK(with([](Json& j) { j["small"] = 1001; }) == "w.small: 1001 is more than 1000");
  CHECK(with([](Json& j) { j["small"] = -1; }) == "w.small: expected a whole number, found number");
  CHECK(with([](Json& j) { j["inner"]["colour"] = "blue"; }) ==
        "w.inner.colour: expected green or red");
  CHECK(with([](Json& j) { j["inner"]["more"] = 1; }) == "w.inner.more: unknown field");
  CHECK(with([](Json& j) { j["parts"][1].erase("digest"); }) == "w.parts[1].digest: missing");
  CHECK(with([](Json& j) { j["parts"][0]["id"] = "abcde"; }) ==
        "w.parts[0].id: longer than 4 bytes");
  CHECK(with([](Json& j) { j["parts"].push_back(1), j["parts"].push_back(1); }) ==
        "w.parts: has too many items");
  CHECK(with([](Json& j) { j["counts"]["x"] = "y"; }) ==
        "w.counts.x: expected a whole number, found string");
  CHECK(with([](Json& j) { j["twice"] = 1; }) == "w.twice: expected 14");
  CHECK(with([](Json& j) { j["zeta"] = 1; }) == "w.zeta: unknown field");
  CHECK(with([](Json& j) { j["flag"] = false, j["note"] = "n"; }) == "w.note: only with flag");
  CHECK(problem(Json(3)) == "w: expected an object");
}

TEST_CASE("a clean writer writes texts that a reader takes") {
  JsonWriter v(JsonWriter::Texts::kClean, 64);
  const Part part{std::string(200, 'a') + "\xff", std::nullopt};
  v("id", part.id);
  const Json json = v.take();
  CHECK(json["id"].string().size() <= 64 + 18);
}

TEST_CASE("records of other versions are read where a reader takes them") {
  CHECK(to_json(Grown{.dots = 2}).dump() == R"({"added":3,"dots":"..","section":{"inner":0}})");
  CHECK(to_json(Grown()).dump() == R"({"added":3,"section":{"inner":0}})");
  const auto read = [](const char* text, Versions versions) {
    return from_json<Grown>(parse_json(text).value(), "", Errc::kCorrupt, versions);
  };
  CHECK(read(R"({"dots":"..","section":{"inner":1}})", Versions::kThis)->added == 3);
  CHECK(read(R"({"dots":"..","section":{"inner":1}})", Versions::kThis)->dots == 2);
  CHECK(read(R"({"dots":"x","section":{"inner":1}})", Versions::kThis).error().detail ==
        "dots: not as it is written");
  CHECK(read("{}", Versions::kThis).error().detail == "section: missing");
  CHECK(read(R"({"newer":1})", Versions::kAny).ok());
  CHECK(read(R"({"section":{"newer":1,"inner":2}})", Versions::kAny)->inner == 2);
}

TEST_CASE("the words of an enumeration") {
  CHECK(word_of(Colour::kRed) == "red");
  CHECK(from_word<Colour>("green") == Colour::kGreen);
  CHECK_FALSE(from_word<Colour>("").has_value());
  CHECK(words_listed<Colour>() == "green or red");
}
}  // namespace proctor
