// campaign.yaml to a Campaign without contracts.
#include "common/contract/campaign_parser.h"

#include <set>

#include "common/base/parse.h"
#include "common/contract/analysis_parser.h"
#include "common/contract/breaker_parser.h"
#include "common/contract/budget_parser.h"
#include "common/contract/canonical.h"
#include "common/contract/contract_digest.h"
#include "common/contract/contract_sections.h"
#include "common/contract/method_parser.h"
#include "common/contract/rules.h"
#include "common/contract/stage_parser.h"

namespace proctor {
namespace {

constexpr TextRule kAnyText{kPathBytes, "a text"};
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
  out.seed = static_cast<std::uint32_t>(f.count("seed", kPlannedSeed, 0, kMost));
  out.seed_deviation = f.text("seed_deviation", Need::kOptional, kTitleRule);
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
    out.task_caps.emplace(t.key, read_caps(t.value, where, f.problems()));
    remember_caps(t.value, where, out);
  }
}

void read_stages(const Fields& f, Campaign& out) {
  std::set<std::string> names;
  f.each("stages", [&](const Node& item, const std::string& path) {
    const Fields s(item, path, kStageKeys, f.problems());
    Stage stage{s.text("name", Need::kRequired, kIdRule), s.usd("usd", Need::kOptional)};
    if (const Node* caps = s.find("caps")) {
      stage.caps = read_caps(*caps, s.path("caps"), f.problems());
      remember_caps(*caps, "stages." + stage.name + ".caps", out);
    }
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

void remember_marks(const Document& document, Campaign& out) {
  out.origin.file = document.file;
  for (const Entry& e : document.root.entries) {
    out.origin.at.emplace(e.key, e.value.at);
    for (const Entry& inner : e.value.entries)
      out.origin.at.emplace(e.key + "." + inner.key, inner.value.at);
  }
}

void read_retries(const Fields& campaign, Campaign& out) {
  const Node* node = campaign.find("retries");
  if (node == nullptr) return;
  using Ms = std::chrono::milliseconds;
  constexpr std::uint64_t kAttemptsMax = 1000, kParkAfterMax = 50;
  const Fields f(*node, "retries", kRetriesKeys, campaign.problems());
  Retries& r = out.retries;
  r.overload = static_cast<std::uint32_t>(f.count("overload", r.overload, 0, kAttemptsMax));
  r.backoff = f.duration("backoff", r.backoff, Ms(0));
  r.overload_backoff = f.duration("overload_backoff", r.overload_backoff, Ms(0));
  r.backoff_max = f.duration("backoff_max", r.backoff_max, Ms(0));
  r.escalate = f.flag("escalate", r.escalate);
  r.park_after = static_cast<std::uint32_t>(f.count("park_after", r.park_after, 1, kParkAfterMax));
  r.quarantine_after =
      static_cast<std::uint32_t>(f.count("quarantine_after", r.quarantine_after, 1, kAttemptsMax));
  r.quarantine = f.duration("quarantine", r.quarantine, Ms(1));
  r.quarantine_max = f.duration("quarantine_max", r.quarantine_max, Ms(1));
}

void read_strata(const Fields& f, Campaign& out) {
  out.strata = f.texts("strata", kWordRule);
  if (f.find("strata") == nullptr) out.strata = {"language", "runtime", "dependencies", "type"};
}

}  // namespace

CampaignText parse_campaign(const Document& document, const FileSource& files, Diagnostics& out) {
  Problems problems(document.file, out);
  CampaignText text;
  Campaign& c = text.campaign;
  remember_marks(document, c);
  const Fields f(document.root, "", kCampaignKeys, problems);
  if (document.root.kind != Node::Kind::kMapping) return text;
  f.text("$schema", Need::kOptional, kAnyText);
  c.name = f.text("name", Need::kRequired, kIdRule);
  f.each("contracts", [&](const Node& item, const std::string& path) {
    const std::string pattern = read_text(item, path, kPatternRule, problems);
    if (!pattern.empty()) text.contracts.push_back({pattern, item.at});
  });
  if (f.find("contracts") == nullptr) text.contracts.push_back({"contracts/*.yaml", {}});
  read_methods(f, files, c);
  spread_breakers(f, c);
  constexpr std::uint64_t kRetriesMax = 1000;
  const auto small = [&](std::string_view key, std::uint32_t otherwise, std::uint64_t min,
                         std::uint64_t max) {
    return static_cast<std::uint32_t>(f.count(key, otherwise, min, max));
  };
  c.replicates = small("replicates", c.replicates, 1, kReplicatesMax);
  read_seed(f, c);
  read_stages(f, c);
  read_budget(f, c);
  if (const Node* n = f.find("caps")) c.caps = read_caps(*n, "caps", problems);
  constexpr std::chrono::milliseconds kWall{1'800'000};  // R106
  if (!c.caps.wall) c.caps.wall = kWall;
  read_task_caps(f, c);
  if (const Node* n = f.find("rates")) {
    c.rates = read_rates(*n, "rates", problems);
    if (const Node* providers = n->find("providers"))
      remember_caps(*providers, "rates.providers", c);
  }
  if (const Node* n = f.find("policy")) {
    const Fields policy(*n, "policy", kCampaignPolicyKeys, problems);
    c.isolation = policy.choice("isolation", Isolation::kKernel, kIsolationWords);
  }
  read_strata(f, c);
  c.workers = small("workers", c.workers, 1, limits::kLocalWorkersMax);
  c.slots = small("slots", c.slots, 1, limits::kWorkerSlotsMax);
  c.redis = f.text("redis", Need::kOptional, kRedisRule);
  if (c.ledger == Campaign::LedgerKind::kJournal && f.find("redis") != nullptr)
    problems.add(f.at("redis"), "redis", "an address",
                 "nothing: budget.ledger is journal, which asks no Redis");
  // A Redis that the coordinator starts for itself is nobody else's.
  if (c.envelopes.shared && c.redis.empty())
    problems.add(f.at("budget"), "budget.shared",
                 "an envelope shared with other campaigns and no Redis that they share",
                 "the address of theirs beside it, as in redis: \"tcp://host:6379\"");
  c.infrastructure_retries =
      small("infrastructure_retries", c.infrastructure_retries, 0, kRetriesMax);
  read_retries(f, c);
  read_analysis(f, c);
  return text;
}

}  // namespace proctor
