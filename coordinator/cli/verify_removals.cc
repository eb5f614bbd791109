#include "coordinator/cli/verify_removals.h"

#include <algorithm>
#include <set>
#include <vector>

#include "coordinator/core/records.h"

namespace proctor::cli {
namespace {

Result<std::set<std::string>> removals_of(JournalReader& journal) {
  constexpr std::size_t kAtOnce = 10'000;
  std::set<std::string> out;
  for (std::int64_t after = 0;;) {
    PROCTOR_TRY(const std::vector<NoteRecord> notes, journal.notes(after, kAtOnce));
    for (const NoteRecord& n : notes)
      if (n.note.kind == kNoteTaskRemoved) out.insert(n.note.detail);
    if (notes.size() < kAtOnce) return out;
    after = notes.back().seq;
  }
}

}  // namespace

std::string removal_note(const std::string& task, const std::string& reason,
                         const std::string& by) {
  return task + ": " + reason + (by.empty() ? "" : " (by " + by + ")");
}

Status verify_removals(
    JournalReader& journal, const Registration& registration,
    const std::function<void(const std::string& where, const std::string& what)>& tell) {
  PROCTOR_TRY(const std::set<std::string> noted, removals_of(journal));
  std::set<std::string> registered;
  for (const Removal& r : registration.removals) {
    registered.insert(removal_note(r.task, r.reason, r.by));
    if (!noted.contains(removal_note(r.task, r.reason, r.by)))
      tell("registration.json", "it removes the task " + r.task + " (" + r.reason +
                                    "), which the journal knows nothing of: its runs are in no "
                                    "rate of the report");
  }
  for (const std::string& note : noted)
    if (!registered.contains(note))
      tell("registration.json",
           "it has no removal of the task that the journal says was removed (" + note + ")");
  return ok_status();
}

}  // namespace proctor::cli
