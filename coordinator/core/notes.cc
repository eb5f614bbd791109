#include "coordinator/core/notes.h"

#include <algorithm>
#include <array>
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

Note note_of(const BudgetRaised& r) {
  const Json detail = {{"by", r.by},         {"from", r.from.micros()}, {"name", r.name},
                       {"reason", r.reason}, {"scope", r.scope.raw()},  {"to", r.to.micros()}};
  return {r.at, kNoteBudgetRaised, {}, {}, detail.dump(-1, Json::Utf8::kReplace)};
}

Result<BudgetRaised> raise_of(std::string_view detail, WallTime at) {
  const auto wrong = [](const std::string& what) {
    return Error{Errc::kCorrupt, "budget_raised: " + what};
  };
  const Result<Json> parsed = parse_json(detail);
  if (!parsed.ok()) return wrong(parsed.error().detail);
  if (!parsed->is_object() || parsed->size() != 6) return wrong("not the object that is written");
  for (const char* key : {"by", "name", "reason"})
    if (!parsed->contains(key) || !(*parsed)[key].is_string())
      return wrong(std::string(key) + " is not a text");
  for (const char* key : {"from", "scope", "to"})
    if (!parsed->contains(key) || !(*parsed)[key].is_number_unsigned() ||
        static_cast<std::uint64_t>(kLedgerMax.micros()) < (*parsed)[key].get<std::uint64_t>())
      return wrong(std::string(key) + " is not an amount");
  const Json& j = *parsed;
  const auto amount = [&](const char* key) {
    return MicroUsd::from_micros(j[key].get<std::int64_t>());
  };
  const auto scope = j["scope"].get<std::uint64_t>();
  if (UINT32_MAX < scope) return wrong("scope is not an envelope");
  BudgetRaised out;
  out.scope = ScopeId(static_cast<std::uint32_t>(scope));
  out.name = j["name"].get<std::string>();
  out.from = amount("from");
  out.to = amount("to");
  out.reason = j["reason"].get<std::string>();
  out.by = j["by"].get<std::string>();
  out.at = at;
  return out;
}

Status raise_cap(std::vector<ScopeSpec>& scopes, const BudgetRaised& r) {
  const std::string what = "journal: the raise of " + r.name + " to " + format_usd_exact(r.to);
  if (scopes.size() <= r.scope.raw() || scopes[r.scope.raw()].name != r.name)
    return Error{Errc::kCorrupt, what + " is of an envelope that is not there"};
  ScopeSpec& scope = scopes[r.scope.raw()];
  if (scope.cap != r.from || r.to <= r.from)
    return Error{Errc::kCorrupt, what + " begins at " + format_usd_exact(r.from) +
                                     ", but the cap was " + format_usd_exact(scope.cap)};
  scope.cap = r.to;
  return ok_status();
}

namespace {
Note note_of_json(WallTime at, const char* kind, const Json& detail) {
  return {at, kind, {}, {}, detail.dump(-1, Json::Utf8::kReplace)};
}

// What both have.
struct Read {
  Json detail;
  std::string stage;
  Digest digest;
};
Result<Read> read(const Note& note) {
  const auto wrong = [&](const char* what) { return Error{Errc::kCorrupt, note.kind + what}; };
  Result<Json> detail = parse_json(note.detail);
  if (!detail.ok() || !detail->is_object()) return wrong(": not an object");
  for (const char* key : {"stage", "digest"})
    if (!detail->contains(key) || !(*detail)[key].is_string())
      return wrong(": no stage, or no digest");
  const Result<Digest> digest = Digest::from_hex((*detail)["digest"].get<std::string>());
  if (!digest.ok()) return wrong(": its digest is none");
  Read out{std::move(*detail), {}, *digest};
  out.stage = out.detail["stage"].get<std::string>();
  return out;
}
}  // namespace

Note note_of(const StageChecked& f) {
  return note_of_json(f.at, kNoteStageChecked,
                      {{"stage", f.stage}, {"digest", f.digest.hex()}, {"check", f.check}});
}

