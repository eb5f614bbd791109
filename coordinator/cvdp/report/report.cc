#include "coordinator/cvdp/report/report.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "common/base/text.h"
#include "coordinator/cvdp/dataset/record.h"

namespace proctor::cvdp {
namespace {
enum class ColumnKind { kWhole, kReal, kText };

std::size_t width_of(std::string_view line) {
  std::size_t n = 0;
  for (std::size_t at = 0; at < line.size(); ++n) next_code_point(line, at);
  return n;
}
std::size_t width_of_lines(const std::string& cell) {
  std::size_t n = 0;
  for (const std::string_view line : split_lines(cell)) n = std::max(n, width_of(line));
  return n;
}

ColumnKind kind_of(const std::string& cell) {
  const std::string_view s = strip_text(cell);
  std::size_t at = !s.empty() && (s[0] == '-' || s[0] == '+') ? 1 : 0;
  std::size_t digits = 0;
  bool point = false;
  for (; at < s.size(); ++at) {
    if (s[at] == '.' && !point) {
      point = true;
    } else if (is_digit(s[at])) {
      ++digits;
    } else {
      break;
    }
  }
  if (digits == 0) return ColumnKind::kText;
  if (at == s.size()) return point ? ColumnKind::kReal : ColumnKind::kWhole;
  if (s[at] != 'e' && s[at] != 'E') return ColumnKind::kText;
  if (++at < s.size() && (s[at] == '-' || s[at] == '+')) ++at;
  return all_digits(s.substr(at)) ? ColumnKind::kReal : ColumnKind::kText;
}

// Digits behind the point, counting the point; 0: there is none.
std::size_t tail_of(const std::string& number) {
  std::size_t at = number.rfind('.');
  if (at == std::string::npos) at = number.find_first_of("eE");
  return at == std::string::npos ? 0 : number.size() - at;
}

void align_numbers(std::vector<std::string*>& cells, ColumnKind kind) {
  std::size_t tail = 0;
  for (std::string* cell : cells) {
    if (kind == ColumnKind::kReal) *cell = six_digits(std::strtod(cell->c_str(), nullptr));
    tail = std::max(tail, tail_of(*cell));
  }
  for (std::string* cell : cells) cell->append(tail - tail_of(*cell), ' ');
}

std::string padded(std::string_view line, std::size_t width, bool left) {
  const std::string space(width - std::min(width, width_of(line)), ' ');
  return left ? std::string(line) + space : space + std::string(line);
}

class GridText {
 public:
  explicit GridText(Grid grid) : g_(std::move(grid)) {
    const std::size_t columns =
        g_.header.empty() ? (g_.rows.empty() ? 0 : g_.rows[0].size()) : g_.header.size();
    for (std::size_t c = 0; c < columns; ++c) column(c);
  }
  std::string text() const {
    std::string out = rule('-');
    if (!g_.header.empty()) out += row(g_.header) + rule('=');
    for (const auto& r : g_.rows) out += row(r) + rule('-');
    out.pop_back();
    return out;
  }

