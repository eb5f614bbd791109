#include "coordinator/core/operator_note.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "common/base/json.h"
#include "common/base/limits.h"
#include "common/base/parse.h"

namespace proctor {
namespace {

using Kind = OperatorActKind;
constexpr std::array<std::pair<Kind, std::string_view>, 14> kWords{
    {{Kind::kPause, "pause"},
     {Kind::kUnpause, "unpause"},
     {Kind::kDrain, "drain"},
     {Kind::kCancel, "cancel"},
     {Kind::kRequeue, "requeue"},
     {Kind::kApprove, "approve"},
     {Kind::kQuarantine, "quarantine"},
     {Kind::kRelease, "release"},
     {Kind::kKick, "kick"},
     {Kind::kRaise, "raise"},
     {Kind::kReview, "review"},
     {Kind::kApproveStage, "approve_stage"},
     {Kind::kWaive, "waive"},
     {Kind::kCloseStage, "close_stage"}}};

std::string text_of(const std::vector<AttemptId>& attempts) {
  std::string out;
  for (const AttemptId& id : attempts) out += (out.empty() ? "" : " ") + to_string(id);
  return out;
}

Result<std::vector<AttemptId>> attempts_in(std::string_view text) {
  std::vector<AttemptId> out;
  while (!text.empty()) {
    std::uint32_t run = 0, no = 0;
    if (!take_number(text, run) || !take_word(text, ".") || !take_number(text, no) ||
        (!take_word(text, " ") && !text.empty()))
      return Error{Errc::kCorrupt, "not a list of attempts"};
    out.push_back({RunId(run), AttemptNo(no)});
  }
  return out;
}

}  // namespace

std::string_view word_of(Kind kind) {
  for (const auto& [value, word] : kWords)
    if (value == kind) return word;
  return "";
}

std::string ranges_of(const std::vector<RunId>& runs) {
  std::string out;
  for (std::size_t i = 0; i < runs.size();) {
    std::size_t end = i + 1;
    while (end < runs.size() && runs[end].raw() == runs[end - 1].raw() + 1) ++end;
    out += (out.empty() ? "" : " ") + std::to_string(runs[i].raw());
    if (i + 1 < end) out += "-" + std::to_string(runs[end - 1].raw());
    i = end;
  }
  return out;
}

Result<std::vector<RunId>> runs_of(std::string_view text) {
  std::vector<RunId> out;
  while (!text.empty()) {
    std::uint32_t first = 0, last = 0;
    bool read = take_number(text, first);
    last = first;
    if (take_word(text, "-")) read = take_number(text, last) && read;
    const bool in_order = read && first <= last && last < limits::kPlanRows &&
                          (out.empty() || out.back().raw() < first);
    if (!in_order || (!take_word(text, " ") && !text.empty()))
      return Error{Errc::kCorrupt, "not a list of runs"};
    for (std::uint32_t r = first; r <= last; ++r) out.emplace_back(r);
  }
  return out;
}

Note note_of(const OperatorFact& fact) {
  const OperatorAct& a = fact.act;
  Json detail = {{"act", word_of(a.kind)}, {"by", a.by}, {"reason", a.reason}};
  if (!a.selected.empty()) detail["selected"] = a.selected;
  if (!a.runs.empty()) detail["runs"] = ranges_of(a.runs);
  if (!fact.forgiven.empty()) detail["forgiven"] = text_of(fact.forgiven);
  if (a.invalid) detail["invalid"] = true;
  if (!fact.set_aside.empty()) detail["set_aside"] = text_of(fact.set_aside);
  if (!a.worker.raw().empty()) detail["worker"] = a.worker.raw();
  if (a.kind == Kind::kPause) detail["now"] = a.now;
  if (a.kind == Kind::kKick) detail["boot"] = std::to_string(fact.boot.raw());
  if (!a.stage.empty()) detail["stage"] = a.stage;
  if (a.kind == Kind::kApproveStage) detail["digest"] = a.digest;
  if (!a.criterion.empty()) detail["criterion"] = a.criterion;
  if (a.kind == Kind::kRaise) {
    detail["scope"] = a.scope.raw();
    detail["to"] = a.to.micros();
  }
  Note note{a.at, kNoteOperator, {}, {}, detail.dump(-1, Json::Utf8::kReplace)};
  if (a.runs.size() == 1) note.run = a.runs.front();  // so that its story tells it
  return note;
}

Result<OperatorFact> operator_fact_of(const Note& note) try {
  const auto wrong = [](const std::string& what) {
    return Error{Errc::kCorrupt, std::string(kNoteOperator) + ": " + what};
  };
  constexpr std::size_t kDetailMax = std::size_t{1} << 30;  // "cancel all" of the largest plan
  PROCTOR_TRY(const Json j, parse_json(note.detail, {kDetailMax, 2}));
  OperatorFact out;
  OperatorAct& a = out.act;
  const auto word = j.at("act").get<std::string>();
  const auto known = std::ranges::find(kWords, word, &std::pair<Kind, std::string_view>::second);
  if (known == kWords.end()) return wrong("act is none that is known");
  a.kind = known->first;
  a.by = j.at("by").get<std::string>();
  a.reason = j.at("reason").get<std::string>();
  a.selected = j.value("selected", "");
  a.worker = WorkerId(j.value("worker", ""));
  a.now = j.value("now", false);
  a.invalid = j.value("invalid", false);
  a.at = note.at;
  PROCTOR_TRY(a.runs, runs_of(j.value("runs", "")));
  PROCTOR_TRY(out.forgiven, attempts_in(j.value("forgiven", "")));
  PROCTOR_TRY(out.set_aside, attempts_in(j.value("set_aside", "")));
  if (a.kind == Kind::kRaise) {
    a.scope = ScopeId(j.at("scope").get<std::uint32_t>());
    a.to = MicroUsd::from_micros(j.at("to").get<std::int64_t>());
  }
  a.stage = j.value("stage", "");
  a.criterion = j.value("criterion", "");
  if (a.kind == Kind::kApproveStage) {
    a.stage = j.at("stage").get<std::string>();
    a.digest = j.at("digest").get<std::string>();
    PROCTOR_TRY([[maybe_unused]] const Digest whole, Digest::from_hex(a.digest));
  }
  if (a.kind == Kind::kKick) out.boot = BootId(std::stoull(j.at("boot").get<std::string>()));
  return out;
} catch (const std::exception& e) {  // of the JSON library, or a number that is none
  return Error{Errc::kCorrupt, std::string(kNoteOperator) + ": " + e.what()};
}

}  // namespace proctor
