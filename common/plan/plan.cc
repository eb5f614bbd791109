#include "common/plan/plan.h"

#include <algorithm>
#include <array>
#include <map>

#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/base/text.h"
#include "common/contract/campaign.h"
#include "common/plan/numpy_random.h"

namespace proctor {
namespace {

constexpr std::size_t kMethodsMax = 1000;
constexpr std::size_t kStagesMax = 100;
constexpr std::size_t kStrataMax = 32;
constexpr std::array<std::string_view, 9> kColumns = {"order",           "run_id", "task",
                                                      "contract_digest", "method", "replicate",
                                                      "stage",           "seed",   "envelope"};

Error invalid(std::string text) {
  return Error{Errc::kInvalid, std::move(text)};
}

std::string in_quotes(std::string_view name) {
  return '"' + printable(name, limits::kNameBytes) + '"';
}

// Task, method and stage names are parts of run names and envelopes, which are split at these
// bytes.
Status check_name(std::string_view what, std::string_view name) {
  const auto bad = [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == 0x7f || c == '/' || c == ',' || c == '"';
  };
  if (name.empty() || limits::kNameBytes < name.size())
    return invalid(std::string(what) + " " + in_quotes(name) + ": found " +
                   std::to_string(name.size()) + " bytes, expected 1 to " +
                   std::to_string(limits::kNameBytes));
  if (std::ranges::any_of(name, bad) || !is_utf8(name))
    return invalid(std::string(what) + " " + in_quotes(name) +
                   ": expected UTF-8 without spaces, control bytes, '/', ',' and '\"'");
  return ok_status();
}

Status check_value(const PlanTask& task, std::string_view value) {
  const bool control =
      std::ranges::any_of(value, [](char c) { return static_cast<unsigned char>(c) < ' '; });
  if (limits::kNameBytes < value.size() || control || !is_utf8(value))
    return invalid("task " + in_quotes(task.id) + ": stratum value " + in_quotes(value) +
                   ": expected UTF-8 of at most " + std::to_string(limits::kNameBytes) +
                   " bytes without control bytes");
  return ok_status();
}

Status check_keys(const std::vector<std::string>& keys) {
  if (kStrataMax < keys.size())
    return invalid("strata: found " + std::to_string(keys.size()) + " keys, expected at most " +
                   std::to_string(kStrataMax));
  for (const std::string& key : keys) {
    PROCTOR_CHECK_OK(check_name("stratum", key));
    if (std::ranges::find(kColumns, key) != kColumns.end())
      return invalid("stratum " + in_quotes(key) + " is a column of the plan: choose another name");
    if (1 < std::ranges::count(keys, key))
      return invalid("stratum " + in_quotes(key) + " is named twice");
  }
  return ok_status();
}

Status check_stages(const std::vector<PlanStage>& stages) {
  if (stages.empty() || kStagesMax < stages.size())
    return invalid("stages: found " + std::to_string(stages.size()) + ", expected 1 to " +
                   std::to_string(kStagesMax));
  for (const PlanStage& stage : stages) {
    PROCTOR_CHECK_OK(check_name("stage", stage.name));
    if (stage.replicates == 0)
      return invalid("stage " + in_quotes(stage.name) +
                     ": found 0 replicates, expected at least 1");
    if (1 < std::ranges::count(stages, stage.name, &PlanStage::name))
      return invalid("stage " + in_quotes(stage.name) + " is named twice");
  }
  return ok_status();
}

Status check_tasks(const PlanShape& shape) {
  if (shape.tasks.empty()) return invalid("tasks: found none, expected at least 1");
  for (std::size_t i = 0; i < shape.tasks.size(); ++i) {
    const PlanTask& task = shape.tasks[i];
    PROCTOR_CHECK_OK(check_name("task", task.id));
    if (0 < i && shape.tasks[i - 1].id == task.id)
      return invalid("task " + in_quotes(task.id) + " is named twice");
    if (task.strata.size() != shape.strata_keys.size())
      return invalid("task " + in_quotes(task.id) + ": found " +
                     std::to_string(task.strata.size()) + " stratum values, expected " +
                     std::to_string(shape.strata_keys.size()));
    for (const std::string& value : task.strata) PROCTOR_CHECK_OK(check_value(task, value));
  }
  return ok_status();
}

Status check_stage_tasks(const PlanShape& shape) {
  for (const PlanStage& stage : shape.stages) {
    if (stage.per_stratum == 0U)
      return invalid("stage " + in_quotes(stage.name) +
                     ": found 0 tasks of each stratum, expected at least 1");
    for (const std::string& id : stage.tasks)
      if (!std::ranges::binary_search(shape.tasks, id, {}, &PlanTask::id))
        return invalid("stage " + in_quotes(stage.name) + ": task " + in_quotes(id) +
                       " is none of the plan");
  }
  return ok_status();
}

using Strata = std::vector<std::vector<std::uint32_t>>;  // their tasks, ascending

// A place of a round: the task of that rank in the permuted stratum.
struct Place {
  std::uint32_t stratum = 0;
  std::uint32_t rank = 0;
};

// Rank j of a stratum of m tasks sits at (2j + 1) / 2m of the round: evenly, and never two strata's
// first tasks all at the front.  Compared as exact fractions; equal ones by stratum.
std::vector<Place> interleave(const Strata& strata) {
  std::vector<Place> places;
  for (std::uint32_t h = 0; h < strata.size(); ++h)
    for (std::uint32_t j = 0; j < strata[h].size(); ++j) places.push_back({h, j});
  std::ranges::sort(places, [&](const Place& a, const Place& b) {
    const std::uint64_t left = (2ULL * a.rank + 1) * strata[b.stratum].size();
    const std::uint64_t right = (2ULL * b.rank + 1) * strata[a.stratum].size();
    return left != right ? left < right : a.stratum < b.stratum;
  });
  return places;
}

Strata strata_of(const PlanShape& shape) {
  std::map<std::vector<std::string>, std::vector<std::uint32_t>> by_values;  // strata in order
  for (std::uint32_t t = 0; t < shape.tasks.size(); ++t)
    by_values[shape.tasks[t].strata].push_back(t);
  Strata strata;
  for (auto& [values, tasks] : by_values) strata.push_back(std::move(tasks));
  return strata;
}

// The stage's tasks of each stratum, ascending.  Those of a stage with so many of each are drawn:
// one permutation for each stratum, of which the first are taken.
Strata strata_of_stage(const PlanShape& shape, const PlanStage& stage, const Strata& all,
                       NumpyRandom& random) {
  if (stage.has_every_task()) return all;
  Strata out;
  for (const std::vector<std::uint32_t>& tasks : all) {
    std::vector<std::uint32_t>& mine = out.emplace_back();
    if (stage.per_stratum) {
      const auto drawn = random.permutation(static_cast<std::uint32_t>(tasks.size()));
      const std::size_t count = std::min<std::size_t>(*stage.per_stratum, tasks.size());
      for (std::size_t i = 0; i < count; ++i) mine.push_back(tasks[drawn[i]]);
      std::ranges::sort(mine);
      continue;
    }
    for (const std::uint32_t task : tasks)
      if (std::ranges::binary_search(stage.tasks, shape.tasks[task].id)) mine.push_back(task);
  }
  return out;
}

std::vector<std::uint32_t> tasks_in(const Strata& strata) {
  std::vector<std::uint32_t> out;
  for (const std::vector<std::uint32_t>& tasks : strata)
    out.insert(out.end(), tasks.begin(), tasks.end());
  std::ranges::sort(out);
  return out;
}

// Draws the rows of one stage after another.
class RowDraw {
 public:
  RowDraw(std::size_t methods, NumpyRandom& random, std::vector<PlanRow>& rows)
      : random_(random), methods_(methods), rows_(rows) {}

