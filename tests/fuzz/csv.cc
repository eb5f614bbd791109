// Records that were read and are written again are the same records.
#include "common/base/csv.h"

#include "tests/fuzz/fuzz.h"

namespace proctor::fuzz::csv {

using Records = std::vector<std::vector<std::string>>;

Result<Records> read(std::string_view text) {
  Records out;
  CsvReader reader(text);
  std::vector<std::string_view> fields;
  for (;;) {
    PROCTOR_TRY(const bool more, reader.next(fields));
    if (!more) return out;
    out.emplace_back(fields.begin(), fields.end());
  }
}

void target(std::string_view bytes) {
  const Result<Records> records = read(bytes);
  if (!records.ok()) {
    PROCTOR_ASSERT(records.error().detail.starts_with("line "));
    return;
  }
  std::string written;
  Records harmless = *records;
  for (std::vector<std::string>& fields : harmless) {
    for (std::string& field : fields) {
      field = csv_harmless(field);
      csv_append(written, field);
      if (fields.size() == 1 && field.empty()) written += "\"\"";  // else a blank line
      written += &field == &fields.back() ? '\n' : ',';
    }
  }
  PROCTOR_ASSERT(must(read(written)) == harmless);
}

}  // namespace proctor::fuzz::csv
