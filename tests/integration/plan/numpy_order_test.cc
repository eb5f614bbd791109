// The lines of Python in docs/plan.md, run by the real NumPy over plans that we drew.
#include <doctest/doctest.h>

#include <random>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/subprocess.h"
#include "common/plan/plan.h"
#include "tests/support/paths.h"

using namespace proctor;

namespace {

constexpr int kShapes = 200;

// Every ```python block of the page, one after the other.
std::string python_of(const std::string& page) {
  std::string code;
  constexpr std::string_view kOpen = "```python\n";
  for (std::size_t at = page.find(kOpen); at != std::string::npos; at = page.find(kOpen, at)) {
    at += kOpen.size();
    const std::size_t end = page.find("```", at);
    REQUIRE(end != std::string::npos);
    code += page.substr(at, end - at);
    at = end + 3;
  }
  return code;
}

PlanShape random_shape(std::mt19937& random) {
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  // Values that a naive sort, split or unquoting would get wrong.
  const char* values[] = {"python", "C, \"old\"", "\xC3\xA9t\xC3\xA9", "Go", "", "rust", "10", "9"};
  PlanShape shape;
  const char* keys[] = {"language", "type", "dependencies"};
  const std::uint32_t key_count = below(4);
  for (std::uint32_t k = 0; k < key_count; ++k) shape.strata_keys.emplace_back(keys[k]);
  const std::uint32_t task_count = 1 + below(below(5) == 0 ? 120 : 12);
  for (std::uint32_t t = 0; t < task_count; ++t) {
    PlanTask task;
    task.id = "task-" + std::to_string(random() % 1000) + (below(8) == 0 ? "\xC3\xB6" : "") + "-" +
              std::to_string(t);
    task.digest = sha256(task.id);
    for (std::uint32_t k = 0; k < key_count; ++k) task.strata.emplace_back(values[below(8)]);
    shape.tasks.push_back(std::move(task));
  }
  const std::uint32_t method_count = 1 + below(6);
  for (std::uint32_t m = 0; m < method_count; ++m)
    shape.methods.push_back("method" + std::to_string(method_count - m));
  const std::uint32_t stage_count = 1 + below(3);
  for (std::uint32_t s = 0; s < stage_count; ++s) {
    PlanStage& stage =
        shape.stages.emplace_back(PlanStage{"stage" + std::to_string(s), 1 + below(4)});
    if (below(3) == 0) stage.order = StageOrder::kTasks;
    if (s + 1 == stage_count) break;  // the last one has every task
    if (below(3) == 0) stage.per_stratum = 1 + below(3);
    if (stage.per_stratum || below(3) != 0) continue;
    for (const PlanTask& t : shape.tasks)
      if (stage.tasks.empty() || below(2) == 0) stage.tasks.push_back(t.id);
  }
  shape.seed = below(4) == 0 ? kPlannedSeed : static_cast<std::uint32_t>(random());
  return shape;
}

// As the registration has it (registration.cc), and as the lines of the page read it.
std::string draws_of(const PlanShape& shape) {
  Json out = Json::object();
  for (const PlanStage& stage : shape.stages) {
    Json draw{{"order", to_string(stage.order)}, {"tasks", nullptr}};
    if (stage.per_stratum) draw["tasks"] = {{"per_stratum", *stage.per_stratum}};
    if (!stage.tasks.empty()) draw["tasks"] = stage.tasks;
    if (!stage.has_every_task() || stage.order != StageOrder::kRounds) out[stage.name] = draw;
  }
  return "json.loads(r'" + out.dump(-1, Json::Utf8::kStrict, true) + "')";
}

}  // namespace

TEST_SUITE("plan") {
  TEST_CASE(
      "the lines of Python in docs/plan.md derive 200 plans bit for bit with the real NumPy") {
    const auto page = read_file(testing::source_dir() / "docs/plan.md", std::size_t{1} << 20);
    REQUIRE(page.ok());
    const std::string code = python_of(*page);
    REQUIRE(code.find("assert order ==") != std::string::npos);
    REQUIRE(code.find("assert list(seeds) ==") != std::string::npos);

    auto dir = TempDir::create();
    REQUIRE(dir.ok());
    std::mt19937 random(20260307);
    std::string program = "import json\ncompiled = compile(" +
                          std::string("open('lines.py').read()") +
                          ", 'docs/plan.md', 'exec')\nchecked = 0\nfor path, seed, draws in [\n";
    std::size_t runs = 0, staged = 0;
    for (int i = 0; i < kShapes; ++i) {
      const PlanShape shape = random_shape(random);
      const auto plan = draw_plan(shape);
      REQUIRE(plan.ok());
      runs += plan->rows().size();
      const std::string name = "plan" + std::to_string(i) + ".csv";
      REQUIRE(write_file(dir->path() / name, to_csv(*plan), Durability::kLazy).ok());
      program += "('" + name + "', " + std::to_string(shape.seed) + ", " + draws_of(shape) + "),\n";
      staged += draws_of(shape) == "json.loads(r'{}')" ? 0 : 1;
    }
    program +=
        "]:\n  exec(compiled, {'path': path, 'seed': seed, 'draws': draws})\n  checked += "
        "1\nprint('checked', "
        "checked)\n";
    REQUIRE(write_file(dir->path() / "lines.py", code, Durability::kLazy).ok());
    REQUIRE(write_file(dir->path() / "all.py", program, Durability::kLazy).ok());

    CommandSpec spec;
    spec.argv = {"/usr/bin/python3", "-W", "ignore::ResourceWarning", "all.py"};
    spec.cwd = dir->path();
    const auto outcome = run_command(spec);
    REQUIRE(outcome.ok());
    CAPTURE(outcome->err);
    CHECK(outcome->exit_code == 0);
    CHECK(outcome->out == "checked 200\n");
    CHECK(5000 < runs);
    CHECK(40 < staged);
  }

  TEST_CASE("the lines of Python notice a plan whose order or seeds were changed") {
    const auto page = read_file(testing::source_dir() / "docs/plan.md", std::size_t{1} << 20);
    REQUIRE(page.ok());
    auto dir = TempDir::create();
    REQUIRE(dir.ok());
    std::mt19937 random(7);
    PlanShape shape = random_shape(random);
    const auto plan = draw_plan(shape);
    REQUIRE(plan.ok());
    REQUIRE(write_file(dir->path() / "plan.csv", to_csv(*plan), Durability::kLazy).ok());
    const std::string program = "import json\npath, seed, draws = 'plan.csv', " +
                                std::to_string(shape.seed + 1) + ", " + draws_of(shape) + "\n" +
                                python_of(*page);
    REQUIRE(write_file(dir->path() / "all.py", program, Durability::kLazy).ok());
    CommandSpec spec;
    spec.argv = {"/usr/bin/python3", "all.py"};
    spec.cwd = dir->path();
    const auto outcome = run_command(spec);
    REQUIRE(outcome.ok());
    CHECK(outcome->exit_code == 1);
    CHECK(outcome->err.find("AssertionError") != std::string::npos);
  }
}
