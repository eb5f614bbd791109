#pragma once
// What a command writes where a person said so (--out PATH).
#include <string>
#include <string_view>

#include "common/base/files.h"
#include "common/base/result.h"

namespace proctor::cli {

// Replaces a regular file as a whole, also one that links lead to.  Into what is no regular file, a
// device or a pipe that somebody reads, it is written; that one stays what it is.
Status write_output(const fs::path& path, std::string_view bytes);

// Safe to print on a terminal; of `kept` every byte stays as it is.
std::string printable_lines(std::string_view text, std::string_view kept = "\n");

// For the end of main(): `code`, or kInfrastructure after a line on standard error, where standard
// output did not take all that was printed.  Who reads no further (EPIPE) has what he wanted.
int with_output_written(int code);

}  // namespace proctor::cli
