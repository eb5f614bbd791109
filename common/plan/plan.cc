#include "common/plan/plan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <map>
#include <numeric>

#include "common/base/csv.h"
#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/base/text.h"
#include "common/contract/campaign.h"

namespace proctor {
double NumpyRandom::random_sample() {
  // The order of the two draws matters, so they are two statements.
  const std::uint32_t high = next_u32() >> 5;
  const std::uint32_t low = next_u32() >> 6;
  return (high * 67108864.0 + low) / 9007199254740992.0;
}

std::uint32_t NumpyRandom::interval(std::uint32_t max) {
  if (max == 0) return 0;
  const std::uint32_t mask = ~std::uint32_t{0} >> std::countl_zero(max);
  for (;;) {
    const std::uint32_t value = next_u32() & mask;
    if (value <= max) return value;
  }
}

void NumpyRandom::permutation_into(std::span<std::uint32_t> out) {
  std::iota(out.begin(), out.end(), 0U);
  shuffle(out);
}

std::vector<std::uint32_t> NumpyRandom::permutation(std::uint32_t n) {
  std::vector<std::uint32_t> out(n);
  permutation_into(out);
  return out;
}

namespace {
constexpr std::size_t kMethodsMax = 1000;
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

namespace {
// Puts tables into plan order.  What a campaign's parser leaves open is checked here.
Status normalise(PlanShape& shape) {
  if (!std::ranges::is_sorted(shape.tasks, {}, &PlanTask::id))
    std::ranges::sort(shape.tasks, {}, &PlanTask::id);
  std::ranges::sort(shape.methods);
  for (PlanStage& stage : shape.stages) std::ranges::sort(stage.tasks);
  if (kStrataMax < shape.strata_keys.size())
    return invalid("strata: found " + std::to_string(shape.strata_keys.size()) +
                   " keys, expected at most " + std::to_string(kStrataMax));
  for (const std::string& key : shape.strata_keys)
    if (std::ranges::find(kColumns, key) != kColumns.end())
      return invalid("stratum " + in_quotes(key) + " is a column of the plan: choose another name");
  if (shape.tasks.empty()) return invalid("tasks: found none, expected at least 1");
  // Tasks of a trial have names that are made of two, which no parser saw.
  for (std::size_t i = 0; i < shape.tasks.size(); ++i) {
    const std::string& id = shape.tasks[i].id;
    if (limits::kNameBytes < id.size())
      return invalid("task " + in_quotes(id) + ": found " + std::to_string(id.size()) +
                     " bytes, expected 1 to " + std::to_string(limits::kNameBytes));
    if (0 < i && shape.tasks[i - 1].id == id)
      return invalid("task " + in_quotes(id) + " is named twice");
  }
  if (shape.methods.empty() || kMethodsMax < shape.methods.size())
    return invalid("methods: found " + std::to_string(shape.methods.size()) + ", expected 1 to " +
                   std::to_string(kMethodsMax));
  std::uint64_t replicates = 0;  // at most 100 stages of 2^32: no overflow
  for (const PlanStage& stage : shape.stages) replicates += stage.replicates;
  const std::uint64_t blocks = blocks_of(shape);
  if (limits::kPlanRows < shape.tasks.size() * shape.methods.size() ||
      limits::kPlanRows / shape.methods.size() < blocks)
    return invalid("plan of " + std::to_string(shape.tasks.size()) + " tasks, " +
                   std::to_string(shape.methods.size()) + " methods and " +
                   std::to_string(replicates) + " replicates: expected at most " +
                   std::to_string(limits::kPlanRows) + " runs");
  PROCTOR_ASSERT(0 < blocks);
  return ok_status();
}

std::uint32_t run_count(const PlanShape& shape) {
  return static_cast<std::uint32_t>(blocks_of(shape) * shape.methods.size());
}
}  // namespace

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

// The file form of a plan.  A million rows are written and read here, so fields are never strings
// of their own: one buffer out, views in.

namespace {
void append_number(std::string& out, std::uint64_t value) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, value);
  out.append(digits, end.ptr);
}

// Puts rows into text from pieces that are made once: a million rows share a few thousand of them.
class RowWriter {
 public:
  explicit RowWriter(const PlanShape& shape) {
    tasks_.reserve(shape.tasks.size());
    for (const PlanTask& task : shape.tasks) {
      TaskPieces& piece = tasks_.emplace_back();
      piece.before_method.append(",").append(task.id).append("/");
      piece.middle.append(",").append(task.id).append(",").append(task.digest.hex()).append(",");
      for (const std::string& value : task.strata) {
        csv_append(piece.strata, value);
        piece.strata += ',';
      }
      piece.end = task.id + "\n";
    }
    for (const std::string& method : shape.methods)
      methods_.push_back({method + "/r", method + ","});
    for (const PlanStage& stage : shape.stages)
      stages_.push_back({"," + stage.name + ",", ",stage:" + stage.name + "/task:"});
  }

