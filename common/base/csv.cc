#include "common/base/csv.h"

#include <algorithm>

#include "common/base/parse.h"

namespace proctor {
namespace {
constexpr std::string_view kBom = "\xEF\xBB\xBF";  // spreadsheets like to write one

Error at_line(std::uint64_t line, std::string_view why) {
  return Error{Errc::kInvalid, "line " + std::to_string(line) + ": " + std::string(why)};
}
std::string_view without_sign(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return text;
}

// A sign, digits, a point and digits, "e", a sign and digits.
bool is_number(std::string_view field) {
  const std::size_t e = field.find('e');
  if (e != std::string_view::npos && !all_digits(without_sign(field.substr(e + 1)))) return false;
  field = without_sign(field.substr(0, e));
  const std::size_t point = field.find('.');
  return all_digits(field.substr(0, point)) &&
         (point == std::string_view::npos || all_digits(field.substr(point + 1)));
}
}  // namespace

CsvReader::CsvReader(std::string_view text) : rest_(text) {
  if (rest_.starts_with(kBom)) rest_.remove_prefix(kBom.size());
}

Result<std::string_view> CsvReader::quoted_field() {
  rest_.remove_prefix(1);
  std::string* copy = nullptr;
  std::size_t begin = 0;
  for (std::size_t i = 0;; ++i) {
    if (i == rest_.size()) return at_line(record_line_, "a quoted field is not closed");
    if (rest_[i] == '\n') ++line_;
    if (rest_[i] == '\0') return at_line(line_, "NUL byte");
    if (rest_[i] != '"') continue;
    if (i + 1 < rest_.size() && rest_[i + 1] == '"') {
      if (copy == nullptr) copy = &unescaped_.emplace_back();
      copy->append(rest_.substr(begin, i + 1 - begin));
      begin = i + 2;
      ++i;
      continue;
    }
    std::string_view value = rest_.substr(begin, i - begin);
    if (copy != nullptr) {
      copy->append(value);
      value = *copy;
    }
    rest_.remove_prefix(i + 1);
    return value;
  }
}

Result<bool> CsvReader::next(std::vector<std::string_view>& fields) {
  fields.clear();
  unescaped_.clear();
  unescaped_.reserve(64);  // views point into its strings: it must not move them
  while (!rest_.empty() && (rest_.front() == '\n' || rest_.starts_with("\r\n"))) {
    rest_.remove_prefix(rest_.front() == '\n' ? 1 : 2);
    ++line_;
  }
  if (rest_.empty()) return false;
  record_line_ = line_;
  constexpr std::size_t kFieldsMax = 64;
  for (;;) {
    if (fields.size() == kFieldsMax) return at_line(record_line_, "more than 64 fields");
    if (!rest_.empty() && rest_.front() == '"') {
      PROCTOR_TRY(const std::string_view value, quoted_field());
      fields.push_back(value);
    } else {
      const std::size_t end =
          std::min(rest_.find_first_of(std::string_view(",\r\n\"\0", 5)), rest_.size());
      if (end < rest_.size() && rest_[end] == '"')
        return at_line(line_, "a quote inside an unquoted field");
      if (end < rest_.size() && rest_[end] == '\0') return at_line(line_, "NUL byte");
      fields.push_back(rest_.substr(0, end));
      rest_.remove_prefix(end);
    }
    if (rest_.empty()) return true;
    if (rest_.front() == ',') {
      rest_.remove_prefix(1);
      continue;
    }
    if (rest_.starts_with("\r\n")) rest_.remove_prefix(1);
    if (rest_.front() != '\n') return at_line(line_, "text after a closing quote");
    rest_.remove_prefix(1);
    ++line_;
    return true;
  }
}

std::string csv_harmless(std::string_view field) {
  // The wide forms are what a spreadsheet of East Asia takes for the others.
  constexpr std::string_view kBegins[] = {"=",
                                          "+",
                                          "-",
                                          "@",
                                          "\t",
                                          "\r",
                                          "\n",
                                          "\xEF\xBC\x9D",
                                          "\xEF\xBC\x8B",
                                          "\xEF\xBC\x8D",
                                          "\xEF\xBC\xA0"};
  const auto begins = [&](std::string_view with) { return field.starts_with(with); };
  const bool formula = std::ranges::any_of(kBegins, begins) && !is_number(field);
  return (formula ? "'" : "") + std::string(field);
}

void csv_append(std::string& out, std::string_view field) {
  // A mark in front of the first field would be taken for the file's.
  if (field.find_first_of(",\"\r\n") == std::string_view::npos && !field.starts_with(kBom)) {
    out += field;
    return;
  }
  out += '"';
  for (const char c : field) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}
}  // namespace proctor
