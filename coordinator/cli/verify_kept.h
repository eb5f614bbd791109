#pragma once
// `proctor verify`, the parts about who else could have been there: folders and objects, removed
// tasks, files of the registration, seals and heads.
#include <optional>
#include <string>

#include "common/base/result.h"
#include "common/contract/campaign.h"
#include "common/plan/registration.h"
#include "coordinator/cli/command.h"
#include "coordinator/journal/journal_reader.h"
#include "coordinator/shell/state_folder.h"

namespace proctor::cli {
// The parts of a campaign that other users of the host may enter or read.  Reads; reports problems
// through `problem(where, what)`.

// Evidence, reports and state lie in folders of the campaign's own; they and the journal are their
// owner's alone.
void verify_modes(const StateFolder& folder, const ProblemHandler& problem);

// In the order of the journal.
Status each_note(JournalReader& journal, const std::function<void(const Note&)>& hear);

// Tasks that were taken out after the freeze: the registration says so once more than the journal,
// whose rows are sealed, and neither may say it alone.

// The kind of the journal's note; its detail is removal_note().
inline constexpr const char* kNoteTaskRemoved = "task_removed";
std::string removal_note(const std::string& task, const std::string& reason,
                         const std::string& by = {});

// Fails with what keeps the journal from being read.
Status verify_removals(JournalReader& journal, const Registration& registration,
                       const ProblemHandler& tell);

// The files that were kept of the registration: one that was changed, added or taken away there
// would be believed by whoever looks what was registered.
// `campaign`: as it is registered.  `sealed`: the digest of the list of what was kept, as the
// journal has it; nothing: an earlier version made no list, and perhaps kept nothing, which is no
// problem.
void verify_kept(const Campaign& campaign, const Registration& registration,
                 const std::optional<std::string>& sealed, const ProblemHandler& problem);

// The vouchers of the journal: the seal that its host keyed, and heads that were kept elsewhere.
// Both print a line; what does not fit is a problem.

// `key_file`: what --seal-key named; empty: the host's own place.  kInvalid and kNotFound only of
// a file that was named.
Status verify_keyed_seal(JournalReader& journal, const std::string& key_file,
                         const ProblemHandler& problem);
// `head`: a line, or a file that holds one a line.  kInvalid: it is none.
Status verify_heads(JournalReader& journal, const std::string& head, const std::string& key_file,
                    const ProblemHandler& problem);
// proctor journal head: of what is final now, signed with the host's key where there is one.
Result<JournalHead> present_head(const fs::path& file);
}  // namespace proctor::cli
