#include "common/contract/analysis_parser.h"

#include <algorithm>
#include <set>

#include "common/contract/rules.h"
#include "common/contract/scalar.h"

namespace proctor {
namespace {

constexpr std::uint64_t kOne = 1'000'000;
constexpr std::size_t kContrastsMax = 64;
constexpr std::uint64_t kPassKMax = 1'000'000;

// A decimal above 0 and below `below` millionths.
Millionths read_share(const Fields& f, std::string_view key, Millionths otherwise,
                      std::uint64_t below = kOne) {
  const Node* node = f.find(key);
  if (node == nullptr) return otherwise;
  const auto value = parse_decimal(node->text, kMillionthDigits, kOne);
  if (node->kind == Node::Kind::kScalar && value.ok() && 0 < *value && *value < below)
    return {static_cast<std::uint32_t>(*value)};
  f.problems().wrong(*node, f.path(key),
                     std::string("a decimal above 0 and below ") + (below == kOne ? "1" : "0.5") +
                         ", such as \"0.05\"");
  return otherwise;
}

class MethodNames {
 public:
  explicit MethodNames(const Campaign& campaign) {
    for (const Method& m : campaign.methods) names_.push_back(m.name);
    // Of one with a mistake in it the name may be the mistake.
    all_known_ = !names_.empty() && std::ranges::none_of(campaign.methods, [](const Method& m) {
      return m.digest == Digest{};
    });
  }
  // One of the campaign's; reports and returns "" otherwise.
  std::string read(const Node& node, const std::string& path, Problems& problems) const {
    const std::string name = read_text(node, path, kIdRule, problems);
    if (name.empty() || std::ranges::find(names_, name) != names_.end()) return name;
    if (!all_known_) return "";  // it may be one of those that were complained of
    std::vector<std::string_view> all(names_.begin(), names_.end());
    problems.wrong(node, path, "a method of this campaign: " + one_of(all));
    return "";
  }

