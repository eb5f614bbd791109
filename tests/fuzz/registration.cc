// registration.json: the digest beside the frozen part keeps a fuzzer out, so it is put right here;
// what is accepted is written again as what was read.
#include "common/plan/registration.h"

#include "common/base/json.h"
#include "tests/fuzz/fuzz.h"

namespace proctor::fuzz::registration {

void target(std::string_view bytes) {
  std::string text(bytes);
  if (Result<Json> json = parse_json(bytes); json.ok() && json->is_object()) {
    const auto frozen = json->find("frozen");
    if (frozen != json->end())
      if (const auto canonical = canonical_json(*frozen); canonical.ok()) {
        (*json)["digest"] = sha256(*canonical).hex();
        text = json->dump();
      }
  }
  const Result<Registration> read = parse_registration(text);
  if (!read.ok()) {
    PROCTOR_ASSERT(!read.error().detail.empty());
    return;
  }
  const Registration again = must(parse_registration(to_json(*read)));
  PROCTOR_ASSERT(again == *read);
  PROCTOR_ASSERT(frozen_digest(again) == frozen_digest(*read));
}

}  // namespace proctor::fuzz::registration
