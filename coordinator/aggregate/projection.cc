#include "coordinator/aggregate/projection.h"

#include <fmt/format.h>
#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <string_view>

#include "common/base/text.h"
#include "common/contract/caps.h"
#include "common/contract/cost_model.h"
#include "coordinator/aggregate/columns.h"
#include "coordinator/aggregate/format.h"
#include "coordinator/aggregate/ordered_json.h"
#include "coordinator/aggregate/report.h"

namespace proctor {
// A projection beside what was observed, on a terminal and as a table.

using namespace aggregate;

void append_comparison(std::string& out, const Comparison& c) {
  out += std::string("\nProjected and actual cost (") + money_word(c.abstract) + "; inputs " +
         c.inputs + ", " +
         (c.registered ? "registered before the first run"
                       : "NOT registered: written afterwards, so no forecast") +
         ")\n\n";
  table_of(comparison_columns(), kComparisonWords, c.rows, std::mem_fn(&ComparisonRow::by))
      .append_to(out);
  out += "\n  " + std::to_string(c.paid) + " of " + std::to_string(c.runs) +
         " planned runs were paid for. ratio: actual / projected of the runs paid for. actual: "
         "metered\n  quantities at the registered prices, and reviews; not a provider's bill.\n";
}

namespace {
// Money in 1e-18 USD: a millionth of a unit at 1e-12 USD a unit is exactly one of them.  An
// envelope holds at most 9e27, a run costs at most 3e30 and a plan has at most 16 million runs:
// 128 bits hold every sum.
__extension__ typedef unsigned __int128 Wide;
constexpr Wide kPerMicro = 1'000'000'000'000;
constexpr std::uint64_t kOneUnit = 1'000'000;

Wide wide(MicroUsd amount) {
  return static_cast<Wide>(amount.micros()) * kPerMicro;
}
// Rounds up once.  What no ledger could hold is shown as the most that one can.
MicroUsd rounded_up(Wide amount) {
  const Wide micros = amount / kPerMicro + (amount % kPerMicro == 0 ? 0 : 1);
  const Wide most = static_cast<Wide>(kLedgerMax.micros());
  return MicroUsd::from_micros(static_cast<std::int64_t>(std::min(micros, most)));
}

// "0.000003" of 3'000'000 at 12 digits.
std::string decimal(std::uint64_t parts, std::size_t digits) {
  std::string out = fmt::format("{:0{}}", parts, digits + 1);
  out.insert(out.size() - digits, ".");
  out.erase(out.find_last_not_of('0') + 1);
  if (out.back() == '.') out.pop_back();
  return out;
}

// What one run of a kind is expected to cost.
struct Expected {
  std::array<Wide, 4> by_category{};
  Wide attempt = 0;  // its metered part: no more than the ask is ever charged for it
  Wide lost = 0;     // attempts that are lost with their worker
  Wide human = 0;
  Wide total() const { return attempt + lost + human; }
  Wide charged(MicroUsd ask) const { return std::min(attempt, wide(ask)) + lost + human; }
};

// "stage" of "stage:pilot", "stratum:language" of "stratum:language=go".
std::string_view level_of(std::string_view name) {
  const std::size_t equals = name.find('=');
  return name.substr(0, equals != std::string_view::npos ? equals : name.find(':'));
}

class Projector {
 public:
  explicit Projector(const ProjectionInput& input) : in_(input) {
    runs_of_kind_.assign(in_.kinds.size(), 0);
    kinds_of_scope_.resize(in_.scopes.size());
    runs_of_scope_.resize(in_.scopes.size());
    for (std::uint32_t k = 0; k < in_.kinds.size(); ++k)
      for (const std::uint32_t s : in_.kinds[k].path) kinds_of_scope_[s].push_back(k);
    for (std::uint32_t r = 0; r < in_.runs.size(); ++r) {
      ++runs_of_kind_[in_.runs[r].kind];
      for (const std::uint32_t s : in_.kinds[in_.runs[r].kind].path) runs_of_scope_[s].push_back(r);
    }
    out_.has_expected = !in_.usages.empty();
  }

  Projection run() {
    if (out_.has_expected) expect();
    for (std::uint32_t s = 0; s < in_.scopes.size(); ++s) add_envelope(s);
    out_.binds_at_caps = walk(&EnvelopeProjection::parked_at_caps,
                              [&](std::uint32_t kind) { return wide(in_.kinds[kind].ask); });
    if (out_.has_expected)
      out_.binds_expected = walk(&EnvelopeProjection::parked_expected, [&](std::uint32_t kind) {
        return expected_[kind].charged(in_.kinds[kind].ask);
      });
    return std::move(out_);
  }

