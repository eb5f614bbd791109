#include "coordinator/aggregate/columns.h"

#include <fmt/format.h>
#include <algorithm>
#include <charconv>

#include "common/base/csv.h"
#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "coordinator/aggregate/analysis.h"
#include "coordinator/aggregate/format.h"
#include "coordinator/aggregate/model_use.h"
#include "coordinator/aggregate/run_filter.h"

namespace proctor::aggregate {
namespace {
std::string decimal(double value, int digits) {
  if (0 < digits) return fmt::format("{:.{}g}", value, digits);
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, value);  // shortest that reads back
  return {text, end.ptr};
}

// `names`: of its columns; where it is empty each of them is.
void append_csv_cell(std::string& out, const Cell& cell, std::string_view names, int digits) {
  if (const auto* share = cell.get<Share>()) {
    append_csv_cell(out, share->rate, "", digits);
    out += ',';
    append_csv_cell(out, share->interval, ",", digits);
  } else if (const auto* interval = cell.get<Interval>()) {
    out += decimal(interval->low, digits) + "," + decimal(interval->high, digits);
  } else if (const auto* number = cell.get<double>()) {
    out += decimal(*number, digits);
  } else if (const auto* amount = cell.get<MicroUsd>()) {
    out += format_usd_exact(*amount);
  } else if (const auto* view = cell.get<std::string_view>()) {
    csv_append(out, csv_harmless(*view));
  } else if (const auto* text = cell.get<std::string>()) {
    csv_append(out, csv_harmless(*text));
  } else if (cell.empty()) {
    out.append(static_cast<std::size_t>(std::ranges::count(names, ',')), ',');
  } else {
    out += shown(cell, Type::kText);
  }
}

Json json_of(const Cell& cell) {
  if (const auto* amount = cell.get<MicroUsd>()) return money_json(*amount);
  if (const auto* interval = cell.get<Interval>()) return interval_json(*interval);
  if (const auto* s = cell.get<Share>())
    return {{"x", s->x},
            {"n", s->n},
            {"rate", or_null(s->rate)},
            {"interval", interval_json(s->interval)}};
  if (const auto* json = cell.get<Json>()) return *json;
  if (const auto* is = cell.get<bool>()) return *is;
  if (const auto* n = cell.get<std::int64_t>()) return *n;
  if (const auto* number = cell.get<double>()) return *number;
  if (const auto* view = cell.get<std::string_view>()) return *view;
  if (const auto* text = cell.get<std::string>()) return *text;
  return nullptr;
}
}  // namespace

std::string shown(const Cell& cell, Type type) {
  if (const auto* is = cell.get<bool>()) return *is ? "yes" : "no";
  if (const auto* n = cell.get<std::int64_t>())
    return type == Type::kMs ? seconds(static_cast<double>(*n)) : std::to_string(*n);
  if (const auto* number = cell.get<double>())
    return type == Type::kPoints ? points(*number)
           : type == Type::kP    ? p_words(*number)
                                 : seconds(*number);
  if (const auto* amount = cell.get<MicroUsd>()) return format_usd(*amount);
  if (const auto* view = cell.get<std::string_view>()) return printable(*view);
  if (const auto* text = cell.get<std::string>()) return *text;
  if (const auto* interval = cell.get<Interval>())
    return type == Type::kPoints ? points_between(*interval) : percent_interval(*interval);
  if (const auto* s = cell.get<Share>()) return percent_with_interval(s->rate, s->interval);
  return "-";
}

std::size_t place_in(std::string_view list, std::string_view word) {
  const std::vector<std::string_view> words = split(list, '|');
  return static_cast<std::size_t>(std::ranges::find(words, word) - words.begin());
}

template <class R>
Column<R>::Column(const std::string& names, Type of, std::function<Cell(const R&)> reads,
                  std::string_view means, std::vector<std::string_view> all)
    : type(of), read(std::move(reads)), meaning(means), values(std::move(all)) {
  const std::vector<std::string_view> parts = split(names, '|');
  const auto name = [&](std::size_t i) {
    const std::string_view given = parts[std::min(i, parts.size() - 1)];
    return std::string(given == "=" ? parts[0] : given);
  };
  json = name(0), csv = name(1), word = name(2);
  const bool is_one = !csv.empty() && csv.find(',') == csv.npos;
  if (is_one && type == Type::kShare) csv = fmt::format("{0},{0}_low,{0}_high", csv);
  if (is_one && type == Type::kInterval) csv = fmt::format("{0}_low,{0}_high", csv);
}

template <class R>
Columns<R>::Columns(std::initializer_list<Entry> all, std::string_view json, int digits)
    : digits_(digits) {
  for (const Entry& e : all) all_.insert(all_.end(), e.columns.begin(), e.columns.end());
  for (std::size_t i = 0; i < all_.size(); ++i)
    if (!all_[i].json.empty()) json_.push_back(i);
  std::ranges::stable_sort(json_, {}, [&](std::size_t i) {
    const std::string_view name = all_[i].json;
    return place_in(json, name.substr(0, name.find_first_of(".?")));
  });
}

template <class R>
const Column<R>* Columns<R>::find(std::string_view word) const {
  const auto it = std::ranges::find(all_, word, &Column<R>::word);
  return it == all_.end() || word.empty() ? nullptr : &*it;
}

template <class R>
std::vector<Column<R>> Columns<R>::named(std::string_view words) const {
  std::vector<Column<R>> out;
  for (const std::string_view item : split(words, '|')) {
    const std::size_t equals = item.find('=');
    const Column<R>* column = find(equals == item.npos ? item : item.substr(equals + 1));
    PROCTOR_ASSERT(column != nullptr);
    out.push_back(*column);
    out.back().word = item.substr(0, equals);
  }
  return out;
}

template <class R>
std::string Columns<R>::csv_header() const {
  std::string out;
  for (const Column<R>& c : all_)
    if (!c.csv.empty()) out += (out.empty() ? "" : ",") + c.csv;
  return out + "\n";
}

template <class R>
void Columns<R>::append_csv(std::string& out, const R& record) const {
  bool first = true;
  for (const Column<R>& c : all_) {
    if (c.csv.empty()) continue;
    if (!std::exchange(first, false)) out += ',';
    append_csv_cell(out, c.read(record), c.csv, digits_);
  }
  out += '\n';
}

