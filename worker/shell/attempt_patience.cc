// AttemptRun: what is done again because the host was in want, and not the run at fault.
#include "worker/shell/attempt_run.h"

namespace proctor {
namespace {

// Another worker may have what this one has none of.
constexpr std::chrono::minutes kWantMost{10};

}  // namespace

Patience AttemptRun::patience() const {
  return {until_stopped(watch_.token()), kWantMost};
}

AttemptRun::Answer AttemptRun::answer_to(const LifecycleCommand& command) {
  const auto once = [&] {
    return std::visit([this](const auto& c) { return perform(c); }, command);
  };
  const auto* opens = std::get_if<OpenWorkspace>(&command);
  const bool again = std::holds_alternative<ExtractPatch>(command) ||
                     (opens != nullptr && opens->room == Room::kAcceptance);
  if (!again) return once();
  Answer answer;
  const Status done =
      when_there_is_room<Unit>("attempt " + label("acceptance"), patience(), [&]() -> Status {
        answer = once();
        const auto* failed = std::get_if<StepFailed>(&*answer);
        return failed == nullptr ? ok_status() : Status(failed->error);
      });
  if (!done.ok()) return StepFailed{done.error(), 0};
  return answer;
}

}  // namespace proctor
