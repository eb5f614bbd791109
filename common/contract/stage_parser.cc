#include "common/contract/stage_parser.h"

#include <algorithm>

#include "common/base/limits.h"
#include "common/contract/rules.h"

namespace proctor {
namespace {

constexpr std::uint64_t kPeopleMax = 100;
constexpr std::size_t kCriteriaMax = 20;
constexpr std::int64_t kWhole = 1'000'000;

std::string known_predicates() {
  std::array<std::string_view, kStagePredicates.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kStagePredicates[i].first;
  return one_of(names);
}

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
    return static_cast<std::uint32_t>(f.count("people", 1, 1, kPeopleMax));
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
    const auto known =
        std::ranges::find(kStagePredicates, name, &decltype(kStagePredicates)::value_type::first);
    if ((!named && item.kind != Node::Kind::kScalar) || known == kStagePredicates.end()) {
      problems.wrong(named ? item.entries.front().value : item, named ? path + "." + name : path,
                     "a criterion: " + known_predicates());
      return std::nullopt;
    }
    StageCriterion out{.is = known->second};
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

StageRules read_stage_rules(const Fields& stage, const std::set<std::string>& earlier) {
  Reader read(stage, earlier);
  StageRules out;
  out.entry = read.criteria("entry");
  out.exit = read.criteria("exit");
  out.people = read.people();
  return out;
}

StageDraw read_stage_draw(const Fields& stage) {
  StageDraw out;
  out.order = stage.choice("order", out.order, kStageOrders);
  if (stage.find("replicates") != nullptr)
    out.replicates = static_cast<std::uint32_t>(stage.count("replicates", 1, 1, kReplicatesMax));
  const Node* tasks = stage.find("tasks");
  if (tasks == nullptr) return out;
  const std::string path = stage.path("tasks");
  if (tasks->kind == Node::Kind::kMapping) {
    const Fields f(*tasks, path, kStageTasksKeys, stage.problems());
    if (f.find("per_stratum") == nullptr) f.missing("per_stratum", "how many of each stratum");
    out.per_stratum = static_cast<std::uint32_t>(f.count("per_stratum", 1, 1, limits::kPlanRows));
    return out;
  }
  if (tasks->kind != Node::Kind::kSequence || tasks->items.empty()) {
    stage.problems().wrong(*tasks, path, "{per_stratum: N}, or a list of tasks");
    return out;
  }
  out.tasks = stage.texts("tasks", kIdRule);
  std::ranges::sort(out.tasks);
  return out;
}

}  // namespace proctor