template <class R>
Json Columns<R>::json(const R& record) const {
  Json out = Json::object();
  for (const std::size_t i : json_) {
    const Cell cell = all_[i].read(record);
    std::string_view name = all_[i].json;
    if (name.ends_with('?')) {
      if (cell.empty()) continue;
      name.remove_suffix(1);
    }
    Json* at = &out;
    for (const std::string_view part : split(name, '.')) at = &(*at)[part];
    *at = json_of(cell);
  }
  return out;
}

template class Columns<ReportRow>;
template class Columns<RunRecord>;
template class Columns<CostRow>;
template class Columns<ComparisonRow>;
template class Columns<BoardRow>;
template class Columns<Contrast>;
template class Columns<MethodRate>;
template class Columns<EnvelopeMoney>;
template class Columns<MoneyGroup>;
template class Columns<EnvelopeProjection>;
template class Columns<ProjectionRecord>;
template class Columns<GateRow>;
template class Columns<TagRow>;
template class Columns<SensitivityRow>;
template class Columns<Transition>;

namespace {
using enum Type;
using Row = const ReportRow&;
using Run = const RunRecord&;
using Costs = const CostRow&;
using Board = const BoardRow&;
using Pair = const Contrast&;
using Rate = const MethodRate&;
using Envelope = const EnvelopeMoney&;
using Projected = const EnvelopeProjection&;
using Record = const ProjectionRecord&;

// Reads a member of a member, which may be missing or a pointer.
template <class R, class T>
auto in(T R::*record, auto member) {
  return [record, member](const R& r) -> Cell {
    const T& inner = r.*record;
    if constexpr (requires { *inner; })
      return inner ? Cell(std::invoke(member, *inner)) : Cell();
    else
      return std::invoke(member, inner);
  };
}

// Columns that records of several kinds have.

template <class R>
std::vector<Column<R>> of_cost() {
  return {{"cost.model|model_usd|model", kUsd, in(&R::cost, &Cost::model),
           "cost of language model calls, in the unit of the price table"},
          {"cost.execution|execution_usd|execution", kUsd, in(&R::cost, &Cost::execution),
           "cost of sandbox time and tool calls"},
          {"cost.human|human_usd|human", kUsd, in(&R::cost, &Cost::human), "cost of people's time"},
          {"cost.overhead|overhead_usd|overhead", kUsd, in(&R::cost, &Cost::overhead),
           "cost of storage and of starting runs"},
          {"cost.total|total_usd|total", kUsd, in(&R::cost, &Cost::total),
           "the four together, over all runs of the row and all their attempts"}};
}

// `csv`: its names of calls and tokens there.
template <class R>
std::vector<Column<R>> of_self_reported(const std::string& calls = "",
                                        const std::string& tokens = "") {
  return {{"self_reported.cost|self_reported_usd|", kUsd, in(&R::self_reported, &SelfReported::usd),
           "its part on the agents' word alone"},
          {"self_reported.calls|" + calls + "|", kCount,
           in(&R::self_reported, &SelfReported::calls), "calls on the agents' word alone"},
          {"self_reported.tokens|" + tokens + "|", kCount,
           in(&R::self_reported, &SelfReported::tokens), "tokens on the agents' word alone"}};
}

// "37.2 %"; "-" of nothing.
std::string part(std::uint64_t of, std::uint64_t all) {
  if (all == 0) return "-";
  return percent(static_cast<double>(of) / static_cast<double>(all)) + " %";
}

// `has_words`: people have names for them too.
template <class R>
std::vector<Column<R>> of_models(bool has_words) {
  std::vector<Column<R>> out;
  for (const ModelCount& m : kModelCounts) {
    const std::string name = m.name;
    out.emplace_back("model_use." + name + (name == "calls" ? "|model_calls|" : "|" + name + "|") +
                         (has_words ? m.word : ""),
                     name == "waited_ms" ? kMs : kCount, in(&R::model_use, m.count), m.meaning);
    if (name == "ceiling_calls")
      out.emplace_back("model_use.at_ceiling|ceiling_usd|", kUsd,
                       in(&R::model_use, &ModelUse::at_ceiling), "what these were charged");
  }
  return out;
}

Cell times(const Times& t) {
  return Json{{"median", or_null(t.median_ms)}, {"longest", or_null(t.longest_ms)}};
}

// With the interval that the plan has for it, as everywhere.
Cell over_tasks(Row r) {
  if (!r.by_task) return {};
  return Json{{"tasks", r.by_task->tasks},
              {"mean", r.by_task->mean},
              {"standard_error", or_null(r.by_task->standard_error)},
              {"interval", interval_json(r.interval)}};
}

Cell terminations(Row r) {
  Json out = Json::object();
  for (const auto& [termination, n] : r.terminations) out[to_string(termination)] = n;
  return out;
}

bool is_ended(Run r) {
  return r.state == RunRecord::State::kEnded;
}

Cell if_ended(Run r, const Cell& cell) {
  return is_ended(r) ? cell : Cell();
}

Cell report_digest(const Digest& report) {
  return report == Digest() ? Cell() : Cell(report.hex());
}

bool is_parked(Run r) {
  return r.state == RunRecord::State::kParked;
}

Cell parked(Run r) {
  if (!is_parked(r)) return {};
  if (!r.parked_why.empty()) return Json{{"why", printable(r.parked_why, limits::kDetailBytes)}};
  return Json{{"scope", r.parked_scope}, {"short_by", money_json(r.short_by)}};
}

Cell set_aside(Run r) {
  Json out = Json::array();
  for (const SetAside& s : r.set_aside)
    out.push_back({{"attempt", s.attempt},
                   {"outcome", to_string(RunOutcome::kInvalid)},
                   {"termination", to_string(s.termination)},
                   {"why", printable(s.why, limits::kDetailBytes)},
                   {"report", json_of(report_digest(s.report))},
                   {"by", s.by},
                   {"reason", printable(s.reason, limits::kDetailBytes)}});
  return out;
}

// "attempt 1: invalid, infrastructure: the disk was full | ...": for a spreadsheet.
Cell set_aside_text(Run r) {
  std::string out;
  for (const SetAside& s : r.set_aside)
    out += fmt::format("{}attempt {}: invalid, {}: {}", out.empty() ? "" : " | ", s.attempt,
                       to_string(s.termination), s.why);
  return printable(out, limits::kDetailBytes);
}

// "37.2 %" of the reserved; by integers.
Cell used(Costs r) {
  if (r.asked <= MicroUsd::zero()) return {};
  const MicroUsd charged = r.cost.total() - r.overrun - r.reviewed;
  const std::int64_t n = scaled(charged.micros(), 1000, r.asked.micros());
  return fmt::format("{}.{} %", n / 10, n % 10);
}

// "0.734" of 734.
Cell ratio(const ComparisonRow& r) {
  if (!r.ratio_thousandths) return {};
  return fmt::format("{}.{:03}", *r.ratio_thousandths / 1000, *r.ratio_thousandths % 1000);
}

Cell rank_text(Board r) {
  if (!r.ranks) return "control";
  return r.ranks->best == r.ranks->worst ? fmt::format("{}", r.ranks->best)
                                         : fmt::format("{}-{}", r.ranks->best, r.ranks->worst);
}

Share share_of(const Estimate& e) {
  return {0, 0, e.value, e.interval};
}

Cell or_why(const std::optional<Interval>& interval, Why why) {
  return interval ? Cell(*interval) : Cell(word_of(why));
}

const Estimate& mean(Pair c) {
  return c.difference.estimate;
}

Cell by_repository(Pair c) {
  if (!c.by_repository) return {};
  Json out = estimate_json(c.by_repository->mean.estimate);
  out["repositories"] = c.by_repository->mean.groups;
  out["p_t"] = or_null(c.by_repository->mean.p);
  out["p_exact"] = c.by_repository->flips.p;
  out["p_exact_is_exact"] = c.by_repository->flips.exact;
  return out;
}

bool is_turned(Pair c) {
  return c.tipping && c.tipping->turned;
}

Cell tipping(Pair c) {
  if (!c.tipping || !c.tipping->tried) return {};
  Json out = {{"unknown", c.tipping->unknown}, {"turned_by", or_null(c.tipping->turned)}};
  out["in_favour_of"] = is_turned(c) ? Json(c.tipping->for_a ? "a" : "b") : Json(nullptr);
  out["becomes"] = is_turned(c) ? Json(word_of(c.tipping->becomes)) : Json(nullptr);
  return out;
}

Cell over_repositories(Pair c) {
  if (!c.by_repository) return {};
  const GroupedMean& mean = c.by_repository->mean;
  return mean.groups < 2 ? Cell("one repository")
                         : or_why(mean.estimate.interval, mean.estimate.why);
}

Cell pass_list(Rate r, const std::vector<std::uint32_t>& k) {
  Json out = Json::array();
  for (std::size_t i = 0; i < r.pass.size(); ++i)
    out.push_back({{"k", k[i]},
                   {"tasks", r.pass[i].tasks},
                   {"tasks_with_fewer_runs", r.pass[i].too_few},
                   {"at_least_one", estimate_json(r.pass[i].at_least_one)},
                   {"all", estimate_json(r.pass[i].all)}});
  return out;
}

Cell rate_text(Rate r) {
  std::string out = percent_with_interval(r.rate.value, r.rate.interval);
  if (r.rate.value && !r.rate.interval) out += fmt::format(" ({})", word_of(r.rate.why));
  return out;
}

Cell rerun_text(Rate r) {
  if (r.rerun.why == Why::kNoVariance) return "none seen";
  return r.rerun.gap95 ? Cell(fmt::format("{:.1f}", *r.rerun.gap95 * 100)) : Cell();
}

// '#' spent, '+' reserved, '?' reserved and at risk, '.' free.
Cell bar(Envelope e) {
  constexpr std::int64_t kBar = 20;
  std::string out(kBar, '.');
  const auto fill = [&](MicroUsd until, char c) {
    // Rounded up: a cent spent is seen.
    const std::int64_t free = std::max<std::int64_t>((e.cap - until).micros(), 0);
    const std::int64_t cells =
        kBar - (e.cap <= MicroUsd::zero() ? 0 : scaled(free, kBar, e.cap.micros()));
    std::ranges::replace(out.begin(), out.begin() + cells, '.', c);
  };
  fill(e.spent, '#');
  fill(e.spent + e.reserved - e.at_risk, '+');
  fill(e.spent + e.reserved, '?');
  return "[" + out + "]";
}

Cell alerts(Envelope e) {
  Json out = Json::array();
  for (const MoneyInput::Alert& a : e.alerts)
    out.push_back({{"percent", a.percent},
                   {"spent", money_json(a.spent)},
                   {"cap", money_json(a.cap)},
                   {"at", to_rfc3339(a.at)}});
  return out;
}

Cell if_parked(Envelope e, MicroUsd amount) {
  return 0 < e.parked ? Cell(amount) : Cell();
}

Cell dollars(const std::optional<double>& usd) {
  return usd ? Cell(fmt::format("{:.4f}", *usd)) : Cell();
}
}  // namespace

