#pragma once
// A dataset read piece by piece, what is wrong with it reported, and which of its problems are
// meant:
// --filter category=cid003,difficulty=easy and --id.  Private to the program.
#include <fmt/core.h>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/digest.h"
#include "common/base/result.h"
#include "coordinator/cli/command.h"
#include "coordinator/cvdp/dataset/dataset.h"

namespace proctor::cli {
// Reads the file through `take`, a megabyte at a time.
Status read_pieces(const std::string& file, const std::function<Status(std::string_view)>& take);
// Its lines; those of more than `bytes_max` come empty.  The first error `take` gives ends it.
// `sum`, if any, gets the bytes of the file.
Status read_lines(const std::string& file, std::size_t bytes_max,
                  const std::function<Status(const cvdp::LineFeed::Line&)>& take,
                  Sha256* sum = nullptr);

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

// As read_dataset(), the problems that the selection holds, each once: of an id that comes again
// the last record counts.  kInvalid: --id names a problem that `file` has not, or no problem is
// left.
Result<cvdp::DatasetSummary> read_selected(const std::string& file, const Selection& selection,
                                           const std::function<Status(cvdp::Record)>& record,
                                           Findings findings = Findings::kTell);
// Formats for one of the standard streams.  Their errors are looked for when the program ends.
template <class... Parts>
void tell(std::FILE* stream, fmt::format_string<Parts...> text, Parts&&... parts) {
  const std::string out = fmt::format(text, std::forward<Parts>(parts)...);
  static_cast<void>(std::fwrite(out.data(), 1, out.size(), stream));
}
// To standard error: "FILE:LINE: ID: what".
void say(const std::string& file, const cvdp::Record& record, const std::string& what);
}  // namespace proctor::cli
