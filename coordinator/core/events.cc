#include "coordinator/core/events.h"

#include <array>

#include "common/base/json.h"

namespace proctor {
std::string to_json(const Explanation& why) {
  Json facts = Json::object();
  for (const auto& [name, value] : why.facts)
    std::visit([&, key = name](const auto& v) { facts[key] = v; }, value);
  return Json{{"code", why.code}, {"text", why.text}, {"facts", std::move(facts)}}.dump(
      -1, Json::Utf8::kReplace);
}

namespace {
using WorkerVerdict = WorkerJudged::Verdict;
constexpr std::array<std::pair<WorkerVerdict, const char*>, 3> kWorkerNotes{
    {{WorkerVerdict::kQuarantined, kNoteWorkerQuarantined},
     {WorkerVerdict::kReleased, kNoteWorkerReleased},
     {WorkerVerdict::kRecovered, kNoteWorkerRecovered}}};

Result<StandingFact> worker_judged_of(const Note& note, WorkerVerdict verdict) {
  const Result<Json> detail = parse_json(note.detail);
  if (!detail.ok() || !detail->is_object() || !detail->contains("worker") ||
      !(*detail)["worker"].is_string())
    return Error{Errc::kCorrupt, note.kind + ": of no worker"};
  WorkerJudged out{.worker = WorkerId((*detail)["worker"].get<std::string>()),
                   .verdict = verdict,
                   .at = note.at};
  if (const auto nth = detail->find("nth"); nth != detail->end() && nth->is_number_unsigned())
    out.nth = nth->get<std::uint32_t>();
  if (const auto why = detail->find("reason"); why != detail->end() && why->is_string())
    out.reason = why->get<std::string>();
  if (const auto wait = detail->find("for_ms"); wait != detail->end() && wait->is_number_integer())
    out.wait = Millis(wait->get<std::int64_t>());
  return StandingFact(std::move(out));
}

Result<StandingFact> escalated_of(const Note& note) {
  const Result<Json> detail = parse_json(note.detail);
  if (!note.run) return Error{Errc::kCorrupt, note.kind + ": of no run"};
  if (!detail.ok() || !detail->is_object())
    return Error{Errc::kCorrupt, note.kind + ": not an object"};
  RunEscalated out{.run = *note.run, .at = note.at};
  if (const auto why = detail->find("reason"); why != detail->end() && why->is_string())
    out.reason = why->get<std::string>();
  return StandingFact(std::move(out));
}

template <class Fact>
Result<StandingFact> as_standing(Result<Fact> fact) {
  if (!fact.ok()) return std::move(fact).error();
  return StandingFact(std::move(fact).value());
}
}  // namespace

Note note_of(const WorkerJudged& f) {
  Json detail = {{"worker", f.worker.raw()}};
  if (f.verdict == WorkerVerdict::kQuarantined)
    detail.update({{"for_ms", f.wait.count()}, {"nth", f.nth}, {"reason", f.reason}});
  const char* kind = "";
  for (const auto& [verdict, word] : kWorkerNotes)
    if (verdict == f.verdict) kind = word;
  return {f.at, kind, {}, {}, detail.dump(-1, Json::Utf8::kReplace)};
}

Note note_of(const RunEscalated& f) {
  const Json detail = {{"reason", f.reason}};
  return {f.at, kNoteEscalated, f.run, {}, detail.dump(-1, Json::Utf8::kReplace)};
}

Result<StandingFact> standing_fact_of(const Note& note) {
  if (note.kind == kNoteOperator) return as_standing(operator_fact_of(note));
  if (note.kind == kNoteLoss) return as_standing(loss_of(note));
  if (note.kind == kNoteFault) return as_standing(fault_of(note));
  if (note.kind == kNoteStageChecked) return as_standing(stage_checked_of(note));
  if (note.kind == kNoteStageOpened) return as_standing(stage_opened_of(note));
  if (note.kind == kNoteEscalated) return escalated_of(note);
  for (const auto& [verdict, word] : kWorkerNotes)
    if (note.kind == word) return worker_judged_of(note, verdict);
  return Error{Errc::kCorrupt, note.kind + ": no fact that is read again"};
}
}  // namespace proctor
