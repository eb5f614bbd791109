// JSON from outside: errors name their place, and canonical bytes read back as what they were made
// from.  Another reader judges the grammar: it accepts what we do, and beyond that only keys that
// are there twice, too deep a text, and anything behind a NUL.
#include <nlohmann/json.hpp>

#include "common/base/json.h"
#include "common/contract/document.h"
#include "tests/fuzz/fuzz.h"

namespace proctor::fuzz::json_input {

void target(std::string_view bytes) {
  const Result<Json> value = parse_json(bytes);
  const std::string refusal = value.ok() ? "" : value.error().detail;
  const bool accepted = nlohmann::json::accept(bytes);
  const bool stricter = bytes.find('\0') != std::string_view::npos ||
                        refusal.starts_with("duplicate") || refusal.starts_with("nested");
  PROCTOR_ASSERT(value.ok() ? accepted : !accepted || stricter);
  Diagnostics out;
  const auto document = read_document(bytes, Format::kJson, "a.json", out);
  check_diagnostics(out, bytes);
  PROCTOR_ASSERT(document || !out.empty());
  if (!value.ok()) {
    PROCTOR_ASSERT(!refusal.empty());
    return;
  }
  const Result<std::string> canonical = canonical_json(*value);
  if (!canonical.ok()) return;
  const Json again = must(parse_json(*canonical));
  PROCTOR_ASSERT(again == *value);
  PROCTOR_ASSERT(must(canonical_json(again)) == *canonical);
}

}  // namespace proctor::fuzz::json_input
