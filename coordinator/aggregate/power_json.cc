// power_analysis.json, and what every number in it was computed from.  Numbers are texts of twelve
// digits: a reader compares what was written, not what its floating point made of it.
#include "common/base/version.h"
#include "coordinator/aggregate/ordered_json.h"
#include "coordinator/aggregate/power_study.h"

namespace proctor {
namespace {

using aggregate::dumped;
using aggregate::Ordered;

constexpr const char* kLabel = "proposed protocol, not a result";

std::string_view spend_word(Spending rule) {
  return rule == Spending::kPocock ? "pocock" : "obrien_fleming";
}

Ordered looks_json(const PowerStudy& s) {
  if (!s.input.looks) return nullptr;
  Ordered t = Ordered::array(), z = Ordered::array();
  for (std::size_t i = 0; i < s.looks_at.size(); ++i) {
    // A look too early to spend anything has no bound, and is none.
    if (!s.bounds[i]) continue;
    t.push_back(twelve_digits(s.looks_at[i]));
    z.push_back(twelve_digits(*s.bounds[i]));
  }
  return {{"spend", spend_word(s.input.looks->spend)}, {"t", std::move(t)}, {"z", std::move(z)}};
}

Ordered point_json(const PowerPoint& p, const PowerInput& input) {
  Ordered out;
  out["p"] = Ordered::array({twelve_digits(input.p + input.effect), twelve_digits(input.p)});
  out["rho"] = p.design ? Ordered(twelve_digits(p.design->icc)) : Ordered(nullptr);
  out["r"] = p.design ? Ordered(twelve_digits(p.design->correlation)) : Ordered(nullptr);
  out["v"] = twelve_digits(p.variance);
  out["power_normal"] = twelve_digits(p.power_normal);
  out["power_t"] = twelve_digits(p.power);
  if (p.flips) out["power_flips"] = twelve_digits(*p.flips);
  out["source"] = p.design ? "assumed" : "pilot";
  return out;
}

Ordered decision_json(const PowerStudy& s) {
  Ordered needs = nullptr;
  if (s.needs_tasks && s.needs_difference)
    needs = {{"tasks", *s.needs_tasks}, {"effect", twelve_digits(*s.needs_difference)}};
  return {{"supported", s.supported}, {"worst", s.worst}, {"needs", std::move(needs)}};
}

// Numbers with the formula and the inputs they come from.
class Values {
 public:
  explicit Values(const PowerStudy& study) : study_(study) {}

  void add(const char* id, const char* formula, const Ordered& inputs,
           const std::optional<double>& value) {
    if (!value) return;
    out_.push_back(
        {{"id", id}, {"formula", formula}, {"inputs", inputs}, {"value", twelve_digits(*value)}});
  }

  void add_point(std::size_t i) {
    const PowerPoint& p = study_.points[i];
    const PowerInput& input = study_.input;
    const auto id = [&](const char* of) { return of + ("[" + std::to_string(i) + "]"); };
    Ordered v = {{"k", std::to_string(input.runs)}};
    if (p.design) {
      v["pA"] = twelve_digits(p.design->p_a);
      v["pB"] = twelve_digits(p.design->p_b);
      v["rho"] = twelve_digits(p.design->icc);
      v["r"] = twelve_digits(p.design->correlation);
    } else {
      v["V_up"] = twelve_digits(input.pilot->upper);
      v["pilot_k"] = std::to_string(input.pilot->runs);
      v["pilot_n"] = std::to_string(input.pilot->tasks);
    }
    if (input.repositories) {
      v["repository_tasks"] = twelve_digits(input.repositories->tasks);
      v["repository_spread"] = twelve_digits(input.repositories->spread);
    }
    const char* formula = p.design ? "paired_v" : "v_up";
    add(id("v").c_str(), input.repositories ? "repository_v" : formula, v, p.variance);
    const Ordered at = {{"alpha", twelve_digits(input.level())},
                        {"effect", twelve_digits(input.effect)},
                        {"n", std::to_string(study_.tasks)},
                        {"v", twelve_digits(p.variance)}};
    Ordered wanted = at;
    wanted["power"] = twelve_digits(input.power);
    const bool mcnemar = input.test == PowerInput::Test::kMcNemar;
    add(id("power_normal").c_str(), "power_normal", at, p.power_normal);
    add(id("power").c_str(), mcnemar ? "mcnemar_exact" : "power_t", at, p.power);
    add(id("power_mid_p").c_str(), "mcnemar_midp", at, p.mid_p);
    add(id("power_exact").c_str(), "power_exact_t", at, p.exact);
    add(id("power_flips").c_str(), "power_flips", at, p.flips);
    add(id("power_sequential").c_str(), "power_sequential", at, p.sequential);
    wanted.erase("n");
    add(id("n_normal").c_str(), "n_normal", wanted,
        tasks_by_variance(input.effect, p.variance, input.level(), input.power));
    if (p.tasks)
      add(id("n").c_str(), mcnemar ? "mcnemar_n" : "n_t", wanted, static_cast<double>(*p.tasks));
    Ordered least = at;
    least.erase("effect");
    least["power"] = twelve_digits(input.power);
    add(id("mde").c_str(), "mde", least, p.difference);
  }

