#pragma once
// A journal that knows less than what is around it, and the list by which kept files are known.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/digest.h"
#include "common/ledger/ledger_store.h"
#include "common/plan/plan.h"
#include "coordinator/core/records.h"
#include "coordinator/shell/state_folder.h"

namespace proctor {
// The list of the files that were kept at a campaign's freeze (cli/registered_files.h), with the
// SHA-256 of each: beside their folder, in the form of sha256sum(1).  The journal holds the list's
// own digest from the first life that finds one, so that no file of it can be changed or taken away
// unseen.  Blocking; thread-safe.

inline constexpr const char* kMetaKept = "kept";  // digest of the list, hex

inline fs::path kept_list(const StateFolder& folder) {
  return folder.state() / "registered.sha256";
}

// The journal's word on it.  Nothing: it is of a campaign of which an earlier version kept no list.
std::optional<std::string> kept_digest(const std::vector<MetaSet>& said);

// The fact that the journal is to hold of it and does not yet: what it has said once it says for
// ever.  Nothing: it holds one, or there is no list.
Result<std::optional<MetaSet>> kept_fact(const StateFolder& folder,
                                         const std::vector<MetaSet>& said);

// A journal that was put back, or lost its end without a trace, is whole in itself and knows less
// than what is around it: run directories of attempts that it never granted, a Redis that was
// filled under a later epoch or holds asks and charges that the journal has never heard of.  To go
// on with it gives the same money twice.  Reads only, any thread.
//
// A worker's word is no evidence: it may alert, never stop (coordinator_messages.cc).

// A recovery (`proctor journal recover`) begins so many epochs beyond the last one that it could
// read: what was held under one before that is accounted for.
inline constexpr std::uint64_t kEpochsBeyond = 1'000;

// The n of PREFIXn, from 1 on.
std::optional<std::uint32_t> number_behind(std::string_view text, std::string_view prefix);

// One attempt that left something in runs/.
struct Evidence {
  AttemptId attempt;
  fs::path where;
};
// Attempts with a run directory or an archive, of those runs whose folder was touched `since`
// (ms since 1970; 0: all).  In the order of the plan.
std::vector<Evidence> evidence_of(const StateFolder& folder, const Plan& plan, std::int64_t since);

// Sentences, one for each kind of thing that this journal should know and does not; none: it knows
// all of it.
std::vector<std::string> unknown_evidence(const std::vector<Evidence>& evidence,
                                          const RestoredState& state);
std::vector<std::string> unknown_money(const LedgerHeld& held, const RestoredState& state);

// kCorrupt, with what to type next.
Error behind_error(const StateFolder& folder, const std::vector<std::string>& problems);
}  // namespace proctor
