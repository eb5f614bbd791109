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

}  // namespace proctor::cli