const Columns<ReportRow>& row_columns() {
  static const Columns<ReportRow> kColumns(
      {{"method", kName, &ReportRow::method,
        "what did the work: an agent, a program, or a baseline"},
       {"||stratum", kText, stratum_name,
        "a group of tasks, KEY=VALUE; \"all\" is every task; stage=NAME, the runs of a stage"},
       {"stratum||", kText, [](Row r) -> Cell { return r.key.empty() ? Cell() : r.key; },
        "its key; null: every task"},
       {"|stratum|", kText, [](Row r) -> Cell { return r.key.empty() ? Cell("all") : r.key; },
        "its key; all: every task"},
       {"value|=|", kText, [](Row r) -> Cell { return r.key.empty() ? Cell() : r.value; },
        "its level"},
       {"planned", kCount, &ReportRow::planned,
        "runs of the frozen plan; one run is one try of one method at one task"},
       {"ended", kCount, &ReportRow::ended, "runs with an outcome, invalid ones too"},
       {"||running", kCount, &ReportRow::running, "of the open ones those that run"},
       {"scorable", kCount, &ReportRow::scorable,
        "runs whose every acceptance check left a complete record: the next three together"},
       {"success", kCount, &ReportRow::success,
        "every check passed, but for those that only rate (rubric.maint)"},
       {"failure", kCount, &ReportRow::failure,
        "at least one check failed and none ended in error"},
       {"acceptance_error|=|acceptance error", kCount, &ReportRow::acceptance_error,
        "at least one check could not be completed (time limit, crash, missing tool)"},
       {"invalid", kCount, &ReportRow::invalid,
        "runs without complete evidence: neither a success nor a failure"},
       {"parked", kCount, &ReportRow::parked,
        "not started because a budget was short, until it grows, or because its task or method is "
        "broken, until it is requeued"},
       {"open", kCount, &ReportRow::open, "not started yet, or running"},
       {"cancelled", kCount, &ReportRow::cancelled,
        "ended by an operator without an outcome (shown if there are any)"},
       {"removed", kCount, &ReportRow::removed,
        "of a task taken out after the freeze, with a reason (shown if there are any)"},
       {"success_rate|=|success rate", kShare, &ReportRow::success_rate,
        "success / scorable, with its Wilson interval; with the plan's where that counts runs "
        "(estimand: run_mean)"},
       {"acceptance_error_rate|=|error rate", kShare, &ReportRow::acceptance_error_rate,
        "acceptance error / scorable, with its Wilson interval"},
       {"invalid_rate|=|invalid rate", kShare, &ReportRow::invalid_rate,
        "invalid / (scorable + invalid), with its Wilson interval"},
       {"bounds|bound|=", kInterval, &ReportRow::bounds,
        "the success rate, which is over runs, if every acceptance error and invalid run had "
        "failed, and if each had succeeded"},
       {"|over_tasks_mean,over_tasks_low,over_tasks_high|over tasks", kShare,
        [](Row r) -> Cell {
          return r.by_task ? Cell(Share{0, 0, r.by_task->mean, r.interval}) : Cell();
        },
        "mean of the tasks' own success rates; its interval counts tasks, not runs"},
       {"over_tasks||", kObject, over_tasks,
        "the same, with the number of tasks and a standard error"},
       {"over_tasks_interval||", kInterval, &ReportRow::interval, "its interval alone"},
       {"over_tasks_bounds||", kInterval, &ReportRow::bounds_by_task, "its bounds"},
       of_cost<ReportRow>(),
       {"cost_per_success|per_success_usd|per success", kUsd, &ReportRow::cost_per_success,
        "total / success, rounded up to a millionth; failed runs are paid for too"},
       {"|median_ms|median", kMs, in(&ReportRow::time, &Times::median_ms),
        "seconds from the start of a run to its report, over runs that ended"},
       {"|longest_ms|longest", kMs, in(&ReportRow::time, &Times::longest_ms),
        "the longest of these"},
       {"time_ms.all||", kObject, [](Row r) { return times(r.time); }, "both"},
       {"time_ms.success||", kObject, [](Row r) { return times(r.time_of_success); },
        "of successes"},
       {"time_ms.failure||", kObject, [](Row r) { return times(r.time_of_failure); },
        "of failures"},
       {"agent_unavailable|=|agent unavailable", kCount, &ReportRow::agent_unavailable,
        "of the invalid runs: the program of their method could not start (listed if there are "
        "any)"},
       {"success_rate_started|=|", kShare, &ReportRow::success_rate_started,
        "the success rate had these and model_overloaded failed"},
       {"||self_reported", kText, self_reported_cell,
        "the part of the total that agents said of themselves and nobody measured (shown if there "
        "is any)"},
       of_self_reported<ReportRow>(),
       {"unmetered_runs|=|", kCount, &ReportRow::unmetered_runs,
        "judged runs under caps on model calls or tokens without a metered call"},
       {"satisfied", kCount, &ReportRow::satisfied,
        "of the successes: those that passed every gate: no constraint of their contract was "
        "broken (protected files, paths they may write, network), no conflict markers came with "
        "the patch"},
       {"model_unavailable|=|", kCount, &ReportRow::model_unavailable,
        "of agent_unavailable: no model"},
       {"|weighted_rate|", kShare, [](Row r) -> Cell { return share_of(r.weighted); },
        "the rate over tasks in the plan's weights"},
       of_models<ReportRow>(true),
       {"control|=|", kYesNo, &ReportRow::is_control,
        "noop or reference: in no rank, badge or axis"},
       {"model_overloaded|=|", kCount, &ReportRow::model_overloaded,
        "invalid: no room at a provider"},
       {"unmetered||=", kYesNo, &ReportRow::unmetered,
        "a method under caps on model calls or tokens of which no judged run made a metered call: "
        "those caps held nothing, and its model cost is not known"},
       {"terminations||", kObject, terminations, "how many of the ended runs ended so"},
       {"||cached", kText,
        [](Row r) -> Cell { return part(r.model_use.cached, r.model_use.input); },
        "of the input tokens: those that the provider had in its cache"},
       {"||reasoning", kText,
        [](Row r) -> Cell { return part(r.model_use.reasoning, r.model_use.output); },
        "of the output tokens: those of reasoning"},
       {"||at ceiling", kText,
        [](Row r) -> Cell { return part(r.model_use.ceiling_calls, r.model_use.calls); },
        "calls of models that were charged at all that was reserved, for nobody said what they "
        "used"},
       {"||set aside", kText, [](Row) { return Cell(); },
        "an invalid result of a run that an operator put in line again: kept, and in no rate "
        "(listed if there are any)"}},
      "method|control|stratum|value|planned|ended|scorable|success|failure|acceptance_error|"
      "invalid|agent_unavailable|model_unavailable|model_overloaded|parked|open|cancelled|removed|"
      "success_rate|success_rate_started|acceptance_error_rate|invalid_rate|bounds|satisfied|over_"
      "tasks|over_tasks_interval|over_tasks_bounds|cost|self_reported|unmetered|unmetered_runs|"
      "model_use|cost_per_success|time_ms|terminations");
  return kColumns;
}

