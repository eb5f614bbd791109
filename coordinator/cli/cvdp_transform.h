#pragma once
// A dataset of one shape as one of the other.  Private to the program.
#include <string>

#include "common/base/result.h"

namespace proctor::cli {

struct TransformOptions {
  std::string to;  // agentic or copilot
  std::string file;
  std::string out;  // a file, a folder that is there, or empty: standard output
  bool report_losses = false;
};
// The exit code; lines that are no record are told and left out.
Result<int> run_transform(const TransformOptions& options);

}  // namespace proctor::cli
