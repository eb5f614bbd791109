#pragma once
// Copies what can still be read of a damaged journal into a new one.  A page that is damaged hides
// the rows it holds and nothing else: tables are read from both ends up to the damage, and inside
// by key. Then whatever does not stand alone is taken out again, so that the new journal loads. The
// damaged file is only read.  One thread at a time.
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/base/result.h"
#include "coordinator/core/records.h"
#include "coordinator/journal/sqlite.h"

namespace proctor {

struct Salvage {
  std::vector<std::string> notes;  // what was damaged, copied and taken out; for people
  std::vector<RunId> unreadable;   // runs whose attempts may be on a damaged page
  std::vector<EndedRun> ended;     // runs that had ended with an attempt that is not there
  std::vector<AttemptId> asked;    // attempts that Redis was asked for; of the caller
  bool tail_missing = false;       // later transactions are gone: any run may have begun since
  std::uint64_t rows = 0;          // copied
  std::vector<RunReviewed> reviews_lost;
};

// `fresh` was made by Journal and is empty.  `runs`: how many the plan has.
Result<Salvage> salvage_journal(const fs::path& damaged, sqlite::Database& fresh,
                                std::uint32_t runs);

}  // namespace proctor