const Columns<CostRow>& cost_columns() {
  static const Columns<CostRow> kColumns(
      {{"by", kText, &CostRow::by, "what the group is of: all, method, stratum, stage, outcome"},
       {"name|=|group", kText, &CostRow::name,
        "a method, KEY=VALUE, a stage, an outcome or \"not ended\""},
       {"runs", kCount, &CostRow::runs, "runs of the group"},
       {"ended", kCount, &CostRow::ended, "those with an outcome"},
       {"successes", kCount, &CostRow::successes, "those that succeeded"},
       of_cost<CostRow>(),
       {"median|median_usd|=", kUsd, &CostRow::median,
        "cost of one run with all its attempts, over ended runs: amounts that occurred"},
       {"p90|p90_usd|90 %", kUsd, &CostRow::p90, "90 % of the ended runs cost no more"},
       {"most|most_usd|=", kUsd, &CostRow::most, "the dearest ended run"},
       {"per_success|per_success_usd|per success", kUsd, &CostRow::per_success,
        "total / successes, rounded up"},
       {"reserved|reserved_usd|=", kUsd, &CostRow::asked,
        "what was set aside for the attempts that are paid; used is the part charged"},
       {"||used", kText, used, "charged / reserved"},
       {"overrun|overrun_usd|=", kUsd, &CostRow::overrun,
        "metered above that, and charged to no envelope"},
       {"wasted|wasted_usd|=", kUsd, &CostRow::wasted,
        "charged for attempts that infrastructure spoiled: lost, or failed through no fault of the "
        "method"},
       {"wasted_attempts", kCount, &CostRow::wasted_attempts, "how many these are"},
       {"reviews", kCount, &CostRow::reviews, "people's reviews that are booked"},
       {"reviewed||=", kUsd, &CostRow::reviewed, "what these cost"},
       {"||self_reported", kUsd, in(&CostRow::self_reported, &SelfReported::usd),
        "the part on the agents' word alone"},
       of_self_reported<CostRow>(),
       of_models<CostRow>(true)},
      "by|name|runs|ended|successes|cost|self_reported|reserved|overrun|wasted|wasted_attempts|"
      "reviews|reviewed|median|p90|most|per_success");
  return kColumns;
}

