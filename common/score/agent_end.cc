#include "common/score/agent_end.h"

#include "common/base/parse.h"

namespace proctor {
namespace {

constexpr std::string_view kByItself = "the agent ended by itself: ";
constexpr std::string_view kNotStarted = "the agent could not start: ";
constexpr std::string_view kExit = "exit ";
constexpr std::string_view kNotJudged = "; not judged: ";

}  // namespace

std::string ended_by_itself(std::string_view how) {
  return std::string(kByItself).append(how);
}

std::string could_not_start(std::string_view how) {
  return std::string(kNotStarted).append(how);
}

std::optional<int> agent_exit(std::string_view rationale) {
  for (const std::string_view begin : {kByItself, kNotStarted}) {
    if (!take_word(rationale, begin)) continue;
    std::uint8_t code = 0;
    if (!take_word(rationale, kExit) || !take_number(rationale, code)) return std::nullopt;
    return code;
  }
  return std::nullopt;
}

std::string not_judged(std::string_view why) {
  return std::string(kNotJudged).append(why);
}

bool is_not_judged(RunOutcome outcome, std::string_view rationale) {
  return outcome == RunOutcome::kInvalid && rationale.find(kNotJudged) != std::string_view::npos;
}

}  // namespace proctor
