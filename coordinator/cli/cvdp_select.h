#pragma once
// Which problems of a dataset: --filter category=cid003,difficulty=easy and --id.
// Private to the program.
#include <map>
#include <string>
#include <vector>

#include "coordinator/cli/cvdp.h"

namespace proctor::cli {

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
