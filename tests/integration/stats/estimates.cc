// A data set a line on standard input, as JSON; a line of every estimate that reports make of it on
// standard output: {"name": number or null}.  differential_test.py holds them against SciPy's.
#include <cmath>
#include <iostream>
#include <string>

#include "common/base/json.h"
#include "common/stats/amounts.h"
#include "common/stats/clustered.h"
#include "common/stats/heterogeneity.h"
#include "common/stats/interval.h"
#include "common/stats/paired.h"
#include "common/stats/rerun.h"
#include "common/stats/resample.h"
#include "common/stats/simultaneous.h"
#include "coordinator/aggregate/analysis.h"

using namespace proctor;

namespace {

class Answers {
 public:
  template <class T>
  void put(const std::string& name, const std::optional<T>& value) {
    out_[name] = value ? Json(*value) : Json(nullptr);
  }
  void put(const std::string& name, double value) { out_[name] = value; }
  void put(const std::string& name, const std::optional<Interval>& interval) {
    out_[name + ".low"] = interval ? Json(interval->low) : Json(nullptr);
    out_[name + ".high"] = interval ? Json(interval->high) : Json(nullptr);
  }
  void put(const std::string& name, const Estimate& e) {
    put(name, e.value);
    put(name + ".se", e.standard_error);
    put(name, e.interval);
  }
  void put(const std::string& name, const std::optional<Significance>& test) {
    out_[name] = test ? Json(test->statistic) : Json(nullptr);
    out_[name + ".p"] = test ? Json(test->p) : Json(nullptr);
  }
  std::string line() const { return out_.dump(); }

 private:
  Json out_ = Json::object();
};

std::vector<Cluster> clusters_of(const Json& pairs) {
  std::vector<Cluster> out;
  for (const Json& p : pairs) out.push_back({p[0].get<std::uint64_t>(), p[1].get<std::uint64_t>()});
  return out;
}

void of_one_method(const std::vector<Cluster>& a, const Json& data, Answers& out) {
  std::uint64_t runs = 0, successes = 0;
  for (const Cluster& c : a) {
    runs += c.runs;
    successes += c.successes;
  }
  out.put("wilson", wilson(successes, runs));
  out.put("clopper_pearson", clopper_pearson(successes, runs));
  if (const auto mean = mean_of_task_means(a)) {
    out.put("mean", mean->mean);
    out.put("mean.se", mean->standard_error);
    out.put("mean", mean->interval);
  }
  if (const auto ends = near_ends(a)) {
    out.put("near_ends.n", ends->effective_n);
    out.put("near_ends.wilson", std::optional(ends->wilson));
    out.put("near_ends.korn_graubard", std::optional(ends->korn_graubard));
  }
  if (const auto ratio = ratio_rate(a)) {
    out.put("ratio", ratio->ratio);
    out.put("ratio.cr1", ratio->cr1);
    out.put("ratio.cr2", ratio->cr2);
    out.put("ratio.df", ratio->df);
    out.put("ratio", ratio->interval);
  }
  const PassEstimate pass = pass_k(a, 2);
  out.put("pass_one", pass.at_least_one.value);
  out.put("pass_one.se", pass.at_least_one.standard_error);
  out.put("pass_all", pass.all.value);
  const IntraclassCorrelation icc = intraclass_correlation(a);
  out.put("icc", icc.rho);
  out.put("icc.design_effect", icc.design_effect);
  const RerunNoise tasks = rerun_noise(a), by_run = rerun_noise(a, Weighing::kRuns);
  out.put("rerun.tasks", tasks.standard_error);
  out.put("rerun.runs", by_run.standard_error);
  std::vector<CostOfTask> costs;
  for (std::size_t i = 0; i < a.size(); ++i)
    costs.push_back({data["cost"][i].get<double>(), static_cast<double>(a[i].successes)});
  const CostPerSuccess cost = cost_per_success(costs);
  out.put("cost", cost.estimate.value);
  out.put("cost", cost.estimate.interval);
}

void of_two_methods(const std::vector<Cluster>& a, const std::vector<Cluster>& b, const Json& data,
                    Answers& out) {
  std::vector<PairedTask> pairs;
  std::vector<PartlyKnownPair> known;
  std::vector<double> differences;
  std::vector<std::int64_t> whole;
  const auto repository = data["repository"].get<std::vector<std::uint32_t>>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    pairs.push_back({a[i], b[i]});
    const std::uint64_t lost_a = data["lost"][i][0].get<std::uint64_t>(),
                        lost_b = data["lost"][i][1].get<std::uint64_t>();
    known.push_back({{a[i].runs + lost_a, a[i].successes, lost_a},
                     {b[i].runs + lost_b, b[i].successes, lost_b}});
    const auto rate = [](const Cluster& c) {
      return static_cast<double>(c.successes) / static_cast<double>(c.runs);
    };
    differences.push_back(rate(a[i]) - rate(b[i]));
    // Runs are at most 6, and 60 is a multiple of all numbers up to that.
    whole.push_back(std::llround(differences.back() * 60));
  }
  const Difference mean = paired_difference(pairs),
                   ratio = paired_difference(pairs, 0.05, Weighing::kRuns);
  out.put("difference", mean.estimate);
  out.put("difference.p", mean.p);
  out.put("ratio_difference", ratio.estimate);
  out.put("flips", std::optional(sign_flip(whole)));
  std::vector<TaskCell> cells_a, cells_b;
  for (const PairedTask& t : pairs) {
    cells_a.push_back({t.a.runs, t.a.successes, 0, 0});
    cells_b.push_back({t.b.runs, t.b.successes, 0, 0});
  }
  AnalysisPlan by_run;
  by_run.estimand = AnalysisPlan::Estimand::kRunMean;
  out.put("run_flips.p", contrast_of(cells_a, cells_b, by_run).flips->p);
  if (const auto e = equivalence(differences, 0.1)) {
    out.put("equivalence.p", e->p_equivalent);
    out.put("equivalence.not_inferior", e->p_non_inferior);
  }
  if (const auto bounds = bounds_of_difference(known)) {
    out.put("bounds", std::optional(bounds->identified));
    out.put("bounds.interval", bounds->interval);
  }
  for (const Weighing weighing : {Weighing::kTasks, Weighing::kRuns}) {
    const std::string name = weighing == Weighing::kTasks ? "equals.tasks" : "equals.runs";
    const auto equal = gap_of_equals(pairs, weighing);
    out.put(name, equal->gap95);
    out.put(name + ".p", equal->p);
  }
  const GroupedMean by = grouped_mean(differences, repository);
  out.put("grouped", by.estimate);
  out.put("grouped.df", by.estimate.df);
  out.put("grouped.p", by.p);
}

