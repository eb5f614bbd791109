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
constexpr std::uint32_t kOne = 1'000'000;
constexpr std::size_t kContrastsMax = 64;
constexpr std::uint64_t kPassKMax = 1'000'000;

}  // namespace

// A decimal above 0 and below `below` millionths.
void read_member(const Fields& f, std::string_view key, Millionths& out, std::uint64_t below) {
  const Node* node = f.find(key);
  if (node == nullptr) return;
  const auto value = parse_decimal(node->text, kMillionthDigits, kOne);
  if (node->kind == Node::Kind::kScalar && value.ok() && 0 < *value && *value < below)
    out.value = static_cast<std::uint32_t>(*value);
  else
    f.wrong(key, std::string("a decimal above 0 and below ") + (below == kOne ? "1" : "0.5") +
                     ", such as \"0.05\"");
}

// Whole numbers, each above the one before.
void read_member(const Fields& f, std::string_view key, std::vector<std::uint32_t>& out,
                 std::uint64_t most, const char* expected) {
  if (f.find(key) != nullptr) out.clear();
  f.each(key, [&](const Node& item, const std::string& path) {
    const auto n = parse_count(item.text);
    const std::uint64_t before = out.empty() ? 0 : out.back();
    if (item.kind != Node::Kind::kScalar || !n.ok() || *n <= before || most < *n)
      return f.problems().wrong(item, path, expected);
    out.push_back(static_cast<std::uint32_t>(*n));
  });
}

void read_member(const Fields& f, std::string_view key, std::map<std::string, MicroUsd>& out,
                 const char* expected) {
  f.named(key, expected, [&](const Entry& e, const std::string& where) {
    if (const auto usd = read_usd(e.value, where, f.problems())) out.emplace(e.key, *usd);
  });
}

namespace {
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

struct PlanText {
  AnalysisPlan plan;
  const Campaign* campaign = nullptr;
};

void read_contrasts(const Fields& f, PlanText& out) {
  const MethodNames names(*out.campaign);
  const Node* baseline = f.find("baseline");
  if (baseline != nullptr)
    out.plan.baseline = names.read(*baseline, f.path("baseline"), f.problems());
  auto& contrasts = out.plan.contrasts;
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
    contrasts.emplace_back(a, b);
  });
  if (kContrastsMax < contrasts.size())
    f.complain("contrasts", std::to_string(contrasts.size()),
               "at most " + std::to_string(kContrastsMax) + " pairs");
  if (baseline != nullptr && f.find("contrasts") != nullptr)
    f.wrong("baseline", "nothing: contrasts name what is compared");
}

struct DrawsText {
  std::uint32_t draws = kDefaultDraws;
};
void read_draws(const Fields& f, DrawsText& out) {
  const Node* draws = f.find("draws");
  if (draws == nullptr) return;
  const auto count = parse_count(draws->text);
  if (draws->kind == Node::Kind::kScalar && count.ok() && kLeastPlanDraws <= *count &&
      *count <= kMostPlanDraws)
    out.draws = static_cast<std::uint32_t>(*count);
  else
    f.wrong("draws", "a whole number from 1000 to 20000");
}
void fields(auto& v, Is<DrawsText> auto& d) {
  v.also({"draws"});
  v.then(d, read_draws);
}

