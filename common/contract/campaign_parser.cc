#include "common/contract/campaign_parser.h"

#include <algorithm>
#include <set>
#include <string>

#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/contract/contract_digest.h"
#include "common/contract/contract_sections.h"
#include "common/contract/fields.h"
#include "common/contract/method_parser.h"
#include "common/contract/rules.h"
#include "common/contract/stages.h"

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

// Whole numbers, each above the one before.
void read_ascending(const Fields& f, std::string_view key, std::uint64_t most,
                    const std::string& expected, std::vector<std::uint32_t>& out) {
  if (f.find(key) != nullptr) out.clear();
  f.each(key, [&](const Node& item, const std::string& path) {
    const auto n = parse_count(item.text);
    const std::uint64_t before = out.empty() ? 0 : out.back();
    if (item.kind != Node::Kind::kScalar || !n.ok() || *n <= before || most < *n)
      return f.problems().wrong(item, path, expected);
    out.push_back(static_cast<std::uint32_t>(*n));
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

// The section `analysis` of campaign.yaml.
void read_analysis(const Fields& campaign, Campaign& out) {
  const Node* node = campaign.find("analysis");
  if (node == nullptr) return;
  const Fields f(*node, "analysis", kAnalysisKeys, campaign.problems());
  const MethodNames names(out);
  AnalysisPlan plan;
  if (const Node* baseline = f.find("baseline"))
    plan.baseline = names.read(*baseline, f.path("baseline"), f.problems());
  read_contrasts(f, names, plan);
  if (f.find("baseline") != nullptr && f.find("contrasts") != nullptr)
    f.problems().wrong(*f.find("baseline"), f.path("baseline"),
                       "nothing: contrasts name what is compared");
  f("estimand", plan.estimand);
  f("interval", plan.interval);
  plan.alpha = read_share(f, "alpha", plan.alpha, kOne / 2);
  plan.min_effect = read_share(f, "min_effect", plan.min_effect);
  plan.non_inferiority = read_share(f, "non_inferiority", plan.non_inferiority);
  read_ascending(f, "pass_k", kPassKMax, "a whole number above the one before", plan.pass_k);
  f("multiplicity", plan.multiplicity);
  plan.draws = read_draws(f, plan.draws);
  read_weights(f, out, plan);
  f("unit", plan.unit);
  out.analysis = std::move(plan);
}

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

void read_shared(const Fields& budget, Campaign& out) {
  const Node* node = budget.find("shared");
  if (node == nullptr) return;
  const std::size_t before = budget.problems().count();
  SharedEnvelope shared;
  budget("shared", shared);
  const Node* cap = node->find("cap");
  out.origin.at.emplace("budget.shared.cap", cap == nullptr ? node->at : cap->at);
  if (budget.problems().count() == before) out.envelopes.shared = std::move(shared);
}
}  // namespace

// The mapping `budget` of campaign.yaml: envelopes, alert levels and the dominance rule.  Reports
// what is wrong with each value; what binds them to the rest is checked later (campaign_rules.cc).
void read_budget(const Fields& campaign, Campaign& out) {
  out.envelopes.global = kLedgerMax;  // an absent one is one error, not one per envelope
  const Node* node = campaign.find("budget");
  if (node == nullptr) return campaign.missing("budget", "a mapping with at least global");
  const Fields f(*node, "budget", kBudgetKeys, campaign.problems());
  Envelopes& e = out.envelopes;
  f("global", e.global, Need::kMust);
  f("task", e.task);
  f("run", e.run);
  f("ledger", out.ledger);
  if (const Node* tasks = f.find("tasks"))
    read_amounts(*tasks, "budget.tasks", "a mapping of contract ids to amounts", f.problems(),
                 out.origin, e.tasks);
  if (const Node* methods = f.find("methods"))
    read_amounts(*methods, "budget.methods", "a mapping of methods to amounts", f.problems(),
                 out.origin, e.methods);
  read_strata_amounts(f, out);
  read_shared(f, out);
  read_ascending(f, "alerts", 100, "a whole percentage from 1 to 100, above the one before",
                 out.watch.alerts);
  f("dominance", out.watch.dominance);
}

inline constexpr std::uint64_t kReplicatesMax = 1'000'000;  // of a campaign, and of a stage

namespace {
constexpr std::uint64_t kPeopleMax = 100;
constexpr std::size_t kCriteriaMax = 20;
constexpr std::int64_t kWhole = 1'000'000;

bool is_share(StagePredicate predicate) {
  return predicate == StagePredicate::kInvalidShare ||
         predicate == StagePredicate::kInfrastructureShare;
}

bool takes_parameter(StagePredicate predicate) {
  return predicate == StagePredicate::kClosed || is_share(predicate);
}

class Reader {
 public:
  Reader(const Fields& stage, const std::set<std::string>& earlier)
      : stage_(stage), earlier_(earlier) {}

  std::vector<StageCriterion> criteria(std::string_view key) {
    std::vector<StageCriterion> out;
    stage_.each(key, [&](const Node& item, const std::string& path) {
      const std::optional<StageCriterion> read = one(item, path, key == "entry");
      if (!read) return;
      const bool twice = std::ranges::any_of(
          out, [&](const StageCriterion& c) { return c.is == read->is && c.stage == read->stage; });
      if (twice) return stage_.problems().wrong(item, path, "each criterion once");
      out.push_back(*read);
    });
    if (kCriteriaMax < out.size())
      stage_.problems().add(stage_.at(key), stage_.path(key),
                            std::to_string(out.size()) + " criteria",
                            "at most " + std::to_string(kCriteriaMax));
    return out;
  }

  // A word, {people: N} or none.
  std::optional<std::uint32_t> people() {
    const Node* node = stage_.find("approval");
    if (node == nullptr) return std::nullopt;
    const std::string path = stage_.path("approval");
    if (node->kind == Node::Kind::kScalar && node->text == "none") return 0;
    if (node->kind != Node::Kind::kMapping) {
      stage_.problems().wrong(*node, path, "none, or how many: {people: 1}");
      return std::nullopt;
    }
    const Fields f(*node, path, kApprovalKeys, stage_.problems());
    std::uint32_t people = 1;
    f("people", people, 1, kPeopleMax);
    return people;
  }

 private:
  std::optional<StageCriterion> one(const Node& item, const std::string& path, bool entry) {
    Problems& problems = stage_.problems();
    if (entry && earlier_.empty()) {
      problems.wrong(item, path, "no criterion: no stage is before the first one");
      return std::nullopt;
    }
    const bool named = item.kind == Node::Kind::kMapping && item.entries.size() == 1;
    const std::string name = named ? item.entries.front().key : item.text;
    const auto known = from_word<StagePredicate>(name);
    if ((!named && item.kind != Node::Kind::kScalar) || !known) {
      problems.wrong(named ? item.entries.front().value : item, named ? path + "." + name : path,
                     "a criterion: " + words_listed<StagePredicate>());
      return std::nullopt;
    }
    StageCriterion out{.is = *known};
    if (out.is == StagePredicate::kClosed && !entry) {
      problems.wrong(item, path, "another criterion: a stage is closed by its exit");
      return std::nullopt;
    }
    if (named != takes_parameter(out.is)) {
      problems.wrong(item, path,
                     takes_parameter(out.is) ? name + " with its parameter, as in {" + name +
                                                   (is_share(out.is) ? ": \"0.05\"}" : ": STAGE}")
                                             : name + " without a parameter");
      return std::nullopt;
    }
    if (!named) return out;
    return parameter(out, item.entries.front().value, path + "." + name);
  }

  std::optional<StageCriterion> parameter(StageCriterion out, const Node& value,
                                          const std::string& path) {
    Problems& problems = stage_.problems();
    if (out.is == StagePredicate::kClosed) {
      out.stage = read_text(value, path, kIdRule, problems);
      if (out.stage.empty()) return std::nullopt;
      if (!earlier_.contains(out.stage)) {
        problems.wrong(value, path, "the name of a stage before this one");
        return std::nullopt;
      }
      return out;
    }
    const Result<MicroUsd> share = value.kind == Node::Kind::kScalar
                                       ? parse_usd(value.text)
                                       : Result<MicroUsd>(Error{Errc::kInvalid, "no number"});
    if (!share.ok() || kWhole < share->micros()) {
      problems.wrong(value, path, "a share from 0 to 1 with at most six digits, as in \"0.05\"");
      return std::nullopt;
    }
    out.millionths = static_cast<std::uint32_t>(share->micros());
    return out;
  }

  const Fields& stage_;
  const std::set<std::string>& earlier_;
};
}  // namespace

// The members of a stage in campaign.yaml beside its name and its money.
StageRules read_stage_rules(const Fields& stage, const std::set<std::string>& earlier) {
  Reader read(stage, earlier);
  StageRules out;
  out.entry = read.criteria("entry");
  out.exit = read.criteria("exit");
  out.people = read.people();
  return out;
}

// `tasks`, `replicates` and `order`.
StageDraw read_stage_draw(const Fields& stage) {
  StageDraw out;
  stage("order", out.order);
  stage("replicates", out.replicates, 1, kReplicatesMax);
  const Node* tasks = stage.find("tasks");
  if (tasks == nullptr) return out;
  const std::string path = stage.path("tasks");
  if (tasks->kind == Node::Kind::kMapping) {
    const Fields f(*tasks, path, kStageTasksKeys, stage.problems());
    if (f.find("per_stratum") == nullptr) f.missing("per_stratum", "how many of each stratum");
    f("per_stratum", out.per_stratum.emplace(1), 1, limits::kPlanRows);
    return out;
  }
  if (tasks->kind != Node::Kind::kSequence || tasks->items.empty()) {
    stage.problems().wrong(*tasks, path, "{per_stratum: N}, or a list of tasks");
    return out;
  }
  stage("tasks", out.tasks, kIdRule);
  std::ranges::sort(out.tasks);
  return out;
}

// campaign.yaml to a Campaign without contracts.

namespace {
constexpr TextRule kPatternRule{kPathBytes, "a relative path such as contracts/*.yaml", is_glob};

bool is_redis_address(std::string_view text) {
  constexpr std::string_view kUnix = "unix:";
  constexpr std::string_view kTcp = "tcp://", kTls = "tls://";
  if (text.starts_with(kUnix)) return is_absolute(text.substr(kUnix.size()));
  if (!text.starts_with(kTcp) && !text.starts_with(kTls)) return false;
  text.remove_prefix(kTcp.size());
  if (const std::size_t slash = text.find('/'); slash != std::string_view::npos) {
    if (!all_digits(text.substr(slash + 1))) return false;
    text = text.substr(0, slash);
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  return is_one_line(text) && text.find_first_of(" @") == std::string_view::npos &&
         all_digits(text.substr(colon + 1));
}
constexpr TextRule kRedisRule{
    kPathBytes, "unix:/path, tcp://host:port[/database] or tls://host:port[/database]",
    is_redis_address};

void read_methods(const Fields& f, const FileSource& files, Campaign& out) {
  std::set<std::string> names;
  f.each("methods", [&](const Node& item, const std::string& path) {
    Method method = read_method(item, path, files, f.problems());
    if (!method.name.empty() && !names.insert(method.name).second) {
      const Node* name = item.find("name");
      f.problems().wrong(name == nullptr ? item : *name, path + ".name", "each method's name once");
    }
    out.methods.push_back(std::move(method));
  });
  if (f.find("methods") == nullptr) {
    f.missing("methods", "a list of at least one method");
  } else if (out.methods.empty() && f.find("methods")->kind == Node::Kind::kSequence) {
    f.problems().add(f.at("methods"), "methods", "no method", "a list of at least one method");
  }
}

void read_seed(const Fields& f, Campaign& out) {
  constexpr std::uint64_t kMost = 0xFFFFFFFF;  // what numpy.random.RandomState takes
  f("seed", out.seed, 0, kMost);
  f("seed_deviation", out.seed_deviation, kTitleRule);
  if (out.seed != kPlannedSeed && f.find("seed_deviation") == nullptr)
    f.problems().add(f.at("seed"), "seed", std::to_string(out.seed),
                     "20260307, or a seed_deviation that says why (R072)");
  if (out.seed == kPlannedSeed && f.find("seed_deviation") != nullptr)
    f.problems().add(f.at("seed_deviation"), "seed_deviation", "a reason",
                     "nothing: the seed is the planned one");
}

void remember_caps(const Node& caps, const std::string& where, Campaign& out) {
  for (const Entry& e : caps.entries) out.origin.at.emplace(where + "." + e.key, e.value.at);
}

void read_task_caps(const Fields& f, Campaign& out) {
  const Node* tasks = f.find("task_caps");
  if (tasks == nullptr) return;
  if (tasks->kind != Node::Kind::kMapping)
    f.problems().wrong(*tasks, "task_caps", "a mapping of contract ids to caps");
  for (const Entry& t : tasks->entries) {
    const std::string where = "task_caps." + t.key;
    read_fields(t.value, where, f.problems(), out.task_caps[t.key]);
    remember_caps(t.value, where, out);
  }
}

void read_stages(const Fields& f, Campaign& out) {
  std::set<std::string> names;
  f.each("stages", [&](const Node& item, const std::string& path) {
    const Fields s(item, path, kStageKeys, f.problems());
    Stage stage;
    s("name", stage.name, kIdRule, Need::kMust);
    s("usd", stage.usd);
    s("caps", stage.caps);
    if (const Node* caps = s.find("caps"))
      remember_caps(*caps, "stages." + stage.name + ".caps", out);
    stage.rules = read_stage_rules(s, names);
    stage.draw = read_stage_draw(s);
    for (const std::string_view key : {"tasks", "replicates"})
      if (s.find(key) != nullptr)
        out.origin.at.emplace("stages." + stage.name + "." + std::string(key), s.at(key));
    if (!stage.name.empty() && !names.insert(stage.name).second)
      f.problems().wrong(*s.find("name"), s.path("name"), "each stage's name once");
    if (stage.usd) {
      out.envelopes.stage.emplace(stage.name, *stage.usd);
      out.origin.at.emplace("stages." + stage.name, s.at("usd"));
    }
    out.stages.push_back(std::move(stage));
  });
  constexpr std::size_t kStagesMax = 100;  // as of a plan (plan/plan.cc)
  if (kStagesMax < out.stages.size())
    f.problems().add(f.at("stages"), "stages", std::to_string(out.stages.size()) + " stages",
                     "1 to " + std::to_string(kStagesMax));
  if (out.stages.empty()) out.stages.push_back(Stage{"main", std::nullopt});
}

void read_strata(const Fields& f, Campaign& out) {
  out.strata = {"language", "runtime", "dependencies", "type"};
  f("strata", out.strata, kWordRule);
}
}  // namespace

CampaignText parse_campaign(const Document& document, const FileSource& files, Diagnostics& out) {
  Problems problems(document.file, out);
  CampaignText text;
  Campaign& c = text.campaign;
  remember_marks(document, c.origin);
  const Fields f(document.root, "", kCampaignKeys, problems);
  if (document.root.kind != Node::Kind::kMapping) return text;
  std::string schema;
  f("$schema", schema, kAnyText);
  f("name", c.name, kIdRule, Need::kMust);
  f.each("contracts", [&](const Node& item, const std::string& path) {
    const std::string pattern = read_text(item, path, kPatternRule, problems);
    if (!pattern.empty()) text.contracts.push_back({pattern, item.at});
  });
  if (f.find("contracts") == nullptr) text.contracts.push_back({"contracts/*.yaml", {}});
  read_methods(f, files, c);
  spread_breakers(f, c);
  f("replicates", c.replicates, 1, kReplicatesMax);
  read_seed(f, c);
  read_stages(f, c);
  read_budget(f, c);
  f("caps", c.caps);
  constexpr std::chrono::milliseconds kWall{1'800'000};  // R106
  if (!c.caps.wall) c.caps.wall = kWall;
  read_task_caps(f, c);
  f("rates", c.rates);
  if (const Node* n = f.find("rates"))
    if (const Node* providers = n->find("providers"))
      remember_caps(*providers, "rates.providers", c);
  if (const Node* n = f.find("policy")) {
    const Fields policy(*n, "policy", kCampaignPolicyKeys, problems);
    policy("isolation", c.isolation);
  }
  read_strata(f, c);
  f("workers", c.workers, 1, limits::kLocalWorkersMax);
  f("slots", c.slots, 1, limits::kWorkerSlotsMax);
  f("redis", c.redis, kRedisRule);
  if (c.ledger == Campaign::LedgerKind::kJournal && f.find("redis") != nullptr)
    problems.add(f.at("redis"), "redis", "an address",
                 "nothing: budget.ledger is journal, which asks no Redis");
  // A Redis that the coordinator starts for itself is nobody else's.
  if (c.envelopes.shared && c.redis.empty())
    problems.add(f.at("budget"), "budget.shared",
                 "an envelope shared with other campaigns and no Redis that they share",
                 "the address of theirs beside it, as in redis: \"tcp://host:6379\"");
  f("infrastructure_retries", c.infrastructure_retries, 0, 1000);
  f("retries", c.retries);
  read_analysis(f, c);
  return text;
}
}  // namespace proctor