namespace {
std::vector<Column<RunRecord>> of_strata(std::span<const std::string> keys) {
  const auto object = [all = std::vector(keys.begin(), keys.end())](Run r) -> Cell {
    Json out = Json::object();
    for (std::size_t k = 0; k < all.size(); ++k) out[all[k]] = r.strata[k];
    return out;
  };
  std::vector<Column<RunRecord>> out{
      {"strata||", kObject, object, "its task's level of each stratum; in CSV a column each"}};
  for (std::size_t k = 0; k < keys.size(); ++k) {
    out.emplace_back(
        "", kName, [k](Run r) -> Cell { return r.strata[k]; }, "");
    csv_append(out.back().csv, csv_harmless(keys[k]));
    out.back().word = std::string(kStratum) + keys[k];
  }
  return out;
}
}  // namespace

Columns<RunRecord> run_columns(std::span<const std::string> strata_keys) {
  return Columns<RunRecord>(
      {{"order", kCount, [](Run r) -> Cell { return r.run.raw(); },
        "its place in the plan, from 0"},
       {"run|run_id|=", kName, &RunRecord::name, "its name, TASK/METHOD/rN"},
       {"task", kName, &RunRecord::task, "its task"},
       {"method", kName, &RunRecord::method, "its method"},
       of_strata(strata_keys),
       {"state", kText, [](Run r) -> Cell { return to_string(r.state); },
        "planned, running, parked, ended, cancelled, removed", all_words<RunRecord::State>()},
       {"outcome", kText, [](Run r) { return if_ended(r, to_string(r.outcome)); },
        "of an ended run: success, failure, acceptance_error, invalid", all_words<RunOutcome>()},
       {"termination|=|end", kText, [](Run r) { return if_ended(r, to_string(r.termination)); },
        "why an ended run ended: completed, agent_timeout, budget_exceeded, ...",
        all_words<Termination>()},
       {"attempts", kCount, &RunRecord::attempts, "how many it took"},
       {"cost.model|model_usd|model", kUsd, in(&RunRecord::cost, &Cost::model),
        "the part of it that models are"},
       {"cost.execution|execution_usd|execution", kUsd, in(&RunRecord::cost, &Cost::execution),
        "likewise sandbox time and tools"},
       {"cost.human|human_usd|human", kUsd, in(&RunRecord::cost, &Cost::human), "likewise people"},
       {"cost.overhead|overhead_usd|overhead", kUsd, in(&RunRecord::cost, &Cost::overhead),
        "likewise storage and starting"},
       {"cost.total|total_usd|cost", kUsd, in(&RunRecord::cost, &Cost::total),
        "of all its attempts, in the unit of the price table"},
       {"time_ms.wall|wall_ms|time", kMs, &RunRecord::wall_ms,
        "from its start to its report: seconds, or 500ms, 90s, 2m, 1h"},
       {"time_ms.setup|setup_ms|setup", kMs, &RunRecord::setup_ms,
        "the part of it that setup took"},
       {"time_ms.agent|agent_ms|agent", kMs, &RunRecord::agent_ms, "likewise the agent"},
       {"time_ms.acceptance|acceptance_ms|acceptance", kMs, &RunRecord::acceptance_ms,
        "likewise the checks"},
       {"agent_exit|=|exit", kCount, &RunRecord::agent_exit, "what its agent ended with"},
       {"patch?|patch|patch", kText,
        [](Run r) -> Cell { return r.patch.empty() ? Cell() : r.patch; },
        "how its patch fitted, where not as it is: whitespace, three_way, refused"},
       {"why||", kText, [](Run r) -> Cell { return printable(r.rationale, limits::kDetailBytes); },
        "what its last attempt with a result said of its end"},
       {"|why|", kText,
        [](Run r) -> Cell {
          return printable(r.parked_why.empty() ? r.rationale : r.parked_why, limits::kDetailBytes);
        },
        "the same, or what is broken that it is parked for"},
       {"report|=|", kText, [](Run r) { return report_digest(r.report); },
        "SHA-256 of its report.json"},
       {"metered_calls|=|calls", kCount, &RunRecord::metered_calls, "metered model calls"},
       of_self_reported<RunRecord>("self_reported_calls", "self_reported_tokens"),
       {"set_aside||", kObject, set_aside, "invalid results of before it was put in line again"},
       {"|set_aside|", kText, set_aside_text, "the same in words"},
       {"satisfied",
        kYesNo,
        [](Run r) { return if_ended(r, r.satisfied()); },
        "of an ended run: yes (a success that passed every gate) or no",
        {"yes", "no"}},
       {"violations", kCount, &RunRecord::violations,
        "how often it broke a constraint of its contract"},
       {"|worker|worker", kName, &RunRecord::worker, "who had the attempt that counts"},
       {"|started_ms|", kMs,
        [](Run r) -> Cell { return r.started_ms == 0 ? Cell() : r.started_ms; },
        "when that began, since 1970"},
       {"stage", kName, &RunRecord::stage, "its stage"},
       of_models<RunRecord>(false),
       {"parked?||", kObject, parked,
        "of a parked run: the envelope and what it lacks, or what is broken"},
       {"||parked", kText, [](Run r) { return is_parked(r) ? Cell(r.parked_scope) : Cell(); },
        "the envelope that was short"},
       {"reviews||=", kCount, &RunRecord::reviews, "how many people's reviews are booked for it"},
       {"reserved||", kUsd, &RunRecord::asked, "what was set aside for its paid attempts"},
       {"||self_reported", kUsd, in(&RunRecord::self_reported, &SelfReported::usd),
        "the part that agents said of themselves"},
       {"wasted||=", kUsd, &RunRecord::wasted, "the part that infrastructure spoiled"},
       {"|configuration|configuration", kText, &RunRecord::configuration,
        "its configuration class, 16 digits: equal where sandbox, limits and worker are"},
       {"old_outcome?|old_outcome|old", kText,
        [](Run r) { return r.old_outcome ? Cell(to_string(*r.old_outcome)) : Cell(); },
        "of a recorded patch: the outcome that it had in the campaign that it comes from",
        all_words<RunOutcome>()},
       judged_columns()},
      "order|run|task|method|stage|strata|state|outcome|old_outcome|satisfied|gates|score|tags|"
      "violations|termination|agent_exit|patch|attempts|cost|self_reported|metered_calls|model_use|"
      "reviews|reserved|wasted|time_ms|why|parked|report|set_aside");
}

