#include "worker/tools/tool_stages.h"

#include <utility>

namespace proctor {
namespace {

std::string quoted_stage(ToolStage stage) {
  return "\"" + std::string(to_string(stage)) + "\"";
}

}  // namespace

Json stage_json(const StageChange& change) {
  return {{"from", to_string(change.from)},
          {"to", to_string(change.to)},
          {"by", change.by == StageChange::By::kAgent ? "agent" : "breaker"},
          {"reason", change.reason}};
}

std::string ToolStages::suspended_lack(Millis now) const {
  if (!suspended_) return "";
  if (reads_since_ < rules_.reads)
    return "writing is suspended: look at the workspace first, " +
           std::to_string(rules_.reads - reads_since_) + " more calls that read";
  if (now < until_)
    return "writing is suspended for " +
           std::to_string(std::chrono::ceil<std::chrono::seconds>(until_ - now).count()) +
           " s more";
  return "";
}

ToolStages::Verdict ToolStages::judge(const ToolKind& kind, Millis now) {
  if (kind.from <= stage_) return {};
  const std::string what = std::string(kind.name) + " needs the stage " + quoted_stage(kind.from);
  if (rules_.last < kind.from)
    return {what + ", and this run never goes beyond " + quoted_stage(rules_.last), {}};
  if (std::string lack = suspended_lack(now); !lack.empty())
    return {what + ", and " + std::move(lack), {}};
  if (rules_.automatic) {
    auto change = advance(kind.from, std::string(kind.name) + " was called", now);
    if (change.ok()) return {"", std::move(change).value()};
  }
  return {what + ", and this run is in " + quoted_stage(stage_) +
              ": call advance_stage with {\"to\": " + quoted_stage(kind.from) +
              ", \"reason\": ...} first",
          {}};
}

Result<StageChange> ToolStages::advance(ToolStage to, std::string reason, Millis now) {
  if (to <= stage_)
    return Error{Errc::kInvalid, "this run is in the stage " + quoted_stage(stage_) + " already"};
  if (rules_.last < to)
    return Error{Errc::kInvalid, "this run never goes beyond " + quoted_stage(rules_.last)};
  if (std::string lack = suspended_lack(now); !lack.empty()) return Error{Errc::kInvalid, lack};
  suspended_ = false;
  return StageChange{std::exchange(stage_, to), to, StageChange::By::kAgent, std::move(reason)};
}

std::optional<StageChange> ToolStages::suspend(std::string reason, Millis now) {
  suspended_ = true;
  reads_since_ = 0;
  until_ = now + rules_.pause;
  if (stage_ == ToolStage::kRead) return std::nullopt;
  return StageChange{std::exchange(stage_, ToolStage::kRead), ToolStage::kRead,
                     StageChange::By::kBreaker, std::move(reason)};
}

}  // namespace proctor
