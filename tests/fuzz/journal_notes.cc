// Texts inside the journal's rows: what is read back is written again as what it was.
#include "coordinator/core/notes.h"
#include "coordinator/journal/journal_rows.h"
#include "tests/fuzz/fuzz.h"

namespace proctor::fuzz::journal_notes {

void check_operator(std::string_view detail) {
  Note note;
  note.at = WallTime(17);
  note.kind = OperatorFact::kNote;
  note.detail = detail;
  const Result<OperatorFact> fact = fact_of<OperatorFact>(note);
  if (!fact.ok()) return;
  const Note written = note_of(*fact);
  PROCTOR_ASSERT(note_of(must(fact_of<OperatorFact>(written))).detail == written.detail);
}

void check_raise(std::string_view detail) {
  Note note;
  note.at = WallTime(17);
  note.kind = BudgetRaised::kNote;
  note.detail = detail;
  const Result<BudgetRaised> raise = fact_of<BudgetRaised>(note);
  if (!raise.ok()) return;
  const Note written = note_of(*raise);
  PROCTOR_ASSERT(note_of(must(fact_of<BudgetRaised>(written))).detail == written.detail);
}

void check_metered(std::string_view text) {
  Usage usage;
  if (!journal::read_metered(text, usage)) return;
  Usage again;
  const std::string written = journal::metered_text(usage);
  PROCTOR_ASSERT(journal::read_metered(written, again));
  PROCTOR_ASSERT(journal::metered_text(again) == written);
}

void check_ranges(std::string_view text) {
  const Result<std::vector<RunId>> runs = runs_of(text);
  if (runs.ok()) PROCTOR_ASSERT(must(runs_of(ranges_of(*runs))) == *runs);
}

void target(std::string_view bytes) {
  check_operator(bytes);
  check_raise(bytes);
  check_metered(bytes);
  check_ranges(bytes);
}

}  // namespace proctor::fuzz::journal_notes
