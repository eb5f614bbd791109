#include "coordinator/cvdp/report/pass_k.h"

#include <algorithm>
#include <cmath>

#include "common/stats/rerun.h"
#include "coordinator/cvdp/report/composite.h"
#include "coordinator/cvdp/report/report_cells.h"

namespace proctor::cvdp {
namespace {

// A rate as the cluster that has it: the estimator takes whole numbers.
Cluster cluster_of(double rate) {
  constexpr std::uint64_t kScale = std::uint64_t{1} << 52U;
  return {kScale, static_cast<std::uint64_t>(std::llround(rate * static_cast<double>(kScale)))};
}

Value rate_json(const std::optional<ClusteredRate>& rate) {
  if (!rate) return Value();
  Object out;
  out.append("estimate", real(rate->mean));
  out.append("low", rate->interval ? real(rate->interval->low) : Value());
  out.append("high", rate->interval ? real(rate->interval->high) : Value());
  return out;
}

std::string rate_text(const std::optional<ClusteredRate>& rate) {
  if (!rate) return "-";
  std::string out = percent(rate->mean * 100);
  if (rate->interval)
    out += " [" + percent(std::max(0.0, rate->interval->low) * 100) + ", " +
           percent(std::min(1.0, rate->interval->high) * 100) + "]";
  return out;
}

struct PassRow {
  std::string name;
  std::vector<Cluster> trials;
  std::uint64_t scored = 0;
};

void add(PassRow& row, const SampledProblem& p) {
  if (p.scored)
    ++row.scored;
  else
    row.trials.push_back({p.passed.size(), static_cast<std::uint64_t>(p.pass_count())});
}

}  // namespace

double plug_in_pass_at_k(const Cluster& t, std::uint64_t k) {
  if (t.runs == 0) return 0;
  return 1 - std::pow(1 - static_cast<double>(t.successes) / static_cast<double>(t.runs),
                      static_cast<double>(k));
}

PassEstimates estimate_pass(std::span<const Cluster> problems, std::uint64_t k) {
  PassEstimates out;
  std::vector<Cluster> plug_in;
  std::vector<Cluster> any;
  std::vector<Cluster> all;
  for (const Cluster& t : problems) {
    ++out.problems;
    if (t.runs < k) {
      ++out.too_few;
      continue;
    }
    plug_in.push_back(cluster_of(plug_in_pass_at_k(t, k)));
    any.push_back(cluster_of(*pass_at_k(t, k)));
    all.push_back(cluster_of(*pass_all_k(t, k)));
  }
  out.plug_in = mean_of_task_means(plug_in);
  out.at_least_one = mean_of_task_means(any);
  out.all = mean_of_task_means(all);
  return out;
}

Result<PassTable> pass_table(const Value& composite, std::int64_t k) {
  PROCTOR_TRY(const Composite c, read_composite(composite, k));
  std::map<std::string, PassRow> cells;
  PassRow all{"all", {}, 0};
  for (const SampledProblem& p : c.problems) {
    const std::string name = p.category + " " + p.difficulty;
    cells[name].name = name;
    add(cells[name], p);
    add(all, p);
  }
  std::vector<PassRow> rows = {all};
  for (auto& [name, row] : cells) rows.push_back(std::move(row));
  const std::string kk = std::to_string(c.k);
  Grid g;
  g.header = {"Problems", "Count", "pass@" + kk + " (plug-in, upstream's)",
              "pass@" + kk + " (unbiased)", "pass^" + kk + " (unbiased)"};
  Array json;
  for (const PassRow& row : rows) {
    const PassEstimates e = estimate_pass(row.trials, static_cast<std::uint64_t>(c.k));
    g.rows.push_back({row.name, std::to_string(e.problems), rate_text(e.plug_in),
                      rate_text(e.at_least_one), rate_text(e.all)});
    Object o;
    o.append("problems_of", row.name);
    o.append("problems", static_cast<std::int64_t>(e.problems));
    o.append("scored_problems_left_out", static_cast<std::int64_t>(row.scored));
    o.append("problems_with_too_few_samples", static_cast<std::int64_t>(e.too_few));
    o.append("pass_at_k_plug_in", rate_json(e.plug_in));
    o.append("pass_at_k", rate_json(e.at_least_one));
    o.append("pass_all_k", rate_json(e.all));
    json.push_back(std::move(o));
  }
  PassTable out;
  out.text =
      "k = " + kk + ", n = " + std::to_string(c.n) +
      " samples; intervals of 95 % over problems, each problem one unit; problems that have a "
      "score: " +
      std::to_string(all.scored) + ", left out\n" + render_grid(g) + "\n";
  Object top;
  top.append("n_samples", c.n);
  top.append("k", c.k);
  top.append("rows", std::move(json));
  out.json = Value(std::move(top));
  return out;
}

}  // namespace proctor::cvdp
