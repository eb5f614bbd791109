#include "tests/fault/liar/oracles.h"

#include <algorithm>
#include <cstdio>

#include "common/trace/run_report.h"

#include "coordinator/journal/journal_reader.h"
#include "coordinator/shell/campaign_view.h"
#include "coordinator/shell/state_folder.h"

namespace proctor::liar {
namespace {

class Judge {
 public:
  Judge(const fs::path& scene, const Played& played, const Liar::Workers& honest,
        const std::set<AttemptId>& begun)
      : scene_(scene), folder_{scene / "camp"}, played_(played), honest_(honest), begun_(begun) {}

  std::vector<std::string> judge() {
    if (const Status read = judge_journal(); !read.ok())
      wrong("the journal cannot be read: " + read.error().detail);
    judge_names();
    return std::move(wrong_);
  }

 private:
  void wrong(std::string text) { wrong_.push_back(std::move(text)); }

  const Honest::Work* honest_work(const AttemptId& id) const {
    for (const auto& h : honest_)
      if (const auto it = h->works().find(id); it != h->works().end()) return &it->second;
    return nullptr;
  }

  Status judge_journal() {
    PROCTOR_TRY(JournalReader reader, JournalReader::open(folder_.journal()));
    PROCTOR_TRY(const RestoredState state, reader.load());
    PROCTOR_TRY(const std::vector<std::string> seals, reader.check_seals());
    for (const std::string& seal : seals) wrong("seals: " + seal);
    std::map<AttemptId, AttemptRecord> attempts;
    PROCTOR_CHECK_OK(
        reader.each_attempt([&](const AttemptRecord& a) { attempts[a.core.attempt] = a; }));
    for (const auto& [id, a] : attempts) judge_attempt(a);
    for (const EndedRun& run : state.ended) {
      const AttemptId id{run.run, run.attempt};
      if (!attempts.contains(id)) {
        wrong("run " + std::to_string(run.run.raw()) + " ended by an attempt that has no row");
        continue;
      }
      judge_end(run, attempts.at(id));
    }
    std::set<RunId> over;
    for (const EndedRun& run : state.ended) over.insert(run.run);
    for (const ParkedRun& run : state.parked) over.insert(run.run);
    if (over.size() != played_.plan.size())
      wrong(std::to_string(over.size()) + " of " + std::to_string(played_.plan.size()) +
            " runs have ended or are parked");
    for (const auto& h : honest_)
      for (const auto& [id, work] : h->works())
        if (!attempts.contains(id))
          wrong("attempt " + to_string(id) + " of " + h->name() + " has no row");
    judge_money(state);
    return ok_status();
  }

  void judge_attempt(const AttemptRecord& a) {
    const std::string who = "attempt " + to_string(a.core.attempt) + ": ";
    if (a.core.ask < a.core.charged) wrong(who + "charged more than its ask");
    const bool open = !a.core.settled && a.core.state != AttemptState::kVoided &&
                      a.core.state != AttemptState::kDenied;
    if (open) wrong(who + "is not settled");
    const Honest::Work* work = honest_work(a.core.attempt);
    if (work == nullptr) return judge_own(a, who);
    if (a.core.worker.raw() == kLiarName) return wrong(who + "is honest work, booked for the liar");
    if (work->stage == Honest::Stage::kRunning) return wrong(who + "still runs");
    const wire::ResultMessage& said = work->said.result;
    if (a.core.state != AttemptState::kFinished || !a.core.has_result)
      return wrong(who + "honest, delivered, and not finished: " + a.reason);
    if (a.core.outcome != said.outcome || a.core.termination != said.termination ||
        a.rationale != said.rationale || a.report != said.report || a.archive != said.archive ||
        a.core.usage != said.usage)
      wrong(who + "its result is not what its worker said: " + a.rationale);
    if (a.core.charged != price(played_.campaign.cost_model, said.usage).total())
      wrong(who + "its price is not that of what its worker said");
    judge_evidence(a, *work, who);
  }

  // Nobody but the liar is harmed by what is not true of these; but what decides needs evidence.
  void judge_own(const AttemptRecord& a, const std::string& who) {
    if (a.core.state == AttemptState::kVoided && begun_.contains(a.core.attempt))
      wrong(who + "had begun and was given back for nothing: " + a.reason);
    const bool decided = a.core.has_result && a.core.sets_outcome && !a.core.infrastructure &&
                         a.core.outcome != RunOutcome::kInvalid;
    if (!decided) return;
    const fs::path dir =
        folder_.attempt(played_.plan.run_name(a.core.attempt.run), a.core.attempt.no);
    const Result<std::string> bytes = read_file(dir / "report.json", kReportBytes);
    if (a.archive_bytes == 0 || !bytes.ok()) return wrong(who + "decides its run without evidence");
    const Result<RunReport> report = parse_report(*bytes);
    if (sha256(*bytes) != a.report || !report.ok() || report->outcome != a.core.outcome ||
        report->attempt != a.core.attempt)
      wrong(who + "decides its run by another report than its evidence has");
  }