const Columns<ComparisonRow>& comparison_columns() {
  static const Columns<ComparisonRow> kColumns(
      {{"by", kText, &ComparisonRow::by, "what the part is of: total, category, envelope"},
       {"name", kText, &ComparisonRow::name, "the part"},
       {"projected|projected_usd|=", kUsd, &ComparisonRow::expected, "of the whole plan"},
       {"projected_of_paid_runs|projected_of_paid_runs_usd|of the runs paid for", kUsd,
        &ComparisonRow::of_paid, "of the runs that were paid for at least once"},
       {"actual|actual_usd|=", kUsd, &ComparisonRow::actual,
        "metered and booked; of an envelope: charged"},
       {"ratio_thousandths||", kCount, &ComparisonRow::ratio_thousandths,
        "actual / projected_of_paid_runs"},
       {"|ratio|ratio", kText, ratio, "the same as a decimal"}},
      "");
  return kColumns;
}

const Columns<Transition>& transition_columns() {
  static const Columns<Transition> kColumns(
      {{"method", kText, &Transition::method, "whose patches were judged again"},
       {"old_outcome|=|old", kText, &Transition::was, "their outcome in the campaign of before"},
       {"outcome|=|new", kText, &Transition::is, "their outcome, or where they are, in this one"},
       {"runs", kCount, &Transition::runs, "how many went from the one to the other"}},
      "");
  return kColumns;
}

const Columns<BoardRow>& board_columns() {
  static const Columns<BoardRow> kColumns(
      {{"campaign", kText, &BoardRow::campaign},
       {"||name", kText,
        [](Board r) -> Cell { return printable(r.method) + (r.verified() ? "" : " *"); }},
       {"method", kText, &BoardRow::method},
       {"ranks||", kObject,
        [](Board r) {
          return r.ranks ? Cell(Json::array({r.ranks->best, r.ranks->worst})) : Cell();
        }},
       {"|rank_best|", kCount, in(&BoardRow::ranks, &RankSet::best)},
       {"|rank_worst|", kCount, in(&BoardRow::ranks, &RankSet::worst)},
       {"||rank", kText, rank_text},
       {"rate||", kObject, [](Board r) -> Cell { return estimate_json(r.rate); }},
       {"|rate|success over tasks", kShare, [](Board r) -> Cell { return share_of(r.rate); }},
       {"bounds|bound|=", kInterval, in(&BoardRow::bounds, &Bounds::identified)},
       {"tasks", kCount, &BoardRow::tasks},
       {"runs", kCount, &BoardRow::runs},
       {"satisfied", kCount, &BoardRow::satisfied},
       {"acceptance_error|=|errors", kCount, &BoardRow::acceptance_error},
       {"invalid", kCount, &BoardRow::invalid},
       {"open|=|", kCount, &BoardRow::open},
       {"not_run|=|", kCount, &BoardRow::not_run},
       {"cost_of_run|run_usd|", kRate, &BoardRow::cost_of_run},
       {"||of a run", kText, [](Board r) { return dollars(r.cost_of_run); }},
       {"cost_of_success|success_usd|", kRate, &BoardRow::cost_of_success},
       {"||of a success", kText, [](Board r) { return dollars(r.cost_of_success); }},
       {"prices|=|", kText, &BoardRow::prices},
       {"caps|=|", kText, &BoardRow::caps},
       {"tool_version|=|", kText, &BoardRow::tool_version},
       {"registered_ms||", kMs, &BoardRow::registered_ms},
       {"journal_head|=|", kText,
        [](Board r) { return r.journal_head.empty() ? Cell() : Cell(r.journal_head); }},
       {"verified|=|", kYesNo, &BoardRow::verified}},
      "campaign|method", 12);
  return kColumns;
}

