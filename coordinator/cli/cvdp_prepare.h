#pragma once
// Upstream's folders and files of each problem.  Private to the program.
#include <cstdint>
#include <string>

#include "common/base/files.h"
#include "common/cvdp/compose.h"
#include "coordinator/cli/cvdp_select.h"

namespace proctor::cli {

struct PrepareOptions {
  std::string file;
  std::string prefix = "work";
  std::string network;
  bool no_patch = false;
  Selection selection;
  cvdp::ImageNames names;
  bool quiet = false;           // about what is refused or odd
  bool keep_responses = false;  // of other problems, in the prompt_response.jsonl that is there
};
struct PreparedCount {
  std::uint64_t prepared = 0, refused = 0;
  std::uint64_t errors = 0;  // records that are none
};
// Writes below `root` without following a symbolic link that is there: a folder of an earlier run
// may hold what an agent left.
Status write_below(const fs::path& root, const std::string& relative, std::string_view bytes);
// Refusals and warnings are told on standard error.
Result<PreparedCount> prepare_problems(const PrepareOptions& options);

}  // namespace proctor::cli