 private:
  void add_line(std::uint32_t kind, const ExpectedAction& a, std::string price, Wide amount) {
    const std::uint64_t runs = runs_of_kind_[kind];
    Expected& e = expected_[kind];
    const auto category = static_cast<std::size_t>(a.category);
    e.by_category[category] += amount;
    out_.lines.push_back({kind, runs, a.action_type, a.unit, a.provider, a.model, a.category,
                          a.micro_units, std::move(price), a.price, rounded_up(amount * runs)});
  }

  void expect() {
    expected_.resize(in_.kinds.size());
    std::array<Wide, 4> all{};
    for (std::uint32_t k = 0; k < in_.kinds.size(); ++k) {
      const ProjectionInput::Kind& kind = in_.kinds[k];
      Expected& e = expected_[k];
      for (const ExpectedAction& a : in_.usages[kind.usage]) {
        const Wide amount = Wide{a.micro_units} * a.pico_usd;
        (a.category == CostCategory::kHuman ? e.human : e.attempt) += amount;
        add_line(k, a, decimal(a.pico_usd, 12), amount);
      }
      if (0 < in_.lost_micro) {
        // Nobody knows what a lost attempt spent: it is charged its ask, as execution.
        e.lost = wide(kind.ask) / kOneUnit * in_.lost_micro;
        add_line(k,
                 {"lost_attempt", "attempt", "", "", in_.lost_micro, 0, ExpectedAction::Price::kRow,
                  CostCategory::kExecution},
                 format_usd_exact(kind.ask), e.lost);
      }
      for (std::size_t c = 0; c < all.size(); ++c) all[c] += e.by_category[c] * runs_of_kind_[k];
      out_.per_run.push_back(rounded_up(e.total()));
      if (wide(kind.ask) < e.attempt) out_.above_cap.push_back(k);
    }
    for (std::size_t c = 0; c < all.size(); ++c) out_.by_category[c] = rounded_up(all[c]);
  }

  void add_envelope(std::uint32_t s) {
    EnvelopeProjection e;
    e.name = in_.scopes[s].name;
    e.cap = in_.scopes[s].cap;
    e.runs = runs_of_scope_[s].size();
    Wide expected = 0, at_caps = 0;
    for (const std::uint32_t k : kinds_of_scope_[s]) {
      if (out_.has_expected) expected += expected_[k].total() * runs_of_kind_[k];
      at_caps += wide(in_.kinds[k].ask) * runs_of_kind_[k];
    }
    if (out_.has_expected) e.expected = rounded_up(expected);
    e.at_caps = rounded_up(at_caps);
    e.at_most = rounded_up(std::min(most_of(s), wide(e.cap)));
    e.at_once = at_once(s);
    out_.envelopes.push_back(std::move(e));
  }

  Wide demand(std::uint32_t kind) const {
    return wide(in_.kinds[kind].ask) * runs_of_kind_[kind] * in_.attempts_max;
  }

  // No more than its runs could ask for, and on each level (all stages, all tasks, ...) no more
  // than the envelopes of that level let through.
  Wide most_of(std::uint32_t s) const {
    std::map<std::string_view, std::map<std::uint32_t, Wide>> levels;
    Wide all = 0;
    for (const std::uint32_t k : kinds_of_scope_[s]) {
      all += demand(k);
      for (const std::uint32_t f : in_.kinds[k].path)
        levels[level_of(in_.scopes[f].name)][f] += demand(k);
    }
    Wide most = all;
    for (const auto& [level, scopes] : levels) {
      Wide through = 0, inside = 0;
      for (const auto& [f, asked] : scopes) {
        through += std::min(asked, wide(in_.scopes[f].cap));
        inside += asked;
      }
      most = std::min(most, through + (all - inside));  // runs without an envelope of this level
    }
    return most;
  }

