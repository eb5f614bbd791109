// proctor verify PATH: recomputes digests, hash chains and money of one run or a whole campaign.
#include "common/trace/verify.h"

#include <cstdio>

#include "coordinator/cli/command.h"
#include "coordinator/cli/report_files.h"
#include "coordinator/journal/journal_reader.h"
#include "coordinator/shell/plan_view.h"

namespace proctor::cli {
namespace {

struct Tally {
  std::uint64_t runs = 0, files = 0, events = 0, problems = 0;
  void problem(const std::string& where, const std::string& what) {
    ++problems;
    std::printf("%s: %s\n", where.c_str(), what.c_str());
  }
};

void verify_directory(const fs::path& dir, const std::optional<Digest>& report,
                      const PriceFunction& price, Tally& tally) {
  const VerifyResult result = verify_run(dir, report, price);
  ++tally.runs;
  tally.files += result.files;
  tally.events += result.events;
  for (const VerifyProblem& p : result.problems) tally.problem(dir.string(), to_string(p));
}

// Invariants 1 and 3 of the budget, from the journal's own rows (ARCHITECTURE section 5).
class MoneyAudit {
 public:
  explicit MoneyAudit(const PlanView& view)
      : view_(view), spent_(view.scopes.size()), reserved_(view.scopes.size()) {}

  void add(const AttemptRecord& a, Tally& tally) {
    const std::string name = "journal: attempt " + to_string(a.core.attempt);
    if (view_.runs.size() <= a.core.attempt.run.raw())
      return tally.problem(name, "the plan has no such run");
    if (a.core.settled && a.core.ask < a.core.charged) tally.problem(name, "charged above its ask");
    if (a.core.settled && a.cost.total() != a.core.charged + a.core.overrun)
      tally.problem(name, "its cost by category is not what was charged");
    if (a.core.has_result && !a.core.settled && a.core.state == AttemptState::kVoided)
      tally.problem(name, "voided, and yet it has a result");
    const bool out =
        !a.core.settled &&
        (a.core.state == AttemptState::kGranted || a.core.state == AttemptState::kFinished ||
         a.core.state == AttemptState::kLost || a.core.state == AttemptState::kCancelled);
    for (const ScopeId s : view_.path(a.core.attempt.run)) {
      if (a.core.settled) spent_[s.raw()] = spent_[s.raw()] + a.core.charged;
      if (out) reserved_[s.raw()] = reserved_[s.raw()] + a.core.ask;
    }
  }

  void finish(Tally& tally) const {
    MicroUsd tasks, stages;
    for (std::size_t i = 0; i < view_.scopes.size(); ++i) {
      const ScopeSpec& s = view_.scopes[i];
      if (s.cap < spent_[i] + reserved_[i])
        tally.problem("journal: envelope " + s.name,
                      format_usd_exact(spent_[i]) + " spent and " + format_usd_exact(reserved_[i]) +
                          " reserved pass its cap of " + format_usd_exact(s.cap));
      if (s.name.starts_with("stage:")) stages = stages + spent_[i];
      if (s.name.starts_with("task:")) tasks = tasks + spent_[i];
    }
    if (stages != spent_[0] || tasks != spent_[0])
      tally.problem("journal", "spend of stages, tasks and the campaign differ");
    std::printf("money: %s USD spent, %s reserved, of %s\n", format_usd_exact(spent_[0]).c_str(),
                format_usd_exact(reserved_[0]).c_str(),
                format_usd_exact(view_.scopes[0].cap).c_str());
  }

 private:
  const PlanView& view_;
  std::vector<MicroUsd> spent_, reserved_;
};

// Envelopes as the journal was written under must be those of the campaign.
void compare_scopes(const PlanView& view, const RestoredState& state, Tally& tally) {
  for (std::size_t i = 0; i < view.scopes.size(); ++i)
    if (state.scopes.size() <= i || state.scopes[i].name != view.scopes[i].name ||
        state.scopes[i].cap != view.scopes[i].cap)
      tally.problem("journal",
                    "envelope " + view.scopes[i].name + " is not the one that is registered");
}

Result<Tally> verify_campaign(const fs::path& folder) {
  PROCTOR_TRY(const FrozenCampaign frozen,
              load_frozen(folder, Outside::kSkip, [](const std::string&) {}));
  Tally tally;
  PROCTOR_TRY(JournalReader journal, JournalReader::open(frozen.folder.journal()));
  PROCTOR_TRY(const RestoredState state, journal.load());
  const PlanView view = make_plan_view(frozen.campaign, frozen.plan);
  compare_scopes(view, state, tally);
  MoneyAudit money(view);
  const PriceFunction price_it = [&](const Usage& usage) {
    return price(frozen.campaign.cost_model, usage);
  };
  PROCTOR_CHECK_OK(journal.each_attempt([&](const AttemptRecord& a) {
    money.add(a, tally);
    if (!a.core.has_result || a.archive_bytes == 0 ||
        frozen.plan.size() <= a.core.attempt.run.raw())
      return;
    verify_directory(
        frozen.folder.attempt(frozen.plan.run_name(a.core.attempt.run), a.core.attempt.no),
        a.report, price_it, tally);
  }));
  money.finish(tally);
  return tally;
}

int verify(const std::string& path) {
  std::error_code ec;
  Tally tally;
  if (fs::exists(fs::path(path) / "report.json", ec)) {
    verify_directory(path, std::nullopt, {}, tally);
  } else {
    Result<Tally> campaign = verify_campaign(path);
    if (!campaign.ok()) return complain(campaign.error());
    tally = *campaign;
  }
  std::printf("%llu runs, %llu files, %llu events: %llu problems\n",
              static_cast<unsigned long long>(tally.runs),
              static_cast<unsigned long long>(tally.files),
              static_cast<unsigned long long>(tally.events),
              static_cast<unsigned long long>(tally.problems));
  return tally.problems == 0 ? kOk : kJobFailed;
}

}  // namespace

void add_verify(CLI::App& app, int& exit_code) {
  auto* command =
      app.add_subcommand("verify", "recompute every digest, hash chain and budget invariant");
  command->footer(
      "Example:\n  proctor verify my-campaign\n"
      "  proctor verify my-campaign/runs/json-lib/noop/r1/attempt-1\n"
      "Exit code 1 when anything does not fit; each problem is a line.");
  auto path = std::make_shared<std::string>();
  command->add_option("PATH", *path, "a campaign's folder or one run directory")->required();
  command->callback([=, &exit_code] { exit_code = verify(*path); });
}

}  // namespace proctor::cli