  void judge_end(const EndedRun& run, const AttemptRecord& a) {
    const std::string who = "run " + std::to_string(run.run.raw()) + ": ";
    const Honest::Work* work = honest_work(a.core.attempt);
    if (work == nullptr) {
      if (a.core.worker.raw() != kLiarName)
        wrong(who + "ended by attempt " + std::to_string(run.attempt.raw()) + ", which nobody had");
      return;
    }
    if (run.outcome != work->said.result.outcome)
      wrong(who + "ended otherwise than its honest worker said");
  }

  void judge_evidence(const AttemptRecord& a, const Honest::Work& work, const std::string& who) {
    const fs::path dir =
        folder_.attempt(played_.plan.run_name(a.core.attempt.run), a.core.attempt.no);
    const auto found = digests_of(dir);
    if (!found.ok()) return wrong(who + "its evidence is gone: " + found.error().detail);
    if (*found != work.said.files) wrong(who + "its evidence has changed");
    const Result<std::string> archive = read_file(dir.string() + ".tar.zst", limits::kArchiveBytes);
    if (!archive.ok() || sha256(*archive) != a.archive) wrong(who + "its archive has changed");
  }

  void judge_money(const RestoredState& state) {
    const PlanView view = make_plan_view(played_.campaign, played_.plan);
    std::vector<MicroUsd> spent(view.scopes.size());
    for (const RestoredAttempt& a : state.attempts)
      if (a.settled)
        for (const ScopeId s : view.path(a.attempt.run))
          spent[s.raw()] = spent[s.raw()] + a.charged;
    for (std::size_t i = 0; i < spent.size(); ++i)
      if (view.scopes[i].cap < spent[i]) wrong("envelope " + view.scopes[i].name + " was passed");
  }

  // What lies in the scene: nothing that a message could have named.
  void judge_names() {
    std::error_code ec;
    const std::set<std::string> expected{"camp", "coordinator.said", "scratch"};
    for (const auto& e : fs::directory_iterator(scene_, ec))
      if (!expected.contains(e.path().filename())) wrong("made: " + e.path().string());
    const std::set<std::string> in_camp{"campaign.yaml", "contracts", ".proctor", "runs"};
    for (const auto& e : fs::directory_iterator(folder_.campaign, ec))
      if (!in_camp.contains(e.path().filename())) wrong("made: " + e.path().string());
    std::set<std::string> runs;
    for (std::uint32_t r = 0; r < played_.plan.size(); ++r)
      runs.insert(played_.plan.run_name(RunId(r)));
    for (auto it = fs::recursive_directory_iterator(folder_.runs(), ec);
         !ec && it != fs::recursive_directory_iterator(); it.increment(ec)) {
      if (it.depth() != 2) continue;
      if (const std::string name = it->path().lexically_relative(folder_.runs()).string();
          !runs.contains(name) && !name.starts_with(".incoming"))
        wrong("made: " + it->path().string());
    }
  }

  fs::path scene_;
  StateFolder folder_;
  const Played& played_;
  const Liar::Workers& honest_;
  const std::set<AttemptId>& begun_;
  std::vector<std::string> wrong_;
};

}  // namespace

std::vector<std::string> judge(const fs::path& scene, const Played& played,
                               const Liar::Workers& honest, const std::set<AttemptId>& begun) {
  return Judge(scene, played, honest, begun).judge();
}

bool was_granted(const fs::path& folder, const AttemptId& attempt) {
  Result<JournalReader> reader = JournalReader::open(StateFolder{folder}.journal());
  if (!reader.ok()) return true;  // it is being made
  const auto attempts = reader->attempts_of(attempt.run);
  return !attempts.ok() || std::ranges::any_of(*attempts, [&](const AttemptRecord& a) {
    return a.core.attempt == attempt && !a.core.worker.raw().empty();
  });
}

Incoming incoming_of(const fs::path& folder) {
  Incoming out;
  std::error_code ec;
  for (auto it = fs::directory_iterator(StateFolder{folder}.incoming(), ec);
       !ec && it != fs::directory_iterator(); it.increment(ec)) {
    ++out.files;
    unsigned run = 0, no = 0;
    if (std::sscanf(it->path().filename().c_str(), "%u.%u", &run, &no) == 2)
      out.attempts.insert({RunId(run), AttemptNo(no)});
    std::error_code gone;
    const std::uint64_t size = fs::is_regular_file(it->path(), gone) ? it->file_size(gone) : 0;
    if (!gone) out.bytes += size;  // else it was moved meanwhile
  }
  return out;
}

}  // namespace proctor::liar
