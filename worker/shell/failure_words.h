#pragma once
// What is told to people of a command that failed: the end of what it wrote to stderr, and what its
// network refused.  Stands behind a rationale, never in a decision.
#include <string>
#include <string_view>
#include <vector>

#include "common/base/files.h"

namespace proctor {

// The last lines of `text` that are not empty, at most three, printable, joined by " | ".
std::string last_lines(std::string_view text);

// "stderr ends: ... | ...; refused by its network: HOST:PORT (2 times)".  Empty: there is nothing
// to tell, or the file cannot be read.  Any thread.
std::string failure_words(const fs::path& stderr_file, const std::vector<std::string>& refused);

}  // namespace proctor
