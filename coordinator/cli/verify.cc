#include <fmt/format.h>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/contract/cost_model.h"
#include "common/trace/evidence.h"
#include "common/trace/run_report.h"
#include "common/trace/verify.h"
#include "coordinator/cli/campaign_files.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/open_journal.h"
#include "coordinator/cli/registered_files.h"
#include "coordinator/cli/report.h"
#include "coordinator/cli/verify_kept.h"
#include "coordinator/cli/verify_money.h"
#include "coordinator/core/notes.h"
#include "coordinator/core/records.h"
#include "coordinator/journal/host_key.h"
#include "coordinator/journal/journal_reader.h"
#include "coordinator/shell/behind.h"
#include "coordinator/shell/campaign_view.h"
#include "coordinator/shell/worker_files.h"

namespace proctor::cli {
namespace {
constexpr const char* kArchiveEnd = ".tar.zst";

bool may_have_evidence(const RestoredAttempt& a) {
  return a.has_result || a.state == AttemptState::kGranted || a.state == AttemptState::kLost ||
         a.state == AttemptState::kCancelled;
}

// `proctor verify`, the part about evidence: what the journal says of an attempt must lie under
// runs/, archive and run directory both, byte for byte; and nothing may lie there that the journal
// does not know.  Reads files; reports problems through `problem(where, what)`.
class EvidenceAudit {
 public:
  // `frozen` outlives the audit.
  EvidenceAudit(const FrozenCampaign& frozen, PriceFunction price, ProblemHandler problem)
      : frozen_(frozen),
        rules_(frozen.campaign),
        price_(std::move(price)),
        problem_(std::move(problem)) {
    for (std::uint32_t r = 0; r < frozen.plan.size(); ++r) {
      const std::string name = frozen.plan.run_name(RunId(r));
      for (std::size_t i = name.find('/'); i != std::string::npos; i = name.find('/', i + 1))
        folders_.insert(name.substr(0, i));
      folders_.insert(name);
    }
  }

  // Attempts of the plan, in any order.  What its run directory says of itself, where it must have
  // one: no value for an attempt without a result, and for one that is invalid and left nothing.
  std::optional<VerifyResult> add(const AttemptRecord& a) {
    know(a);
    const AttemptId id = a.core.attempt;
    if (!a.core.has_result || frozen_.plan.size() <= id.run.raw()) return std::nullopt;
    const std::string name = frozen_.folder.attempt(frozen_.plan.run_name(id.run), id.no).string();
    if (a.archive_bytes == 0 || a.report == Digest() || a.archive == Digest()) {
      // An attempt that broke before there was evidence is invalid; anything else was judged.
      if (a.core.outcome != RunOutcome::kInvalid || a.archive_bytes != 0)
        problem_(name, fmt::format("the journal says {}, and names no evidence for it",
                                   to_string(a.core.outcome)));
      ++without_;
      return std::nullopt;
    }
    check_archive(a, name);
    if (!check_places(a, name)) return std::nullopt;
    VerifyResult result = verify_run(name, a.report, price_, std::cref(rules_));
    if (result.report) check_identity(a, *result.report, name);
    return result;
  }

  // After all attempts: what else lies under runs/.  The journal of a running campaign is asked
  // once more before anything is called unknown.
  Status finish(JournalReader& journal) {
    if (unknown().empty()) return ok_status();
    PROCTOR_CHECK_OK(journal.each_attempt([this](const AttemptRecord& a) { know(a); }));
    for (const std::string& at : unknown())
      problem_((frozen_.folder.runs() / printable(at, 400)).string(),
               "the journal knows nothing that could have left it");
    return ok_status();
  }

  // Invalid attempts that left no evidence, as the journal says too.
  std::uint64_t without() const { return without_; }

 private:
  void know(const AttemptRecord& a) {
    if (frozen_.plan.size() <= a.core.attempt.run.raw() || !may_have_evidence(a.core)) return;
    const std::string at =
        frozen_.folder.attempt(frozen_.plan.run_name(a.core.attempt.run), a.core.attempt.no)
            .lexically_relative(frozen_.folder.runs())
            .generic_string();
    known_.insert(at);
    known_.insert(at + kArchiveEnd);
  }

  // No part of the way below runs/ may lead elsewhere: what is read must be what is kept here.
  bool check_places(const AttemptRecord& a, const std::string& name) {
    fs::path at = frozen_.folder.runs();
    for (const fs::path& part : fs::path(name).lexically_relative(at)) {
      at /= part;
      std::error_code ec;
      const fs::file_type type = fs::symlink_status(at, ec).type();
      if (type == fs::file_type::directory) continue;
      const std::string what = fmt::format("the journal says {}", to_string(a.core.outcome));
      if (type == fs::file_type::not_found)
        problem_(name, "the run directory is missing; " + what);
      else if (type == fs::file_type::symlink)
        problem_(at.string(), "a link, where the run directory must be");
      else
        problem_(at.string(), "not a folder; " + what);
      return false;
    }
    return true;
  }

