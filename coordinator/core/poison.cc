#include "coordinator/core/poison.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "common/base/json.h"
#include "common/base/parse.h"

namespace proctor {
namespace {

using Verdict = LossJudged::Verdict;
constexpr std::array<std::pair<Verdict, std::string_view>, 3> kVerdicts{
    {{Verdict::kBlamed, "blamed"},
     {Verdict::kWithdrawn, "withdrawn"},
     {Verdict::kExcused, "excused"}}};

}  // namespace

// The boot as text: JSON numbers are not exact at 64 bits for every reader.
Note note_of(const LossJudged& f) {
  std::string verdict;
  for (const auto& [value, word] : kVerdicts)
    if (value == f.verdict) verdict = word;
  const Json detail = {
      {"boot", std::to_string(f.boot.raw())}, {"verdict", verdict}, {"worker", f.worker.raw()}};
  return {f.at, kNoteLoss, f.attempt.run, f.attempt.no, detail.dump(-1, Json::Utf8::kReplace)};
}

Result<LossJudged> loss_of(const Note& note) {
  const auto wrong = [&](const std::string& what) {
    return Error{Errc::kCorrupt, note.kind + ": " + what};
  };
  const Result<Json> parsed = parse_json(note.detail);
  if (!parsed.ok()) return wrong(parsed.error().detail);
  if (!parsed->is_object()) return wrong("not an object");
  for (const char* key : {"boot", "verdict", "worker"})
    if (!parsed->contains(key) || !(*parsed)[key].is_string())
      return wrong(std::string(key) + " is not a text");
  if (!note.run || !note.attempt) return wrong("of no attempt");
  const auto boot = whole_number<std::uint64_t>((*parsed)["boot"].get<std::string>());
  if (!boot) return wrong("boot is not a number");
  const auto word = (*parsed)["verdict"].get<std::string>();
  const auto verdict =
      std::ranges::find(kVerdicts, word, &std::pair<Verdict, std::string_view>::second);
  if (verdict == kVerdicts.end()) return wrong("verdict is none that is given");
  return LossJudged{{*note.run, *note.attempt},
                    verdict->first,
                    WorkerId((*parsed)["worker"].get<std::string>()),
                    BootId(*boot),
                    note.at};
}

void PoisonBook::blame(const AttemptId& attempt, const WorkerId& worker, BootId boot) {
  blamed_[attempt.run].push_back({attempt.no, worker, boot});
}

std::vector<AttemptId> PoisonBook::heard_of(const WorkerId& worker, BootId boot) {
  std::vector<AttemptId> out;
  for (const auto& [run, blames] : blamed_)
    for (const Blame& b : blames)
      if (b.worker == worker && b.boot == boot) out.push_back({run, b.attempt});
  for (const AttemptId& id : out) withdraw(id);
  return out;
}

bool PoisonBook::withdraw(const AttemptId& attempt) {
  const auto it = blamed_.find(attempt.run);
  if (it == blamed_.end()) return false;
  const bool was =
      0 < std::erase_if(it->second, [&](const Blame& b) { return b.attempt == attempt.no; });
  if (it->second.empty()) blamed_.erase(it);
  return was;
}

void PoisonBook::survived(const AttemptId& attempt) {
  const auto it = blamed_.find(attempt.run);
  if (it == blamed_.end()) return;
  std::erase_if(it->second, [&](const Blame& b) { return b.attempt <= attempt.no; });
  if (it->second.empty()) blamed_.erase(it);
}

void PoisonBook::pardon(RunId run) {
  const auto it = blamed_.find(run);
  if (it == blamed_.end() || it->second.size() <= kSuspectAfter) return;
  it->second.erase(it->second.begin(),
                   it->second.end() - static_cast<std::ptrdiff_t>(kSuspectAfter));
}

void PoisonBook::rest(RunId run) {
  if (auto node = blamed_.extract(run)) resting_.insert(std::move(node));
}

void PoisonBook::wake(RunId run) {
  if (auto node = resting_.extract(run)) blamed_.insert(std::move(node));
}

std::vector<RunId> PoisonBook::awake() const {
  std::vector<RunId> out;
  for (const auto& [run, blames] : blamed_) out.push_back(run);
  return out;
}

const std::vector<PoisonBook::Blame>& PoisonBook::blames(RunId run) const {
  static const std::vector<Blame> kNone;
  const auto it = blamed_.find(run);
  return it == blamed_.end() ? kNone : it->second;
}

std::string describe_poison(const std::vector<PoisonBook::Blame>& blames) {
  std::string workers;
  for (const PoisonBook::Blame& b : blames)
    workers += (workers.empty() ? "" : ", ") + b.worker.raw();
  return "its worker died " + std::to_string(blames.size()) + " times under it (" + workers +
         "), the last time with nothing else there";
}

}  // namespace proctor
