#include "coordinator/cvdp/report/composite.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "common/base/parse.h"
#include "common/stats/interval.h"
#include "common/stats/rerun.h"
#include "coordinator/cvdp/report/report.h"

namespace proctor::cvdp {
namespace {
double plug_in(double rate, std::int64_t k) {
  return 1 - std::pow(1 - rate, static_cast<double>(k));
}

// Several samples of one dataset by problem; upstream's estimates, mistakes included.
// Source: CVDP 9.5, 9.6.
struct SampledProblem {
  std::string id;
  std::string category;
  std::string difficulty;
  bool scored = false;
  std::vector<bool> passed;    // by sample; of problems that pass or fail
  std::vector<double> scores;  // by sample; of scored ones: the average of their cell, as upstream
  // What upstream counts: samples passed, or the sum of the scores.
  double pass_count() const {
    double sum = 0;
    for (const bool b : passed) sum += b ? 1 : 0;
    for (const double s : scores) sum += s;
    return sum;
  }
  // 1 - (1 - c/n)^k, or the mean score whatever k is.
  double probability(std::int64_t k) const {
    const double n = static_cast<double>(passed.size() + scores.size());
    if (n == 0) return 0;
    return scored ? pass_count() / n : plug_in(pass_count() / n, k);
  }
};

struct Composite {
  std::int64_t n = 0;
  std::int64_t k = 1;
  const Object* metadata = nullptr;
  std::vector<const Object*> samples;    // a report.json each
  std::vector<SampledProblem> problems;  // in the order of the samples' logs
};

// "p.test3" and "p.3" are tests of p.
std::string problem_of(const std::string& test_id) {
  const std::size_t dot = test_id.rfind('.');
  if (dot == std::string::npos) return test_id;
  std::string_view tail = std::string_view(test_id).substr(dot + 1);
  take_word(tail, "test");
  return all_digits(tail) ? test_id.substr(0, dot) : test_id;
}

struct SampleVerdicts {
  std::map<std::string, std::string> difficulty;
  std::set<std::string> passing, failing;
};

SampleVerdicts verdicts_of(const Object& sample) {
  SampleVerdicts out;
  const Object* details = object_at(&sample, "test_details");
  for (const char* list : {"passing_tests", "failing_tests"}) {
    const Array* tests = array_at(details, list);
    if (tests == nullptr) continue;
    for (const Value& t : *tests) {
      const std::string* id = text_at(t, "test_id");
      if (id == nullptr) continue;
      const std::string problem = problem_of(*id);
      (std::string_view(list) == "passing_tests" ? out.passing : out.failing).insert(problem);
      out.difficulty[problem] = text_or(*t.object(), "difficulty", "");
    }
  }
  return out;
}

// Each problem once, as the logs of the samples name it.
void collect(Composite& out, const std::vector<SampleVerdicts>& verdicts) {
  std::set<std::string> seen;
  for (std::size_t s = 0; s < out.samples.size(); ++s) {
    for (const Member& m : *out.samples[s]) {
      const Array* logs = array_at(m.value.object(), "logs");
      if (logs == nullptr) continue;
      for (const Value& log : *logs) {
        const std::string* id = text_at(log, "id");
        if (id == nullptr || !seen.insert(problem_of(*id)).second) continue;
        SampledProblem p;
        p.id = problem_of(*id);
        p.category = m.key;
        p.scored = is_scored_category(m.key);
        if (const auto it = verdicts[s].difficulty.find(p.id); it != verdicts[s].difficulty.end())
          p.difficulty = it->second;
        out.problems.push_back(std::move(p));
      }
    }
  }
}

void judge(Composite& out, const std::vector<SampleVerdicts>& verdicts) {
  for (SampledProblem& p : out.problems) {
    for (std::size_t s = 0; s < out.samples.size(); ++s) {
      if (!p.scored) {
        p.passed.push_back(verdicts[s].passing.contains(p.id) &&
                           !verdicts[s].failing.contains(p.id));
        continue;
      }
      const Object* category = object_at(out.samples[s], p.category);
      const Tally t =
          category == nullptr ? Tally() : tally_of(*category, p.difficulty.c_str(), "Problems");
      p.scores.push_back(t.total.value == 0 ? 0 : t.passed.value / t.total.value);
    }
  }
}

// Points into `composite`.  kInvalid: no composite report.
Result<Composite> read_composite(const Value& composite, std::int64_t k) {
  const Array* samples = array_at(composite.object(), "samples");
  if (!is_composite(composite) || samples == nullptr)
    return invalid("no composite report: \"samples\" and metadata.composite are expected");
  Composite out;
  out.metadata = object_at(composite, "metadata");
  out.k = k;
  if (k == 0) {
    const Value* own = value_at(out.metadata, "k_threshold");
    out.k = own == nullptr ? 1 : static_cast<std::int64_t>(own->as_double().value_or(1));
  }
  std::vector<SampleVerdicts> verdicts;
  for (const Value& s : *samples) {
    if (s.object() == nullptr) return invalid("a sample is no mapping");
    out.samples.push_back(s.object());
    verdicts.push_back(verdicts_of(*s.object()));
  }
  out.n = static_cast<std::int64_t>(out.samples.size());
  constexpr std::int64_t kMost = 1'000'000;
  if (out.n == 0) return invalid("a composite report without samples");
  if (out.k < 1 || kMost < out.k) return invalid("k must be from 1 to 1000000");
  collect(out, verdicts);
  judge(out, verdicts);
  return out;
}

}  // namespace

bool is_composite(const Value& report) {
  const Value* flag = value_at(object_at(report, "metadata"), "composite");
  return flag != nullptr && flag->truthy();
}

Result<Value> make_composite(const std::vector<Value>& reports, const CompositeMetadata& m) {
  if (reports.empty()) return invalid("no sample has a report");
  Object metadata =
      object_of("timestamp", m.timestamp, "n_samples", static_cast<std::int64_t>(reports.size()),
                "k_threshold", m.k, "sample_prefixes", Array(m.prefixes.begin(), m.prefixes.end()),
                "composite", true);
  Array samples;
  for (const Value& report : reports) {
    const Object* own = object_at(report, "metadata");
    if (own == nullptr) return invalid("a sample's report has no metadata");
    if (samples.empty())
      for (const Member& member : *own)
        if (metadata.find(member.key) == nullptr) metadata.append(member.key, member.value);
    Object sample = *report.object();
    sample.set("sample_index", static_cast<std::int64_t>(samples.size()));
    samples.push_back(std::move(sample));
  }
  return Value(object_of("metadata", std::move(metadata), "samples", std::move(samples)));
}

// Estimates of pass@k beside upstream's.

namespace {
// A rate as the cluster that has it: the estimator takes whole numbers.
Cluster cluster_of(double rate) {
  constexpr std::uint64_t kScale = std::uint64_t{1} << 52U;
  return {kScale, static_cast<std::uint64_t>(std::llround(rate * static_cast<double>(kScale)))};
}

Value rate_json(const std::optional<ClusteredRate>& rate) {
  if (!rate) return Value();
  return object_of("estimate", real(rate->mean), "low",
                   rate->interval ? real(rate->interval->low) : Value(), "high",
                   rate->interval ? real(rate->interval->high) : Value());
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
  return plug_in(static_cast<double>(t.successes) / static_cast<double>(t.runs),
                 static_cast<std::int64_t>(k));
}

PassEstimates estimate_pass(std::span<const Cluster> problems, std::uint64_t k) {
  PassEstimates out;
  std::vector<Cluster> plugged, any, all;
  for (const Cluster& t : problems) {
    ++out.problems;
    if (t.runs < k) {
      ++out.too_few;
      continue;
    }
    plugged.push_back(cluster_of(plug_in_pass_at_k(t, k)));
    any.push_back(cluster_of(*pass_at_k(t, k)));
    all.push_back(cluster_of(*pass_all_k(t, k)));
  }
  out.plug_in = mean_of_task_means(plugged);
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
  Grid g{{"Problems", "Count", "pass@" + kk + " (plug-in, upstream's)",
          "pass@" + kk + " (unbiased)", "pass^" + kk + " (unbiased)"},
         {}};
  Array json;
  for (const PassRow& row : rows) {
    const PassEstimates e = estimate_pass(row.trials, static_cast<std::uint64_t>(c.k));
    g.rows.push_back({row.name, std::to_string(e.problems), rate_text(e.plug_in),
                      rate_text(e.at_least_one), rate_text(e.all)});
    json.push_back(object_of("problems_of", row.name, "problems",
                             static_cast<std::int64_t>(e.problems), "scored_problems_left_out",
                             static_cast<std::int64_t>(row.scored), "problems_with_too_few_samples",
                             static_cast<std::int64_t>(e.too_few), "pass_at_k_plug_in",
                             rate_json(e.plug_in), "pass_at_k", rate_json(e.at_least_one),
                             "pass_all_k", rate_json(e.all)));
  }
  return PassTable{
      fmt::format("k = {}, n = {} samples; intervals of 95 % over problems, each problem one unit; "
                  "problems that have a score: {}, left out\n{}\n",
                  c.k, c.n, all.scored, render_grid(g)),
      object_of("n_samples", c.n, "k", c.k, "rows", std::move(json))};
}

// composite_report.json as composite_report.txt.

namespace {
// Which problems a row is about.
struct Slice {
  std::string category;    // empty: all
  std::string difficulty;  // empty: all
  bool holds(const SampledProblem& p) const {
    return (category.empty() || p.category == category) &&
           (difficulty.empty() || p.difficulty == difficulty);
  }
};

struct SliceStats : Tally {
  std::vector<double> rates{};  // per cent by sample, of samples that have such problems
};

std::string spread(const std::vector<double>& v) {
  return v.size() < 2 ? "N/A" : percent(std::sqrt(variance_of(v)));
}

Tally sample_tally(const Object& sample, const Slice& slice) {
  Tally out;
  for (const auto& [name, category] : categories_of(sample)) {
    if (!slice.category.empty() && slice.category != name) continue;
    for (const auto& d : kDifficulties)
      if (slice.difficulty.empty() || slice.difficulty == d.key)
        out.add(tally_of(*category, d.key, "Problems"));
  }
  return out;
}

class CompositeText {
 public:
  explicit CompositeText(const Composite& c)
      : c_(c), n_(std::to_string(c.n)), label_("Pass@" + std::to_string(c.k) + ", n=" + n_) {
    for (const SampledProblem& p : c.problems) categories_.push_back(p.category);
    std::sort(categories_.begin(), categories_.end());
    categories_.erase(std::unique(categories_.begin(), categories_.end()), categories_.end());
  }