  void check_archive(const AttemptRecord& a, const std::string& name) {
    const fs::path archive = name + kArchiveEnd;
    const Result<EvidenceFile> found =
        hash_file(archive.parent_path(), archive.filename().string());
    if (!found.ok()) {
      std::error_code ec;
      const fs::file_type type = fs::symlink_status(archive, ec).type();
      problem_(archive.string(), type == fs::file_type::not_found ? "the archive is missing"
                                 : type == fs::file_type::symlink
                                     ? "a link, where the archive must be"
                                     : found.error().detail);
      return;
    }
    if (found->bytes != a.archive_bytes || found->digest != a.archive)
      problem_(archive.string(),
               fmt::format("{} bytes with digest {}, the journal says {} with {}", found->bytes,
                           found->digest.short_hex(), a.archive_bytes, a.archive.short_hex()));
  }

  void check_identity(const AttemptRecord& a, const RunReport& r, const std::string& name) {
    const RunId run = a.core.attempt.run;
    if (r.campaign != frozen_.id) problem_(name, "its report is of another campaign");
    if (r.run_name != frozen_.plan.run_name(run) || r.task != frozen_.plan.task(run).id ||
        r.method != frozen_.plan.method(run))
      problem_(name, fmt::format("its report is of run {}", printable(r.run_name, 200)));
    if (r.started_ms != a.started_ms || r.finished_ms != a.finished_ms)
      problem_(name, "its report has other times than the journal");
    // The grant of one that was lost meanwhile is not asked when its result comes.
    const WallTime granted = a.core.state == AttemptState::kLost ? WallTime(0) : a.granted_at;
    if (const std::string wrong = wrong_times(r.started_ms, r.finished_ms, granted, a.result_at);
        !wrong.empty())
      problem_(name, "its report: " + wrong);
  }

  std::set<std::string> unknown() const {
    std::set<std::string> out;
    std::vector<std::string> open{""};
    while (!open.empty()) {
      const std::string folder = std::move(open.back());
      open.pop_back();
      std::error_code ec;
      for (fs::directory_iterator it(frozen_.folder.runs() / folder, ec), end; !ec && it != end;
           it.increment(ec)) {
        if (it->path() == frozen_.folder.incoming()) continue;
        const std::string file = it->path().filename().string();
        const std::string at = folder.empty() ? file : folder + "/" + file;
        if (known_.contains(at)) continue;
        const bool way =
            folders_.contains(at) && it->symlink_status(ec).type() == fs::file_type::directory;
        if (way)
          open.push_back(at);
        else
          out.insert(at);
        ec.clear();
      }
    }
    return out;
  }

  const FrozenCampaign& frozen_;
  CampaignRules rules_;
  PriceFunction price_;
  ProblemHandler problem_;
  std::set<std::string> known_;    // relative to runs/: run directories and archives
  std::set<std::string> folders_;  // on the way to them, and to those of any run of the plan
  std::uint64_t without_ = 0;
};

struct Seen {
  std::set<Digest> held;                             // by checks that were noted
  std::map<Digest, std::set<std::string>> approved;  // by whom
  bool opened = false;
};

class GateAudit {
 public:
  GateAudit(const Campaign& campaign, const ProblemHandler& tell) : tell_(tell) {
    for (std::size_t s = 0; s < campaign.stages.size(); ++s) {
      const StageRules& r = campaign.stages[s].rules;
      const bool exit_before = 0 < s && !campaign.stages[s - 1].rules.exit.empty();
      if (!r.entry.empty() || r.approvals() != 0 || exit_before)
        gates_.push_back({campaign.stages[s].name, s, r.approvals()});
    }
  }

  void add(const Note& note) {
    if (note.kind == StageChecked::kNote) {
      const Result<StageChecked> fact = fact_of<StageChecked>(note);
      if (!fact.ok()) return tell_("journal", fact.error().detail);
      if (fact->holds) seen_[fact->stage].held.insert(fact->digest);
    } else if (note.kind == OperatorFact::kNote) {
      const Result<OperatorFact> fact = fact_of<OperatorFact>(note);
      if (!fact.ok() || fact->act.kind != OperatorActKind::kApproveStage) return;
      const Result<Digest> digest = Digest::from_hex(fact->act.digest);
      if (digest.ok()) seen_[fact->act.stage].approved[*digest].insert(fact->act.by);
    } else if (note.kind == StageOpened::kNote) {
      opened(note);
    }
  }

  // The first stage that was not opened; nothing: all were, or need not be.
  std::optional<std::size_t> shut() const {
    for (const Gate& g : gates_) {
      const auto it = seen_.find(g.stage);
      if (it == seen_.end() || !it->second.opened) return g.index;
    }
    return std::nullopt;
  }

 private:
  struct Gate {
    std::string stage;
    std::size_t index = 0;
    std::uint32_t people = 0;
  };

