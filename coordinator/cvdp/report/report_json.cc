// raw_result.json as report.json.
#include <algorithm>

#include "common/base/text.h"
#include "coordinator/cvdp/dataset/record.h"
#include "coordinator/cvdp/pycompat/decimal.h"
#include "coordinator/cvdp/report/report_cells.h"

namespace proctor::cvdp {
namespace {

struct CellCounts {
  Tally tests;
  Tally problems;
};

struct CategoryCounts {
  std::string name;
  std::array<CellCounts, kDifficulties.size()> cells;
  Array logs;
};

void put_tally(Object& out, const Tally& t, const std::string& what) {
  out.set("Passed " + what, t.passed.json());
  out.set("Failed " + what, t.failed.json());
  out.set("Total " + what, t.total.json());
  out.set("Passed " + what + " (%)", t.total.value == 0 ? Value(0) : real(t.rate()));
}

class ReportMaker {
 public:
  void problem(const std::string& id, const Value& result) {
    const std::string* category = text_at(result, "category");
    const std::string* difficulty = text_at(result, "difficulty");
    const Value* tests = result.object() == nullptr ? nullptr : result.object()->find("tests");
    std::string why;
    if (category == nullptr || difficulty == nullptr)
      why = "no category or no difficulty";
    else if (!is_difficulty(*difficulty))
      why = "difficulty \"" + printable(*difficulty, 40) + "\"";
    else if (*category == "metadata" || *category == "test_details")
      why = "category \"" + *category + "\"";
    else if (tests == nullptr || tests->array() == nullptr)
      why = "no list of tests";
    if (!why.empty()) return report_.left_out.push_back(id + ": " + why);
    judge(id, counts(*category), *difficulty, *tests->array());
  }

  Report finish(const ReportMetadata& metadata) {
    Object out;
    for (CategoryCounts& c : categories_) {
      Object category;
      for (std::size_t d = 0; d < kDifficulties.size(); ++d) {
        Object cell;
        put_tally(cell, c.cells[d].tests, "Tests");
        put_tally(cell, c.cells[d].problems, "Problems");
        category.set(kDifficulties[d].key, std::move(cell));
      }
      category.set("logs", std::move(c.logs));
      out.append(c.name, std::move(category));
    }
    out.append("metadata", metadata_json(metadata));
    Object details;
    details.append("failing_tests", std::move(failing_));
    details.append("passing_tests", std::move(passing_));
    out.append("test_details", std::move(details));
    report_.json = Value(std::move(out));
    return std::move(report_);
  }

 private:
  CategoryCounts& counts(const std::string& category) {
    for (CategoryCounts& c : categories_)
      if (c.name == category) return c;
    return categories_.emplace_back(CategoryCounts{category, {}, {}});
  }

  void judge(const std::string& id, CategoryCounts& category, const std::string& difficulty,
             const Array& tests) {
    std::size_t d = 0;
    while (difficulty != kDifficulties[d].key) ++d;
    CellCounts& cell = category.cells[d];
    bool all = true;
    for (std::size_t i = 0; i < tests.size(); ++i) {
      const bool passed = test(id, category, difficulty, tests[i], i);
      all = all && passed;
      ++(passed ? cell.tests.passed : cell.tests.failed);
      ++cell.tests.total;
    }
    ++cell.problems.total;
    if (!is_scored_category(category.name)) {
      ++(all ? cell.problems.passed : cell.problems.failed);
      return;
    }
    const std::optional<double> score = score_of(tests);
    if (!score) {
      ++cell.problems.failed;
      return;
    }
    cell.problems.passed.add(*score);
    cell.problems.failed.add(1 - *score);
  }

  // The mean of the scores of one kind: bleu_score where there is any, else llm_score.
  static std::optional<double> score_of(const Array& tests) {
    for (const char* key : {"bleu_score", "llm_score"}) {
      double sum = 0;
      std::size_t n = 0;
      for (const Value& t : tests) {
        const Value* v = t.object() == nullptr ? nullptr : t.object()->find(key);
        const auto score = v == nullptr || v->number() == nullptr ? std::nullopt : v->as_double();
        if (!score) continue;
        sum += *score;
        ++n;
      }
      if (n != 0) return sum / static_cast<double>(n);
    }
    return std::nullopt;
  }

  bool test(const std::string& id, CategoryCounts& category, const std::string& difficulty,
            const Value& t, std::size_t index) {
    const auto member = [&](const char* key) {
      const Value* v = t.object() == nullptr ? nullptr : t.object()->find(key);
      return v == nullptr ? Value() : *v;
    };
    // false is a result of 0 too; true, null and no number are none.
    const bool passed = member("result").as_double() == 0.0;
    Object log;
    log.append("id", id);
    log.append("log", member("log"));
    category.logs.push_back(std::move(log));
    Object detail;
    detail.append("test_id", id);
    detail.append("category", category.name);
    detail.append("difficulty", difficulty);
    detail.append("test_index", static_cast<std::int64_t>(index));
    if (!passed) {
      detail.append("error_msg", member("error_msg"));
      detail.append("agent_error", member("agent_error"));
    }
    detail.append("log", member("log"));
    (passed ? passing_ : failing_).push_back(std::move(detail));
    return passed;
  }

  Report report_;
  std::vector<CategoryCounts> categories_;
  Array failing_;
  Array passing_;
};

}  // namespace

bool is_scored_category(std::string_view category) {
  return is_comprehension(category_number(category));
}

Object metadata_json(const ReportMetadata& m) {
  Object out;
  out.append("dataset_path", m.dataset_path);
  out.append("timestamp", m.timestamp);
  out.append("golden_mode", m.golden_mode);
  out.append("disable_patch", m.disable_patch);
  out.append("model_agent", m.model_agent);
  out.append("force_agentic", m.force_agentic);
  out.append("force_agentic_include_golden", m.force_agentic_include_golden);
  out.append("force_agentic_include_harness", m.force_agentic_include_harness);
  out.append("force_copilot", m.force_copilot);
  out.append("copilot_refine", m.copilot_refine);
  if (!m.prompts.empty()) out.append("prompts", m.prompts);
  return out;
}

Result<Report> make_report(const Value& raw_result, const ReportMetadata& metadata) {
  if (raw_result.object() == nullptr)
    return Error{Errc::kInvalid,
                 "a mapping of problems is expected, found " + std::string(raw_result.kind())};
  ReportMaker maker;
  for (const Member& m : *raw_result.object()) maker.problem(m.key, m.value);
  return maker.finish(metadata);
}

}  // namespace proctor::cvdp