void of_runs(const Json& data, Answers& out) {
  std::vector<TimedOutcome> timed;
  std::vector<GroupedOutcome> grouped;
  for (const Json& r : data["runs"]) {
    const auto stratum = r[0].get<std::uint32_t>();
    const bool success = r[1].get<int>() == 1;
    timed.push_back({stratum, success, r[2].get<double>()});
    grouped.push_back({stratum, success, r[3].get<std::uint32_t>()});
  }
  const Trend trend = stratified_trend(timed);
  out.put("trend.slope", trend.slope);
  out.put("trend", trend.test);
  out.put("workers", stratified_association(grouped, 4).test);
  std::vector<Lifetime> lives;
  for (const Json& l : data["lives"])
    lives.push_back({l[0].get<double>(), static_cast<Ending>(l[1].get<int>())});
  for (const double t : {2.0, 5.0, 8.0}) {
    const auto incidence = cumulative_incidence(lives);
    const CurvePoint* f = at(incidence, t);
    const std::string when = "." + std::to_string(static_cast<int>(t));
    out.put("incidence" + when, f == nullptr ? 0 : f->value);
    out.put("incidence.se" + when, f == nullptr ? 0 : f->standard_error);
  }
  const auto p = data["p"].get<std::vector<double>>();
  const std::vector<double> holm = adjust_holm(p);
  for (std::size_t i = 0; i < p.size(); ++i) out.put("holm." + std::to_string(i), holm[i]);
  const auto samples = data["samples"].get<std::vector<std::vector<double>>>();
  std::vector<double> all;
  for (const auto& s : samples) all.insert(all.end(), s.begin(), s.end());
  out.put("quantile", real_quantile(all, 0.9));
  if (2 <= samples.size()) out.put("median", quantile_over_tasks(samples, 0.5).estimate);
  std::vector<std::int16_t> weights(samples.size());
  const std::uint64_t replicate = data["replicate"].get<std::uint64_t>();
  draw_weights(weights, replicate);
  for (std::size_t i = 0; i < weights.size(); ++i)
    out.put("weight." + std::to_string(i), static_cast<double>(weights[i]));
  const auto estimates = data["estimates"].get<std::vector<double>>();
  const auto errors = data["errors"].get<std::vector<double>>();
  const MaxT joint = max_t(estimates, errors, data["replicates"].get<std::vector<double>>(), 60);
  out.put("max_t", joint.critical);
  for (std::size_t j = 0; j < estimates.size(); ++j)
    out.put("max_t." + std::to_string(j), joint.intervals[j]);
}