  void opened(const Note& note) {
    const Result<StageOpened> fact = fact_of<StageOpened>(note);
    if (!fact.ok()) return tell_("journal", fact.error().detail);
    const auto gate = std::ranges::find(gates_, fact->stage, &Gate::stage);
    const std::string what = "stage " + fact->stage + " was opened ";
    if (gate == gates_.end()) return tell_("journal", what + "though nothing kept it shut");
    if (shut() != gate->index) tell_("journal", what + "out of its order");
    Seen& seen = seen_[fact->stage];
    if (!seen.held.contains(fact->digest))
      tell_("journal", what + "by a check that was not made, or did not hold");
    if (seen.approved[fact->digest].size() < gate->people)
      tell_("journal", what + "with the approval of " +
                           std::to_string(seen.approved[fact->digest].size()) + ", and " +
                           std::to_string(gate->people) + " have to agree");
    seen.opened = true;
  }

  const ProblemHandler& tell_;
  std::vector<Gate> gates_;
  std::map<std::string, Seen> seen_;
};
}  // namespace

// `verify`, of gates: every stage that was opened was opened by a check that held and as many
// people as were registered, and nothing of one that was not opened was begun.  From the journal's
// notes, and not by the scheduler's own code.  Blocking.
Status verify_gates(JournalReader& journal, const FrozenCampaign& frozen,
                    const RestoredState& state, const ProblemHandler& tell) {
  GateAudit audit(frozen.campaign, tell);
  if (!audit.shut()) return ok_status();
  PROCTOR_CHECK_OK(each_note(journal, [&](const Note& note) { audit.add(note); }));
  const std::optional<std::size_t> shut = audit.shut();
  if (!shut) return ok_status();
  const auto begun = std::ranges::find_if(state.attempts, [&](const RestoredAttempt& a) {
    return a.attempt.run.raw() < frozen.plan.size() &&
           *shut <= frozen.plan.row(a.attempt.run).stage;
  });
  if (begun != state.attempts.end())
    tell("journal", "run " + frozen.plan.run_name(begun->attempt.run) + " of stage " +
                        frozen.plan.stage(begun->attempt.run) +
                        " was begun, and that stage was not opened");
  return ok_status();
}

// proctor verify PATH: recomputes digests, hash chains and money of one run or a whole campaign.

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
  PROCTOR_TRY(const std::vector<std::string> foreign, journal.foreign_objects());
  for (const std::string& what : foreign) tell("journal", what);
  PROCTOR_TRY(const RestoredState state, journal.load());
  verify_kept(frozen.campaign, frozen.registration, kept_digest(state.meta), tell);
  // All files of a derived campaign are Proctor's; people write and mend those of others.
  for (const std::string& file : changed_since(frozen.folder, frozen.registration))
    if (frozen.campaign.derived_from || file.ends_with(kNotItsOwn))
      tell((folder / file).string(), "not as it was registered");
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
  std::size_t unlike = 0;  // problems of evidence
  const ProblemHandler of_evidence = [&](const std::string& where, const std::string& what) {
    ++unlike;
    tell(where, what);
  };
  EvidenceAudit evidence(
      frozen, [&](const Usage& usage) { return price(frozen.campaign.cost_model, usage); },
      of_evidence);
  PROCTOR_CHECK_OK(journal.each_attempt([&](const AttemptRecord& a) {
    const std::optional<VerifyResult> result = evidence.add(a);
    money.add(a, result ? result->report : std::nullopt);
    if (!result) return;
    unlike += result->problems.size();
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
  const std::string spent =
      format_usd_exact(money.spent()[0]) + " " + money_word(frozen.campaign.cost_model);
  if (const std::string again = again_of(frozen.campaign); !again.empty())
    std::printf("money: no envelope: a %s costs nothing (this machine's time: %s)\n",
                again.substr(0, again.find(' ')).c_str(), spent.c_str());
  else
    fmt::print("money: {} spent, {} reserved, of {}\n", spent,
               format_usd_exact(money.reserved()[0]), format_usd_exact(view.scopes[0].cap));
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
  PROCTOR_CHECK_OK(verify_reports(frozen, args.seal_key, unlike == 0, tell));
  const std::string redis = verify_redis(frozen, now, tell);
  std::printf("redis: %s\n", redis.c_str());
  return tally;
}

int verify(const VerifyArgs& args) {
  Tally tally;
  const bool one = is_there(fs::path(args.path) / "report.json");  // a run directory
  if (one) {
    count(args.path, verify_run(args.path, std::nullopt), tally);
  } else {
    Result<Tally> campaign = verify_campaign(args);
    if (!campaign.ok()) return complain(campaign.error());
    tally = *campaign;
  }
  const std::string of = (one ? "" : counted(tally.runs, "run") + " with an outcome, ") +
                         counted(tally.attempts, "attempt") + " with evidence";
  fmt::print("{}, {} files, {} events: {}\n", of, tally.files, tally.events,
             counted(tally.problems, "problem"));
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
  const auto args = arguments<VerifyArgs>(command, exit_code, verify);
  command.add_option("PATH", args->path, "a campaign's folder or one run directory").required();
  command.add_option("--seal-key", args->seal_key,
                     "the seal key of the coordinator's host (default: this host's)");
  command.add_option("--head", args->head,
                     "what `proctor journal head` printed then, or a file of such lines");
}
}  // namespace proctor::cli
