#pragma once
// What `proctor try` makes and others read again: a campaign of one run, in a folder of its own
// below the campaign's, .proctor/try/TASK/METHOD.
#include <string>

#include "coordinator/cli/campaign_files.h"

namespace proctor::cli {

StateFolder try_folder(const fs::path& campaign, const std::string& task,
                       const std::string& method);

struct TriedRun {
  StateFolder folder;
  std::string name;  // TASK/METHOD/r1, run 0 of its plan
};
// `run`: TASK/METHOD, perhaps with /r1.  kNotFound: it has not been tried.
Result<TriedRun> find_try(const std::string& campaign, const std::string& run);
// With what is read of the campaign as it is now.
Result<FrozenCampaign> load_try(const std::string& campaign, const std::string& run);

// A run as the commands that read one are asked for it: of the registered campaign, or of a try.
struct AskedRun {
  FrozenCampaign frozen;
  RunId run;
};
enum class Whose : std::uint8_t { kCampaign, kTry };
Result<AskedRun> find_asked(const std::string& campaign, const std::string& run, Whose whose);
// Says with an error about a run that a try of it is there.
Error with_try_hint(Error error, const std::string& campaign, const std::string& run);

}  // namespace proctor::cli