// Three methods under a plan that takes their comparisons together.
void of_family(const Json& data, Answers& out) {
  TaskCells cells;
  cells.methods = {"a", "b", "c"};
  const auto runs = data["runs"].get<std::vector<std::vector<std::uint64_t>>>();
  const auto won = data["won"].get<std::vector<std::vector<std::uint64_t>>>();
  for (std::size_t i = 0; i < runs[0].size(); ++i) {
    cells.tasks.push_back("task-" + std::to_string(100 + i));
    cells.repositories.push_back(0);
    for (std::size_t m = 0; m < 3; ++m) cells.cells.push_back({runs[m][i], won[m][i], 0, 0});
  }
  AnalysisPlan plan;
  plan.multiplicity = AnalysisPlan::Multiplicity::kMaxT;
  plan.draws = kLeastPlanDraws;
  plan.estimand = data["by_task"].get<bool>() ? AnalysisPlan::Estimand::kTaskMean
                                              : AnalysisPlan::Estimand::kRunMean;
  const Analysis analysis = analyse(cells, plan, true, {{"a", "b"}, {"a", "c"}, {"b", "c"}}, 0);
  out.put("family.critical", analysis.adjustment.critical);
  for (std::size_t j = 0; j < analysis.contrasts.size(); ++j) {
    out.put("family." + std::to_string(j), analysis.contrasts[j].simultaneous);
    out.put("family.p." + std::to_string(j), analysis.contrasts[j].adjusted);
  }
}

// Two methods under a plan with weights of levels.
void of_weights(const std::vector<Cluster>& a, const std::vector<Cluster>& b, const Json& data,
                Answers& out) {
  TaskCells cells;
  cells.methods = {"a", "b"};
  cells.levels = data["levels"].get<std::vector<std::string>>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    cells.tasks.push_back("task-" + std::to_string(100 + i));
    cells.repositories.push_back(0);
    cells.cells.push_back({a[i].runs, a[i].successes, 0, 0});
    cells.cells.push_back({b[i].runs, b[i].successes, 0, 0});
  }
  AnalysisPlan plan;
  plan.weights_key = "level";
  for (const auto& [level, millionths] : data["weights"].items())
    plan.weights[level] = {millionths.get<std::uint32_t>()};
  const Analysis analysis = analyse(cells, plan, true, {{"a", "b"}}, 0);
  const auto put = [&](const std::string& name, const Weighted& w) {
    out.put(name, w.of.estimate);
    out.put(name + ".df", w.of.estimate.df);
    out.put(name + ".post_stratified", w.of.post_stratified_error);
    out.put(name + ".worth", w.worth);
  };
  put("weighted_rate", analysis.rates[0].weighted.value());
  put("weighted_difference", analysis.contrasts[0].weighted.value());
}

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    const auto data = parse_json(line);
    if (!data.ok()) return 1;
    Answers out;
    const std::vector<Cluster> a = clusters_of((*data)["a"]), b = clusters_of((*data)["b"]);
    of_one_method(a, *data, out);
    of_two_methods(a, b, *data, out);
    of_runs(*data, out);
    of_weights(a, b, *data, out);
    if (!(*data)["family"].is_null()) of_family((*data)["family"], out);
    std::cout << out.line() << '\n';
  }
  return std::cout.good() ? 0 : 1;
}
