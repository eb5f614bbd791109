#include "coordinator/core/failures.h"

#include <algorithm>
#include <utility>

#include "common/base/parse.h"
#include "common/base/text.h"
#include "common/contract/campaign.h"

namespace proctor {
namespace {
// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// Were there such blames of the run?  A list that becomes empty goes with its last one.
bool withdraw_if(std::map<RunId, std::vector<PoisonBook::Blame>>& blamed, RunId run,
                 const auto& is_void) {
  const auto it = blamed.find(run);
  if (it == blamed.end()) return false;
  const bool was = 0 < std::erase_if(it->second, is_void);
  if (it->second.empty()) blamed.erase(it);
  return was;
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

Millis doubled(Millis first, Millis most, std::uint32_t nth) {
  Millis wait = std::min(first, most);
  for (std::uint32_t i = 1; i < nth && Millis::zero() < wait && wait < most; ++i)
    wait = wait <= most / 2 ? wait * 2 : most;
  return wait;
}

Millis backoff(const Retries& rules, RetryClass of, std::uint32_t nth, std::uint32_t seed,
               const AttemptId& failed) {
  const Millis first = of == RetryClass::kOverload ? rules.overload_backoff : rules.backoff;
  const Millis whole = doubled(first, rules.backoff_max, nth);
  const Millis half = whole / 2;
  const std::uint64_t what =
      (std::uint64_t{seed} << 32) ^ (std::uint64_t{failed.run.raw()} << 8) ^ failed.no.raw();
  const auto spread = static_cast<std::uint64_t>((whole - half).count()) + 1;
  return half + Millis(static_cast<std::int64_t>(mixed(what) % spread));
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
  return withdraw_if(blamed_, attempt.run, [&](const Blame& b) { return b.attempt == attempt.no; });
}

void PoisonBook::survived(const AttemptId& attempt) {
  withdraw_if(blamed_, attempt.run, [&](const Blame& b) { return b.attempt <= attempt.no; });
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

void FaultBook::take(const FaultFact& fact) {
  if (fact.verdict == FaultFact::Verdict::kWorked) return forgive(fact.subject);
  Row& row = rows_[fact.subject];
  if (fact.verdict == FaultFact::Verdict::kParked) row.parked = true;
  if (fact.verdict == FaultFact::Verdict::kParked && !row.failures.empty()) return;
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
  return "failed " + counted(row.failures.size() + row.forgotten, "time") + " on " +
         joined_names(workers(subject)) + ": " + row.failures.back().why;
}

namespace {
std::string stop_words(const std::string& mode, std::size_t tasks) {
  return "safety.stop_after: " + mode + " in runs of " + counted(tasks, "task");
}
}  // namespace

std::map<std::string, std::string> SafetyBook::news(std::string_view tags,
                                                    std::uint32_t task) const {
  std::map<std::string, std::string> out;
  while (stop_after_ != 0 && !tags.empty()) {
    const std::string mode(take_until(tags, ','));
    const auto it = modes_.find(mode);
    const Tasks before = it == modes_.end() ? Tasks{} : it->second;
    if (!critical_.contains(mode) || before.contains(task)) continue;
    const std::size_t tasks = before.size() + 1;
    out[mode] = tasks == stop_after_ ? stop_words(mode, tasks) : "";
  }
  return out;
}

std::string SafetyBook::why() const {
  std::string out;
  for (const auto& [mode, tasks] : modes_)
    if (stop_after_ <= tasks.size())
      out += (out.empty() ? "" : "; ") + stop_words(mode, tasks.size());
  return out;
}

void SafetyBook::go_on() {
  std::erase_if(modes_, [&](const auto& mode) { return stop_after_ <= mode.second.size(); });
}
}  // namespace proctor
