// JSON from outside: errors name their place, and canonical bytes read back as what they were made
// from.
#include "common/base/json.h"
#include "common/contract/document.h"
#include "tests/fuzz/fuzz.h"

namespace proctor::fuzz::json_input {

void target(std::string_view bytes) {
  const Result<Json> value = parse_json(bytes);
  Diagnostics out;
  const auto document = read_document(bytes, Format::kJson, "a.json", out);
  check_diagnostics(out, bytes);
  PROCTOR_ASSERT(document || !out.empty());
  if (!value.ok()) {
    PROCTOR_ASSERT(!value.error().detail.empty());
    return;
  }
  const Result<std::string> canonical = canonical_json(*value);
  if (!canonical.ok()) return;
  const Json again = must(parse_json(*canonical));
  PROCTOR_ASSERT(again == *value);
  PROCTOR_ASSERT(must(canonical_json(again)) == *canonical);
}

}  // namespace proctor::fuzz::json_input
