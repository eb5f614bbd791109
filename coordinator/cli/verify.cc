// proctor verify PATH: recomputes digests, hash chains and money of one run or a whole campaign.

#include "common/trace/verify.h"

#include <cstdio>

#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/contract/cost_model.h"
#include "coordinator/cli/campaign_files.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/open_journal.h"
#include "coordinator/cli/report_digests.h"
#include "coordinator/cli/verify_evidence.h"
#include "coordinator/cli/verify_folder.h"
#include "coordinator/cli/verify_gates.h"
#include "coordinator/cli/verify_kept.h"
#include "coordinator/cli/verify_money.h"
#include "coordinator/cli/verify_redis.h"
#include "coordinator/cli/verify_removals.h"
#include "coordinator/cli/verify_seal.h"
#include "coordinator/journal/host_key.h"
#include "coordinator/journal/journal_reader.h"
#include "coordinator/shell/behind.h"
#include "coordinator/shell/plan_view.h"

namespace proctor::cli {
namespace {

struct Tally {
  // Runs that have an outcome, and the attempts of all that left evidence: one that was cancelled
  // or set aside is an attempt, and no run.
  std::uint64_t runs = 0, attempts = 0, files = 0, events = 0, problems = 0;
  std::string first;
  void problem(const std::string& where, const std::string& what) {
    constexpr std::size_t kShown = 2 * limits::kDetailBytes;
    if (problems++ == 0) first = printable(where, kShown) + ": " + printable(what, kShown);
    std::printf("%s: %s\n", printable(where, kShown).c_str(), printable(what, kShown).c_str());
  }
};

void count(const fs::path& dir, const VerifyResult& result, Tally& tally) {
  ++tally.attempts;
  tally.files += result.files;
  tally.events += result.events;
  for (const VerifyProblem& p : result.problems) tally.problem(dir.string(), to_string(p));
}

struct VerifyArgs {
  std::string path, seal_key, head;
};

Result<Tally> verify_campaign(const VerifyArgs& args) {
  const fs::path folder = args.path;
  PROCTOR_TRY(const FrozenCampaign frozen, load_registered(folder));
  Tally tally;
  PROCTOR_TRY(JournalReader journal, open_journal(frozen.folder));
  // A coordinator may write meanwhile: rows are compared with rows of the same moment.
  PROCTOR_CHECK_OK(journal.hold());
  const auto tell = [&](const std::string& where, const std::string& what) {
    tally.problem(where, what);
  };
  verify_modes(frozen.folder, tell);
  // Before its rows are believed: a view may stand where a table was.
  PROCTOR_CHECK_OK(verify_journal_objects(journal, tell));
  PROCTOR_TRY(const RestoredState state, journal.load());
  verify_kept(frozen.campaign, frozen.registration, kept_digest(state.meta), tell);
  PlanView view = make_plan_view(frozen.campaign, frozen.plan);
  if (const Status raised = apply_raises(view, state.raises); !raised.ok())
    tally.problem("journal", raised.error().detail);
  const fs::path registered = frozen.folder.registration();
  PROCTOR_TRY(const std::string written, read_file(registered, limits::kConfigFileBytes * 16));
  // Its content is bound by its digest; what an older version wrote has other members, and the
  // same spelling.
  const Result<Json> spelled = parse_json(written, {limits::kConfigFileBytes * 16, 8});
  if (!spelled.ok() || written != spelled->dump(2) + "\n")
    tally.problem(registered.string(), "not as it was written: it has other bytes");
  MoneyAudit money(view, frozen.plan, frozen.campaign.cost_model, state, tell);
  tally.runs = state.ended.size();
  EvidenceAudit evidence(
      frozen, [&](const Usage& usage) { return price(frozen.campaign.cost_model, usage); }, tell);
  PROCTOR_CHECK_OK(journal.each_attempt([&](const AttemptRecord& a) {
    const std::optional<VerifyResult> result = evidence.add(a);
    money.add(a, result ? result->report : std::nullopt);
    if (!result) return;
    count(frozen.folder.attempt(frozen.plan.run_name(a.core.attempt.run), a.core.attempt.no),
          *result, tally);
  }));
  // What lies elsewhere goes on, and is held against the journal as it goes on.
  PROCTOR_TRY(JournalReader now, open_journal(frozen.folder));
  PROCTOR_CHECK_OK(evidence.finish(now));
  if (evidence.without() != 0)
    std::printf("evidence: %s ended before there was any\n",
                counted(evidence.without(), "attempt").c_str());
  money.finish();
  if (frozen.registration.analysis.contains("budget_alerts"))
    money.check_told(frozen.campaign.watch);
  std::printf(
      "money: %s %s spent, %s reserved, of %s\n", format_usd_exact(money.spent()[0]).c_str(),
      money_word(frozen.campaign.cost_model).c_str(), format_usd_exact(money.reserved()[0]).c_str(),
      format_usd_exact(view.scopes[0].cap).c_str());
  PROCTOR_CHECK_OK(verify_removals(journal, frozen.registration, tell));
  PROCTOR_CHECK_OK(verify_gates(journal, frozen, state, tell));
  PROCTOR_TRY(const std::vector<std::string> broken, journal.check_seals());
  for (const std::string& what : broken) tally.problem("journal", what);
  PROCTOR_TRY(const std::optional<Digest> head, journal.head());
  std::printf("journal: %s\n",
              head ? ("head " + head->hex()).c_str() : "written before rows were sealed");
  for (const MetaSet& m : state.meta)
    if (m.key == kMetaRunAgain)
      std::printf("deviation: %s: %s\n", printable(m.value, 100).c_str(), kRunBefore);
  PROCTOR_CHECK_OK(verify_keyed_seal(journal, args.seal_key, tell));
  if (!args.head.empty()) PROCTOR_CHECK_OK(verify_heads(journal, args.head, args.seal_key, tell));
  PROCTOR_CHECK_OK(verify_reports(frozen, args.seal_key, tell));
  const std::string redis = verify_redis(frozen, now, tell);
  std::printf("redis: %s\n", redis.c_str());
  return tally;
}

int verify(const VerifyArgs& args) {
  std::error_code ec;
  Tally tally;
  bool one = false;  // a run directory
  if (fs::exists(fs::path(args.path) / "report.json", ec)) {
    count(args.path, verify_run(args.path, std::nullopt), tally);
    one = true;
  } else {
    Result<Tally> campaign = verify_campaign(args);
    if (!campaign.ok()) return complain(campaign.error());
    tally = *campaign;
  }
  const std::string of = (one ? "" : counted(tally.runs, "run") + " with an outcome, ") +
                         counted(tally.attempts, "attempt") + " with evidence";
  std::printf("%s, %llu files, %llu events: %llu problems\n", of.c_str(),
              static_cast<unsigned long long>(tally.files),
              static_cast<unsigned long long>(tally.events),
              static_cast<unsigned long long>(tally.problems));
  if (1 < tally.problems) std::printf("the first: %s\n", tally.first.c_str());
  return tally.problems == 0 ? kOk : kJobFailed;
}

}  // namespace

void add_verify(Command app, int& exit_code) {
  const Command command = app.add_subcommand(
      "verify", "recompute every digest, hash chain and budget invariant",
      "Example:\n  proctor verify my-campaign\n"
      "  proctor verify my-campaign/runs/json-lib/noop/r1/attempt-1\n"
      "Exit code 1 when anything does not fit; each problem is a line.\n"
      "A Redis that holds the campaign is compared too, where one answers; the journal's seal "
      "where\nthe key of the coordinator's host is at hand; heads that were kept elsewhere with "
      "--head.");
  auto args = std::make_shared<VerifyArgs>();
  command.add_option("PATH", args->path, "a campaign's folder or one run directory").required();
  command.add_option("--seal-key", args->seal_key,
                     "the seal key of the coordinator's host (default: this host's)");
  command.add_option("--head", args->head,
                     "what `proctor journal head` printed then, or a file of such lines");
  command.callback([=, &exit_code] { exit_code = verify(*args); });
}

}  // namespace proctor::cli
