#pragma once
// Which campaigns have ever begun on this host: $XDG_STATE_HOME/proctor/begun.campaigns, beside the
// secret that journals are sealed with (host_key.h) and outside every campaign.  A registration
// whose journal was taken away and that begins anew is known by it.  Adapter (file system); any
// thread.
#include <string_view>

#include "common/base/result.h"

namespace proctor {

// In the journal of a campaign that began when this host knew it had begun before.
inline constexpr const char* kMetaRunAgain = "run_again";

inline constexpr const char* kRunBefore =
    "this registration was run before on the coordinator's host, and the journal of that was taken "
    "away: what is here is another run of it";

// False also where there is no such list, or none that can be read.
bool has_begun_here(std::string_view campaign);
// Repeatable.  Call it once the journal says so durably: what it says it says for ever.
Status remember_begun(std::string_view campaign);

}  // namespace proctor
