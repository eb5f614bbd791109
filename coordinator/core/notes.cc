#include "coordinator/core/notes.h"

#include <utility>

#include "common/base/json_fields.h"
#include "common/base/limits.h"
#include "common/base/parse.h"

namespace proctor {
std::string text_of_boot(const BootId& boot) {
  return std::to_string(boot.raw());
}

Result<BootId> boot_in(std::string_view text) {
  if (const auto boot = whole_number<std::uint64_t>(text)) return BootId(*boot);
  return Error{Errc::kCorrupt, "not the life of a worker"};
}

std::string list_of_attempts(const std::vector<AttemptId>& attempts) {
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

namespace {
// Its moment is `at`; it is of no run.
template <class Fact>
Note noted(std::string_view kind, const Fact& fact, WallTime at) {
  return {at, std::string(kind), {}, {}, to_json(fact).dump(-1, Json::Utf8::kReplace)};
}

template <class Fact>
Result<Fact> read(const Note& note) {
  constexpr std::size_t kDetailMax = std::size_t{1} << 30;  // "cancel all" of the largest plan
  const Result<Json> json = parse_json(note.detail, {.bytes_max = kDetailMax});
  if (!json.ok()) return Error{Errc::kCorrupt, note.kind + ": " + json.error().detail};
  Result<Fact> out = from_json<Fact>(*json, "", Errc::kCorrupt, Versions::kAny);
  if (!out.ok()) return in_context(note.kind, std::move(out).error());
  return out;
}

template <class To, class Fact>
Result<To> as(Result<Fact> fact) {
  if (!fact.ok()) return std::move(fact).error();
  return To(std::move(fact).value());
}

Status judge(StageChecked& fact) {
  PROCTOR_TRY(fact.holds, check_holds(fact.check));
  const Result<std::string> text = canonical_json(fact.check);
  if (text.ok() && sha256(*text) == fact.digest) return ok_status();
  return Error{Errc::kCorrupt,
               std::string(StageChecked::kNote) + ": its digest is another check's"};
}
}  // namespace

template <Noted Fact>
Note note_of(const Fact& fact) {
  Note out;
  if constexpr (std::same_as<Fact, OperatorFact>) {
    out = noted(OperatorFact::kNote, fact, fact.act.at);
    if (fact.act.runs.size() == 1) out.run = fact.act.runs.front();  // so that its story tells it
  } else if constexpr (std::same_as<Fact, WorkerJudged>) {
    out = noted(word_of(fact.verdict), fact, fact.at);
  } else if constexpr (std::same_as<Fact, WorkerJoined>) {
    out = noted(fact.again ? Fact::kNoteAgain : Fact::kNote, fact, fact.at);
  } else {
    out = noted(Fact::kNote, fact, fact.at);
  }
  if constexpr (requires { fact.run; }) out.run = fact.run;
  if constexpr (requires { fact.attempt; }) {
    out.run = fact.attempt.run;
    out.attempt = fact.attempt.no;
  }
  return out;
}

template <Noted Fact>
Result<Fact> fact_of(const Note& note) {
  PROCTOR_TRY(Fact out, read<Fact>(note));
  if constexpr (std::same_as<Fact, OperatorFact>)
    out.act.at = note.at;
  else
    out.at = note.at;
  if constexpr (std::same_as<Fact, WorkerJudged>)
    out.verdict = from_word<WorkerJudged::Verdict>(note.kind).value_or(out.verdict);
  if constexpr (std::same_as<Fact, WorkerJoined>) out.again = note.kind == Fact::kNoteAgain;
  if constexpr (std::same_as<Fact, StageChecked>) PROCTOR_CHECK_OK(judge(out));
  if constexpr (requires { out.run; }) {
    if (!note.run) return Error{Errc::kCorrupt, note.kind + ": of no run"};
    out.run = *note.run;
  }
  if constexpr (requires { out.attempt; }) {
    if (!note.run || !note.attempt) return Error{Errc::kCorrupt, note.kind + ": of no attempt"};
    out.attempt = {*note.run, *note.attempt};
  }
  return out;
}

template Note note_of(const OperatorFact&);
template Note note_of(const BudgetRaised&);
template Note note_of(const BudgetAlert&);
template Note note_of(const RunDominates&);
template Note note_of(const LossJudged&);
template Note note_of(const FaultFact&);
template Note note_of(const WorkerJudged&);
template Note note_of(const WorkerJoined&);
template Note note_of(const RunEscalated&);
template Note note_of(const SafetySeen&);
template Note note_of(const StageChecked&);
template Note note_of(const StageOpened&);
template Result<OperatorFact> fact_of(const Note&);
template Result<BudgetRaised> fact_of(const Note&);
template Result<BudgetAlert> fact_of(const Note&);
template Result<RunDominates> fact_of(const Note&);
template Result<LossJudged> fact_of(const Note&);
template Result<FaultFact> fact_of(const Note&);
template Result<WorkerJudged> fact_of(const Note&);
template Result<WorkerJoined> fact_of(const Note&);
template Result<RunEscalated> fact_of(const Note&);
template Result<SafetySeen> fact_of(const Note&);
template Result<StageChecked> fact_of(const Note&);
template Result<StageOpened> fact_of(const Note&);

Result<StandingFact> standing_fact_of(const Note& note) {
  if (note.kind == OperatorFact::kNote) return as<StandingFact>(fact_of<OperatorFact>(note));
  if (note.kind == LossJudged::kNote) return as<StandingFact>(fact_of<LossJudged>(note));
  if (note.kind == FaultFact::kNote) return as<StandingFact>(fact_of<FaultFact>(note));
  if (note.kind == StageChecked::kNote) return as<StandingFact>(fact_of<StageChecked>(note));
  if (note.kind == StageOpened::kNote) return as<StandingFact>(fact_of<StageOpened>(note));
  if (note.kind == SafetySeen::kNote) return as<StandingFact>(fact_of<SafetySeen>(note));
  if (note.kind == RunEscalated::kNote) return as<StandingFact>(fact_of<RunEscalated>(note));
  if (from_word<WorkerJudged::Verdict>(note.kind))
    return as<StandingFact>(fact_of<WorkerJudged>(note));
  return Error{Errc::kCorrupt, note.kind + ": no fact that is read again"};
}

namespace {
using Member = SharedMember::State;

std::string word_of_member(Member state) {
  return state == Member::kLeft ? "left" : "known";
}

Result<Member> member_in(std::string_view word) {
  if (word == "left") return Member::kLeft;
  if (word == "known") return Member::kUnheard;
  return Error{Errc::kCorrupt, "an unknown state"};
}
}  // namespace

static void fields(auto& v, Is<SharedMember> auto& m) {
  v("ceiling", m.ceiling);
  v("member", m.id);
  v("name", m.name);
  v("spent", m.spent);
  v("state", AsText{m.state, word_of_member, member_in});
}

static void fields(auto& v, Is<SharedLimit> auto& own) {
  v("limit", own.limit);
}

Note note_of(const SharedFact& fact, WallTime at) {
  if (const auto* own = std::get_if<SharedLimit>(&fact)) return noted(kNoteShared, *own, at);
  SharedMember other = std::get<SharedMember>(fact);
  if (other.state != Member::kLeft) other.spent = MicroUsd::zero();
  return noted(kNoteShared, other, at);
}

Result<SharedFact> shared_fact_of(const Note& note) {
  const Result<Json> json = parse_json(note.detail);
  if (json.ok() && json->is_object() && json->contains("limit"))
    return as<SharedFact>(read<SharedLimit>(note));
  return as<SharedFact>(read<SharedMember>(note));
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
