#pragma once
// The commands of `proctor cvdp`, and what of two of them `run` uses.  Private to the program.
#include <cstdint>
#include <string>

#include "common/base/files.h"
#include "coordinator/cli/command.h"
#include "coordinator/cvdp/dataset/compose.h"
#include "coordinator/cvdp/run/dataset_file.h"

namespace proctor::cli {

// One subcommand of `proctor cvdp` each.
void add_cvdp_check(Command cvdp, int& exit_code);
void add_cvdp_import(Command cvdp, int& exit_code);
void add_cvdp_merge(Command cvdp, int& exit_code);
void add_cvdp_prepare(Command cvdp, int& exit_code);
void add_cvdp_report(Command cvdp, int& exit_code);
void add_cvdp_refine(Command cvdp, int& exit_code);
void add_cvdp_run(Command cvdp, int& exit_code);
void add_cvdp_selfcheck(Command cvdp, int& exit_code);
void add_cvdp_show(Command cvdp, int& exit_code);
void add_cvdp_split(Command cvdp, int& exit_code);
void add_cvdp_stats(Command cvdp, int& exit_code);
void add_cvdp_sweep(Command cvdp, int& exit_code);
void add_cvdp_transform(Command cvdp, int& exit_code);
void add_cvdp_yaml(Command cvdp, int& exit_code);

// Upstream's folders and files of each problem.
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

// A dataset of one shape as one of the other.
struct TransformOptions {
  std::string to;  // agentic or copilot
  std::string file;
  std::string out;  // a file, a folder that is there, or empty: standard output
  bool report_losses = false;
};
// The exit code; lines that are no record are told and left out.
Result<int> run_transform(const TransformOptions& options);

}  // namespace proctor::cli