Result<StageChecked> stage_checked_of(const Note& note) {
  PROCTOR_TRY(Read r, read(note));
  StageChecked out{std::move(r.stage), r.detail.value("check", Json()), r.digest, false, note.at};
  PROCTOR_TRY(out.holds, check_holds(out.check));
  const Result<std::string> text = canonical_json(out.check);
  if (!text.ok() || sha256(*text) != out.digest)
    return Error{Errc::kCorrupt, note.kind + ": its digest is another check's"};
  return out;
}

Note note_of(const StageOpened& f) {
  return note_of_json(f.at, kNoteStageOpened,
                      {{"stage", f.stage}, {"digest", f.digest.hex()}, {"by", f.by}});
}

Result<StageOpened> stage_opened_of(const Note& note) {
  PROCTOR_TRY(Read r, read(note));
  StageOpened out{std::move(r.stage), r.digest, {}, note.at};
  const auto by = r.detail.find("by");
  if (by == r.detail.end() || !by->is_array())
    return Error{Errc::kCorrupt, note.kind + ": nobody is named"};
  for (const Json& name : *by) {
    if (!name.is_string()) return Error{Errc::kCorrupt, note.kind + ": a name is none"};
    out.by.push_back(name.get<std::string>());
  }
  return out;
}

namespace {
constexpr const char* kLeft = "left";
constexpr const char* kKnown = "known";

Error wrong(const std::string& what) {
  return {Errc::kCorrupt, std::string(kNoteShared) + ": " + what};
}

bool is_amount(const Json& j, const char* key) {
  return j.contains(key) && j[key].is_number_unsigned() &&
         j[key].get<std::uint64_t>() <= static_cast<std::uint64_t>(kLedgerMax.micros());
}

MicroUsd amount(const Json& j, const char* key) {
  return MicroUsd::from_micros(j[key].get<std::int64_t>());
}

Result<SharedMember> member_of(const Json& j) {
  for (const char* key : {"member", "name", "state"})
    if (!j.contains(key) || !j[key].is_string()) return wrong(std::string(key) + " is not a text");
  for (const char* key : {"ceiling", "spent"})
    if (!is_amount(j, key)) return wrong(std::string(key) + " is not an amount");
  SharedMember out;
  out.id = j["member"].get<std::string>();
  out.name = j["name"].get<std::string>();
  const std::string state = j["state"].get<std::string>();
  if (state != kLeft && state != kKnown) return wrong("an unknown state");
  out.state = state == kLeft ? SharedMember::State::kLeft : SharedMember::State::kUnheard;
  out.ceiling = amount(j, "ceiling");
  out.spent = amount(j, "spent");
  return out;
}

Note note(const Json& detail, WallTime at) {
  return {at, kNoteShared, {}, {}, detail.dump(-1, Json::Utf8::kReplace)};
}
}  // namespace

Note note_of(const SharedFact& fact, WallTime at) {
  if (const auto* own = std::get_if<SharedLimit>(&fact))
    return note({{"limit", own->limit.micros()}}, at);
  const auto& other = std::get<SharedMember>(fact);
  const bool left = other.state == SharedMember::State::kLeft;
  return note({{"ceiling", other.ceiling.micros()},
               {"member", other.id},
               {"name", other.name},
               {"spent", left ? other.spent.micros() : 0},
               {"state", left ? kLeft : kKnown}},
              at);
}

Result<SharedFact> shared_fact_of(const Note& note) {
  const Result<Json> parsed = parse_json(note.detail);
  if (!parsed.ok()) return wrong(parsed.error().detail);
  if (!parsed->is_object()) return wrong("not the object that is written");
  if (parsed->contains("limit")) {
    if (!is_amount(*parsed, "limit")) return wrong("limit is not an amount");
    return SharedFact(SharedLimit{amount(*parsed, "limit")});
  }
  PROCTOR_TRY(SharedMember member, member_of(*parsed));
  return SharedFact(std::move(member));
}

Result<SharedBook> shared_book_of(std::string self, const std::vector<Note>& notes) {
  SharedBook out(std::move(self));
  for (const Note& n : notes) {
    PROCTOR_TRY(const SharedFact fact, shared_fact_of(n));
    out.apply(fact);
  }
  return out;
}
}  // namespace proctor