// One key of strata that the campaign reports by, and the share of each of its levels.
void read_weights(const Fields& f, PlanText& out) {
  const Node* node = f.find("weights");
  if (node == nullptr) return;
  if (node->kind != Node::Kind::kMapping || node->entries.size() != 1 ||
      node->entries.front().value.kind != Node::Kind::kMapping)
    return f.problems().wrong(*node, f.path("weights"),
                              "one key of strata with the share of each of its levels, such as "
                              "{language: {go: \"0.6\", rust: \"0.4\"}}");
  const Entry& key = node->entries.front();
  const std::vector<std::string>& strata = out.campaign->strata;
  if (std::ranges::find(strata, key.key) == strata.end()) {
    std::vector<std::string_view> all(strata.begin(), strata.end());
    return f.problems().add(key.at, f.path("weights"), key.key,
                            "a key of strata of this campaign: " + one_of(all));
  }
  std::uint64_t sum = 0;
  for (const Entry& level : key.value.entries) {
    const std::string where = f.path("weights") + "." + key.key + "." + level.key;
    const auto share = parse_decimal(level.value.text, kMillionthDigits, kOne);
    if (level.value.kind != Node::Kind::kScalar || !share.ok() || *share == 0)
      return f.problems().wrong(level.value, where,
                                "a decimal above 0 and at most 1, such as \"0.5\"");
    out.plan.weights[level.key] = {static_cast<std::uint32_t>(*share)};
    sum += *share;
  }
  out.plan.weights_key = key.key;
  if (sum != kOne)
    f.problems().wrong(
        key.value, f.path("weights") + "." + key.key,
        "shares that are together exactly 1, not " + format_decimal(sum, kMillionthDigits));
}
void fields(auto& v, Is<PlanText> auto& t) {
  auto& p = t.plan;
  v.also({"baseline", "contrasts"});
  v.then(t, read_contrasts);
  v("estimand", p.estimand);
  v("interval", p.interval);
  v("alpha", p.alpha, kOne / 2);
  v("min_effect", p.min_effect, kOne);
  v("non_inferiority", p.non_inferiority, kOne);
  v("pass_k", p.pass_k, kPassKMax, "a whole number above the one before");
  v("multiplicity", p.multiplicity);
  DrawsText bootstrap{p.draws};
  v("bootstrap", bootstrap);
  keep(p.draws, bootstrap.draws);
  v.also({"weights"});
  v.then(t, read_weights);
  v("unit", p.unit);
}

void read_analysis(const Fields& f, Campaign& out) {
  if (f.find("analysis") == nullptr) return;
  PlanText text{{}, &out};
  f("analysis", text);
  out.analysis = std::move(text.plan);
}

// Envelopes, alert levels and the dominance rule: what is wrong with each value; what binds them to
// the rest is checked later (campaign_rules.cc).
struct BudgetText {
  Envelopes envelopes;
  Campaign::LedgerKind ledger = Campaign::LedgerKind::kRedis;
  BudgetWatch watch;
};

void read_strata_and_shared(const Fields& f, Envelopes& out) {
  f.named("strata", "a mapping of strata to levels and amounts",
          [&](const Entry& e, const std::string& where) {
            auto& levels = out.strata[e.key];
            if (e.value.kind != Node::Kind::kMapping)
              f.problems().wrong(e.value, where, "a mapping of its levels to amounts");
            for (const Entry& level : e.value.entries)
              if (const auto usd = read_usd(level.value, where + "." + level.key, f.problems()))
                levels.emplace(level.key, *usd);
          });
  const std::size_t before = f.problems().count();
  SharedEnvelope shared;
  f("shared", shared);
  if (f.find("shared") != nullptr && f.problems().count() == before) out.shared = shared;
}

void fields(auto& v, Is<BudgetText> auto& b) {
  auto& e = b.envelopes;
  v("global", e.global, Need::kMust);
  v("task", e.task);
  v("tasks", e.tasks, "a mapping of contract ids to amounts");
  v("run", e.run);
  v("ledger", b.ledger);
  v("methods", e.methods, "a mapping of methods to amounts");
  v.also({"strata"});
  v("alerts", b.watch.alerts, 100, "a whole percentage from 1 to 100, above the one before");
  v("dominance", b.watch.dominance);
  v.also({"shared"});
  v.then(e, read_strata_and_shared);
}

void read_budget(const Fields& f, Campaign& out) {
  BudgetText text{out.envelopes, out.ledger, out.watch};
  text.envelopes.global = kLedgerMax;  // an absent one is one error, not one per envelope
  f("budget", text, "a mapping with at least global");
  out.envelopes = std::move(text.envelopes);
  out.ledger = text.ledger;
  out.watch = text.watch;
}

constexpr std::uint64_t kReplicatesMax = 1'000'000;  // of a campaign, and of a stage
constexpr std::size_t kCriteriaMax = 20;

bool takes_parameter(StagePredicate predicate) {
  return predicate == StagePredicate::kClosed || is_share(predicate);
}