  void append(std::string& out, std::uint32_t order, const PlanRow& row) const {
    const TaskPieces& task = tasks_[row.task];
    const MethodPieces& method = methods_[row.method];
    const StagePieces& stage = stages_[row.stage];
    append_number(out, order);
    out.append(task.before_method).append(method.in_name);
    append_number(out, row.replicate);
    out.append(task.middle).append(method.field);
    append_number(out, row.replicate);
    out.append(stage.field).append(task.strata);
    append_number(out, row.seed);
    out.append(stage.in_envelope).append(task.end);
  }

 private:
  struct TaskPieces {
    std::string before_method, middle, strata, end;
  };
  struct MethodPieces {
    std::string in_name, field;
  };
  struct StagePieces {
    std::string field, in_envelope;
  };
  std::vector<TaskPieces> tasks_;
  std::vector<MethodPieces> methods_;
  std::vector<StagePieces> stages_;
};

class PlanReader {
 public:
  // `drawn`: of the shape that the file is held against; which tasks a stage drew is known by it.
  PlanReader(std::string_view file, std::string_view csv, const Plan& drawn)
      : file_(file), plan_(drawn), shape_(drawn.shape()), records_(csv) {
    std::uint32_t run = 0, replicate = 1;
    for (std::size_t s = 0; s < shape_.stages.size(); ++s) {
      first_.push_back({run, replicate});
      const std::size_t tasks = plan_.tasks_of(s).size();
      run +=
          static_cast<std::uint32_t>(tasks * shape_.methods.size()) * shape_.stages[s].replicates;
      replicate += shape_.stages[s].replicates;
    }
  }

  Result<std::vector<PlanRow>> read() {
    const std::uint32_t count = run_count(shape_);
    rows_.reserve(count);
    seen_.assign(count, false);
    PROCTOR_CHECK_OK(header());
    for (;;) {
      auto more = records_.next(fields_);
      if (!more.ok()) return in_context(file_, std::move(more).error());
      if (!*more) break;
      PROCTOR_CHECK_OK(record());
    }
    if (rows_.size() != count) return missing();
    return std::move(rows_);
  }

 private:
  Error wrong(std::string_view field, std::string_view found, std::string_view expected) const {
    return Error{Errc::kInvalid, std::string(file_) + ":" + std::to_string(records_.line()) + ": " +
                                     std::string(field) + ": found \"" + printable(found) +
                                     "\", expected " + std::string(expected)};
  }

  Status header() {
    auto more = records_.next(fields_);
    if (!more.ok()) return in_context(file_, std::move(more).error());
    const std::vector<std::string> columns = plan_columns(shape_);
    if (!*more)
      return Error{Errc::kInvalid, std::string(file_) + ": found no header, expected " +
                                       std::to_string(columns.size()) + " columns from \"order\""};
    for (std::size_t i = 0; i < std::max(columns.size(), fields_.size()); ++i) {
      const std::string number = "column " + std::to_string(i + 1);
      if (columns.size() <= i) return wrong(number, fields_[i], "no more columns");
      const std::string expected = "\"" + columns[i] + "\"";
      if (fields_.size() <= i) return wrong(number, "nothing", expected);
      if (fields_[i] != columns[i]) return wrong(number, fields_[i], expected);
    }
    return ok_status();
  }

  Result<std::uint32_t> number(std::string_view field, std::string_view text) const {
    const auto value = whole_number<std::uint32_t>(text);
    const bool padded = 1 < text.size() && text.front() == '0';  // one number, one spelling
    if (!value || padded) return wrong(field, text, "a whole number from 0 to 4294967295");
    return *value;
  }

