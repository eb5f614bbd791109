#pragma once
// The files that a campaign was registered from, as they were at its freeze: in
// .proctor/registered, under the names they have in the campaign's folder; the plan is drawn again.
// Whoever reads evidence goes by them when somebody has edited the campaign since, and can say
// which file that was.  They are believed no more than any others: what is loaded from them must
// make the registration again.  Beside them lies a list of them (kept_list in shell/behind.h).
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/contract/campaign.h"
#include "coordinator/shell/state_folder.h"

namespace proctor::cli {
// Keeps them, unless they are kept already.  Requires: the campaign is as it is registered.
Status keep_registered(const Campaign& campaign);

// The campaign as it was, at home in its own folder.  Nothing: none were kept, by an earlier
// version, or they cannot be read any more.
std::optional<Campaign> load_kept(const StateFolder& state);

// A file that the campaign was read from, with its bytes where a campaign has them in full.
struct KeptFile {
  bool may_be_absent = false;
  std::optional<std::string_view> bytes{};  // of `campaign`
  bool program = false;                     // where bytes are known
};
// Those that are kept, by their names.  The views are of `campaign`.
std::map<std::string, KeptFile> files_to_keep(const Campaign& campaign);

bool is_program(const fs::path& file);  // its owner may execute it

// The lines of the list of what lies there now, each with its line feed, in the order of the names.
Result<std::string> list_kept(const fs::path& kept);

// Behind the name of a file that is a link now, or lies behind one, which no editor makes of it.
inline constexpr const char* kNotItsOwn = " (no file of its own)";
// Below that folder neither the file of that name nor a folder on the way to it is a link, wherever
// it leads.  Also true of a file that is missing.
bool is_own_file(const fs::path& campaign, const fs::path& name);

// The files that are not as they were kept, each with what became of it: "agent.sh (changed)".
// campaign.yaml and prices are read where they are links too: these count if `all`.
std::vector<std::string> changed_files(const StateFolder& state, bool all = false);
}  // namespace proctor::cli