const Columns<Contrast>& contrast_columns() {
  static const Columns<Contrast> kColumns(
      {{"a", kText, &Contrast::a},
       {"b", kText, &Contrast::b},
       {"||comparison", kText,
        [](Pair c) -> Cell { return printable(c.a) + " - " + printable(c.b); }},
       {"verdict|=|", kText, [](Pair c) -> Cell { return word_of(c.verdict); }},
       {"||verdict", kText, verdict_words},
       {"tasks", kCount, &Contrast::tasks},
       {"dropped_a|=|", kCount, &Contrast::dropped_a},
       {"dropped_b|=|", kCount, &Contrast::dropped_b},
       {"never_ended_a||", kCount, &Contrast::never_a},
       {"never_ended_b||", kCount, &Contrast::never_b},
       {"a_better|=|better", kCount, &Contrast::a_better},
       {"b_better|=|worse", kCount, &Contrast::b_better},
       {"difference||", kObject, [](Pair c) -> Cell { return estimate_json(mean(c)); }},
       {"|difference|difference", kPoints, [](Pair c) -> Cell { return mean(c).value; }},
       {"|standard_error|", kRate, [](Pair c) -> Cell { return mean(c).standard_error; }},
       {"|df|", kRate, [](Pair c) -> Cell { return mean(c).df; }},
       {"|interval|", kInterval, [](Pair c) -> Cell { return mean(c).interval; }},
       {"||interval", kPoints, [](Pair c) { return or_why(mean(c).interval, mean(c).why); }},
       {"p_t|=|", kRate, [](Pair c) -> Cell { return c.difference.p; }},
       {"p_exact|=|p", kP, in(&Contrast::flips, &Significance::p)},
       {"p_exact_is_exact||", kYesNo, [](Pair c) -> Cell { return c.flips && c.flips->exact; }},
       {"p_adjusted|=|adjusted p", kP, &Contrast::adjusted},
       {"p_equivalent|=|", kRate, in(&Contrast::equivalence, &Equivalence::p_equivalent)},
       {"p_not_inferior|=|", kRate, &Contrast::not_inferior},
       {"bounds|bounds_low,bounds_high|=", kPoints, in(&Contrast::bounds, &Bounds::identified)},
       {"bounds_interval||", kInterval, in(&Contrast::bounds, &Bounds::interval)},
       {"||their interval", kPoints,
        [](Pair c) { return c.bounds ? or_why(c.bounds->interval, Why::kOneTask) : Cell(); }},
       {"invalid_share_difference|loss|", kRate, &Contrast::loss},
       {"invalid_share_p|loss_p|", kRate, &Contrast::loss_p},
       {"|why|", kText, [](Pair c) -> Cell { return word_of(mean(c).why); }},
       {"gap95|=|", kRate, in(&Contrast::equals, &EqualGap::gap95)},
       {"||chance", kPoints, in(&Contrast::equals, &EqualGap::gap95)},
       {"||chance alone (95 %)", kText,
        [](Pair c) {
          return c.equals ? Cell(fmt::format("{:.1f}", c.equals->gap95 * 100)) : Cell();
        }},
       {"gap95_is_exact||", kYesNo, [](Pair c) -> Cell { return c.equals && c.equals->exact; }},
       {"p_equal_methods|=|chance p", kP, in(&Contrast::equals, &EqualGap::p)},
       {"tie||", kYesNo, &Contrast::is_tie},
       {"|tie|tie", kYesNo, [](Pair c) { return c.equals ? Cell(c.is_tie()) : Cell(); }},
       {"||is tied", kText,
        [](Pair c) { return c.equals ? Cell(c.is_tie() ? "tie" : "no") : Cell(); }},
       {"by_repository||", kObject, by_repository},
       {"|repositories|repositories", kCount,
        [](Pair c) { return c.by_repository ? Cell(c.by_repository->mean.groups) : Cell(); }},
       {"|repositories_low,repositories_high|", kInterval,
        [](Pair c) {
          return c.by_repository ? Cell(c.by_repository->mean.estimate.interval) : Cell();
        }},
       {"||interval over them", kPoints, over_repositories},
       {"|repositories_p|p over them", kP,
        [](Pair c) { return c.by_repository ? Cell(c.by_repository->flips.p) : Cell(); }},
       {"|unknown|", kCount, in(&Contrast::tipping, &Tipping::unknown)},
       {"|turned_by|", kCount, in(&Contrast::tipping, &Tipping::turned)},
       {"|turned_to|", kText,
        [](Pair c) { return is_turned(c) ? Cell(word_of(c.tipping->becomes)) : Cell(); }},
       {"tipping||", kObject, tipping},
       {"||turned by", kText, turned_words},
       {"simultaneous|=|", kInterval, &Contrast::simultaneous},
       {"||holding together", kPoints,
        [](Pair c) { return or_why(c.simultaneous, Why::kNoVariance); }},
       {"weighted||", kObject, [](Pair c) -> Cell { return weighted_json(c.weighted); }},
       {"|weighted|", kShare,
        [](Pair c) { return c.weighted ? Cell(share_of(c.weighted->of.estimate)) : Cell(); }},
       {"|control|", kYesNo, &Contrast::is_control}},
      "a|b|verdict|tasks|dropped_a|dropped_b|never_ended_a|never_ended_b|a_better|b_better|"
      "difference|p_t|p_exact|p_exact_is_exact|p_adjusted|simultaneous|p_equivalent|p_not_inferior|"
      "bounds|bounds_interval|invalid_share_difference|invalid_share_p|gap95|gap95_is_exact|p_"
      "equal_methods|tie|by_repository|tipping|weighted",
      12);
  return kColumns;
}

Columns<MethodRate> rate_columns(const AnalysisPlan& plan) {
  return Columns<MethodRate>(
      {{"method", kName, &MethodRate::method},
       {"control||", kYesNo, &MethodRate::is_control},
       {"tasks", kCount, &MethodRate::tasks},
       {"runs", kCount, &MethodRate::runs},
       {"rate||", kObject, [](Rate r) -> Cell { return estimate_json(r.rate); }},
       {"||rate", kText, rate_text},
       {"solved.always||always", kCount, in(&MethodRate::reliability, &Reliability::always)},
       {"solved.sometimes||sometimes", kCount,
        in(&MethodRate::reliability, &Reliability::sometimes)},
       {"solved.never||never", kCount, in(&MethodRate::reliability, &Reliability::never)},
       {"pass_k||", kObject, [k = plan.pass_k](Rate r) { return pass_list(r, k); }},
       {"weighted||", kObject, [](Rate r) -> Cell { return weighted_json(r.weighted); }},
       {"rerun.tasks||", kCount, in(&MethodRate::rerun, &RerunNoise::tasks)},
       {"rerun.standard_error||", kRate, in(&MethodRate::rerun, &RerunNoise::standard_error)},
       {"rerun.gap95||", kRate, in(&MethodRate::rerun, &RerunNoise::gap95)},
       {"rerun.why||", kText, [](Rate r) -> Cell { return why_json(r.rerun.why); }},
       {"||rerun differs by", kText, rerun_text}},
      "");
}

const Columns<EnvelopeMoney>& envelope_columns() {
  static const Columns<EnvelopeMoney> kColumns(
      {{"name||", kText, &EnvelopeMoney::name},
       {"||envelope", kText,
        [](Envelope e) -> Cell { return std::string(e.depth * 2, ' ') + printable(e.name); }},
       {"||bar", kText, bar},
       {"depth||", kCount, &EnvelopeMoney::depth},
       {"across||", kYesNo, &EnvelopeMoney::across},
       {"cap", kUsd, &EnvelopeMoney::cap},
       {"spent", kUsd, &EnvelopeMoney::spent},
       {"self_reported", kUsd, &EnvelopeMoney::self_reported},
       {"reserved", kUsd, &EnvelopeMoney::reserved},
       {"metered", kUsd, &EnvelopeMoney::metered},
       {"free", kUsd, &EnvelopeMoney::free},
       {"at_risk||at risk", kUsd, &EnvelopeMoney::at_risk},
       {"denied.runs||parked", kCount, &EnvelopeMoney::parked},
       {"denied.short_least?||", kUsd, [](Envelope e) { return if_parked(e, e.short_least); }},
       {"denied.short_most?||", kUsd, [](Envelope e) { return if_parked(e, e.short_most); }},
       {"denied.cap_for_all?||", kUsd, [](Envelope e) { return if_parked(e, e.cap + e.wanted); }},
       {"per_hour||per hour", kUsd, &EnvelopeMoney::per_hour},
       {"used_up_at||", kText,
        [](Envelope e) { return e.used_up_at ? Cell(to_rfc3339(*e.used_up_at)) : Cell(); }},
       {"alerts||", kObject, alerts},
       {"registered_cap||", kUsd,
        [](Envelope e) -> Cell { return e.declared_cap.value_or(e.cap); }}},
      "");
  return kColumns;
}