 private:
  void column(std::size_t c) {
    std::vector<std::string*> cells;
    ColumnKind kind = ColumnKind::kWhole;
    for (auto& row : g_.rows) {
      cells.push_back(&row[c]);
      kind = std::max(kind, kind_of(row[c]));
    }
    constexpr std::size_t kHeaderRoom = 2;
    std::size_t width = g_.header.empty() ? 0 : width_of_lines(g_.header[c]) + kHeaderRoom;
    if (kind == ColumnKind::kText)
      for (std::string* cell : cells) *cell = std::string(strip_text(*cell));
    else
      align_numbers(cells, kind);
    for (const std::string* cell : cells) width = std::max(width, width_of_lines(*cell));
    widths_.push_back(width);
    left_.push_back(kind == ColumnKind::kText || cells.empty());
  }
  std::string rule(char mark) const {
    std::string out = "+";
    for (const std::size_t w : widths_) out += std::string(w + 2, mark) + "+";
    return out + "\n";
  }
  std::string row(const std::vector<std::string>& cells) const {
    std::vector<std::vector<std::string_view>> lines;
    std::size_t height = 1;
    for (const std::string& cell : cells) {
      lines.push_back(split_lines(cell));
      height = std::max(height, lines.back().size());
    }
    std::string out;
    for (std::size_t i = 0; i < height; ++i) {
      out += "|";
      for (std::size_t c = 0; c < cells.size(); ++c)
        out +=
            " " +
            padded(i < lines[c].size() ? lines[c][i] : std::string_view(), widths_[c], left_[c]) +
            " |";
      out += "\n";
    }
    return out;
  }
  Grid g_;
  std::vector<std::size_t> widths_;
  std::vector<bool> left_;
};
}  // namespace

std::string render_grid(const Grid& grid) {
  return GridText(grid).text();
}

// raw_result.json as report.json.

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
    const Array* tests = array_at(result.object(), "tests");
    std::string why;
    if (category == nullptr || difficulty == nullptr)
      why = "no category or no difficulty";
    else if (!is_difficulty(*difficulty))
      why = "difficulty \"" + printable(*difficulty, 40) + "\"";
    else if (*category == "metadata" || *category == "test_details")
      why = "category \"" + *category + "\"";
    else if (tests == nullptr)
      why = "no list of tests";
    if (!why.empty()) return report_.left_out.push_back(id + ": " + why);
    judge(id, counts(*category), *difficulty, *tests);
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
    out.append("test_details", object_of("failing_tests", std::move(failing_), "passing_tests",
                                         std::move(passing_)));
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
    } else if (const std::optional<double> score = score_of(tests)) {
      cell.problems.passed.add(*score);
      cell.problems.failed.add(1 - *score);
    } else {
      ++cell.problems.failed;
    }
  }

  // The mean of the scores of one kind: bleu_score where there is any, else llm_score.
  static std::optional<double> score_of(const Array& tests) {
    for (const char* key : {"bleu_score", "llm_score"}) {
      double sum = 0;
      std::size_t n = 0;
      for (const Value& t : tests) {
        const Value* v = value_at(t.object(), key);
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
      const Value* v = value_at(t.object(), key);
      return v == nullptr ? Value() : *v;
    };
    // false is a result of 0 too; true, null and no number are none.
    const bool passed = member("result").as_double() == 0.0;
    category.logs.push_back(object_of("id", id, "log", member("log")));
    Object detail = object_of("test_id", id, "category", category.name, "difficulty", difficulty,
                              "test_index", static_cast<std::int64_t>(index));
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
  Object out = object_of("dataset_path", m.dataset_path, "timestamp", m.timestamp, "golden_mode",
                         m.golden_mode, "disable_patch", m.disable_patch, "model_agent",
                         m.model_agent, "force_agentic", m.force_agentic,
                         "force_agentic_include_golden", m.force_agentic_include_golden,
                         "force_agentic_include_harness", m.force_agentic_include_harness,
                         "force_copilot", m.force_copilot, "copilot_refine", m.copilot_refine);
  if (!m.prompts.empty()) out.append("prompts", m.prompts);
  return out;
}

Result<Report> make_report(const Value& raw_result, const ReportMetadata& metadata) {
  if (raw_result.object() == nullptr)
    return invalid("a mapping of problems is expected, found {}", raw_result.kind());
  ReportMaker maker;
  for (const Member& m : *raw_result.object()) maker.problem(m.key, m.value);
  return maker.finish(metadata);
}

// report.json as report.txt.

namespace {
std::string overall(const Object& report, const std::string& what) {
  Tally all;
  for (const auto& [name, category] : categories_of(report))
    for (const auto& d : kDifficulties) all.add(tally_of(*category, d.key, what + "s"));
  return section("Overall " + what + " Statistics", overall_grid(what, all));
}

std::string by_difficulty(const Object& report) {
  Grid g{{"Difficulty", "Total", "Pass", "Fail", "Rate"}, {}};
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
  Grid g{{"Cat", "Total", "Pass", "Fail", "Rate"}, {}};
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
  Grid g{{"Cat", "Easy", "Medium", "Hard", "Easy%", "Medium%", "Hard%"}, {}};
  for (const auto& [name, category] : categories_of(report)) {
    std::vector<std::string> row = {problems ? category_title(name) : name};
    std::vector<std::string> rates;
    for (const auto& d : kDifficulties) {
      const Tally t = tally_of(*category, d.key, what + "s");
      row.push_back(cell_text(t));
      rates.push_back(t.total.value == 0 ? "-" : percent(t.rate(), problems ? 2 : 1));
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
  const Array* tests = array_at(object_at(&report, "test_details"), list);
  if (tests == nullptr) return out;
  for (const Value& t : *tests)
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
  Grid bad{{"#", "Problem ID", "Category", "Failed Tests", "Log/Error"}, {}};
  for (const auto& [id, tests] : failing) list_problem(bad, id, tests);
  Grid good{{"#", "Problem ID", "Category", "Passed Tests", "Log/Status"}, {}};
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
  const Object* cell = object_at(&category, difficulty);
  return {count_of(value_at(cell, "Passed " + what)), count_of(value_at(cell, "Failed " + what)),
          count_of(value_at(cell, "Total " + what))};
}

std::vector<std::string> tally_row(std::string name, const Tally& t) {
  return {std::move(name), t.total.rounded(), t.passed.rounded(), t.failed.rounded(),
          percent(t.rate())};
}

Grid overall_grid(const std::string& what, const Tally& all) {
  return {{},
          {{"Total " + what + "s", all.total.rounded()},
           {"Passed " + what + "s", all.passed.rounded()},
           {"Failed " + what + "s", all.failed.rounded()},
           {what + " Pass Rate", percent(all.rate())}}};
}

std::string cell_text(const Tally& t) {
  return t.total.value == 0 ? "-" : t.passed.rounded() + "/" + t.total.rounded();
}

std::string category_title(const std::string& category) {
  return is_scored_category(category) ? category + "*" : category;
}

std::string text_or(const Object& object, std::string_view key, std::string_view otherwise) {
  const std::string* s = text_at(object, key);
  return s == nullptr || s->empty() ? std::string(otherwise) : *s;
}

std::string report_head(const Object& metadata) {
  const auto yes = [&](const char* key) {
    const Value* v = value_at(&metadata, key);
    return v != nullptr && v->truthy();
  };
  std::string out = fmt::format(
      "\n=== Benchmark Report ===\nDataset: {}\nGenerated: {}\n\n=== Run Configuration ===\n"
      "Golden Mode: {}\nPatches Disabled: {}\n",
      text_or(metadata, "dataset_path", "Unknown"), text_or(metadata, "timestamp", "Unknown"),
      yes("golden_mode") ? "Yes" : "No", yes("disable_patch") ? "Yes" : "No");
  if (!yes("golden_mode"))
    out += "Model/Agent: " + text_or(metadata, "model_agent", "Unknown") + "\n";
  if (value_at(&metadata, "prompts") != nullptr)  // upstream's reports have none
    out +=
        "Prompts: " + text_or(metadata, "prompts", "Unknown") +
        " (upstream's parts and answer forms in other sentences: scores differ from upstream's)\n";
  return out;
}

Result<std::string> render_report(const Value& report) {
  const Object* metadata = object_at(report, "metadata");
  if (metadata == nullptr) return invalid("no report: a mapping with \"metadata\" is expected");
  const Object& r = *report.object();
  return report_head(*metadata) + std::string(23, '=') + "\n\n" + overall(r, "Test") +
         overall(r, "Problem") + by_difficulty(r) + by_category(r, "Test") +
         by_category(r, "Problem") + matrix(r, "Test") + matrix(r, "Problem") + lists(r);
}
}  // namespace proctor::cvdp
