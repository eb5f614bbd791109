#pragma once
// What the commands of `proctor cvdp` share: reading a dataset piece by piece, telling what is
// wrong with it.  Private to the program.
#include <functional>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/cvdp/dataset.h"
#include "coordinator/cli/command.h"

namespace proctor::cli {

// Reads the file through `take`, a megabyte at a time.
Status read_pieces(const std::string& file, const std::function<Status(std::string_view)>& take);

// Every record without an error goes to `record`; what is wrong is printed on standard error
// (unless it was), the first thousand of each weight.  The first error `record` gives ends it.
enum class Findings { kTell, kKnown };
Result<cvdp::DatasetSummary> read_dataset(const std::string& file,
                                          const std::function<Status(cvdp::Record)>& record,
                                          Findings findings = Findings::kTell);

// One subcommand of `proctor cvdp` each.
void add_cvdp_check(CLI::App& cvdp, int& exit_code);
void add_cvdp_import(CLI::App& cvdp, int& exit_code);
void add_cvdp_merge(CLI::App& cvdp, int& exit_code);
void add_cvdp_prepare(CLI::App& cvdp, int& exit_code);
void add_cvdp_report(CLI::App& cvdp, int& exit_code);
void add_cvdp_refine(CLI::App& cvdp, int& exit_code);
void add_cvdp_run(CLI::App& cvdp, int& exit_code);
void add_cvdp_selfcheck(CLI::App& cvdp, int& exit_code);
void add_cvdp_show(CLI::App& cvdp, int& exit_code);
void add_cvdp_split(CLI::App& cvdp, int& exit_code);
void add_cvdp_stats(CLI::App& cvdp, int& exit_code);
void add_cvdp_sweep(CLI::App& cvdp, int& exit_code);
void add_cvdp_transform(CLI::App& cvdp, int& exit_code);
void add_cvdp_yaml(CLI::App& cvdp, int& exit_code);

}  // namespace proctor::cli