  Status record() {
    const std::size_t keys = shape_.strata_keys.size();
    if (fields_.size() != 9 + keys)
      return wrong("record", std::to_string(fields_.size()) + " fields",
                   std::to_string(9 + keys) + " as in the header");
    PROCTOR_TRY(const std::uint32_t order, number("order", fields_[0]));
    if (order != rows_.size()) return wrong("order", fields_[0], std::to_string(rows_.size()));
    PlanRow row;
    PROCTOR_TRY(row.task, task(fields_[2]));
    PROCTOR_CHECK_OK(digest(row.task, fields_[3]));
    PROCTOR_TRY(row.method, method(fields_[4]));
    PROCTOR_TRY(row.replicate, number("replicate", fields_[5]));
    PROCTOR_TRY(row.stage, stage(row.replicate, fields_[5], fields_[6]));
    if (!std::ranges::binary_search(plan_.tasks_of(row.stage), row.task))
      return wrong("task", fields_[2], "a task of stage " + shape_.stages[row.stage].name);
    for (std::size_t k = 0; k < keys; ++k)
      if (fields_[7 + k] != shape_.tasks[row.task].strata[k])
        return wrong(shape_.strata_keys[k], fields_[7 + k],
                     '"' + printable(shape_.tasks[row.task].strata[k]) + "\" as in the contract");
    PROCTOR_TRY(row.seed, number("seed", fields_[7 + keys]));
    PROCTOR_CHECK_OK(derived("run_id", fields_[1], run_name(row)));
    scratch_.assign("stage:").append(shape_.stages[row.stage].name);
    scratch_.append("/task:").append(shape_.tasks[row.task].id);
    PROCTOR_CHECK_OK(derived("envelope", fields_[8 + keys], scratch_));
    const std::size_t at = position(row);
    if (seen_[at])
      return wrong("run_id", fields_[1], "each run once; order " + first_with(row) + " has it");
    seen_[at] = true;
    rows_.push_back(row);
    return ok_status();
  }

  Status derived(std::string_view field, std::string_view found, std::string_view expected) const {
    if (found == expected) return ok_status();
    return wrong(field, found, '"' + printable(expected) + '"');
  }

  Status digest(std::uint32_t task, std::string_view found) {
    if (hex_of_ != task) {
      hex_of_ = task;
      hex_ = shape_.tasks[task].digest.hex();
    }
    if (found == hex_) return ok_status();
    return wrong("contract_digest", found, hex_ + ", the contract as it is now");
  }

  const std::string& run_name(const PlanRow& row) {
    scratch_.assign(shape_.tasks[row.task].id).append("/");
    scratch_.append(shape_.methods[row.method]).append("/r");
    append_number(scratch_, row.replicate);
    return scratch_;
  }

  // The runs of one task follow each other, so the last answer is tried first.
  Result<std::uint32_t> task(std::string_view id) {
    if (shape_.tasks[last_task_].id != id) {
      const auto found = std::ranges::lower_bound(shape_.tasks, id, {}, &PlanTask::id);
      if (found == shape_.tasks.end() || found->id != id)
        return wrong("task", id, "a task of the campaign" + suggestion(id, task_names()));
      last_task_ = static_cast<std::uint32_t>(found - shape_.tasks.begin());
    }
    return last_task_;
  }

  Result<std::uint16_t> method(std::string_view name) const {
    const auto found = std::ranges::lower_bound(shape_.methods, name);
    if (found == shape_.methods.end() || *found != name)
      return wrong("method", name,
                   "a method of the campaign" +
                       suggestion(name, {shape_.methods.begin(), shape_.methods.end()}));
    return static_cast<std::uint16_t>(found - shape_.methods.begin());
  }

  // Replicates are counted through the stages, so the number says the stage.
  Result<std::uint16_t> stage(std::uint32_t replicate, std::string_view number_text,
                              std::string_view name) const {
    std::uint32_t last = 0;
    for (std::size_t s = 0; s < shape_.stages.size(); ++s) {
      last += shape_.stages[s].replicates;
      if (replicate == 0 || last < replicate) continue;
      if (shape_.stages[s].name != name)
        return wrong("stage", name, '"' + shape_.stages[s].name + '"');
      return static_cast<std::uint16_t>(s);
    }
    return wrong("replicate", number_text, "1 to " + std::to_string(last));
  }

