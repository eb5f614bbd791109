#pragma once
// `proctor verify`, the part about who vouches for the journal: the seal that its host keyed, and
// heads that were kept elsewhere.  Both print a line; what does not fit is a problem.
#include <functional>
#include <string>

#include "coordinator/journal/journal_reader.h"

namespace proctor::cli {

using SealProblem = std::function<void(const std::string& where, const std::string& what)>;

// `key_file`: what --seal-key named; empty: the host's own place.  kInvalid and kNotFound only of
// a file that was named.
Status verify_keyed_seal(JournalReader& journal, const std::string& key_file,
                         const SealProblem& problem);
// `head`: a line, or a file that holds one a line.  kInvalid: it is none.
Status verify_heads(JournalReader& journal, const std::string& head, const std::string& key_file,
                    const SealProblem& problem);
// proctor journal head: of what is final now, signed with the host's key where there is one.
Result<JournalHead> present_head(const fs::path& file);

}  // namespace proctor::cli
