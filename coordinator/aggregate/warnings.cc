#include "coordinator/aggregate/warnings.h"

#include <fmt/format.h>

#include <map>

#include "common/base/text.h"

namespace proctor {

std::vector<std::string> recording_warnings(std::span<const RunRecord> runs) {
  struct Count {
    std::uint64_t runs = 0, recorded = 0, calls = 0;
  };
  std::map<std::string_view, Count> methods;
  for (const RunRecord& run : runs) {
    if (run.state != RunRecord::State::kEnded) continue;
    Count& count = methods[run.method];
    ++count.runs;
    if (run.model_use.replayed == 0) continue;
    ++count.recorded;
    count.calls += run.model_use.replayed;
  }
  std::vector<std::string> out;
  for (const auto& [method, count] : methods)
    if (0 < count.recorded)
      out.push_back(fmt::format(
          "{} of {} runs of {} were answered by a recording (a cassette, {} calls) and not by a "
          "model: what they cost is not what the models cost, and their answers are of the day of "
          "the recording",
          count.recorded, count.runs, printable(method), count.calls));
  return out;
}

}  // namespace proctor