 private:
  std::vector<std::string> names_;
  bool all_known_ = false;
};

void read_contrasts(const Fields& f, const MethodNames& names, AnalysisPlan& plan) {
  std::set<std::pair<std::string, std::string>> seen;
  f.each("contrasts", [&](const Node& item, const std::string& path) {
    if (item.kind != Node::Kind::kSequence || item.items.size() != 2)
      return f.problems().wrong(item, path, "two methods, such as [agent-b, agent-a]: b less a");
    const std::string a = names.read(item.items[0], path + "[0]", f.problems());
    const std::string b = names.read(item.items[1], path + "[1]", f.problems());
    if (a.empty() || b.empty()) return;
    if (a == b) return f.problems().wrong(item, path, "two different methods");
    if (!seen.insert(std::minmax(a, b)).second)
      return f.problems().wrong(item, path, "each pair of methods once");
    plan.contrasts.emplace_back(a, b);
  });
  if (kContrastsMax < plan.contrasts.size())
    f.problems().add(f.at("contrasts"), f.path("contrasts"), std::to_string(plan.contrasts.size()),
                     "at most " + std::to_string(kContrastsMax) + " pairs");
}

void read_pass_k(const Fields& f, AnalysisPlan& plan) {
  if (f.find("pass_k") == nullptr) return;
  plan.pass_k.clear();
  f.each("pass_k", [&](const Node& item, const std::string& path) {
    const auto k = parse_count(item.text);
    const std::uint64_t before = plan.pass_k.empty() ? 0 : plan.pass_k.back();
    if (item.kind != Node::Kind::kScalar || !k.ok() || *k <= before || kPassKMax < *k)
      return f.problems().wrong(item, path, "a whole number above the one before");
    plan.pass_k.push_back(static_cast<std::uint32_t>(*k));
  });
}

std::uint32_t read_draws(const Fields& f, std::uint32_t otherwise) {
  const Node* node = f.find("bootstrap");
  if (node == nullptr) return otherwise;
  const Fields bootstrap(*node, f.path("bootstrap"), kBootstrapKeys, f.problems());
  const Node* draws = bootstrap.find("draws");
  if (draws == nullptr) return otherwise;
  const auto count = parse_count(draws->text);
  if (draws->kind == Node::Kind::kScalar && count.ok() && kLeastPlanDraws <= *count &&
      *count <= kMostPlanDraws)
    return static_cast<std::uint32_t>(*count);
  f.problems().wrong(*draws, bootstrap.path("draws"), "a whole number from 1000 to 20000");
  return otherwise;
}

// One key of strata that the campaign reports by, and the share of each of its levels.
void read_weights(const Fields& f, Campaign& campaign, AnalysisPlan& plan) {
  const Node* node = f.find("weights");
  if (node == nullptr) return;
  if (node->kind != Node::Kind::kMapping || node->entries.size() != 1 ||
      node->entries.front().value.kind != Node::Kind::kMapping)
    return f.problems().wrong(*node, f.path("weights"),
                              "one key of strata with the share of each of its levels, such as "
                              "{language: {go: \"0.6\", rust: \"0.4\"}}");
  const Entry& key = node->entries.front();
  if (std::ranges::find(campaign.strata, key.key) == campaign.strata.end()) {
    std::vector<std::string_view> all(campaign.strata.begin(), campaign.strata.end());
    return f.problems().add(key.at, f.path("weights"), key.key,
                            "a key of strata of this campaign: " + one_of(all));
  }
  std::uint64_t sum = 0;
  for (const Entry& level : key.value.entries) {
    const std::string where = f.path("weights") + "." + key.key + "." + level.key;
    campaign.origin.at.emplace(where, level.at);
    const auto share = parse_decimal(level.value.text, kMillionthDigits, kOne);
    if (level.value.kind != Node::Kind::kScalar || !share.ok() || *share == 0)
      return f.problems().wrong(level.value, where,
                                "a decimal above 0 and at most 1, such as \"0.5\"");
    plan.weights[level.key] = {static_cast<std::uint32_t>(*share)};
    sum += *share;
  }
  plan.weights_key = key.key;
  if (sum != kOne)
    f.problems().wrong(
        key.value, f.path("weights") + "." + key.key,
        "shares that are together exactly 1, not " + format_decimal(sum, kMillionthDigits));
}

}  // namespace

void read_analysis(const Fields& campaign, Campaign& out) {
  const Node* node = campaign.find("analysis");
  if (node == nullptr) return;
  const Fields f(*node, "analysis", kAnalysisKeys, campaign.problems());
  constexpr std::array<Word<AnalysisPlan::Estimand>, 2> kEstimands{
      {{"task_mean", AnalysisPlan::Estimand::kTaskMean},
       {"run_mean", AnalysisPlan::Estimand::kRunMean}}};
  constexpr std::array<Word<AnalysisPlan::RateInterval>, 3> kIntervals{
      {{"korn_graubard", AnalysisPlan::RateInterval::kKornGraubard},
       {"t", AnalysisPlan::RateInterval::kT},
       {"wilson", AnalysisPlan::RateInterval::kWilson}}};
  constexpr std::array<Word<AnalysisPlan::Multiplicity>, 2> kAdjustments{
      {{"holm", AnalysisPlan::Multiplicity::kHolm}, {"max_t", AnalysisPlan::Multiplicity::kMaxT}}};
  constexpr std::array<Word<AnalysisPlan::Unit>, 2> kUnits{
      {{"repository", AnalysisPlan::Unit::kRepository}, {"task", AnalysisPlan::Unit::kTask}}};
  const MethodNames names(out);
  AnalysisPlan plan;
  if (const Node* baseline = f.find("baseline"))
    plan.baseline = names.read(*baseline, f.path("baseline"), f.problems());
  read_contrasts(f, names, plan);
  if (f.find("baseline") != nullptr && f.find("contrasts") != nullptr)
    f.problems().wrong(*f.find("baseline"), f.path("baseline"),
                       "nothing: contrasts name what is compared");
  plan.estimand = f.choice("estimand", plan.estimand, kEstimands);
  plan.interval = f.choice("interval", plan.interval, kIntervals);
  plan.alpha = read_share(f, "alpha", plan.alpha, kOne / 2);
  plan.min_effect = read_share(f, "min_effect", plan.min_effect);
  plan.non_inferiority = read_share(f, "non_inferiority", plan.non_inferiority);
  read_pass_k(f, plan);
  plan.multiplicity = f.choice("multiplicity", plan.multiplicity, kAdjustments);
  plan.draws = read_draws(f, plan.draws);
  read_weights(f, out, plan);
  if (f.find("unit") != nullptr) plan.unit = f.choice("unit", AnalysisPlan::Unit::kTask, kUnits);
  out.analysis = std::move(plan);
}

}  // namespace proctor