  std::string text() const {
    return fmt::format(
        "{}\n=== Composite Report ===\nNumber of samples: {}\n{} threshold: A problem passes if it "
        "passes in at least {} out of {} samples\n{:=<23}\n\n{}{}{}{}{}{}{}\n"
        "Overall {} probability: {}\n",
        report_head(*c_.metadata), n_, label_, c_.k, n_, "", samples(), overall(), by_difficulty(),
        by_category(), matrix(), distribution(), by_pass_count(), label_,
        percent(stats({}).rate()));
  }

 private:
  SliceStats stats(const Slice& slice) const {
    SliceStats out;
    for (const SampledProblem& p : c_.problems) {
      if (!slice.holds(p)) continue;
      ++out.total;
      out.passed.add(p.probability(c_.k));
    }
    out.passed.is_float = true;
    out.failed = {out.total.value - out.passed.value, true};
    for (const Object* s : c_.samples) {
      const Tally t = sample_tally(*s, slice);
      if (t.total.value != 0) out.rates.push_back(t.rate());
    }
    return out;
  }

  std::string samples() const {
    Grid g{{"Sample #", "Total Problems", "Passed Problems", "Pass Rate", "Prefix"}, {}};
    const Array* prefixes = array_at(c_.metadata, "sample_prefixes");
    std::vector<double> rates;
    for (std::size_t s = 0; s < c_.samples.size(); ++s) {
      const Tally t = sample_tally(*c_.samples[s], {});
      rates.push_back(t.rate());
      std::string prefix;
      if (prefixes != nullptr && s < prefixes->size())
        if (const std::string* p = (*prefixes)[s].string()) prefix = *p;
      const Value passed = t.passed.json();
      g.rows.push_back({std::to_string(s + 1), t.total.rounded(), passed.number()->text,
                        percent(t.rate()), prefix});
    }
    std::string out = section("Sample Statistics", g);
    if (1 < c_.n)
      out += "\nPass Rate Statistics: Mean = " + percent(mean_of(rates)) +
             ", StdDev = " + spread(rates) + "\n";
    return out;
  }