  // In the plan's order, with nothing else under way.  As in the queue: who finds an envelope short
  // waits for it, and nobody who needs the same passes.
  std::uint64_t at_once(std::uint32_t s) const {
    std::vector<Wide> reserved(in_.scopes.size());
    std::vector<bool> waits(in_.scopes.size(), false);
    std::uint64_t out = 0;
    for (const std::uint32_t r : runs_of_scope_[s]) {
      if (waits[s]) break;
      const ProjectionInput::Kind& kind = in_.kinds[in_.runs[r].kind];
      const Wide ask = wide(kind.ask);
      const auto short_there = std::ranges::find_if(kind.path, [&](std::uint32_t f) {
        return waits[f] || wide(in_.scopes[f].cap) < reserved[f] + ask;
      });
      if (short_there != kind.path.end()) {
        waits[*short_there] = true;
        continue;
      }
      for (const std::uint32_t f : kind.path) reserved[f] += ask;
      ++out;
    }
    return out;
  }

  // One run after another; each asks for its cap and is then charged `cost`.
  template <class Cost>
  std::optional<Binding> walk(std::uint64_t EnvelopeProjection::*parked, const Cost& cost) {
    std::vector<Wide> spent(in_.scopes.size());
    std::optional<Binding> first;
    std::uint64_t ran = 0;
    for (std::uint32_t r = 0; r < in_.runs.size(); ++r) {
      const std::uint32_t k = in_.runs[r].kind;
      const ProjectionInput::Kind& kind = in_.kinds[k];
      const auto short_there = std::ranges::find_if(kind.path, [&](std::uint32_t f) {
        return wide(in_.scopes[f].cap) < spent[f] + wide(kind.ask);
      });
      if (short_there == kind.path.end()) {
        for (const std::uint32_t f : kind.path) spent[f] += cost(k);
        ++ran;
        continue;
      }
      const std::uint32_t f = *short_there;
      ++(out_.envelopes[f].*parked);
      if (!first)
        first = Binding{f, r, ran, rounded_up(spent[f] + wide(kind.ask) - wide(in_.scopes[f].cap))};
    }
    return first;
  }

