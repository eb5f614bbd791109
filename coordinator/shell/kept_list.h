#pragma once
// The list of the files that were kept at a campaign's freeze (cli/registered_files.h), with the
// SHA-256 of each: beside their folder, in the form of sha256sum(1).  The journal holds the list's
// own digest from the first life that finds one, so that no file of it can be changed or taken away
// unseen.  Blocking; thread-safe.
#include <optional>
#include <string>
#include <vector>

#include "common/base/digest.h"
#include "coordinator/core/records.h"
#include "coordinator/shell/state_folder.h"

namespace proctor {

inline constexpr const char* kMetaKept = "kept";  // digest of the list, hex

inline fs::path kept_list(const StateFolder& folder) {
  return folder.state() / "registered.sha256";
}

// What the journal says of it.  Nothing: it is of a campaign of which an earlier version kept no
// list.
std::optional<std::string> kept_digest(const std::vector<MetaSet>& said);

// What the journal is to say of it and does not yet: what it has said once it says for ever.
// Nothing: that, or there is no list.
Result<std::optional<MetaSet>> kept_fact(const StateFolder& folder,
                                         const std::vector<MetaSet>& said);

}  // namespace proctor