  std::string titled(const std::string& title, const Grid& g) const {
    return section(title + " (" + label_ + ")", g);
  }

  std::string overall() const {
    const SliceStats all = stats({});
    Grid g = overall_grid("Problem", all);
    g.rows.push_back({"Pass Rate StdDev", spread(all.rates)});
    return titled("Overall Problem Statistics", g);
  }

  static std::vector<std::string> row(std::string name, const SliceStats& s) {
    std::vector<std::string> out = tally_row(std::move(name), s);
    out.push_back(spread(s.rates));
    return out;
  }

  std::string by_difficulty() const {
    Grid g{{"Difficulty", "Total", "Pass", "Fail", "Rate", "StdDev"}, {}};
    for (const auto& d : kDifficulties)
      if (const SliceStats s = stats({"", d.key}); s.total.value != 0)
        g.rows.push_back(row(d.title, s));
    return titled("Problem Results by Difficulty", g);
  }

  std::string footnote() const {
    return std::any_of(categories_.begin(), categories_.end(), is_scored_category)
               ? std::string(kFootnote)
               : "";
  }

  std::string by_category() const {
    Grid g{{"Cat", "Total", "Pass", "Fail", "Rate", "StdDev"}, {}};
    for (const std::string& c : categories_)
      g.rows.push_back(row(category_title(c), stats({c, ""})));
    return titled("Problem Results by Category", g) + footnote();
  }

