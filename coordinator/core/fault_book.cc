#include "coordinator/core/fault_book.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "common/base/json.h"

namespace proctor {
namespace {

using FaultVerdict = FaultFact::Verdict;
using FaultKind = FaultSubject::Kind;
constexpr std::array<std::pair<FaultVerdict, std::string_view>, 3> kFaultVerdicts{
    {{FaultVerdict::kFailed, "failed"},
     {FaultVerdict::kWorked, "worked"},
     {FaultVerdict::kParked, "parked"}}};
constexpr std::array<std::pair<FaultKind, std::string_view>, 2> kFaultKinds{
    {{FaultKind::kTask, "task"}, {FaultKind::kMethod, "method"}}};

template <class Value, std::size_t N>
std::string word_for(const std::array<std::pair<Value, std::string_view>, N>& words, Value value) {
  for (const auto& [v, word] : words)
    if (v == value) return std::string(word);
  return "";
}

template <class Value, std::size_t N>
std::optional<Value> value_for(const std::array<std::pair<Value, std::string_view>, N>& words,
                               std::string_view word) {
  for (const auto& [v, w] : words)
    if (w == word) return v;
  return std::nullopt;
}

std::string joined_names(const std::set<WorkerId>& workers) {
  std::string out;
  std::size_t left = workers.size();
  for (const WorkerId& w : workers) {
    out += w.raw();
    if (--left != 0) out += left == 1 ? " and " : ", ";
  }
  return out;
}

}  // namespace

Note note_of(const FaultFact& f) {
  Json detail = {{"of", word_for(kFaultKinds, f.subject.kind)},
                 {"index", f.subject.index},
                 {"verdict", word_for(kFaultVerdicts, f.verdict)},
                 {"worker", f.worker.raw()}};
  if (f.verdict != FaultVerdict::kWorked) {
    detail["cause"] = f.cause;
    detail["why"] = f.why;
  }
  return {f.at, kNoteFault, f.attempt.run, f.attempt.no, detail.dump(-1, Json::Utf8::kReplace)};
}

Result<FaultFact> fault_of(const Note& note) try {
  const auto wrong = [&](const std::string& what) {
    return Error{Errc::kCorrupt, note.kind + ": " + what};
  };
  PROCTOR_TRY(const Json j, parse_json(note.detail));
  const auto kind = value_for(kFaultKinds, j.at("of").get<std::string>());
  const auto verdict = value_for(kFaultVerdicts, j.at("verdict").get<std::string>());
  if (!kind) return wrong("of is neither a task nor a method");
  if (!verdict) return wrong("verdict is none that is given");
  if (!note.run || !note.attempt) return wrong("of no attempt");
  FaultFact out;
  out.subject = {*kind, j.at("index").get<std::uint32_t>()};
  out.verdict = *verdict;
  out.attempt = {*note.run, *note.attempt};
  out.worker = WorkerId(j.at("worker").get<std::string>());
  out.cause = j.value("cause", "");
  out.why = j.value("why", "");
  out.at = note.at;
  return out;
} catch (const std::exception& e) {  // of the JSON library
  return Error{Errc::kCorrupt, note.kind + ": " + e.what()};
}

void FaultBook::take(const FaultFact& fact) {
  if (fact.verdict == FaultVerdict::kWorked) return forgive(fact.subject);
  Row& row = rows_[fact.subject];
  if (fact.verdict == FaultVerdict::kParked) row.parked = true;
  if (fact.verdict == FaultVerdict::kParked && !row.failures.empty()) return;
  row.failures.push_back(fact);
  if (row.failures.size() <= kRowMax) return;
  row.failures.erase(row.failures.begin());
  ++row.forgotten;
}

bool FaultBook::is_parked(const FaultSubject& subject) const {
  const auto it = rows_.find(subject);
  return it != rows_.end() && it->second.parked;
}

std::size_t FaultBook::equal_at_end(const Row& row) const {
  const std::string& cause = row.failures.back().cause;
  const auto differs = std::find_if(row.failures.rbegin(), row.failures.rend(),
                                    [&](const FaultFact& f) { return f.cause != cause; });
  return static_cast<std::size_t>(differs - row.failures.rbegin());
}

bool FaultBook::is_due(const FaultSubject& subject) const {
  const auto it = rows_.find(subject);
  return it != rows_.end() &&
         std::min<std::size_t>(park_after_, kRowMax) <= equal_at_end(it->second);
}

bool FaultBook::failed_at(const FaultSubject& subject, const WorkerId& worker) const {
  const auto it = rows_.find(subject);
  return it != rows_.end() && std::ranges::any_of(it->second.failures, [&](const FaultFact& f) {
           return f.worker == worker;
         });
}

std::set<WorkerId> FaultBook::workers(const FaultSubject& subject) const {
  std::set<WorkerId> out;
  if (const auto it = rows_.find(subject); it != rows_.end())
    for (const FaultFact& f : it->second.failures) out.insert(f.worker);
  return out;
}

std::optional<FaultBook::Alone> FaultBook::failed_alone(const FaultSubject& subject,
                                                        const WorkerId& worker) const {
  const std::set<WorkerId> failed = workers(subject);
  if (failed.size() != 1 || failed.contains(worker)) return std::nullopt;
  return Alone{*failed.begin(), static_cast<std::uint32_t>(rows_.at(subject).failures.size())};
}

const FaultFact* FaultBook::last(const FaultSubject& subject) const {
  const auto it = rows_.find(subject);
  return it == rows_.end() ? nullptr : &it->second.failures.back();
}

std::vector<FaultSubject> FaultBook::subjects() const {
  std::vector<FaultSubject> out;
  for (const auto& [subject, row] : rows_) out.push_back(subject);
  return out;
}

std::vector<FaultSubject> FaultBook::due() const {
  std::vector<FaultSubject> out;
  for (const auto& [subject, row] : rows_)
    if (!row.parked && is_due(subject)) out.push_back(subject);
  return out;
}

std::vector<FaultSubject> FaultBook::parked() const {
  std::vector<FaultSubject> out;
  for (const auto& [subject, row] : rows_)
    if (row.parked) out.push_back(subject);
  return out;
}

std::string FaultBook::describe(const FaultSubject& subject) const {
  const Row& row = rows_.at(subject);
  const std::size_t times = row.failures.size() + row.forgotten;
  return "failed " + std::to_string(times) + (times == 1 ? " time on " : " times on ") +
         joined_names(workers(subject)) + ": " + row.failures.back().why;
}

}  // namespace proctor
