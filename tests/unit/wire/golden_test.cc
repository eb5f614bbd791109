// schemas/golden: a file for each version, with one encoded example of each kind.  Other programs
// (and older builds of ours) rely on these bytes: a change is a decision for the commit that makes
// it. PROCTOR_WRITE_GOLDEN=1 writes the files instead.
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <concepts>
#include <cstdlib>
#include <map>

#include "common/base/digest.h"
#include "common/base/files.h"
#include "common/base/parse.h"
#include "common/wire/codec.h"
#include "samples.h"
#include "tests/support/paths.h"

using namespace proctor;
using namespace proctor::wire;

namespace {

const fs::path kGolden = testing::source_dir() / "schemas/golden";

// The examples of one version: a line with the kind's name, then lines of digits.
fs::path golden_file(std::uint32_t version) {
  return kGolden / ("v" + std::to_string(version) + ".hex");
}

// 64 digits a line, so that a difference can be read.
std::string hex_lines(std::string_view bytes) {
  const std::string hex = to_hex(bytes);
  std::string out;
  for (std::size_t i = 0; i < hex.size(); i += 64) out += hex.substr(i, 64) + "\n";
  return out;
}

std::string from_hex(std::string_view digits) {
  std::string out;
  for (std::size_t i = 0; i < digits.size(); i += 2)
    out += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  return out;
}

// The bytes of a golden file's examples, by the name of their kind.
std::map<std::string, std::string> golden(std::uint32_t version) {
  const Result<std::string> text = read_file(golden_file(version), limits::kFrameBytes);
  REQUIRE_MESSAGE(text.ok(), golden_file(version));
  std::map<std::string, std::string> out;
  std::string kind;
  for (const std::string_view line : split(*text, '\n')) {
    if (!line.empty() && 'A' <= line.front() && line.front() <= 'Z')
      kind = line;
    else
      out[kind] += from_hex(line);
  }
  return out;
}

// The names of a message's members, in their order.
struct Names {
  template <class T>
  void operator()(const char* name, const T& value, const Rule& = {}) {
    if constexpr (std::same_as<T, AttemptId>)
      fields(*this, value);
    else
      names.emplace_back(name);
  }
  static void require(bool, const char*, std::string_view) {}
  static std::uint32_t version() { return wire::kVersion; }
  std::vector<std::string> names{};
};

bool has_word(std::string_view text, const std::string& word) {
  const auto is_part = [](char c) {
    return c == '_' || std::isalnum(static_cast<unsigned char>(c));
  };
  for (std::size_t at = text.find(word); at < text.size(); at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_part(text[at - 1])) && (end == text.size() || !is_part(text[end])))
      return true;
  }
  return false;
}

}  // namespace

TEST_SUITE("wire") {
  TEST_CASE("every kind encodes to its golden bytes and back") {
    std::string lines;
    for (const Message& m : samples::one_of_each())
      lines += std::string(kind_name(m)) + "\n" + hex_lines(encode(m));
    if (std::getenv("PROCTOR_WRITE_GOLDEN") != nullptr)
      REQUIRE(write_file(golden_file(wire::kVersion), lines, Durability::kLazy).ok());
    const auto examples = golden(wire::kVersion);
    CHECK(examples.size() == std::variant_size_v<Message>);
    for (const Message& m : samples::one_of_each()) {
      const std::string kind(kind_name(m));
      CAPTURE(kind);
      REQUIRE(examples.contains(kind));
      CHECK(hex_lines(examples.at(kind)) == hex_lines(encode(m)));
      const Result<Message> back = decode(examples.at(kind));
      REQUIRE_MESSAGE(back.ok(), back.error().detail);
      CHECK(back->index() == m.index());
      CHECK(encode(back.value()) == examples.at(kind));
    }
  }

  TEST_CASE("every golden file of every version still decodes") {
    for (std::uint32_t version = kOldestVersion; version <= wire::kVersion; ++version) {
      for (const auto& [kind, bytes] : golden(version)) {
        CAPTURE(version);
        const Result<Message> m = decode(bytes);
        REQUIRE_MESSAGE(m.ok(), m.error().detail);
        CHECK(kind_name(m.value()) == kind);
      }
    }
  }

  TEST_CASE("the schema has every message, member and word") {
    const Result<std::string> schema =
        read_file(testing::source_dir() / "schemas/wire.md", 1 << 20);
    REQUIRE(schema.ok());
    for (const Message& message : samples::one_of_each()) {
      std::visit(
          [&]<class M>(const M& m) {
            const std::string title =
                "**" + std::to_string(kKindOf<M>) + " " + std::string(kind_name(message)) + "**";
            CAPTURE(title);
            const std::size_t from = schema->find(title);
            REQUIRE(from != std::string::npos);
            const std::string_view section =
                std::string_view(*schema).substr(from, schema->find("\n**", from) - from);
            Names described;
            fields(described, m);
            for (const std::string& name : described.names)
              CHECK_MESSAGE(has_word(section, name), name);
          },
          message);
    }
    std::string counters;
    std::uint32_t version = 1;
    for (const auto& [name, member, since] : kUsageCounters) {
      if (since != version) counters += "; since " + std::to_string(version = since) + ": ";
      if (!counters.empty() && !counters.ends_with(' ')) counters += ", ";
      counters += name;
    }
    CHECK(has_word(*schema, counters));
    for (int i = 0; i <= static_cast<int>(RunOutcome::kInvalid); ++i)
      CHECK(has_word(*schema,
                     std::to_string(i) + " " + std::string(to_string(static_cast<RunOutcome>(i)))));
    for (int i = 0; i <= static_cast<int>(Termination::kModelOverloaded); ++i)
      CHECK(has_word(
          *schema, std::to_string(i) + " " + std::string(to_string(static_cast<Termination>(i)))));
  }

  // Changing one of these is a compatibility decision: an older peer refuses what a newer one
  // sends.
  TEST_CASE("the bounds that peers rely on are these") {
    CHECK(limits::kFrameBytes == 16'777'216);
    CHECK(kPlainFrameBytes == 2'097'152);
    CHECK(limits::kBatchItems == 4096);
    CHECK(limits::kSlotsMax == 4096);
    CHECK(limits::kChunkBytes == 1'048'576);
    CHECK(kBundlePartBytes == 16'776'192);
    CHECK(limits::kArchiveBytes == 1'073'741'824);
    CHECK(limits::kNameBytes == 100);
    CHECK(kRunNameBytes == 300);
    CHECK(limits::kDetailBytes == 4096);
    CHECK(kUsageCountMax == 1'000'000'000'000);
    CHECK(kLedgerMax.micros() == 9'007'199'254'740'991);
    for (const auto& [stage, number] : {std::pair(Stage::kAssigned, 0),
                                        {Stage::kPreparing, 1},
                                        {Stage::kAgent, 2},
                                        {Stage::kExtracting, 3},
                                        {Stage::kAcceptance, 4},
                                        {Stage::kPackaging, 5},
                                        {Stage::kUploading, 6}})
      CHECK(static_cast<int>(stage) == number);
    CHECK(static_cast<int>(Fault::kHost) == 0);
    CHECK(static_cast<int>(Fault::kTask) == 1);
    CHECK(static_cast<int>(Fault::kAgent) == 2);
  }
}
