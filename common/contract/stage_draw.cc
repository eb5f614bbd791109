#include "common/contract/stage_draw.h"

namespace proctor {

std::string_view to_string(StageOrder order) {
  for (const auto& [word, value] : kStageOrders)
    if (value == order) return word;
  return "";
}

std::string describe(const StageDraw& draw) {
  std::string out = "every task";
  if (draw.per_stratum) out = std::to_string(*draw.per_stratum) + " of each stratum";
  for (std::size_t i = 0; i < draw.tasks.size(); ++i)
    out = (i == 0 ? "" : out + " ") + draw.tasks[i];
  out += ", ";
  if (!draw.replicates) out += "the campaign's replicates";
  if (draw.replicates)
    out +=
        std::to_string(*draw.replicates) + (*draw.replicates == 1 ? " replicate" : " replicates");
  return out + ", by " + std::string(to_string(draw.order));
}

}  // namespace proctor
