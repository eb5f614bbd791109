#include "common/score/outcome.h"

#include <algorithm>
#include <array>

#include "common/base/parse.h"
#include "common/base/result.h"

namespace proctor {
RunOutcome decide(bool identity_consistent, std::span<const std::optional<CheckOutcome>> checks) {
  // An empty suite has no complete acceptance event to rest on (R058, R059): never a vacuous
  // success.
  if (!identity_consistent || checks.empty()) return RunOutcome::kInvalid;
  const auto is = [](CheckOutcome o) {
    return [o](const std::optional<CheckOutcome>& c) { return c == o; };
  };
  if (!std::ranges::all_of(checks, [](const auto& c) { return c.has_value(); }))
    return RunOutcome::kInvalid;
  if (std::ranges::any_of(checks, is(CheckOutcome::kError))) return RunOutcome::kAcceptanceError;
  if (std::ranges::any_of(checks, is(CheckOutcome::kFail))) return RunOutcome::kFailure;
  return RunOutcome::kSuccess;
}

constexpr std::string_view kNoModel = "its model could not be had: ";

std::string no_model(std::string_view why) {
  return std::string(kNoModel).append(why);
}

constexpr std::string_view kByItself = "the agent ended by itself: ";
constexpr std::string_view kNotStarted = "the agent could not start: ";
constexpr std::string_view kNotJudged = "; not judged: ";

std::string ended_by_itself(std::string_view how) {
  return std::string(kByItself).append(how);
}

std::string could_not_start(std::string_view how) {
  return std::string(kNotStarted).append(how);
}

std::string not_judged(std::string_view why) {
  return std::string(kNotJudged).append(why);
}

namespace {
constexpr std::string_view kBegin = "; patch: ";
constexpr std::array<std::string_view, 4> kRungs = {"", "exact", "whitespace", "three_way"};

std::string conflict_words(const std::vector<std::string>& conflicts) {
  std::string out = "conflict_markers (" + conflicts.front();
  if (1 < conflicts.size()) out += " and " + std::to_string(conflicts.size() - 1) + " more";
  return out + ")";
}
}  // namespace

std::string_view worse_rung(std::string_view a, std::string_view b) {
  const auto place = [](std::string_view rung) { return std::ranges::find(kRungs, rung); };
  return place(a) < place(b) ? b : a;
}

std::string patch_word(const PatchEnd& end) {
  if (!end.refused.empty()) return "refused";
  std::string out = end.rung == "whitespace" || end.rung == "three_way" ? end.rung : "";
  if (!end.conflicts.empty()) out += out.empty() ? "conflict_markers" : ", conflict_markers";
  return out;
}

std::string patch_words(const PatchEnd& end) {
  std::string out;
  const auto add = [&](const std::string& words) { out += (out.empty() ? "" : ", ") + words; };
  if (!end.refused.empty()) {
    add("refused (" + end.refused + ")");
  } else if (end.rung == "whitespace" || end.rung == "three_way") {
    add(end.rung);
  }
  if (!end.conflicts.empty()) add(conflict_words(end.conflicts));
  return out.empty() ? out : std::string(kBegin) + out;
}

constexpr std::string_view kBroken = "; violations: ";

std::string violation_words(std::uint64_t count, std::string_view first) {
  if (count == 0) return "";
  std::string out(kBroken);
  out += std::to_string(count);
  out += " (";
  out += first.substr(0, kFirstViolationBytes);
  out += ")";
  return out;
}
}  // namespace proctor
