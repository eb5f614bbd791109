#include "coordinator/shell/kept_list.h"

#include "common/base/limits.h"

namespace proctor {

std::optional<std::string> kept_digest(const std::vector<MetaSet>& said) {
  for (const MetaSet& m : said)
    if (m.key == kMetaKept) return m.value;
  return std::nullopt;
}

Result<std::optional<MetaSet>> kept_fact(const StateFolder& folder,
                                         const std::vector<MetaSet>& said) {
  if (kept_digest(said)) return std::optional<MetaSet>();
  const Result<std::string> list = read_file(kept_list(folder), limits::kPlanFileBytes);
  if (!list.ok() && list.error().code == Errc::kNotFound) return std::optional<MetaSet>();
  if (!list.ok()) return list.error();
  return std::optional(MetaSet{kMetaKept, sha256(*list).hex()});
}

}  // namespace proctor
