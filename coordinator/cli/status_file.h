#pragma once
// What a campaign's coordinator last said of it, and whether it still lives to say more.
#include <optional>

#include "common/base/files.h"
#include "coordinator/shell/status.h"

namespace proctor::cli {

struct SeenStatus {
  StatusSnapshot status;  // `state` as it was written
  bool over = false;      // it ended, and said so
  bool gone = false;      // it did not, and nobody has its journal
};
// Nothing: the campaign has not been run yet.  kNotFound: no campaign is there.
Result<std::optional<SeenStatus>> seen_status(const fs::path& folder);

}  // namespace proctor::cli