  std::vector<std::string_view> task_names() const {
    std::vector<std::string_view> names;
    for (const PlanTask& t : shape_.tasks) names.push_back(t.id);
    return names;
  }
  static std::string suggestion(std::string_view word, const std::vector<std::string_view>& names) {
    constexpr std::size_t kWorthSearching = 10'000;
    if (limits::kNameBytes < word.size() || kWorthSearching < names.size()) return "";
    const auto near = nearest_word(word, names);
    return near ? " (\"" + printable(*near) + "\"?)" : "";
  }

  // Of the runs of all stages, one after the other.  Requires: the stage has the task.
  std::size_t position(const PlanRow& row) const {
    const First& first = first_[row.stage];
    const std::span<const std::uint32_t> tasks = plan_.tasks_of(row.stage);
    const auto at = std::ranges::lower_bound(tasks, row.task) - tasks.begin();
    const std::size_t block =
        std::size_t{row.replicate - first.replicate} * tasks.size() + static_cast<std::size_t>(at);
    return first.run + block * shape_.methods.size() + row.method;
  }
  std::string first_with(const PlanRow& row) const {
    std::size_t i = 0;
    while (position(rows_[i]) != position(row)) ++i;
    return std::to_string(i);
  }
  Error missing() {
    std::size_t at = 0;
    while (seen_[at]) ++at;
    std::size_t stage = first_.size() - 1;
    while (at < first_[stage].run) --stage;
    at -= first_[stage].run;
    const std::span<const std::uint32_t> tasks = plan_.tasks_of(stage);
    PlanRow row;
    row.method = static_cast<std::uint16_t>(at % shape_.methods.size());
    at /= shape_.methods.size();
    row.task = tasks[at % tasks.size()];
    row.replicate = static_cast<std::uint32_t>(at / tasks.size()) + first_[stage].replicate;
    return Error{Errc::kInvalid, std::string(file_) + ": found " + std::to_string(rows_.size()) +
                                     " runs, expected " + std::to_string(seen_.size()) + ": " +
                                     run_name(row) + " is missing"};
  }

  struct First {
    std::uint32_t run = 0;        // how many the stages before have
    std::uint32_t replicate = 1;  // of the stage
  };
  std::string_view file_;
  const Plan& plan_;
  const PlanShape& shape_;
  std::vector<First> first_;  // by stage
  CsvReader records_;
  std::vector<std::string_view> fields_;
  std::vector<PlanRow> rows_;
  std::vector<bool> seen_;
  std::string scratch_;
  std::uint32_t last_task_ = 0;
  std::optional<std::uint32_t> hex_of_;
  std::string hex_;
};

std::string header_of(const PlanShape& shape) {
  std::string header;
  for (const std::string& column : plan_columns(shape)) {
    if (!header.empty()) header += ',';
    csv_append(header, column);  // it is read back
  }
  return header + "\n";
}

// Is the text, byte for byte, what to_csv writes for this plan?
bool is_text_of(std::string_view csv, const Plan& plan) {
  std::string line = header_of(plan.shape());
  const RowWriter writer(plan.shape());
  std::uint32_t order = 0;
  for (const PlanRow& row : plan.rows()) {
    if (!csv.starts_with(line)) return false;
    csv.remove_prefix(line.size());
    line.clear();
    writer.append(line, order++, row);
  }
  return csv == line;
}
}  // namespace

std::string to_csv(const Plan& plan) {
  const RowWriter writer(plan.shape());
  std::string out = header_of(plan.shape()), first;
  writer.append(first, 0, plan.rows().front());
  constexpr std::size_t kLonger = 40;  // than the first, at a guess: numbers have more digits
  out.reserve(out.size() + plan.rows().size() * (first.size() + kLonger));
  std::uint32_t order = 0;
  for (const PlanRow& row : plan.rows()) writer.append(out, order++, row);
  return out;
}

Result<Plan> parse_plan(std::string_view file, std::string_view csv, PlanShape shape) {
  if (limits::kPlanFileBytes < csv.size())
    return Error{Errc::kInvalid, std::string(file) + ": found " + std::to_string(csv.size()) +
                                     " bytes, expected at most " +
                                     std::to_string(limits::kPlanFileBytes)};
  // Nearly every file is what its shape and seed draw, and drawing a million runs and comparing is
  // several times as fast as reading them field by field.  Any other file is read so.
  PROCTOR_TRY(Plan drawn, draw_plan(std::move(shape)));
  if (is_text_of(csv, drawn)) return drawn;
  PROCTOR_TRY(drawn.rows_, PlanReader(file, csv, drawn).read());
  return drawn;
}
}  // namespace proctor
