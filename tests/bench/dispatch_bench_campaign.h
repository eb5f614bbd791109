#pragma once
// A campaign that exists in memory only: every task needs the null sandbox, the one method does
// nothing, money is never short.  For benches of the coordinator; nothing in it can be executed.
#include <cstdint>
#include <filesystem>

#include "common/contract/campaign.h"

namespace proctor::bench {

// `tasks` * `replicates` runs.
Campaign zero_work_campaign(const std::filesystem::path& folder, std::uint32_t tasks,
                            std::uint32_t replicates);

}  // namespace proctor::bench
