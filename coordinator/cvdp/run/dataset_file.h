#pragma once
// A dataset read piece by piece, what is wrong with it reported, and which of its problems are
// meant:
// --filter category=cid003,difficulty=easy and --id.  Private to the program.
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "coordinator/cli/command.h"
#include "coordinator/cvdp/dataset/dataset.h"

namespace proctor::cli {
// Reads the file through `take`, a megabyte at a time.
Status read_pieces(const std::string& file, const std::function<Status(std::string_view)>& take);

// Every record without an error goes to `record`; what is wrong is printed on standard error
// (unless it was), the first thousand of each weight.  The first error `record` gives ends it.
enum class Findings { kTell, kKnown };
Result<cvdp::DatasetSummary> read_dataset(const std::string& file,
                                          const std::function<Status(cvdp::Record)>& record,
                                          Findings findings = Findings::kTell);

struct Selection {
  std::string filter;
  std::vector<std::string> ids;
  // Requires: valid().
  bool holds(const cvdp::Record& record) const;
};
// --filter and --id; a filter that is none is refused while the command line is read.
void add_selection(Command command, Selection& selection);

// The line on which each id stands last: the record that counts.
struct LastLines {
  std::map<std::string, std::uint64_t> line;
  bool holds(const cvdp::Record& record) const;
};
// kInvalid: --id names a problem that `file` has not, or the selection holds for none of it.
Result<LastLines> last_lines(const std::string& file, const Selection& selection);
}  // namespace proctor::cli
