#include "common/contract/budget_parser.h"

#include "common/base/parse.h"
#include "common/contract/rules.h"

namespace proctor {
namespace {

using Amounts = std::map<std::string, MicroUsd>;

// A mapping from names to amounts; each key's place is kept for the rules.
void read_amounts(const Node& node, const std::string& where, std::string_view expected,
                  Problems& problems, Origin& origin, Amounts& out) {
  if (node.kind != Node::Kind::kMapping) return problems.wrong(node, where, std::string(expected));
  for (const Entry& e : node.entries) {
    const std::string field = where + "." + e.key;
    origin.at.emplace(field, e.at);
    if (const auto usd = read_usd(e.value, field, problems)) out.emplace(e.key, *usd);
  }
}

void read_strata_amounts(const Fields& f, Campaign& out) {
  const Node* strata = f.find("strata");
  if (strata == nullptr) return;
  if (strata->kind != Node::Kind::kMapping)
    return f.problems().wrong(*strata, "budget.strata",
                              "a mapping of strata to levels and amounts");
  for (const Entry& e : strata->entries) {
    const std::string where = "budget.strata." + e.key;
    out.origin.at.emplace(where, e.at);
    read_amounts(e.value, where, "a mapping of its levels to amounts", f.problems(), out.origin,
                 out.envelopes.strata[e.key]);
  }
}

void read_alerts(const Fields& f, Campaign& out) {
  if (f.find("alerts") == nullptr) return;
  constexpr std::string_view kExpected = "a whole percentage from 1 to 100, above the one before";
  std::vector<std::uint32_t> levels;
  f.each("alerts", [&](const Node& item, const std::string& path) {
    const bool scalar = item.kind == Node::Kind::kScalar;
    const std::uint32_t percent = scalar ? whole_number<std::uint32_t>(item.text).value_or(0) : 0;
    const std::uint32_t before = levels.empty() ? 0 : levels.back();
    if (percent <= before || 100 < percent)
      return f.problems().wrong(item, path, std::string(kExpected));
    levels.push_back(percent);
  });
  out.watch.alerts = std::move(levels);
}

void read_dominance(const Fields& budget, Campaign& out) {
  const Node* node = budget.find("dominance");
  if (node == nullptr) return;
  using Action = BudgetWatch::Dominance::Action;
  constexpr std::array<Word<Action>, 3> kActions{
      {{"off", Action::kOff}, {"note", Action::kNote}, {"stop", Action::kStop}}};
  constexpr std::uint64_t kPercentMax = 100, kMilestonesMax = 1000;
  const Fields f(*node, "budget.dominance", kDominanceKeys, budget.problems());
  BudgetWatch::Dominance& rule = out.watch.dominance;
  rule.action = f.choice("action", rule.action, kActions);
  rule.percent = static_cast<std::uint32_t>(f.count("percent", rule.percent, 1, kPercentMax));
  rule.milestones =
      static_cast<std::uint32_t>(f.count("milestones", rule.milestones, 1, kMilestonesMax));
}

void read_shared(const Fields& budget, Campaign& out) {
  const Node* node = budget.find("shared");
  if (node == nullptr) return;
  const std::size_t before = budget.problems().count();
  const Fields f(*node, "budget.shared", kSharedKeys, budget.problems());
  SharedEnvelope shared;
  shared.name = f.text("name", Need::kRequired, kIdRule);
  shared.cap = f.usd("cap", Need::kRequired).value_or(MicroUsd::zero());
  out.origin.at.emplace("budget.shared.cap", f.at("cap"));
  if (budget.problems().count() == before) out.envelopes.shared = std::move(shared);
}

}  // namespace

void read_budget(const Fields& campaign, Campaign& out) {
  out.envelopes.global = kLedgerMax;  // an absent one is one error, not one per envelope
  const Node* node = campaign.find("budget");
  if (node == nullptr) return campaign.missing("budget", "a mapping with at least global");
  const Fields f(*node, "budget", kBudgetKeys, campaign.problems());
  Envelopes& e = out.envelopes;
  e.global = f.usd("global", Need::kRequired).value_or(e.global);
  e.task = f.usd("task", Need::kOptional);
  e.run = f.usd("run", Need::kOptional).value_or(e.run);
  using Kind = Campaign::LedgerKind;
  constexpr std::array<Word<Kind>, 2> kLedgers{
      {{"redis", Kind::kRedis}, {"journal", Kind::kJournal}}};
  out.ledger = f.choice("ledger", out.ledger, kLedgers);
  if (const Node* tasks = f.find("tasks"))
    read_amounts(*tasks, "budget.tasks", "a mapping of contract ids to amounts", f.problems(),
                 out.origin, e.tasks);
  if (const Node* methods = f.find("methods"))
    read_amounts(*methods, "budget.methods", "a mapping of methods to amounts", f.problems(),
                 out.origin, e.methods);
  read_strata_amounts(f, out);
  read_shared(f, out);
  read_alerts(f, out);
  read_dominance(f, out);
}

}  // namespace proctor