const Columns<MoneyGroup>& group_columns() {
  static const Columns<MoneyGroup> kColumns({{"name||group", kText, &MoneyGroup::name},
                                             {"spent", kUsd, &MoneyGroup::spent},
                                             {"self_reported", kUsd, &MoneyGroup::self_reported},
                                             {"reserved", kUsd, &MoneyGroup::reserved},
                                             {"at_risk||at risk", kUsd, &MoneyGroup::at_risk},
                                             {"runs", kCount, &MoneyGroup::runs},
                                             {"attempts", kCount, &MoneyGroup::attempts},
                                             {"parked", kCount, &MoneyGroup::parked}},
                                            "");
  return kColumns;
}

const Columns<EnvelopeProjection>& projection_columns() {
  static const Columns<EnvelopeProjection> kColumns(
      {{"name||", kText, &EnvelopeProjection::name},
       {"||envelope", kText,
        [](Projected e) -> Cell { return (e.name == "global" ? "" : "  ") + printable(e.name); }},
       {"runs", kCount, &EnvelopeProjection::runs},
       {"cap", kUsd, &EnvelopeProjection::cap},
       {"expected", kUsd, &EnvelopeProjection::expected},
       {"at_caps||at caps", kUsd, &EnvelopeProjection::at_caps},
       {"at_most||at most", kUsd, &EnvelopeProjection::at_most},
       {"at_once||at once", kCount, &EnvelopeProjection::at_once},
       {"parked.expected||", kCount,
        [](Projected e) { return e.expected ? Cell(e.parked_expected) : Cell(); }},
       {"parked.at_caps||", kCount, &EnvelopeProjection::parked_at_caps}},
      "");
  return kColumns;
}

const Columns<ProjectionRecord>& projection_record_columns() {
  using Kind = ProjectionInput::Kind;
  using Line = ProjectionLine;
  using Of = EnvelopeProjection;
  static const Columns<ProjectionRecord> kColumns(
      {{"level", kText, &ProjectionRecord::level},
       {"name", kText, &ProjectionRecord::name},
       {"stage", kText, in(&ProjectionRecord::kind, &Kind::stage)},
       {"task", kText, in(&ProjectionRecord::kind, &Kind::task)},
       {"method", kText, in(&ProjectionRecord::kind, &Kind::method)},
       {"action_type", kText, in(&ProjectionRecord::line, &Line::action_type)},
       {"unit", kText, in(&ProjectionRecord::line, &Line::unit)},
       {"provider", kText, in(&ProjectionRecord::line, &Line::provider)},
       {"model", kText, in(&ProjectionRecord::line, &Line::model)},
       {"category", kText, &ProjectionRecord::category},
       {"runs", kCount, &ProjectionRecord::runs},
       {"per_run", kText, &ProjectionRecord::per_run},
       {"unit_price_usd", kText, in(&ProjectionRecord::line, &Line::unit_price)},
       {"price_from", kText,
        [](Record r) { return r.line ? Cell(word_of(r.line->price)) : Cell(); }},
       {"expected_usd", kUsd, &ProjectionRecord::expected},
       {"cap_usd", kUsd, in(&ProjectionRecord::envelope, &Of::cap)},
       {"at_caps_usd", kUsd, in(&ProjectionRecord::envelope, &Of::at_caps)},
       {"at_most_usd", kUsd, in(&ProjectionRecord::envelope, &Of::at_most)},
       {"at_once", kCount, in(&ProjectionRecord::envelope, &Of::at_once)},
       {"parked_expected", kCount,
        [](Record r) {
          return r.envelope && r.envelope->expected ? Cell(r.envelope->parked_expected) : Cell();
        }},
       {"parked_at_caps", kCount, in(&ProjectionRecord::envelope, &Of::parked_at_caps)}},
      "");
  return kColumns;
}

const std::string_view kProgressWords =
    "method|stratum|planned|done=ended|running|parked|success|satisfied|failure|acceptance "
    "error|invalid";
const std::string_view kOutcomeWords =
    "method|stratum|planned|scorable|success|satisfied|failure|acceptance "
    "error|invalid|parked|open";
const std::string_view kRateWords =
    "method|stratum|success rate|bounds|error rate|invalid rate|over tasks";
const std::string_view kPriceWords = "method|stratum|model|execution|human|overhead|total";
const std::string_view kTimeWords = "per success|median|longest";
const std::string_view kModelWords =
    "method|stratum|calls|input|cached|output|reasoning|refused|at ceiling|waited "
    "(s)=waited|clamped|billed more|replayed|failed|no room";
const std::string_view kCostWords =
    "by|group|runs|total|median|90 %|most|per success|reserved|used|wasted";
const std::string_view kComparisonWords = "by|=name|projected|of the runs paid for|actual|ratio";
const std::string_view kBoardWords =
    "method=name|campaign|rank|success over tasks|tasks|runs|satisfied|errors|invalid|of a run|of "
    "a success";
const std::string_view kPageFlowWords =
    "planned|removed|cancelled|parked|open|ended|invalid|scorable|success|failure|acceptance "
    "error|satisfied";
const std::string_view kPageCostWords =
    "runs|model|execution|human|overhead|total|said by agents "
    "themselves=self_reported|reserved|wasted";
const std::string_view kPageComparisonWords = "projected|of paid runs=of the runs paid for|actual";
const std::string_view kRemovedWords = "verdict|difference|interval|adjusted p|tasks";
const std::string_view kPageRunWords = "state|outcome|satisfied|ended by=end|cost|time|attempts";
}  // namespace proctor::aggregate

namespace proctor {
const std::vector<Definition>& filter_words() {
  static const std::vector<Definition> kWords = [] {
    std::vector<Definition> out;
    constexpr std::string_view kFirst =
        "run|task|method|stage|state|outcome|satisfied|gate.g1|gate.g2|gate.g3|gate.g4|tag|end|"
        "worker|patch|parked|order|attempts|exit|"
        "violations|reviews|calls|cost|model|execution|human|overhead|self_reported|wasted|time|"
        "setup|agent|acceptance";
    const auto columns = aggregate::run_columns({});
    for (const auto& c : columns.all())
      if (!c.word.empty()) out.push_back({c.word, c.meaning});
    std::ranges::stable_sort(
        out, {}, [&](const Definition& d) { return aggregate::place_in(kFirst, d.word); });
    return out;
  }();
  return kWords;
}
}  // namespace proctor
