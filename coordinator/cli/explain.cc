#include <fmt/format.h>
#include <algorithm>
#include <cstdio>
#include <span>
#include <string>

#include "common/base/json.h"
#include "common/base/limits.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "common/contract/caps.h"
#include "common/contract/cost_model.h"
#include "common/trace/evidence.h"
#include "common/trace/payloads.h"
#include "common/trace/run_report.h"
#include "coordinator/cli/campaign_files.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/evidence_text.h"
#include "coordinator/cli/money_files.h"
#include "coordinator/cli/open_journal.h"
#include "coordinator/cli/operate.h"
#include "coordinator/cli/report_files.h"
#include "coordinator/cli/running_coordinator.h"
#include "coordinator/cli/shared_envelope.h"
#include "coordinator/cli/trial_campaign.h"
#include "coordinator/journal/journal_reader.h"
#include "coordinator/shell/control_protocol.h"
#include "coordinator/shell/status.h"

namespace proctor::cli {
namespace {
struct Evidence {
  AttemptNo attempt;
  fs::path dir;
};

Result<std::vector<Evidence>> evidence_of(const FrozenCampaign& frozen, RunId run) {
  std::vector<Evidence> out;
  if (!is_there(frozen.folder.journal())) return out;
  PROCTOR_TRY(JournalReader journal, open_journal(frozen.folder));
  PROCTOR_TRY(const std::vector<AttemptRecord> attempts, journal.attempts_of(run));
  for (const AttemptRecord& a : attempts) {
    const AttemptNo no = a.core.attempt.no;
    fs::path dir = frozen.folder.attempt(frozen.plan.run_name(run), no);
    if (is_folder(dir)) out.push_back({no, std::move(dir)});
  }
  return out;
}

// Lines of a text that may be an agent's or a provider's.
std::string shown(const Result<std::string>& text) {
  if (!text.ok()) return "  (" + text.error().detail + ")\n";
  return printable_lines(*text) + (text->ends_with('\n') || text->empty() ? "" : "\n");
}

// The calls of models of one run, for `proctor explain`.
Result<std::string> explain_calls(const FrozenCampaign& frozen, RunId run) {
  PROCTOR_TRY(const std::vector<Evidence> evidence, evidence_of(frozen, run));
  std::string out;
  for (const Evidence& e : evidence) {
    out += "\nAttempt " + std::to_string(e.attempt.raw()) + ": calls of models\n\n";
    const Result<TracedModels> told = read_models(e.dir);
    out += told.ok() ? calls_text(*told) : "  " + told.error().detail + "\n";
    if (!told.ok() || told->trips.empty()) continue;
    out += "\n  Circuit breakers\n";
    for (const TracedTrip& trip : told->trips)
      out += fmt::format("    event {}: {}: {}: {}\n", trip.seq, printable(trip.code, 60),
                         printable(trip.action, 60), printable(trip.why, 500));
  }
  return out.empty() ? "\nNo attempt has evidence here.\n" : out;
}

// The same, as members by the attempt's number; what is unlisted was refused and is no call.
Status explain_calls(const FrozenCampaign& frozen, RunId run, JsonWriter& v) {
  PROCTOR_TRY(const std::vector<Evidence> evidence, evidence_of(frozen, run));
  std::map<std::string, std::vector<TracedCall>> calls;
  std::map<std::string, std::vector<TracedTrip>> breakers;
  std::map<std::string, UnlistedRefusals> unlisted;
  for (const Evidence& e : evidence) {
    PROCTOR_TRY(TracedModels told, read_models(e.dir));
    const std::string attempt = std::to_string(e.attempt.raw());
    calls[attempt] = std::move(told.calls);
    breakers[attempt] = std::move(told.trips);
    unlisted[attempt] = told.unlisted;
  }
  v("calls", calls);
  v("breakers", breakers);
  v("unlisted_refusals", unlisted);
  return ok_status();
}

// What was said in the call of that number, of the last attempt that has one.
Result<std::string> explain_call(const FrozenCampaign& frozen, RunId run, std::uint64_t number) {
  PROCTOR_TRY(const std::vector<Evidence> evidence, evidence_of(frozen, run));
  for (auto e = evidence.rbegin(); e != evidence.rend(); ++e) {
    PROCTOR_TRY(const std::vector<TracedCall> calls, read_model_calls(e->dir));
    PROCTOR_TRY(const SegmentReader reader, SegmentReader::open(e->dir));
    for (auto call = calls.rbegin(); call != calls.rend(); ++call) {
      if (call->number != number) continue;
      std::string out = "attempt " + std::to_string(e->attempt.raw()) + ", call " +
                        std::to_string(number) + "\n==> asked <==\n";
      out += shown(request_body(*call, reader));
      out += "==> answered <==\n";
      return out + shown(answer_body(*call, reader));
    }
  }
  return Error{Errc::kNotFound, frozen.plan.run_name(run) + " has no call " +
                                    std::to_string(number) + ": --calls lists them"};
}

// proctor explain CAMPAIGN RUN: why a run waits, ran where it ran, stopped or failed.  The
// coordinator that runs says why; when none does, its scheduler is made again from the journal.

constexpr std::size_t kShownOfName = 400;

// "; set aside by ada (the disk was full)": it was the run's outcome, and decides nothing any more.
std::string set_aside_words(const RunRecord& run, AttemptNo no) {
  for (const SetAside& s : run.set_aside)
    if (s.attempt == no.raw())
      return "; set aside by " + printable(s.by) +
             (s.reason.empty() ? "" : " (" + printable(s.reason, limits::kDetailBytes) + ")");
  return "";
}

std::string attempt_line(const AttemptRecord& a, const RunRecord& run, const std::string& unit) {
  std::string out = "  attempt " + std::to_string(a.core.attempt.no.raw());
  if (!a.core.worker.raw().empty()) out += " on " + a.core.worker.raw();
  if (0 < a.granted_at.raw()) out += ", granted " + to_rfc3339(a.granted_at);
  switch (a.core.state) {
    case AttemptState::kReserving:
      return out + ": money is being reserved\n";
    case AttemptState::kDenied:
      return out + ": denied, " + format_usd(a.core.short_by) + " " + unit + " were missing\n";
    case AttemptState::kGranted:
      return out + ": under way, " + format_usd(a.core.ask) + " " + unit + " are reserved for it\n";
    case AttemptState::kVoided:
      return out + ": never started (" + a.reason + "), nothing was charged\n";
    case AttemptState::kLost:
      return out + ": lost (" + a.reason + "), charged at its ceiling " +
             format_usd(a.core.charged) + " " + unit + set_aside_words(run, a.core.attempt.no) +
             "\n";
    case AttemptState::kFinished:
    case AttemptState::kCancelled:
      break;
  }
  out += ": " + std::string(to_string(a.core.outcome)) + ", " +
         std::string(to_string(a.core.termination));
  if (!a.rationale.empty()) out += " (" + printable(a.rationale, limits::kDetailBytes) + ")";
  out += ", " + format_usd(a.core.charged) + " " + unit;
  const Usage& u = a.core.usage;
  if (0 < u.reported_calls)
    out += " (self_reported: " + format_usd(self_reported_cost(u).total()) + " " + unit + " in " +
           counted(u.reported_calls, "call") + " and " + counted(u.reported_tokens, "token") + ")";
  return out + set_aside_words(run, a.core.attempt.no) + "\n";
}

// "    models: 12 calls, 120000 input tokens (80000 cached), ..."; empty: none was called.
std::string models_line(const Usage& usage) {
  const ModelUse u = model_use_of(usage);
  if (!u.any()) return "";
  std::string out = "    models: " + counted(u.calls, "call") + ", " +
                    counted(u.input, "input token") + " (" + std::to_string(u.cached) +
                    " cached), " + counted(u.output, "output token");
  if (0 < u.reasoning) out += " (" + std::to_string(u.reasoning) + " of reasoning)";
  if (0 < u.refused) out += ", " + counted(u.refused, "call") + " refused";
  if (0 < u.ceiling_calls)
    out += ", " + std::to_string(u.ceiling_calls) + " charged at the ceiling (" +
           format_usd(u.at_ceiling) + ")";
  if (0 < u.overruns)
    out += ", " + std::to_string(u.overruns) +
           " billed above what was reserved and charged no more than that";
  if (0 < u.clamped) out += ", " + std::to_string(u.clamped) + " with a lowered limit";
  if (0 < u.waited_ms) out += ", " + std::to_string(u.waited_ms) + " ms waited";
  if (0 < u.replayed) out += ", " + std::to_string(u.replayed) + " from a recording";
  return out + "\n";
}

// Of a run that was judged under caps which nothing was counted against.
std::string unmetered_line(const RunRecord& r) {
  if (r.state != RunRecord::State::kEnded || r.outcome == RunOutcome::kInvalid ||
      r.unseen_caps.empty() || 0 < r.metered_calls)
    return "";
  return "  unmetered: it made no metered call, so nothing was counted against " + r.unseen_caps +
         "\n";
}

// Of a run whose task was taken out: why, when, and what that means.  Empty: it was not.
std::string removed_line(const Registration& registration, const std::string& task) {
  for (const Removal& r : registration.removals)
    if (r.task == task)
      return "  its task was taken out at " + to_rfc3339(r.at) + ": " +
             printable(r.reason, limits::kDetailBytes) +
             "\n  What it came to stays on record and is in no rate of the report.\n";
  return "";
}

std::string review_line(const RunReviewed& r, const std::string& unit) {
  return "  review " + std::to_string(r.seq) + ", " + to_rfc3339(r.at) + ": " +
         format_minutes(r.milli_minutes) + " minutes by " + printable(r.by) + ", " +
         format_usd(r.charged) + " " + unit +
         (r.note.empty() ? "" : ": " + printable(r.note, limits::kDetailBytes)) + "\n";
}

// " [events.jsonl:7,9]"; empty: of no event.
std::string evidence_words(const std::vector<std::uint64_t>& events) {
  constexpr std::size_t kShown = 8;
  if (events.empty()) return "";
  const auto first = std::span(events).first(std::min(kShown, events.size()));
  return fmt::format(" [events.jsonl:{}{}]", fmt::join(first, ","),
                     kShown < events.size() ? ",..." : "");
}

// The first gate that does not pass; empty: all do.
std::string failed_gate(const RunReport& report) {
  // In reports of before 2026-12 a gate that did not run fails no run.
  const bool older =
      std::ranges::all_of(report.gates, [](const GateReport& g) { return g.evidence.empty(); });
  for (const GateReport& g : report.gates)
    if (g.outcome != "pass" && !(older && g.outcome == "not_run")) return g.gate;
  return "";
}

// Gates with why and evidence, score, failure modes and interventions; `own`: the campaign's modes.
std::string judgement_of(const RunReport& report, const std::vector<TagRule>& own) {
  std::string out;
  for (const GateReport& g : report.gates)
    out += "    gate " + printable(g.gate) + ": " + printable(g.outcome) +
           (g.why.empty() ? "" : ", " + printable(g.why, limits::kDetailBytes)) +
           evidence_words(g.evidence) + "\n";
  const std::string failed = failed_gate(report);
  const bool passed = report.outcome == RunOutcome::kSuccess;
  out += std::string("    satisfied: ") + (passed && failed.empty() ? "yes" : "no") +
         (passed && !failed.empty() ? ", it fails gate " + printable(failed) : "") + "\n";
  if (const auto& s = report.score)
    out +=
        fmt::format("    score: {} = {:.4g} x minimal {} + {:.4g} x trace {} + {:.4g} x maint {}\n",
                    score_text(s->s), s->weight_minimal, score_text(s->minimal), s->weight_trace,
                    score_text(s->trace), s->weight_maint, score_text(s->maint));
  for (const Tag& tag : report.tags) {
    const auto rule = std::ranges::find(own, tag.id, &TagRule::id);
    std::string sentence = rule == own.end() ? "" : rule->sentence;
    if (const FailureMode* mode = find_failure_mode(tag.id)) sentence = mode->sentence;
    out += "    failure mode " + printable(tag.id) +
           (tag.format.empty() ? "" : " (" + printable(tag.format) + ")") +
           (sentence.empty() ? "" : ": " + printable(sentence, limits::kDetailBytes)) +
           evidence_words(tag.evidence) + "\n";
  }
  for (const Intervention& i : report.interventions)
    out += "    intervention: " + printable(i.action) +
           (i.cause.empty() ? "" : ", " + printable(i.cause, limits::kDetailBytes)) +
           evidence_words({i.seq}) + "\n";
  return out;
}

// What the checks said, from the report that the journal has the digest of; empty: it has none.
// kNotFound: evidence that it left is not here any more; other errors: of bound_report().
Result<std::string> checks_of(const StateFolder& folder, const std::string& run,
                              const AttemptRecord& a, const std::vector<TagRule>& own) {
  if (a.report == Digest()) return std::string();
  const fs::path dir = folder.attempt(run, a.core.attempt.no);
  PROCTOR_TRY(const RunReport report, bound_report(folder, run, a.core.attempt.no, a.report));
  std::string out;
  const PatchEnd& patch = report.application;
  if (!patch.refused.empty()) {
    out += "    patch: does not apply: " + printable(patch.refused, limits::kDetailBytes) + "\n";
  } else if (!patch.rung.empty()) {
    out += "    patch: applied, " + patch.rung + "\n";
  }
  for (const std::string& place : patch.conflicts)
    out += "    patch: conflict markers in " + printable(place) + "\n";
  PROCTOR_TRY(const std::string again, judged_again(dir));
  if (!again.empty()) out += "    " + again + "\n";
  for (const CheckReport& c : report.checks) {
    out += "    check " + c.id + " (" + c.kind +
           "): " + (c.outcome ? std::string(to_string(*c.outcome)) : "not_run");
    if (!c.why.empty()) out += ", " + printable(c.why, limits::kDetailBytes);
    out += "\n";
  }
  out += judgement_of(report, own);
  constexpr std::size_t kShown = 10;
  const std::size_t all = report.violations.size(), shown = std::min(all, kShown);
  for (const std::string& v : std::span(report.violations).first(shown))
    out += "    violation: " + printable(v) + "\n";
  if (shown < all) out += fmt::format("    and {} more violations in report.json\n", all - shown);
  if (!report.replayable) out += "    not replayable: a phase of it had the network\n";
  for (const EvidenceFile& f : report.files)
    if (f.path.starts_with(std::string(kKeptDir) + "/"))
      out += "    kept of its agent: " + printable(f.path) + " (" + std::to_string(f.bytes) +
             " bytes)\n";
  // Each with why the method could not keep it.
  PROCTOR_TRY(const auto kept, events::last_in(dir, events::kAgentKept));
  for (const events::LeftOut& l : kept ? std::get<1>(*kept) : std::vector<events::LeftOut>())
    out += "    not kept of its agent: " + printable(l.path, kShownOfName) + ": " +
           printable(l.why, kShownOfName) + "\n";
  return out + "    evidence: " + dir.string() + "\n";
}

// Of a parked run: whose money could still come back to the envelope, or what a raise needs.
Result<std::string> what_must_come_first(const std::string& folder, const FrozenCampaign& frozen,
                                         const RunRecord& run) {
  constexpr std::size_t kShown = 10;
  PROCTOR_TRY(const MoneyInput money, read_money(frozen));
  const MoneyView view = build_money(money);
  const auto found = std::ranges::find(view.envelopes, run.parked_scope, &EnvelopeMoney::name);
  if (found == view.envelopes.end()) return std::string();
  const auto scope = static_cast<std::uint32_t>(found - view.envelopes.begin());
  std::string pending;
  std::size_t n = 0;
  for (const MoneyInput::Attempt& a : money.attempts) {
    const auto& path = money.runs[a.run].path;
    const bool out = a.money == MoneyInput::Attempt::Money::kOut ||
                     a.money == MoneyInput::Attempt::Money::kAtRisk;
    if (!out || std::ranges::find(path, scope) == path.end()) continue;
    if (++n <= kShown)
      pending += "    " + money.runs[a.run].name + ", attempt " + std::to_string(a.no) + ": " +
                 format_usd(a.ask) + " " + money.unit +
                 (a.money == MoneyInput::Attempt::Money::kAtRisk ? ", nobody hears of it" : "") +
                 "\n";
  }
  if (0 < n)
    return "  What must settle first, with what is reserved for it there:\n" + pending +
           (kShown < n ? "    and " + std::to_string(n - kShown) + " more\n" : "");
  const MicroUsd ask = money.runs[run.run.raw()].ask;
  const auto& shared = frozen.campaign.envelopes.shared;
  // What others held of a shared envelope is in no book of this campaign but the refusal.
  const bool is_shared = shared && run.parked_scope == shared->scope();
  const MicroUsd enough =
      is_shared ? found->cap + run.short_by : found->spent + found->reserved + ask;
  return "  What must settle first: nothing is out there. Raise the envelope:\n"
         "    proctor budget raise " +
         folder + " " + run.parked_scope + " " + format_usd(enough) +
         " --reason \"...\"    (enough for this run; " + format_usd(found->cap + found->wanted) +
         " for all " + std::to_string(found->parked) + " parked there)\n" +
         (is_shared ? shared_envelope_text(frozen, money.unit) : "");
}

// Since when, and what to type.
std::string no_coordinator(const FrozenCampaign& frozen, bool begun) {
  std::string out = "none runs";
  if (const Result<StatusSnapshot> last = last_status(frozen.folder); last.ok())
    out += " since " + to_rfc3339(last->at) + ", when it was " + last->state;
  return out + (begun ? "; proctor resume " + frozen.folder.campaign.string() + " goes on"
                      : "; proctor run " + frozen.folder.campaign.string() + " begins");
}

// As a scheduler says it (coordinator/core/events.h).
struct Said {
  std::string code, text;
  Json facts = Json::object();
};
void fields(auto& v, Is<Said> auto& s) {
  v("code", s.code);
  v("text", s.text);
  v("facts", s.facts);
}

// And whether a coordinator said so.  Without words: nothing of the campaign has run yet.
struct Why {
  std::optional<Said> said{};
  bool live = false;
};
std::optional<Said> said_in(const Json& json) {
  const auto said = from_json<Said>(json, "", Errc::kCorrupt, Versions::kAny);
  return said.ok() ? std::optional(*said) : std::nullopt;
}

Result<Why> why_of(const FrozenCampaign& frozen, RunId run) {
  if (const std::string why = not_judged_again(frozen, run); !why.empty())
    return Why{Said{"not_judged_again", why}};
  const ControlRequest request{.act = kActExplain, .runs = frozen.plan.run_name(run)};
  const auto live = ask_coordinator(frozen.folder, request);
  // One that does not answer has written down what it knew.
  if (live.ok() && *live && (*live)->verdict == ControlAnswer::Verdict::kDone)
    return Why{said_in((*live)->explanation), true};
  if (!live.ok())
    std::fprintf(stderr, "proctor: this is by the journal: %s\n",
                 printable(live.error().detail, limits::kDetailBytes).c_str());
  if (!is_there(frozen.folder.journal())) return Why{};
  PROCTOR_TRY(const Json told, explain_offline(frozen, run));
  std::optional<Said> said = said_in(told);
  if (!said) return Why{};
  // Whatever a scheduler would be waiting for, there is none.
  const std::string code = said->code;
  if (code == "worker" || code == "capability" || code == "elsewhere" || code == "alone" ||
      code == "order") {
    PROCTOR_TRY(JournalReader journal, open_journal(frozen.folder));
    PROCTOR_TRY(const std::vector<EpochBegun> lives, journal.epochs());
    said = Said{"coordinator",
                "it waits for a coordinator: " + no_coordinator(frozen, !lives.empty())};
  }
  // A worker may go on with it, and nobody hears of that.
  if (code == "running")
    said->text += ", as the last coordinator knew: " + no_coordinator(frozen, true);
  return Why{std::move(said), false};
}

// `judged`: its report; nothing: it is not here.
Json attempt_json(const AttemptRecord& a, const RunRecord& run, const RunReport* judged) {
  const auto time = [](WallTime at) { return at.raw() == 0 ? Json() : Json(to_rfc3339(at)); };
  JsonWriter v(JsonWriter::Texts::kClean);
  v("attempt", a.core.attempt.no);
  v("state", a.core.state);
  v("worker", a.core.worker);
  v("reserved_micro_usd", a.core.ask);
  v("asked_at", time(a.intent_at));
  v("granted_at", time(a.granted_at));
  v("result_at", time(a.result_at));
  v("settled_at", time(a.settled_at));
  v("set_aside", !set_aside_words(run, a.core.attempt.no).empty());
  if (a.core.settled) v("charged_micro_usd", a.core.charged);
  v("reason", a.reason, kOptional);
  if (!a.core.has_result) return v.take();
  v("outcome", a.core.outcome);
  v("termination", a.core.termination);
  v("infrastructure", a.core.infrastructure);
  v("metered_calls", a.core.usage.model_calls);
  v.section("model_use", [u = model_use_of(a.core.usage)](auto& use) {
    for (const ModelCount& m : kModelCounts) use(m.name, u.*m.count);
    use("ceiling_micro_usd", u.at_ceiling);
  });
  v.section("self_reported", [&u = a.core.usage](auto& reported) {
    reported("micro_usd", self_reported_cost(u).total());
    reported("calls", u.reported_calls);
    reported("tokens", u.reported_tokens);
  });
  v("rationale", a.rationale);
  if (judged == nullptr) return v.take();
  v("satisfied", judged->outcome == RunOutcome::kSuccess && failed_gate(*judged).empty());
  v("checks", judged->checks);
  v("gates", judged->gates);
  v("violations", judged->violations);
  v("score", judged->score, kOptional);
  v("tags", judged->tags);
  return v.take();
}

Result<int> explain_json(const std::string& folder, const AskedRun& asked, bool calls,
                         Status& unread) {
  const auto& [frozen, run] = asked;
  PROCTOR_TRY(const CampaignReport report, read_report(frozen));
  const RunRecord& r = report.runs[run.raw()];
  PROCTOR_TRY(Why why, why_of(frozen, run));
  if (why.said) why.said->text = told_with_folder(why.said->text, folder);
  JsonWriter v;
  v("run", r.name);
  v("number", run);
  v("state", r.state);
  v("live", why.live);
  v("why", why.said);
  if (r.state == RunRecord::State::kEnded) v("outcome", r.outcome);
  v("old_outcome", r.old_outcome, kOptional);
  std::vector<Json> told;
  if (is_there(frozen.folder.journal())) {
    PROCTOR_TRY(JournalReader journal, open_journal(frozen.folder));
    PROCTOR_TRY(const std::vector<AttemptRecord> attempts, journal.attempts_of(run));
    for (const AttemptRecord& a : attempts) {
      const Result<RunReport> judged =
          bound_report(frozen.folder, r.name, a.core.attempt.no, a.report);
      if (!judged.ok() && a.report != Digest() && judged.error().code != Errc::kNotFound &&
          unread.ok())
        unread = judged.error();
      told.push_back(attempt_json(a, r, judged.ok() ? &*judged : nullptr));
    }
  }
  v("attempts", told);
  if (calls) PROCTOR_CHECK_OK(explain_calls(frozen, run, v));
  std::printf("%s\n", v.take().dump(1, Json::Utf8::kReplace, true).c_str());
  return code_of(unread);
}

// `unread`: the first piece of evidence that is here and cannot be read.
Result<std::string> explain(const std::string& folder, const AskedRun& asked, bool calls,
                            Status& unread) {
  const auto& [frozen, run] = asked;
  PROCTOR_TRY(const CampaignReport report, read_report(frozen));
  const RunRecord& r = report.runs[run.raw()];
  const std::string unit = money_word(frozen.campaign.cost_model);
  std::string out = r.name + ", number " + std::to_string(run.raw()) +
                    " of the plan: " + std::string(to_string(r.state));
  if (r.state == RunRecord::State::kEnded) out.append(" with ").append(word_of(r.outcome));
  if (r.old_outcome)
    out.append("; its patch is judged again, and was ").append(word_of(*r.old_outcome));
  out += "\n";
  const bool for_money = r.state == RunRecord::State::kParked && r.parked_why.empty();
  if (r.state != RunRecord::State::kEnded && !for_money) {
    PROCTOR_TRY(const Why why, why_of(frozen, run));
    // As `folder` is typed here, which no scheduler knows.
    if (why.said && !why.said->text.empty())
      out +=
          "  " + printable(told_with_folder(why.said->text, folder), limits::kDetailBytes) + "\n";
    // Parked because that is broken.
    if (const std::string fault = why.said ? text_in(why.said->facts, "fault") : ""; !fault.empty())
      out += mends_for(folder, r.name, fault == "method" ? Broken::kMethod : Broken::kTask,
                       resume_command(folder, frozen.campaign));
  }
  if (for_money) {
    out += "  The envelope " + r.parked_scope + " was short by " + format_usd(r.short_by) + " " +
           unit + " of the " +
           format_usd(frozen.campaign.run_cap(*frozen.campaign.find_contract(r.task))) + " " +
           unit + " that a run of " + r.task +
           " reserves,\n  and nothing that could come back was out. It starts when that envelope "
           "grows.\n";
    PROCTOR_TRY(const std::string what, what_must_come_first(folder, frozen, r));
    out += what;
  }
  out += removed_line(frozen.registration, r.task);
  if (!is_there(frozen.folder.journal())) return out;
  PROCTOR_TRY(JournalReader journal, open_journal(frozen.folder));
  PROCTOR_TRY(const std::vector<AttemptRecord> attempts, journal.attempts_of(run));
  for (const AttemptRecord& a : attempts) {
    out += attempt_line(a, r, unit) + models_line(a.core.usage);
    const fs::path dir = frozen.folder.attempt(r.name, a.core.attempt.no);
    const Result<std::string> checks = checks_of(frozen.folder, r.name, a, report.failure_modes);
    const bool gone = !checks.ok() && checks.error().code == Errc::kNotFound;
    out += checks.ok() ? *checks
           : gone      ? "    its evidence is gone from " + dir.string() +
                        "; the above is from the journal, and proctor verify names each file\n"
                  : "    its evidence cannot be read\n";
    if (!checks.ok() && !gone && unread.ok()) unread = checks.error();
  }
  out += unmetered_line(r);
  if (for_money || !r.cap.empty()) out.append("  ").append(kCapsArePolicy).append("\n");
  PROCTOR_TRY(const RestoredState state, journal.load());
  for (const RunReviewed& v : state.reviews)
    if (v.run == run) out += review_line(v, unit);
  if (calls) {
    PROCTOR_TRY(const std::string said, explain_calls(frozen, run));
    out += said;
  }
  return out;
}

struct ExplainArgs {
  std::string folder, run;
  bool json = false, calls = false, tried = false;
  std::uint64_t call = 0;  // 0: none
};

Result<int> explain_to(const ExplainArgs& args) {
  PROCTOR_TRY(const AskedRun asked,
              find_asked(args.folder, args.run, args.tried ? Whose::kTry : Whose::kCampaign));
  Status unread = ok_status();
  if (args.json) return explain_json(args.folder, asked, args.calls, unread);
  PROCTOR_TRY(const std::string text, args.call == 0
                                          ? explain(args.folder, asked, args.calls, unread)
                                          : explain_call(asked.frozen, asked.run, args.call));
  std::fputs(text.c_str(), stdout);
  return code_of(unread);
}
}  // namespace

void add_explain(Command app, int& exit_code) {
  const Command command =
      app.add_subcommand("explain", "why a run waits, is parked, failed or stopped",
                         "Example:\n  proctor explain my-campaign json-lib/noop/r1\n"
                         "  proctor explain my-campaign json-lib/my-agent/r1 --calls\n"
                         "  proctor explain my-campaign json-lib/my-agent --try\n"
                         "The coordinator that runs says why; when none does, the journal.");
  auto args = std::make_shared<ExplainArgs>();
  command.add_option("CAMPAIGN", args->folder, "the campaign's folder").required();
  command.add_option("RUN", args->run, "TASK/METHOD/rN, as in the plan; TASK/METHOD of a try")
      .required();
  command.add_flag("--try", args->tried, "of what the last proctor try of it made");
  command.add_flag("--json", args->json,
                   "for scripts; satisfied, and checks, gates, violations, score and tags as "
                   "its report.json has them");
  command.add_flag("--calls", args->calls, "with each call of a model through the gateway");
  command.add_option("--call", args->call, "what was asked and answered in this one of them")
      .positive();
  command.callback([=, &exit_code] { exit_code = code_of(explain_to(*args)); });
}
}  // namespace proctor::cli