struct StageApproval {
  std::uint32_t people = 1;
};
void fields(auto& v, Is<StageApproval> auto& a) {
  v("people", a.people, 1, 100);
}
struct StageTasks {
  std::uint32_t per_stratum = 1;
};
void fields(auto& v, Is<StageTasks> auto& t) {
  v("per_stratum", t.per_stratum, 1, limits::kPlanRows);
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
      stage_.complain(key, std::to_string(out.size()) + " criteria",
                      "at most " + std::to_string(kCriteriaMax));
    return out;
  }

  // A word, {people: N} or none.
  std::optional<std::uint32_t> people() {
    const Node* node = stage_.find("approval");
    if (node == nullptr) return std::nullopt;
    if (node->kind == Node::Kind::kScalar && node->text == "none") return 0;
    if (node->kind != Node::Kind::kMapping)
      return refuse(*node, stage_.path("approval"), "none, or how many: {people: 1}");
    StageApproval approval;
    stage_("approval", approval);
    return approval.people;
  }

 private:
  std::nullopt_t refuse(const Node& node, const std::string& path, std::string expected) {
    stage_.problems().wrong(node, path, std::move(expected));
    return std::nullopt;
  }

  std::optional<StageCriterion> one(const Node& item, const std::string& path, bool entry) {
    if (entry && earlier_.empty())
      return refuse(item, path, "no criterion: no stage is before the first one");
    const bool named = item.kind == Node::Kind::kMapping && item.entries.size() == 1;
    const std::string name = named ? item.entries.front().key : item.text;
    const auto known = from_word<StagePredicate>(name);
    if ((!named && item.kind != Node::Kind::kScalar) || !known)
      return refuse(named ? item.entries.front().value : item, named ? path + "." + name : path,
                    "a criterion: " + words_listed<StagePredicate>());
    StageCriterion out{.is = *known};
    if (out.is == StagePredicate::kClosed && !entry)
      return refuse(item, path, "another criterion: a stage is closed by its exit");
    if (named != takes_parameter(out.is))
      return refuse(item, path,
                    takes_parameter(out.is) ? name + " with its parameter, as in {" + name +
                                                  (is_share(out.is) ? ": \"0.05\"}" : ": STAGE}")
                                            : name + " without a parameter");
    if (!named) return out;
    return parameter(out, item.entries.front().value, path + "." + name);
  }

  std::optional<StageCriterion> parameter(StageCriterion out, const Node& value,
                                          const std::string& path) {
    if (out.is == StagePredicate::kClosed) {
      out.stage = read_text(value, path, kIdRule, stage_.problems());
      if (out.stage.empty()) return std::nullopt;
      if (!earlier_.contains(out.stage))
        return refuse(value, path, "the name of a stage before this one");
      return out;
    }
    const auto share = parse_usd(value.text);
    if (value.kind != Node::Kind::kScalar || !share.ok() || kOne < share->micros())
      return refuse(value, path, "a share from 0 to 1 with at most six digits, as in \"0.05\"");
    out.millionths = static_cast<std::uint32_t>(share->micros());
    return out;
  }

  const Fields& stage_;
  const std::set<std::string>& earlier_;
};
struct StageText {
  Stage stage;
  const std::set<std::string>* earlier = nullptr;  // names
};

void read_stage(const Fields& f, StageText& out) {
  Reader read(f, *out.earlier);
  out.stage.rules = {read.criteria("entry"), read.criteria("exit"), read.people()};
  const Node* tasks = f.find("tasks");
  if (tasks == nullptr) return;
  StageDraw& draw = out.stage.draw;
  if (tasks->kind == Node::Kind::kMapping) {
    StageTasks text;
    f("tasks", text);
    if (tasks->find("per_stratum") == nullptr)
      f.problems().add(tasks->at, f.path("tasks.per_stratum"), "nothing",
                       "how many of each stratum");
    draw.per_stratum = text.per_stratum;
    return;
  }
  if (tasks->kind != Node::Kind::kSequence || tasks->items.empty())
    return f.wrong("tasks", "{per_stratum: N}, or a list of tasks");
  f("tasks", draw.tasks, kIdRule);
  std::ranges::sort(draw.tasks);
}

