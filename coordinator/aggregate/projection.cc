#include "coordinator/aggregate/projection.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>

namespace proctor {
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
        add_line(k, a, format_pico_usd(a.pico_usd), amount);
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

// The observed money of every envelope and category, and the part of the projection that the same
// runs stand for.
class Comparer {
 public:
  Comparer(const ProjectionInput& input, const MoneyInput& money) : in_(input), money_(money) {}

  Comparison run() {
    Comparison out{in_.inputs_registered, in_.abstract, in_.inputs, in_.runs.size(), 0, {}};
    // Twice the same projection, of all runs and of those that were paid for.
    const Projection whole = project(in_);
    const ProjectionInput paid_input = only_paid();
    const Projection paid = project(paid_input);
    out.paid = paid_input.runs.size();
    const std::vector<MoneyGroup> spent = group_money(money_, MoneyBy::kCategory);
    MicroUsd actual;
    for (const MoneyGroup& g : spent) actual = actual + g.spent;
    const MicroUsd all = *whole.envelopes[0].expected, part = *paid.envelopes[0].expected;
    out.rows.push_back(row("total", "all", all, part, actual));
    for (std::size_t c = 0; c < kCostCategories.size(); ++c)
      out.rows.push_back(row("category", kCostCategories[c], whole.by_category[c],
                             paid.by_category[c], spent[c].spent));
    const MoneyView view = build_money(money_);
    for (std::size_t s = 0; s < in_.scopes.size(); ++s)
      out.rows.push_back(row("envelope", in_.scopes[s].name, *whole.envelopes[s].expected,
                             *paid.envelopes[s].expected, view.envelopes[s].spent));
    return out;
  }

 private:
  ProjectionInput only_paid() const {
    std::vector<bool> paid(in_.runs.size(), false);
    for (const MoneyInput::Attempt& a : money_.attempts)
      if (a.money == MoneyInput::Attempt::Money::kSettled) paid[a.run] = true;
    ProjectionInput out = in_;
    out.runs.clear();
    for (std::size_t r = 0; r < in_.runs.size(); ++r)
      if (paid[r]) out.runs.push_back(in_.runs[r]);
    return out;
  }

  static ComparisonRow row(std::string by, std::string name, MicroUsd expected, MicroUsd of_paid,
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

  const ProjectionInput& in_;
  const MoneyInput& money_;
};

}  // namespace

std::string format_pico_usd(std::uint64_t pico) {
  constexpr std::uint64_t kPicoPerUsd = 1'000'000'000'000;
  constexpr std::size_t kDigits = 12;
  std::string fraction = std::to_string(pico % kPicoPerUsd);
  fraction.insert(0, kDigits - fraction.size(), '0');
  while (!fraction.empty() && fraction.back() == '0') fraction.pop_back();
  return std::to_string(pico / kPicoPerUsd) + (fraction.empty() ? "" : "." + fraction);
}

Projection project(const ProjectionInput& input) {
  return Projector(input).run();
}

std::optional<Comparison> comparison(const ProjectionInput& input, const MoneyInput& money) {
  if (input.usages.empty() || money.runs.size() != input.runs.size() ||
      money.scopes.size() != input.scopes.size())
    return std::nullopt;
  return Comparer(input, money).run();
}

}  // namespace proctor
