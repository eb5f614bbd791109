#pragma once
// What could come next on a half-typed command line: commands, options, campaigns, runs, workers.
// Reads registration.json and status.json at most, never the plan or the journal: a key press
// must not wait for a million runs.
#include <string>
#include <string_view>
#include <vector>

namespace proctor::cli {
class Command;

// The words of a line up to the cursor, the last one (maybe empty) being typed.  Quotes and
// backslashes as a shell reads them.
std::vector<std::string> words_of(std::string_view line);

// Sorted; each begins with the last word.  One that ends in '/' goes on.
std::vector<std::string> completions(Command app, std::string_view line);

// The scripts that `proctor completion SHELL` prints.
extern const char* const kBashCompletion;
extern const char* const kZshCompletion;
extern const char* const kFishCompletion;
}  // namespace proctor::cli