void fields(auto& v, Is<StageText> auto& t) {
  v("name", t.stage.name, kIdRule, Need::kMust);
  v("usd", t.stage.usd);
  v("caps", t.stage.caps);
  v.also({"tasks"});
  v("replicates", t.stage.draw.replicates, 1, kReplicatesMax);
  v("order", t.stage.draw.order);
  v.also({"entry", "exit", "approval"});
  v.then(t, read_stage);
}

// campaign.yaml to a Campaign without contracts.

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

void read_contracts(const Fields& f, std::vector<CampaignText::Pattern>& out) {
  f.each("contracts", [&](const Node& item, const std::string& path) {
    const std::string pattern = read_text(item, path, kPatternRule, f.problems());
    if (!pattern.empty()) out.push_back({pattern, item.at});
  });
  if (f.find("contracts") == nullptr) out.push_back({"contracts/*.yaml", {}});
}

void read_methods(const Fields& f, Campaign& out) {
  f.each("methods", [&](const Node& item, const std::string& path) {
    out.methods.push_back(read_method(item, path, f.files()->source(), f.problems()));
  });
  f.once("methods", out.methods, &Method::name, "each method's name once", "name");
  f.some("methods", "method");
  spread_breakers(f, out);
}

void check_seed(const Fields& f, const Campaign& out) {
  if (out.seed != kPlannedSeed && f.find("seed_deviation") == nullptr)
    f.complain("seed", std::to_string(out.seed),
               "20260307, or a seed_deviation that says why (R072)");
  if (out.seed == kPlannedSeed && f.find("seed_deviation") != nullptr)
    f.complain("seed_deviation", "a reason", "nothing: the seed is the planned one");
}

// Deeper than remember_marks() goes, as far as rules have names and levels: the places of keys, or
// of what they hold.
void remember(const Node& node, const std::string& where, bool keys, Origin& out, int levels) {
  for (const Entry& e : node.entries) {
    const std::string field = where + "." + e.key;
    out.at.emplace(field, keys ? e.at : e.value.at);
    if (0 < levels && e.key.size() <= limits::kNameBytes)
      remember(e.value, field, keys && field != "budget.shared", out, levels - 1);
  }
}

void read_task_caps(const Fields& f, Campaign& out) {
  f.named("task_caps", "a mapping of contract ids to caps",
          [&](const Entry& e, const std::string& where) {
            read_fields(e.value, where, f.problems(), out.task_caps[e.key]);
          });
}

void read_stages(const Fields& f, Campaign& out) {
  std::set<std::string> names;
  f.each("stages", [&](const Node& item, const std::string& path) {
    StageText text{{}, &names};
    read_fields(item, path, f.problems(), text);
    Stage& stage = text.stage;
    const std::string where = "stages." + stage.name;
    for (const Entry& e : item.entries)
      if (e.key == "caps" || e.key == "tasks" || e.key == "replicates") {
        out.origin.at.emplace(where + "." + e.key, e.value.at);
        remember(e.value, where + "." + e.key, false, out.origin, 0);
      }
    if (!stage.name.empty()) names.insert(stage.name);
    if (stage.usd) {
      out.envelopes.stage.emplace(stage.name, *stage.usd);
      out.origin.at.emplace(where, item.find("usd")->at);
    }
    out.stages.push_back(std::move(stage));
  });
  f.once("stages", out.stages, &Stage::name, "each stage's name once", "name");
  constexpr std::size_t kStagesMax = 100;  // as of a plan (plan/plan.cc)
  if (kStagesMax < out.stages.size())
    f.complain("stages", std::to_string(out.stages.size()) + " stages",
               "1 to " + std::to_string(kStagesMax));
  if (out.stages.empty()) out.stages.push_back(Stage{"main", std::nullopt});
}

struct CampaignPolicy {
  Isolation isolation = Isolation::kKernel;
};
void fields(auto& v, Is<CampaignPolicy> auto& p) {
  v("isolation", p.isolation);
}

void read_failure_modes(const Fields& f, Campaign& out) {
  std::string path;
  f.file("failure_modes", path);
  const ReferencedFile* file = path.empty() ? nullptr : f.files()->find(path);
  if (file == nullptr) return;
  // As prices have one: what is registered keeps it under its name.
  if (path != kFailureModesFile)
    return f.wrong("failure_modes", std::string(kFailureModesFile) + ", beside campaign.yaml");
  out.failure_modes = file->bytes;
  check_failure_modes(f, out.failure_modes);
}

