#pragma once
// verify, of tasks that were taken out after the freeze: the registration says so once more than
// the journal, whose rows are sealed, and neither may say it alone.
#include <functional>
#include <string>

#include "common/base/result.h"
#include "common/plan/registration.h"
#include "coordinator/journal/journal_reader.h"

namespace proctor::cli {

// Of the journal's note; its detail is removal_note().
inline constexpr const char* kNoteTaskRemoved = "task_removed";
std::string removal_note(const std::string& task, const std::string& reason,
                         const std::string& by = {});

// Fails with what keeps the journal from being read.
Status verify_removals(
    JournalReader& journal, const Registration& registration,
    const std::function<void(const std::string& where, const std::string& what)>& tell);

}  // namespace proctor::cli