  const ProjectionInput& in_;
  Projection out_;
  std::vector<Expected> expected_;
  std::vector<std::uint64_t> runs_of_kind_;
  std::vector<std::vector<std::uint32_t>> kinds_of_scope_, runs_of_scope_;
};

ProjectionInput only_paid(const ProjectionInput& input, const MoneyInput& money) {
  std::vector<bool> paid(input.runs.size(), false);
  for (const MoneyInput::Attempt& a : money.attempts)
    if (a.money == MoneyInput::Attempt::Money::kSettled) paid[a.run] = true;
  ProjectionInput out = input;
  out.runs.clear();
  for (std::size_t r = 0; r < input.runs.size(); ++r)
    if (paid[r]) out.runs.push_back(input.runs[r]);
  return out;
}

ComparisonRow row(std::string by, std::string name, MicroUsd expected, MicroUsd of_paid,
                  MicroUsd actual) {
  ComparisonRow out{std::move(by), std::move(name), expected, of_paid, actual, {}};
  if (MicroUsd::zero() < of_paid) {
    const auto base = static_cast<Wide>(of_paid.micros());
    const Wide ratio = (static_cast<Wide>(actual.micros()) * 1000 + base / 2) / base;
    out.ratio_thousandths = static_cast<std::int64_t>(
        std::min(ratio, static_cast<Wide>(std::numeric_limits<std::int64_t>::max())));
  }
  return out;
}
}  // namespace

Projection project(const ProjectionInput& input) {
  return Projector(input).run();
}

std::optional<Comparison> comparison(const ProjectionInput& input, const MoneyInput& money) {
  if (input.usages.empty() || money.runs.size() != input.runs.size() ||
      money.scopes.size() != input.scopes.size())
    return std::nullopt;
  Comparison out{input.inputs_registered, input.abstract, input.inputs, input.runs.size(), 0, {}};
  // Twice the same projection, of all runs and of those that were paid for.
  const Projection whole = project(input);
  const ProjectionInput paid_input = only_paid(input, money);
  const Projection paid = project(paid_input);
  out.paid = paid_input.runs.size();
  const std::vector<MoneyGroup> spent = group_money(money, MoneyBy::kCategory);
  MicroUsd actual;
  for (const MoneyGroup& g : spent) actual = actual + g.spent;
  out.rows.push_back(
      row("total", "all", *whole.envelopes[0].expected, *paid.envelopes[0].expected, actual));
  for (std::size_t c = 0; c < kCostCategories.size(); ++c)
    out.rows.push_back(row("category", kCostCategories[c], whole.by_category[c],
                           paid.by_category[c], spent[c].spent));
  const MoneyView view = build_money(money);
  for (std::size_t s = 0; s < input.scopes.size(); ++s)
    out.rows.push_back(row("envelope", input.scopes[s].name, *whole.envelopes[s].expected,
                           *paid.envelopes[s].expected, view.envelopes[s].spent));
  return out;
}

// A projection on a terminal, for programs and as the table that stays in the campaign's folder.

namespace {
std::string run_name(const ProjectionInput& in, std::uint32_t run) {
  const ProjectionInput::Kind& kind = in.kinds[in.runs[run].kind];
  return kind.task + "/" + kind.method + "/r" + std::to_string(in.runs[run].replicate);
}

std::string percent_of(MicroUsd part, MicroUsd whole) {
  if (whole <= MicroUsd::zero()) return "all";
  const std::int64_t n = scaled(part.micros(), 1000, whole.micros());
  return std::to_string(n / 10) + "." + std::to_string(n % 10) + " %";
}

const EnvelopeProjection& fullest(const Projection& p) {
  // expected / cap compared without dividing: both are below 2^53.
  return *std::ranges::max_element(p.envelopes, [](const auto& a, const auto& b) {
    __extension__ typedef __int128 Product;
    return static_cast<Product>(a.expected->micros()) * b.cap.micros() <
           static_cast<Product>(b.expected->micros()) * a.cap.micros();
  });
}

std::string binding_text(const ProjectionInput& in, const Projection& p,
                         const std::optional<Binding>& binding, bool expected) {
  std::string out =
      expected ? "If runs cost what is expected, " : "If each run costs its whole cap, ";
  if (!binding) {
    out += "no envelope binds: every run can start";
    if (!expected) return out + ".\n";
    const EnvelopeProjection& e = fullest(p);
    return out + fmt::format(". The fullest at the end is {}, with {} of its cap.\n",
                             printable(e.name), percent_of(*e.expected, e.cap));
  }
  std::uint64_t parked = 0;
  std::string where;
  for (const EnvelopeProjection& f : p.envelopes) {
    const std::uint64_t n = expected ? f.parked_expected : f.parked_at_caps;
    parked += n;
    if (0 < n) where += fmt::format("{}{}: {}", where.empty() ? " (" : ", ", printable(f.name), n);
  }
  return out + fmt::format(
                   "{} binds first: {}, number {} of the plan, is parked short by {}, with {} paid "
                   "for; {} of {} are parked at the end{}).\n",
                   printable(p.envelopes[binding->scope].name),
                   printable(run_name(in, binding->run)), binding->run,
                   format_usd(binding->short_by), counted(binding->ran_before, "run"), parked,
                   counted(in.runs.size(), "run"), where);
}

// Which envelope lets the fewest runs in at once, of those that are asked by more.
std::string concurrency_text(const ProjectionInput& in, const Projection& p) {
  const std::uint64_t admitted = p.envelopes[0].at_once;
  const bool waits = admitted < std::min<std::uint64_t>(in.slots, in.runs.size());
  return fmt::format(
      "At once: the campaign's own workers take {}, its money admits {}.{}\n",
      counted(in.slots, "run"), admitted,
      waits ? " Workers will wait for money: lower the cap of a run, or give more." : "");
}

std::string inputs_text(const ProjectionInput& in) {
  if (in.inputs.empty())
    return std::string("Expected cost: unknown, there is no ") + kCostInputsFile +
           " in the campaign's folder. What stands\nhere is the worst case. With that file "
           "(docs/file-formats.md) the expected cost stands beside it.\n";
  std::string out = "Expected use: " + std::string(kCostInputsFile) + " " + in.inputs;
  if (!in.registered) return out + ", which proctor plan --freeze will register.\n";
  return out + (in.inputs_registered
                    ? ", registered before the first run.\n"
                    : ", NOT registered: written after the registration, so no forecast.\n");
}
}  // namespace

std::string render_projection_text(const ProjectionInput& in, const Projection& p) {
  std::string out = fmt::format(
      "Campaign {}, a projection: {}, none of this is spent.\nPrices: {}; amounts in {}{}.\n",
      printable(in.campaign), counted(in.runs.size(), "run"), printable(in.prices),
      money_word(in.abstract), in.abstract ? ", abstract ones of about a dollar" : "");
  out += inputs_text(in) + "\n";
  table_of(projection_columns(), "envelope|runs|cap|expected|at caps|at most|at once", p.envelopes,
           ungrouped<EnvelopeProjection>, 1, Table::Rule::kNone)
      .append_to(out);
  if (p.has_expected) {
    out += "\nExpected by category:";
    for (std::size_t c = 0; c < kCostCategories.size(); ++c)
      out += std::string(c == 0 ? " " : ", ") + kCostCategories[c] + " " +
             format_usd(p.by_category[c]);
    out += ".\n";
  }
  out += "\n";
  if (p.has_expected) out += binding_text(in, p, p.binds_expected, true);
  out += binding_text(in, p, p.binds_at_caps, false) + concurrency_text(in, p);
  constexpr std::size_t kShown = 10;
  for (std::size_t i = 0; i < p.above_cap.size() && i < kShown; ++i) {
    const ProjectionInput::Kind& k = in.kinds[p.above_cap[i]];
    out += fmt::format(
        "Note: a run of {} under {} is expected to cost {}, reviews and losses included, but its "
        "attempt may spend {}: it would be stopped by its cap.\n",
        printable(k.task), printable(k.method), format_usd(p.per_run[p.above_cap[i]]),
        format_usd(k.ask));
  }
  return out + fmt::format(
                   "\nat caps: each run uses its whole cap, once.\nat most: what attempts can "
                   "spend there whatever fails, up to {} of each run (beside what an operator "
                   "cancels and\n         resumes); never above the cap.{}\nat once: runs whose "
                   "money can be set aside at the same time.\nAmounts are rounded up once, from "
                   "exact sums. Expected amounts rest on assumptions: the prices, and the inputs "
                   "of the projection.\n{}\n",
                   in.attempts_max, in.reviews_priced ? " Reviews may use what is left of it." : "",
                   kCapsArePolicy);
}

namespace {
std::string binding_json(const ProjectionInput& in, const Projection& p,
                         const std::optional<Binding>& b) {
  if (!b) return "null";
  return filled(R"({"envelope":$,"run":$,"order":$,"ran_before":$,"short_by":$})",
                {p.envelopes[b->scope].name, run_name(in, b->run), b->run, b->ran_before,
                 money_json(b->short_by)});
}
}  // namespace

std::string render_projection_json(const ProjectionInput& in, const Projection& p) {
  Ordered categories = p.has_expected ? Ordered::object() : Ordered();
  if (p.has_expected)
    for (std::size_t c = 0; c < kCostCategories.size(); ++c)
      categories[kCostCategories[c]] = money_json(p.by_category[c]);
  const auto above = [&](std::uint32_t k) {
    return filled(R"({"task":$,"method":$,"expected":$,"cap":$})",
                  {in.kinds[k].task, in.kinds[k].method, money_json(p.per_run[k]),
                   money_json(in.kinds[k].ask)});
  };
  return filled(
             R"({"schema_version":1,"campaign":$,"runs":$,"prices":$,"abstract_units":$,)"
             R"("inputs":$,"inputs_registered":$,"envelopes":@,"expected_by_category":$,)"
             R"("binds_first":{"expected":@,"at_caps":@},"slots":$,"attempts_max":$,"above_cap":@})",
             {in.campaign, in.runs.size(), in.prices, in.abstract, or_null(in.inputs),
              in.inputs_registered, listed_rows(projection_columns(), p.envelopes), categories,
              binding_json(in, p, p.binds_expected), binding_json(in, p, p.binds_at_caps), in.slots,
              in.attempts_max, listed(p.above_cap, above)}) +
         "\n";
}

std::string render_projection_csv(const ProjectionInput& in, const Projection& p) {
  const Columns<ProjectionRecord>& columns = projection_record_columns();
  std::string out = columns.csv_header();
  for (const EnvelopeProjection& e : p.envelopes)
    columns.append_csv(out, {.level = "envelope",
                             .name = e.name,
                             .envelope = &e,
                             .runs = e.runs,
                             .expected = e.expected});
  if (!p.has_expected) return out;
  for (std::size_t c = 0; c < kCostCategories.size(); ++c)
    columns.append_csv(out, {.level = "category",
                             .name = kCostCategories[c],
                             .category = kCostCategories[c],
                             .runs = in.runs.size(),
                             .expected = p.by_category[c]});
  for (const ProjectionLine& l : p.lines) {
    const ProjectionInput::Kind& k = in.kinds[l.kind];
    columns.append_csv(out, {.level = "action",
                             .name = k.task + "/" + k.method,
                             .kind = &k,
                             .line = &l,
                             .category = kCostCategories[static_cast<std::size_t>(l.category)],
                             .runs = l.runs,
                             .per_run = decimal(l.micro_units, 6),
                             .expected = l.expected});
  }
  return out;
}
}  // namespace proctor