constexpr TextRule kDigestRule{64, "a digest: 64 lower-case hex digits",
                               [](std::string_view text) { return Digest::from_hex(text).ok(); }};
void check_redis(const Fields& f, const Campaign& c) {
  if (c.ledger == Campaign::LedgerKind::kJournal && f.find("redis") != nullptr)
    f.complain("redis", "an address", "nothing: budget.ledger is journal, which asks no Redis");
  // A Redis that the coordinator starts for itself is nobody else's.
  if (c.envelopes.shared && c.redis.empty())
    f.problems().add(f.at("budget"), "budget.shared",
                     "an envelope shared with other campaigns and no Redis that they share",
                     "the address of theirs beside it, as in redis: \"tcp://host:6379\"");
}
}  // namespace

void fields(auto& v, Is<DerivedFrom> auto& d) {
  v("campaign", d.campaign, kIdRule, Need::kMust);
  v("contracts", d.contracts, kIdRule, kDigestRule);
  v("bases", d.bases, kIdRule, kPathRule);
}

void fields(auto& v, Is<CampaignText> auto& t) {
  auto& c = t.campaign;
  std::string schema;
  v("$schema", schema, kAnyText);
  v("name", c.name, kIdRule, Need::kMust);
  v.also({"contracts", "methods"});
  v.then(t.contracts, read_contracts);
  v.then(c, read_methods);
  v("replicates", c.replicates, 1, kReplicatesMax);
  v("seed", c.seed, 0, UINT32_MAX);  // what numpy.random.RandomState takes
  v("seed_deviation", c.seed_deviation, kTitleRule);
  v.then(c, check_seed);
  v.also({"stages", "budget"});
  v.then(c, read_stages);
  v.then(c, read_budget);
  v("caps", c.caps);
  v("strata", c.strata, kWordRule);
  v("workers", c.workers, 1, limits::kLocalWorkersMax);
  v("slots", c.slots, 1, limits::kWorkerSlotsMax);
  v("redis", c.redis, kRedisRule);
  v.then(c, check_redis);
  v("infrastructure_retries", c.infrastructure_retries, 0, 1000);
  v.also({"task_caps"});
  v.then(c, read_task_caps);
  v("rates", c.rates);
  v("retries", c.retries);
  rubric_fields(v, c);
  v.also({"failure_modes"});
  v.then(c, read_failure_modes);
  CampaignPolicy policy{c.isolation};
  v("policy", policy);
  keep(c.isolation, policy.isolation);
  v.also({"analysis", "breakers"});
  v.then(c, read_analysis);
  v("derived_from", c.derived_from);
}

Keys campaign_keys(std::string_view section) {
  if (section == "policy") return keys_of<CampaignPolicy>();
  if (section == "derived_from") return keys_of<DerivedFrom>();
  if (section == "stages") return keys_of<StageText>();
  if (section == "stages.tasks") return keys_of<StageTasks>();
  if (section == "stages.approval") return keys_of<StageApproval>();
  if (section == "budget") return keys_of<BudgetText>();
  if (section == "analysis") return keys_of<PlanText>();
  if (section == "analysis.bootstrap") return keys_of<DrawsText>();
  return keys_of<CampaignText>();
}

CampaignText parse_campaign(const Document& document, const FileSource& files, Diagnostics& out) {
  Problems problems(document.file, out);
  FileCollector collector(files, problems, "");
  CampaignText text;
  Campaign& c = text.campaign;
  remember_marks(document, c.origin);
  for (const Entry& e : document.root.entries)
    if (e.key == "budget" || e.key == "analysis" || e.key == "task_caps" || e.key == "rates")
      remember(e.value, e.key, e.key == "budget" || e.key == "analysis", c.origin, 2);
  const Fields f(document.root, "", campaign_keys(""), problems, &collector);
  if (document.root.kind != Node::Kind::kMapping) return text;
  c.strata = {"language", "runtime", "dependencies", "type"};
  fields(f, text);
  constexpr std::chrono::milliseconds kWall{1'800'000};  // R106
  if (!c.caps.wall) c.caps.wall = kWall;
  return text;
}
}  // namespace proctor
