#include "coordinator/journal/review_seal.h"

#include "common/base/json.h"

namespace proctor {

Result<Digest> seal_of(const Digest& before, const RunReviewed& r) {
  const Json row = {{"at_ms", r.at.raw()},
                    {"before", before.hex()},
                    {"charged", r.charged.micros()},
                    {"milli_minutes", r.milli_minutes},
                    {"note", r.note},
                    {"reviewer", r.by},
                    {"run", r.run.raw()},
                    {"seq", r.seq}};
  PROCTOR_TRY(const std::string canonical, canonical_json(row));
  return sha256(canonical);
}

std::string reviews_head(std::uint32_t count, const Digest& last) {
  return std::to_string(count) + " " + last.hex();
}

}  // namespace proctor
