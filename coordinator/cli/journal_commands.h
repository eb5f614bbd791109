#pragma once
// Subcommands of `proctor journal`; each may have a file of its own.
#include "coordinator/cli/command.h"

namespace proctor::cli {

void add_journal_export(Command journal, int& exit_code);

}  // namespace proctor::cli
