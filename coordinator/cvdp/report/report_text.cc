// report.json as report.txt.
#include <algorithm>

#include "coordinator/cvdp/report/report_cells.h"

namespace proctor::cvdp {
namespace {

// One row "name | total | pass | fail | rate".
std::vector<std::string> tally_row(std::string name, const Tally& t) {
  return {std::move(name), t.total.rounded(), t.passed.rounded(), t.failed.rounded(),
          percent(t.rate())};
}

std::string overall(const Object& report, const std::string& what) {
  Tally all;
  for (const auto& [name, category] : categories_of(report))
    for (const auto& d : kDifficulties) all.add(tally_of(*category, d.key, what + "s"));
  Grid g;
  g.rows = {{"Total " + what + "s", all.total.rounded()},
            {"Passed " + what + "s", all.passed.rounded()},
            {"Failed " + what + "s", all.failed.rounded()},
            {what + " Pass Rate", percent(all.rate())}};
  return section("Overall " + what + " Statistics", g);
}

std::string by_difficulty(const Object& report) {
  Grid g;
  g.header = {"Difficulty", "Total", "Pass", "Fail", "Rate"};
  for (const auto& d : kDifficulties) {
    Tally sum;
    for (const auto& [name, category] : categories_of(report))
      sum.add(tally_of(*category, d.key, "Problems"));
    if (sum.total.value != 0) g.rows.push_back(tally_row(d.title, sum));
  }
  return section("Problem Results by Difficulty", g);
}

bool any_scored(const Object& report) {
  const auto all = categories_of(report);
  return std::any_of(all.begin(), all.end(),
                     [](const auto& c) { return is_scored_category(c.first); });
}

std::string by_category(const Object& report, const std::string& what) {
  const bool problems = what == "Problem";
  Grid g;
  g.header = {"Cat", "Total", "Pass", "Fail", "Rate"};
  for (const auto& [name, category] : categories_of(report)) {
    Tally sum;
    for (const auto& d : kDifficulties) sum.add(tally_of(*category, d.key, what + "s"));
    g.rows.push_back(tally_row(problems ? category_title(name) : name, sum));
  }
  return section(what + " Results by Category", g) +
         std::string(problems && any_scored(report) ? kFootnote : "");
}

std::string matrix(const Object& report, const std::string& what) {
  const bool problems = what == "Problem";
  Grid g;
  g.header = {"Cat", "Easy", "Medium", "Hard", "Easy%", "Medium%", "Hard%"};
  for (const auto& [name, category] : categories_of(report)) {
    std::vector<std::string> row = {problems ? category_title(name) : name};
    std::vector<std::string> rates;
    for (const auto& d : kDifficulties) {
      const Tally t = tally_of(*category, d.key, what + "s");
      const bool none = t.total.value == 0;
      row.push_back(none ? "-" : t.passed.rounded() + "/" + t.total.rounded());
      rates.push_back(none ? "-" : percent(t.rate(), problems ? 2 : 1));
    }
    row.insert(row.end(), rates.begin(), rates.end());
    g.rows.push_back(std::move(row));
  }
  return section(what + " Results by Category and Difficulty", g) +
         std::string(problems && any_scored(report) ? kFootnote : "");
}

using TestsByProblem = std::map<std::string, std::vector<const Object*>>;

TestsByProblem tests_of(const Object& report, const char* list) {
  TestsByProblem out;
  const Value* details = report.find("test_details");
  const Value* tests =
      details == nullptr || details->object() == nullptr ? nullptr : details->object()->find(list);
  if (tests == nullptr || tests->array() == nullptr) return out;
  for (const Value& t : *tests->array())
    if (const std::string* id = text_at(t, "test_id")) out[*id].push_back(t.object());
  return out;
}

void list_problem(Grid& g, const std::string& id, const std::vector<const Object*>& tests) {
  const std::string number = std::to_string(
      1 + std::count_if(g.rows.begin(), g.rows.end(), [](const auto& r) { return !r[0].empty(); }));
  g.rows.push_back(
      {number, id,
       text_or(*tests[0], "category", "") + " (" + text_or(*tests[0], "difficulty", "") + ")",
       std::to_string(tests.size()), ""});
  for (std::size_t i = 0; i < tests.size(); ++i) {
    g.rows.push_back({"", "\xE2\x86\xB3 Test " + std::to_string(i + 1) + ": " + id, "", "",
                      "Log: " + text_or(*tests[i], "log", "Not Available")});
    const std::string error =
        text_or(*tests[i], "agent_error", text_or(*tests[i], "error_msg", ""));
    if (!error.empty()) g.rows.push_back({"", "Error:", "", "", error});
  }
}

std::string lists(const Object& report) {
  const TestsByProblem failing = tests_of(report, "failing_tests");
  const TestsByProblem passing = tests_of(report, "passing_tests");
  Grid bad;
  bad.header = {"#", "Problem ID", "Category", "Failed Tests", "Log/Error"};
  for (const auto& [id, tests] : failing) list_problem(bad, id, tests);
  Grid good;
  good.header = {"#", "Problem ID", "Category", "Passed Tests", "Log/Status"};
  for (const auto& [id, tests] : passing)
    if (!failing.contains(id)) list_problem(good, id, tests);
  return (bad.rows.empty() ? "\n=== Failing Problems ===\nNo failing problems found.\n"
                           : section("Failing Problems", bad)) +
         (good.rows.empty() ? "\n=== Passing Problems ===\nNo passing problems found.\n"
                            : section("Passing Problems", good));
}

}  // namespace

std::vector<std::pair<std::string, const Object*>> categories_of(const Object& report) {
  std::vector<std::pair<std::string, const Object*>> out;
  for (const Member& m : report)
    if (m.key != "metadata" && m.key != "test_details" && m.value.object() != nullptr)
      out.emplace_back(m.key, m.value.object());
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return out;
}

Tally tally_of(const Object& category, const char* difficulty, const std::string& what) {
  Tally out;
  const Value* cell = category.find(difficulty);
  if (cell == nullptr || cell->object() == nullptr) return out;
  out.passed = count_of(cell->object()->find("Passed " + what));
  out.failed = count_of(cell->object()->find("Failed " + what));
  out.total = count_of(cell->object()->find("Total " + what));
  return out;
}

std::string category_title(const std::string& category) {
  return is_scored_category(category) ? category + "*" : category;
}

std::string text_or(const Object& object, std::string_view key, std::string_view otherwise) {
  const Value* v = object.find(key);
  return v == nullptr || v->string() == nullptr || v->string()->empty() ? std::string(otherwise)
                                                                        : *v->string();
}

std::string report_head(const Object& metadata) {
  const auto yes = [&](const char* key) {
    const Value* v = metadata.find(key);
    return v != nullptr && v->truthy();
  };
  std::string out =
      "\n=== Benchmark Report ===\nDataset: " + text_or(metadata, "dataset_path", "Unknown") +
      "\nGenerated: " + text_or(metadata, "timestamp", "Unknown") +
      "\n\n=== Run Configuration ===\nGolden Mode: " + (yes("golden_mode") ? "Yes" : "No") +
      "\nPatches Disabled: " + (yes("disable_patch") ? "Yes" : "No") + "\n";
  if (!yes("golden_mode"))
    out += "Model/Agent: " + text_or(metadata, "model_agent", "Unknown") + "\n";
  if (metadata.find("prompts") != nullptr)  // upstream's reports have none
    out +=
        "Prompts: " + text_or(metadata, "prompts", "Unknown") +
        " (upstream's parts and answer forms in other sentences: scores differ from upstream's)\n";
  return out;
}

Result<std::string> render_report(const Value& report) {
  if (report.object() == nullptr || object_at(report, "metadata") == nullptr)
    return Error{Errc::kInvalid, "no report: a mapping with \"metadata\" is expected"};
  const Object& r = *report.object();
  return report_head(*object_at(report, "metadata")) + std::string(23, '=') + "\n\n" +
         overall(r, "Test") + overall(r, "Problem") + by_difficulty(r) + by_category(r, "Test") +
         by_category(r, "Problem") + matrix(r, "Test") + matrix(r, "Problem") + lists(r);
}

}  // namespace proctor::cvdp
