#pragma once
// CSV as RFC 4180 has it: comma, double quotes doubled inside quotes, CRLF or LF.
// Reading keeps the line a record began on, so that an error can name it.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace proctor {
// Walks the records of one text.  The views it hands out live until the next call and only while
// the text does.  Refuses NUL bytes, a quote inside an unquoted field, text after a closing quote,
// and an unterminated quote; blank lines are skipped.
class CsvReader {
 public:
  explicit CsvReader(std::string_view text);
  // True with the next record in `fields`, false at the end.  kInvalid: "line 7: ...".
  Result<bool> next(std::vector<std::string_view>& fields);
  // The line (from 1) on which the last record began.
  std::uint64_t line() const { return record_line_; }

 private:
  Result<std::string_view> quoted_field();
  std::string_view rest_;
  std::uint64_t line_ = 1;
  std::uint64_t record_line_ = 0;
  std::vector<std::string> unescaped_;  // storage of fields that held doubled quotes
};

// A field that a spreadsheet would run as a formula, with an apostrophe in front, which makes it
// text there; everything else, and every number, as it is.
std::string csv_harmless(std::string_view field);
// Appends one field as it is, quoted where it must be: for files that are read back.
void csv_append(std::string& out, std::string_view field);
}  // namespace proctor