  std::string matrix() const {
    Grid g{{"Cat", "Easy", "Medium", "Hard", "Easy%", "Medium%", "Hard%", "Easy SD", "Medium SD",
            "Hard SD"},
           {}};
    for (const std::string& c : categories_) {
      std::vector<std::string> cells = {category_title(c)};
      std::vector<std::string> rates, spreads;
      for (const auto& d : kDifficulties) {
        const SliceStats s = stats({c, d.key});
        const bool none = s.total.value == 0;
        cells.push_back(cell_text(s));
        rates.push_back(none ? "-" : percent(s.rate()));
        spreads.push_back(none ? "-" : spread(s.rates));
      }
      cells.insert(cells.end(), rates.begin(), rates.end());
      cells.insert(cells.end(), spreads.begin(), spreads.end());
      g.rows.push_back(std::move(cells));
    }
    return titled("Problem Results by Category and Difficulty", g) + footnote();
  }

  struct Group {
    std::vector<const SampledProblem*> problems;
    bool scored = false;  // any of them
  };
  std::map<double, Group> groups() const {
    std::map<double, Group> out;
    for (const SampledProblem& p : c_.problems) {
      Group& g = out[p.scored ? rounded_to(p.pass_count(), 1) : p.pass_count()];
      g.problems.push_back(&p);
      g.scored = g.scored || p.scored;
    }
    return out;
  }
  double group_probability(double count, bool scored) const {
    const double rate = count / static_cast<double>(c_.n);
    return 100 * (scored ? rate : plug_in(rate, c_.k));
  }

  std::string distribution() const {
    Grid g{{"Pass Count", "Problems", "% of Dataset", label_ + " Probability"}, {}};
    for (const auto& [count, group] : groups()) {
      const bool whole = count == std::floor(count);
      const auto size = static_cast<double>(group.problems.size());
      g.rows.push_back({fixed(count, whole ? 0 : 1) + "/" + n_, fixed(size, 0),
                        percent(size / static_cast<double>(c_.problems.size()) * 100),
                        percent(group_probability(count, group.scored))});
    }
    return fmt::format(
        "\n=== Pass@{0} Distribution (n={1}) ===\nPass@{0} measures the probability of a problem "
        "passing in at least {0} of {1} randomly-selected samples\n{2}\n",
        c_.k, n_, render_grid(g));
  }

  std::string by_pass_count() const {
    const std::string thin = fmt::format("{:\xE2\x94\x80<35}", ""),
                      thick = fmt::format("{:\xE2\x95\x90<35}", "");
    Grid g{{"Problem ID", "Category (Difficulty)"}, {}};
    for (auto& [count, group] : groups()) {
      if (!g.rows.empty()) {
        g.rows.insert(g.rows.end(), 2, {"", ""});
        g.rows.push_back({thick, thick});
      }
      const double rate = count / static_cast<double>(c_.n);
      g.rows.push_back({"Pass Count: " + fixed(count, group.scored ? 1 : 0) + "/" + n_,
                        "Total: " + std::to_string(group.problems.size()) + " problems"});
      g.rows.push_back({(group.scored ? "Avg Score: " : "Pass Rate: ") + fixed(rate, 4),
                        (group.scored ? "Score-based Probability: " : label_ + " Probability: ") +
                            percent(group_probability(count, group.scored))});
      g.rows.push_back({thin, thin});
      std::vector<const SampledProblem*> sorted = group.problems;
      std::ranges::sort(sorted, {}, &SampledProblem::id);
      for (const SampledProblem* p : sorted)
        g.rows.push_back({p->id, p->category + " (" + p->difficulty + ")"});
    }
    return titled("Problems by Pass Count", g);
  }

  const Composite& c_;
  std::string n_;
  std::string label_;
  std::vector<std::string> categories_;
};
}  // namespace

Result<std::string> render_composite(const Value& composite, std::int64_t k) {
  PROCTOR_TRY(const Composite c, read_composite(composite, k));
  return CompositeText(c).text();
}
}  // namespace proctor::cvdp