  void add(std::uint16_t index, const PlanStage& stage, const Strata& strata) {
    const std::vector<Place> places = interleave(strata);
    const bool rounds = stage.order == StageOrder::kRounds;
    std::vector<std::vector<std::uint32_t>> permuted(strata.size());
    for (std::size_t h = 0; h < strata.size(); ++h) permuted[h].resize(strata[h].size());
    for (std::uint32_t pass = 0; pass < (rounds ? stage.replicates : 1); ++pass) {
      for (std::vector<std::uint32_t>& p : permuted) random_.permutation_into(p);
      for (const Place& place : places) {
        const std::uint32_t task = strata[place.stratum][permuted[place.stratum][place.rank]];
        for (std::uint32_t again = 0; again < (rounds ? 1 : stage.replicates); ++again)
          block(task, before_ + 1 + pass + again, index);
      }
    }
    before_ += stage.replicates;
  }

 private:
  void block(std::uint32_t task, std::uint32_t replicate, std::uint16_t stage) {
    random_.permutation_into(methods_);
    for (const std::uint32_t m : methods_)
      rows_.push_back({task, replicate, 0, static_cast<std::uint16_t>(m), stage});
  }

  NumpyRandom& random_;
  std::vector<std::uint32_t> methods_;
  std::vector<PlanRow>& rows_;
  std::uint32_t before_ = 0;  // replicates of the stages before
};

// Tasks of a stage times its replicates, of all stages: no overflow below 100 x 2^31 x 2^24.
std::uint64_t blocks_of(const PlanShape& shape) {
  std::uint64_t out = 0;
  Strata strata;  // only where a stage draws from them
  for (const PlanStage& stage : shape.stages) {
    std::uint64_t tasks = stage.tasks.empty() ? shape.tasks.size() : stage.tasks.size();
    if (stage.per_stratum) {
      if (strata.empty()) strata = strata_of(shape);
      tasks = 0;
      for (const std::vector<std::uint32_t>& s : strata)
        tasks += std::min<std::uint64_t>(s.size(), *stage.per_stratum);
    }
    out += tasks * stage.replicates;
  }
  return out;
}

}  // namespace

PlanShape shape_of(const Campaign& campaign) {
  PlanShape shape;
  shape.strata_keys = campaign.strata;
  shape.seed = campaign.seed;
  for (const Contract& contract : campaign.contracts) {
    shape.tasks.push_back(
        {contract.id, contract.digest, stratum_values(campaign.strata, contract)});
  }
  for (const Method& method : campaign.methods) shape.methods.push_back(method.name);
  for (const Stage& stage : campaign.stages)
    shape.stages.push_back({stage.name, campaign.replicates_of(stage), stage.draw.per_stratum,
                            stage.draw.tasks, stage.draw.order});
  return shape;
}

Status normalise(PlanShape& shape) {
  if (!std::ranges::is_sorted(shape.tasks, {}, &PlanTask::id))
    std::ranges::sort(shape.tasks, {}, &PlanTask::id);
  std::ranges::sort(shape.methods);
  PROCTOR_CHECK_OK(check_keys(shape.strata_keys));
  PROCTOR_CHECK_OK(check_stages(shape.stages));
  PROCTOR_CHECK_OK(check_tasks(shape));
  if (shape.methods.empty() || kMethodsMax < shape.methods.size())
    return invalid("methods: found " + std::to_string(shape.methods.size()) + ", expected 1 to " +
                   std::to_string(kMethodsMax));
  for (std::size_t i = 0; i < shape.methods.size(); ++i) {
    PROCTOR_CHECK_OK(check_name("method", shape.methods[i]));
    if (0 < i && shape.methods[i - 1] == shape.methods[i])
      return invalid("method " + in_quotes(shape.methods[i]) + " is named twice");
  }
  for (PlanStage& stage : shape.stages) {
    std::ranges::sort(stage.tasks);
    stage.tasks.erase(std::unique(stage.tasks.begin(), stage.tasks.end()), stage.tasks.end());
  }
  PROCTOR_CHECK_OK(check_stage_tasks(shape));
  std::uint64_t replicates = 0;  // at most 100 stages of 2^32: no overflow
  for (const PlanStage& stage : shape.stages) replicates += stage.replicates;
  const std::uint64_t blocks = blocks_of(shape);
  if (limits::kPlanRows < shape.tasks.size() * shape.methods.size() ||
      limits::kPlanRows / shape.methods.size() < blocks)
    return invalid("plan of " + std::to_string(shape.tasks.size()) + " tasks, " +
                   std::to_string(shape.methods.size()) + " methods and " +
                   std::to_string(replicates) + " replicates: expected at most " +
                   std::to_string(limits::kPlanRows) + " runs");
  return ok_status();
}

std::uint32_t run_count(const PlanShape& shape) {
  return static_cast<std::uint32_t>(blocks_of(shape) * shape.methods.size());
}

Result<Plan> draw_plan(PlanShape shape) {
  PROCTOR_CHECK_OK(normalise(shape));
  const Strata strata = strata_of(shape);
  NumpyRandom random(shape.seed);
  std::vector<PlanRow> rows;
  rows.reserve(run_count(shape));
  std::vector<std::vector<std::uint32_t>> stage_tasks;
  RowDraw draw(shape.methods.size(), random, rows);
  for (std::size_t s = 0; s < shape.stages.size(); ++s) {
    const Strata mine = strata_of_stage(shape, shape.stages[s], strata, random);
    stage_tasks.push_back(tasks_in(mine));
    draw.add(static_cast<std::uint16_t>(s), shape.stages[s], mine);
  }
  for (PlanRow& row : rows) row.seed = random.next_u32();
  return Plan(std::move(shape), std::move(stage_tasks), std::move(rows));
}

const PlanRow& Plan::row(RunId run) const {
  PROCTOR_ASSERT(run.raw() < rows_.size());
  return rows_[run.raw()];
}

std::string Plan::run_name(RunId run) const {
  return task(run).id + '/' + method(run) + "/r" + std::to_string(row(run).replicate);
}

std::string Plan::envelope(RunId run) const {
  return "stage:" + stage(run) + "/task:" + task(run).id;
}

std::optional<RunId> Plan::find(std::string_view name) const {
  const std::size_t first = name.find('/');
  const std::size_t second = name.find("/r", first == std::string_view::npos ? first : first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  const std::string_view task = name.substr(0, first);
  const std::string_view method = name.substr(first + 1, second - first - 1);
  const std::string_view number = name.substr(second + 2);
  const auto replicate = whole_number<std::uint32_t>(number);
  const auto t = std::ranges::lower_bound(shape_.tasks, task, {}, &PlanTask::id);
  const auto m = std::ranges::lower_bound(shape_.methods, method);
  if (!replicate || t == shape_.tasks.end() || t->id != task || m == shape_.methods.end() ||
      *m != method)
    return std::nullopt;
  for (std::uint32_t i = 0; i < size(); ++i) {
    const PlanRow& r = rows_[i];
    if (r.replicate == *replicate && &shape_.tasks[r.task] == &*t &&
        &shape_.methods[r.method] == &*m)
      return RunId(i);
  }
  return std::nullopt;
}

std::vector<std::string> plan_columns(const PlanShape& shape) {
  std::vector<std::string> columns(kColumns.begin(), kColumns.end() - 2);
  columns.insert(columns.end(), shape.strata_keys.begin(), shape.strata_keys.end());
  columns.insert(columns.end(), kColumns.end() - 2, kColumns.end());
  return columns;
}

}  // namespace proctor