  void add_bounds() {
    for (std::size_t i = 0; i < study_.bounds.size(); ++i)
      add(("bound[" + std::to_string(i) + "]").c_str(), "boundary",
          {{"alpha", twelve_digits(study_.input.level())},
           {"spend", spend_word(study_.input.looks->spend)},
           {"t", twelve_digits(study_.looks_at[i])}},
          study_.bounds[i]);
  }

  Ordered take() { return std::move(out_); }

 private:
  const PowerStudy& study_;
  Ordered out_ = Ordered::array();
};

}  // namespace

std::string render_power_json(const PowerStudy& s) {
  Ordered comparisons = Ordered::array(), points = Ordered::array();
  for (const auto& [a, b] : s.input.comparisons) comparisons.push_back(Ordered::array({a, b}));
  for (const PowerPoint& p : s.points) points.push_back(point_json(p, s.input));
  Ordered out;
  out["format"] = "proctor-power-1";
  out["label"] = kLabel;
  out["campaign"] = s.input.campaign;
  out["comparisons"] = std::move(comparisons);
  out["test"] = s.input.test == PowerInput::Test::kMcNemar ? "mcnemar" : "paired_t";
  out["alpha"] = twelve_digits(s.input.alpha);
  out["family"] = s.input.family;
  out["fewest_tasks"] = s.fewest_tasks;
  out["effect"] = twelve_digits(s.input.effect);
  out["target"] = twelve_digits(s.input.power);
  out["tasks"] = s.tasks;
  if (s.input.repositories)
    out["repositories"] = {{"tasks_of_each", twelve_digits(s.input.repositories->tasks)},
                           {"spread", twelve_digits(s.input.repositories->spread)}};
  out["analysed_replicates"] = s.input.runs;
  out["looks"] = looks_json(s);
  out["points"] = std::move(points);
  out["decision"] = decision_json(s);
  return dumped(out) + "\n";
}

std::string render_power_values_json(const PowerStudy& s, const std::string& of) {
  Values values(s);
  for (std::size_t i = 0; i < s.points.size(); ++i) values.add_point(i);
  values.add_bounds();
  const Ordered out = {{"format", "proctor-compute-report-1"},
                       {"of", of},
                       {"tool_version", kVersion},
                       {"values", values.take()}};
  return dumped(out) + "\n";
}

std::string render_power_curve_json(const PowerStudy& s) {
  const Design worst = assumed_worst(s);
  Ordered points = Ordered::array();
  for (const BudgetPoint& p : s.curve)
    points.push_back({{"budget_micros", p.budget},
                      {"cost_micros", p.cost},
                      {"n", p.tasks},
                      {"k", p.runs},
                      {"mde", twelve_digits(p.difference)},
                      {"half_width", twelve_digits(p.half_width)}});
  const Ordered out = {
      {"format", "proctor-cost-precision-1"},
      {"label", "projection, not a result"},
      {"assume",
       {{"p", twelve_digits(worst.p_b)},
        {"r", twelve_digits(worst.correlation)},
        {"rho", twelve_digits(worst.icc)}}},
      {"costs_micros",
       {{"task", s.input.costs.task}, {"a", s.input.costs.a}, {"b", s.input.costs.b}}},
      {"points", std::move(points)}};
  return dumped(out) + "\n";
}

}  // namespace proctor
