#include "common/base/csv.h"

#include <doctest/doctest.h>

using namespace proctor;

namespace {

using Record = std::vector<std::string>;

std::vector<Record> read(std::string_view text) {
  std::vector<Record> out;
  CsvReader reader(text);
  std::vector<std::string_view> fields;
  for (;;) {
    const Result<bool> more = reader.next(fields);
    REQUIRE(more.ok());
    if (!*more) return out;
    out.emplace_back(fields.begin(), fields.end());
  }
}

}  // namespace

TEST_SUITE("base") {
  // Found by tests/fuzz/csv.cc.
  TEST_CASE("records that are written are read back whatever is in them") {
    const std::vector<Record> records = {
        {""}, {"\xEF\xBB\xBFmark"}, {"", ""}, {"a,b", "\"", "c\r\nd"}, {"\r"}, {" "}};
    for (const Record& record : records) {
      std::string text;
      csv_append_record(text, record);
      CAPTURE(text);
      CHECK(read(text) == std::vector<Record>{record});
    }
  }
}
