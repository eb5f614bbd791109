#include "coordinator/shell/control_protocol.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "common/base/json_fields.h"
#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/base/text.h"
#include "common/contract/cost_model.h"
#include "coordinator/core/notes.h"
#include "coordinator/core/scheduler.h"

namespace proctor {
namespace {
template <class T>
std::string one_line(const T& said) {
  return to_json(said).dump(-1, Json::Utf8::kReplace) + "\n";
}
}  // namespace

std::string did_you_mean(std::string_view typed, std::span<const std::string_view> known) {
  const auto near = nearest_word(typed, known);
  return near ? " (did you mean " + *near + "?)" : "";
}

std::string encode(const ControlRequest& request) {
  return one_line(request);
}

std::string encode(const ControlAnswer& answer) {
  return one_line(answer);
}

Result<ControlRequest> parse_control_request(std::string_view line) {
  constexpr JsonBounds kBounds{.bytes_max = kControlLineBytes, .depth_max = 2};
  const Result<Json> parsed = parse_json(line, kBounds);
  if (!parsed.ok()) return in_context("request", parsed.error());
  PROCTOR_TRY(ControlRequest out, from_json<ControlRequest>(*parsed, "request"));
  if (!out.act.empty()) return out;
  return Error{Errc::kInvalid, "request.act: expected what is to be done, as in pause"};
}

Result<ControlAnswer> parse_control_answer(std::string_view line) {
  constexpr JsonBounds kBounds{.bytes_max = kControlAnswerBytes, .depth_max = 16};
  const auto broken = [](const Error& e) {
    return Error{Errc::kCorrupt, "the coordinator's answer: " + e.detail};
  };
  const Result<Json> parsed = parse_json(line, kBounds);
  if (!parsed.ok()) return broken(parsed.error());
  Result<ControlAnswer> out = from_json<ControlAnswer>(*parsed, "", Errc::kCorrupt, Versions::kAny);
  if (!out.ok()) return broken(out.error());
  return out;
}

Status check_text(std::string_view what, const std::string& text, std::size_t bytes_max) {
  if (bytes_max < text.size())
    return Error{Errc::kInvalid, std::string(what) + ": found " + std::to_string(text.size()) +
                                     " bytes, expected at most " + std::to_string(bytes_max)};
  if (!is_utf8(text) || text.find('\0') != std::string::npos)
    return Error{Errc::kInvalid, std::string(what) + ": expected UTF-8"};
  return ok_status();
}

ControlAnswer::Verdict verdict_of(OperatorAnswer::Verdict verdict) {
  using Verdict = ControlAnswer::Verdict;
  if (verdict == OperatorAnswer::Verdict::kDone) return Verdict::kDone;
  return verdict == OperatorAnswer::Verdict::kUnchanged ? Verdict::kUnchanged : Verdict::kRefused;
}

// From the words of an operator to ids: runs, workers, envelopes.

namespace {
enum class Takes : std::uint8_t { kNothing, kWorker, kWorkerOrAll, kRuns, kScope, kReview, kStage };
struct ActRule {
  OperatorActKind kind;
  Takes takes;
  bool needs_reason;
};
constexpr std::array<ActRule, 14> kActs{{
    {OperatorActKind::kPause, Takes::kNothing, false},
    {OperatorActKind::kUnpause, Takes::kNothing, false},
    {OperatorActKind::kDrain, Takes::kWorkerOrAll, false},
    {OperatorActKind::kCancel, Takes::kRuns, true},
    {OperatorActKind::kRequeue, Takes::kRuns, false},
    {OperatorActKind::kApprove, Takes::kRuns, true},
    {OperatorActKind::kQuarantine, Takes::kWorker, false},
    {OperatorActKind::kRelease, Takes::kWorker, false},
    {OperatorActKind::kKick, Takes::kWorker, true},
    {OperatorActKind::kRaise, Takes::kScope, true},
    {OperatorActKind::kReview, Takes::kReview, false},
    {OperatorActKind::kApproveStage, Takes::kStage, true},
    {OperatorActKind::kWaive, Takes::kStage, true},
    {OperatorActKind::kCloseStage, Takes::kStage, true},
}};

Error invalid(const std::string& what) {
  return {Errc::kInvalid, what};
}

// As did_you_mean(), or what there is, a few of them.
std::string suggestion(std::string_view word, const std::vector<std::string_view>& all) {
  constexpr std::size_t kShown = 10;
  if (std::string near = did_you_mean(word, all); !near.empty()) return near;
  if (all.empty()) return "";
  std::string out = "; there ";
  out += all.size() == 1 ? "is" : "are";
  for (std::size_t i = 0; i < std::min(all.size(), kShown); ++i)
    out += (i == 0 ? " " : ", ") + std::string(all[i]);
  if (kShown < all.size()) out += " and " + std::to_string(all.size() - kShown) + " more";
  return out;
}

bool is_blank(const std::string& text) {
  return text.find_first_not_of(" \t\r\n\v\f") == std::string::npos;
}

Status check_words(const ControlRequest& r, const ActRule& rule) {
  PROCTOR_CHECK_OK(check_text("reason", r.reason, limits::kDetailBytes));
  PROCTOR_CHECK_OK(check_text("by", r.by, kOperatorNameBytes));
  // As it is typed.
  const std::string_view word = word_of(rule.kind);
  const std::string act =
      (rule.takes == Takes::kStage ? "pilot " : "") + std::string(word.substr(0, word.find('_')));
  if (is_blank(r.by)) return invalid(act + ": who asks? by: expected a name");
  if (rule.needs_reason && is_blank(r.reason))
    return invalid(act + " needs a reason: --reason TEXT");
  const auto stray = [&](bool has, bool may, const char* what) -> Status {
    if (has && !may) return invalid(act + " takes no " + what);
    return ok_status();
  };
  PROCTOR_CHECK_OK(
      stray(!r.runs.empty(), rule.takes == Takes::kRuns || rule.takes == Takes::kReview, "runs"));
  PROCTOR_CHECK_OK(stray(!r.minutes.empty(), rule.takes == Takes::kReview, "minutes"));
  PROCTOR_CHECK_OK(stray(!r.worker.empty(),
                         rule.takes == Takes::kWorker || rule.takes == Takes::kWorkerOrAll,
                         "worker"));
  PROCTOR_CHECK_OK(stray(r.now, rule.kind == OperatorActKind::kPause, "--now"));
  PROCTOR_CHECK_OK(stray(r.invalid, rule.kind == OperatorActKind::kRequeue, "--invalid"));
  PROCTOR_CHECK_OK(
      stray(!r.scope.empty() || !r.to.empty(), rule.takes == Takes::kScope, "envelope"));
  PROCTOR_CHECK_OK(stray(!r.stage.empty() || !r.digest.empty() || !r.criterion.empty(),
                         rule.takes == Takes::kStage, "stage"));
  if (rule.takes == Takes::kStage && r.stage.empty()) return invalid(act + ": which stage?");
  if (rule.takes == Takes::kReview && (r.runs.empty() || r.minutes.empty()))
    return invalid(act + ": which run, and how many minutes?");
  if (rule.takes == Takes::kRuns && r.runs.empty() && !r.invalid)
    return invalid(act + ": which runs? TASK/METHOD/rN, a task, a method, or all");
  if (rule.takes == Takes::kWorker && r.worker.empty()) return invalid(act + ": which worker?");
  if (rule.takes == Takes::kScope && (r.scope.empty() || r.to.empty()))
    return invalid(act + ": which envelope, and how much?");
  return ok_status();
}

Result<ScopeId> find_scope(const PlanView& view, const std::string& name) {
  std::vector<std::string_view> all;
  for (std::uint32_t s = 0; s < view.scopes.size(); ++s) {
    if (view.scopes[s].name == name) return ScopeId(s);
    all.push_back(view.scopes[s].name);
  }
  return Error{Errc::kNotFound, "there is no envelope " + printable(name) + suggestion(name, all)};
}

Result<std::string> find_stage(const PlanShape& shape, const std::string& name) {
  std::vector<std::string_view> all;
  for (const PlanStage& stage : shape.stages) {
    if (stage.name == name) return name;
    all.push_back(stage.name);
  }
  return Error{Errc::kNotFound, "there is no stage " + printable(name) + suggestion(name, all)};
}

Status check_criterion(const PlanView& view, const std::string& stage, const std::string& said) {
  std::vector<std::string> all;
  for (const PlanView::Stage& s : view.stages)
    for (const std::string side : {"entry ", "exit "})
      for (const StageCriterion& c : side == "entry " ? s.rules.entry : s.rules.exit) {
        if (c.is == StagePredicate::kClosed) continue;  // by the exit of the stage that it names
        const std::string word(word_of(c.is)), of = parameter_of(c);
        const std::string label = of.empty() ? word : word + " " + of;
        if (s.name == stage &&
            (said == word || said == label || said == side + word || said == side + label))
          return ok_status();
        all.push_back(s.name + " \"" + side + label + "\"");
      }
  return Error{Errc::kNotFound, "stage " + stage + " has no criterion " + printable(said) +
                                    " to waive" + suggestion(said, {all.begin(), all.end()})};
}

bool is_hex(const std::string& text) {
  return text.size() <= 2 * Digest::kBytes &&
         text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// Each of the three parts is corrected by itself: together they may be too far from any name.  A
// part that is missing is the first there is.
std::optional<std::string> meant_run(const Plan& plan, std::string_view name) {
  const PlanShape& shape = plan.shape();
  const std::string_view task = take_until(name, '/'), method = take_until(name, '/');
  const std::string_view replicate = name;
  std::vector<std::string_view> tasks;
  for (const PlanTask& t : shape.tasks) tasks.push_back(t.id);
  const std::vector<std::string_view> methods(shape.methods.begin(), shape.methods.end());
  const auto near_task = nearest_word(task, tasks);
  const auto near_method =
      method.empty() ? std::optional(shape.methods.front()) : nearest_word(method, methods);
  if (!near_task || !near_method) return std::nullopt;
  const std::string both = *near_task + "/" + *near_method + "/";
  for (const std::string& last : {std::string(replicate), "r" + std::string(replicate)})
    if (plan.find(both + last)) return both + last;
  return plan.find(both + "r1") ? std::optional(both + "r1") : std::nullopt;
}

template <class Wanted>
std::vector<RunId> runs_where(const Plan& plan, const Wanted& wanted) {
  std::vector<RunId> out;
  for (std::uint32_t i = 0; i < plan.size(); ++i)
    if (wanted(plan.rows()[i])) out.push_back(RunId(i));
  return out;
}

// "0-3,7": places in the plan, ascending; what a filter found, as a command sends it.
Result<std::vector<RunId>> runs_at(const Plan& plan, std::string_view places) {
  std::vector<RunId> out;
  const Error wrong = invalid("order: expected places in the plan, ascending, as in order:0-3,7");
  while (!places.empty()) {
    std::string_view part = take_until(places, ',');
    std::uint32_t first = 0;
    if (!take_number(part, first)) return wrong;
    std::uint32_t last = first;
    if (take_word(part, "-") && !take_number(part, last)) return wrong;
    if (!part.empty() || last < first || plan.size() <= last ||
        (!out.empty() && first <= out.back().raw()))
      return wrong;
    for (std::uint32_t i = first; i <= last; ++i) out.push_back(RunId(i));
  }
  if (out.empty()) return wrong;
  return out;
}
}  // namespace

ControlNames names_of(const Plan& plan, const Scheduler& scheduler) {
  ControlNames names{&plan, &scheduler.plan(), {}};
  const Roster& roster = scheduler.roster();
  for (WorkerIndex i = 0; i < roster.size(); ++i)
    if (roster.has_place(i)) names.workers.push_back(roster.at(i).id.raw());
  return names;
}

Result<RunId> find_run(const Plan& plan, std::string_view name) {
  if (const auto run = plan.find(name)) return *run;
  const std::optional<std::string> meant = meant_run(plan, name);
  return Error{Errc::kNotFound,
               "the plan has no run " + printable(name) +
                   (meant ? " (did you mean " + *meant + "?)"
                          : "; runs are named TASK/METHOD/rN, as in " + plan.run_name(RunId(0)))};
}

Result<std::vector<RunId>> select_runs(const Plan& plan, std::string_view words) {
  const PlanShape& shape = plan.shape();
  if (words == "all") return runs_where(plan, [](const PlanRow&) { return true; });
  constexpr std::string_view kOrder = "order:";
  if (words.starts_with(kOrder)) return runs_at(plan, words.substr(kOrder.size()));
  if (words.find('/') != std::string_view::npos) {
    PROCTOR_TRY(const RunId run, find_run(plan, words));
    return std::vector<RunId>{run};
  }
  const bool only_task = words.starts_with("task:"), only_method = words.starts_with("method:");
  const std::string_view name =
      only_task || only_method ? words.substr(words.find(':') + 1) : words;
  const auto task = std::ranges::find(shape.tasks, name, &PlanTask::id);
  const auto method = std::ranges::find(shape.methods, name);
  const bool is_task = task != shape.tasks.end() && !only_method;
  const bool is_method = method != shape.methods.end() && !only_task;
  if (is_task && is_method)
    return invalid(printable(name) + " is a task and a method: say task:" + std::string(name) +
                   " or method:" + std::string(name));
  if (is_task) {
    const auto at = static_cast<std::uint32_t>(task - shape.tasks.begin());
    return runs_where(plan, [&](const PlanRow& row) { return row.task == at; });
  }
  if (is_method) {
    const auto at = static_cast<std::uint16_t>(method - shape.methods.begin());
    return runs_where(plan, [&](const PlanRow& row) { return row.method == at; });
  }
  std::vector<std::string_view> all;
  if (!only_method)
    for (const PlanTask& t : shape.tasks) all.push_back(t.id);
  if (!only_task) all.insert(all.end(), shape.methods.begin(), shape.methods.end());
  return Error{Errc::kNotFound,
               "no run, task or method is named " + printable(name) + suggestion(name, all)};
}

Result<OperatorAct> act_of(const ControlRequest& request, const ControlNames& names, WallTime at) {
  const auto rule =
      std::ranges::find(kActs, request.act, [](const ActRule& r) { return word_of(r.kind); });
  if (rule == kActs.end()) {
    std::vector<std::string_view> all{kActExplain};
    for (const ActRule& r : kActs) all.push_back(word_of(r.kind));
    return Error{Errc::kNotFound,
                 "act: there is no " + printable(request.act) + suggestion(request.act, all)};
  }
  PROCTOR_CHECK_OK(check_words(request, *rule));
  OperatorAct out;
  out.kind = rule->kind;
  out.now = request.now;
  out.by = request.by;
  out.reason = request.reason;
  out.at = at;
  if (rule->takes == Takes::kRuns) {
    out.selected = request.runs.empty() ? "all" : request.runs;
    PROCTOR_TRY(out.runs, select_runs(*names.plan, out.selected));
    out.invalid = request.invalid;
  }
  if (rule->takes == Takes::kReview) {
    PROCTOR_TRY(const RunId run, find_run(*names.plan, request.runs));
    out.runs = {run};
    Result<std::uint64_t> minutes = parse_minutes(request.minutes);
    if (!minutes.ok()) return in_context("minutes", std::move(minutes).error());
    out.milli_minutes = *minutes;
  }
  if (rule->takes == Takes::kStage) {
    PROCTOR_TRY(out.stage, find_stage(names.plan->shape(), request.stage));
    if (rule->kind == OperatorActKind::kWaive) {
      PROCTOR_CHECK_OK(check_criterion(*names.view, out.stage, request.criterion));
    }
    if (!is_hex(request.digest)) return invalid("digest: expected up to 64 lower-case hex digits");
    out.digest = request.digest;
    out.criterion = request.criterion;
    out.by = trimmed(request.by);  // "Ada " is Ada
  }
  if (!request.worker.empty()) {
    if (std::ranges::find(names.workers, request.worker) == names.workers.end())
      return Error{Errc::kNotFound,
                   "no worker is named " + printable(request.worker) +
                       suggestion(request.worker, {names.workers.begin(), names.workers.end()})};
    out.worker = WorkerId(request.worker);
  }
  if (rule->takes == Takes::kScope) {
    PROCTOR_TRY(out.scope, find_scope(*names.view, request.scope));
    Result<MicroUsd> to = parse_usd(request.to);
    if (!to.ok()) return in_context("the new cap", std::move(to).error());
    out.to = *to;
  }
  return out;
}
}  // namespace proctor
